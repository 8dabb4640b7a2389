/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-render"
#include "core/render/eb-coalescer-private.h"

#include "core/render/eb-text-split.h"

#include <string.h>

/* A joined piece does not grow beyond this. */
#define MAX_JOINED_BYTES (64 * 1024)
/* One transport call; transports have their own, shorter limits. Beyond it the queue goes on without that post. A
 * patient transport answers when the post is shown, or can never be. */
#define POST_DEADLINE_MS 120000

/* Something that waits: a post as it is, or what sends its latest state. */
typedef struct {
    EbChatPost *post;
    EbLive *live;
} Entry;

/* A message that was sent with a key. */
typedef struct {
    char *text;
    gint64 sent_us;
} Shown;

G_DEFINE_FINAL_TYPE(EbCoalescer, eb_coalescer, G_TYPE_OBJECT)

static void pump(EbCoalescer *self);

static gboolean
is_raw(EbCoalescer *self)
{
    return (self->chat.caps & (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_STRUCTURED)) != 0;
}

static gsize
post_bytes(const EbChatPost *post)
{
    return post->text != NULL ? strlen(post->text) : 0;
}

static gsize
file_bytes(const EbChatPost *post)
{
    gsize bytes = 0;
    for (guint i = 0; post->files != NULL && i < post->files->len; i++)
        bytes += g_bytes_get_size(((EbChatFile *)post->files->pdata[i])->bytes);
    return bytes;
}

/* --- the queue --- */

static void
entry_free(gpointer data)
{
    Entry *entry = data;
    eb_live_unref(entry->live);
    if (entry->post != NULL)
        eb_chat_post_unref(entry->post);
    g_free(entry);
}

static void
remove_entry(EbCoalescer *self, GList *link)
{
    Entry *entry = link->data;
    if (entry->post != NULL) {
        self->queued_bytes -= post_bytes(entry->post);
        self->queued_file_bytes -= file_bytes(entry->post);
    }
    g_queue_delete_link(&self->queue, link);
    entry_free(entry);
}

/* What an agent makes much of; the rest goes only when that is not enough. */
static gboolean
is_talk(const Entry *entry)
{
    if (entry->live != NULL)
        return TRUE;
    EbChatPostKind kind = entry->post->kind;
    return kind == EB_CHAT_POST_TEXT || kind == EB_CHAT_POST_THOUGHT || kind == EB_CHAT_POST_TOOL ||
           kind == EB_CHAT_POST_DIFF || kind == EB_CHAT_POST_USAGE || kind == EB_CHAT_POST_PLAN;
}

static gsize
queue_bytes(EbCoalescer *self)
{
    gsize bytes = self->queued_bytes;
    for (GList *link = self->queue.head; link != NULL; link = link->next)
        if (((Entry *)link->data)->live != NULL)
            bytes += eb_live_get_bytes(((Entry *)link->data)->live);
    return bytes;
}

static gboolean
is_within_bounds(EbCoalescer *self)
{
    return self->queue.length <= EB_COALESCER_MAX_POSTS && self->queued_file_bytes <= EB_COALESCER_MAX_FILE_BYTES &&
           queue_bytes(self) <= EB_COALESCER_MAX_BYTES;
}

static void
keep_bounds(EbCoalescer *self)
{
    for (guint any = 0; any < 2; any++) {
        GList *link = self->queue.head;
        while (link != NULL && !is_within_bounds(self)) {
            GList *next = link->next;
            Entry *entry = link->data;
            gboolean open = entry->live != NULL && (entry->live == self->text || entry->live == self->tools);
            if (!open && (any == 1 || is_talk(entry))) {
                self->dropped++;
                remove_entry(self, link);
            }
            link = next;
        }
    }
}

static void
add_entry(EbCoalescer *self, EbChatPost *post, EbLive *live)
{
    Entry *entry = g_new0(Entry, 1);
    entry->post = post;
    entry->live = live != NULL ? eb_live_ref(live) : NULL;
    g_queue_push_tail(&self->queue, entry);
    if (post != NULL) {
        self->queued_bytes += post_bytes(post);
        self->queued_file_bytes += file_bytes(post);
    }
    keep_bounds(self);
    pump(self);
}

/* A waiting post with the same key is replaced in its place; one that takes both away leaves nothing to send. */
static gboolean
replace_waiting(EbCoalescer *self, EbChatPost *post)
{
    if ((self->chat.caps & EB_CHAT_CAP_STRUCTURED) != 0 || post->key == NULL || post->append)
        return FALSE;
    for (GList *link = self->queue.tail; link != NULL; link = link->prev) {
        Entry *entry = link->data;
        if (entry->post == NULL || entry->post->append || g_strcmp0(entry->post->key, post->key) != 0)
            continue;
        if (post->retract && !g_hash_table_contains(self->shown, post->key)) {
            remove_entry(self, link);
            eb_chat_post_unref(post);
            return TRUE;
        }
        self->queued_bytes += post_bytes(post) - post_bytes(entry->post);
        self->queued_file_bytes += file_bytes(post) - file_bytes(entry->post);
        eb_chat_post_unref(entry->post);
        entry->post = post;
        return TRUE;
    }
    return FALSE;
}

void
eb_coalescer_enqueue(EbCoalescer *self, EbChatPost *post)
{
    if (!replace_waiting(self, post))
        add_entry(self, post, NULL);
}

void
eb_coalescer_enqueue_live(EbCoalescer *self, EbLive *live)
{
    for (GList *link = self->queue.tail; link != NULL; link = link->prev)
        if (((Entry *)link->data)->live == live) {
            pump(self);
            return;
        }
    add_entry(self, NULL, live);
}

/* --- sending --- */

static void
finish_flushes(EbCoalescer *self)
{
    if (self->queue.length > 0 || self->posting)
        return;
    g_autoptr(GPtrArray) flushes = g_steal_pointer(&self->flushes);
    self->flushes = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < flushes->len; i++)
        g_task_return_boolean(flushes->pdata[i], TRUE);
}

static void
clear_source(GSource **source)
{
    if (*source != NULL) {
        g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
    }
}

static gboolean
on_timer(gpointer data)
{
    g_autoptr(EbCoalescer) self = g_object_ref(EB_COALESCER(data));
    g_clear_pointer(&self->timer, g_source_unref);
    pump(self);
    finish_flushes(self);
    return G_SOURCE_REMOVE;
}

static void
end_post(EbCoalescer *self)
{
    clear_source(&self->deadline);
    self->posting = FALSE;
    self->post_number++;
    pump(self);
    finish_flushes(self);
}

typedef struct {
    EbCoalescer *self;
    guint number;
} Posting;

static void
on_posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Posting *posting = user_data;
    g_autoptr(EbCoalescer) self = posting->self;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, &error);
    if (id == NULL && error != NULL && error->code != EB_ERROR_CANCELLED)
        eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, "a post could not be sent", "EB_REASON", error->message, NULL);
    if (posting->number == self->post_number && self->posting)
        end_post(self);
    g_free(posting);
}

static gboolean
on_post_deadline(gpointer data)
{
    g_autoptr(EbCoalescer) self = g_object_ref(EB_COALESCER(data));
    eb_warning("%s", "the chat did not answer a post in two minutes; going on without it");
    end_post(self);
    return G_SOURCE_REMOVE;
}

static void
shown_free(gpointer data)
{
    Shown *shown = data;
    g_free(shown->text);
    g_free(shown);
}

static void
remember_shown(EbCoalescer *self, const EbChatPost *post, gint64 now_us)
{
    if (post->key == NULL || post->append)
        return;
    if (post->retract || post->final) {
        g_hash_table_remove(self->shown, post->key);
        return;
    }
    if (g_hash_table_size(self->shown) >= EB_COALESCER_MAX_SHOWN && !g_hash_table_contains(self->shown, post->key)) {
        GHashTableIter iter;
        gpointer key, value;
        gpointer oldest = NULL;
        gint64 oldest_us = G_MAXINT64;
        g_hash_table_iter_init(&iter, self->shown);
        while (g_hash_table_iter_next(&iter, &key, &value))
            if (((Shown *)value)->sent_us < oldest_us) {
                oldest = key;
                oldest_us = ((Shown *)value)->sent_us;
            }
        g_hash_table_remove(self->shown, oldest);
    }
    Shown *shown = g_new0(Shown, 1);
    shown->text = g_strdup(post->text);
    shown->sent_us = now_us;
    g_hash_table_replace(self->shown, g_strdup(post->key), shown);
}

/* The post of @link when it may be sent now. NULL: *@due_us says when, or the entry is gone because nothing is new. */
static EbChatPost *
take_post(EbCoalescer *self, GList *link, gint64 now_us, gint64 *due_us)
{
    EbChatPost *post = ((Entry *)link->data)->post;
    const Shown *shown = post->key != NULL ? g_hash_table_lookup(self->shown, post->key) : NULL;
    gint64 due = shown != NULL ? shown->sent_us + (gint64)self->chat.limits.edit_interval_ms * 1000 : 0;
    gboolean known = g_strcmp0(shown != NULL ? shown->text : NULL, post->text) == 0 && shown != NULL &&
                     post->files == NULL && (self->chat.caps & EB_CHAT_CAP_STRUCTURED) == 0;
    if (post->retract ? shown == NULL : known) {
        if (post->final && post->key != NULL)
            g_hash_table_remove(self->shown, post->key);
        remove_entry(self, link);
        return NULL;
    }
    if (!post->retract && !post->append && due > now_us) {
        *due_us = MIN(*due_us, due);
        return NULL;
    }
    post = eb_chat_post_ref(post);
    remove_entry(self, link);
    remember_shown(self, post, now_us);
    return post;
}

/* The first post that may be sent: changes of what is shown wait for their pace, and let others pass. */
static EbChatPost *
take_next(EbCoalescer *self, gint64 now_us, gint64 *due_us)
{
    GList *link = self->queue.head;
    while (link != NULL) {
        GList *next = link->next;
        Entry *entry = link->data;
        if (entry->post != NULL) {
            EbChatPost *post = take_post(self, link, now_us, due_us);
            if (post != NULL)
                return post;
        } else {
            gint64 due = G_MAXINT64;
            EbChatPost *post = eb_live_next(entry->live, now_us, &due);
            if (post != NULL)
                return post;
            if (due == G_MAXINT64)
                remove_entry(self, link);
            *due_us = MIN(*due_us, due);
        }
        link = next;
    }
    return NULL;
}

static EbChatPost *
tell_dropped(EbCoalescer *self)
{
    const Entry *head = g_queue_peek_head(&self->queue);
    if (self->dropped == 0 || (head != NULL && is_talk(head) && self->queue.length > EB_COALESCER_MAX_POSTS / 2))
        return NULL;
    g_autofree char *text = g_strdup_printf("%u messages were left out: the chat could not keep up", self->dropped);
    self->dropped = 0;
    EbChatPost *notice = eb_chat_post_new(self->thread != NULL ? self->thread : "", EB_CHAT_POST_NOTICE, text);
    notice->final = TRUE;
    return notice;
}

static void
send(EbCoalescer *self, EbChatPost *post)
{
    self->posting = TRUE;
    if (!self->chat.limits.patient) {
        self->deadline = g_timeout_source_new(POST_DEADLINE_MS);
        g_source_set_callback(self->deadline, on_post_deadline, self, NULL);
        g_source_attach(self->deadline, g_main_context_get_thread_default());
    }
    Posting *posting = g_new0(Posting, 1);
    posting->self = g_object_ref(self);
    posting->number = self->post_number;
    eb_chat_transport_post_async(self->transport, post, self->cancellable, on_posted, posting);
}

static void
pump(EbCoalescer *self)
{
    if (self->posting || self->cancellable == NULL)
        return;
    gint64 due_us = G_MAXINT64;
    gint64 now_us = g_get_monotonic_time();
    g_autoptr(EbChatPost) post = tell_dropped(self);
    if (post == NULL)
        post = take_next(self, now_us, &due_us);
    if (post != NULL) {
        clear_source(&self->timer);
        send(self, post);
        return;
    }
    if (due_us == G_MAXINT64) {
        clear_source(&self->timer);
        return;
    }
    if (self->timer != NULL && self->timer_us <= due_us)
        return;
    clear_source(&self->timer);
    self->timer_us = due_us;
    self->timer = g_timeout_source_new((guint)(MAX(due_us - now_us, 0) / 1000) + 1);
    g_source_set_callback(self->timer, on_timer, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

/* --- posts as they are --- */

static gboolean
join_pieces(EbCoalescer *self, EbChatPost *post)
{
    Entry *entry = g_queue_peek_tail(&self->queue);
    EbChatPost *tail = entry != NULL ? entry->post : NULL;
    if (tail == NULL || !tail->append || g_strcmp0(tail->key, post->key) != 0 ||
        post_bytes(tail) + post_bytes(post) > MAX_JOINED_BYTES)
        return FALSE;
    char *joined = g_strconcat(tail->text != NULL ? tail->text : "", post->text, NULL);
    self->queued_bytes += post_bytes(post);
    g_free(tail->text);
    tail->text = joined;
    tail->final = tail->final || post->final;
    eb_chat_post_unref(post);
    return TRUE;
}

static void
push_raw(EbCoalescer *self, EbChatPost *post)
{
    gboolean structured = (self->chat.caps & EB_CHAT_CAP_STRUCTURED) != 0;
    gboolean hidden = post->kind == EB_CHAT_POST_THOUGHT || post->kind == EB_CHAT_POST_USAGE;
    gboolean busy = post->kind == EB_CHAT_POST_BUSY && (self->chat.caps & EB_CHAT_CAP_BUSY) == 0;
    if ((hidden && !structured) || busy || eb_coalescer_repeats_tool(self, post)) {
        eb_chat_post_unref(post);
        return;
    }
    if (post->append && join_pieces(self, post))
        return;
    guint max = self->chat.limits.max_text_units;
    if (post->append || max == 0 || post->text == NULL || eb_text_units(post->text, -1) <= max) {
        eb_coalescer_enqueue(self, post);
        return;
    }
    g_autoptr(GPtrArray) parts = eb_text_split(post->text, max);
    for (guint i = 0; i < parts->len; i++) {
        EbChatPost *part = eb_chat_post_new(post->thread, post->kind, parts->pdata[i]);
        part->final = TRUE;
        part->reply_to = i == 0 ? g_strdup(post->reply_to) : NULL;
        part->data = i == 0 && post->data != NULL ? json_object_ref(post->data) : NULL;
        eb_coalescer_enqueue(self, part);
    }
    eb_chat_post_unref(post);
}

void
eb_coalescer_push(EbCoalescer *self, EbChatPost *post)
{
    g_return_if_fail(EB_IS_COALESCER(self) && post != NULL);
    if (self->thread == NULL) {
        self->thread = g_strdup(post->thread != NULL ? post->thread : "");
        self->chat.thread = self->thread;
    }
    if (is_raw(self) && !(post->append && (self->chat.caps & EB_CHAT_CAP_STREAM) == 0))
        push_raw(self, post);
    else
        eb_coalescer_shape(self, post);
}

/* --- the end of it --- */

/* The source lives as long as its task and no longer. */
static void
drop_deadline(gpointer data)
{
    g_source_destroy(data);
    g_source_unref(data);
}

static gboolean
on_flush_deadline(gpointer data)
{
    GTask *task = G_TASK(data);
    EbCoalescer *self = g_task_get_source_object(task);
    g_autoptr(GTask) alive = g_object_ref(task);
    if (g_ptr_array_remove(self->flushes, task))
        g_task_return_error(alive,
                            eb_error_new(EB_ERROR_TIMEOUT, "chat.slow", "the chat did not take every message in time"));
    return G_SOURCE_REMOVE;
}

void
eb_coalescer_flush_async(EbCoalescer *self, guint deadline_ms, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_COALESCER(self));
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_task_set_source_tag(task, eb_coalescer_flush_async);
    g_task_set_check_cancellable(task, FALSE);
    eb_coalescer_shape_end(self);
    pump(self);
    if (self->queue.length == 0 && !self->posting) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    GSource *source = g_timeout_source_new(deadline_ms);
    g_source_set_callback(source, on_flush_deadline, task, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    g_task_set_task_data(task, source, drop_deadline);
    g_ptr_array_add(self->flushes, g_steal_pointer(&task));
}

gboolean
eb_coalescer_flush_finish(EbCoalescer *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

guint
eb_coalescer_get_queued(EbCoalescer *self)
{
    return self->queue.length;
}

static void
eb_coalescer_dispose(GObject *object)
{
    EbCoalescer *self = EB_COALESCER(object);
    if (self->cancellable != NULL)
        g_cancellable_cancel(self->cancellable);
    g_clear_object(&self->cancellable);
    clear_source(&self->timer);
    clear_source(&self->deadline);
    g_queue_clear_full(&self->queue, entry_free);
    g_queue_clear_full(&self->running, (GDestroyNotify)eb_live_unref);
    g_clear_pointer(&self->text, eb_live_unref);
    g_clear_pointer(&self->tools, eb_live_unref);
    g_clear_object(&self->transport);
    G_OBJECT_CLASS(eb_coalescer_parent_class)->dispose(object);
}

static void
eb_coalescer_finalize(GObject *object)
{
    EbCoalescer *self = EB_COALESCER(object);
    g_hash_table_unref(self->shown);
    g_hash_table_unref(self->waits);
    g_hash_table_unref(self->told_tools);
    g_ptr_array_unref(self->flushes);
    g_free(self->text_key);
    g_free(self->last_error);
    g_free(self->thread);
    G_OBJECT_CLASS(eb_coalescer_parent_class)->finalize(object);
}

static void
eb_coalescer_class_init(EbCoalescerClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_coalescer_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_coalescer_finalize;
}

static void
eb_coalescer_init(EbCoalescer *self)
{
    static int serial;
    g_queue_init(&self->queue);
    g_queue_init(&self->running);
    self->serial = (guint)g_atomic_int_add(&serial, 1) + 1;
    self->cancellable = g_cancellable_new();
    self->shown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, shown_free);
    self->waits = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->told_tools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->flushes = g_ptr_array_new_with_free_func(g_object_unref);
}

EbCoalescer *
eb_coalescer_new(EbChatTransport *transport)
{
    EbCoalescer *self = g_object_new(EB_TYPE_COALESCER, NULL);
    self->transport = g_object_ref(transport);
    self->chat.caps = eb_chat_transport_get_caps(transport, &self->chat.limits);
    return self;
}
