/* SPDX-License-Identifier: MIT */
#include "core/render/eb-renderer.h"

#include "core/acp/eb-acp-types.h"
#include "core/render/eb-diff.h"
#include "core/render/eb-text-fence.h"

#include <string.h>

/* What was shown of tool calls; forgotten as a whole beyond this, at the cost of a repeated line. */
#define MAX_SHOWN 4096
#define MAX_LOCATIONS 20
#define MAX_TITLE_BYTES 300
#define MAX_OUTPUT_BYTES 4096
#define MAX_PLAN_ENTRIES 50
#define MAX_PLAN_BYTES 500

struct _EbRenderer {
    char *thread;
    EbRedactSet *secrets;
    EbRedactor *stream; /* of the text under way */
    EbChatPostKind span_kind;
    char *span_key; /* (nullable): no text under way */
    guint spans;
    GHashTable *shown; /* (utf8 tool id -> utf8 what was shown), at most MAX_SHOWN */
    GHashTable *diffs; /* (utf8 "id path digest"), at most MAX_SHOWN */
};

EbRenderer *
eb_renderer_new(const char *thread, EbRedactSet *secrets)
{
    EbRenderer *self = g_new0(EbRenderer, 1);
    self->thread = g_strdup(thread);
    self->secrets = eb_redact_set_ref(secrets);
    self->stream = eb_redactor_new(secrets);
    self->shown = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->diffs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return self;
}

void
eb_renderer_free(EbRenderer *self)
{
    if (self == NULL)
        return;
    g_free(self->thread);
    g_free(self->span_key);
    eb_redactor_free(self->stream);
    eb_redact_set_unref(self->secrets);
    g_hash_table_unref(self->shown);
    g_hash_table_unref(self->diffs);
    g_free(self);
}

/* Cut at a character, marked. */
static char *
cut(char *text, gsize max)
{
    gsize length = strlen(text);
    if (length <= max)
        return text;
    gsize end = max;
    while (end > 0 && ((guchar)text[end] & 0xc0) == 0x80)
        end--;
    char *result = g_strdup_printf("%.*s…", (int)end, text);
    g_free(text);
    return result;
}

/* Masked. A secret that was cut at a bound ends behind the mark of the cut no more than at the end of a text. */
static char *
mask(EbRenderer *self, const char *text)
{
    if (!g_str_has_suffix(text, EB_ACP_CUT_MARK))
        return eb_redact_set_mask(self->secrets, text, -1);
    g_autofree char *masked = eb_redact_set_mask(self->secrets, text, (gssize)(strlen(text) - strlen(EB_ACP_CUT_MARK)));
    return g_strconcat(masked, EB_ACP_CUT_MARK, NULL);
}

/* Masked, on one line, without control characters, cut. */
static char *
one_line(EbRenderer *self, const char *text, gsize max)
{
    g_autofree char *masked = mask(self, text != NULL ? text : "");
    g_autofree char *valid = g_utf8_make_valid(masked, -1);
    g_autoptr(GString) out = g_string_sized_new(strlen(valid));
    gboolean space = FALSE;
    for (const char *at = valid; *at != '\0' && out->len <= max; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (g_unichar_isspace(c) || g_unichar_iscntrl(c) || c == 0x2028 || c == 0x2029) {
            space = out->len > 0;
            continue;
        }
        if (space)
            g_string_append_c(out, ' ');
        space = FALSE;
        g_string_append_unichar(out, c);
    }
    return cut(g_string_free(g_steal_pointer(&out), FALSE), max);
}

static void
set_string(JsonObject *object, const char *member, const char *value)
{
    if (value != NULL)
        json_object_set_string_member(object, member, value);
}

char *
eb_renderer_tool_line(EbRenderer *self, const EbAcpTool *tool)
{
    g_autofree char *title = one_line(self, tool->title, MAX_TITLE_BYTES);
    g_autofree char *kind = one_line(self, tool->kind, 32);
    g_strdelimit(title, "`", '\'');
    g_strdelimit(kind, "`", '\'');
    const char *failed = g_strcmp0(tool->status, "failed") == 0 ? " (failed)" : "";
    if (*title == '\0')
        return g_strdup_printf("🔧 `%s`%s", *kind != '\0' ? kind : "tool", failed);
    return g_strdup_printf("🔧 `%s` `%s`%s", *kind != '\0' ? kind : "tool", title, failed);
}

JsonObject *
eb_renderer_tool_data(EbRenderer *self, const EbAcpTool *tool)
{
    JsonObject *data = json_object_new();
    g_autofree char *id = one_line(self, tool->id, MAX_TITLE_BYTES);
    g_autofree char *title = one_line(self, tool->title, MAX_TITLE_BYTES);
    g_autofree char *kind = one_line(self, tool->kind, 32);
    g_autofree char *status = one_line(self, tool->status, 32);
    set_string(data, "id", id);
    set_string(data, "title", title);
    set_string(data, "kind", kind);
    set_string(data, "status", status);
    JsonArray *locations = json_array_new();
    for (guint i = 0; tool->locations != NULL && i < tool->locations->len && i < MAX_LOCATIONS; i++) {
        g_autofree char *location = one_line(self, tool->locations->pdata[i], MAX_TITLE_BYTES);
        json_array_add_string_element(locations, location);
    }
    json_object_set_array_member(data, "locations", locations);
    /* Of a call under way it would be a new post for every line of it. */
    gboolean over = g_strcmp0(tool->status, "failed") == 0 || g_strcmp0(tool->status, "completed") == 0;
    if (tool->output != NULL && over) {
        g_autofree char *valid = g_utf8_make_valid(tool->output, -1);
        g_autofree char *output = cut(mask(self, valid), MAX_OUTPUT_BYTES);
        json_object_set_string_member(data, "output", output);
    }
    return data;
}

/* --- texts --- */

static void
push_piece(EbRenderer *self, const char *text, gboolean final, GPtrArray *posts)
{
    if (*text == '\0' && !final)
        return;
    EbChatPost *post = eb_chat_post_new(self->thread, self->span_kind, text);
    post->key = g_strdup(self->span_key);
    post->append = TRUE;
    post->final = final;
    g_ptr_array_add(posts, post);
}

void
eb_renderer_end_span(EbRenderer *self, GPtrArray *posts)
{
    if (self->span_key == NULL)
        return;
    g_autofree char *rest = eb_redactor_flush(self->stream);
    push_piece(self, rest, TRUE, posts);
    g_clear_pointer(&self->span_key, g_free);
}

static void
add_text(EbRenderer *self, EbChatPostKind kind, const char *text, GPtrArray *posts)
{
    if (text == NULL || *text == '\0')
        return;
    if (self->span_key != NULL && self->span_kind != kind)
        eb_renderer_end_span(self, posts);
    if (self->span_key == NULL) {
        self->span_kind = kind;
        self->span_key = g_strdup_printf("%s-%u", eb_chat_post_kind_to_string(kind), ++self->spans);
    }
    g_autofree char *piece = eb_redactor_feed(self->stream, text);
    push_piece(self, piece, FALSE, posts);
}

/* --- tool calls --- */

EbChatPost *
eb_renderer_diff_post(EbRenderer *self, const EbAcpDiff *diff)
{
    guint added = 0;
    guint removed = 0;
    g_autofree char *before = diff->old_text != NULL ? mask(self, diff->old_text) : NULL;
    g_autofree char *after = mask(self, diff->new_text != NULL ? diff->new_text : "");
    g_autofree char *raw = eb_diff_unified(before, after, NULL, &added, &removed);
    if (added == 0 && removed == 0)
        return NULL;
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    g_autofree char *path = one_line(self, diff->path, MAX_TITLE_BYTES);
    g_autofree char *marks = eb_text_fence_marks(text);
    g_autofree char *name = g_strdelimit(g_strdup(path), "`", '\'');
    g_autofree char *shown = g_strdup_printf("`%s` +%u −%u\n%sdiff\n%s%s", name, added, removed, marks, text, marks);
    EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_DIFF, shown);
    post->final = TRUE;
    post->data = json_object_new();
    json_object_set_string_member(post->data, "path", path);
    json_object_set_string_member(post->data, "diff", text);
    json_object_set_int_member(post->data, "added", added);
    json_object_set_int_member(post->data, "removed", removed);
    return post;
}

static void
add_diffs(EbRenderer *self, const EbAcpTool *tool, GPtrArray *posts)
{
    for (guint i = 0; tool->diffs != NULL && i < tool->diffs->len && i < MAX_LOCATIONS; i++) {
        const EbAcpDiff *diff = tool->diffs->pdata[i];
        g_autofree char *digest =
            g_compute_checksum_for_string(G_CHECKSUM_SHA256, diff->new_text != NULL ? diff->new_text : "", -1);
        g_autofree char *key = g_strdup_printf("%s %s %s", tool->id, diff->path, digest);
        if (g_hash_table_contains(self->diffs, key))
            continue;
        if (g_hash_table_size(self->diffs) >= MAX_SHOWN)
            g_hash_table_remove_all(self->diffs);
        g_hash_table_add(self->diffs, g_steal_pointer(&key));
        EbChatPost *post = eb_renderer_diff_post(self, diff);
        if (post != NULL)
            g_ptr_array_add(posts, post);
    }
}

static void
add_tool(EbRenderer *self, const EbAcpTool *tool, GPtrArray *posts)
{
    if (tool == NULL || tool->id == NULL)
        return;
    g_autoptr(JsonObject) data = eb_renderer_tool_data(self, tool);
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    json_node_set_object(node, data);
    g_autofree char *sign = eb_json_write(node, NULL);
    if (g_strcmp0(g_hash_table_lookup(self->shown, tool->id), sign) != 0) {
        if (g_hash_table_size(self->shown) >= MAX_SHOWN)
            g_hash_table_remove_all(self->shown);
        g_hash_table_replace(self->shown, g_strdup(tool->id), g_steal_pointer(&sign));
        eb_renderer_end_span(self, posts);
        g_autofree char *line = eb_renderer_tool_line(self, tool);
        EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_TOOL, line);
        /* Ids are the agent's and may be long; their digest is a key every transport can keep. */
        g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, tool->id, -1);
        post->key = g_strdup_printf("tool-%.16s", digest);
        post->final = g_strcmp0(tool->status, "completed") == 0 || g_strcmp0(tool->status, "failed") == 0 ||
                      g_strcmp0(tool->status, "cancelled") == 0;
        post->data = g_steal_pointer(&data);
        g_ptr_array_add(posts, post);
    }
    if (g_strcmp0(tool->status, "completed") == 0)
        add_diffs(self, tool, posts);
}

/* --- the rest --- */

static void
add_plan(EbRenderer *self, EbAcpUpdate *update, GPtrArray *posts)
{
    JsonArray *entries = eb_json_get_array(update->raw, "entries");
    if (entries == NULL)
        return;
    JsonArray *shown = json_array_new();
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < json_array_get_length(entries) && i < MAX_PLAN_ENTRIES; i++) {
        JsonObject *entry = eb_json_array_object(entries, i);
        if (entry == NULL)
            continue;
        JsonObject *copy = json_object_new();
        g_autofree char *content = one_line(self, eb_json_get_string(entry, "content"), MAX_PLAN_BYTES);
        g_autofree char *priority = one_line(self, eb_json_get_string(entry, "priority"), 32);
        g_autofree char *status = one_line(self, eb_json_get_string(entry, "status"), 32);
        json_object_set_string_member(copy, "content", content);
        json_object_set_string_member(copy, "priority", priority);
        json_object_set_string_member(copy, "status", status);
        json_array_add_object_element(shown, copy);
        gboolean done = g_str_equal(status, "completed");
        g_string_append_printf(text, "%s[%s] %s", text->len > 0 ? "\n" : "", done ? "x" : " ", content);
    }
    eb_renderer_end_span(self, posts);
    EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_PLAN, text->str);
    post->key = g_strdup("plan");
    post->data = json_object_new();
    json_object_set_array_member(post->data, "entries", shown);
    g_ptr_array_add(posts, post);
}

static void
add_usage(EbRenderer *self, EbAcpUpdate *update, GPtrArray *posts)
{
    EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_USAGE, "");
    post->key = g_strdup("usage");
    post->data = json_object_new();
    if (update->used >= 0)
        json_object_set_int_member(post->data, "used", update->used);
    if (update->size >= 0)
        json_object_set_int_member(post->data, "size", update->size);
    if (update->cost >= 0) {
        g_autofree char *currency = one_line(self, update->currency, 16);
        json_object_set_double_member(post->data, "cost", update->cost);
        set_string(post->data, "currency", *currency != '\0' ? currency : NULL);
    }
    g_ptr_array_add(posts, post);
}

static void
add_notice(EbRenderer *self, EbAcpUpdate *update, GPtrArray *posts)
{
    g_autofree char *text = one_line(self, update->text, MAX_OUTPUT_BYTES);
    if (*text == '\0')
        return;
    eb_renderer_end_span(self, posts);
    EbChatPost *post = eb_chat_post_new(self->thread, EB_CHAT_POST_NOTICE, text);
    post->final = TRUE;
    g_ptr_array_add(posts, post);
}

void
eb_renderer_update(EbRenderer *self, EbAcpUpdate *update, GPtrArray *posts)
{
    if (update->replay)
        return;
    switch (update->kind) {
    case EB_ACP_UPDATE_TEXT:
        add_text(self, EB_CHAT_POST_TEXT, update->text, posts);
        break;
    case EB_ACP_UPDATE_THOUGHT:
        add_text(self, EB_CHAT_POST_THOUGHT, update->text, posts);
        break;
    case EB_ACP_UPDATE_TOOL:
        add_tool(self, update->tool, posts);
        break;
    case EB_ACP_UPDATE_PLAN:
        add_plan(self, update, posts);
        break;
    case EB_ACP_UPDATE_USAGE:
        add_usage(self, update, posts);
        break;
    case EB_ACP_UPDATE_NOTICE:
        add_notice(self, update, posts);
        break;
    case EB_ACP_UPDATE_USER:
    case EB_ACP_UPDATE_COMMANDS:
    case EB_ACP_UPDATE_MODE:
    case EB_ACP_UPDATE_CONFIG:
    case EB_ACP_UPDATE_INFO:
    case EB_ACP_UPDATE_OTHER:
        break;
    }
}
