/* SPDX-License-Identifier: MIT */
#include "discord-threads.h"

#include "discord-config.h"

#include <string.h>

typedef struct {
    char *id;
    DiscordPlace place;
    gboolean archived;
    gboolean refused;
    GList *link; /* in order: the one heard of last at the tail */
} Entry;

struct _DiscordThreads {
    char *channel_id;
    GHashTable *entries; /* (element-type utf8 Entry): keys belong to the entries */
    GQueue order;        /* (element-type Entry) */
};

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_free(entry->id);
    g_free(entry);
}

DiscordThreads *
discord_threads_new(const char *channel_id)
{
    DiscordThreads *self = g_new0(DiscordThreads, 1);

    self->channel_id = g_strdup(channel_id);
    self->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, entry_free);
    g_queue_init(&self->order);
    return self;
}

void
discord_threads_free(DiscordThreads *self)
{
    g_queue_clear(&self->order);
    g_hash_table_unref(self->entries);
    g_free(self->channel_id);
    g_free(self);
}

static Entry *
find(DiscordThreads *self, const char *id)
{
    Entry *entry = g_hash_table_lookup(self->entries, id);

    if (entry != NULL && entry->link != self->order.tail) {
        g_queue_unlink(&self->order, entry->link);
        g_queue_push_tail_link(&self->order, entry->link);
    }
    return entry;
}

static void
forget(DiscordThreads *self, Entry *entry)
{
    g_queue_delete_link(&self->order, entry->link);
    g_hash_table_remove(self->entries, entry->id);
}

static Entry *
put(DiscordThreads *self, const char *id, DiscordPlace place)
{
    Entry *entry = find(self, id);

    if (entry == NULL) {
        if (g_hash_table_size(self->entries) >= DISCORD_THREADS_MAX)
            forget(self, g_queue_peek_head(&self->order));
        entry = g_new0(Entry, 1);
        entry->id = g_strdup(id);
        g_queue_push_tail(&self->order, entry);
        entry->link = self->order.tail;
        g_hash_table_insert(self->entries, entry->id, entry);
    }
    entry->place = place;
    entry->refused = FALSE;
    return entry;
}

DiscordPlace
discord_threads_place(DiscordThreads *self, const char *id)
{
    if (g_strcmp0(id, self->channel_id) == 0)
        return DISCORD_PLACE_CHANNEL;
    Entry *entry = id != NULL ? find(self, id) : NULL;
    return entry != NULL ? entry->place : DISCORD_PLACE_UNKNOWN;
}

const char *
discord_threads_note(DiscordThreads *self, JsonObject *channel)
{
    const char *id = eb_json_get_string(channel, "id");
    JsonObject *metadata = eb_json_get_object(channel, "thread_metadata");
    gboolean archived = eb_json_get_bool(metadata, "archived", FALSE);

    if (!discord_is_snowflake(id) || strcmp(id, self->channel_id) == 0)
        return NULL;
    /* Channels have a parent as well: the category they stand in. */
    gboolean ours = metadata != NULL && g_strcmp0(eb_json_get_string(channel, "parent_id"), self->channel_id) == 0;
    Entry *known = find(self, id);
    gboolean changed = known != NULL && known->place == DISCORD_PLACE_THREAD && known->archived != archived;
    put(self, id, ours ? DISCORD_PLACE_THREAD : DISCORD_PLACE_OTHER)->archived = archived;
    if (!changed || !ours)
        return NULL;
    return archived ? "archived" : "open";
}

void
discord_threads_note_all(DiscordThreads *self, JsonArray *channels)
{
    guint n = channels != NULL ? json_array_get_length(channels) : 0;

    for (guint i = 0; i < MIN(n, DISCORD_THREADS_MAX); i++)
        discord_threads_note(self, eb_json_array_object(channels, i));
}

void
discord_threads_claim(DiscordThreads *self, const char *id)
{
    if (discord_is_snowflake(id) && strcmp(id, self->channel_id) != 0)
        put(self, id, DISCORD_PLACE_THREAD);
}

void
discord_threads_refuse(DiscordThreads *self, const char *id)
{
    if (discord_is_snowflake(id) && strcmp(id, self->channel_id) != 0)
        put(self, id, DISCORD_PLACE_OTHER)->refused = TRUE;
}

void
discord_threads_forget_refused(DiscordThreads *self)
{
    for (GList *at = self->order.head, *next; at != NULL; at = next) {
        Entry *entry = at->data;
        next = at->next;
        if (entry->refused)
            forget(self, entry);
    }
}

gboolean
discord_threads_remove(DiscordThreads *self, const char *id)
{
    Entry *entry = id != NULL ? g_hash_table_lookup(self->entries, id) : NULL;

    if (entry == NULL)
        return FALSE;
    gboolean ours = entry->place == DISCORD_PLACE_THREAD;
    forget(self, entry);
    return ours;
}

GPtrArray *
discord_threads_list(DiscordThreads *self)
{
    GPtrArray *ids = g_ptr_array_new_with_free_func(g_free);

    for (GList *at = self->order.head; at != NULL; at = at->next) {
        const Entry *entry = at->data;
        if (entry->place == DISCORD_PLACE_THREAD)
            g_ptr_array_add(ids, g_strdup(entry->id));
    }
    return ids;
}

guint
discord_threads_get_size(DiscordThreads *self)
{
    return g_hash_table_size(self->entries);
}
