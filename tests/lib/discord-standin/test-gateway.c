/* SPDX-License-Identifier: MIT */

#include "discord-standin.h"
#include "eb-test.h"

#include <libsoup/soup.h>
#include <string.h>

#define TOKEN "mock-test"
#define IDENTIFY(token, intents)                                                                                       \
    "{\"op\":2,\"d\":{\"token\":\"" token "\",\"intents\":" intents                                                    \
    ",\"properties\":{\"os\":\"linux\",\"browser\":\"t\",\"device\":\"t\"}}}"

typedef struct {
    DiscordStandin *standin;
    SoupSession *session;
    SoupWebsocketConnection *socket;
    GPtrArray *received; /* (element-type JsonObject) */
    gboolean closed;
    guint close_code;
    guint status; /* of the last REST request */
    int code;
    JsonObject *answer;
} Fixture;

static void
control(Fixture *self, const char *verb, const char *json)
{
    json_object_unref(discord_standin_call(self->standin, verb, json));
}

/* (transfer full): the id that a verb gives */
static char *
control_id(Fixture *self, const char *verb, const char *json)
{
    g_autoptr(JsonObject) result = discord_standin_call(self->standin, verb, json);

    return g_strdup(eb_json_get_string(result, "id"));
}

static void
set_up(Fixture *self, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    self->standin = discord_standin_new(TOKEN, 0, &error);
    g_assert_no_error(error);
    self->session = soup_session_new();
    self->received = g_ptr_array_new_with_free_func((GDestroyNotify)json_object_unref);
    control(self, "gateway-config", "{\"identify_interval_ms\":0}");
}

static void
hang_up(Fixture *self)
{
    if (self->socket == NULL)
        return;
    g_signal_handlers_disconnect_by_data(self->socket, self);
    if (soup_websocket_connection_get_state(self->socket) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_close(self->socket, 4000, NULL);
    g_clear_object(&self->socket);
    g_ptr_array_set_size(self->received, 0);
    self->closed = FALSE;
}

static void
tear_down(Fixture *self, gconstpointer data)
{
    hang_up(self);
    soup_session_abort(self->session);
    g_clear_object(&self->session);
    g_clear_pointer(&self->answer, json_object_unref);
    g_ptr_array_unref(self->received);
    eb_test_drain();
    discord_standin_free(self->standin);
}

/* --- a client --- */

static void
on_message(SoupWebsocketConnection *socket, gint type, GBytes *bytes, gpointer user_data)
{
    Fixture *self = user_data;
    gsize length = 0;
    const char *text = g_bytes_get_data(bytes, &length);
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, NULL);

    g_assert_nonnull(node);
    g_ptr_array_add(self->received, json_object_ref(json_node_get_object(node)));
}

static void
on_closed(SoupWebsocketConnection *socket, gpointer user_data)
{
    Fixture *self = user_data;

    self->closed = TRUE;
    self->close_code = soup_websocket_connection_get_close_code(socket);
}

static void
dial(Fixture *self, const char *path)
{
    g_autofree char *url = g_strdup_printf("ws%s%s", discord_standin_get_origin(self->standin) + strlen("http"), path);
    g_autoptr(SoupMessage) message = soup_message_new("GET", url);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    hang_up(self);
    soup_session_websocket_connect_async(self->session, message, NULL, NULL, G_PRIORITY_DEFAULT, NULL,
                                         eb_test_result_ready, &done);
    self->socket = soup_session_websocket_connect_finish(self->session, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    soup_websocket_connection_set_max_incoming_payload_size(self->socket, 0);
    g_signal_connect(self->socket, "message", G_CALLBACK(on_message), self);
    g_signal_connect(self->socket, "closed", G_CALLBACK(on_closed), self);
}

typedef struct {
    Fixture *fixture;
    gint64 op;
    const char *type; /* (nullable) */
    JsonObject *found;
} Search;

static gboolean
is_there(gpointer user_data)
{
    Search *search = user_data;

    for (guint i = 0; i < search->fixture->received->len; i++) {
        JsonObject *payload = g_ptr_array_index(search->fixture->received, i);

        if (eb_json_get_int(payload, "op", -1) == search->op &&
            (search->type == NULL || g_strcmp0(eb_json_get_string(payload, "t"), search->type) == 0)) {
            search->found = payload;
            return TRUE;
        }
    }
    return FALSE;
}

/* (transfer none): the payload; it is waited for. @type: (nullable): of a dispatch */
static JsonObject *
get(Fixture *self, gint64 op, const char *type)
{
    Search search = {self, op, type, NULL};

    eb_test_run_until(is_there, &search);
    return search.found;
}

static guint
count(Fixture *self, const char *type)
{
    guint n = 0;

    for (guint i = 0; i < self->received->len; i++)
        n += g_strcmp0(eb_json_get_string(g_ptr_array_index(self->received, i), "t"), type) == 0;
    return n;
}

static void
expect_close(Fixture *self, guint code)
{
    eb_test_run_until_true(&self->closed);
    g_assert_cmpuint(self->close_code, ==, code);
}

static void
tell(Fixture *self, const char *text)
{
    soup_websocket_connection_send_text(self->socket, text);
}

static JsonObject *
log_in(Fixture *self, const char *identify)
{
    dial(self, "/gateway/?v=10&encoding=json");
    get(self, 10, NULL);
    tell(self, identify);
    return eb_json_get_object(get(self, 0, "READY"), "d");
}

/* --- the gateway --- */

static void
test_refused_identify(Fixture *self, gconstpointer data)
{
    static const struct {
        const char *payload;
        guint close;
    } rows[] = {
        {IDENTIFY("mock-other", "33281"), 4004},
        {IDENTIFY("Bot " TOKEN, "33281"), 4004},
        {IDENTIFY(TOKEN, "-1"), 4013},
        {IDENTIFY(TOKEN, "1125899906842624"), 4013},
        {IDENTIFY(TOKEN, "33283"), 4014},
        {"{\"op\":2,\"d\":{\"token\":\"" TOKEN "\",\"intents\":1}}", 4002},
        {"{\"op\":3,\"d\":{}}", 4003},
        {"{\"op\":77}", 4001},
        {"no json", 4002},
        {"{\"op\":1,\"d\":\"7\"}", 4002},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        dial(self, "/gateway/?v=10&encoding=json");
        get(self, 10, NULL);
        tell(self, rows[i].payload);
        expect_close(self, rows[i].close);
    }
    dial(self, "/gateway/?v=9&encoding=json");
    expect_close(self, 4012);
    control(self, "application", "{\"flags\":0}");
    dial(self, "/gateway/?v=10&encoding=json");
    tell(self, IDENTIFY(TOKEN, "33281"));
    expect_close(self, 4014);
    g_assert_cmpint(discord_standin_stat(self->standin, "ready"), ==, 0);
}

static void
test_sizes(Fixture *self, gconstpointer data)
{
    g_autofree char *filler = g_strnfill(4097, ' ');

    log_in(self, IDENTIFY(TOKEN, "33281"));
    tell(self, IDENTIFY(TOKEN, "33281"));
    expect_close(self, 4005);
    log_in(self, IDENTIFY(TOKEN, "33281"));
    tell(self, filler);
    expect_close(self, 4002);
    log_in(self, IDENTIFY(TOKEN, "33281"));
    for (guint i = 0; i < 120; i++)
        tell(self, "{\"op\":1,\"d\":null}");
    expect_close(self, 4008);
}

static void
test_ready(Fixture *self, gconstpointer data)
{
    JsonObject *ready;
    JsonObject *guild;

    control(self, "gateway-config", "{\"padding\":400000}");
    ready = log_in(self, IDENTIFY(TOKEN, "33281"));
    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(ready, "user"), "id"), ==, DISCORD_STANDIN_APPLICATION);
    g_assert_nonnull(strstr(eb_json_get_string(ready, "resume_gateway_url"), "/resume"));
    guild = eb_json_get_object(get(self, 0, "GUILD_CREATE"), "d");
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(guild, "channels")), >, 300);
    tell(self, "{\"op\":1,\"d\":2}");
    get(self, 11, NULL);
    tell(self, "{\"op\":1,\"d\":200}");
    expect_close(self, 4007);
}

static void
test_content_intent(Fixture *self, gconstpointer data)
{
    JsonObject *message;

    log_in(self, IDENTIFY(TOKEN, "513"));
    control(self, "say", "{\"content\":\"secret\"}");
    message = eb_json_get_object(get(self, 0, "MESSAGE_CREATE"), "d");
    g_assert_cmpstr(eb_json_get_string(message, "content"), ==, "");
    g_ptr_array_set_size(self->received, 0);
    control(self, "say", "{\"content\":\"<@" DISCORD_STANDIN_APPLICATION "> hello\"}");
    message = eb_json_get_object(get(self, 0, "MESSAGE_CREATE"), "d");
    g_assert_cmpstr(eb_json_get_string(message, "content"), ==, "<@" DISCORD_STANDIN_APPLICATION "> hello");
}

static void
test_resume(Fixture *self, gconstpointer data)
{
    g_autofree char *session = g_strdup(eb_json_get_string(log_in(self, IDENTIFY(TOKEN, "33281")), "session_id"));
    g_autofree char *resume =
        g_strdup_printf("{\"op\":6,\"d\":{\"token\":\"" TOKEN "\",\"session_id\":\"%s\",\"seq\":2}}", session);
    g_autofree char *ahead =
        g_strdup_printf("{\"op\":6,\"d\":{\"token\":\"" TOKEN "\",\"session_id\":\"%s\",\"seq\":900}}", session);

    get(self, 0, "GUILD_CREATE");
    control(self, "drop", "{\"code\":0}");
    eb_test_run_until_true(&self->closed);
    control(self, "say", "{\"content\":\"one\"}");
    control(self, "say", "{\"content\":\"two\"}");
    dial(self, "/resume/?v=10&encoding=json");
    tell(self, resume);
    get(self, 0, "RESUMED");
    g_assert_cmpuint(count(self, "MESSAGE_CREATE"), ==, 2);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", NULL), ==, 0);
    dial(self, "/gateway/?v=10&encoding=json");
    tell(self, ahead);
    expect_close(self, 4007);
    g_assert_cmpint(discord_standin_stat(self->standin, "resumed_elsewhere"), ==, 1);
    control(self, "gateway-config", "{\"resume\":\"invalid-true\"}");
    dial(self, "/resume/?v=10&encoding=json");
    tell(self, resume);
    g_assert_true(eb_json_get_bool(get(self, 9, NULL), "d", FALSE));
    control(self, "gateway-config", "{\"resume\":null}");
    control(self, "forget-sessions", NULL);
    dial(self, "/resume/?v=10&encoding=json");
    tell(self, resume);
    g_assert_false(eb_json_get_bool(get(self, 9, NULL), "d", TRUE));
}

static void
test_closed_session(Fixture *self, gconstpointer data)
{
    g_autofree char *session = g_strdup(eb_json_get_string(log_in(self, IDENTIFY(TOKEN, "33281")), "session_id"));
    g_autofree char *resume =
        g_strdup_printf("{\"op\":6,\"d\":{\"token\":\"" TOKEN "\",\"session_id\":\"%s\",\"seq\":2}}", session);

    soup_websocket_connection_close(self->socket, 1000, NULL);
    eb_test_run_until_true(&self->closed);
    dial(self, "/resume/?v=10&encoding=json");
    tell(self, resume);
    g_assert_false(eb_json_get_bool(get(self, 9, NULL), "d", TRUE));
}

static void
test_identify_limits(Fixture *self, gconstpointer data)
{
    control(self, "gateway-config", "{\"identify_interval_ms\":60000,\"remaining\":2}");
    log_in(self, IDENTIFY(TOKEN, "33281"));
    dial(self, "/gateway/?v=10&encoding=json");
    tell(self, IDENTIFY(TOKEN, "33281"));
    g_assert_false(eb_json_get_bool(get(self, 9, NULL), "d", TRUE));
    g_assert_cmpint(discord_standin_stat(self->standin, "identified_too_soon"), ==, 1);
    dial(self, "/gateway/?v=10&encoding=json");
    tell(self, IDENTIFY(TOKEN, "33281"));
    expect_close(self, 4004);
}

static void
test_dead_heart(Fixture *self, gconstpointer data)
{
    control(self, "gateway-config", "{\"heartbeat_ms\":100,\"no_ack\":true}");
    log_in(self, IDENTIFY(TOKEN, "33281"));
    tell(self, "{\"op\":1,\"d\":null}");
    expect_close(self, 4009);
    for (guint i = 0; i < self->received->len; i++)
        g_assert_cmpint(eb_json_get_int(g_ptr_array_index(self->received, i), "op", -1), !=, 11);
}

static void
test_event_faults(Fixture *self, gconstpointer data)
{
    log_in(self, IDENTIFY(TOKEN, "33281"));
    control(self, "event-fault", "{\"type\":\"MESSAGE_CREATE\",\"kind\":\"drop\"}");
    control(self, "event-fault", "{\"type\":\"MESSAGE_CREATE\",\"kind\":\"duplicate\"}");
    control(self, "event-fault", "{\"type\":\"MESSAGE_CREATE\",\"kind\":\"reorder\"}");
    for (guint i = 0; i < 4; i++)
        control(self, "say", "{\"content\":\"x\"}");
    control(self, "pause-events", NULL);
    control(self, "say", "{\"content\":\"last\"}");
    eb_test_run_for(50);
    g_assert_cmpuint(count(self, "MESSAGE_CREATE"), ==, 4); /* one lost, one twice, two in the other order */
    control(self, "release-events", NULL);
    eb_test_run_for(50);
    g_assert_cmpuint(count(self, "MESSAGE_CREATE"), ==, 5);
}

static void
test_lost_view(Fixture *self, gconstpointer data)
{
    log_in(self, IDENTIFY(TOKEN, "33281"));
    control(self, "overwrite", "{\"deny\":\"1024\"}");
    get(self, 0, "CHANNEL_DELETE");
    control(self, "say", "{\"content\":\"unseen\"}");
    eb_test_run_for(50);
    g_assert_cmpuint(count(self, "MESSAGE_CREATE"), ==, 0);
    control(self, "overwrite", "{}");
    get(self, 0, "CHANNEL_CREATE");
}

/* --- interactions --- */

static void ask(Fixture *self, const char *method, const char *body, const char *format, ...) G_GNUC_PRINTF(4, 5);

static void
ask(Fixture *self, const char *method, const char *body, const char *format, ...)
{
    g_autofree char *path = NULL;
    g_autofree char *url = NULL;
    g_autoptr(SoupMessage) message = NULL;
    g_autoptr(GBytes) bytes = NULL;
    g_autoptr(GBytes) answer = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    va_list list;

    va_start(list, format);
    path = g_strdup_vprintf(format, list);
    va_end(list);
    url = g_strdup_printf("%s%s", discord_standin_get_api(self->standin), path);
    message = soup_message_new(method, url);
    if (body != NULL) {
        bytes = g_bytes_new(body, strlen(body));
        soup_message_set_request_body_from_bytes(message, "application/json", bytes);
    }
    soup_message_headers_replace(soup_message_get_request_headers(message), "User-Agent",
                                 "DiscordBot (https://example.com, 1)");
    if (!g_str_has_prefix(path, "/interactions") && !g_str_has_prefix(path, "/webhooks"))
        soup_message_headers_replace(soup_message_get_request_headers(message), "Authorization", "Bot " TOKEN);
    soup_session_send_and_read_async(self->session, message, G_PRIORITY_DEFAULT, NULL, eb_test_result_ready, &done);
    answer = soup_session_send_and_read_finish(self->session, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    node = g_bytes_get_size(answer) > 0
               ? eb_json_parse(g_bytes_get_data(answer, NULL), g_bytes_get_size(answer), NULL, NULL)
               : NULL;
    g_clear_pointer(&self->answer, json_object_unref);
    self->answer = eb_json_node_object(node) != NULL ? json_object_ref(eb_json_node_object(node)) : NULL;
    self->status = soup_message_get_status(message);
    self->code = (int)eb_json_get_int(self->answer, "code", 0);
}

#define COMMANDS "/applications/" DISCORD_STANDIN_APPLICATION "/guilds/" DISCORD_STANDIN_GUILD "/commands"
#define SAID "{\"content\":\"answer\",\"allowed_mentions\":{\"parse\":[]}}"

static void
expect(Fixture *self, guint status, int code)
{
    g_assert_cmpuint(self->status, ==, status);
    g_assert_cmpint(self->code, ==, code);
}

static void
test_commands(Fixture *self, gconstpointer data)
{
    static const char *const wrong[] = {
        "[{\"name\":\"Upper\",\"description\":\"d\"}]",
        "[{\"name\":\"with space\",\"description\":\"d\"}]",
        "[{\"name\":\"a\",\"description\":\"\"}]",
        "[{\"name\":\"a\"}]",
        "[{\"name\":\"a\",\"description\":\"d\"},{\"name\":\"a\",\"description\":\"d\"}]",
        "[{\"name\":\"a\",\"description\":\"d\",\"options\":[{\"name\":\"o\",\"description\":\"d\",\"type\":3},"
        "{\"name\":\"p\",\"description\":\"d\",\"type\":3,\"required\":true}]}]",
        "[{\"name\":\"a\",\"description\":\"d\",\"options\":[{\"name\":\"o\",\"description\":\"d\",\"type\":99}]}]",
        "{\"name\":\"a\"}",
    };
    g_autofree char *first = NULL;

    control(self, "bucket", "{\"bucket\":\"/applications/{a}/guilds/{g}/commands\",\"limit\":1000}");
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        ask(self, "PUT", wrong[i], COMMANDS);
        expect(self, 400, 50035);
    }
    ask(self, "PUT", "[]", "/applications/77/guilds/" DISCORD_STANDIN_GUILD "/commands");
    g_assert_cmpuint(self->status, ==, 403);
    ask(self, "PUT", "[{\"name\":\"status\",\"description\":\"d\"}]", COMMANDS);
    expect(self, 200, 0);
    first = control_id(self, "command", "{\"name\":\"status\"}");
    g_assert_nonnull(first);
    ask(self, "PUT", "[]", COMMANDS);
    g_assert_cmpuint(discord_standin_count(self->standin, "commands", NULL), ==, 0);
}

/* (transfer full): token of a new interaction */
static char *
interaction(Fixture *self, char **id)
{
    JsonObject *event;

    g_ptr_array_set_size(self->received, 0);
    *id = control_id(self, "command", "{\"name\":\"status\"}");
    event = eb_json_get_object(get(self, 0, "INTERACTION_CREATE"), "d");
    g_assert_cmpstr(eb_json_get_string(event, "id"), ==, *id);
    return g_strdup(eb_json_get_string(event, "token"));
}

static void
test_interaction(Fixture *self, gconstpointer data)
{
    g_autofree char *id = NULL;
    g_autofree char *token = NULL;
    g_autofree char *age = NULL;

    ask(self, "PUT", "[{\"name\":\"status\",\"description\":\"d\"}]", COMMANDS);
    log_in(self, IDENTIFY(TOKEN, "33281"));
    token = interaction(self, &id);
    ask(self, "POST", "{\"type\":5}", "/interactions/%s/wrong/callback", id);
    expect(self, 404, 10062);
    ask(self, "PATCH", SAID, "/webhooks/" DISCORD_STANDIN_APPLICATION "/%s/messages/@original", token);
    expect(self, 404, 10015);
    ask(self, "POST", "{\"type\":7}", "/interactions/%s/%s/callback", id, token);
    expect(self, 400, 50035);
    ask(self, "POST", "{\"type\":5,\"data\":{\"flags\":64}}", "/interactions/%s/%s/callback", id, token);
    expect(self, 204, 0);
    ask(self, "POST", "{\"type\":5}", "/interactions/%s/%s/callback", id, token);
    expect(self, 400, 40060);
    g_assert_cmpuint(discord_standin_count(self->standin, "interactions", "{\"answered\":true}"), ==, 0);
    ask(self, "PATCH", SAID, "/webhooks/" DISCORD_STANDIN_APPLICATION "/%s/messages/@original", token);
    expect(self, 200, 0);
    ask(self, "POST", SAID, "/webhooks/" DISCORD_STANDIN_APPLICATION "/%s", token);
    expect(self, 200, 0);
    g_assert_cmpuint(
        discord_standin_count(self->standin, "interactions", "{\"answered\":true,\"text\":\"^answer\\nanswer$\"}"), ==,
        1);
    age = g_strdup_printf("{\"id\":\"%s\",\"seconds\":901}", id);
    control(self, "age-interaction", age);
    ask(self, "POST", SAID, "/webhooks/" DISCORD_STANDIN_APPLICATION "/%s", token);
    expect(self, 401, 50027);
    /* What only one person saw is in nobody's history. */
    ask(self, "GET", NULL, "/channels/" DISCORD_STANDIN_CHANNEL "/messages");
    g_assert_cmpuint(discord_standin_count(self->standin, "messages", "{\"author\":\"bot\",\"ephemeral\":false}"), ==,
                     1);
}

static void
test_late_interaction(Fixture *self, gconstpointer data)
{
    g_autofree char *id = NULL;
    g_autofree char *token = NULL;
    g_autofree char *age = NULL;

    ask(self, "PUT", "[{\"name\":\"status\",\"description\":\"d\"}]", COMMANDS);
    log_in(self, IDENTIFY(TOKEN, "33281"));
    token = interaction(self, &id);
    age = g_strdup_printf("{\"id\":\"%s\",\"seconds\":3}", id);
    control(self, "age-interaction", age);
    ask(self, "POST", "{\"type\":5}", "/interactions/%s/%s/callback", id, token);
    expect(self, 404, 10062);
}

static void
test_button(Fixture *self, gconstpointer data)
{
    g_autofree char *press = NULL;
    g_autofree char *id = NULL;
    JsonObject *event;

    log_in(self, IDENTIFY(TOKEN, "33281"));
    ask(self, "POST",
        "{\"content\":\"?\",\"allowed_mentions\":{\"parse\":[]},\"components\":[{\"type\":1,\"components\":[{\"type\":"
        "2,"
        "\"style\":3,\"label\":\"Yes\",\"custom_id\":\"y\"}]}]}",
        "/channels/" DISCORD_STANDIN_CHANNEL "/messages");
    expect(self, 200, 0);
    press = g_strdup_printf("{\"message\":\"%s\",\"label\":\"yes\",\"user\":\"" DISCORD_STANDIN_BOB "\"}",
                            eb_json_get_string(self->answer, "id"));
    id = control_id(self, "press", press);
    event = eb_json_get_object(get(self, 0, "INTERACTION_CREATE"), "d");
    g_assert_cmpint(eb_json_get_int(event, "type", 0), ==, 3);
    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(event, "data"), "custom_id"), ==, "y");
    ask(self, "POST",
        "{\"type\":7,\"data\":{\"content\":\"done\",\"components\":[],\"allowed_mentions\":{\"parse\":[]}}}",
        "/interactions/%s/%s/callback", id, eb_json_get_string(event, "token"));
    expect(self, 204, 0);
    g_assert_cmpuint(discord_standin_count(self->standin, "messages", "{\"text\":\"done\",\"components\":false}"), ==,
                     1);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", NULL), ==, 0);
}

/* --- the network --- */

static void
test_refused_connections(Fixture *self, gconstpointer data)
{
    g_autoptr(SoupMessage) message = soup_message_new("GET", discord_standin_get_api(self->standin));
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = NULL;

    log_in(self, IDENTIFY(TOKEN, "33281"));
    control(self, "refuse", "{\"seconds\":0.3,\"drop\":true}");
    eb_test_run_until_true(&self->closed);
    soup_session_send_and_read_async(self->session, message, G_PRIORITY_DEFAULT, NULL, eb_test_result_ready, &done);
    bytes = soup_session_send_and_read_finish(self->session, eb_test_result_wait(&done), &error);
    g_assert_error(error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED);
    eb_test_run_for(400);
    log_in(self, IDENTIFY(TOKEN, "33281"));
}

static void
test_black_hole(Fixture *self, gconstpointer data)
{
    log_in(self, IDENTIFY(TOKEN, "33281"));
    control(self, "silence", NULL);
    control(self, "say", "{\"content\":\"x\"}");
    tell(self, "{\"op\":1,\"d\":null}");
    eb_test_run_for(100);
    g_assert_cmpuint(count(self, "MESSAGE_CREATE"), ==, 0);
    g_assert_false(self->closed);
    control(self, "speak", NULL);
    eb_test_run_until_true(&self->closed);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name) g_test_add("/standin/gateway/" #name, Fixture, NULL, set_up, test_##name, tear_down)
    ADD(refused_identify);
    ADD(sizes);
    ADD(ready);
    ADD(content_intent);
    ADD(resume);
    ADD(closed_session);
    ADD(identify_limits);
    ADD(dead_heart);
    ADD(event_faults);
    ADD(lost_view);
    ADD(commands);
    ADD(interaction);
    ADD(late_interaction);
    ADD(button);
    ADD(refused_connections);
    ADD(black_hole);
#undef ADD
    return g_test_run();
}
