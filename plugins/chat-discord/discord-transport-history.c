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
    gboolean backwards; /* from the newest on: nobody said where to begin */
    char *from;         /* (nullable): id to go on from */
    guint max;
    guint pages;
    GPtrArray *messages; /* (element-type EbChatMessage) */
} Reading;

static void
reading_free(gpointer data)
{
    Reading *reading = data;

    g_free(reading->place);
    g_free(reading->from);
    g_clear_pointer(&reading->messages, g_ptr_array_unref);
    g_free(reading);
}

static void read_page(DiscordTransport *self, GTask *task);

static void
take_message(DiscordTransport *self, Reading *reading, JsonObject *data)
{
    DiscordListener listener = discord_transport_listener(self);
    DiscordPlace place = reading->is_thread ? DISCORD_PLACE_THREAD : DISCORD_PLACE_CHANNEL;
    DiscordVerdict verdict;
    EbChatMessage *message = discord_message_read(data, place, &listener, &verdict);

    if (message == NULL)
        return;
    message->replayed = TRUE;
    g_ptr_array_add(reading->messages, message);
}

/* One page, the newest first as Discord gives it, in the order of the reading. FALSE: the id to go on from is the same. */
static gboolean
take_page(DiscordTransport *self, Reading *reading, JsonArray *page)
{
    guint n = MIN(json_array_get_length(page), PAGE);
    g_autofree char *began = g_strdup(reading->from);

    for (guint i = 0; i < n && reading->messages->len < reading->max; i++) {
        JsonObject *data = eb_json_array_object(page, reading->backwards ? i : n - 1 - i);
        const char *id = eb_json_get_string(data, "id");
        int order = 0;
        if (!discord_is_snowflake(id))
            continue;
        if (reading->from != NULL)
            order = discord_snowflake_compare(id, reading->from);
        if (reading->from != NULL && (reading->backwards ? order >= 0 : order <= 0))
            continue;
        g_free(reading->from);
        reading->from = g_strdup(id);
        take_message(self, reading, data);
    }
    return g_strcmp0(began, reading->from) != 0;
}

/* Oldest first, whichever way they were read. @task: (transfer none) */
static void
finish_reading(Reading *reading, GTask *task)
{
    GPtrArray *messages = g_steal_pointer(&reading->messages);

    for (guint i = 0; reading->backwards && i < messages->len / 2; i++) {
        gpointer swap = messages->pdata[i];
        messages->pdata[i] = messages->pdata[messages->len - 1 - i];
        messages->pdata[messages->len - 1 - i] = swap;
    }
    g_task_return_pointer(task, messages, (GDestroyNotify)g_ptr_array_unref);
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
    gboolean further = take_page(self, reading, page);
    if (full && further && reading->messages->len < reading->max && ++reading->pages < MAX_PAGES)
        read_page(self, g_steal_pointer(&task));
    else
        finish_reading(reading, task);
}

/* @task: (transfer full) */
static void
read_page(DiscordTransport *self, GTask *task)
{
    Reading *reading = g_task_get_task_data(task);
    DiscordRequest *request;

    if (reading->from == NULL)
        request = discord_request_new("GET", "/channels/{c}/messages", reading->place, "/channels/%s/messages?limit=%d",
                                      reading->place, PAGE);
    else
        request =
            discord_request_new("GET", "/channels/{c}/messages", reading->place, "/channels/%s/messages?%s=%s&limit=%d",
                                reading->place, reading->backwards ? "before" : "after", reading->from, PAGE);
    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(self->rest, request, g_task_get_cancellable(task), on_page, task);
}

/* Of which channel it is has to be known before it is listened to: the one that is served may be another one now. */
static void
on_place(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordTransport *self = g_task_get_source_object(task);
    Reading *reading = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (node != NULL)
        discord_threads_note(self->threads, eb_json_node_object(node));
    if (error == NULL && discord_threads_place(self->threads, reading->place) != DISCORD_PLACE_THREAD)
        discord_transport_set_elsewhere(self, reading->place, &error);
    if (error != NULL)
        g_task_return_error(task, error);
    else
        read_page(self, g_steal_pointer(&task));
}

/* @task: (transfer full) */
static void
find_place(DiscordTransport *self, GTask *task)
{
    Reading *reading = g_task_get_task_data(task);
    DiscordPlace place = discord_threads_place(self->threads, reading->place);
    GError *error = NULL;

    if (place == DISCORD_PLACE_UNKNOWN) {
        DiscordRequest *request =
            discord_request_new("GET", "/channels/{c}", reading->place, "/channels/%s", reading->place);
        request->patience_ms = PATIENCE_MS;
        discord_rest_send_async(self->rest, request, g_task_get_cancellable(task), on_place, task);
        return;
    }
    if (place != DISCORD_PLACE_OTHER) {
        read_page(self, task);
        return;
    }
    discord_transport_set_elsewhere(self, reading->place, &error);
    g_task_return_error(task, error);
    g_object_unref(task);
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
    reading->from = discord_is_snowflake(after_id) ? g_strdup(after_id) : NULL;
    reading->backwards = reading->from == NULL;
    reading->max = max;
    reading->messages = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    g_task_set_task_data(task, reading, reading_free);
    if (self->rest == NULL || self->failed) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there"));
        return;
    }
    find_place(self, g_steal_pointer(&task));
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
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    const char *url = discord_file_ref_find(eb_json_node_object(node), fetch->id);

    if (error != NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        g_task_return_error(task, error);
        return;
    }
    g_clear_error(&error);
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
