/* SPDX-License-Identifier: MIT */

#include "test-client.h"

#include "eb-test.h"

#include <string.h>

void
client_set_up(Client *self, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    self->standin = discord_standin_new(CLIENT_TOKEN, 0, &error);
    g_assert_no_error(error);
    self->session = soup_session_new();
    self->authorization = "Bot " CLIENT_TOKEN;
    self->agent = "DiscordBot (https://example.com, 1)";
    self->type = "application/json";
    json_object_unref(discord_standin_call(self->standin, "bucket", "{\"bucket\":\"global\",\"limit\":10000}"));
    json_object_unref(discord_standin_call(
        self->standin, "bucket", "{\"bucket\":\"/channels/{c}/messages\",\"limit\":10000,\"window_ms\":1000}"));
    json_object_unref(discord_standin_call(
        self->standin, "bucket", "{\"bucket\":\"/channels/{c}/messages/{m}\",\"limit\":10000,\"window_ms\":1000}"));
    json_object_unref(
        discord_standin_call(self->standin, "bucket", "{\"bucket\":\"reactions\",\"limit\":10000,\"window_ms\":1000}"));
}

void
client_tear_down(Client *self, gconstpointer data)
{
    g_clear_pointer(&self->answer, json_node_unref);
    g_clear_pointer(&self->headers, soup_message_headers_unref);
    g_clear_object(&self->session);
    eb_test_drain();
    discord_standin_free(self->standin);
}

void
client_send(Client *self, SoupMessage *message)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = NULL;
    gsize length = 0;
    const char *text;

    if (self->authorization != NULL)
        soup_message_headers_replace(soup_message_get_request_headers(message), "Authorization", self->authorization);
    if (self->agent != NULL)
        soup_message_headers_replace(soup_message_get_request_headers(message), "User-Agent", self->agent);
    soup_session_send_and_read_async(self->session, message, G_PRIORITY_DEFAULT, NULL, eb_test_result_ready, &done);
    bytes = soup_session_send_and_read_finish(self->session, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_clear_pointer(&self->answer, json_node_unref);
    text = g_bytes_get_data(bytes, &length);
    self->answer = length > 0 ? eb_json_parse(text, length, NULL, NULL) : NULL;
    self->status = soup_message_get_status(message);
    self->code = (int)eb_json_get_int(eb_json_node_object(self->answer), "code", 0);
    g_clear_pointer(&self->headers, soup_message_headers_unref);
    self->headers = soup_message_headers_ref(soup_message_get_response_headers(message));
}

void
client_ask(Client *self, const char *method, const char *path, const char *body)
{
    g_autofree char *url = g_strdup_printf("%s%s", discord_standin_get_api(self->standin), path);
    g_autoptr(SoupMessage) message = soup_message_new(method, url);
    g_autoptr(GBytes) bytes = body != NULL ? g_bytes_new(body, strlen(body)) : NULL;

    if (bytes != NULL)
        soup_message_set_request_body_from_bytes(message, self->type, bytes);
    client_send(self, message);
}

void
client_expect(Client *self, guint status, int code)
{
    g_autofree char *text = self->answer != NULL ? eb_json_write(self->answer, NULL) : g_strdup("");

    if (self->status != status || self->code != code)
        g_error("expected %u %d, got %u %d: %s", status, code, self->status, self->code, text);
}

gboolean
client_complains(Client *self, const char *path, const char *error)
{
    JsonObject *tree = eb_json_get_object(eb_json_node_object(self->answer), "errors");
    g_auto(GStrv) names = g_strsplit(path, ".", -1);
    JsonArray *list;

    for (guint i = 0; names[i] != NULL; i++)
        tree = eb_json_get_object(tree, names[i]);
    list = eb_json_get_array(tree, "_errors");
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(list, i), "code"), error) == 0)
            return TRUE;
    }
    return FALSE;
}

char *
client_expanded(const char *text)
{
    g_autoptr(GRegex) regex = g_regex_new("\\{\\*(\\d+)(.)\\}", 0, 0, NULL);
    GString *result = g_string_new(NULL);
    g_autoptr(GMatchInfo) match = NULL;
    gint last = 0;

    for (g_regex_match(regex, text, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
        g_autofree char *count = g_match_info_fetch(match, 1);
        g_autofree char *letter = g_match_info_fetch(match, 2);
        gint from = 0;
        gint to = 0;

        g_match_info_fetch_pos(match, 0, &from, &to);
        g_string_append_len(result, text + last, from - last);
        for (guint64 i = g_ascii_strtoull(count, NULL, 10); i > 0; i--)
            g_string_append(result, letter);
        last = to;
    }
    g_string_append(result, text + last);
    return g_string_free(result, FALSE);
}

char *
client_string_of(Client *self, const char *member)
{
    return g_strdup(eb_json_get_string(eb_json_node_object(self->answer), member));
}

char *
client_post(Client *self, const char *channel, const char *text)
{
    g_autofree char *path = g_strdup_printf("/channels/%s/messages", channel);
    g_autofree char *body = g_strdup_printf("{\"content\":\"%s\"," QUIET "}", text);

    client_ask(self, "POST", path, body);
    client_expect(self, 200, 0);
    return client_string_of(self, "id");
}

char *
client_say(Client *self, const char *json)
{
    g_autoptr(JsonObject) result = discord_standin_call(self->standin, "say", json);

    return g_strdup(eb_json_get_string(result, "id"));
}

void
client_control(Client *self, const char *verb, const char *format, ...)
{
    g_autofree char *json = NULL;
    va_list list;

    va_start(list, format);
    json = g_strdup_vprintf(format, list);
    va_end(list);
    json_object_unref(discord_standin_call(self->standin, verb, json));
}
