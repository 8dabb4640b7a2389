/* SPDX-License-Identifier: MIT */
#include "discord-question.h"

#include "discord-clean.h"
#include "discord-post.h"
#include "discord-text.h"

#include <string.h>

/* Discord's limits: a message's characters, a button's label, and the numbers of components and of their colours. */
#define MAX_CONTENT 2000
#define MAX_LABEL 80
#define TYPE_ROW 1
#define TYPE_BUTTON 2
#define STYLE_GREY 2
#define STYLE_GREEN 3
#define STYLE_RED 4
/* Flag of a message: no previews of its links. */
#define SUPPRESS_EMBEDS 4
#define ROW 5
/* UTF-16 units of a choice in the list, of the whole list, and of the text when there is a list below it. */
#define MAX_CHOICE 100
#define MAX_LIST 1000
#define MAX_TEXT 700
/* Fewer units than that of a command or a change say nothing. */
#define MIN_BLOCK 80
/* Units of "… and 4294967295 more changes" on a line of its own. */
#define MORE_CHANGES 32
#define HINT "\nPress a button, or answer with the number."
#define HINT_LIST "\nAnswer with the number."

static guint
units(const char *text)
{
    guint n = 0;

    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p))
        n += g_utf8_get_char(p) > 0xffff ? 2 : 1;
    return n;
}

/* (transfer full): @text as Markdown that is safe to show, in about @max units. */
static char *
safe_text(const char *text, guint max)
{
    g_autofree char *prepared = discord_text_prepare(text != NULL ? text : "");
    g_autofree char *cut = NULL;

    /* A block of code would take in what comes below: such a text is shown as it was written. */
    if (strstr(prepared, "```") != NULL || strstr(prepared, "~~~") != NULL) {
        cut = discord_clean_cut(text, max / 2);
        return discord_text_escape(cut);
    }
    cut = discord_clean_cut(prepared, max);
    /* A cut could have taken half of what kept something harmless. */
    return strcmp(cut, prepared) == 0 ? g_steal_pointer(&cut) : discord_text_prepare(cut);
}

static int
style_of(const char *kind)
{
    if (kind != NULL && g_str_has_prefix(kind, "allow"))
        return STYLE_GREEN;
    return kind != NULL && g_str_has_prefix(kind, "reject") ? STYLE_RED : STYLE_GREY;
}

/* (transfer full): one line of plain characters, never empty. */
static char *
label_of(const EbChatChoice *choice, guint number, guint max)
{
    g_autofree char *clean = discord_clean(choice->label != NULL ? choice->label : "");

    g_strstrip(g_strdelimit(clean, "\n\t", ' '));
    return *clean != '\0' ? discord_clean_cut(clean, max) : g_strdup_printf("%u", number);
}

static JsonArray *
make_rows(EbChatQuestion *question, const char *id)
{
    JsonArray *rows = json_array_new();
    JsonArray *buttons = NULL;

    for (guint i = 0; i < question->choices->len && i < DISCORD_QUESTION_MAX_BUTTONS; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        g_autofree char *label = label_of(choice, i + 1, MAX_LABEL);
        g_autofree char *custom_id = g_strdup_printf("q:%s:%u", id, i);
        JsonObject *button = json_object_new();
        if (i % ROW == 0) {
            JsonObject *row = json_object_new();
            buttons = json_array_new();
            json_object_set_int_member(row, "type", TYPE_ROW);
            json_object_set_array_member(row, "components", buttons);
            json_array_add_object_element(rows, row);
        }
        json_object_set_int_member(button, "type", TYPE_BUTTON);
        json_object_set_int_member(button, "style", style_of(choice->kind));
        json_object_set_string_member(button, "label", label);
        json_object_set_string_member(button, "custom_id", custom_id);
        json_array_add_object_element(buttons, button);
    }
    return rows;
}

/* (transfer full): "1. Allow once\n2. ...": what does not fit is counted, never left out silently. */
static char *
make_list(EbChatQuestion *question)
{
    GString *list = g_string_new(NULL);
    guint used = 0;

    for (guint i = 0; i < question->choices->len; i++) {
        g_autofree char *label = label_of(question->choices->pdata[i], i + 1, MAX_CHOICE);
        g_autofree char *escaped = discord_text_escape(label);
        g_autofree char *line = g_strdup_printf("\n%u. %s", i + 1, escaped);
        used += units(line);
        if (used > MAX_LIST) {
            g_string_append_printf(list, "\n… and %u more", question->choices->len - i);
            break;
        }
        g_string_append(list, line);
    }
    return g_string_free(list, FALSE);
}

static guint
count_lines(const char *text)
{
    guint n = 0;

    for (const char *c = text; *c != '\0'; c++)
        n += *c == '\n' || c[1] == '\0' ? 1 : 0;
    return n;
}

/* (transfer full): a block of code as it is sent: what would end it is broken. */
static char *
wrap_code(const char *language, const char *code)
{
    g_autoptr(GString) text = g_string_new(code);
    g_autofree char *block = NULL;

    g_string_replace(text, "```", "`" DISCORD_ZWSP "`" DISCORD_ZWSP "`", 0);
    block = g_strdup_printf("```%s\n%s\n```", language, text->str);
    return discord_text_prepare(block);
}

/* (transfer full): as much of one @line as a block of at most @max units holds, "" = nothing of use. */
static char *
make_cut_block(const char *language, const char *line, guint max)
{
    for (guint n = max; n >= MIN_BLOCK / 2; n = n * 3 / 4) {
        g_autofree char *cut = discord_clean_cut(line, n);
        g_autofree char *block = wrap_code(language, cut);
        if (units(block) <= max)
            return g_steal_pointer(&block);
    }
    return g_strdup("");
}

/* (transfer full): the first lines of @text that make a block of code of at most @max units, "" = none.
   @left: (out): lines that are not in it as they are */
static char *
make_block(const char *language, const char *text, guint max, guint *left)
{
    g_autoptr(GString) body = g_string_new(NULL);
    g_autofree char *block = NULL;
    const char *p = text;

    while (*p != '\0') {
        const gsize length = strcspn(p, "\n");
        g_autofree char *longer = NULL;
        g_string_append_printf(body, "%s%.*s", p == text ? "" : "\n", (int)length, p);
        /* Broken backticks and mentions grow, so what comes of it is measured. */
        longer = wrap_code(language, body->str);
        if (units(longer) > max)
            break;
        g_free(block);
        block = g_steal_pointer(&longer);
        p += length + (p[length] == '\n' ? 1 : 0);
    }
    *left = count_lines(p);
    if (block != NULL)
        return g_steal_pointer(&block);
    {
        g_autofree char *first = g_strndup(text, strcspn(text, "\n"));
        return make_cut_block(language, first, max);
    }
}

/* (transfer full): @text as a block of code below its @name, in at most @max units; what is left out is counted. */
static char *
make_part(const char *name, const char *language, const char *text, guint max)
{
    g_autofree char *clean = discord_clean(text != NULL ? text : "");
    const guint around = units(name) + (guint)strlen("\n\n\n... 4294967295 lines not shown in full");
    g_autofree char *block = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    guint left = 0;

    if (*clean == '\0' || max < MIN_BLOCK + around)
        return g_strdup("");
    block = make_block(language, clean, max - around, &left);
    if (*block == '\0')
        return g_strdup("");
    if (*name != '\0')
        g_string_append_printf(out, "\n%s", name);
    g_string_append_printf(out, "\n%s", block);
    if (left > 0)
        g_string_append_printf(out, "\n… %u line%s not shown in full", left, left == 1 ? "" : "s");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* What the question is about, as far as @max units hold it: the input in full, the first change, and how many more. */
static void
append_details(GString *content, JsonObject *data, guint max)
{
    JsonArray *diffs = eb_json_get_array(data, "diffs");
    const guint n = diffs != NULL ? json_array_get_length(diffs) : 0;
    g_autofree char *input = make_part("", "", eb_json_get_string(data, "input"), max);

    g_string_append(content, input);
    max -= units(input);
    if (n > 0 && max > MORE_CHANGES) {
        JsonObject *first = eb_json_array_object(diffs, 0);
        const char *path = eb_json_get_string(first, "path");
        g_autofree char *shown = discord_clean_cut(path != NULL ? path : "", MAX_CHOICE);
        g_autofree char *name = discord_text_escape(g_strdelimit(shown, "\n", ' '));
        g_autofree char *diff = make_part(name, "diff", eb_json_get_string(first, "diff"), max - MORE_CHANGES);
        g_string_append(content, diff);
        if (n > 1)
            g_string_append_printf(content, "\n… and %u more change%s", n - 1, n == 2 ? "" : "s");
    }
}

static JsonObject *
make_body(const char *text, JsonArray *rows, GPtrArray *notify)
{
    g_autofree char *content = discord_clean_cut(text, MAX_CONTENT);
    JsonObject *body = json_object_new();

    json_object_set_string_member(body, "content", content);
    discord_silence_mentions(body, notify);
    json_object_set_int_member(body, "flags", SUPPRESS_EMBEDS);
    json_object_set_array_member(body, "components", rows);
    return body;
}

JsonObject *
discord_question_to_message(EbChatQuestion *question, const char *id)
{
    const gboolean buttons = question->choices->len <= DISCORD_QUESTION_MAX_BUTTONS;
    /* Nobody answers a standing one by a number, which may be meant for the agent. */
    const char *hint = question->standing ? "" : buttons ? HINT : HINT_LIST;
    g_autofree char *text = safe_text(question->text, MAX_TEXT);
    g_autofree char *list = question->standing && buttons ? g_strdup("") : make_list(question);
    g_autoptr(GPtrArray) people = discord_list_people(NULL, question->notify);
    g_autofree char *mention = discord_mention(people);
    g_autoptr(GString) content = g_string_new(NULL);
    const guint fixed = units("❓ ") + units(mention) + units(text) + units(list) + units(hint);

    g_string_append_printf(content, "❓ %s%s", mention, text);
    if (fixed < MAX_CONTENT)
        append_details(content, question->data, MAX_CONTENT - fixed);
    g_string_append(content, list);
    g_string_append(content, hint);
    return make_body(content->str, make_rows(question, id), people);
}

JsonObject *
discord_question_to_outcome(EbChatQuestion *question, const char *outcome)
{
    g_autofree char *text = safe_text(question->text, MAX_TEXT);
    g_autofree char *content = g_strdup_printf("❓ %s\n%s", text, outcome);

    return make_body(content, json_array_new(), NULL);
}

char *
discord_question_answer(const EbChatChoice *choice, const char *user_id)
{
    g_autofree char *label = label_of(choice, 1, MAX_CHOICE);
    g_autofree char *escaped = discord_text_escape(label);

    /* A mention that notifies nobody, since no body of ours lets any, and shows the name people know. */
    return user_id != NULL ? g_strdup_printf("**%s**, by <@%s>", escaped, user_id) : g_strdup_printf("**%s**", escaped);
}

gboolean
discord_question_parse_button(const char *custom_id, char **id, guint *choice)
{
    const char *begin, *colon;
    guint64 number;

    if (custom_id == NULL || !g_str_has_prefix(custom_id, "q:") || strlen(custom_id) > 100)
        return FALSE;
    begin = custom_id + 2;
    colon = strchr(begin, ':');
    if (colon == NULL || colon == begin || colon - begin > 40 || !g_ascii_isdigit(colon[1]) ||
        !g_ascii_string_to_unsigned(colon + 1, 10, 0, DISCORD_QUESTION_MAX_BUTTONS - 1, &number, NULL))
        return FALSE;
    for (const char *c = begin; c < colon; c++)
        if (!g_ascii_islower(*c) && !g_ascii_isdigit(*c) && *c != '-')
            return FALSE;
    *id = g_strndup(begin, (gsize)(colon - begin));
    *choice = (guint)number;
    return TRUE;
}
