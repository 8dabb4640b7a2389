/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-attachments.h"

#include "core/session/eb-project-files.h"

#include <string.h>

/* A transport bounds a fetch by itself; this is for one that does not. */
#define FETCH_DEADLINE_MS 90000
/* A chat service that is cut off is waited for that long, looked at again after 1, 2, 4, 8, 16, 16 ... seconds. */
#define FETCH_PATIENCE_US (60 * G_USEC_PER_SEC)
#define MAX_PAUSE_MS 16000
/* Bytes of a name as it is shown. */
#define MAX_SHOWN_NAME 120

typedef struct {
    EbSessionParts *parts;
    EbChatTransport *transport;
    EbChatMessage *message;
    char *project;
    EbAttachments *taken;
    GString *lines;
    guint next;
    gboolean had_text;
    GBytes *bytes;       /* of the file under way */
    GCancellable *fetch; /* of the fetch under way */
    GSource *deadline;   /* likewise */
    gboolean late;
    gint64 begun_us; /* of the file under way */
    guint tries;     /* likewise */
    gulong outer;    /* the caller's cancellable ends the fetch */
} EbTaking;

static void take_next(GTask *task);

void
eb_attachments_free(EbAttachments *self)
{
    if (self == NULL)
        return;
    g_free(self->text);
    g_free(self->lines);
    g_clear_pointer(&self->blocks, json_array_unref);
    g_ptr_array_unref(self->refusals);
    g_free(self);
}

static void
end_fetch(GTask *task)
{
    EbTaking *taking = g_task_get_task_data(task);
    if (taking->outer != 0)
        g_signal_handler_disconnect(g_task_get_cancellable(task), taking->outer);
    taking->outer = 0;
    if (taking->deadline != NULL) {
        g_source_destroy(taking->deadline);
        g_clear_pointer(&taking->deadline, g_source_unref);
    }
    g_clear_object(&taking->fetch);
}

static void
taking_free(gpointer data)
{
    EbTaking *taking = data;
    eb_session_parts_unref(taking->parts);
    g_object_unref(taking->transport);
    eb_chat_message_unref(taking->message);
    g_free(taking->project);
    eb_attachments_free(taking->taken);
    g_string_free(taking->lines, TRUE);
    g_clear_pointer(&taking->bytes, g_bytes_unref);
    g_free(taking);
}

const char *
eb_attachments_image_type(GBytes *bytes)
{
    gsize length = 0;
    const char *data = g_bytes_get_data(bytes, &length);
    /* Signatures: PNG (ISO/IEC 15948) 5.2, JPEG (ITU-T T.81) SOI and the next marker, GIF89a, RIFF container of WebP. */
    if (length >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return "image/png";
    if (length >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    if (length >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0))
        return "image/gif";
    if (length >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        return "image/webp";
    return NULL;
}

static void fetch(GTask *task);

static const EbChatAttachment *
current(EbTaking *taking)
{
    return taking->message->attachments->pdata[taking->next];
}

static char *
shown_name(const EbChatAttachment *attachment)
{
    return eb_log_escape(attachment->name != NULL && *attachment->name != '\0' ? attachment->name
                                                                               : "a file without name",
                         -1, MAX_SHOWN_NAME);
}

static void
refuse(EbTaking *taking, const EbChatAttachment *attachment, const char *why)
{
    g_autofree char *name = shown_name(attachment);
    g_ptr_array_add(taking->taken->refusals, g_strdup_printf("%s was not taken: %s", name, why));
    g_string_append_printf(taking->lines, "- not available: %s (%s)\n", name, why);
}

static char *
too_big(guint64 size)
{
    g_autofree char *has = g_format_size_full(size, G_FORMAT_SIZE_IEC_UNITS);
    g_autofree char *may = g_format_size_full(EB_ATTACHMENTS_MAX_BYTES, G_FORMAT_SIZE_IEC_UNITS);
    if (size <= EB_ATTACHMENTS_MAX_BYTES)
        return g_strdup_printf("it is longer than it said, at most %s are taken", may);
    return g_strdup_printf("it has %s, at most %s are taken", has, may);
}

static void
add_block(EbTaking *taking, const char *type)
{
    gsize length = 0;
    const guchar *data = g_bytes_get_data(taking->bytes, &length);
    g_autofree char *coded = g_base64_encode(data, length);
    JsonObject *block = json_object_new();
    json_object_set_string_member(block, "type", "image");
    json_object_set_string_member(block, "mimeType", type);
    json_object_set_string_member(block, "data", coded);
    if (taking->taken->blocks == NULL)
        taking->taken->blocks = json_array_new();
    json_array_add_object_element(taking->taken->blocks, block);
}

static void
on_saved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbTaking *taking = g_task_get_task_data(task);
    const EbChatAttachment *attachment = current(taking);
    g_autoptr(GError) error = NULL;
    g_autofree char *path = eb_project_save_finish(result, &error);
    if (path == NULL) {
        refuse(taking, attachment, error->message);
    } else {
        gsize length = g_bytes_get_size(taking->bytes);
        const char *type = eb_attachments_image_type(taking->bytes);
        g_autofree char *size = g_format_size_full(length, G_FORMAT_SIZE_IEC_UNITS);
        g_string_append_printf(taking->lines, "- %s (%s%s%s)\n", path, size, type != NULL ? ", " : "",
                               type != NULL ? type : "");
        if (type != NULL)
            add_block(taking, type);
    }
    g_clear_pointer(&taking->bytes, g_bytes_unref);
    taking->next++;
    take_next(g_steal_pointer(&task));
}

/* What Discord's clients, for one, make of a text that is too long for a message: the person typed it. */
static gboolean
is_pasted_text(EbTaking *taking)
{
    const EbChatAttachment *attachment = current(taking);
    gsize length = 0;
    const char *data = g_bytes_get_data(taking->bytes, &length);
    return !taking->had_text && taking->taken->text == NULL && g_strcmp0(attachment->name, "message.txt") == 0 &&
           length > 0 && length <= EB_ATTACHMENTS_MAX_TEXT && g_utf8_validate(data, (gssize)length, NULL);
}

static gboolean
on_pause_over(gpointer data)
{
    GTask *task = G_TASK(data);
    if (!g_task_return_error_if_cancelled(task))
        fetch(task);
    return G_SOURCE_REMOVE;
}

static gboolean
on_pause_cancelled(GCancellable *cancellable, gpointer data)
{
    return G_SOURCE_REMOVE; /* the pause it is a child of is over then */
}

static void
fetch_again_later(GTask *task)
{
    EbTaking *taking = g_task_get_task_data(task);
    g_autoptr(GSource) pause = g_timeout_source_new(MIN(1000u << MIN(taking->tries, 5), MAX_PAUSE_MS));
    GCancellable *outer = g_task_get_cancellable(task);
    taking->tries++;
    if (outer != NULL) {
        g_autoptr(GSource) cancelled = g_cancellable_source_new(outer);
        g_source_set_callback(cancelled, G_SOURCE_FUNC(on_pause_cancelled), NULL, NULL);
        g_source_add_child_source(pause, cancelled);
    }
    g_source_set_callback(pause, on_pause_over, g_object_ref(task), g_object_unref);
    g_source_attach(pause, g_main_context_get_thread_default());
}

static void
on_fetched(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbTaking *taking = g_task_get_task_data(task);
    const EbChatAttachment *attachment = current(taking);
    g_autoptr(GError) error = NULL;
    taking->bytes = eb_chat_transport_fetch_finish(taking->transport, result, &error);
    end_fetch(task);
    if (g_task_return_error_if_cancelled(task))
        return;
    if (taking->bytes == NULL && error->code == EB_ERROR_UNAVAILABLE && !taking->late &&
        g_get_monotonic_time() - taking->begun_us < FETCH_PATIENCE_US) {
        fetch_again_later(task);
        return;
    }
    if (taking->bytes == NULL) {
        g_autofree char *big = error->code == EB_ERROR_QUOTA ? too_big(attachment->size_bytes) : NULL;
        const char *why = taking->late ? "it could not be fetched in time" : big != NULL ? big : error->message;
        refuse(taking, attachment, why);
        taking->next++;
        take_next(g_steal_pointer(&task));
        return;
    }
    if (is_pasted_text(taking)) {
        gsize length = 0;
        const char *data = g_bytes_get_data(taking->bytes, &length);
        taking->taken->text = g_strndup(data, length);
        g_clear_pointer(&taking->bytes, g_bytes_unref);
        taking->next++;
        take_next(g_steal_pointer(&task));
        return;
    }
    EbSessionParts *parts = taking->parts;
    GBytes *bytes = taking->bytes;
    eb_project_save_async(parts->disk, eb_config_get_project_root(parts->config), taking->project,
                          EB_ATTACHMENTS_FOLDER, attachment->name, bytes, parts->uid, parts->gid,
                          g_task_get_cancellable(task), on_saved, g_object_ref(task));
}

static gboolean
on_late(gpointer data)
{
    GTask *task = G_TASK(data);
    EbTaking *taking = g_task_get_task_data(task);
    taking->late = TRUE;
    g_cancellable_cancel(taking->fetch);
    return G_SOURCE_REMOVE;
}

static void
on_outer_cancelled(GCancellable *cancellable, gpointer data)
{
    g_cancellable_cancel(G_CANCELLABLE(data));
}

static void
fetch(GTask *task)
{
    EbTaking *taking = g_task_get_task_data(task);
    GCancellable *outer = g_task_get_cancellable(task);
    taking->late = FALSE;
    taking->fetch = g_cancellable_new();
    if (outer != NULL)
        /* Not g_cancellable_connect(): a fetch may end, and disconnect, within the handler. */
        taking->outer = g_signal_connect_object(outer, "cancelled", G_CALLBACK(on_outer_cancelled), taking->fetch, 0);
    taking->deadline = g_timeout_source_new(FETCH_DEADLINE_MS);
    g_source_set_callback(taking->deadline, on_late, task, NULL);
    g_source_attach(taking->deadline, g_main_context_get_thread_default());
    if (g_cancellable_is_cancelled(outer))
        g_cancellable_cancel(taking->fetch);
    eb_chat_transport_fetch_async(taking->transport, current(taking), EB_ATTACHMENTS_MAX_BYTES, taking->fetch,
                                  on_fetched, g_object_ref(task));
}

static void
finish(GTask *task)
{
    EbTaking *taking = g_task_get_task_data(task);
    if (taking->lines->len > 0)
        taking->taken->lines =
            g_strdup_printf("Files that came with this message (paths in the project):\n%s", taking->lines->str);
    g_task_return_pointer(task, g_steal_pointer(&taking->taken), (GDestroyNotify)eb_attachments_free);
    g_object_unref(task);
}

/* @task: (transfer full) */
static void
take_next(GTask *task)
{
    EbTaking *taking = g_task_get_task_data(task);
    for (; taking->next < taking->message->attachments->len; taking->next++) {
        const EbChatAttachment *attachment = current(taking);
        if (taking->next >= EB_ATTACHMENTS_MAX) {
            g_autofree char *why =
                g_strdup_printf("only the first %d files of a message are taken", EB_ATTACHMENTS_MAX);
            refuse(taking, attachment, why);
            continue;
        }
        if (attachment->size_bytes > EB_ATTACHMENTS_MAX_BYTES) {
            g_autofree char *why = too_big(attachment->size_bytes);
            refuse(taking, attachment, why);
            continue;
        }
        taking->begun_us = g_get_monotonic_time();
        taking->tries = 0;
        fetch(task);
        g_object_unref(task);
        return;
    }
    finish(task);
}

void
eb_attachments_take_async(EbSessionParts *parts, const char *project, EbChatTransport *transport,
                          EbChatMessage *message, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
    EbTaking *taking = g_new0(EbTaking, 1);
    taking->parts = eb_session_parts_ref(parts);
    taking->transport = g_object_ref(transport);
    taking->message = eb_chat_message_ref(message);
    taking->project = g_strdup(project);
    taking->lines = g_string_new(NULL);
    taking->taken = g_new0(EbAttachments, 1);
    taking->taken->refusals = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *said = g_strdup(message->text != NULL ? message->text : "");
    taking->had_text = *g_strstrip(said) != '\0';
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_attachments_take_async);
    g_task_set_task_data(task, taking, taking_free);
    take_next(task);
}

EbAttachments *
eb_attachments_take_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_attachments_take_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
