/* SPDX-License-Identifier: MIT */
#include "eb-fake-service.h"

#include <stdio.h>
#include <string.h>

#define MAX_UNITS 2000
#define FIRST_ID G_GUINT64_CONSTANT(1000000)

static void eb_fake_service_iface(EbChatTransportInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(EbFakeService, eb_fake_service, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CHAT_TRANSPORT, eb_fake_service_iface))

static void
write_log(EbFakeService *self, const char *kind, const char *place, const char *text)
{
    if (self->log_path == NULL)
        return;
    FILE *file = fopen(self->log_path, "ae");
    g_assert_nonnull(file);
    g_autofree char *line = eb_log_escape(text, -1, 500);
    fprintf(file, "%s %s %s\n", kind, place != NULL ? place : "-", line);
    fclose(file);
}

static EbChatMessage *
find_message(EbFakeService *self, const char *id)
{
    for (guint i = 0; i < self->history->len; i++) {
        EbChatMessage *message = self->history->pdata[i];
        if (g_strcmp0(message->id, id) == 0)
            return message;
    }
    return NULL;
}

static EbChatCaps
get_caps(EbChatTransport *transport, EbChatLimits *limits)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    if (limits != NULL)
        *limits = self->limits;
    return self->caps;
}

static const EbChatPolicy *
attach(EbChatTransport *transport, const EbChatCommand *commands, gsize n_commands)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    self->n_commands = n_commands;
    return &self->policy;
}

static gboolean
check_thread(EbFakeService *self, GTask *task, const char *thread)
{
    if (thread == NULL || g_hash_table_contains(self->threads, thread))
        return TRUE;
    g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "fake.thread", "there is no thread %s", thread));
    return FALSE;
}

static void
post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
           gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_assert_true(g_utf8_validate(post->text, -1, NULL));
    g_assert_cmpint(g_utf8_strlen(post->text, -1), <=, MAX_UNITS);
    if (!check_thread(self, task, post->thread))
        return;
    /* Whatever is said in an archived thread brings it back. */
    if (post->thread != NULL)
        g_hash_table_remove(self->archived, post->thread);
    g_ptr_array_add(self->posts, eb_chat_post_ref(post));
    if (post->kind != EB_CHAT_POST_TEXT || post->final)
        write_log(self, eb_chat_post_kind_to_string(post->kind), post->thread, post->text);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, ++self->last_id);
    write_log(self, "id", id, "-1");
    if (!self->down)
        g_signal_emit_by_name(self, "seen", post->thread, id);
    g_task_return_pointer(task, g_steal_pointer(&id), g_free);
}

static char *
pointer_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static gboolean
boolean_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
on_ask_cancelled(GCancellable *cancellable, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbFakeService *self = g_task_get_source_object(task);
    if (g_ptr_array_find(self->asking, task, NULL)) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "closed");
        g_ptr_array_remove(self->asking, task);
    }
}

static void
ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    GTask *task = g_task_new(self, NULL, callback, user_data);
    g_assert_true(g_hash_table_contains(self->threads, question->thread));
    g_ptr_array_add(self->asking, task);
    if (question->message_id == NULL) {
        g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, ++self->last_id);
        g_signal_emit_by_name(self, "asked", question->id, id);
    }
    if (cancellable != NULL)
        g_cancellable_connect(cancellable, G_CALLBACK(on_ask_cancelled), task, NULL);
}

static char *
ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
open_now(EbFakeService *self, GTask *task)
{
    /* The thread of a message has the message's id; asked for twice it is the same. */
    const char *id = g_task_get_task_data(task);
    g_task_return_pointer(task, g_strdup(id), g_free);
}

static void
open_thread_async(EbChatTransport *transport, const char *message_id, const char *title, GCancellable *cancellable,
                  GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_task_set_task_data(task, g_strdup(message_id), g_free);
    g_assert_cmpint(g_utf8_strlen(title, -1), >=, 1);
    g_assert_cmpint(g_utf8_strlen(title, -1), <=, 100);
    EbChatMessage *message = find_message(self, message_id);
    g_assert_nonnull(message);
    g_assert_null(message->thread);
    self->opened++;
    if (self->open_errors->len > 0) {
        g_task_return_error(task, g_ptr_array_steal_index(self->open_errors, 0));
        return;
    }
    g_hash_table_replace(self->threads, g_strdup(message_id), g_strdup(title));
    write_log(self, "thread", message_id, title);
    if (self->late_to_open)
        g_ptr_array_add(self->held_opens, g_steal_pointer(&task));
    else
        open_now(self, task);
}

static void
close_thread_async(EbChatTransport *transport, const char *thread, GCancellable *cancellable,
                   GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    if (!check_thread(self, task, thread))
        return;
    g_hash_table_add(self->archived, g_strdup(thread));
    g_task_return_boolean(task, TRUE);
}

static const char *
name_of(const char *reaction)
{
    static const char *const names[][2] = {{"\xe2\x8f\xb3", "wait"},
                                           {"\xe2\x9c\x85", "done"},
                                           {"\xe2\x9d\x8c", "cross"},
                                           {"\xe2\x8f\xb9\xef\xb8\x8f", "stop"}};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_strcmp0(names[i][0], reaction) == 0)
            return names[i][1];
    g_assert_not_reached();
}

static void
react_async(EbChatTransport *transport, const char *thread, const char *message_id, const char *reaction,
            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    EbChatMessage *message = find_message(self, message_id);
    /* A message that is not where it is looked for has no reactions. */
    if (message == NULL || g_strcmp0(message->thread, thread) != 0) {
        g_test_message("reaction to %s in %s", message_id, thread);
        g_assert_null(message);
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "fake.message", "no such message"));
        return;
    }
    const char *before = eb_fake_service_reaction(self, message_id);
    const char *name = name_of(reaction);
    g_hash_table_replace(self->reactions, g_strdup(message_id),
                         *before != '\0' ? g_strdup_printf("%s %s", before, name) : g_strdup(name));
    write_log(self, "reaction", message_id, name);
    g_task_return_boolean(task, TRUE);
}

static GPtrArray *
collect(EbFakeService *self, const char *thread, const char *after, guint max)
{
    GPtrArray *found = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    guint64 from = after != NULL ? g_ascii_strtoull(after, NULL, 10) : 0;
    for (guint i = 0; i < self->history->len; i++) {
        EbChatMessage *message = self->history->pdata[i];
        if (g_strcmp0(message->thread, thread) == 0 && g_ascii_strtoull(message->id, NULL, 10) > from)
            g_ptr_array_add(found, eb_chat_message_ref(message));
    }
    if (after == NULL && found->len > max)
        g_ptr_array_remove_range(found, 0, found->len - max);
    else if (found->len > max)
        g_ptr_array_set_size(found, (int)max);
    return found;
}

typedef struct {
    char *thread, *after;
    guint max;
} Read;

static void
read_free(gpointer data)
{
    Read *read = data;
    g_free(read->thread);
    g_free(read->after);
    g_free(read);
}

static void
read_now(EbFakeService *self, GTask *task)
{
    Read *read = g_task_get_task_data(task);
    if (self->read_errors->len > 0) {
        g_task_return_error(task, g_ptr_array_steal_index(self->read_errors, 0));
        return;
    }
    if (check_thread(self, task, read->thread))
        g_task_return_pointer(task, collect(self, read->thread, read->after, read->max),
                              (GDestroyNotify)g_ptr_array_unref);
}

static void
read_back_async(EbChatTransport *transport, const char *thread, const char *after_id, guint max,
                GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    Read *read = g_new0(Read, 1);
    read->thread = g_strdup(thread);
    read->after = g_strdup(after_id);
    read->max = max;
    g_task_set_task_data(task, read, read_free);
    g_assert_cmpuint(max, <=, 100);
    self->reads++;
    if (self->hold_reads)
        g_ptr_array_add(self->held_reads, g_steal_pointer(&task));
    else
        read_now(self, task);
}

static GPtrArray *
read_back_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
fetch_async(EbChatTransport *transport, const EbChatAttachment *attachment, gsize max_bytes, GCancellable *cancellable,
            GAsyncReadyCallback callback, gpointer user_data)
{
    EbFakeService *self = EB_FAKE_SERVICE(transport);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    const char *content = g_hash_table_lookup(self->files, attachment->id);
    if (content == NULL)
        g_task_return_error(task, eb_error_new(EB_ERROR_NOT_FOUND, "fake.file", "the file is gone"));
    else if (strlen(content) > max_bytes)
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "fake.file", "the file is too large"));
    else
        g_task_return_pointer(task, g_bytes_new(content, strlen(content)), (GDestroyNotify)g_bytes_unref);
}

static GBytes *
fetch_finish(EbChatTransport *transport, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
eb_fake_service_iface(EbChatTransportInterface *iface)
{
    iface->get_caps = get_caps;
    iface->attach = attach;
    iface->post_async = post_async;
    iface->post_finish = pointer_finish;
    iface->ask_async = ask_async;
    iface->ask_finish = ask_finish;
    iface->open_thread_async = open_thread_async;
    iface->open_thread_finish = pointer_finish;
    iface->close_thread_async = close_thread_async;
    iface->close_thread_finish = boolean_finish;
    iface->react_async = react_async;
    iface->react_finish = boolean_finish;
    iface->read_back_async = read_back_async;
    iface->read_back_finish = read_back_finish;
    iface->fetch_async = fetch_async;
    iface->fetch_finish = fetch_finish;
}

/* --- people --- */

EbChatMessage *
eb_fake_service_add(EbFakeService *self, const char *thread, const char *author, const char *text)
{
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT, ++self->last_id);
    EbChatMessage *message = eb_chat_message_new(id, thread, author, text);
    message->sent_unix_ms = g_get_real_time() / 1000;
    g_ptr_array_add(self->history, message);
    g_autofree char *number = g_strdup_printf("%u", self->history->len - 1);
    write_log(self, "id", id, number);
    if (thread != NULL)
        g_hash_table_remove(self->archived, thread);
    return message;
}

void
eb_fake_service_tell(EbFakeService *self, EbChatMessage *message)
{
    /* As it is now: what is told later than it is changed is told changed. */
    g_autoptr(EbChatMessage) told =
        eb_chat_message_new(message->id, message->thread, message->author_id, message->text);
    told->sent_unix_ms = message->sent_unix_ms;
    told->author_bot = message->author_bot;
    told->mentions_us = message->mentions_us;
    told->note = g_strdup(message->note);
    for (guint i = 0; i < message->attachments->len; i++) {
        const EbChatAttachment *file = message->attachments->pdata[i];
        eb_chat_message_add_attachment(told, file->id, file->name, file->content_type, file->size_bytes, file->url);
    }
    g_signal_emit_by_name(self, "message", told);
    g_signal_emit_by_name(self, "seen", message->thread, message->id);
}

const char *
eb_fake_service_say(EbFakeService *self, const char *thread, const char *author, const char *text)
{
    EbChatMessage *message = eb_fake_service_add(self, thread, author, text);
    if (!self->down)
        eb_fake_service_tell(self, message);
    return message->id;
}

const char *
eb_fake_service_command(EbFakeService *self, const char *thread, const char *author, const char *command,
                        const char *options)
{
    static char *id;
    g_free(id);
    id = g_strdup_printf("%" G_GUINT64_FORMAT, ++self->last_id);
    g_autoptr(EbChatMessage) message = eb_chat_message_new(id, thread, author, "");
    g_autofree char *text =
        g_strdup_printf("{\"command\":\"%s\",\"options\":%s}", command, options != NULL ? options : "{}");
    g_autoptr(JsonNode) extra = eb_json_parse(text, strlen(text), NULL, NULL);
    message->extra = json_object_ref(eb_json_node_object(extra));
    message->sent_unix_ms = g_get_real_time() / 1000;
    g_signal_emit_by_name(self, "action", message);
    return id;
}

void
eb_fake_service_edit(EbFakeService *self, const char *message_id, const char *text)
{
    EbChatMessage *message = find_message(self, message_id);
    g_assert_nonnull(message);
    g_autoptr(EbChatMessage) changed = eb_chat_message_new(message_id, message->thread, message->author_id, text);
    changed->sent_unix_ms = message->sent_unix_ms;
    g_free(message->text);
    message->text = g_strdup(text);
    if (!self->down)
        g_signal_emit_by_name(self, "edited", changed);
}

void
eb_fake_service_withdraw(EbFakeService *self, const char *message_id)
{
    g_autoptr(EbChatMessage) message = eb_chat_message_ref(find_message(self, message_id));
    g_ptr_array_remove(self->history, message);
    if (!self->down)
        g_signal_emit_by_name(self, "withdrawn", message->thread, message->id);
}

void
eb_fake_service_connect(EbFakeService *self, gboolean up)
{
    self->down = !up;
    g_signal_emit_by_name(self, "connection", up, up ? "connected" : "the socket broke");
}

void
eb_fake_service_release(EbFakeService *self)
{
    self->hold_reads = self->late_to_open = FALSE;
    g_autoptr(GPtrArray) reads = g_steal_pointer(&self->held_reads);
    g_autoptr(GPtrArray) opens = g_steal_pointer(&self->held_opens);
    self->held_reads = g_ptr_array_new_with_free_func(g_object_unref);
    self->held_opens = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < reads->len; i++)
        read_now(self, reads->pdata[i]);
    for (guint i = 0; i < opens->len; i++)
        open_now(self, opens->pdata[i]);
}

/* --- what can be seen --- */

char *
eb_fake_service_text(EbFakeService *self, const char *thread, EbChatPostKind kind)
{
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < self->posts->len; i++) {
        const EbChatPost *post = self->posts->pdata[i];
        if (post->kind == kind && g_strcmp0(post->thread, thread) == 0)
            g_string_append_printf(all, "%s%s", all->len > 0 ? "\n" : "", post->text);
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

const char *
eb_fake_service_answer_to(EbFakeService *self, const char *message_id)
{
    for (guint i = self->posts->len; i > 0; i--) {
        const EbChatPost *post = self->posts->pdata[i - 1];
        if (g_strcmp0(post->reply_to, message_id) == 0)
            return post->text;
    }
    return NULL;
}

const char *
eb_fake_service_reaction(EbFakeService *self, const char *message_id)
{
    const char *found = g_hash_table_lookup(self->reactions, message_id);
    return found != NULL ? found : "";
}

guint
eb_fake_service_count(EbFakeService *self, const char *thread)
{
    guint count = 0;
    for (guint i = 0; i < self->posts->len; i++)
        count += g_strcmp0(((EbChatPost *)self->posts->pdata[i])->thread, thread) == 0;
    return count;
}

const char *
eb_fake_service_thread(EbFakeService *self)
{
    const char *newest = NULL;
    GHashTableIter iter;
    gpointer thread;
    g_hash_table_iter_init(&iter, self->threads);
    while (g_hash_table_iter_next(&iter, &thread, NULL))
        if (newest == NULL || g_ascii_strtoull(thread, NULL, 10) > g_ascii_strtoull(newest, NULL, 10))
            newest = thread;
    return newest;
}

/* --- the object --- */

static void
eb_fake_service_finalize(GObject *object)
{
    EbFakeService *self = EB_FAKE_SERVICE(object);
    g_strfreev(self->policy.allowed);
    g_strfreev(self->policy.blocked);
    g_strfreev(self->policy.operators);
    g_ptr_array_unref(self->history);
    g_ptr_array_unref(self->posts);
    g_ptr_array_unref(self->open_errors);
    g_ptr_array_unref(self->read_errors);
    g_ptr_array_unref(self->held_reads);
    g_ptr_array_unref(self->held_opens);
    g_ptr_array_unref(self->asking);
    g_hash_table_unref(self->files);
    g_hash_table_unref(self->threads);
    g_hash_table_unref(self->archived);
    g_hash_table_unref(self->reactions);
    g_free(self->log_path);
    G_OBJECT_CLASS(eb_fake_service_parent_class)->finalize(object);
}

static void
eb_fake_service_class_init(EbFakeServiceClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_fake_service_finalize;
}

static void
eb_fake_service_init(EbFakeService *self)
{
    self->caps = EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_REACTIONS | EB_CHAT_CAP_COMMANDS |
                 EB_CHAT_CAP_EDIT | EB_CHAT_CAP_FILES | EB_CHAT_CAP_FETCH;
    self->limits.max_text_units = MAX_UNITS;
    self->limits.max_file_bytes = 8 * 1024 * 1024;
    self->policy.allowed = g_strsplit(OWNER "," FRIEND "," OTHER "," BLOCKED, ",", 0);
    self->policy.blocked = g_strsplit(BLOCKED, ",", 0);
    self->policy.operators = g_strsplit(OPERATOR, ",", 0);
    self->policy.late_ms = 600000;
    self->last_id = FIRST_ID;
    self->history = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_message_unref);
    self->posts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_post_unref);
    self->open_errors = g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free);
    self->read_errors = g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free);
    self->held_reads = g_ptr_array_new_with_free_func(g_object_unref);
    self->held_opens = g_ptr_array_new_with_free_func(g_object_unref);
    self->asking = g_ptr_array_new_with_free_func(g_object_unref);
    self->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->threads = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->archived = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->reactions = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

EbFakeService *
eb_fake_service_new(void)
{
    return g_object_new(EB_TYPE_FAKE_SERVICE, NULL);
}
