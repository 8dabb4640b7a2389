/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-tools.h"

#include <string.h>

typedef struct {
    EbAcpTool *tool;
    gsize weight;
    guint turn; /* in which it was announced */
    GList link; /* in the order of first mention */
} Entry;

struct _EbAcpTools {
    GHashTable *table; /* id -> Entry; at most EB_ACP_MAX_TOOLS */
    GQueue order;      /* (element-type Entry) oldest first */
    gsize bytes;       /* at most EB_ACP_MAX_TOOL_BYTES and one call */
    guint turn;
};

static void
entry_free(Entry *entry)
{
    eb_acp_tool_free(entry->tool);
    g_free(entry);
}

EbAcpTools *
eb_acp_tools_new(void)
{
    EbAcpTools *self = g_new0(EbAcpTools, 1);

    self->table = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)entry_free);
    g_queue_init(&self->order);
    return self;
}

void
eb_acp_tools_free(EbAcpTools *self)
{
    if (self == NULL)
        return;
    g_hash_table_unref(self->table);
    g_free(self);
}

void
eb_acp_tools_begin_turn(EbAcpTools *self)
{
    self->turn++;
}

static void
forget(EbAcpTools *self, Entry *entry)
{
    self->bytes -= entry->weight;
    g_queue_unlink(&self->order, &entry->link);
    g_hash_table_remove(self->table, entry->tool->id);
}

static void
forget_oldest(EbAcpTools *self)
{
    for (GList *link = self->order.head; link != NULL; link = link->next) {
        Entry *entry = link->data;

        if (eb_acp_tool_is_finished(entry->tool)) {
            forget(self, entry);
            return;
        }
    }
    forget(self, self->order.head->data);
}

static void
weigh(EbAcpTools *self, Entry *entry)
{
    self->bytes -= entry->weight;
    entry->weight = eb_acp_tool_weight(entry->tool);
    self->bytes += entry->weight;
}

static void
lighten_others(EbAcpTools *self, Entry *current)
{
    for (GList *link = self->order.head; link != NULL && self->bytes > EB_ACP_MAX_TOOL_BYTES; link = link->next) {
        Entry *entry = link->data;

        if (entry == current)
            continue;
        eb_acp_tool_lighten(entry->tool);
        weigh(self, entry);
    }
    /* Titles and paths alone can fill the table too. */
    while (self->bytes > EB_ACP_MAX_TOOL_BYTES && self->order.head != self->order.tail)
        forget(self, self->order.head->data == current ? self->order.tail->data : self->order.head->data);
}

static Entry *
insert(EbAcpTools *self, const char *id)
{
    Entry *entry;

    if (g_hash_table_size(self->table) >= EB_ACP_MAX_TOOLS)
        forget_oldest(self);
    entry = g_new0(Entry, 1);
    entry->tool = eb_acp_tool_new(id);
    entry->turn = self->turn;
    entry->link.data = entry;
    g_queue_push_tail_link(&self->order, &entry->link);
    g_hash_table_insert(self->table, entry->tool->id, entry);
    return entry;
}

EbAcpTool *
eb_acp_tools_upsert(EbAcpTools *self, JsonObject *call, gboolean announced)
{
    const char *id = eb_json_get_string(call, "toolCallId");
    const char *status = eb_json_get_string(call, "status");
    Entry *entry;
    g_autofree char *kept = NULL;

    if (id == NULL || id[0] == '\0' || strlen(id) > EB_ACP_MAX_ID) {
        EbAcpTool *tool = eb_acp_tool_new("");

        eb_acp_tool_merge(tool, call);
        return tool;
    }
    entry = g_hash_table_lookup(self->table, id);
    if (entry != NULL && announced && entry->turn != self->turn && eb_acp_tool_is_finished(entry->tool)) {
        forget(self, entry);
        entry = NULL;
    }
    if (entry == NULL)
        entry = insert(self, id);
    else if (announced && (status == NULL || strcmp(status, "pending") == 0))
        kept = g_strdup(entry->tool->status); /* an announcement that comes late does not put the clock back */
    eb_acp_tool_merge(entry->tool, call);
    if (kept != NULL)
        eb_acp_tool_set_status(entry->tool, kept);
    weigh(self, entry);
    if (self->bytes > EB_ACP_MAX_TOOL_BYTES)
        lighten_others(self, entry);
    return eb_acp_tool_copy(entry->tool);
}

GPtrArray *
eb_acp_tools_cancel_open(EbAcpTools *self)
{
    GPtrArray *changed = g_ptr_array_new_with_free_func((GDestroyNotify)eb_acp_tool_free);

    for (GList *link = self->order.head; link != NULL; link = link->next) {
        Entry *entry = link->data;

        if (eb_acp_tool_is_finished(entry->tool))
            continue;
        eb_acp_tool_set_status(entry->tool, "cancelled");
        g_ptr_array_add(changed, eb_acp_tool_copy(entry->tool));
    }
    return changed;
}

guint
eb_acp_tools_get_count(EbAcpTools *self)
{
    return g_hash_table_size(self->table);
}

gsize
eb_acp_tools_get_bytes(EbAcpTools *self)
{
    return self->bytes;
}
