/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <string.h>

/* Calls are made in the agent's own terms: with the names and schemas it offered in the request. */

static JsonObject *
properties(const StandinTool *tool)
{
    return eb_json_get_object(tool->schema, "properties");
}

/* (nullable): the first of @names that is a property of @tool. */
static const char *
property(const StandinTool *tool, const char *const *names)
{
    for (; *names != NULL; names++)
        if (eb_json_get_node(properties(tool), *names) != NULL)
            return *names;
    return NULL;
}

/* (nullable): by the order of preference in @names, any case, then by a part of the name. */
static const StandinTool *
find_tool(const StandinRequest *request, const char *const *names, const char *const *parts, const char *const *keys,
          const char *const *more_keys)
{
    for (guint pass = 0; pass < 2; pass++) {
        for (const char *const *name = pass == 0 ? names : parts; *name != NULL; name++) {
            for (guint i = 0; i < request->tools->len; i++) {
                const StandinTool *tool = g_ptr_array_index(request->tools, i);
                g_autofree char *lower = g_ascii_strdown(tool->name, -1);
                const gboolean fits = pass == 0 ? strcmp(lower, *name) == 0 : strstr(lower, *name) != NULL;

                if (fits && property(tool, keys) != NULL && (more_keys == NULL || property(tool, more_keys) != NULL))
                    return tool;
            }
        }
    }
    return NULL;
}

static gboolean
is_required(const StandinTool *tool, const char *name)
{
    JsonArray *required = eb_json_get_array(tool->schema, "required");

    for (guint i = 0; required != NULL && i < json_array_get_length(required); i++)
        if (g_strcmp0(eb_json_array_string(required, i), name) == 0)
            return TRUE;
    return FALSE;
}

/* What else the schema asks for. */
static void
fill_required(const StandinTool *tool, JsonObject *args, const char *purpose)
{
    JsonArray *required = eb_json_get_array(tool->schema, "required");

    for (guint i = 0; required != NULL && i < json_array_get_length(required); i++) {
        const char *name = eb_json_array_string(required, i);
        JsonObject *schema = name != NULL ? eb_json_get_object(properties(tool), name) : NULL;
        const char *type = eb_json_get_string(schema, "type");
        const char *first = eb_json_array_string(eb_json_get_array(schema, "enum"), 0);

        if (name == NULL || json_object_has_member(args, name))
            continue;
        if (g_strcmp0(type, "boolean") == 0)
            json_object_set_boolean_member(args, name, FALSE);
        else if (g_strcmp0(type, "integer") == 0 || g_strcmp0(type, "number") == 0)
            json_object_set_int_member(args, name, 1);
        else if (g_strcmp0(type, "array") == 0)
            json_object_set_array_member(args, name, json_array_new());
        else if (g_strcmp0(type, "object") == 0)
            json_object_set_object_member(args, name, json_object_new());
        else
            json_object_set_string_member(args, name, first != NULL ? first : purpose);
    }
}

static void
take_call(StandinReply *reply, const StandinTool *tool, JsonObject *args, const char *purpose)
{
    fill_required(tool, args, purpose);
    if (eb_json_get_node(properties(tool), "description") != NULL && !json_object_has_member(args, "description"))
        json_object_set_string_member(args, "description", purpose);
    reply->tool = g_strdup(tool->name);
    reply->args = args;
}

gboolean
standin_tool_write(const StandinRequest *request, StandinReply *reply, const char *path, const char *content)
{
    static const char *const names[] = {"write", "write_file", "create", "create_file", "write_to_file", NULL};
    static const char *const parts[] = {"write", "create", NULL};
    static const char *const path_keys[] = {"filePath", "file_path", "path", "absolute_path", "filename", NULL};
    static const char *const content_keys[] = {"content", "file_text", "contents", "text", NULL};
    const StandinTool *tool = find_tool(request, names, parts, path_keys, content_keys);
    g_autofree char *quoted = NULL;
    g_autofree char *text = NULL;
    g_autofree char *command = NULL;
    JsonObject *args;

    if (tool != NULL) {
        args = json_object_new();
        /* A tool of several verbs: the one that makes a file. */
        if (eb_json_get_node(properties(tool), "command") != NULL && is_required(tool, "command"))
            json_object_set_string_member(args, "command", "create");
        json_object_set_string_member(args, property(tool, path_keys), path);
        json_object_set_string_member(args, property(tool, content_keys), content);
        take_call(reply, tool, args, "Write the file");
        return TRUE;
    }
    /* Agents without such a tool (codex) write with their shell. */
    quoted = g_shell_quote(path);
    text = g_shell_quote(content);
    command = g_strdup_printf("printf %%s %s > %s", text, quoted);
    return standin_tool_shell(request, reply, command);
}

gboolean
standin_tool_shell(const StandinRequest *request, StandinReply *reply, const char *command)
{
    static const char *const names[] = {
        "bash", "shell", "run_shell_command", "shell_command", "exec_command", "execute_command", NULL};
    static const char *const parts[] = {"bash", "shell", "exec", "terminal", NULL};
    static const char *const keys[] = {"command", "cmd", "commands", NULL};
    const StandinTool *tool = find_tool(request, names, parts, keys, NULL);
    const char *key;
    JsonObject *args;

    if (tool == NULL)
        return FALSE;
    key = property(tool, keys);
    args = json_object_new();
    if (g_strcmp0(eb_json_get_string(eb_json_get_object(properties(tool), key), "type"), "array") == 0) {
        JsonArray *argv = json_array_new();

        json_array_add_string_element(argv, "bash");
        json_array_add_string_element(argv, "-lc");
        json_array_add_string_element(argv, command);
        json_object_set_array_member(args, key, argv);
    } else {
        json_object_set_string_member(args, key, command);
    }
    take_call(reply, tool, args, "Run the command");
    return TRUE;
}
