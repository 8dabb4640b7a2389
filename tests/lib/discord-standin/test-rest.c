/* SPDX-License-Identifier: MIT */

#include "ds-world.h"
#include "eb-test.h"
#include "test-client.h"

#include <string.h>

/* --- who may ask --- */

static void
test_client(Client *self, gconstpointer data)
{
    static const char *const wrong[] = {NULL, "Bot mock-other", "Bearer " CLIENT_TOKEN, CLIENT_TOKEN};

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        self->authorization = wrong[i];
        client_ask(self, "GET", "/users/@me", NULL);
        client_expect(self, 401, 0);
    }
    g_assert_cmpint(discord_standin_stat(self->standin, "invalid"), ==, G_N_ELEMENTS(wrong));
    self->authorization = "Bot " CLIENT_TOKEN;
    self->agent = "curl/7";
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 403, 40333);
    self->agent = "DiscordBot (https://example.com, 1)";
    self->type = "text/plain";
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"}");
    client_expect(self, 400, 50035);
    self->type = "application/json";
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":");
    client_expect(self, 400, 50109);
    client_ask(self, "GET", "/nothing/here", NULL);
    client_expect(self, 404, 0);
    client_ask(self, "PUT", "/users/@me", NULL);
    client_expect(self, 405, 0);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", "{\"rule\":\"unknown-route|user-agent\"}"), ==,
                     3);
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 200, 0);
}

/* --- messages --- */

static void
test_others_messages(Client *self, gconstpointer data)
{
    g_autofree char *theirs = client_say(self, "{\"content\":\"hello\"}");
    g_autofree char *path = g_strdup_printf(CHANNEL "/messages/%s", theirs);
    g_autofree char *own = client_post(self, DISCORD_STANDIN_CHANNEL, "mine");
    g_autofree char *own_path = g_strdup_printf(CHANNEL "/messages/%s", own);

    client_ask(self, "PATCH", path, "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 403, 50005);
    client_ask(self, "DELETE", path, NULL);
    client_expect(self, 403, 50013);
    client_ask(self, "PATCH", own_path, "{\"content\":\"\"," QUIET "}");
    client_expect(self, 400, 50006);
    client_ask(self, "PATCH", own_path, "{\"content\":\"changed\"," QUIET "}");
    client_expect(self, 200, 0);
    client_ask(self, "DELETE", own_path, NULL);
    client_expect(self, 204, 0);
    client_ask(self, "PATCH", own_path, "{\"content\":\"late\"," QUIET "}");
    client_expect(self, 404, 10008);
    client_ask(self, "GET", "/channels/77", NULL);
    client_expect(self, 404, 10003);
}

static void
test_nonce(Client *self, gconstpointer data)
{
    const char *body = "{\"content\":\"once\",\"nonce\":\"n1\",\"enforce_nonce\":true," QUIET "}";
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autofree char *path = NULL;

    client_ask(self, "POST", CHANNEL "/messages", body);
    first = client_string_of(self, "id");
    client_ask(self, "POST", CHANNEL "/messages", body);
    second = client_string_of(self, "id");
    g_assert_cmpstr(first, ==, second);
    g_assert_cmpuint(discord_standin_count(self->standin, "messages", "{\"text\":\"once\"}"), ==, 1);
    client_ask(self, "POST", CHANNEL "/messages",
               "{\"content\":\"other\",\"nonce\":\"n1\",\"enforce_nonce\":true," QUIET "}");
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", "{\"rule\":\"nonce\"}"), ==, 1);
    path = g_strdup_printf(CHANNEL "/messages/%s", first);
    client_ask(self, "DELETE", path, NULL);
    client_ask(self, "POST", CHANNEL "/messages", body);
    client_expect(self, 404, 10008);
}

static void
test_history(Client *self, gconstpointer data)
{
    g_autofree char *first = client_say(self, "{\"content\":\"0\"}");
    g_autofree char *path = g_strdup_printf(CHANNEL "/messages?limit=2&after=%s", first);
    JsonArray *list;

    for (int i = 1; i <= 4; i++) {
        g_autofree char *json = g_strdup_printf("{\"content\":\"%d\"}", i);

        g_free(client_say(self, json));
    }
    client_ask(self, "GET", path, NULL);
    list = json_node_get_array(self->answer);
    g_assert_cmpuint(json_array_get_length(list), ==, 2);
    /* The oldest two after it, newest first. */
    g_assert_cmpstr(eb_json_get_string(eb_json_array_object(list, 0), "content"), ==, "2");
    g_assert_cmpstr(eb_json_get_string(eb_json_array_object(list, 1), "content"), ==, "1");
    client_ask(self, "GET", CHANNEL "/messages?limit=2", NULL);
    g_assert_cmpstr(eb_json_get_string(eb_json_array_object(json_node_get_array(self->answer), 0), "content"), ==, "4");
    client_ask(self, "GET", CHANNEL "/messages?limit=101", NULL);
    client_expect(self, 400, 50035);
    client_control(self, "overwrite", "{\"deny\":\"%" G_GUINT64_FORMAT "\"}", DS_READ_HISTORY);
    client_ask(self, "GET", CHANNEL "/messages", NULL);
    client_expect(self, 200, 0);
    g_assert_cmpuint(json_array_get_length(json_node_get_array(self->answer)), ==, 0);
}

static void
test_reactions(Client *self, gconstpointer data)
{
    g_autofree char *id = client_say(self, "{\"content\":\"react\"}");
    static const struct {
        const char *emoji;
        guint status;
        int code;
    } rows[] = {{"%E2%9C%85", 204, 0}, {"%E2%8F%B9%EF%B8%8F", 204, 0}, {"%E2%8F%B3", 204, 0},
                {"done", 400, 10014},  {"%F0%9F%8E%89", 204, 0},       {"name%3A123", 400, 10014},
                {"%E2%9C", 404, 0},    {"x%E2%9C%85", 400, 10014},     {"1%EF%B8%8F%E2%83%A3", 204, 0}};

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *path = g_strdup_printf(CHANNEL "/messages/%s/reactions/%s/@me", id, rows[i].emoji);

        client_ask(self, "PUT", path, NULL);
        client_expect(self, rows[i].status, rows[i].code);
    }
    for (guint i = 0; i < 17; i++) {
        g_autofree char *path = g_strdup_printf(CHANNEL "/messages/%s/reactions/%%F0%%9F%%8D%%%02X/@me", id, 0x80 + i);

        client_ask(self, "PUT", path, NULL);
        client_expect(self, i < 15 ? 204 : 400, i < 15 ? 0 : 30010);
    }
}

/* --- permissions, threads --- */

static void
test_permissions(Client *self, gconstpointer data)
{
    client_control(self, "overwrite", "{\"deny\":\"%" G_GUINT64_FORMAT "\"}", DS_SEND_MESSAGES);
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 403, 50013);
    client_control(self, "overwrite",
                   "{\"id\":\"" DISCORD_STANDIN_APPLICATION "\",\"allow\":\"%" G_GUINT64_FORMAT "\"}",
                   DS_SEND_MESSAGES);
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 200, 0);
    client_control(self, "overwrite", "{\"id\":\"" DISCORD_STANDIN_APPLICATION "\",\"deny\":\"%" G_GUINT64_FORMAT "\"}",
                   DS_VIEW_CHANNEL);
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 403, 50001);
    client_control(self, "guild", "{\"owner\":\"" DISCORD_STANDIN_APPLICATION "\"}");
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 200, 0);
    client_control(self, "guild", "{\"owner\":\"" DISCORD_STANDIN_ALICE "\"}");
    client_control(self, "overwrite", "{\"id\":\"" DISCORD_STANDIN_APPLICATION "\"}");
    client_control(self, "overwrite", "{}");
    client_control(self, "member",
                   "{\"user\":\"" DISCORD_STANDIN_APPLICATION
                   "\",\"timeout_until\":\"2999-01-01T00:00:00.000000+00:00\"}");
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 403, 50013);
}

static void
test_threads(Client *self, gconstpointer data)
{
    g_autofree char *id = client_say(self, "{\"content\":\"start\"}");
    g_autofree char *path = g_strdup_printf(CHANNEL "/messages/%s/threads", id);
    g_autofree char *thread = g_strdup_printf("/channels/%s", id);
    g_autofree char *messages = g_strdup_printf("/channels/%s/messages", id);
    g_autofree char *long_name = client_expanded("{\"name\":\"{*101é}\"}");
    g_autofree char *own = NULL;
    g_autofree char *own_path = NULL;

    client_ask(self, "POST", path, "{\"name\":\"  \"}");
    client_expect(self, 400, 50035);
    client_ask(self, "POST", path, long_name);
    client_expect(self, 400, 50035);
    client_ask(self, "POST", path, "{\"name\":\"t\",\"auto_archive_duration\":61}");
    client_expect(self, 400, 50035);
    client_ask(self, "POST", path, "{\"name\":\"t\",\"auto_archive_duration\":1440}");
    client_expect(self, 201, 0);
    client_ask(self, "POST", path, "{\"name\":\"t\"}");
    client_expect(self, 400, 160004);
    own = client_post(self, id, "inside");
    own_path = g_strdup_printf("/channels/%s/messages/%s", id, own);
    client_ask(self, "PATCH", thread, "{\"archived\":true,\"locked\":true}");
    client_expect(self, 200, 0);
    client_ask(self, "PATCH", own_path, "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 400, 50083);
    client_ask(self, "PATCH", thread, "{\"name\":\"other\"}");
    client_expect(self, 400, 50083);
    client_ask(self, "POST", messages, "{\"content\":\"wakes it\"," QUIET "}");
    client_expect(self, 200, 0);
    g_assert_cmpuint(discord_standin_count(self->standin, "threads", "{\"archived\":false,\"locked\":true}"), ==, 1);
    client_control(self, "overwrite", "{\"deny\":\"%" G_GUINT64_FORMAT "\"}", DS_MANAGE_THREADS);
    client_ask(self, "POST", messages, "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 400, 160005);
    client_ask(self, "PATCH", thread, "{\"locked\":false}");
    client_expect(self, 403, 50013);
    client_control(self, "overwrite", "{}");
    client_ask(self, "PATCH", thread, "{\"locked\":false,\"name\":\"a\"}");
    client_expect(self, 200, 0);
    client_ask(self, "PATCH", thread, "{\"name\":\"b\"}");
    client_expect(self, 200, 0);
    client_ask(self, "PATCH", thread, "{\"name\":\"c\"}");
    client_expect(self, 429, 0);
    client_control(self, "delete-channel", "{\"channel\":\"%s\"}", id);
    client_ask(self, "POST", messages, "{\"content\":\"x\"," QUIET "}");
    client_expect(self, 404, 10003);
    /* The thread that a message lost cannot be made again; a thread of its own needs its type. */
    client_ask(self, "POST", CHANNEL "/threads", "{\"name\":\"alone\"}");
    client_expect(self, 403, 50013);
    client_ask(self, "POST", CHANNEL "/threads", "{\"name\":\"alone\",\"type\":11}");
    client_expect(self, 201, 0);
}

/* --- limits --- */

static void
test_buckets(Client *self, gconstpointer data)
{
    g_autofree char *body = g_strdup("{\"content\":\"x\"," QUIET "}");
    double after;

    client_control(self, "bucket", "{\"bucket\":\"/channels/{c}/messages\",\"limit\":2,\"window_ms\":60000}");
    client_ask(self, "POST", CHANNEL "/messages", body);
    g_assert_cmpstr(soup_message_headers_get_one(self->headers, "X-RateLimit-Remaining"), ==, "1");
    client_ask(self, "POST", CHANNEL "/messages", body);
    g_assert_cmpstr(soup_message_headers_get_one(self->headers, "X-RateLimit-Remaining"), ==, "0");
    g_assert_nonnull(soup_message_headers_get_one(self->headers, "X-RateLimit-Bucket"));
    client_ask(self, "POST", CHANNEL "/messages", body);
    client_expect(self, 429, 0);
    after = eb_json_get_double(eb_json_node_object(self->answer), "retry_after", 0);
    g_assert_cmpfloat(after, >, 1);
    g_assert_cmpstr(soup_message_headers_get_one(self->headers, "X-RateLimit-Scope"), ==, "user");
    g_assert_cmpint(discord_standin_stat(self->standin, "limited"), ==, 1);
    /* Another channel has its own. */
    client_ask(self, "POST", "/channels/" DISCORD_STANDIN_OTHER_CHANNEL "/messages", body);
    client_expect(self, 200, 0);
    client_control(self, "bucket", "{\"bucket\":\"global\",\"limit\":1}");
    for (guint i = 0; i < 3; i++)
        client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 429, 0);
    g_assert_true(eb_json_get_bool(eb_json_node_object(self->answer), "global", FALSE));
}

static void
test_faults(Client *self, gconstpointer data)
{
    client_control(self, "fault", "{\"method\":\"GET\",\"path\":\"^/users\",\"kind\":\"502\",\"skip\":1,\"count\":2}");
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 200, 0);
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 502, 0);
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 502, 0);
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 200, 0);
    client_control(self, "fault", "{\"kind\":\"429-shared\",\"seconds\":0.5}");
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 429, 0);
    g_assert_cmpint(discord_standin_stat(self->standin, "invalid"), ==, 0);
    client_control(self, "fault", "{\"kind\":\"429-html\"}");
    client_ask(self, "GET", "/users/@me", NULL);
    g_assert_cmpuint(self->status, ==, 429);
    g_assert_null(self->answer);
    client_control(self, "fault", "{\"kind\":\"delay\",\"seconds\":0.2}");
    client_ask(self, "GET", "/users/@me", NULL);
    client_expect(self, 200, 0);
}

/* Sends a request whose connection ends before an answer, for each way. */
static void
test_broken_connections(Client *self, gconstpointer data)
{
    static const char *const kinds[] = {"reset", "half", "lost"};
    g_autofree char *url = g_strdup_printf("%s" CHANNEL "/messages", discord_standin_get_api(self->standin));
    const char *body = "{\"content\":\"lost\"," QUIET "}";

    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(SoupMessage) message = soup_message_new("POST", url);
        g_autoptr(GBytes) bytes = g_bytes_new(body, strlen(body));
        g_auto(EbTestResult) done = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(GBytes) answer = NULL;

        client_control(self, "fault", "{\"kind\":\"%s\"}", kinds[i]);
        soup_message_headers_replace(soup_message_get_request_headers(message), "Authorization", self->authorization);
        soup_message_headers_replace(soup_message_get_request_headers(message), "User-Agent", self->agent);
        soup_message_set_request_body_from_bytes(message, "application/json", bytes);
        soup_session_send_and_read_async(self->session, message, G_PRIORITY_DEFAULT, NULL, eb_test_result_ready, &done);
        answer = soup_session_send_and_read_finish(self->session, eb_test_result_wait(&done), &error);
        if (strcmp(kinds[i], "half") == 0)
            g_assert_true(answer == NULL || g_bytes_get_size(answer) < 100);
        else
            g_assert_nonnull(error);
    }
    /* Only what was done and not told is there. */
    g_assert_cmpuint(discord_standin_count(self->standin, "messages", "{\"text\":\"lost\"}"), ==, 1);
}

/* --- files --- */

static void
test_files(Client *self, gconstpointer data)
{
    g_autofree char *id =
        client_say(self, "{\"attachments\":[{\"name\":\"n.txt\",\"text\":\"inside\",\"claimed_size\":3}]}");
    g_autoptr(JsonObject) list = discord_standin_call(self->standin, "messages", "{\"attachments\":true}");
    JsonObject *message = eb_json_array_object(eb_json_get_array(list, "items"), 0);
    JsonObject *file = eb_json_array_object(eb_json_get_array(message, "attachments"), 0);
    const char *url = eb_json_get_string(file, "url");
    g_autofree char *unsigned_url = g_strndup(url, (gsize)(strchr(url, '?') - url));
    const char *const urls[] = {url, unsigned_url, url};
    static const guint statuses[] = {200, 404, 404};

    g_assert_cmpint(eb_json_get_int(file, "size", 0), ==, 3);
    self->authorization = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(urls); i++) {
        g_autoptr(SoupMessage) get = soup_message_new("GET", urls[i]);

        if (i == 2)
            client_control(self, "expire-files", "{}");
        client_send(self, get);
        g_assert_cmpuint(self->status, ==, statuses[i]);
    }
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", NULL), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name) g_test_add("/standin/rest/" #name, Client, NULL, client_set_up, test_##name, client_tear_down)
    ADD(client);
    ADD(others_messages);
    ADD(nonce);
    ADD(history);
    ADD(reactions);
    ADD(permissions);
    ADD(threads);
    ADD(buckets);
    ADD(faults);
    ADD(broken_connections);
    ADD(files);
#undef ADD
    return g_test_run();
}
