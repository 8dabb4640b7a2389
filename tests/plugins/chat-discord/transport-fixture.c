/* SPDX-License-Identifier: MIT */
#include "transport-fixture.h"

#include <string.h>

static const EbChatCommand commands[] = {
    {.name = "stop", .summary = "end the session"},
    {.name = "status", .summary = "what is going on"},
};

static void
note(Fixture *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_ptr_array_add(self->told, g_strdup_vprintf(format, args));
    va_end(args);
}

static const char *
shown(const char *text)
{
    return text != NULL ? text : "-";
}

static void
on_message(EbChatTransport *transport, EbChatMessage *message, Fixture *self)
{
    note(self, "message %s %s %s", shown(message->thread), message->author_id, message->text);
    g_ptr_array_add(self->messages, eb_chat_message_ref(message));
}

static void
on_edited(EbChatTransport *transport, EbChatMessage *message, Fixture *self)
{
    note(self, "edited %s %s %s", shown(message->thread), message->id, message->text);
}

static void
on_action(EbChatTransport *transport, EbChatMessage *message, Fixture *self)
{
    note(self, "action %s %s %s", shown(message->thread), message->id, eb_json_get_string(message->extra, "command"));
}

static void
on_seen(EbChatTransport *transport, const char *thread, const char *id, Fixture *self)
{
    note(self, "seen %s %s", shown(thread), id);
}

static void
on_withdrawn(EbChatTransport *transport, const char *thread, const char *id, Fixture *self)
{
    note(self, "withdrawn %s %s", shown(thread), id);
}

static void
on_thread_state(EbChatTransport *transport, const char *thread, const char *state, Fixture *self)
{
    note(self, "thread-state %s %s", thread, state);
}

static void
on_connection(EbChatTransport *transport, gboolean up, const char *detail, Fixture *self)
{
    note(self, "connection %s %s", up ? "up" : "down", shown(detail));
}

static void
on_failed(EbChatTransport *transport, const GError *error, Fixture *self)
{
    note(self, "failed %s", error->message);
    g_clear_error(&self->failure);
    self->failure = g_error_copy(error);
}

void
fixture_make_transport(Fixture *self)
{
    g_autofree char *path = g_build_filename(self->dir, "gateway.json", NULL);

    if (self->transport != NULL)
        g_signal_handlers_disconnect_by_data(self->transport, self);
    g_clear_object(&self->transport);
    self->transport = discord_transport_new(self->config, path);
    g_signal_connect(self->transport, "message", G_CALLBACK(on_message), self);
    g_signal_connect(self->transport, "edited", G_CALLBACK(on_edited), self);
    g_signal_connect(self->transport, "action", G_CALLBACK(on_action), self);
    g_signal_connect(self->transport, "seen", G_CALLBACK(on_seen), self);
    g_signal_connect(self->transport, "withdrawn", G_CALLBACK(on_withdrawn), self);
    g_signal_connect(self->transport, "thread-state", G_CALLBACK(on_thread_state), self);
    g_signal_connect(self->transport, "connection", G_CALLBACK(on_connection), self);
    g_signal_connect(self->transport, "failed", G_CALLBACK(on_failed), self);
}

void
fixture_open(Fixture *self, gconstpointer data)
{
    const char *const allowed[] = {DISCORD_STANDIN_ALICE, DISCORD_STANDIN_BOB, NULL};
    g_autoptr(EbConfigSection) section = eb_config_section_new("plugin.chat-discord");
    g_autoptr(GError) error = NULL;

    eb_config_section_set(section, "token", g_variant_new_string("cred:chat-token"), "eb.toml", 1);
    eb_config_section_set(section, "channel_id", g_variant_new_string(FIXTURE_CHANNEL), "eb.toml", 2);
    eb_config_section_set(section, "allowed_user_ids", g_variant_new_strv(allowed, -1), "eb.toml", 3);
    eb_config_section_set(section, "start_on_mention", g_variant_new_boolean(data == FIXTURE_ON_MENTION), "eb.toml", 4);
    self->config = discord_config_read(section, &error);
    g_assert_no_error(error);
    self->standin = discord_standin_new(FIXTURE_TOKEN, 0, &error);
    g_assert_no_error(error);
    self->dir = eb_test_temp_dir("discord");
    self->told = g_ptr_array_new_with_free_func(g_free);
    self->messages = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    fixture_make_transport(self);
}

void
fixture_close(Fixture *self, gconstpointer data)
{
    fixture_stop(self);
    /* Whatever a test was about: nothing of it could have pinged anybody, or would have angered Discord. */
    g_autoptr(JsonObject) violations = discord_standin_call(self->standin, "violations", "{}");
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(node, violations);
    g_autofree char *text = eb_json_write(node, NULL);
    g_test_message("%s", text);
    g_assert_cmpint(eb_json_get_int(violations, "count", -1), ==, 0);
    g_signal_handlers_disconnect_by_data(self->transport, self);
    g_clear_object(&self->transport);
    g_clear_pointer(&self->standin, discord_standin_free);
    g_clear_pointer(&self->config, discord_config_free);
    g_ptr_array_unref(self->told);
    g_ptr_array_unref(self->messages);
    g_clear_error(&self->failure);
    g_free(self->dir);
}

gboolean
fixture_start(Fixture *self, const char *token, GError **error)
{
    g_autofree char *bytes = g_strdup(token);
    g_autoptr(EbSecret) secret = eb_secret_new_take("chat-token", bytes, strlen(bytes), NULL);
    g_auto(EbTestResult) done = {0};

    discord_transport_start_async(self->transport, secret, discord_standin_get_api(self->standin), NULL,
                                  eb_test_result_ready, &done);
    return discord_transport_start_finish(self->transport, eb_test_result_wait(&done), error);
}

void
fixture_attach(Fixture *self)
{
    self->policy = eb_chat_transport_attach(EB_CHAT_TRANSPORT(self->transport), commands, G_N_ELEMENTS(commands));
}

void
fixture_stop(Fixture *self)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    discord_transport_stop_async(self->transport, NULL, eb_test_result_ready, &done);
    g_assert_true(discord_transport_stop_finish(self->transport, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

void
fixture_set_up(Fixture *self, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    fixture_open(self, data);
    g_assert_true(fixture_start(self, FIXTURE_TOKEN, &error));
    g_assert_no_error(error);
    fixture_attach(self);
    fixture_wait_told(self, "^connection up");
}

JsonObject *
fixture_call(Fixture *self, const char *verb, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *json = g_strdup_vprintf(format, args);
    va_end(args);
    return discord_standin_call(self->standin, verb, json);
}

char *
fixture_say(Fixture *self, const char *channel, const char *text)
{
    g_autoptr(JsonObject) answer = fixture_call(self, "say", "{\"channel\":\"%s\",\"content\":\"%s\"}",
                                                channel != NULL ? channel : FIXTURE_CHANNEL, text);
    char *id = g_strdup(eb_json_get_string(answer, "id"));

    g_assert_nonnull(id);
    return id;
}

guint
fixture_count(Fixture *self, const char *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *json = g_strdup_vprintf(format, args);
    va_end(args);
    return discord_standin_count(self->standin, list, json);
}

typedef struct {
    Fixture *fixture;
    const char *what;
    const char *json;
    guint n;
} Wait;

static gboolean
has_count(gpointer user_data)
{
    Wait *wait = user_data;
    return discord_standin_count(wait->fixture->standin, wait->what, wait->json) >= wait->n;
}

void
fixture_wait_count(Fixture *self, guint n, const char *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *json = g_strdup_vprintf(format, args);
    va_end(args);
    Wait wait = {.fixture = self, .what = list, .json = json, .n = n};
    eb_test_run_until(has_count, &wait);
    g_assert_cmpuint(discord_standin_count(self->standin, list, json), ==, n);
}

guint
fixture_count_told(Fixture *self, const char *pattern)
{
    guint n = 0;

    for (guint i = 0; i < self->told->len; i++)
        if (g_regex_match_simple(pattern, self->told->pdata[i], 0, 0))
            n++;
    return n;
}

static gboolean
was_told(gpointer user_data)
{
    Wait *wait = user_data;
    return fixture_count_told(wait->fixture, wait->what) > 0;
}

void
fixture_wait_told(Fixture *self, const char *pattern)
{
    Wait wait = {.fixture = self, .what = pattern};
    eb_test_run_until(was_told, &wait);
}

void
fixture_forget_told(Fixture *self)
{
    g_ptr_array_set_size(self->told, 0);
    g_ptr_array_set_size(self->messages, 0);
}

char *
fixture_post(Fixture *self, EbChatPost *post, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_post_async(EB_CHAT_TRANSPORT(self->transport), post, NULL, eb_test_result_ready, &done);
    return eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(self->transport), eb_test_result_wait(&done), error);
}

char *
fixture_text(Fixture *self, const char *thread, const char *key, const char *text)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_TEXT, text);
    g_autoptr(GError) error = NULL;

    post->key = g_strdup(key);
    post->final = key == NULL;
    char *id = fixture_post(self, post, &error);
    g_assert_no_error(error);
    return id;
}

char *
fixture_thread(Fixture *self, const char *title)
{
    g_autofree char *message = fixture_say(self, NULL, title);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_chat_transport_open_thread_async(EB_CHAT_TRANSPORT(self->transport), message, title, NULL, eb_test_result_ready,
                                        &done);
    char *thread =
        eb_chat_transport_open_thread_finish(EB_CHAT_TRANSPORT(self->transport), eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(thread, ==, message);
    return thread;
}

gboolean
fixture_react(Fixture *self, const char *thread, const char *message, const char *reaction, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_react_async(EB_CHAT_TRANSPORT(self->transport), thread, message, reaction, NULL,
                                  eb_test_result_ready, &done);
    return eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(self->transport), eb_test_result_wait(&done), error);
}

GPtrArray *
fixture_read_back(Fixture *self, const char *thread, const char *after, guint max, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_read_back_async(EB_CHAT_TRANSPORT(self->transport), thread, after, max, NULL,
                                      eb_test_result_ready, &done);
    return eb_chat_transport_read_back_finish(EB_CHAT_TRANSPORT(self->transport), eb_test_result_wait(&done), error);
}

GBytes *
fixture_fetch(Fixture *self, const EbChatAttachment *attachment, gsize max_bytes, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_fetch_async(EB_CHAT_TRANSPORT(self->transport), attachment, max_bytes, NULL, eb_test_result_ready,
                                  &done);
    return eb_chat_transport_fetch_finish(EB_CHAT_TRANSPORT(self->transport), eb_test_result_wait(&done), error);
}
