/* SPDX-License-Identifier: MIT */
#include "discord-reactions.h"

#include "discord-message.h"

/* Of one request. */
#define PATIENCE_MS 120000
/* While Discord cannot be reached: pauses between tries, and how long a wish is worth any. */
#define PAUSE_MS 5000
#define PAUSE_MAX_MS 60000
#define WISH_US (3600 * G_TIME_SPAN_SECOND)

typedef struct {
    DiscordReactions *owner; /* (owned) while busy, so that answers find it */
    char *channel_id;
    char *message_id;
    gboolean known;   /* what is there is in shown */
    GPtrArray *shown; /* (element-type utf8): of ours; more than one only after a crash */
    char *wanted;     /* (nullable) */
    gboolean busy;    /* a request is under way, or waits for the next try */
    GSource *timer;   /* (nullable): until that */
    guint pause_ms;
    gint64 until;     /* monotonic: no further try after that */
    GPtrArray *tasks; /* (element-type GTask) */
    GList *link;      /* in order */
} Item;

struct _DiscordReactions {
    GObject parent_instance;
    DiscordRest *rest;
    GHashTable *items; /* (element-type utf8 Item): by message; keys belong to the items */
    GQueue order;      /* (element-type Item): the one set last at the tail */
    gint64 started_ms; /* messages that are younger carry nothing of an earlier run */
};

G_DEFINE_FINAL_TYPE(DiscordReactions, discord_reactions, G_TYPE_OBJECT)

static void step(Item *item);

static void
clear_timer(Item *item)
{
    if (item->timer == NULL)
        return;
    g_source_destroy(item->timer);
    g_clear_pointer(&item->timer, g_source_unref);
}

static void
item_free(gpointer data)
{
    Item *item = data;

    clear_timer(item);
    g_free(item->channel_id);
    g_free(item->message_id);
    g_ptr_array_unref(item->shown);
    g_ptr_array_unref(item->tasks);
    g_free(item->wanted);
    g_free(item);
}

static void
forget(DiscordReactions *self, Item *item)
{
    g_queue_delete_link(&self->order, item->link);
    g_hash_table_remove(self->items, item->message_id);
}

static gboolean
is_harmless(const GError *error)
{
    switch (discord_error_code(error)) {
    case 10003: /* no such channel */
    case 10008: /* no such message */
    case 10014: /* no such emoji */
    case 30010: /* as many different ones as a message can have */
    case 50083: /* the thread is archived */
    case 90001: /* the author of the message blocked us */
        return TRUE;
    default:
        return FALSE;
    }
}

/* @error: (transfer full) (nullable). The item may be gone afterwards. */
static void
finish(Item *item, GError *error)
{
    g_autoptr(DiscordReactions) self = g_steal_pointer(&item->owner);
    g_autoptr(GPtrArray) tasks = g_steal_pointer(&item->tasks);

    item->tasks = g_ptr_array_new_with_free_func(g_object_unref);
    item->busy = FALSE;
    if (error != NULL)
        forget(self, item); /* what is there now is not known */
    for (guint i = 0; i < tasks->len; i++) {
        if (error != NULL)
            g_task_return_error(tasks->pdata[i], g_error_copy(error));
        else
            g_task_return_boolean(tasks->pdata[i], TRUE);
    }
    g_clear_error(&error);
}

static gboolean
on_pause_over(gpointer user_data)
{
    Item *item = user_data;

    clear_timer(item);
    step(item);
    return G_SOURCE_REMOVE;
}

/* TRUE: Discord could not be reached; whatever is there by then is looked at, and tried again. */
static gboolean
try_later(Item *item, const GError *error)
{
    gboolean passes = eb_error_get_retry(error, NULL) || g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE) ||
                      g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT);

    if (!passes || g_get_monotonic_time() >= item->until)
        return FALSE;
    item->known = FALSE;
    g_ptr_array_set_size(item->shown, 0);
    item->timer = g_timeout_source_new(item->pause_ms);
    g_source_set_callback(item->timer, on_pause_over, item, NULL);
    g_source_attach(item->timer, NULL);
    item->pause_ms = MIN(2 * item->pause_ms, PAUSE_MAX_MS);
    return TRUE;
}

/* TRUE: go on. */
static gboolean
take_answer(Item *item, GObject *source, GAsyncResult *result, JsonNode **answer)
{
    GError *error = NULL;

    *answer = discord_rest_send_finish(DISCORD_REST(source), result, &error);
    if (error == NULL)
        return TRUE;
    gboolean harmless = is_harmless(error);
    if (!harmless && !try_later(item, error)) {
        finish(item, error);
        return FALSE;
    }
    g_error_free(error);
    return harmless;
}

static void
on_changed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Item *item = user_data;
    g_autoptr(JsonNode) answer = NULL;

    if (take_answer(item, source, result, &answer))
        step(item);
}

static void
on_looked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Item *item = user_data;
    g_autoptr(JsonNode) answer = NULL;

    if (!take_answer(item, source, result, &answer))
        return;
    JsonArray *list = eb_json_get_array(eb_json_node_object(answer), "reactions");
    guint n = list != NULL ? json_array_get_length(list) : 0;
    for (guint i = 0; i < n && item->shown->len < 20; i++) {
        JsonObject *reaction = eb_json_array_object(list, i);
        const char *name = eb_json_get_string(eb_json_get_object(reaction, "emoji"), "name");
        if (eb_json_get_bool(reaction, "me", FALSE) && name != NULL)
            g_ptr_array_add(item->shown, g_strdup(name));
    }
    item->known = TRUE;
    step(item);
}

static void
change(Item *item, const char *method, const char *emoji)
{
    g_autofree char *escaped = g_uri_escape_string(emoji, NULL, FALSE);
    DiscordRequest *request =
        discord_request_new(method, "/channels/{c}/messages/{m}/reactions", item->channel_id,
                            "/channels/%s/messages/%s/reactions/%s/@me", item->channel_id, item->message_id, escaped);

    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(item->owner->rest, request, NULL, on_changed, item);
}

static void
look(Item *item)
{
    DiscordRequest *request = discord_request_new("GET", "/channels/{c}/messages/{m}", item->channel_id,
                                                  "/channels/%s/messages/%s", item->channel_id, item->message_id);

    request->patience_ms = PATIENCE_MS;
    discord_rest_send_async(item->owner->rest, request, NULL, on_looked, item);
}

/* Takes away first, so that there is never more than one; then puts the new one. */
static void
step(Item *item)
{
    if (!item->known) {
        look(item);
        return;
    }
    for (guint i = 0; i < item->shown->len; i++) {
        if (g_strcmp0(item->shown->pdata[i], item->wanted) == 0)
            continue;
        g_autofree char *emoji = g_strdup(item->shown->pdata[i]);
        g_ptr_array_remove_index(item->shown, i);
        change(item, "DELETE", emoji);
        return;
    }
    if (item->shown->len > 0 || item->wanted == NULL) {
        finish(item, NULL);
        return;
    }
    g_ptr_array_add(item->shown, g_strdup(item->wanted));
    change(item, "PUT", item->wanted);
}

static Item *
item_for(DiscordReactions *self, const char *channel_id, const char *message_id)
{
    Item *item = g_hash_table_lookup(self->items, message_id);

    if (item != NULL) {
        g_queue_unlink(&self->order, item->link);
        g_queue_push_tail_link(&self->order, item->link);
        return item;
    }
    for (GList *at = self->order.head, *next; at != NULL && self->order.length >= DISCORD_REACTIONS_MAX; at = next) {
        next = at->next;
        if (!((Item *)at->data)->busy)
            forget(self, at->data);
    }
    if (self->order.length >= DISCORD_REACTIONS_MAX)
        return NULL;
    item = g_new0(Item, 1);
    item->channel_id = g_strdup(channel_id);
    item->message_id = g_strdup(message_id);
    item->shown = g_ptr_array_new_with_free_func(g_free);
    item->tasks = g_ptr_array_new_with_free_func(g_object_unref);
    item->known = discord_snowflake_ms(message_id) > self->started_ms;
    g_queue_push_tail(&self->order, item);
    item->link = self->order.tail;
    g_hash_table_insert(self->items, item->message_id, item);
    return item;
}

void
discord_reactions_set_async(DiscordReactions *self, const char *channel_id, const char *message_id, const char *emoji,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(DISCORD_IS_REACTIONS(self) && channel_id != NULL && message_id != NULL);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    Item *item = item_for(self, channel_id, message_id);

    g_task_set_source_tag(task, discord_reactions_set_async);
    if (item == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "discord.queue-full", "%d reactions wait already",
                                               DISCORD_REACTIONS_MAX));
        return;
    }
    g_free(item->wanted);
    item->wanted = g_strdup(emoji);
    item->until = g_get_monotonic_time() + WISH_US;
    item->pause_ms = PAUSE_MS;
    g_ptr_array_add(item->tasks, g_steal_pointer(&task));
    if (item->busy)
        return;
    item->busy = TRUE;
    item->owner = g_object_ref(self);
    step(item);
}

gboolean
discord_reactions_set_finish(DiscordReactions *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
discord_reactions_resume(DiscordReactions *self)
{
    for (GList *at = self->order.head; at != NULL; at = at->next) {
        Item *item = at->data;
        if (item->timer == NULL)
            continue;
        clear_timer(item);
        item->pause_ms = PAUSE_MS;
        step(item);
    }
}

void
discord_reactions_close(DiscordReactions *self)
{
    g_autoptr(DiscordReactions) alive = g_object_ref(self);

    for (GList *at = self->order.head, *next; at != NULL; at = next) {
        Item *item = at->data;
        next = at->next;
        if (item->timer == NULL)
            continue;
        clear_timer(item);
        finish(item, eb_error_new(EB_ERROR_CANCELLED, "discord.closed", "the connection to Discord is closed"));
    }
}

guint
discord_reactions_get_size(DiscordReactions *self)
{
    return self->order.length;
}

guint
discord_reactions_get_busy(DiscordReactions *self)
{
    guint busy = 0;

    for (GList *at = self->order.head; at != NULL; at = at->next) {
        const Item *item = at->data;
        busy += item->busy && item->timer == NULL;
    }
    return busy;
}

static void
discord_reactions_finalize(GObject *object)
{
    DiscordReactions *self = DISCORD_REACTIONS(object);

    g_queue_clear(&self->order);
    g_hash_table_unref(self->items);
    g_clear_object(&self->rest);
    G_OBJECT_CLASS(discord_reactions_parent_class)->finalize(object);
}

static void
discord_reactions_class_init(DiscordReactionsClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_reactions_finalize;
}

static void
discord_reactions_init(DiscordReactions *self)
{
    self->items = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, item_free);
    g_queue_init(&self->order);
    self->started_ms = g_get_real_time() / 1000;
}

DiscordReactions *
discord_reactions_new(DiscordRest *rest)
{
    DiscordReactions *self = g_object_new(DISCORD_TYPE_REACTIONS, NULL);

    self->rest = g_object_ref(rest);
    return self;
}
