/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-tool.h"

#include <string.h>

/* Until an agent names a call. */
#define UNNAMED "tool call"
/* Some agents send content as lists in lists. */
#define MAX_NESTING 4

static void
diff_free(EbAcpDiff *diff)
{
    g_free(diff->path);
    g_free(diff->old_text);
    g_free(diff->new_text);
    g_free(diff);
}

static GPtrArray *
new_diffs(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)diff_free);
}

EbAcpTool *
eb_acp_tool_new(const char *id)
{
    EbAcpTool *tool = g_new0(EbAcpTool, 1);

    tool->id = g_strdup(id);
    tool->title = g_strdup(UNNAMED);
    tool->kind = g_strdup("other");
    tool->status = g_strdup("pending");
    tool->locations = g_ptr_array_new_with_free_func(g_free);
    tool->diffs = new_diffs();
    return tool;
}

static gpointer
copy_string(gconstpointer text, gpointer data)
{
    return g_strdup(text);
}

static gpointer
copy_diff(gconstpointer source, gpointer data)
{
    const EbAcpDiff *diff = source;
    EbAcpDiff *copy = g_new0(EbAcpDiff, 1);

    copy->path = g_strdup(diff->path);
    copy->old_text = g_strdup(diff->old_text);
    copy->new_text = g_strdup(diff->new_text);
    return copy;
}

EbAcpTool *
eb_acp_tool_copy(const EbAcpTool *tool)
{
    EbAcpTool *copy = g_new0(EbAcpTool, 1);

    copy->id = g_strdup(tool->id);
    copy->title = g_strdup(tool->title);
    copy->kind = g_strdup(tool->kind);
    copy->status = g_strdup(tool->status);
    copy->locations = g_ptr_array_copy(tool->locations, (GCopyFunc)copy_string, NULL);
    copy->diffs = g_ptr_array_copy(tool->diffs, (GCopyFunc)copy_diff, NULL);
    copy->output = g_strdup(tool->output);
    copy->raw_input = tool->raw_input != NULL ? json_node_copy(tool->raw_input) : NULL;
    return copy;
}

void
eb_acp_tool_free(EbAcpTool *tool)
{
    if (tool == NULL)
        return;
    g_free(tool->id);
    g_free(tool->title);
    g_free(tool->kind);
    g_free(tool->status);
    g_ptr_array_unref(tool->locations);
    g_ptr_array_unref(tool->diffs);
    g_free(tool->output);
    g_clear_pointer(&tool->raw_input, json_node_unref);
    g_free(tool);
}

static void
set_text(char **place, const char *text, gsize max)
{
    if (text == NULL || text[0] == '\0')
        return;
    g_free(*place);
    *place = eb_acp_cut(text, max);
}

void
eb_acp_tool_set_status(EbAcpTool *tool, const char *status)
{
    static const struct {
        const char *said;
        const char *meant;
    } spellings[] = {
        {"running", "in_progress"}, {"inProgress", "in_progress"}, {"success", "completed"},
        {"done", "completed"},      {"error", "failed"},           {"canceled", "cancelled"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(spellings); i++)
        if (g_strcmp0(spellings[i].said, status) == 0)
            status = spellings[i].meant;
    set_text(&tool->status, status, EB_ACP_MAX_ID);
}

gboolean
eb_acp_tool_is_finished(const EbAcpTool *tool)
{
    static const char *const finished[] = {"completed", "failed", "cancelled", NULL};

    return g_strv_contains(finished, tool->status);
}

static void
merge_locations(EbAcpTool *tool, JsonArray *locations)
{
    const guint n = json_array_get_length(locations);

    g_ptr_array_set_size(tool->locations, 0);
    for (guint i = 0; i < n && tool->locations->len < EB_ACP_MAX_LOCATIONS; i++) {
        JsonObject *location = eb_json_array_object(locations, i);
        g_autofree char *path = eb_acp_cut(eb_json_get_string(location, "path"), EB_ACP_MAX_TITLE);
        const gint64 line = eb_json_get_int(location, "line", -1);

        if (path == NULL)
            continue;
        if (line > 0)
            g_ptr_array_add(tool->locations, g_strdup_printf("%s:%" G_GINT64_FORMAT, path, line));
        else
            g_ptr_array_add(tool->locations, g_steal_pointer(&path));
    }
}

/* @output may grow one byte beyond its bound, so that take_output() sees that something was left out. */
static void
append_output(GString *output, const char *text)
{
    if (text != NULL && output->len <= EB_ACP_MAX_OUTPUT)
        g_string_append_len(output, text, (gssize)MIN(strlen(text), EB_ACP_MAX_OUTPUT + 1 - output->len));
}

static void
add_diff(GPtrArray *diffs, JsonObject *entry)
{
    EbAcpDiff *diff;

    if (diffs->len >= EB_ACP_MAX_DIFFS)
        return;
    diff = g_new0(EbAcpDiff, 1);
    diff->path = eb_acp_cut(eb_json_get_string(entry, "path"), EB_ACP_MAX_TITLE);
    diff->old_text = eb_acp_cut(eb_json_get_string(entry, "oldText"), EB_ACP_MAX_DIFF_TEXT);
    diff->new_text = eb_acp_cut(eb_json_get_string(entry, "newText"), EB_ACP_MAX_DIFF_TEXT);
    if (diff->path == NULL)
        diff->path = g_strdup("");
    if (diff->new_text == NULL)
        diff->new_text = g_strdup("");
    g_ptr_array_add(diffs, diff);
}

static void
collect_content(JsonNode *node, GString *output, GPtrArray *diffs, guint nesting)
{
    JsonObject *entry = eb_json_node_object(node);

    if (nesting > MAX_NESTING)
        return;
    if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);

        for (guint i = 0; i < json_array_get_length(array); i++)
            collect_content(json_array_get_element(array, i), output, diffs, nesting + 1);
    } else if (entry != NULL && g_strcmp0(eb_json_get_string(entry, "type"), "diff") == 0) {
        add_diff(diffs, entry);
    } else if (entry != NULL && eb_json_get_node(entry, "content") != NULL) {
        collect_content(eb_json_get_node(entry, "content"), output, diffs, nesting + 1);
    } else {
        const char *text = eb_json_get_string(entry, "text");

        if (entry == NULL && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
            text = json_node_get_string(node);
        if (text != NULL && text[0] != '\0' && output->len > 0 && output->str[output->len - 1] != '\n')
            append_output(output, "\n");
        append_output(output, text);
    }
}

/* (transfer none) (nullable): the text in a rawOutput, whose shape is the agent's own. */
static const char *
raw_output_text(JsonNode *node)
{
    static const char *const members[] = {
        "formatted_output", "aggregated_output", "output", "stdout", "content", "text", "error", "stderr"};
    JsonObject *object = eb_json_node_object(node);

    if (node != NULL && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING)
        return json_node_get_string(node);
    for (gsize i = 0; object != NULL && i < G_N_ELEMENTS(members); i++) {
        const char *text = eb_json_get_string(object, members[i]);

        if (text != NULL && text[0] != '\0')
            return text;
    }
    return NULL;
}

static void
take_output(EbAcpTool *tool, GString *output)
{
    g_free(tool->output);
    tool->output = output->len > 0 ? eb_acp_cut(output->str, EB_ACP_MAX_OUTPUT) : NULL;
}

/* Terminals that the client never made: codex tells their output in _meta, piece by piece. */
static void
merge_terminal(EbAcpTool *tool, JsonObject *call)
{
    static const char *const members[] = {"terminal_output_delta", "terminal_output"};
    JsonObject *meta = eb_json_get_object(call, "_meta");

    for (gsize i = 0; i < G_N_ELEMENTS(members); i++) {
        const char *data = eb_json_get_string(eb_json_get_object(meta, members[i]), "data");
        g_autoptr(GString) output = NULL;

        if (data == NULL || (tool->output != NULL && g_str_has_suffix(tool->output, EB_ACP_CUT_MARK)))
            continue;
        output = g_string_new(tool->output);
        append_output(output, data);
        take_output(tool, output);
    }
}

static void
merge_content(EbAcpTool *tool, JsonObject *call)
{
    JsonNode *content = eb_json_get_node(call, "content");
    const char *raw = raw_output_text(eb_json_get_node(call, "rawOutput"));
    g_autoptr(GString) output = g_string_new(NULL);

    if (content != NULL && !JSON_NODE_HOLDS_NULL(content)) {
        g_autoptr(GPtrArray) diffs = new_diffs();

        collect_content(content, output, diffs, 0);
        /* An empty list beside a known diff is an agent that repeats itself, not one that takes it back. */
        if (diffs->len > 0) {
            g_ptr_array_unref(tool->diffs);
            tool->diffs = g_steal_pointer(&diffs);
        }
        if (output->len > 0)
            take_output(tool, output);
    }
    /* A command's own output is better than the agent's picture of it, which may come in a Markdown fence. */
    if (raw != NULL && (output->len == 0 || strcmp(tool->kind, "execute") == 0)) {
        g_string_truncate(output, 0);
        append_output(output, raw);
        take_output(tool, output);
    }
    merge_terminal(tool, call);
}

void
eb_acp_tool_merge(EbAcpTool *tool, JsonObject *call)
{
    JsonNode *input = eb_json_get_node(call, "rawInput");
    JsonObject *input_object = eb_json_node_object(input);

    if (strcmp(tool->title, UNNAMED) == 0)
        set_text(&tool->title, eb_json_get_string(call, "name"), EB_ACP_MAX_TITLE);
    set_text(&tool->title, eb_json_get_string(call, "title"), EB_ACP_MAX_TITLE);
    set_text(&tool->kind, eb_json_get_string(call, "kind"), EB_ACP_MAX_ID);
    eb_acp_tool_set_status(tool, eb_json_get_string(call, "status"));
    if (eb_json_get_array(call, "locations") != NULL)
        merge_locations(tool, eb_json_get_array(call, "locations"));
    merge_content(tool, call);
    /* Permission requests repeat the call with an empty input. */
    if (input == NULL || JSON_NODE_HOLDS_NULL(input) ||
        (input_object != NULL && json_object_get_size(input_object) == 0 && tool->raw_input != NULL))
        return;
    g_clear_pointer(&tool->raw_input, json_node_unref);
    tool->raw_input = eb_acp_json_bounded_copy(input, EB_ACP_MAX_RAW);
}

static gsize
text_weight(const char *text)
{
    return text != NULL ? strlen(text) + 16 : 0;
}

gsize
eb_acp_tool_weight(const EbAcpTool *tool)
{
    gsize weight = sizeof *tool + 256 + text_weight(tool->id) + text_weight(tool->title) + text_weight(tool->output);

    for (guint i = 0; i < tool->locations->len; i++)
        weight += text_weight(g_ptr_array_index(tool->locations, i));
    for (guint i = 0; i < tool->diffs->len; i++) {
        const EbAcpDiff *diff = g_ptr_array_index(tool->diffs, i);

        weight += sizeof *diff + text_weight(diff->path) + text_weight(diff->old_text) + text_weight(diff->new_text);
    }
    return weight + eb_acp_json_weight(tool->raw_input, 2 * EB_ACP_MAX_RAW);
}

void
eb_acp_tool_lighten(EbAcpTool *tool)
{
    g_clear_pointer(&tool->output, g_free);
    g_ptr_array_set_size(tool->diffs, 0);
    g_clear_pointer(&tool->raw_input, json_node_unref);
}
