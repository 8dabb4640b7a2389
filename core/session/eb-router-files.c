/* SPDX-License-Identifier: MIT */
/* !ls, !cat and !file: what people see of a project's files. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-project-files.h"
#include "core/session/eb-router-private.h"

/* What is shown as text; more is what !file is for. */
#define MAX_INLINE_BYTES (12 * 1024)
#define MAX_FILE_BYTES (8 * 1024 * 1024)
/* Beyond them it is a file anyway, whatever its name says. */
#define MAX_SHOWN_NAME 200

typedef struct {
    EbRouter *self;
    EbChatMessage *message;
    char *path; /* as it was given; "" = the project */
    gboolean as_file;
    gsize max_bytes;
} EbLook;

static void
look_free(EbLook *look)
{
    g_object_unref(look->self);
    eb_chat_message_unref(look->message);
    g_free(look->path);
    g_free(look);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbLook, look_free)

/* In a code span nothing is markup but the backtick itself. */
static char *
show_name(const char *name)
{
    char *shown = eb_log_escape(name, -1, MAX_SHOWN_NAME);
    return g_strdelimit(shown, "`", '\'');
}

static void
answer(EbLook *look, const char *text, EbChatFile *file)
{
    EbRouter *self = look->self;
    if (self->manager == NULL)
        return;
    eb_router_answer_file(self, look->message, text, file);
    eb_router_done(self, look->message);
}

static void
on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbLook) look = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbProjectListing) listing = eb_project_list_finish(result, &error);
    if (listing == NULL) {
        answer(look, error->message, NULL);
        return;
    }
    g_autofree char *folder = show_name(*look->path != '\0' ? look->path : "/");
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "`%s`%s\n", folder, listing->entries->len == 0 ? " is empty" : "");
    if (listing->entries->len > 0)
        g_string_append(text, "```\n");
    for (guint i = 0; i < listing->entries->len; i++) {
        const EbProjectEntry *entry = listing->entries->pdata[i];
        g_autofree char *name = show_name(entry->name);
        g_autofree char *size = entry->directory || entry->link ? NULL : g_format_size_full(entry->size, 0);
        g_string_append_printf(text, "%s%s%s%s%s\n", name, entry->directory ? "/" : "", entry->link ? " (a link)" : "",
                               size != NULL ? "  " : "", size != NULL ? size : "");
    }
    if (listing->entries->len > 0)
        g_string_append(text, "```\n");
    if (listing->more)
        g_string_append(text, "and many more");
    else if (listing->left_out > 0)
        g_string_append_printf(text, "and %u more", listing->left_out);
    answer(look, text->str, NULL);
}

/* A fence longer than any in the text, so that the file cannot close it. */
static char *
make_fence(const char *text)
{
    gsize longest = 2, run = 0;
    for (const char *at = text; *at != '\0'; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    return g_strnfill(longest + 1, '`');
}

static void
show_text(EbLook *look, const EbProjectFile *file)
{
    gsize length = g_bytes_get_size(file->bytes), masked_length;
    /* Before it is put between fences: what was cut within a secret ends there. */
    g_autoptr(GBytes) masked =
        eb_redact_set_mask_bytes(eb_router_secrets(look->self, look->message->thread), file->bytes);
    const char *bytes = g_bytes_get_data(masked, &masked_length);
    g_autofree char *valid = g_utf8_make_valid(bytes != NULL ? bytes : "", (gssize)masked_length);
    g_autofree char *fence = make_fence(valid);
    g_autofree char *name = show_name(file->name);
    g_autoptr(GString) text = g_string_new(NULL);
    if (file->size == 0)
        g_string_append_printf(text, "`%s` is empty", name);
    else
        g_string_append_printf(text, "%s\n%s%s%s\n", fence, valid, g_str_has_suffix(valid, "\n") ? "" : "\n", fence);
    if (file->size > length)
        g_string_append_printf(
            text, "these are the first %" G_GSIZE_FORMAT " of %" G_GUINT64_FORMAT " bytes: !file gives the whole",
            length, file->size);
    answer(look, text->str, NULL);
}

static void
send_file(EbLook *look, const EbProjectFile *file, const char *shown)
{
    EbRedactSet *secrets = eb_router_secrets(look->self, look->message->thread);
    g_autoptr(GBytes) bytes = eb_redact_set_mask_bytes(secrets, file->bytes);
    g_autofree char *name = eb_redact_set_mask(secrets, file->name, -1);
    g_autoptr(EbChatFile) sent = eb_chat_file_new(name, NULL, bytes);
    g_autofree char *text =
        g_strdup_printf(bytes == file->bytes ? "`%s`" : "`%s`: not as it is: secrets in it are masked", shown);
    answer(look, text, sent);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbLook) look = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbProjectFile) file = eb_project_read_finish(result, &error);
    if (look->self->manager == NULL)
        return;
    if (file == NULL) {
        answer(look, error->message, NULL);
        return;
    }
    g_autofree char *name = show_name(file->name);
    if (!look->as_file) {
        if (!file->binary) {
            show_text(look, file);
            return;
        }
        g_autofree char *text = g_strdup_printf("`%s` is no text: !file gives it", name);
        answer(look, text, NULL);
        return;
    }
    if (file->size > look->max_bytes) {
        g_autofree char *size = g_format_size_full(file->size, 0);
        g_autofree char *most = g_format_size_full(look->max_bytes, 0);
        g_autofree char *text = g_strdup_printf("`%s` has %s, at most %s can be sent here", name, size, most);
        answer(look, text, NULL);
        return;
    }
    send_file(look, file, name);
}

void
eb_router_show_files(EbRouter *self, EbChatMessage *message, const EbSessionRecord *record, const EbCommand *command)
{
    EbSessionParts *parts = self->manager->parts;
    const char *root = eb_config_get_project_root(parts->config);
    EbChatLimits limits = {0};
    EbChatCaps caps = eb_chat_transport_get_caps(self->transport, &limits);
    g_autoptr(EbLook) look = g_new0(EbLook, 1);
    look->self = g_object_ref(self);
    look->message = eb_chat_message_ref(message);
    look->path = g_strdup(command->values[0] != NULL ? command->values[0] : "");
    look->as_file = command->spec->id == EB_COMMAND_FILE;
    if (look->as_file && (caps & EB_CHAT_CAP_FILES) == 0) {
        answer(look, "files cannot be sent here: !cat shows texts", NULL);
        return;
    }
    look->max_bytes = MAX_INLINE_BYTES;
    if (look->as_file)
        look->max_bytes = limits.max_file_bytes > 0 ? MIN(MAX_FILE_BYTES, limits.max_file_bytes) : MAX_FILE_BYTES;
    const char *path = look->path;
    gsize max_bytes = look->max_bytes;
    if (command->spec->id == EB_COMMAND_LS)
        eb_project_list_async(parts->disk, root, record->project, path, self->cancellable, on_listed,
                              g_steal_pointer(&look));
    else
        eb_project_read_async(parts->disk, root, record->project, path, max_bytes, self->cancellable, on_read,
                              g_steal_pointer(&look));
}
