/* SPDX-License-Identifier: MIT */
/* An event that is left out undecoded, and one that is decoded: the core hears the same. */
#include <string.h>

#include "discord-transport-private.h"
#include "transport-fixture.h"

#define STAMP "\"2026-11-30T10:00:00.000000+00:00\""

static guint n_wanted;
static guint n_events;

/* What is told of @event, the message's id taken out; through the filter or past it. */
static char *
told(Fixture *fixture, const char *event, gboolean filtered)
{
    static guint64 next = G_GUINT64_CONSTANT(1500000000000000000);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, next++);
    g_autoptr(GString) text = g_string_new(event);
    g_autoptr(GString) all = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    DiscordGatewayFrame frame;

    g_string_replace(text, "@ID@", id, 0);
    g_assert_true(discord_gateway_frame_read(text->str, text->len, &frame, &error));
    g_autoptr(JsonNode) node = discord_gateway_frame_parse(text->str, &frame);
    fixture_forget_told(fixture);
    gboolean wanted = !filtered || discord_transport_wants(&frame, text->str, fixture->transport);
    if (filtered) {
        n_events++;
        n_wanted += wanted;
    }
    if (wanted)
        discord_transport_handle(fixture->transport, frame.type, eb_json_node_object(node));
    for (guint i = 0; i < fixture->told->len; i++)
        g_string_append_printf(all, "%s\n", (char *)fixture->told->pdata[i]);
    g_string_replace(all, id, "ID", 0);
    return g_string_free(g_steal_pointer(&all), FALSE);
}

static void
check(Fixture *fixture, const char *event)
{
    g_autofree char *past = told(fixture, event, FALSE);
    g_autofree char *through = told(fixture, event, TRUE);
    if (strcmp(past, through) != 0)
        g_test_message("%s", event);
    g_assert_cmpstr(through, ==, past);
}

static void
test_same(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    const char *const types[] = {"MESSAGE_CREATE", "MESSAGE_UPDATE",      "MESSAGE_DELETE", "MESSAGE_REACTION_ADD",
                                 "TYPING_START",   "MESSAGE_DELETE_BULK", "SOMETHING_NEW"};
    const char *const places[] = {DISCORD_STANDIN_CHANNEL, thread, DISCORD_STANDIN_OTHER_CHANNEL};
    g_autofree char *own = g_strdup_printf("\"author\":{\"username\":\"errand\",\"id\":\"%s\",\"bot\":true},",
                                           fixture->transport->user_id);
    const char *const authors[] = {own,
                                   "\"author\":{\"id\":\"" DISCORD_STANDIN_ALICE "\",\"username\":\"alice\"},",
                                   "\"author\":{\"bot\":true,\"id\":\"" DISCORD_STANDIN_OTHER_BOT "\"},",
                                   "",
                                   "\"author\":null,",
                                   "\"webhook_id\":\"100000000000009999\",\"author\":{\"id\":\"100000000000009999\"},"};
    const char *const edits[] = {"null", STAMP, "7", "{}"};
    const char *const guilds[] = {"\"guild_id\":\"" DISCORD_STANDIN_GUILD "\",", "\"guild_id\":\"100000000000007777\",",
                                  ""};
    const char *const ids[] = {"\"@ID@\"", "\"no id\"", "12", "null"};

    discord_threads_refuse(fixture->transport->threads, DISCORD_STANDIN_OTHER_CHANNEL);
    for (gsize n = 0; n < G_N_ELEMENTS(types) * 3 * G_N_ELEMENTS(authors) * 4 * 3 * 4; n++) {
        gsize k = n;
        const char *type = types[k % G_N_ELEMENTS(types)];
        k /= G_N_ELEMENTS(types);
        const char *place = places[k % 3];
        const char *author = authors[k / 3 % G_N_ELEMENTS(authors)];
        k /= 3 * G_N_ELEMENTS(authors);
        g_autofree char *event = g_strdup_printf(
            "{\"t\":\"%s\",\"s\":5,\"op\":0,\"d\":{\"type\":0,\"x\":{\"author\":{\"id\":\"1\"},\"id\":\"2\"},"
            "\"content\":"
            "\"hi \\\"channel_id\\\":\\\"1\\\"\",\"edited_timestamp\":%s,%s\"channel_id\":\"%s\",%s\"id\":%s}}",
            type, edits[k % 4], guilds[k / 4 % 3], place, author, ids[k / 12]);
        check(fixture, event);
    }
    g_test_message("%u of %u events were decoded", n_wanted, n_events);
    g_assert_cmpuint(n_wanted, <, n_events / 2);
    g_assert_cmpuint(n_wanted, >, 0);
}

/* Of a place nobody has heard of nothing is decided before Discord was asked. */
static void
test_unknown(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = g_strdup_printf("{\"t\":\"MESSAGE_CREATE\",\"s\":5,\"op\":0,\"d\":{\"author\":{\"id\":\"%"
                                            "s\"},\"guild_id\":\"" DISCORD_STANDIN_GUILD
                                            "\",\"channel_id\":\"100000000000005555\",\"id\":\"1500000000000000000\"}}",
                                            fixture->transport->user_id);
    g_autoptr(GError) error = NULL;
    DiscordGatewayFrame frame;

    g_assert_true(discord_gateway_frame_read(text, strlen(text), &frame, &error));
    fixture_forget_told(fixture);
    g_assert_true(discord_transport_wants(&frame, text, fixture->transport));
    g_assert_cmpuint(fixture->told->len, ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add("/discord/transport-filter/same", Fixture, NULL, fixture_set_up, test_same, fixture_close);
    g_test_add("/discord/transport-filter/unknown", Fixture, NULL, fixture_set_up, test_unknown, fixture_close);
    return g_test_run();
}
