/* SPDX-License-Identifier: MIT */
#include "discord-links.h"

#include "discord-clean.h"

#include <string.h>

/* Bytes looked at to tell whether "](" leads to a target, and of a target; a message has 2000 characters. */
#define MAX_LOOK 2048
/* Bytes of a label, as in CommonMark. */
#define MAX_LABEL 999

/* A link that was found. */
typedef struct {
    gsize close;  /* the ']' behind its text */
    gsize end;    /* behind the link */
    gsize begin;  /* of its text in the result, once that is written */
    char *target; /* (owned) */
    char *title;  /* (owned) (nullable) */
} Link;

/* One run of prose, read from left to right as often as it has layers: code first, then links, then writing. Each
   layer knows where those before it have something, so that a second look at the result sees the same. */
typedef struct {
    GString *out;
    const char *text;
    gsize length;
    gsize *code;   /* where backticks begin code: where that ends, behind its last backtick; else 0 */
    guint *link;   /* where a '[' begins a link: its number in links, from 1; else 0 */
    GArray *links; /* (element-type Link) (owned) */
    GArray *open;  /* (element-type guint): numbers of the links around what is written, outermost first */
    DiscordLinkTargets *targets;
} Prose;

static gboolean
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static gsize
run_length(const char *text, gsize length, gsize at)
{
    gsize end = at;

    while (end < length && text[end] == text[at])
        end++;
    return end - at;
}

/* Something in brackets ended before @at: does what comes look like a target with a scheme? Rather yes than no. */
static gboolean
is_risky(const char *text, gsize length, gsize at)
{
    const gsize end = MIN(length, at + MAX_LOOK);

    if (at >= length || text[at] != '(')
        return FALSE;
    for (at++; at < end && is_space(text[at]);)
        at++;
    for (; at < end && !is_space(text[at]); at++)
        if (text[at] == ':')
            return TRUE;
    return at == end && end < length;
}

void
discord_links_break(GString *out, const char *text, gsize length)
{
    for (gsize i = 0; i < length; i++) {
        g_string_append_c(out, text[i]);
        if (text[i] == ']' && is_risky(text, length, i + 1))
            g_string_append(out, DISCORD_ZWSP);
    }
}

/* --- targets --- */

/* "http://x", "mailto:x": what a click could follow. */
static gboolean
has_scheme(const char *target)
{
    static const char *const PLAIN[] = {"mailto:", "tel:", "sms:", "discord:", "javascript:", "data:"};
    const char *c = target;

    if (!g_ascii_isalpha(*c))
        return FALSE;
    while (g_ascii_isalnum(*c) || *c == '+' || *c == '-' || *c == '.')
        c++;
    if (g_str_has_prefix(c, "://"))
        return TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(PLAIN); i++)
        if (g_ascii_strncasecmp(target, PLAIN[i], strlen(PLAIN[i])) == 0)
            return TRUE;
    return FALSE;
}

/* As it can stand between < and > and be read back by anybody: no space, no character of Markdown. */
static char *
tidy_target(const char *text, gsize length)
{
    GString *out = g_string_sized_new(length);

    for (gsize i = 0; i < length; i++) {
        const char *rest = text + i + 1;
        if (text[i] == '\\' && i + 1 < length && g_ascii_ispunct(text[i + 1]))
            continue;
        if (strchr(" \t\n<>`[]\\", text[i]) != NULL ||
            (text[i] == '@' && i + 1 < length &&
             (g_ascii_strncasecmp(rest, "everyone", 8) == 0 || g_ascii_strncasecmp(rest, "here", 4) == 0)))
            g_string_append_printf(out, "%%%02X", (guint)(guchar)text[i]);
        else
            g_string_append_c(out, text[i]);
    }
    return g_string_free(out, FALSE);
}

/* A target at @at: <url> or url with its parentheses in pairs; @code: (nullable): as in Prose, no target goes into it.
   Returns where it ends, 0 = none. */
static gsize
read_target(const char *text, gsize length, gsize at, const gsize *code, char **target)
{
    gsize i = at, depth = 0;

    if (at < length && text[at] == '<') {
        for (i++; i < length && text[i] != '>'; i++) {
            if (text[i] == '\n' || text[i] == '<' || i - at > MAX_LOOK || (code != NULL && code[i] != 0))
                return 0;
            if (text[i] == '\\' && i + 1 < length)
                i++;
        }
        if (i >= length)
            return 0;
        *target = tidy_target(text + at + 1, i - at - 1);
        return i + 1;
    }
    for (; i < length && !is_space(text[i]); i++) {
        if (i - at > MAX_LOOK || (code != NULL && code[i] != 0))
            return 0;
        if (text[i] == '\\' && i + 1 < length && !is_space(text[i + 1])) {
            i++;
        } else if (text[i] == '(') {
            depth++;
        } else if (text[i] == ')' && depth-- == 0) {
            break;
        }
    }
    if (i > length || i == at)
        return 0;
    *target = tidy_target(text + at, i - at);
    return i;
}

/* A title at @at: "…", '…' or (…). Returns where it ends, 0 = none. */
static gsize
read_title(const char *text, gsize length, gsize at, const gsize *code)
{
    const char end = at >= length       ? '\0'
                     : text[at] == '('  ? ')'
                     : text[at] == '"'  ? '"'
                     : text[at] == '\'' ? '\''
                                        : '\0';

    if (end == '\0')
        return 0;
    for (gsize i = at + 1; i < length && i < at + MAX_LOOK; i++) {
        if (code != NULL && code[i] != 0)
            return 0;
        if (text[i] == '\\')
            i++;
        else if (text[i] == end)
            return i + 1;
    }
    return 0;
}

static gsize
skip_space(const char *text, gsize length, gsize at)
{
    while (at < length && is_space(text[at]))
        at++;
    return at;
}

/* A label as it is compared: case and white space do not count. */
static char *
fold_label(const char *text, gsize length)
{
    g_autoptr(GString) words = g_string_sized_new(length);

    for (gsize i = 0; i < length; i++) {
        if (!is_space(text[i]))
            g_string_append_c(words, text[i]);
        else if (words->len > 0 && words->str[words->len - 1] != ' ')
            g_string_append_c(words, ' ');
    }
    return g_utf8_casefold(g_strchomp(words->str), -1);
}

DiscordLinkTargets *
discord_link_targets_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

void
discord_link_targets_read(DiscordLinkTargets *self, const char *line, gsize length)
{
    gsize at = 0, close, end;
    g_autofree char *target = NULL;
    g_autofree char *label = NULL;

    while (at < length && at < 4 && line[at] == ' ')
        at++;
    if (at >= length || line[at] != '[' || g_hash_table_size(self) >= DISCORD_LINK_TARGETS_MAX)
        return;
    for (close = at + 1; close < length && line[close] != ']' && line[close] != '['; close++)
        if (line[close] == '\\')
            close++;
    if (close + 1 >= length || line[close] != ']' || line[close + 1] != ':' || close == at + 1)
        return;
    end = read_target(line, length, skip_space(line, length, close + 2), NULL, &target);
    if (end == 0 || !has_scheme(target))
        return;
    end = skip_space(line, length, end);
    /* A title may go on behind the line, and writing out a link there may bring its end into this one. */
    if (end < length && line[end] != '"' && line[end] != '\'')
        return;
    label = fold_label(line + at + 1, close - at - 1);
    /* Labels that may be written out in another way than they were read are left alone. */
    if (*label != '\0' && strpbrk(label, "`~\\") == NULL && !g_hash_table_contains(self, label))
        g_hash_table_insert(self, g_steal_pointer(&label), g_steal_pointer(&target));
}

/* --- reading --- */

/* Where the next run of exactly @n backticks begins, before a blank line and @length; 0 = nowhere. */
static gsize
find_run(const char *text, gsize length, gsize at, gsize n)
{
    while (at < length) {
        if (text[at] == '`') {
            const gsize run = run_length(text, length, at);
            if (run == n)
                return at;
            at += run;
            continue;
        }
        if (text[at++] != '\n')
            continue;
        while (at < length && (text[at] == ' ' || text[at] == '\t'))
            at++;
        if (at < length && text[at] == '\n')
            return 0;
    }
    return 0;
}

/* <http://x> at @at: bytes, 0 = it is something else. Without brackets, which a link would see. */
static gsize
autolink_length(const char *text, gsize length, gsize at)
{
    gsize i = at + 1;

    if (i >= length || !g_ascii_isalpha(text[i]))
        return 0;
    while (i < length && (g_ascii_isalnum(text[i]) || strchr("+-.", text[i]) != NULL))
        i++;
    if (i >= length || text[i] != ':')
        return 0;
    while (i < length && i < at + MAX_LOOK && !is_space(text[i]) && strchr("<>[]`", text[i]) == NULL)
        i++;
    return i < length && text[i] == '>' ? i + 1 - at : 0;
}

/* Bytes at @at that belong together and are no link: an escape, code, <http://x>; 0 = none. */
static gsize
unit_length(const Prose *self, gsize at)
{
    const char c = self->text[at];

    if (c == '\\')
        return at + 1 < self->length && g_ascii_ispunct(self->text[at + 1]) ? 2 : 0;
    if (c == '`')
        return self->code[at] != 0 ? self->code[at] - at : run_length(self->text, self->length, at);
    return c == '<' ? autolink_length(self->text, self->length, at) : 0;
}

/* Where backticks begin code in Discord and in Markdown alike. */
static void
read_code(Prose *self)
{
    const char *text = self->text;

    for (gsize i = 0; i < self->length;) {
        gsize n, end;
        if (text[i] != '`') {
            i += MAX(1, unit_length(self, i));
            continue;
        }
        n = run_length(text, self->length, i);
        end = find_run(text, self->length, i + n, n);
        /* Three within a line make a block of their own in Discord, wherever the next three are; see write_code(). */
        if (end != 0 && n >= 3 &&
            (memchr(text + i + n, '`', end - i - n) != NULL || memchr(text + i + n, '\n', end - i - n) != NULL))
            end = 0;
        if (end != 0)
            self->code[i] = end + n;
        i = end != 0 ? end + n : i + n;
    }
}

/* A title can say anything, so it keeps nothing that could be Markdown. */
static char *
tidy_title(const char *text, gsize length)
{
    char *title = g_strndup(text, length);

    for (char *c = title; *c != '\0'; c++) {
        if (*c == '[' || *c == '<')
            *c = '(';
        else if (*c == ']' || *c == '>')
            *c = ')';
        else if (*c == '`' || *c == '~' || *c == '\\')
            *c = '\'';
        else if (*c == '\n')
            *c = ' ';
    }
    return g_strstrip(title);
}

/* [text][label] or [label][] */
static gboolean
read_reference(Prose *self, gsize open, Link *link)
{
    const char *text = self->text;
    gsize at = link->close + 2, end = at, length;
    g_autofree char *label = NULL;

    while (end < self->length && end - at <= MAX_LABEL && text[end] != ']' && text[end] != '[' && self->code[end] == 0)
        end += text[end] == '\\' ? 2 : 1;
    if (end >= self->length || text[end] != ']')
        return FALSE;
    link->end = end + 1;
    length = end - at;
    if (length == 0) {
        at = open + 1;
        length = link->close - at;
    }
    if (length > MAX_LABEL)
        return FALSE;
    label = fold_label(text + at, length);
    link->target = g_strdup(g_hash_table_lookup(self->targets, label));
    return link->target != NULL;
}

/* A link whose text begins at the '[' at @open and ends at link->close. */
static gboolean
read_link(Prose *self, gsize open, Link *link)
{
    const char *text = self->text;
    const gsize length = self->length;
    gsize at = link->close + 1, end;

    if (at < length && text[at] == '[')
        return read_reference(self, open, link);
    if (at >= length || text[at] != '(')
        return FALSE;
    at = skip_space(text, length, at + 1);
    end = read_target(text, length, at, self->code, &link->target);
    if (end == 0)
        return FALSE;
    at = skip_space(text, length, end);
    if (at > end && (end = read_title(text, length, at, self->code)) != 0) {
        link->title = tidy_title(text + at + 1, end - at - 2);
        at = skip_space(text, length, end);
    }
    link->end = at + 1;
    return at < length && text[at] == ')' && has_scheme(link->target);
}

static void
link_clear(gpointer data)
{
    Link *link = data;

    g_free(link->target);
    g_free(link->title);
}

static void
read_links(Prose *self)
{
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(gsize));

    for (gsize i = 0; i < self->length;) {
        const gsize unit = unit_length(self, i);
        if (unit == 0 && self->text[i] == '[') {
            g_array_append_val(open, i);
        } else if (unit == 0 && self->text[i] == ']' && open->len > 0) {
            const gsize begin = g_array_index(open, gsize, open->len - 1);
            Link link = {.close = i};
            g_array_set_size(open, open->len - 1);
            if (read_link(self, begin, &link)) {
                g_array_append_val(self->links, link);
                self->link[begin] = self->links->len;
                i = link.end;
                continue;
            }
            link_clear(&link);
        }
        i += MAX(1, unit);
    }
}

/* --- writing --- */

static Link *
innermost(Prose *self)
{
    return self->open->len == 0
               ? NULL
               : &g_array_index(self->links, Link, g_array_index(self->open, guint, self->open->len - 1) - 1);
}

static void
begin_link(Prose *self, guint number)
{
    /* What was in front may not take the text for something of its own. */
    if (self->out->len > 0 && strchr("]!\\`~", self->out->str[self->out->len - 1]) != NULL)
        g_string_append_c(self->out, ' ');
    g_array_append_val(self->open, number);
    innermost(self)->begin = self->out->len;
}

/* Does what is written end with a ':'? A target alone would make it a definition. */
static gboolean
after_colon(const GString *out)
{
    gsize end = out->len;

    while (end > 0 && is_space(out->str[end - 1]))
        end--;
    return end > 0 && out->str[end - 1] == ':';
}

/* The text of the innermost link is written. Returns where to read on. */
static gsize
end_link(Prose *self)
{
    const Link *link = innermost(self);
    const char *label;
    gboolean alone, bare;

    while (self->out->len > link->begin && is_space(self->out->str[self->out->len - 1]))
        g_string_truncate(self->out, self->out->len - 1);
    label = self->out->str + link->begin;
    alone = *label == '\0' || strcmp(label, link->target) == 0;
    if (alone)
        g_string_truncate(self->out, link->begin);
    bare = alone && !after_colon(self->out);
    g_string_append_printf(self->out, bare ? "<%s>" : alone ? "(<%s>" : " (<%s>", link->target);
    if (link->title != NULL && *link->title != '\0')
        g_string_append_printf(self->out, " \"%s\"", link->title);
    if (!bare)
        g_string_append_c(self->out, ')');
    g_array_set_size(self->open, self->open->len - 1);
    return link->end;
}

static void
append_escaped(GString *out, char c, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        g_string_append_c(out, '\\');
        g_string_append_c(out, c);
    }
}

/* Backticks at @at: code, or nothing that anybody should take for it. */
static void
write_code(Prose *self, gsize at)
{
    const gsize n = run_length(self->text, self->length, at), end = self->code[at];

    if (end == 0)
        append_escaped(self->out, '`', n);
    else if (n < 3)
        g_string_append_len(self->out, self->text + at, (gssize)(end - at));
    else
        g_string_append_printf(self->out, "`%.*s`", (int)(end - at - 2 * n), self->text + at + n);
}

/* One step at @at. Returns where to read on. */
static gsize
write_next(Prose *self, gsize at)
{
    const char *text = self->text;
    const gsize unit = unit_length(self, at);
    const gsize tildes = text[at] == '~' ? run_length(text, self->length, at) : 0;

    if (text[at] == '`') {
        write_code(self, at);
        return at + unit;
    }
    if (unit > 0) {
        g_string_append_len(self->out, text + at, (gssize)unit);
        return at + unit;
    }
    if (tildes >= 3) {
        append_escaped(self->out, '~', tildes);
        return at + tildes;
    }
    if (self->link[at] != 0) {
        begin_link(self, self->link[at]);
        return at + 1;
    }
    if (text[at] == '!' && at + 1 < self->length && self->link[at + 1] != 0) {
        begin_link(self, self->link[at + 1]);
        return at + 2;
    }
    if (self->open->len == 0 || !is_space(text[at]))
        g_string_append_c(self->out, text[at]);
    else if (self->out->len > innermost(self)->begin)
        g_string_append_c(self->out, ' '); /* the text of a link is one line */
    return at + 1;
}

/* What looked like no link may be one to Discord, or may have become one when another was written out. An escape shows
   nothing and stays when the text comes here again; code has none, so it gets what discord_links_break() puts in. */
static void
escape_rest(GString *out, const char *text, gsize length)
{
    for (gsize i = 0; i < length;) {
        gsize end = i + 1;
        if (text[i] == '\\' && end < length) {
            end++;
        } else if (text[i] == '`') {
            const gsize n = run_length(text, length, i);
            const gsize close = find_run(text, length, i + n, n);
            if (close != 0) {
                discord_links_break(out, text + i, close + n - i);
                i = close + n;
                continue;
            }
        }
        g_string_append_len(out, text + i, (gssize)(end - i));
        if (text[end - 1] == ']' && is_risky(text, length, end)) /* an escaped one as well: Discord looks no closer */
            g_string_append_c(out, '\\');
        i = end;
    }
}

void
discord_links_write_out(GString *out, const char *text, gsize length, DiscordLinkTargets *targets)
{
    g_autofree gsize *code = g_new0(gsize, length + 1);
    g_autofree guint *link = g_new0(guint, length + 1);
    g_autoptr(GArray) links = g_array_new(FALSE, FALSE, sizeof(Link));
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GString) written = g_string_sized_new(length);
    Prose self = {written, text, length, code, link, links, open, targets};

    g_array_set_clear_func(links, link_clear);
    read_code(&self);
    read_links(&self);
    for (gsize i = 0; i < length;) {
        const Link *around = innermost(&self);
        i = around != NULL && i == around->close ? end_link(&self) : write_next(&self, i);
    }
    escape_rest(out, written->str, written->len);
}
