/* SPDX-License-Identifier: MIT */
#include "core/render/eb-post-words.h"

#include "core/render/eb-done-line.h"
#include "core/render/eb-text-cut.h"
#include "core/render/eb-text-fence.h"

#include <string.h>

#define MAX_PLAN_ENTRIES 50

/* A name from outside as code, where nothing of it means anything. */
static void
append_code(GString *out, const char *before, const char *name)
{
    if (name == NULL || *name == '\0')
        return;
    g_autofree char *plain = g_strdup(name);
    g_strdelimit(plain, "`\r\n", '\'');
    g_string_append_printf(out, "%s%s`%s`", out->len > 0 ? " | " : "", before, plain);
}

static char *
guest_words(JsonObject *data)
{
    const char *state = eb_json_get_string(data, "state");
    if (g_strcmp0(state, "starting") == 0)
        return g_strdup("starting a guest …");
    if (g_strcmp0(state, "started") == 0) {
        g_autofree char *took = eb_done_line_duration(eb_json_get_int(data, "ms", 0));
        return g_strdup_printf("guest started in %s, starting the agent …", took);
    }
    return NULL;
}

static char *
ready_words(JsonObject *data)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *agent = eb_json_get_string(data, "agent");
    const char *version = eb_json_get_string(data, "version");
    append_code(out, "project ", eb_json_get_string(data, "project"));
    if (agent != NULL && *agent != '\0') {
        g_autofree char *both = g_strdup_printf("%s %s", agent, version != NULL ? version : "");
        append_code(out, "agent ", g_strchomp(both));
    }
    append_code(out, "model ", eb_json_get_string(data, "model"));
    if (out->len == 0)
        g_string_append(out, "the agent is ready");
    if (eb_json_get_bool(data, "continued", FALSE))
        g_string_append(out, " | continued");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static char *
plan_words(JsonObject *data)
{
    JsonArray *entries = eb_json_get_array(data, "entries");
    guint n = entries != NULL ? json_array_get_length(entries) : 0;
    if (n == 0)
        return NULL;
    g_autoptr(GString) out = g_string_new("Plan:");
    for (guint i = 0; i < MIN(n, MAX_PLAN_ENTRIES); i++) {
        JsonObject *entry = eb_json_array_object(entries, i);
        const char *content = eb_json_get_string(entry, "content");
        const char *status = eb_json_get_string(entry, "status");
        const char *mark = " ";
        if (g_strcmp0(status, "completed") == 0)
            mark = "x";
        else if (g_strcmp0(status, "in_progress") == 0)
            mark = ">";
        g_string_append_printf(out, "\n`[%s]` %s", mark, content != NULL ? content : "");
    }
    if (n > MAX_PLAN_ENTRIES)
        g_string_append_printf(out, "\n%u more", n - MAX_PLAN_ENTRIES);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static char *
permission_words(JsonObject *data)
{
    static const char *const words[][2] = {
        {"allowed", "allowed"},
        {"rejected", "refused"},
        {"timeout", "refused, as nobody answered in time"},
        {"cancelled", "closed without an answer"},
        {"withdrawn", "no longer asked by the agent"},
    };
    const char *outcome = eb_json_get_string(data, "outcome");
    const char *shown = outcome != NULL ? outcome : "answered";
    for (gsize i = 0; outcome != NULL && i < G_N_ELEMENTS(words); i++)
        if (g_str_equal(outcome, words[i][0]))
            shown = words[i][1];
    g_autoptr(GString) out = g_string_new(NULL);
    append_code(out, "", eb_json_get_string(data, "title"));
    g_string_append_printf(out, "%s%s", out->len > 0 ? ": " : "", shown);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
eb_post_words(const EbChatPost *post)
{
    g_autofree char *words = NULL;
    if (post->data != NULL && post->kind == EB_CHAT_POST_GUEST)
        words = guest_words(post->data);
    else if (post->data != NULL && post->kind == EB_CHAT_POST_READY)
        words = ready_words(post->data);
    else if (post->data != NULL && post->kind == EB_CHAT_POST_PLAN)
        words = plan_words(post->data);
    else if (post->data != NULL && post->kind == EB_CHAT_POST_PERMISSION)
        words = permission_words(post->data);
    else if (post->kind == EB_CHAT_POST_END && (post->text == NULL || *post->text == '\0'))
        words = eb_done_line(post->data);
    if (words == NULL && post->text != NULL && *post->text != '\0')
        words = g_strdup(post->text);
    if (words != NULL && post->kind == EB_CHAT_POST_ERROR) {
        char *marked = g_strconcat("⚠️ ", words, NULL);
        g_free(words);
        words = marked;
    }
    return g_steal_pointer(&words);
}

char *
eb_post_prepare(const char *text, EbTextPrepare prepare)
{
    return prepare != NULL ? prepare(text) : g_strdup(text);
}

/* Bytes of @body that are kept when all but about @units are to go: whole lines, from the begin or the end. */
static const char *
keep_lines(const char *body, gsize units, gboolean keep_end, gsize *kept)
{
    gsize length = strlen(body);
    gsize total = eb_text_units(body, (gssize)length);
    if (total <= units) {
        *kept = length;
        return body;
    }
    if (!keep_end) {
        *kept = units > 0 ? eb_text_cut(body, length, MAX(units, 2), FALSE) : 0;
        const char *newline = memrchr(body, '\n', *kept);
        if (newline != NULL)
            *kept = (gsize)(newline - body) + 1;
        return body;
    }
    gsize skip = eb_text_cut(body, length, MAX(total - units, 2), FALSE);
    const char *newline = memchr(body + skip, '\n', length - skip);
    if (newline != NULL && newline[1] != '\0')
        skip = (gsize)(newline - body) + 1;
    *kept = length - skip;
    return body + skip;
}

static guint
count_lines(const char *text, gsize length)
{
    guint lines = 0;
    for (gsize i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines + (length > 0 && text[length - 1] != '\n');
}

/* With @units of @body. */
static char *
fenced(const char *title, const char *info, const char *body, gsize units, gboolean keep_end, EbTextPrepare prepare)
{
    gsize kept = 0;
    const char *start = keep_lines(body, units, keep_end, &kept);
    g_autofree char *shown = g_strndup(start, kept);
    g_autofree char *marks = eb_text_fence_marks(shown);
    guint all = count_lines(body, strlen(body));
    guint left_out = all - MIN(all, count_lines(shown, kept));
    g_autoptr(GString) out = g_string_new(NULL);
    if (title != NULL && *title != '\0')
        g_string_append_printf(out, "%s\n", title);
    if (kept < strlen(body) && keep_end)
        g_string_append_printf(out, "(the first %u lines are left out)\n", MAX(left_out, 1));
    g_string_append_printf(out, "%s%s\n%s%s%s", marks, info != NULL ? info : "", shown,
                           kept > 0 && shown[kept - 1] == '\n' ? "" : "\n", marks);
    if (kept < strlen(body) && !keep_end)
        g_string_append_printf(out, "\n%u more lines are not shown", MAX(left_out, 1));
    return eb_post_prepare(out->str, prepare);
}

char *
eb_post_words_fenced(const char *title, const char *info, const char *body, guint max_units, gboolean keep_end,
                     EbTextPrepare prepare)
{
    gsize units = eb_text_units(body, -1);
    /* What is prepared may be longer than what it was made of, so that the room is found by trying. */
    for (units = MIN(units, max_units);; units = units * 3 / 4) {
        g_autofree char *text = fenced(title, info, body, units, keep_end, prepare);
        if (eb_text_units(text, -1) <= max_units)
            return g_steal_pointer(&text);
        if (units == 0)
            return eb_text_cut_all(title != NULL ? title : "(too long to be shown)", max_units);
    }
}
