/* SPDX-License-Identifier: MIT */
#include "discord-download.h"

#include "discord-address.h"
#include "discord-exchange.h"

/* For a whole file: 25 MiB at 128 KiB/s, and some. */
#define TIMEOUT_MS (240 * 1000)

typedef struct {
    SoupSession *session;      /* (owned): of this file alone: its connections lead to one judged host */
    SoupMessage *message;      /* (owned) */
    GCancellable *cancellable; /* (owned): the caller's or the closing's doing */
    GSource *sources[2];       /* (nullable) (owned): fire when those are cancelled */
    gsize max_bytes;
} Download;

static void
download_free(gpointer data)
{
    Download *download = data;
    for (guint i = 0; i < G_N_ELEMENTS(download->sources); i++) {
        if (download->sources[i] != NULL)
            g_source_destroy(download->sources[i]);
        g_clear_pointer(&download->sources[i], g_source_unref);
    }
    g_clear_object(&download->message);
    g_clear_object(&download->session);
    g_clear_object(&download->cancellable);
    g_free(download);
}

static gboolean
on_cancelled(GCancellable *source, gpointer user_data)
{
    g_cancellable_cancel(user_data);
    return G_SOURCE_REMOVE;
}

static GSource *
follow(GCancellable *leader, GCancellable *follower)
{
    if (leader == NULL)
        return NULL;
    if (g_cancellable_is_cancelled(leader))
        g_cancellable_cancel(follower);
    GSource *source = g_cancellable_source_new(leader);
    g_source_set_callback(source, G_SOURCE_FUNC(on_cancelled), g_object_ref(follower), g_object_unref);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

/* (transfer full): @error: (transfer full): of the transport, or of its rules */
static GError *
convert_error(Download *download, GError *error)
{
    if (g_error_matches(error, EB_ERROR, EB_ERROR_QUOTA)) {
        g_error_free(error);
        return eb_error_new(EB_ERROR_QUOTA, "discord.file-size", "the file is larger than %" G_GSIZE_FORMAT " bytes",
                            download->max_bytes);
    }
    if (error->domain == EB_ERROR)
        return error;
    if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_error_free(error);
        return eb_error_new(EB_ERROR_CANCELLED, "discord.cancelled", "fetching the file was cancelled");
    }
    GError *converted =
        eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable", "the file cannot be fetched: %s", error->message);
    eb_error_set_retry(converted, 1000);
    g_error_free(error);
    return converted;
}

/* (nullable) (transfer full): what is wrong with the answer */
static GError *
judge_status(guint status)
{
    if (status == 200)
        return NULL;
    if (status >= 300 && status < 400)
        return eb_error_new(EB_ERROR_DENIED, "discord.redirect",
                            "the file is said to be elsewhere, and redirects are not followed");
    if (status == 403 || status == 404 || status == 410)
        return eb_error_new(EB_ERROR_NOT_FOUND, "discord.file-gone",
                            "the file is no longer there or its link has expired (answer %u)", status);
    GError *error =
        eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable", "the file cannot be fetched: answer %u", status);
    eb_error_set_retry(error, 1000);
    return error;
}

static void
on_exchanged(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Download *download = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(GBytes) bytes = discord_exchange_finish(SOUP_SESSION(source), result, &error);
    if (bytes == NULL) {
        g_task_return_error(task, convert_error(download, error));
        return;
    }
    error = judge_status(soup_message_get_status(download->message));
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, g_steal_pointer(&bytes), (GDestroyNotify)g_bytes_unref);
}

void
discord_download_async(const DiscordSite *site, const char *url, gsize max_bytes, GCancellable *closing,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, callback, user_data);
    g_task_set_source_tag(task, discord_download_async);
    GError *error = NULL;
    if (!discord_site_check_attachment(site, url, &error)) {
        g_task_return_error(task, error);
        return;
    }
    g_autoptr(GUri) uri = g_uri_parse(url, SOUP_HTTP_URI_FLAGS, NULL);
    if (uri == NULL || g_uri_get_host(uri) == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_DENIED, "discord.attachment-url", "this is no URL of a file"));
        return;
    }
    Download *download = g_new0(Download, 1);
    g_task_set_task_data(task, download, download_free);
    g_autoptr(GSocketConnectable) address =
        discord_address_new(site, g_uri_get_host(uri), (guint16)g_uri_get_port(uri));
    download->session = discord_session_new(address);
    download->message = soup_message_new_from_uri("GET", uri);
    download->cancellable = g_cancellable_new();
    download->max_bytes = max_bytes;
    download->sources[0] = follow(closing, download->cancellable);
    download->sources[1] = follow(cancellable, download->cancellable);
    discord_exchange_async(download->session, download->message, max_bytes, TIMEOUT_MS, download->cancellable,
                           on_exchanged, g_steal_pointer(&task));
}

GBytes *
discord_download_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_download_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
