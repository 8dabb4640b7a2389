/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

static void
tool_free(StandinTool *tool)
{
    g_free(tool->name);
    g_clear_pointer(&tool->schema, json_object_unref);
    g_free(tool);
}

StandinRequest *
standin_request_new(void)
{
    StandinRequest *self = g_new0(StandinRequest, 1);

    self->tools = g_ptr_array_new_with_free_func((GDestroyNotify)tool_free);
    self->users = g_ptr_array_new_with_free_func(g_free);
    return self;
}

void
standin_request_free(StandinRequest *self)
{
    g_free(self->model);
    g_ptr_array_unref(self->tools);
    g_ptr_array_unref(self->users);
    g_free(self->last_result);
    g_free(self);
}

void
standin_request_add_user(StandinRequest *self, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    g_ptr_array_add(self->users, g_strdup(text));
    self->results = 0;
    g_clear_pointer(&self->last_result, g_free);
}

void
standin_request_add_result(StandinRequest *self, const char *text)
{
    self->results++;
    g_free(self->last_result);
    self->last_result = g_strdup(text != NULL ? text : "");
}

void
standin_request_add_tool(StandinRequest *self, const char *name, JsonObject *schema)
{
    StandinTool *tool;

    if (name == NULL)
        return;
    tool = g_new0(StandinTool, 1);
    tool->name = g_strdup(name);
    tool->schema = schema != NULL ? json_object_ref(schema) : NULL;
    g_ptr_array_add(self->tools, tool);
}

void
standin_reply_free(StandinReply *self)
{
    g_free(self->think);
    g_free(self->text);
    g_free(self->tool);
    g_clear_pointer(&self->args, json_object_unref);
    g_free(self);
}

char *
standin_json_text(JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

    json_node_set_object(node, object);
    return eb_json_write(node, NULL);
}

void
standin_pieces_event(StandinPieces *pieces, const char *name, JsonObject *data)
{
    g_autofree char *text = standin_json_text(data);

    if (name != NULL)
        g_ptr_array_add(pieces, g_strdup_printf("event: %s\ndata: %s\n\n", name, text));
    else
        g_ptr_array_add(pieces, g_strdup_printf("data: %s\n\n", text));
    json_object_unref(data);
}

void
standin_pieces_pause(StandinPieces *pieces)
{
    g_ptr_array_add(pieces, NULL);
}

char **
standin_split_text(const StandinReply *reply)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    const char *at = reply->text != NULL ? reply->text : "";

    while (*at != '\0') {
        const char *space = reply->slow_ms > 0 ? strchr(at, ' ') : NULL;
        g_autofree char *word = space != NULL ? g_strndup(at, (gsize)(space + 1 - at)) : g_strdup(at);

        g_strv_builder_add(builder, word);
        at += strlen(word);
    }
    return g_strv_builder_end(builder);
}
