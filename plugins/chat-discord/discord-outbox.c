/* SPDX-License-Identifier: MIT */
#include "discord-outbox.h"

#include <string.h>

#define PROBE_FIRST_MS 2000
#define PROBE_LAST_MS 60000
#define JITTER_MS 1000
/* How long no access is believed without asking: each try would count as a refused request. */
#define LOST_US (60 * (gint64)G_USEC_PER_SEC)

/* Discord's numbers (facts of the API, error codes). */
#define CODE_UNKNOWN_CHANNEL 10003
#define CODE_MISSING_ACCESS 50001
#define CODE_INVALID_FORM 50035
#define CODE_ARCHIVED 50083
#define CODE_LOCKED 160005

typedef enum { KIND_CREATE, KIND_EDIT, KIND_CALL } Kind;

typedef struct {
    DiscordOutbox *outbox; /* (unowned): the callers' tasks hold it */
    Kind kind;
    char *message_id; /* (nullable): of an edit */
    JsonNode *body;   /* (nullable) */
    GPtrArray *files; /* (nullable) */
    gsize bytes;      /* of files */
    DiscordRequest *call;
    GPtrArray *callers; /* Caller: an edit that replaced others answers for them too */
    GCancellable *cancellable;
    gboolean unarchived; /* was done for it once */
    gboolean answers_nobody;
} Item;

/* One call that waits for an item. */
typedef struct {
    Item *item;
    GTask *task;     /* (owned) */
    GSource *source; /* (nullable): fires when the caller cancels */
} Caller;

struct _DiscordOutbox {
    GObject parent_instance;
    DiscordRest *rest;
    char *channel_id;
    GQueue items;   /* the head is what is under way or tried next */
    Item *flying;   /* (nullable): the head, while its request or what it needs first is under way */
    gsize bytes;    /* of the files that wait */
    GSource *probe; /* (nullable): waits to try again */
    guint probes;   /* in a row */
    gint64 lost_until;
    gboolean deleted;
    gboolean closed;
};

G_DEFINE_FINAL_TYPE(DiscordOutbox, discord_outbox, G_TYPE_OBJECT)

static guint signal_gone;

static void step(DiscordOutbox *self);

static void
clear_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
caller_free(gpointer data)
{
    Caller *caller = data;
    clear_source(&caller->source);
    g_clear_object(&caller->task);
    g_free(caller);
}

static void
item_free(Item *item)
{
    g_clear_pointer(&item->callers, g_ptr_array_unref);
    g_clear_pointer(&item->body, json_node_unref);
    g_clear_pointer(&item->files, g_ptr_array_unref);
    g_clear_pointer(&item->call, discord_request_free);
    g_clear_object(&item->cancellable);
    g_free(item->message_id);
    g_free(item);
}

/* Takes it out and answers its callers. @node, @error: one of them; (transfer none) */
static void
item_finish(Item *item, JsonNode *node, const GError *error)
{
    g_autoptr(DiscordOutbox) self = g_object_ref(item->outbox);
    g_autoptr(GPtrArray) callers = g_steal_pointer(&item->callers);
    g_queue_remove(&self->items, item);
    self->bytes -= item->bytes;
    item_free(item);
    for (guint i = 0; i < callers->len; i++) {
        Caller *caller = g_ptr_array_index(callers, i);
        clear_source(&caller->source);
        if (error != NULL)
            g_task_return_error(caller->task, g_error_copy(error));
        else
            g_task_return_pointer(caller->task, json_node_ref(node), (GDestroyNotify)json_node_unref);
    }
}

/* --- what an answer means --- */

typedef enum {
    FATE_FAIL,      /* this one alone: the next one goes on */
    FATE_KEEP,      /* the service is away: it waits */
    FATE_UNARCHIVE, /* again after the thread is open */
    FATE_PLAIN,     /* again, as no answer to anything */
    FATE_LOCKED,    /* fails, and nothing else can be said here by us */
    FATE_LOST,      /* no access: all fail */
    FATE_DELETED,   /* all fail, for good */
} Fate;

static Fate
judge(const Item *item, const GError *error)
{
    switch (discord_error_code(error)) {
    case CODE_UNKNOWN_CHANNEL:
        return FATE_DELETED;
    case CODE_MISSING_ACCESS:
        return FATE_LOST;
    case CODE_ARCHIVED:
        return item->unarchived ? FATE_FAIL : FATE_UNARCHIVE;
    case CODE_LOCKED:
        return FATE_LOCKED;
    case CODE_INVALID_FORM:
        /* Among much else: the message that is replied to is of a kind that cannot be. */
        return item->kind == KIND_CREATE && !item->answers_nobody &&
                       json_object_has_member(json_node_get_object(item->body), "message_reference")
                   ? FATE_PLAIN
                   : FATE_FAIL;
    default:
        break;
    }
    if (g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE) ||
        g_strcmp0(eb_error_get_reason(error), "discord.invalid-budget") == 0 ||
        g_strcmp0(eb_error_get_reason(error), "discord.queue-full") == 0)
        return FATE_KEEP;
    return FATE_FAIL;
}

static gboolean
on_probe(gpointer user_data)
{
    DiscordOutbox *self = user_data;
    clear_source(&self->probe);
    step(self);
    return G_SOURCE_REMOVE;
}

static void
keep(DiscordOutbox *self, const GError *error)
{
    guint retry_ms = 0;
    guint delay_ms = PROBE_FIRST_MS << MIN(self->probes, 5);
    eb_error_get_retry(error, &retry_ms);
    delay_ms = MIN(MAX(delay_ms, retry_ms), PROBE_LAST_MS) + (guint)g_random_int_range(0, JITTER_MS);
    if (self->probes++ == 0)
        eb_info("posts into %s wait: %s", self->channel_id, error->message);
    clear_source(&self->probe);
    self->probe = g_timeout_source_new(delay_ms);
    g_source_set_callback(self->probe, on_probe, self, NULL);
    g_source_attach(self->probe, g_main_context_get_thread_default());
}

static void
fail_all(DiscordOutbox *self, const GError *error)
{
    while (self->items.head != NULL)
        item_finish(self->items.head->data, NULL, error);
}

static void
on_unarchived(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordOutbox) self = user_data;
    Item *item = g_steal_pointer(&self->flying);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    if (node != NULL) {
        item->unarchived = TRUE;
    } else if (judge(item, error) == FATE_KEEP) {
        keep(self, error);
        return;
    } else {
        guint code = discord_error_code(error);
        item_finish(item, NULL, error);
        if (code != 0)
            g_signal_emit(self, signal_gone, 0, code == CODE_UNKNOWN_CHANNEL ? "deleted" : "archived");
    }
    step(self);
}

static void
unarchive(DiscordOutbox *self, Item *item)
{
    DiscordRequest *request =
        discord_request_new("PATCH", "/channels/{c}", self->channel_id, "/channels/%s", self->channel_id);
    JsonObject *object = json_object_new();
    json_object_set_boolean_member(object, "archived", FALSE);
    request->body = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(request->body, object);
    self->flying = item;
    discord_rest_send_async(self->rest, request, item->cancellable, on_unarchived, g_object_ref(self));
}

static void
refused(DiscordOutbox *self, Item *item, const GError *error)
{
    switch (judge(item, error)) {
    case FATE_KEEP:
        keep(self, error);
        return;
    case FATE_UNARCHIVE:
        unarchive(self, item);
        return;
    case FATE_PLAIN:
        item->answers_nobody = TRUE;
        json_object_remove_member(json_node_get_object(item->body), "message_reference");
        break;
    case FATE_DELETED:
        self->deleted = TRUE;
        fail_all(self, error);
        g_signal_emit(self, signal_gone, 0, "deleted");
        break;
    case FATE_LOST:
        self->lost_until = g_get_monotonic_time() + LOST_US;
        fail_all(self, error);
        g_signal_emit(self, signal_gone, 0, "lost");
        break;
    case FATE_LOCKED:
        item_finish(item, NULL, error);
        g_signal_emit(self, signal_gone, 0, "archived");
        break;
    case FATE_FAIL:
        item_finish(item, NULL, error);
        break;
    }
    step(self);
}

static void
on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordOutbox) self = user_data;
    Item *item = g_steal_pointer(&self->flying);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    if (node == NULL) {
        refused(self, item, error);
        return;
    }
    self->probes = 0;
    item_finish(item, node, NULL);
    step(self);
}

/* (transfer full): every try is a request of its own, with the same nonce: what arrived twice is shown once */
static DiscordRequest *
make_request(DiscordOutbox *self, Item *item)
{
    DiscordRequest *request;
    switch (item->kind) {
    case KIND_CREATE:
        request = discord_request_new("POST", "/channels/{c}/messages", self->channel_id, "/channels/%s/messages",
                                      self->channel_id);
        request->repeatable = TRUE;
        break;
    case KIND_EDIT:
        request = discord_request_new("PATCH", "/channels/{c}/messages/{m}", self->channel_id,
                                      "/channels/%s/messages/%s", self->channel_id, item->message_id);
        break;
    default:
        request = discord_request_new(item->call->method, item->call->route, item->call->major, "%s", item->call->path);
        request->plain = item->call->plain;
        request->repeatable = item->call->repeatable;
        request->patience_ms = item->call->patience_ms > 0 ? item->call->patience_ms : DISCORD_OUTBOX_CALL_PATIENCE_MS;
    }
    request->body = item->body != NULL ? json_node_ref(item->body) : NULL;
    request->files = item->files != NULL ? g_ptr_array_ref(item->files) : NULL;
    return request;
}

static void
step(DiscordOutbox *self)
{
    if (self->flying != NULL || self->probe != NULL || self->items.head == NULL)
        return;
    Item *item = self->items.head->data;
    self->flying = item;
    discord_rest_send_async(self->rest, make_request(self, item), item->cancellable, on_answered, g_object_ref(self));
}

/* --- callers --- */

static gboolean
on_caller_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Caller *caller = user_data;
    Item *item = caller->item;
    DiscordOutbox *self = item->outbox;
    clear_source(&caller->source);
    if (self->flying == item && item->callers->len == 1) {
        g_cancellable_cancel(item->cancellable);
        return G_SOURCE_REMOVE;
    }
    g_autoptr(GTask) task = g_object_ref(caller->task);
    g_ptr_array_remove(item->callers, caller);
    if (item->callers->len == 0)
        item_finish(item, NULL, NULL);
    g_task_return_error(task, eb_error_new(EB_ERROR_CANCELLED, "discord.cancelled", "the post was cancelled"));
    return G_SOURCE_REMOVE;
}

static void
item_add_caller(Item *item, GTask *task, GCancellable *cancellable)
{
    Caller *caller = g_new0(Caller, 1);
    caller->item = item;
    caller->task = task;
    if (cancellable != NULL) {
        caller->source = g_cancellable_source_new(cancellable);
        g_source_set_callback(caller->source, G_SOURCE_FUNC(on_caller_cancelled), caller, NULL);
        g_source_attach(caller->source, g_main_context_get_thread_default());
    }
    g_ptr_array_add(item->callers, caller);
}

/* FALSE with the reason why nothing is taken. */
static gboolean
takes_more(DiscordOutbox *self, gsize bytes, GCancellable *cancellable, GError **error)
{
    if (g_cancellable_is_cancelled(cancellable))
        eb_set_error(error, EB_ERROR_CANCELLED, "discord.cancelled", "the post was cancelled");
    else if (self->closed)
        eb_set_error(error, EB_ERROR_CANCELLED, "discord.closed", "the connection to Discord is closed");
    else if (self->deleted)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "discord.10003", "thread %s has been deleted", self->channel_id);
    else if (self->lost_until > g_get_monotonic_time())
        eb_set_error(error, EB_ERROR_DENIED, "discord.50001", "the bot may not see %s: let it view the channel",
                     self->channel_id);
    else if (self->items.length >= DISCORD_OUTBOX_MAX)
        eb_set_error(error, EB_ERROR_QUOTA, "discord.outbox-full", "%d posts wait for %s already", DISCORD_OUTBOX_MAX,
                     self->channel_id);
    else if (bytes > DISCORD_OUTBOX_MAX_BYTES - self->bytes)
        eb_set_error(error, EB_ERROR_QUOTA, "discord.outbox-full", "files of %d bytes wait for %s already",
                     DISCORD_OUTBOX_MAX_BYTES, self->channel_id);
    else
        return TRUE;
    return FALSE;
}

/* @item: (transfer full) */
static void
enqueue(DiscordOutbox *self, Item *item, gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback,
        gpointer user_data)
{
    GTask *task = g_task_new(self, NULL, callback, user_data);
    GError *error = NULL;
    g_task_set_source_tag(task, tag);
    item->outbox = self;
    item->callers = g_ptr_array_new_with_free_func(caller_free);
    item->cancellable = g_cancellable_new();
    for (guint i = 0; item->files != NULL && i < item->files->len; i++)
        item->bytes += g_bytes_get_size(((EbChatFile *)g_ptr_array_index(item->files, i))->bytes);
    if (!takes_more(self, item->bytes, cancellable, &error)) {
        item_free(item);
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    item_add_caller(item, task, cancellable);
    g_queue_push_tail(&self->items, item);
    self->bytes += item->bytes;
    step(self);
}

/* No text of an agent's may ping anybody, whichever way it goes out. */
static void
forbid_mentions(JsonObject *body)
{
    if (json_object_has_member(body, "allowed_mentions"))
        return;
    JsonObject *none = json_object_new();
    json_object_set_array_member(none, "parse", json_array_new());
    json_object_set_object_member(body, "allowed_mentions", none);
}

static JsonNode *
body_node(JsonObject *body)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    forbid_mentions(body);
    json_node_take_object(node, body);
    return node;
}

void
discord_outbox_create_async(DiscordOutbox *self, JsonObject *body, GPtrArray *files, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    Item *item = g_new0(Item, 1);
    g_autofree char *random = g_uuid_string_random();
    g_auto(GStrv) groups = g_strsplit(random, "-", -1);
    /* A fresh one for every message, 24 of at most 25 characters: with one that was used before, Discord silently gives
     * back the old message. */
    g_autofree char *nonce = g_strconcat(groups[0], groups[1], groups[4], NULL);
    JsonObject *reference = eb_json_get_object(body, "message_reference");
    item->kind = KIND_CREATE;
    json_object_set_string_member(body, "nonce", nonce);
    json_object_set_boolean_member(body, "enforce_nonce", TRUE);
    if (reference != NULL)
        json_object_set_boolean_member(reference, "fail_if_not_exists", FALSE);
    item->body = body_node(body);
    item->files = files != NULL ? g_ptr_array_ref(files) : NULL;
    enqueue(self, item, discord_outbox_create_async, cancellable, callback, user_data);
}

char *
discord_outbox_create_finish(DiscordOutbox *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_outbox_create_async), NULL);
    g_autoptr(JsonNode) node = g_task_propagate_pointer(G_TASK(result), error);
    if (node == NULL)
        return NULL;
    const char *id = eb_json_get_string(eb_json_node_object(node), "id");
    if (id == NULL)
        eb_set_error(error, EB_ERROR_PROTOCOL, "discord.answer", "Discord told no id of the new message");
    return g_strdup(id);
}

static Item *
find_waiting_edit(DiscordOutbox *self, const char *message_id)
{
    for (GList *at = self->items.tail; at != NULL; at = at->prev) {
        Item *item = at->data;
        if (item != self->flying && item->kind == KIND_EDIT && g_str_equal(item->message_id, message_id))
            return item;
    }
    return NULL;
}

void
discord_outbox_edit_async(DiscordOutbox *self, const char *message_id, JsonObject *body, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    Item *item = find_waiting_edit(self, message_id);
    if (item != NULL) {
        GTask *task = g_task_new(self, NULL, callback, user_data);
        g_task_set_source_tag(task, discord_outbox_edit_async);
        json_node_unref(item->body);
        item->body = body_node(body);
        item_add_caller(item, task, cancellable);
        return;
    }
    item = g_new0(Item, 1);
    item->kind = KIND_EDIT;
    item->message_id = g_strdup(message_id);
    item->body = body_node(body);
    enqueue(self, item, discord_outbox_edit_async, cancellable, callback, user_data);
}

gboolean
discord_outbox_edit_finish(DiscordOutbox *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_outbox_edit_async), FALSE);
    g_autoptr(JsonNode) node = g_task_propagate_pointer(G_TASK(result), error);
    return node != NULL;
}

void
discord_outbox_call_async(DiscordOutbox *self, DiscordRequest *request, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    Item *item = g_new0(Item, 1);
    item->kind = KIND_CALL;
    item->call = request;
    item->body = g_steal_pointer(&request->body);
    item->files = g_steal_pointer(&request->files);
    enqueue(self, item, discord_outbox_call_async, cancellable, callback, user_data);
}

JsonNode *
discord_outbox_call_finish(DiscordOutbox *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_outbox_call_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- the object --- */

void
discord_outbox_resume(DiscordOutbox *self)
{
    g_autoptr(DiscordOutbox) hold = g_object_ref(self);
    self->lost_until = 0;
    self->probes = 0;
    clear_source(&self->probe);
    step(self);
}

guint
discord_outbox_get_queued(DiscordOutbox *self)
{
    return self->items.length;
}

void
discord_outbox_close(DiscordOutbox *self)
{
    g_autoptr(DiscordOutbox) hold = g_object_ref(self);
    g_autoptr(GError) error = eb_error_new(EB_ERROR_CANCELLED, "discord.closed", "the connection to Discord is closed");
    self->closed = TRUE;
    clear_source(&self->probe);
    while (self->items.tail != NULL && self->items.tail->data != self->flying)
        item_finish(self->items.tail->data, NULL, error);
    if (self->flying != NULL)
        g_cancellable_cancel(self->flying->cancellable);
}

static void
discord_outbox_finalize(GObject *object)
{
    DiscordOutbox *self = DISCORD_OUTBOX(object);
    clear_source(&self->probe);
    g_clear_object(&self->rest);
    g_free(self->channel_id);
    G_OBJECT_CLASS(discord_outbox_parent_class)->finalize(object);
}

static void
discord_outbox_class_init(DiscordOutboxClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_outbox_finalize;
    signal_gone = g_signal_new("gone", DISCORD_TYPE_OUTBOX, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                               G_TYPE_STRING);
}

static void
discord_outbox_init(DiscordOutbox *self)
{
    g_queue_init(&self->items);
}

DiscordOutbox *
discord_outbox_new(DiscordRest *rest, const char *channel_id)
{
    DiscordOutbox *self = g_object_new(DISCORD_TYPE_OUTBOX, NULL);
    self->rest = g_object_ref(rest);
    self->channel_id = g_strdup(channel_id);
    return self;
}
