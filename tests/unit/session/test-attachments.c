/* SPDX-License-Identifier: MIT */
#include "core/session/eb-attachments.h"
#include "tests/lib/eb-test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* A transport whose files are in a table: what is not there cannot be fetched, "hang" never ends by itself. */
#define FILES_TYPE_CHAT (files_chat_get_type())
G_DECLARE_FINAL_TYPE(FilesChat, files_chat, FILES, CHAT, GObject)

struct _FilesChat {
    GObject parent_instance;
    GHashTable *files; /* (utf8 url -> GBytes) */
    guint fetched;
    guint away; /* that many fetches meet nobody */
};

static void files_chat_iface_init(EbChatTransportInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(FilesChat, files_chat, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, files_chat_iface_init))

static void
on_hang_cancelled(GCancellable *cancellable, gpointer data)
{
    g_autoptr(GTask) task = G_TASK(data);
    g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, "fetch.cancelled", "cancelled"));
}

static void
chat_fetch_async(EbChatTransport *transport, const EbChatAttachment *attachment, gsize max_bytes,
                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    FilesChat *self = FILES_CHAT(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    GBytes *bytes = g_hash_table_lookup(self->files, attachment->url);
    self->fetched++;
    if (g_str_equal(attachment->url, "hang")) {
        g_signal_connect(cancellable, "cancelled", G_CALLBACK(on_hang_cancelled), g_steal_pointer(&task));
        return;
    }
    if (self->away > 0) {
        self->away--;
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "fetch.away", "nobody answers"));
        return;
    }
    if (bytes == NULL)
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "fetch.missing", "the service has it no more"));
    else if (g_bytes_get_size(bytes) > max_bytes)
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "fetch.size", "longer than it said"));
    else
        g_task_return_pointer(task, g_bytes_ref(bytes), (GDestroyNotify)g_bytes_unref);
}

static GBytes *
chat_fetch_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
files_chat_iface_init(EbChatTransportInterface *iface)
{
    iface->fetch_async = chat_fetch_async;
    iface->fetch_finish = chat_fetch_finish;
}

static void
files_chat_finalize(GObject *object)
{
    g_hash_table_unref(FILES_CHAT(object)->files);
    G_OBJECT_CLASS(files_chat_parent_class)->finalize(object);
}

static void
files_chat_class_init(FilesChatClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = files_chat_finalize;
}

static void
files_chat_init(FilesChat *self)
{
    self->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
}

typedef struct {
    char *root;
    EbSessionParts *parts;
    FilesChat *chat;
    EbChatMessage *message;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->root = eb_test_temp_dir("attach");
    g_autofree char *project = g_build_filename(fixture->root, "projects", "p", NULL);
    g_assert_cmpint(g_mkdir_with_parents(project, 0755), ==, 0);
    g_autofree char *file = g_build_filename(fixture->root, "c.toml", NULL);
    g_autofree char *text = g_strdup_printf("[service]\nstate_dir = \"%s/state\"\nproject_root = \"%s/projects\"\n",
                                            fixture->root, fixture->root);
    eb_test_write_file(file, text);
    g_autoptr(GError) error = NULL;
    fixture->parts = eb_session_parts_new();
    fixture->parts->config = eb_config_load(file, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    fixture->parts->disk = eb_worker_new("disk", 0);
    fixture->parts->uid = getuid();
    fixture->parts->gid = getgid();
    fixture->chat = g_object_new(FILES_TYPE_CHAT, NULL);
    fixture->message = eb_chat_message_new("1", "t", "2", "look at this");
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    eb_chat_message_unref(fixture->message);
    g_object_unref(fixture->chat);
    eb_session_parts_unref(fixture->parts);
    g_free(fixture->root);
}

/* @content: (nullable): the service does not have it */
static void
add(Fixture *fixture, const char *name, const char *content, gsize length, guint64 declared)
{
    g_autofree char *url = g_strdup_printf("u%u", fixture->message->attachments->len);
    if (content != NULL)
        g_hash_table_insert(fixture->chat->files, g_strdup(url), g_bytes_new(content, length));
    eb_chat_message_add_attachment(fixture->message, url, name, NULL, declared, url);
}

static EbAttachments *
take(Fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) done = {0};
    eb_attachments_take_async(fixture->parts, "p", EB_CHAT_TRANSPORT(fixture->chat), fixture->message, NULL,
                              eb_test_result_ready, &done);
    EbAttachments *taken = eb_attachments_take_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return taken;
}

static void
test_saved_and_shown(Fixture *fixture, gconstpointer data)
{
    add(fixture, "notes.txt", "hello", 5, 5);
    add(fixture, "shot.dat", "\x89PNG\r\n\x1a\nrest", 12, 12);
    add(fixture, "fake.png", "#!/bin/sh", 9, 9);
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_cmpuint(taken->refusals->len, ==, 0);
    g_assert_null(taken->text);
    g_assert_nonnull(strstr(taken->lines, "- attachments/notes.txt (5 bytes)\n"));
    g_assert_nonnull(strstr(taken->lines, "- attachments/shot.dat (12 bytes, image/png)\n"));
    /* By what it is, not by what it is called. */
    g_assert_cmpuint(json_array_get_length(taken->blocks), ==, 1);
    JsonObject *block = json_array_get_object_element(taken->blocks, 0);
    g_assert_cmpstr(json_object_get_string_member(block, "mimeType"), ==, "image/png");
    g_autofree char *coded = g_base64_encode((const guchar *)"\x89PNG\r\n\x1a\nrest", 12);
    g_assert_cmpstr(json_object_get_string_member(block, "data"), ==, coded);
    g_autofree char *path = g_build_filename(fixture->root, "projects/p/attachments/notes.txt", NULL);
    g_autofree char *content = NULL;
    g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "hello");
}

/* Twelve files, one of 30 MB, names of all kinds: the fate of each is told to both sides. */
static void
test_each_fate_is_told(Fixture *fixture, gconstpointer data)
{
    static const char *const names[] = {
        "한국어.txt", "🎉.txt", "\xe2\x80\xaetxt.exe", "line\nbreak.txt", "e.txt", "f.txt", "g.txt",
        "h.txt",      "i.txt", "../../j.txt",         "k.txt",           "l.txt"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        add(fixture, names[i], i == 1 ? NULL : "x", 1, i == 0 ? 30 * 1024 * 1024 : 1);
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_cmpuint(taken->refusals->len, ==, 10);
    g_assert_nonnull(strstr(taken->refusals->pdata[0], "한국어.txt was not taken: it has 30.0"));
    g_assert_nonnull(strstr(taken->refusals->pdata[1], "the service has it no more"));
    g_assert_nonnull(strstr(taken->refusals->pdata[2], "only the first 4"));
    for (guint i = 0; i < taken->refusals->len; i++)
        g_assert_null(strchr(taken->refusals->pdata[i], '\n'));
    g_auto(GStrv) lines = g_strsplit(g_strchomp(taken->lines), "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 1 + 12);
    g_assert_cmpuint(fixture->chat->fetched, ==, 3);
    g_assert_nonnull(strstr(taken->lines, "- attachments/_txt.exe"));
    g_assert_nonnull(strstr(taken->lines, "- attachments/line_break.txt"));
}

static void
test_longer_than_it_said(Fixture *fixture, gconstpointer data)
{
    g_autofree char *big = g_malloc0(EB_ATTACHMENTS_MAX_BYTES + 1);
    add(fixture, "big.bin", big, EB_ATTACHMENTS_MAX_BYTES + 1, 100);
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_cmpuint(taken->refusals->len, ==, 1);
    g_assert_nonnull(strstr(taken->refusals->pdata[0], "longer than it said"));
    g_assert_null(taken->blocks);
    g_autofree char *path = g_build_filename(fixture->root, "projects/p/attachments", NULL);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static void
test_pasted_text(Fixture *fixture, gconstpointer data)
{
    g_free(fixture->message->text);
    fixture->message->text = g_strdup("  ");
    add(fixture, "message.txt", "a long prompt", 13, 13);
    add(fixture, "message.txt", "another", 7, 7);
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_cmpstr(taken->text, ==, "a long prompt");
    g_assert_nonnull(strstr(taken->lines, "attachments/message.txt"));
}

static void
test_text_beside_words_is_a_file(Fixture *fixture, gconstpointer data)
{
    add(fixture, "message.txt", "not the prompt", 14, 14);
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_null(taken->text);
    g_assert_nonnull(strstr(taken->lines, "attachments/message.txt"));
}

/* A chat that is cut off for a while is waited for: its files are still there afterwards. */
static void
test_away(Fixture *fixture, gconstpointer data)
{
    add(fixture, "late.txt", "x", 1, 1);
    fixture->chat->away = 2;
    g_autoptr(EbAttachments) taken = take(fixture);
    g_assert_cmpuint(taken->refusals->len, ==, 0);
    g_assert_nonnull(strstr(taken->lines, "attachments/late.txt"));
    g_assert_cmpuint(fixture->chat->fetched, ==, 3);
}

static void
test_cancelled_while_away(Fixture *fixture, gconstpointer data)
{
    add(fixture, "never.txt", "x", 1, 1);
    fixture->chat->away = G_MAXUINT;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbTestResult) done = {0};
    eb_attachments_take_async(fixture->parts, "p", EB_CHAT_TRANSPORT(fixture->chat), fixture->message, cancellable,
                              eb_test_result_ready, &done);
    eb_test_run_for(50);
    g_cancellable_cancel(cancellable);
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_attachments_take_finish(eb_test_result_wait(&done), &error));
    g_assert_cmpuint(fixture->chat->fetched, ==, 1);
}

static void
test_cancelled(Fixture *fixture, gconstpointer data)
{
    eb_chat_message_add_attachment(fixture->message, "h", "h", NULL, 1, "hang");
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbTestResult) done = {0};
    eb_attachments_take_async(fixture->parts, "p", EB_CHAT_TRANSPORT(fixture->chat), fixture->message, cancellable,
                              eb_test_result_ready, &done);
    eb_test_drain();
    g_cancellable_cancel(cancellable);
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_attachments_take_finish(eb_test_result_wait(&done), &error));
    g_assert_nonnull(error);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/attachments/saved-and-shown", test_saved_and_shown);
    ADD("/attachments/each-fate-is-told", test_each_fate_is_told);
    ADD("/attachments/longer-than-it-said", test_longer_than_it_said);
    ADD("/attachments/pasted-text", test_pasted_text);
    ADD("/attachments/text-beside-words-is-a-file", test_text_beside_words_is_a_file);
    ADD("/attachments/away", test_away);
    ADD("/attachments/cancelled-while-away", test_cancelled_while_away);
    ADD("/attachments/cancelled", test_cancelled);
    return g_test_run();
}
