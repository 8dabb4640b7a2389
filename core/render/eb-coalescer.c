/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-render"
#include "core/render/eb-coalescer.h"

#include "core/render/eb-text-split.h"

#include <string.h>

/* A gathered text is sent in between when it grows beyond this. */
#define MAX_SPAN_BYTES (32 * 1024)
/* A joined piece does not grow beyond this. */
#define MAX_JOINED_BYTES (64 * 1024)
/* One transport call; transports have their own, shorter limits. Beyond it the queue goes on without that post. */
#define POST_DEADLINE_MS 120000

struct _EbCoalescer {
    GObject parent_instance;
    EbChatTransport *transport;
    EbChatCaps caps;
    EbChatLimits limits;
    GQueue queue; /* (element-type EbChatPost), bounds above */
    gsize queued_bytes;
    guint dropped;
    gboolean posting;
    guint post_number; /* of the call under way; an answer of an earlier one is ignored */
    GCancellable *cancellable;
    GSource *timer;    /* of the pace */
    GSource *deadline; /* of the call under way */
    char *last_key;    /* of the post sent last */
    gint64 last_us;
    /* a text being gathered for a transport without pieces */
    EbChatPost *span;
    GString *span_text;
    GHashTable *told_tools; /* (utf8 key -> status) for transports that cannot change a post */
    GPtrArray *flushes;     /* (element-type GTask) */
};

G_DEFINE_FINAL_TYPE(EbCoalescer, eb_coalescer, G_TYPE_OBJECT)

static void pump(EbCoalescer *self);

/* Tools that a transport without edits was told of; a turn has far fewer. */
#define MAX_TOLD_TOOLS 1024

static gsize
post_bytes(const EbChatPost *post)
{
    return post->text != NULL ? strlen(post->text) : 0;
}

static gboolean
may_drop(const EbChatPost *post)
{
    return post->kind == EB_CHAT_POST_TEXT || post->kind == EB_CHAT_POST_THOUGHT || post->kind == EB_CHAT_POST_TOOL ||
           post->kind == EB_CHAT_POST_DIFF || post->kind == EB_CHAT_POST_USAGE || post->kind == EB_CHAT_POST_PLAN;
}

static void
keep_bounds(EbCoalescer *self)
{
    GList *link = self->queue.head;
    while (link != NULL &&
           (self->queue.length > EB_COALESCER_MAX_POSTS || self->queued_bytes > EB_COALESCER_MAX_BYTES)) {
        GList *next = link->next;
        EbChatPost *post = link->data;
        if (may_drop(post)) {
            self->queued_bytes -= post_bytes(post);
            self->dropped++;
            g_queue_delete_link(&self->queue, link);
            eb_chat_post_unref(post);
        }
        link = next;
    }
}

static void
enqueue(EbCoalescer *self, EbChatPost *post)
{
    self->queued_bytes += post_bytes(post);
    g_queue_push_tail(&self->queue, post);
    keep_bounds(self);
    pump(self);
}

static void
enqueue_split(EbCoalescer *self, EbChatPost *post)
{
    guint max = self->limits.max_text_units;
    if (max == 0 || post->text == NULL || eb_text_units(post->text, -1) <= max) {
        enqueue(self, post);
        return;
    }
    g_autoptr(GPtrArray) parts = eb_text_split(post->text, max);
    for (guint i = 0; i < parts->len; i++) {
        EbChatPost *part = eb_chat_post_new(post->thread, post->kind, parts->pdata[i]);
        part->final = TRUE;
        part->reply_to = i == 0 ? g_strdup(post->reply_to) : NULL;
        part->data = i == 0 && post->data != NULL ? json_object_ref(post->data) : NULL;
        enqueue(self, part);
    }
    eb_chat_post_unref(post);
}

static void
end_span(EbCoalescer *self)
{
    if (self->span == NULL)
        return;
    EbChatPost *span = g_steal_pointer(&self->span);
    EbChatPost *post = eb_chat_post_new(span->thread, span->kind, self->span_text->str);
    post->final = TRUE;
    eb_chat_post_unref(span);
    g_string_truncate(self->span_text, 0);
    if (post->text != NULL && *g_strchug(post->text) != '\0')
        enqueue_split(self, post);
    else
        eb_chat_post_unref(post);
}

static void
gather(EbCoalescer *self, EbChatPost *post)
{
    if (self->span != NULL && g_strcmp0(self->span->key, post->key) != 0)
        end_span(self);
    if (self->span == NULL)
        self->span = eb_chat_post_ref(post);
    g_string_append(self->span_text, post->text != NULL ? post->text : "");
    if (post->final || self->span_text->len > MAX_SPAN_BYTES)
        end_span(self);
    eb_chat_post_unref(post);
}

static gboolean
join_pieces(EbCoalescer *self, EbChatPost *post)
{
    EbChatPost *tail = g_queue_peek_tail(&self->queue);
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

static gboolean
replace_waiting(EbCoalescer *self, EbChatPost *post)
{
    if ((self->caps & EB_CHAT_CAP_STRUCTURED) != 0 || post->key == NULL)
        return FALSE;
    for (GList *link = self->queue.tail; link != NULL; link = link->prev) {
        EbChatPost *waiting = link->data;
        if (g_strcmp0(waiting->key, post->key) != 0 || waiting->append)
            continue;
        self->queued_bytes += post_bytes(post) - post_bytes(waiting);
        link->data = post;
        eb_chat_post_unref(waiting);
        return TRUE;
    }
    return FALSE;
}

/* A transport that cannot change a post hears of a tool once, and again when it failed. */
static gboolean
repeats_tool(EbCoalescer *self, const EbChatPost *post)
{
    if (post->kind != EB_CHAT_POST_TOOL || post->key == NULL ||
        (self->caps & (EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)) != 0)
        return FALSE;
    const char *status = eb_json_get_string(post->data, "status");
    if (g_hash_table_size(self->told_tools) >= MAX_TOLD_TOOLS)
        g_hash_table_remove_all(self->told_tools);
    const char *told = g_hash_table_lookup(self->told_tools, post->key);
    if (told != NULL && (g_strcmp0(status, "failed") != 0 || g_str_equal(told, "failed")))
        return TRUE;
    g_hash_table_replace(self->told_tools, g_strdup(post->key), g_strdup(status != NULL ? status : ""));
    return FALSE;
}

void
eb_coalescer_push(EbCoalescer *self, EbChatPost *post)
{
    g_return_if_fail(EB_IS_COALESCER(self) && post != NULL);
    gboolean structured = (self->caps & EB_CHAT_CAP_STRUCTURED) != 0;
    gboolean hidden = post->kind == EB_CHAT_POST_THOUGHT || post->kind == EB_CHAT_POST_USAGE;
    if ((hidden && !structured) || repeats_tool(self, post)) {
        eb_chat_post_unref(post);
        return;
    }
    if (post->append && (self->caps & EB_CHAT_CAP_STREAM) == 0) {
        gather(self, post);
        return;
    }
    end_span(self);
    if (post->append ? join_pieces(self, post) : replace_waiting(self, post))
        return;
    if (post->append)
        enqueue(self, post);
    else
        enqueue_split(self, post);
}

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

static gboolean
on_timer(gpointer data)
{
    EbCoalescer *self = EB_COALESCER(data);
    g_clear_pointer(&self->timer, g_source_unref);
    pump(self);
    return G_SOURCE_REMOVE;
}

static void
clear_source(GSource **source)
{
    if (*source != NULL) {
        g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
    }
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
} EbPosting;

static void
on_posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbPosting *posting = user_data;
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
    EbCoalescer *self = EB_COALESCER(data);
    g_autoptr(EbCoalescer) alive = g_object_ref(self);
    eb_warning("%s", "the chat did not answer a post in two minutes; going on without it");
    end_post(alive);
    return G_SOURCE_REMOVE;
}

/* Microseconds until the head of the queue may be sent. */
static gint64
wait_for_pace(EbCoalescer *self, const EbChatPost *post)
{
    if (self->limits.edit_interval_ms == 0 || post->key == NULL || self->last_key == NULL || post->append ||
        g_strcmp0(post->key, self->last_key) != 0)
        return 0;
    return self->last_us + (gint64)self->limits.edit_interval_ms * 1000 - g_get_monotonic_time();
}

static void
pump(EbCoalescer *self)
{
    if (self->posting || self->timer != NULL || self->cancellable == NULL)
        return;
    EbChatPost *head = g_queue_peek_head(&self->queue);
    if (head == NULL && self->dropped == 0)
        return;
    if (self->dropped > 0 && (head == NULL || !may_drop(head))) {
        g_autofree char *text = g_strdup_printf("%u messages were left out: the chat could not keep up", self->dropped);
        EbChatPost *notice = eb_chat_post_new(head != NULL ? head->thread : "", EB_CHAT_POST_NOTICE, text);
        notice->final = TRUE;
        self->dropped = 0;
        self->queued_bytes += strlen(text);
        g_queue_push_head(&self->queue, notice);
        head = notice;
    }
    gint64 wait_us = head != NULL ? wait_for_pace(self, head) : 0;
    if (wait_us > 0) {
        self->timer = g_timeout_source_new((guint)(wait_us / 1000) + 1);
        g_source_set_callback(self->timer, on_timer, self, NULL);
        g_source_attach(self->timer, g_main_context_get_thread_default());
        return;
    }
    g_autoptr(EbChatPost) post = g_queue_pop_head(&self->queue);
    self->queued_bytes -= post_bytes(post);
    g_free(self->last_key);
    self->last_key = g_strdup(post->key);
    self->last_us = g_get_monotonic_time();
    self->posting = TRUE;
    self->deadline = g_timeout_source_new(POST_DEADLINE_MS);
    g_source_set_callback(self->deadline, on_post_deadline, self, NULL);
    g_source_attach(self->deadline, g_main_context_get_thread_default());
    EbPosting *posting = g_new0(EbPosting, 1);
    posting->self = g_object_ref(self);
    posting->number = self->post_number;
    eb_chat_transport_post_async(self->transport, post, self->cancellable, on_posted, posting);
}

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
    end_span(self);
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
    g_queue_clear_full(&self->queue, (GDestroyNotify)eb_chat_post_unref);
    g_clear_pointer(&self->span, eb_chat_post_unref);
    g_clear_object(&self->transport);
    G_OBJECT_CLASS(eb_coalescer_parent_class)->dispose(object);
}

static void
eb_coalescer_finalize(GObject *object)
{
    EbCoalescer *self = EB_COALESCER(object);
    g_string_free(self->span_text, TRUE);
    g_hash_table_unref(self->told_tools);
    g_ptr_array_unref(self->flushes);
    g_free(self->last_key);
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
    g_queue_init(&self->queue);
    self->cancellable = g_cancellable_new();
    self->span_text = g_string_new(NULL);
    self->told_tools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->flushes = g_ptr_array_new_with_free_func(g_object_unref);
}

EbCoalescer *
eb_coalescer_new(EbChatTransport *transport)
{
    EbCoalescer *self = g_object_new(EB_TYPE_COALESCER, NULL);
    self->transport = g_object_ref(transport);
    self->caps = eb_chat_transport_get_caps(transport, &self->limits);
    return self;
}
