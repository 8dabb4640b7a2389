/* SPDX-License-Identifier: MIT */
#include "discord-view.h"

#include "discord-post.h"

/* Discord's numbers: the message or the channel is gone; it may not be changed so often any more. */
#define CODE_NO_CHANNEL 10003
#define CODE_NO_MESSAGE 10008
#define CODE_OLD_EDIT 30046
/* A typing indicator that comes late says nothing. */
#define TYPING_PATIENCE_MS 5000

/* One post that can be changed. */
typedef struct {
    char *key;
    char *message_id; /* (nullable): NULL while the message is being made */
    GQueue waiting;   /* (element-type GTask): changes that came meanwhile */
    GList *link;      /* in order */
} Entry;

/* One call: what is to be shown, and the message that is changed for it now. */
typedef struct {
    EbChatPost *post;
    char *target; /* (nullable) */
} Job;

static void
job_free(gpointer data)
{
    Job *job = data;

    eb_chat_post_unref(job->post);
    g_free(job->target);
    g_free(job);
}

static EbChatPost *
post_of(GTask *task)
{
    const Job *job = g_task_get_task_data(task);
    return job->post;
}

struct _DiscordView {
    GObject parent_instance;
    DiscordRest *rest;
    DiscordOutbox *outbox;
    char *channel_id;
    GHashTable *entries; /* (element-type utf8 Entry): keys belong to the entries */
    GQueue order;        /* (element-type Entry): oldest first */
    GCancellable *cancellable;
    GSource *typing; /* (nullable): while busy */
    gboolean typing_under_way;
};

G_DEFINE_FINAL_TYPE(DiscordView, discord_view, G_TYPE_OBJECT)

static void run(DiscordView *self, GTask *task);

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_queue_clear_full(&entry->waiting, g_object_unref);
    g_free(entry->key);
    g_free(entry->message_id);
    g_free(entry);
}

static void
forget(DiscordView *self, Entry *entry)
{
    g_queue_delete_link(&self->order, entry->link);
    g_hash_table_remove(self->entries, entry->key);
}

static Entry *
find(DiscordView *self, const EbChatPost *post)
{
    return post->key != NULL ? g_hash_table_lookup(self->entries, post->key) : NULL;
}

/* The oldest one whose message is there makes room. */
static void
make_room(DiscordView *self)
{
    GList *at = self->order.head;

    while (at != NULL && g_hash_table_size(self->entries) >= DISCORD_VIEW_MAX_KEYS) {
        Entry *entry = at->data;
        at = at->next;
        if (entry->message_id != NULL)
            forget(self, entry);
    }
}

static void
remember(DiscordView *self, const char *key)
{
    make_room(self);
    if (g_hash_table_size(self->entries) >= DISCORD_VIEW_MAX_KEYS)
        return; /* all of them are being made: this one cannot be changed later */
    Entry *entry = g_new0(Entry, 1);
    entry->key = g_strdup(key);
    g_queue_init(&entry->waiting);
    g_queue_push_tail(&self->order, entry);
    entry->link = self->order.tail;
    g_hash_table_insert(self->entries, entry->key, entry);
}

/* --- a new message --- */

/* Runs what waited for the message of @key, in order. @id: (nullable): NULL: there is none. */
static void
settle(DiscordView *self, const char *key, const char *id)
{
    Entry *entry = g_hash_table_lookup(self->entries, key);
    GQueue waiting = G_QUEUE_INIT;
    GTask *task;

    if (entry == NULL)
        return;
    while ((task = g_queue_pop_head(&entry->waiting)) != NULL)
        g_queue_push_tail(&waiting, task);
    if (id != NULL)
        entry->message_id = g_strdup(id);
    else
        forget(self, entry);
    while ((task = g_queue_pop_head(&waiting)) != NULL)
        run(self, task);
}

static void
on_created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordView *self = g_task_get_source_object(task);
    EbChatPost *post = post_of(task);
    GError *error = NULL;
    char *id = discord_outbox_create_finish(DISCORD_OUTBOX(source), result, &error);

    if (post->key != NULL)
        settle(self, post->key, id);
    if (id != NULL)
        g_task_return_pointer(task, id, g_free);
    else
        g_task_return_error(task, error);
}

/* @task: (transfer full) */
static void
create(DiscordView *self, GTask *task)
{
    EbChatPost *post = post_of(task);
    gboolean files = post->files != NULL && post->files->len > 0;
    g_autofree char *text = discord_post_text(post, TRUE);
    GError *error = NULL;

    if (!discord_post_check_files(post, &error) || (text == NULL && !files)) {
        if (error != NULL)
            g_task_return_error(task, error);
        else
            g_task_return_pointer(task, g_strdup(""), g_free);
        g_object_unref(task);
        return;
    }
    if (post->key != NULL && !post->final)
        remember(self, post->key);
    discord_outbox_create_async(self->outbox, discord_post_body(post, text, TRUE), files ? post->files : NULL,
                                g_task_get_cancellable(task), on_created, task);
}

/* --- a change --- */

static void
on_edited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordView *self = g_task_get_source_object(task);
    EbChatPost *post = post_of(task);
    GError *error = NULL;
    gboolean done = discord_outbox_edit_finish(DISCORD_OUTBOX(source), result, &error);
    guint code = discord_error_code(error);
    const Job *job = g_task_get_task_data(task);
    Entry *entry = find(self, post);
    gboolean anew = code == CODE_NO_MESSAGE || code == CODE_OLD_EDIT;

    /* Another message may show it by now. */
    if (entry != NULL && g_strcmp0(entry->message_id, job->target) == 0 && (post->final || anew))
        forget(self, entry);
    if (anew) {
        /* Somebody deleted it, or it is too old to be changed as often as this: what it should say is said again. */
        g_error_free(error);
        run(self, g_steal_pointer(&task));
    } else if (done) {
        g_task_return_pointer(task, g_strdup(job->target), g_free);
    } else {
        g_task_return_error(task, error);
    }
}

/* --- taking away --- */

static void
on_deleted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    g_autoptr(JsonNode) node = discord_outbox_call_finish(DISCORD_OUTBOX(source), result, &error);
    guint code = discord_error_code(error);

    if (error != NULL && code != CODE_NO_MESSAGE && code != CODE_NO_CHANNEL) {
        g_task_return_error(task, error);
        return;
    }
    g_clear_error(&error);
    g_task_return_pointer(task, g_strdup(""), g_free);
}

/* @task: (transfer full); @entry is forgotten. */
static void
retract(DiscordView *self, GTask *task, Entry *entry)
{
    DiscordRequest *request = discord_request_new("DELETE", "/channels/{c}/messages/{m}", self->channel_id,
                                                  "/channels/%s/messages/%s", self->channel_id, entry->message_id);

    forget(self, entry);
    discord_outbox_call_async(self->outbox, request, g_task_get_cancellable(task), on_deleted, task);
}

/* @task: (transfer full): its message, if it has one, is not being made now. */
static void
run(DiscordView *self, GTask *task)
{
    EbChatPost *post = post_of(task);
    Entry *entry = find(self, post);
    g_autofree char *text = discord_post_text(post, FALSE);

    if (entry != NULL && entry->message_id == NULL) {
        g_queue_push_tail(&entry->waiting, task);
    } else if (post->retract && entry != NULL) {
        retract(self, task, entry);
    } else if (post->retract || (entry != NULL && text == NULL)) {
        g_task_return_pointer(task, g_strdup(entry != NULL ? entry->message_id : ""), g_free);
        g_object_unref(task);
    } else if (entry == NULL) {
        create(self, task);
    } else {
        Job *job = g_task_get_task_data(task);
        g_free(job->target);
        job->target = g_strdup(entry->message_id);
        discord_outbox_edit_async(self->outbox, job->target, discord_post_body(post, text, FALSE),
                                  g_task_get_cancellable(task), on_edited, task);
    }
}

void
discord_view_post_async(DiscordView *self, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data)
{
    g_return_if_fail(DISCORD_IS_VIEW(self) && post != NULL);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    Entry *entry = find(self, post);
    Job *job = g_new0(Job, 1);

    job->post = eb_chat_post_ref(post);
    g_task_set_source_tag(task, discord_view_post_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, job, job_free);
    if (entry != NULL && entry->waiting.length >= DISCORD_VIEW_MAX_WAITING) {
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "discord.queue-full",
                                               "%d changes of one message wait already", DISCORD_VIEW_MAX_WAITING));
        g_object_unref(task);
        return;
    }
    run(self, task);
}

char *
discord_view_post_finish(DiscordView *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- typing --- */

static void
on_typed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordView) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    self->typing_under_way = FALSE;
    /* Where we may not or cannot type, asking again would only use up Discord's patience. */
    if (g_error_matches(error, EB_ERROR, EB_ERROR_DENIED) || g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        discord_view_set_busy(self, FALSE);
}

static gboolean
type_once(gpointer user_data)
{
    DiscordView *self = user_data;

    if (self->typing_under_way)
        return G_SOURCE_CONTINUE;
    DiscordRequest *request =
        discord_request_new("POST", "/channels/{c}/typing", self->channel_id, "/channels/%s/typing", self->channel_id);
    request->patience_ms = TYPING_PATIENCE_MS;
    self->typing_under_way = TRUE;
    discord_rest_send_async(self->rest, request, self->cancellable, on_typed, g_object_ref(self));
    return G_SOURCE_CONTINUE;
}

void
discord_view_set_busy(DiscordView *self, gboolean busy)
{
    g_return_if_fail(DISCORD_IS_VIEW(self));
    if (busy == (self->typing != NULL))
        return;
    if (!busy) {
        g_source_destroy(self->typing);
        g_clear_pointer(&self->typing, g_source_unref);
        return;
    }
    self->typing = g_timeout_source_new(DISCORD_VIEW_TYPING_MS);
    g_source_set_callback(self->typing, type_once, self, NULL);
    g_source_attach(self->typing, NULL);
    type_once(self);
}

/* --- the object --- */

static void
on_gone(DiscordOutbox *outbox, const char *state, DiscordView *self)
{
    discord_view_set_busy(self, FALSE);
    g_signal_emit_by_name(self, "gone", state);
}

gboolean
discord_view_is_idle(DiscordView *self)
{
    return self->typing == NULL && g_hash_table_size(self->entries) == 0 &&
           discord_outbox_get_queued(self->outbox) == 0;
}

guint
discord_view_get_n_keys(DiscordView *self)
{
    return g_hash_table_size(self->entries);
}

DiscordOutbox *
discord_view_get_outbox(DiscordView *self)
{
    return self->outbox;
}

static void
discord_view_dispose(GObject *object)
{
    DiscordView *self = DISCORD_VIEW(object);

    discord_view_set_busy(self, FALSE);
    g_cancellable_cancel(self->cancellable);
    if (self->outbox != NULL)
        g_signal_handlers_disconnect_by_data(self->outbox, self);
    G_OBJECT_CLASS(discord_view_parent_class)->dispose(object);
}

static void
discord_view_finalize(GObject *object)
{
    DiscordView *self = DISCORD_VIEW(object);

    g_queue_clear(&self->order);
    g_hash_table_unref(self->entries);
    g_clear_object(&self->outbox);
    g_clear_object(&self->rest);
    g_object_unref(self->cancellable);
    g_free(self->channel_id);
    G_OBJECT_CLASS(discord_view_parent_class)->finalize(object);
}

static void
discord_view_class_init(DiscordViewClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = discord_view_dispose;
    G_OBJECT_CLASS(klass)->finalize = discord_view_finalize;
    g_signal_new("gone", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 G_TYPE_STRING);
}

static void
discord_view_init(DiscordView *self)
{
    self->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    g_queue_init(&self->order);
    self->cancellable = g_cancellable_new();
}

DiscordView *
discord_view_new(DiscordRest *rest, const char *channel_id)
{
    DiscordView *self = g_object_new(DISCORD_TYPE_VIEW, NULL);

    self->rest = g_object_ref(rest);
    self->channel_id = g_strdup(channel_id);
    self->outbox = discord_outbox_new(rest, channel_id);
    g_signal_connect(self->outbox, "gone", G_CALLBACK(on_gone), self);
    return self;
}
