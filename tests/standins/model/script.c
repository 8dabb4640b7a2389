/* SPDX-License-Identifier: MIT */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

/* Directives stand on lines of the user's prompt: "@mock WORD REST". Those between two tool calls belong to one round. */

#define MAX_BIG ((gsize)16 * 1024 * 1024)

static char *
absolute(const char *path, const char *root)
{
    return g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(root, path, NULL);
}

static void
append_text(StandinReply *reply, const char *text)
{
    char *joined = reply->text != NULL ? g_strconcat(reply->text, "\n", text, NULL) : g_strdup(text);

    g_free(reply->text);
    reply->text = joined;
}

static char *
big_text(const char *argument)
{
    const gsize size = MIN((gsize)g_ascii_strtoull(argument, NULL, 10), MAX_BIG);
    char *text = g_malloc(size + 1);

    memset(text, 'x', size);
    for (gsize i = 79; i < size; i += 80)
        text[i] = '\n';
    text[size] = '\0';
    return text;
}

/* Carries out what is no tool call. */
static void
apply(StandinReply *reply, const char *word, const char *rest)
{
    if (strcmp(word, "say") == 0) {
        append_text(reply, rest);
    } else if (strcmp(word, "think") == 0) {
        g_free(reply->think);
        reply->think = g_strdup(rest);
    } else if (strcmp(word, "slow") == 0) {
        reply->slow_ms = (guint)MIN(g_ascii_strtoull(rest, NULL, 10), 600000);
    } else if (strcmp(word, "status") == 0) {
        reply->status = (guint)CLAMP(g_ascii_strtoull(rest, NULL, 10), 400, 599);
    } else if (strcmp(word, "cut") == 0) {
        reply->cut = TRUE;
    } else if (strcmp(word, "big") == 0) {
        g_autofree char *text = big_text(rest);

        append_text(reply, text);
    } else {
        g_autofree char *text = g_strdup_printf("(the model stand-in does not know \"@mock %s\")", word);

        append_text(reply, text);
    }
}

static gboolean
call_tool(const StandinRequest *request, StandinReply *reply, const char *word, const char *rest, const char *root)
{
    if (strcmp(word, "write") == 0) {
        g_auto(GStrv) parts = g_strsplit(rest, " ", 2);
        g_autofree char *path = absolute(parts[0] != NULL ? parts[0] : "file.txt", root);
        g_autofree char *content = g_strcompress(parts[0] != NULL && parts[1] != NULL ? parts[1] : "");

        return standin_tool_write(request, reply, path, content);
    }
    return standin_tool_shell(request, reply, rest);
}

static StandinReply *
run_script(const StandinRequest *request, char **lines, const char *root)
{
    StandinReply *reply = g_new0(StandinReply, 1);
    guint tools = 0;

    for (; *lines != NULL; lines++) {
        g_auto(GStrv) parts = NULL;
        const char *word;
        const char *rest;

        g_strstrip(*lines);
        if (!g_str_has_prefix(*lines, "@mock "))
            continue;
        parts = g_strsplit(*lines + strlen("@mock "), " ", 2);
        word = parts[0] != NULL ? parts[0] : "";
        rest = parts[0] != NULL && parts[1] != NULL ? parts[1] : "";
        if (strcmp(word, "write") != 0 && strcmp(word, "shell") != 0) {
            if (tools == request->results)
                apply(reply, word, rest);
            continue;
        }
        if (tools++ < request->results)
            continue;
        if (call_tool(request, reply, word, rest, root))
            return reply;
        append_text(reply, "(no tool for this was offered)");
        return reply;
    }
    if (reply->text == NULL)
        reply->text = g_strdup_printf("Done after %u step%s.", request->results, request->results == 1 ? "" : "s");
    return reply;
}

/* Without a script: a small errand that shows everything, and no pretence about who answers. */
static StandinReply *
run_demo(const StandinRequest *request, const char *root)
{
    StandinReply *reply = g_new0(StandinReply, 1);
    g_autofree char *path = absolute("hello.py", root);
    g_autofree char *command = g_strdup_printf("cd %s && python3 hello.py && ls -l hello.py", root);
    g_autofree char *result = NULL;

    if (request->results == 0) {
        reply->think = g_strdup("A small program first, then a run to see that it works.");
        reply->text = g_strdup("I will write a small program and run it.");
        if (standin_tool_write(request, reply, path,
                               "import os, platform\n\nprint(\"Hello from an errand!\")\n"
                               "print(\"running on\", platform.system(), \"as uid\", os.getuid())\n"
                               "print(\"network devices:\", sorted(os.listdir(\"/sys/class/net\")))\n"))
            return reply;
    } else if (request->results == 1) {
        reply->text = g_strdup("The file is there; now I run it.");
        if (standin_tool_shell(request, reply, command))
            return reply;
    }
    g_free(reply->text);
    result = g_strndup(request->last_result != NULL ? request->last_result : "", 600);
    g_strstrip(result);
    if (request->tools->len == 0)
        reply->text = g_strdup("Small errand");
    else
        reply->text =
            g_strdup_printf("I wrote hello.py and ran it. Its output:\n\n```\n%s\n```\n\nThis answer comes from "
                            "the local model stand-in of errand-box, not from a real model.",
                            result[0] != '\0' ? result : "(none)");
    return reply;
}

StandinReply *
standin_script_run(const StandinRequest *request, const char *root)
{
    const char *prompt = request->users->len > 0 ? g_ptr_array_index(request->users, request->users->len - 1) : "";
    g_auto(GStrv) lines = g_strsplit(prompt, "\n", -1);

    for (char **line = lines; *line != NULL; line++) {
        const char *text = *line;

        while (g_ascii_isspace(*text))
            text++;
        if (g_str_has_prefix(text, "@mock "))
            return run_script(request, lines, root);
    }
    return run_demo(request, root);
}
