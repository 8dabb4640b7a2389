/* SPDX-License-Identifier: MIT */
#include "console-show.h"

#include "console-text.h"

#include <string.h>
#include <unistd.h>

struct _ConsoleShow {
    gboolean color;
    EbChatPostKind last; /* kind of the last text */
    gboolean open_line;  /* the last text did not end with a newline */
    GHashTable *tools;   /* (element-type utf8 utf8): id -> last status shown */
};

ConsoleShow *
console_show_new(gboolean color)
{
    ConsoleShow *self = g_new0(ConsoleShow, 1);

    self->color = color;
    self->tools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return self;
}

void
console_show_free(ConsoleShow *self)
{
    g_hash_table_unref(self->tools);
    g_free(self);
}

char *
console_show_break(ConsoleShow *self)
{
    gboolean open_line = self->open_line;

    self->open_line = FALSE;
    return g_strdup(open_line ? "\n" : "");
}

static char *
show_running_text(ConsoleShow *self, EbChatPost *post)
{
    g_autofree char *safe = console_text_clean(post->text, -1);
    g_autofree char *styled =
        console_text_style(safe, post->kind == EB_CHAT_POST_THOUGHT ? CONSOLE_DIM : CONSOLE_PLAIN, self->color);

    if (*safe == '\0')
        return g_strdup("");
    g_autofree char *before = self->last != post->kind || !post->append ? console_show_break(self) : g_strdup("");
    self->last = post->kind;
    self->open_line = !g_str_has_suffix(safe, "\n");
    return g_strconcat(before, styled, NULL);
}

static char *
show_tool(ConsoleShow *self, EbChatPost *post)
{
    const char *id = eb_json_get_string(post->data, "id");
    const char *status = eb_json_get_string(post->data, "status");
    const char *title = eb_json_get_string(post->data, "title");
    gboolean failed = g_strcmp0(status, "failed") == 0 || g_strcmp0(status, "cancelled") == 0;

    if (status == NULL)
        status = "pending";
    if (id != NULL) {
        if (g_strcmp0(g_hash_table_lookup(self->tools, id), status) == 0)
            return g_strdup("");
        if (g_hash_table_size(self->tools) >= CONSOLE_SHOW_MAX_TOOLS)
            g_hash_table_remove_all(self->tools);
        g_hash_table_replace(self->tools, g_strdup(id), g_strdup(status));
    }
    g_autofree char *line = console_text_clean_line(title != NULL && *title != '\0' ? title : post->text, -1);
    g_autofree char *word = console_text_clean_line(status, -1);
    g_autofree char *text = g_strdup_printf("* %s [%s]\n", line, word);
    return console_text_style(text, failed ? CONSOLE_RED : CONSOLE_CYAN, self->color);
}

static char *
show_diff(ConsoleShow *self, EbChatPost *post)
{
    const char *path = eb_json_get_string(post->data, "path");
    const char *diff = eb_json_get_string(post->data, "diff");
    g_autofree char *name = console_text_clean_line(path != NULL ? path : "?", -1);
    g_autofree char *counts =
        g_strdup_printf("%s (+%" G_GINT64_FORMAT " -%" G_GINT64_FORMAT ")\n", name,
                        eb_json_get_int(post->data, "added", 0), eb_json_get_int(post->data, "removed", 0));
    g_autofree char *head = console_text_style(counts, CONSOLE_BOLD, self->color);
    g_autofree char *body = console_text_diff(diff != NULL ? diff : post->text, self->color);

    return g_strconcat(head, body, NULL);
}

static char *
show_plan(ConsoleShow *self, EbChatPost *post)
{
    JsonArray *entries = eb_json_get_array(post->data, "entries");
    g_autoptr(GString) out = g_string_new("plan:\n");
    guint n = entries != NULL ? json_array_get_length(entries) : 0;

    for (guint i = 0; i < n && i < 100; i++) {
        JsonObject *entry = eb_json_array_object(entries, i);
        const char *content = eb_json_get_string(entry, "content");
        const char *status = eb_json_get_string(entry, "status");
        g_autofree char *line = console_text_clean_line(content != NULL ? content : "", -1);
        const char *mark = " ";
        if (g_strcmp0(status, "completed") == 0)
            mark = "x";
        else if (g_strcmp0(status, "in_progress") == 0)
            mark = ">";
        g_string_append_printf(out, "  [%s] %s\n", mark, line);
    }
    return console_text_style(out->str, CONSOLE_DIM, self->color);
}

/* Posts that carry fields alone, in words; "" when there is nothing worth a line. */
static char *
words_for(EbChatPost *post)
{
    const char *instance = eb_json_get_string(post->data, "instance");
    const char *agent = eb_json_get_string(post->data, "agent");
    const char *version = eb_json_get_string(post->data, "version");
    const char *origin = eb_json_get_string(post->data, "origin");
    JsonObject *ms = eb_json_get_object(post->data, "ms");

    if (post->kind == EB_CHAT_POST_GUEST && g_strcmp0(eb_json_get_string(post->data, "state"), "started") == 0)
        return g_strdup_printf("guest %s started in %" G_GINT64_FORMAT " ms (%s)", instance != NULL ? instance : "?",
                               eb_json_get_int(post->data, "ms", 0), origin != NULL ? origin : "?");
    if (post->kind == EB_CHAT_POST_READY)
        return g_strdup_printf("agent %s %s ready after %" G_GINT64_FORMAT " ms", agent != NULL ? agent : "?",
                               version != NULL ? version : "", eb_json_get_int(post->data, "ms", 0));
    if (post->kind == EB_CHAT_POST_END && ms != NULL)
        return g_strdup_printf("turn ended: %s (guest %" G_GINT64_FORMAT " ms, agent %" G_GINT64_FORMAT
                               " ms, turn %" G_GINT64_FORMAT " ms)",
                               eb_json_get_string(post->data, "stop_reason"), eb_json_get_int(ms, "guest", 0),
                               eb_json_get_int(ms, "agent", 0), eb_json_get_int(ms, "turn", 0));
    return g_strdup("");
}

/* What the service itself says: its words are clean, what they quote may not be. */
static char *
show_service(ConsoleShow *self, EbChatPost *post, ConsoleStyle style)
{
    g_autofree char *words = *post->text != '\0' ? g_strdup(post->text) : words_for(post);
    g_autofree char *safe = console_text_clean(words, -1);

    if (*safe == '\0')
        return g_strdup("");
    g_autofree char *line = g_strdup_printf("errand-box: %s%s", safe, g_str_has_suffix(safe, "\n") ? "" : "\n");
    return console_text_style(line, style, self->color);
}

char *
console_show_post(ConsoleShow *self, EbChatPost *post, int *fd, char **before)
{
    char *body = NULL;

    *fd = STDOUT_FILENO;
    *before = NULL;
    switch (post->kind) {
    case EB_CHAT_POST_TEXT:
    case EB_CHAT_POST_THOUGHT:
        return show_running_text(self, post);
    case EB_CHAT_POST_TOOL:
        body = show_tool(self, post);
        break;
    case EB_CHAT_POST_DIFF:
        body = show_diff(self, post);
        break;
    case EB_CHAT_POST_PLAN:
        body = show_plan(self, post);
        break;
    case EB_CHAT_POST_ERROR:
        *fd = STDERR_FILENO;
        body = show_service(self, post, CONSOLE_RED);
        break;
    case EB_CHAT_POST_NOTICE:
    case EB_CHAT_POST_USAGE:
    case EB_CHAT_POST_GUEST:
    case EB_CHAT_POST_READY:
    case EB_CHAT_POST_END:
    case EB_CHAT_POST_PERMISSION:
    case EB_CHAT_POST_ANSWER:
    case EB_CHAT_POST_FILE:
        *fd = STDERR_FILENO;
        body = show_service(self, post, CONSOLE_DIM);
        break;
    case EB_CHAT_POST_BUSY:
        break;
    }
    if (body != NULL && *body != '\0') {
        self->last = post->kind;
        *before = console_show_break(self);
    }
    return body != NULL ? body : g_strdup("");
}

static char *
to_line(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    g_autofree char *text = eb_json_write(node, NULL);
    json_node_unref(node);
    return g_strconcat(text, "\n", NULL);
}

char *
console_show_json(EbChatPost *post, const char *question)
{
    JsonObject *object = json_object_new();
    g_autofree char *text = g_utf8_make_valid(post->text != NULL ? post->text : "", -1);

    json_object_set_string_member(object, "event", eb_chat_post_kind_to_string(post->kind));
    if (*text != '\0')
        json_object_set_string_member(object, "text", text);
    if (post->key != NULL)
        json_object_set_string_member(object, "key", post->key);
    if (question != NULL)
        json_object_set_string_member(object, "id", question);
    if (post->data != NULL) {
        JsonObjectIter iter;
        const char *name;
        JsonNode *value;
        json_object_iter_init(&iter, post->data);
        while (json_object_iter_next(&iter, &name, &value))
            if (!json_object_has_member(object, name))
                json_object_set_member(object, name, json_node_copy(value));
    }
    return to_line(object);
}

char *
console_show_json_question(EbChatQuestion *question, const char *id)
{
    JsonObject *object = json_object_new();
    JsonArray *options = json_array_new();

    /* Scripts that allow whatever their agent asks for do not mean the hosts that it may reach. */
    json_object_set_string_member(object, "event", question->standing ? "question" : "permission");
    json_object_set_string_member(object, "id", id);
    json_object_set_string_member(object, "title", question->text);
    if (question->data != NULL)
        json_object_set_object_member(object, "tool", json_object_ref(question->data));
    for (guint i = 0; i < question->choices->len; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        JsonObject *option = json_object_new();
        json_object_set_string_member(option, "id", choice->id);
        json_object_set_string_member(option, "name", choice->label);
        if (choice->kind != NULL)
            json_object_set_string_member(option, "kind", choice->kind);
        json_array_add_object_element(options, option);
    }
    json_object_set_array_member(object, "options", options);
    return to_line(object);
}

char *
console_show_question(EbChatQuestion *question, gboolean color)
{
    g_autofree char *safe = console_text_clean(question->text, -1);
    g_autofree char *head = console_text_style(safe, CONSOLE_BOLD, color);
    g_autoptr(GString) out = g_string_new(NULL);

    g_string_append_printf(out, "? %s\n", head);
    for (guint i = 0; i < question->choices->len; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        g_autofree char *label = console_text_clean_line(choice->label, -1);
        g_string_append_printf(out, "  %u) %s\n", i + 1, label);
    }
    g_string_append_printf(out, "  1-%u? ", question->choices->len);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

const EbChatChoice *
console_choose(EbChatQuestion *question, const char *line)
{
    guint64 number;
    g_autofree char *word = g_strstrip(g_strdup(line));

    if (*word == '\0')
        return NULL;
    if (g_ascii_string_to_unsigned(word, 10, 1, question->choices->len, &number, NULL))
        return question->choices->pdata[number - 1];
    for (guint i = 0; i < question->choices->len; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        if (strcmp(choice->id, word) == 0 || g_ascii_strcasecmp(choice->label, word) == 0)
            return choice;
    }
    return NULL;
}

const EbChatChoice *
console_choose_kind(EbChatQuestion *question, const char *kind)
{
    const EbChatChoice *best = NULL;

    for (guint i = 0; i < question->choices->len; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        if (choice->kind == NULL || !g_str_has_prefix(choice->kind, kind))
            continue;
        if (g_str_has_suffix(choice->kind, "_once"))
            return choice;
        if (best == NULL)
            best = choice;
    }
    return best;
}
