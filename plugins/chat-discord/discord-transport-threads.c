/* SPDX-License-Identifier: MIT */
/* Threads of the channel: making one for a message, and closing it. */
#include "discord-transport-private.h"

#include "discord-post.h"
#include "discord-text.h"

#define TYPE_PUBLIC_THREAD 11
/* Minutes without a message after which Discord archives a thread; a post opens it again. */
#define AUTO_ARCHIVE_MIN 1440
/* Waits of almost five minutes were seen for a new thread. */
#define PATIENCE_MS 900000
/* Shorter waits nobody needs to be told of. */
#define TELL_SECONDS 5
/* Discord's numbers. */
#define CODE_NO_MESSAGE 10008
#define CODE_HAS_THREAD 160004
#define CODE_TOO_MANY_THREADS 160006
#define RETRY_THREADS_MS 60000

typedef struct {
    char *message_id;
    char *title;
    gboolean told;
} Opening;

static void
opening_free(gpointer data)
{
    Opening *opening = data;

    g_free(opening->message_id);
    g_free(opening->title);
    g_free(opening);
}

static void
end_opening(DiscordTransport *self, GTask *task, const char *thread, GError *error)
{
    g_ptr_array_remove_fast(self->opening, task);
    if (thread != NULL) {
        g_hash_table_remove(self->gone, thread);
        discord_threads_claim(self->threads, thread);
        g_task_return_pointer(task, g_strdup(thread), g_free);
        g_clear_error(&error);
        return;
    }
    if (discord_error_code(error) == CODE_TOO_MANY_THREADS) {
        g_error_free(error);
        error = eb_error_new(EB_ERROR_BUSY, "discord.160006",
                             "the server has as many open threads as Discord allows: archive some");
        eb_error_set_retry(error, RETRY_THREADS_MS);
    }
    g_task_return_error(task, error);
}

static JsonNode *
thread_body(const Opening *opening, gboolean for_message)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *body = json_object_new();
    g_autofree char *name = discord_text_title(opening->title);

    json_object_set_string_member(body, "name", name);
    json_object_set_int_member(body, "auto_archive_duration", AUTO_ARCHIVE_MIN);
    if (!for_message)
        json_object_set_int_member(body, "type", TYPE_PUBLIC_THREAD);
    json_node_take_object(node, body);
    return node;
}

static void
on_opened_alone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    const char *id = eb_json_get_string(eb_json_node_object(node), "id");

    if (error == NULL && !discord_is_snowflake(id))
        error = eb_error_new(EB_ERROR_PROTOCOL, "discord.answer", "Discord made a thread and did not say which");
    end_opening(self, task, error == NULL ? id : NULL, error);
}

/* The message is gone: what was asked for is done all the same, in a thread of its own. @task: (transfer full) */
static void
open_alone(DiscordTransport *self, GTask *task)
{
    const char *channel = self->config->channel_id;
    DiscordRequest *request =
        discord_request_new("POST", "/channels/{c}/threads", channel, "/channels/%s/threads", channel);

    request->body = thread_body(g_task_get_task_data(task), FALSE);
    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(self->rest, request, g_task_get_cancellable(task), on_opened_alone, task);
}

static void
on_opened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    const Opening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    guint code = discord_error_code(error);

    if (code == CODE_NO_MESSAGE) {
        g_error_free(error);
        open_alone(self, g_steal_pointer(&task));
        return;
    }
    /* Made by an earlier try whose answer was lost: a thread has the id of its message. */
    if (code == CODE_HAS_THREAD)
        g_clear_error(&error);
    end_opening(self, task, error == NULL ? opening->message_id : NULL, error);
}

void
discord_transport_open_thread_async(EbChatTransport *transport, const char *message_id, const char *title,
                                    GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    const char *channel = self->config->channel_id;
    Opening *opening = g_new0(Opening, 1);

    g_task_set_source_tag(task, discord_transport_open_thread_async);
    g_task_set_check_cancellable(task, FALSE);
    opening->message_id = g_strdup(message_id);
    opening->title = g_strdup(title);
    g_task_set_task_data(task, opening, opening_free);
    if (self->rest == NULL || self->failed || !discord_is_snowflake(message_id)) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there"));
        return;
    }
    if (self->opening->len >= DISCORD_TRANSPORT_MAX_OPENING) {
        GError *error = eb_error_new(EB_ERROR_BUSY, "discord.queue-full", "%d threads are being opened already",
                                     DISCORD_TRANSPORT_MAX_OPENING);
        eb_error_set_retry(error, RETRY_THREADS_MS);
        g_task_return_error(task, error);
        return;
    }
    DiscordRequest *request = discord_request_new("POST", "/channels/{c}/messages/{m}/threads", channel,
                                                  "/channels/%s/messages/%s/threads", channel, message_id);
    request->body = thread_body(opening, TRUE);
    request->repeatable = TRUE; /* a second one is told that there is a thread */
    request->patience_ms = PATIENCE_MS;
    g_ptr_array_add(self->opening, task);
    discord_rest_send_async(self->rest, request, cancellable, on_opened, g_steal_pointer(&task));
}

static void
on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *id = discord_view_post_finish(DISCORD_VIEW(source), result, &error);

    if (id == NULL)
        eb_debug("nobody could be told of a wait: %s", error->message);
}

void
discord_transport_tell_limit(DiscordTransport *self, guint seconds)
{
    DiscordView *view = seconds >= TELL_SECONDS ? discord_transport_view(self, NULL, NULL) : NULL;

    for (guint i = 0; view != NULL && i < self->opening->len; i++) {
        Opening *opening = g_task_get_task_data(self->opening->pdata[i]);
        if (opening->told)
            continue;
        g_autofree char *text =
            g_strdup_printf("Discord lets nobody open a thread here for %u s. This starts then, by itself.", seconds);
        g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_NOTICE, text);
        opening->told = TRUE;
        post->final = TRUE;
        post->reply_to = g_strdup(opening->message_id);
        discord_view_post_async(view, post, self->cancellable, on_told, NULL);
    }
}

/* --- closing --- */

static void
on_archived(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_outbox_call_finish(DISCORD_OUTBOX(source), result, &error);

    /* A thread that is not there any more is closed. */
    if (error == NULL || g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        g_clear_error(&error);
        g_task_return_boolean(task, TRUE);
    } else {
        g_task_return_error(task, error);
    }
}

void
discord_transport_close_thread_async(EbChatTransport *transport, const char *thread, GCancellable *cancellable,
                                     GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    gboolean gone = thread != NULL && g_hash_table_contains(self->gone, thread);
    GError *error = NULL;
    DiscordView *view = gone ? NULL : discord_transport_view(self, thread, &error);

    g_task_set_source_tag(task, discord_transport_close_thread_async);
    g_task_set_check_cancellable(task, FALSE);
    if (gone || !discord_is_snowflake(thread)) {
        g_clear_error(&error);
        g_task_return_boolean(task, TRUE);
        return;
    }
    if (view == NULL) {
        g_task_return_error(task, error);
        return;
    }
    DiscordRequest *request = discord_request_new("PATCH", "/channels/{c}", thread, "/channels/%s", thread);
    JsonObject *body = json_object_new();
    json_object_set_boolean_member(body, "archived", TRUE);
    request->body = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(request->body, body);
    discord_view_set_busy(view, FALSE);
    /* Behind what is still to be said: a post would open it again. */
    discord_outbox_call_async(discord_view_get_outbox(view), request, cancellable, on_archived, g_steal_pointer(&task));
}
