/* SPDX-License-Identifier: MIT */
/* What was said while nobody listened, and what people attached. */
#include "discord-transport-private.h"

#define PAGE 100
/* Pages of one reading: beyond it a later reading goes on. */
#define MAX_PAGES 50
#define PATIENCE_MS 120000

/* --- reading back --- */

typedef struct {
    char *place;
    gboolean is_thread;
    char *after; /* (nullable) */
    guint max;
    guint pages;
    GPtrArray *messages; /* (element-type EbChatMessage) */
} Reading;

static void
reading_free(gpointer data)
{
    Reading *reading = data;

    g_free(reading->place);
    g_free(reading->after);
    g_clear_pointer(&reading->messages, g_ptr_array_unref);
    g_free(reading);
}

static void read_page(DiscordTransport *self, GTask *task);

/* One page, the newest first as Discord gives it. (transfer full) (nullable): the id to go on after */
static char *
take_page(DiscordTransport *self, Reading *reading, JsonArray *page)
{
    DiscordListener listener = discord_transport_listener(self);
    DiscordPlace place = reading->is_thread ? DISCORD_PLACE_THREAD : DISCORD_PLACE_CHANNEL;
    guint n = MIN(json_array_get_length(page), PAGE);
    const char *last = NULL;

    for (guint i = n; i > 0 && reading->messages->len < reading->max; i--) {
        JsonObject *data = eb_json_array_object(page, i - 1);
        const char *id = eb_json_get_string(data, "id");
        DiscordVerdict verdict;
        if (!discord_is_snowflake(id) || (last != NULL && discord_snowflake_compare(id, last) <= 0))
            continue;
        last = id;
        EbChatMessage *message = discord_message_read(data, place, &listener, &verdict);
        if (message == NULL)
            continue;
        message->replayed = TRUE;
        g_ptr_array_add(reading->messages, message);
    }
    return g_strdup(last);
}

static void
on_page(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    Reading *reading = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (error == NULL && !JSON_NODE_HOLDS_ARRAY(node))
        error = eb_error_new(EB_ERROR_PROTOCOL, "discord.answer", "Discord's list of messages is none");
    if (error != NULL) {
        g_task_return_error(task, error);
        return;
    }
    JsonArray *page = json_node_get_array(node);
    gboolean full = json_array_get_length(page) >= PAGE;
    g_autofree char *last = take_page(self, reading, page);
    /* Without a place to begin, the newest were wanted, and there is but one page of them. */
    if (!full || reading->after == NULL || last == NULL || reading->messages->len >= reading->max ||
        ++reading->pages >= MAX_PAGES) {
        g_task_return_pointer(task, g_steal_pointer(&reading->messages), (GDestroyNotify)g_ptr_array_unref);
        return;
    }
    g_free(reading->after);
    reading->after = g_steal_pointer(&last);
    read_page(self, g_steal_pointer(&task));
}

/* @task: (transfer full) */
static void
read_page(DiscordTransport *self, GTask *task)
{
    Reading *reading = g_task_get_task_data(task);
    DiscordRequest *request;

    if (reading->after != NULL)
        request = discord_request_new("GET", "/channels/{c}/messages", reading->place,
                                      "/channels/%s/messages?after=%s&limit=%d", reading->place, reading->after, PAGE);
    else
        request = discord_request_new("GET", "/channels/{c}/messages", reading->place, "/channels/%s/messages?limit=%u",
                                      reading->place, CLAMP(reading->max, 1, PAGE));
    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(self->rest, request, g_task_get_cancellable(task), on_page, task);
}

void
discord_transport_read_back_async(EbChatTransport *transport, const char *thread, const char *after_id, guint max,
                                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    Reading *reading = g_new0(Reading, 1);

    g_task_set_source_tag(task, discord_transport_read_back_async);
    g_task_set_check_cancellable(task, FALSE);
    reading->place = g_strdup(discord_transport_place(self, thread));
    reading->is_thread = g_strcmp0(reading->place, self->config->channel_id) != 0;
    reading->after = discord_is_snowflake(after_id) ? g_strdup(after_id) : NULL;
    reading->max = max;
    reading->messages = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    g_task_set_task_data(task, reading, reading_free);
    if (self->rest == NULL || self->failed) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there"));
        return;
    }
    if (reading->is_thread && discord_threads_place(self->threads, reading->place) == DISCORD_PLACE_UNKNOWN)
        discord_threads_claim(self->threads, reading->place);
    read_page(self, g_steal_pointer(&task));
}

/* --- files --- */

typedef struct {
    char *id;
    DiscordFileRef *ref;
    gsize max_bytes;
    gboolean renewed; /* its link was asked for again */
} Fetch;

static void
fetch_free(gpointer data)
{
    Fetch *fetch = data;

    g_free(fetch->id);
    g_clear_pointer(&fetch->ref, discord_file_ref_free);
    g_free(fetch);
}

static void download(DiscordTransport *self, GTask *task);

static void
on_renewed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    Fetch *fetch = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    const char *url = discord_file_ref_find(eb_json_node_object(node), fetch->id);

    if (url == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "discord.file-gone",
                                               "the file is no longer there (the message was deleted or changed)"));
        return;
    }
    g_free(fetch->ref->url);
    fetch->ref->url = g_strdup(url);
    download(self, g_steal_pointer(&task));
}

/* Links expire within a day, and a message may wait longer than that. @task: (transfer full) */
static void
renew(DiscordTransport *self, GTask *task)
{
    Fetch *fetch = g_task_get_task_data(task);
    DiscordRequest *request =
        discord_request_new("GET", "/channels/{c}/messages/{m}", fetch->ref->channel_id, "/channels/%s/messages/%s",
                            fetch->ref->channel_id, fetch->ref->message_id);

    fetch->renewed = TRUE;
    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(self->rest, request, g_task_get_cancellable(task), on_renewed, task);
}

static void
on_downloaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    Fetch *fetch = g_task_get_task_data(task);
    GError *error = NULL;
    GBytes *bytes = discord_rest_download_finish(DISCORD_REST(source), result, &error);

    if (bytes != NULL) {
        g_task_return_pointer(task, bytes, (GDestroyNotify)g_bytes_unref);
    } else if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) && !fetch->renewed) {
        g_error_free(error);
        renew(self, g_steal_pointer(&task));
    } else {
        g_task_return_error(task, error);
    }
}

/* @task: (transfer full) */
static void
download(DiscordTransport *self, GTask *task)
{
    Fetch *fetch = g_task_get_task_data(task);

    discord_rest_download_async(self->rest, fetch->ref->url, fetch->max_bytes, g_task_get_cancellable(task),
                                on_downloaded, task);
}

void
discord_transport_fetch_async(EbChatTransport *transport, const EbChatAttachment *attachment, gsize max_bytes,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    Fetch *fetch = g_new0(Fetch, 1);
    GError *error = NULL;

    g_task_set_source_tag(task, discord_transport_fetch_async);
    g_task_set_check_cancellable(task, FALSE);
    fetch->id = g_strdup(attachment->id);
    fetch->max_bytes = max_bytes;
    g_task_set_task_data(task, fetch, fetch_free);
    fetch->ref = discord_file_ref_parse(attachment->url, &error);
    if (self->rest == NULL || self->failed) {
        g_clear_error(&error);
        error = eb_error_new(EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there");
    }
    if (error != NULL)
        g_task_return_error(task, error);
    else
        download(self, g_steal_pointer(&task));
}
