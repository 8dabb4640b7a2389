/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <gio/gunixinputstream.h>
#include <sys/stat.h>

#include "incus-error.h"
#include "incus-image.h"
#include "incus-instance-json.h"
#include "incus-operation.h"
#include "incus-parts-stream.h"

#define HASH_CHUNK (256 * 1024)

typedef enum {
    STEP_LOOK,   /* is the content there? */
    STEP_UPLOAD, /* send it */
    STEP_ALIAS,  /* does the alias exist? */
    STEP_POINT,  /* set or make it */
    STEP_READ,   /* what incusd says about the image */
} Step;

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *alias;
    char *paths[2]; /* metadata, rootfs */
    int fds[2];     /* opened once: what was hashed is what is sent */
    guint64 sizes[2];
    char *fingerprint;
    gboolean alias_exists;
    Step step;
} Import;

static void import_step(GTask *task);

static void
import_free(gpointer data)
{
    Import *import = data;
    g_clear_object(&import->client);
    incus_deadline_unref(import->deadline);
    g_free(import->alias);
    g_free(import->fingerprint);
    for (guint i = 0; i < 2; i++) {
        g_free(import->paths[i]);
        if (import->fds[i] >= 0)
            close(import->fds[i]);
    }
    g_free(import);
}

/* --- content --- */

static gboolean
hash_file(Import *import, guint which, GChecksum *sum, GCancellable *cancellable, GError **error)
{
    g_autofree guint8 *buffer = g_malloc(HASH_CHUNK);
    struct stat st;
    import->fds[which] = open(import->paths[which], O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (import->fds[which] < 0 || fstat(import->fds[which], &st) < 0 || !S_ISREG(st.st_mode)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "incus.image-file", "%s cannot be read: %s", import->paths[which],
                     import->fds[which] < 0 ? g_strerror(errno) : "no regular file");
        return FALSE;
    }
    for (;;) {
        ssize_t got = read(import->fds[which], buffer, HASH_CHUNK);
        if (got < 0) {
            eb_set_error(error, EB_ERROR_FAILED, "incus.image-file", "%s cannot be read: %s", import->paths[which],
                         g_strerror(errno));
            return FALSE;
        }
        if (got == 0)
            break;
        if (g_cancellable_set_error_if_cancelled(cancellable, error))
            return FALSE;
        g_checksum_update(sum, buffer, got);
        import->sizes[which] += (guint64)got;
    }
    if (lseek(import->fds[which], 0, SEEK_SET) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "incus.image-file", "%s cannot be read twice", import->paths[which]);
        return FALSE;
    }
    return TRUE;
}

static void
hash_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    Import *import = task_data;
    GError *error = NULL;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < 2; i++) {
        if (!hash_file(import, i, sum, cancellable, &error)) {
            g_task_return_error(task, error);
            return;
        }
    }
    g_task_return_pointer(task, g_strdup(g_checksum_get_string(sum)), g_free);
}

static void
on_hashed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Import *import = g_task_get_task_data(task);
    GError *error = NULL;
    import->fingerprint = g_task_propagate_pointer(G_TASK(result), &error);
    if (import->fingerprint == NULL) {
        incus_deadline_convert(import->deadline, "image", &error);
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    import_step(task);
}

/* --- steps --- */

static JsonNode *
alias_json(const Import *import)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, "description");
    json_builder_add_string_value(builder, "errand-box");
    if (!import->alias_exists) {
        json_builder_set_member_name(builder, "name");
        json_builder_add_string_value(builder, import->alias);
    }
    json_builder_set_member_name(builder, "target");
    json_builder_add_string_value(builder, import->fingerprint);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}

static void
import_end(GTask *task, EbImageInfo *info, GError *error)
{
    if (info != NULL)
        g_task_return_pointer(task, info, (GDestroyNotify)eb_image_info_free);
    else
        g_task_return_error(task, error);
    g_object_unref(task);
}

static void
on_done(GTask *task, IncusReply *reply, GError *error)
{
    Import *import = g_task_get_task_data(task);
    gboolean missing = error != NULL && error->code == EB_ERROR_NOT_FOUND;
    if (error != NULL && !(missing && (import->step == STEP_LOOK || import->step == STEP_ALIAS)) &&
        !(import->step == STEP_UPLOAD && error->code == EB_ERROR_EXISTS)) {
        import_end(task, NULL, error);
        return;
    }
    g_clear_error(&error);
    switch (import->step) {
    case STEP_LOOK:
        import->step = missing ? STEP_UPLOAD : STEP_ALIAS;
        break;
    case STEP_UPLOAD:
        import->step = STEP_ALIAS;
        break;
    case STEP_ALIAS:
        import->alias_exists = !missing;
        import->step = STEP_POINT;
        break;
    case STEP_POINT:
        import->step = STEP_READ;
        break;
    case STEP_READ: {
        EbImageInfo *info = incus_image_info(incus_reply_object(reply), import->alias);
        import_end(task, info,
                   info == NULL ? eb_error_new(EB_ERROR_PROTOCOL, "incus.protocol", "an image without a fingerprint")
                                : NULL);
        return;
    }
    }
    import_step(task);
}

static void
on_operation(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_operation_finish(result, &error);
    on_done(user_data, reply, error);
}

static void
on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Import *import = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    if (reply != NULL && reply->operation != NULL)
        incus_operation_wait_async(import->client, reply->operation, import->deadline, on_operation, task);
    else
        on_done(task, reply, error);
}

static void
upload(GTask *task)
{
    Import *import = g_task_get_task_data(task);
    static const char *const names[2] = {"metadata", "rootfs"};
    g_autofree char *boundary = g_uuid_string_random();
    g_autofree char *type = g_strdup_printf("multipart/form-data; boundary=%s", boundary);
    g_autofree char *end = g_strdup_printf("\r\n--%s--\r\n", boundary);
    g_autofree char *path = incus_client_path(import->client, NULL, "images", NULL);
    g_autoptr(IncusPartsStream) body = incus_parts_stream_new();
    guint64 length = strlen(end);
    for (guint i = 0; i < 2; i++) {
        g_autofree char *head =
            g_strdup_printf("%s--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"%s.tar\"\r\n"
                            "Content-Type: application/octet-stream\r\n\r\n",
                            i > 0 ? "\r\n" : "", boundary, names[i], names[i]);
        incus_parts_stream_add_text(body, head);
        incus_parts_stream_add(body, g_unix_input_stream_new(g_steal_fd(&import->fds[i]), TRUE));
        length += strlen(head) + import->sizes[i];
    }
    incus_parts_stream_add_text(body, end);
    incus_client_upload_async(import->client, "POST", path, type, G_INPUT_STREAM(body), (gssize)length,
                              import->deadline, on_answer, task);
}

static void
import_step(GTask *task)
{
    Import *import = g_task_get_task_data(task);
    IncusClient *client = import->client;
    g_autofree char *path = NULL;
    g_autoptr(JsonNode) body = NULL;
    switch (import->step) {
    case STEP_LOOK:
    case STEP_READ:
        path = incus_client_path(client, NULL, "images", import->fingerprint, NULL);
        incus_client_request_async(client, "GET", path, NULL, import->deadline, on_answer, task);
        break;
    case STEP_UPLOAD:
        upload(task);
        break;
    case STEP_ALIAS:
        path = incus_client_path(client, NULL, "images", "aliases", import->alias, NULL);
        incus_client_request_async(client, "GET", path, NULL, import->deadline, on_answer, task);
        break;
    case STEP_POINT:
        path = import->alias_exists ? incus_client_path(client, NULL, "images", "aliases", import->alias, NULL)
                                    : incus_client_path(client, NULL, "images", "aliases", NULL);
        body = alias_json(import);
        incus_client_request_async(client, import->alias_exists ? "PUT" : "POST", path, body, import->deadline,
                                   on_answer, task);
        break;
    }
}

void
incus_image_import_async(IncusClient *client, const char *alias, const char *metadata_path, const char *rootfs_path,
                         IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Import *import = g_new0(Import, 1);
    g_task_set_source_tag(task, incus_image_import_async);
    g_task_set_task_data(task, import, import_free);
    import->client = g_object_ref(client);
    import->deadline = incus_deadline_ref(deadline);
    import->alias = g_strdup(alias);
    import->paths[0] = g_strdup(metadata_path);
    import->paths[1] = g_strdup(rootfs_path);
    import->fds[0] = import->fds[1] = -1;
    g_autoptr(GTask) hash = g_task_new(NULL, incus_deadline_get_cancellable(deadline), on_hashed, task);
    /* The thread works on the import, which the outer task keeps alive until on_hashed() has run. */
    g_task_set_task_data(hash, import, NULL);
    g_task_run_in_thread(hash, hash_thread);
}

EbImageInfo *
incus_image_import_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_image_import_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
