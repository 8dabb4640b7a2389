/* SPDX-License-Identifier: MIT */
/* The service and its chat: what ends it, what does not, and what status says. */
#include "discord-standin.h"
#include "tests/component/service/service-fixture.h"

#include <string.h>

#define TOKEN "mock-service-chat"

typedef struct {
    ServiceFixture service;
    DiscordStandin *standin;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    service_set_up(&fixture->service, data);
    fixture->standin = discord_standin_new(TOKEN, 0, &error);
    g_assert_no_error(error);
    g_setenv("ERRAND_DISCORD_MOCK_URL", discord_standin_get_api(fixture->standin), TRUE);
    service_accept_gaps(&fixture->service);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_autofree char *log = service_read_log(&fixture->service);

    g_assert_null(strstr(log, " critical "));
    g_unsetenv("ERRAND_DISCORD_MOCK_URL");
    g_clear_pointer(&fixture->standin, discord_standin_free);
    service_tear_down(&fixture->service, data);
}

/* @token: (nullable): what the store holds, readable to root alone */
static void
configure(Fixture *fixture, const char *channel, const char *token)
{
    g_autofree char *extra = g_strdup_printf("[plugin.chat-discord]\ntoken = \"cred:chat-token\"\nchannel_id = \"%s\"\n"
                                             "allowed_user_ids = [\"" DISCORD_STANDIN_ALICE "\"]\n",
                                             channel);

    service_configure(&fixture->service, extra);
    if (token == NULL)
        return;
    g_auto(EbTestRun) set = eb_test_run_program(fixture->service.config, token, "creds set chat-token");
    g_assert_cmpint(set.code, ==, 0);
}

static void
check_refused(Fixture *fixture, const char *sentence)
{
    g_autoptr(GSubprocess) process = service_spawn(&fixture->service);

    g_assert_cmpint(eb_test_wait_exit(process), ==, 2);
    g_autofree char *log = service_read_log(&fixture->service);
    g_test_message("%s", log);
    g_assert_nonnull(strstr(log, sentence));
    g_assert_null(strstr(log, TOKEN));
}

static void
test_refused(Fixture *fixture, gconstpointer data)
{
    configure(fixture, "general", NULL);
    check_refused(fixture, "\"general\" is not an id");
    configure(fixture, DISCORD_STANDIN_CHANNEL, NULL);
    check_refused(fixture, "errand-box creds set chat-token");
    configure(fixture, "100000000000000999", TOKEN);
    check_refused(fixture, "100000000000000999");
    /* Before anything is started, the same words from the command that is for it. */
    configure(fixture, "general", NULL);
    g_auto(EbTestRun) check = eb_test_run_program(fixture->service.config, NULL, "config check");
    g_assert_cmpint(check.code, ==, 2);
    g_assert_nonnull(strstr(check.err, "\"general\" is not an id"));
}

static gboolean
is_online(gpointer user_data)
{
    return discord_standin_stat(user_data, "online") == 1;
}

static char *
chat_state(Fixture *fixture)
{
    g_auto(EbTestRun) run = eb_test_run_program(fixture->service.config, NULL, "status --json");
    g_autoptr(JsonNode) node = eb_json_parse(run.out, strlen(run.out), NULL, NULL);
    JsonArray *list = eb_json_get_array(eb_json_node_object(node), "transports");

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(list, i), "name"), "discord") == 0)
            return g_strdup(eb_json_get_string(eb_json_array_object(list, i), "state"));
    return NULL;
}

static void
test_revoked(Fixture *fixture, gconstpointer data)
{
    configure(fixture, DISCORD_STANDIN_CHANNEL, TOKEN);
    g_autoptr(GSubprocess) process = service_spawn(&fixture->service);
    service_wait_notice(&fixture->service, "READY=1");
    eb_test_run_until(is_online, fixture->standin);
    g_autofree char *up = chat_state(fixture);
    g_assert_cmpstr(up, ==, "up");
    g_auto(EbTestRun) shown = eb_test_run_program(fixture->service.config, NULL, "status");
    g_assert_nonnull(strstr(shown.out, "discord: up: connected"));
    g_autoptr(JsonObject) revoked = discord_standin_call(fixture->standin, "revoke-token", "{\"revoked\":true}");
    g_autoptr(JsonObject) cut = discord_standin_call(fixture->standin, "drop", "{\"code\":4004}");
    g_assert_cmpint(eb_test_wait_exit(process), ==, 2);
    g_autofree char *log = service_read_log(&fixture->service);
    g_assert_nonnull(strstr(log, "the service ended: chat \"discord\": "));
    g_assert_null(strstr(log, TOKEN));
}

/* Discord is away: the service starts, says so, and is in its channel as soon as Discord is back. */
static void
test_outage(Fixture *fixture, gconstpointer data)
{
    configure(fixture, DISCORD_STANDIN_CHANNEL, TOKEN);
    g_autoptr(JsonObject) silent = discord_standin_call(fixture->standin, "silence", "{}");
    g_autoptr(GSubprocess) process = service_spawn(&fixture->service);
    service_wait_notice(&fixture->service, "READY=1");
    g_autofree char *down = chat_state(fixture);
    g_assert_cmpstr(down, ==, "down");
    g_autoptr(JsonObject) speaks = discord_standin_call(fixture->standin, "speak", "{}");
    eb_test_run_until(is_online, fixture->standin);
    service_stop(process);
}

static void
add_tests(void)
{
#define ADD(name, func) g_test_add("/service-chat/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("refused", test_refused);
    ADD("revoked", test_revoked);
    ADD("outage", test_outage);
}

int
main(int argc, char **argv)
{
    return service_main(&argc, &argv, "service", add_tests);
}
