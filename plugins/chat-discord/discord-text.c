/* SPDX-License-Identifier: MIT */
#include "discord-text.h"

#include "discord-clean.h"
#include "discord-links.h"

#include <string.h>

/* Names of channels and threads have 1 to 100 characters. */
#define TITLE_MAX 100

/* (transfer full): @text without DISCORD_ZWSP, which only code needs, and which is left only between backticks. */
static GString *
without_zwsp(const char *text, gsize length)
{
    GString *out = g_string_new_len(text, (gssize)length);

    g_string_replace(out, DISCORD_ZWSP, "", 0);
    return out;
}

/* --- mentions --- */

/* Does the text at @p, as Discord could fold it, begin with "everyone" or "here"? */
static gboolean
names_everybody(const char *p)
{
    const char *end = p;
    g_autofree char *normal = NULL;
    g_autofree char *folded = NULL;

    for (guint i = 0; i < 8 && *end != '\0' && *end != '\n'; i++)
        end = g_utf8_next_char(end);
    normal = g_utf8_normalize(p, end - p, G_NORMALIZE_ALL);
    folded = g_utf8_casefold(normal != NULL ? normal : "", -1);
    return g_str_has_prefix(folded, "everyone") || g_str_has_prefix(folded, "here");
}

/* "</name:123>" behind its "<": a command to click. */
static gboolean
is_command(const char *p)
{
    const char *colon;

    if (*p != '/')
        return FALSE;
    /* A command's name and those below it have 32 characters each. */
    colon = p + strcspn(p, ":<>\n");
    if (*colon != ':' || colon == p + 1 || colon - p > 500 || !g_ascii_isdigit(colon[1]))
        return FALSE;
    do
        colon++;
    while (g_ascii_isdigit(*colon));
    return *colon == '>';
}

/* @text is clean, so every DISCORD_ZWSP in it was put there for its links or its fences. */
static char *
break_mentions(const char *text)
{
    GString *out = g_string_sized_new(strlen(text) + 16);

    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        const char *next = g_utf8_next_char(p);
        g_string_append_unichar(out, c);
        if ((c == '<' && is_command(next)) || (c == '@' && names_everybody(next)) ||
            (c == '@' && p > text && p[-1] == '<' &&
             (g_ascii_isdigit(*next) || ((*next == '!' || *next == '&') && g_ascii_isdigit(next[1])))) ||
            ((c == 0xff20 || c == 0xfe6b) && *next != '\0'))
            g_string_append(out, DISCORD_ZWSP);
    }
    return g_string_free(out, FALSE);
}

/* Digits of an id of today's and tomorrow's Discord. */
#define MIN_ID_DIGITS 15
#define MAX_ID_DIGITS 20

char *
discord_text_show_people(const char *text)
{
    static const char broken[] = "<@" DISCORD_ZWSP;
    GString *out = g_string_sized_new(strlen(text));
    const char *rest = text;

    for (const char *at = strstr(rest, broken); at != NULL; at = strstr(rest, broken)) {
        const char *id = at + strlen(broken);
        const gsize digits = strspn(id, "0123456789");
        g_string_append_len(out, rest, at + 2 - rest);
        rest = id;
        if (digits < MIN_ID_DIGITS || digits > MAX_ID_DIGITS || id[digits] != '>')
            g_string_append(out, DISCORD_ZWSP);
    }
    g_string_append(out, rest);
    return g_string_free(out, FALSE);
}

/* --- fences --- */

/* A fence of Markdown. Discord knows one kind, so every kind becomes that one: three backticks, and no three backticks
   within. */
typedef struct {
    char mark;       /* '`' or '~', 0 = no fence */
    gsize prefix;    /* bytes in front of the run */
    gsize length;    /* of the run */
    gboolean quoted; /* behind a '>' */
} Fence;

static gsize
line_length(const char *p)
{
    const char *end = strchr(p, '\n');

    return end != NULL ? (gsize)(end - p) : strlen(p);
}

/* The mark of a list's item at @at: "- " or "12. ": bytes, 0 = none. */
static gsize
item_length(const char *line, gsize length, gsize at)
{
    gsize i = at;

    while (i < length && i < at + 9 && g_ascii_isdigit(line[i]))
        i++;
    if (i < length && strchr(i == at ? "-*+" : ".)", line[i]) != NULL && i + 1 < length &&
        (line[i + 1] == ' ' || line[i + 1] == '\t'))
        return i + 2 - at;
    return 0;
}

/* The fence that @line may be. @items: it may begin within the item of a list. */
static Fence
read_fence(const char *line, gsize length, gboolean items)
{
    Fence fence = {0};
    gsize i = 0, item;

    for (; i < length; i++) {
        if (items && (item = item_length(line, length, i)) > 0)
            i += item - 1;
        else if (line[i] == '>')
            fence.quoted = TRUE;
        else if (line[i] != ' ' && line[i] != '\t')
            break;
    }
    fence.prefix = i;
    while (i < length && line[i] == line[fence.prefix] && (line[i] == '`' || line[i] == '~'))
        i++;
    fence.length = i - fence.prefix;
    if (fence.length < 3 || (line[fence.prefix] == '`' && memchr(line + i, '`', length - i) != NULL))
        return fence;
    fence.mark = line[fence.prefix];
    return fence;
}

static gboolean
opens(const char *line, gsize length, Fence *fence)
{
    *fence = read_fence(line, length, TRUE);
    return fence->mark != '\0';
}

static gboolean
closes(const Fence *open, const char *line, gsize length, Fence *fence)
{
    gsize end;

    *fence = read_fence(line, length, FALSE);
    end = fence->prefix + fence->length;
    while (end < length && (line[end] == ' ' || line[end] == '\t'))
        end++;
    return fence->mark == open->mark && fence->length >= open->length && end == length;
}

/* A line of quoted code ends where the quote does. */
static gboolean
leaves(const Fence *open, const char *line, gsize length)
{
    return open->quoted && (length == 0 || line[strspn(line, " \t")] != '>');
}

/* The line that opens: backticks in what follows them would be a fence to nobody. */
static void
add_opening(GString *out, const Fence *open, const char *line, gsize length)
{
    const gsize begin = open->prefix + open->length;
    g_autoptr(GString) info = g_string_new_len(line + begin, (gssize)(length - begin));

    g_string_replace(info, "`", "", 0);
    g_string_append_printf(out, "%.*s```", (int)open->prefix, line);
    discord_links_break(out, info->str, info->len);
}

/* One line of code: Discord would end the block at three backticks wherever they are. In a quote it may take the whole
   for something else than code. */
static void
add_code_line(GString *out, const Fence *open, const char *line, gsize length)
{
    g_autoptr(GString) code = g_string_sized_new(length);

    for (gsize i = 0; i < length;) {
        gsize end = i;
        while (end < length && line[end] == '`')
            end++;
        for (gsize k = i; k < end; k++) {
            g_string_append_c(code, '`');
            if (end - i >= 3 && k + 1 < end)
                g_string_append(code, DISCORD_ZWSP);
        }
        if (end == i)
            g_string_append_c(code, line[end++]);
        i = end;
    }
    if (open->quoted)
        discord_links_break(out, code->str, code->len);
    else
        g_string_append_len(out, code->str, (gssize)code->len);
}

/* Code at @p, behind the line that opened it. Returns where it ends, its last fence included. */
static const char *
add_code(GString *out, const Fence *open, const char *p)
{
    const gsize begin = out->len;
    gboolean empty = TRUE;

    while (*p != '\0') {
        const gsize length = line_length(p);
        const char *next = p + length + (p[length] == '\n' ? 1 : 0);
        Fence close;
        if (leaves(open, p, length)) {
            g_string_append(out, "> ```\n");
            return p;
        }
        if (closes(open, p, length, &close)) {
            /* Discord takes the fence of an empty block for its content, and what follows for code. */
            if (empty && !open->quoted)
                g_string_insert(out, (gssize)begin, out->len > begin ? DISCORD_ZWSP : DISCORD_ZWSP "\n");
            g_string_append_printf(out, "%.*s```%.*s", (int)close.prefix, p, (int)(next - p - (gssize)length),
                                   p + length);
            return next;
        }
        empty = empty && length == 0;
        add_code_line(out, open, p, length);
        g_string_append_len(out, p + length, next - p - (gssize)length);
        p = next;
    }
    return p;
}

static DiscordLinkTargets *
read_targets(const char *text)
{
    DiscordLinkTargets *targets = discord_link_targets_new();
    Fence open = {0}, close;

    for (const char *p = text; *p != '\0';) {
        const gsize length = line_length(p);
        if (open.mark != '\0' && leaves(&open, p, length))
            open = (Fence){0};
        if (open.mark != '\0') {
            if (closes(&open, p, length, &close))
                open = (Fence){0};
        } else {
            g_autoptr(GString) line = without_zwsp(p, length);
            if (!opens(line->str, line->len, &open))
                discord_link_targets_read(targets, line->str, line->len);
        }
        p += length + (p[length] == '\n' ? 1 : 0);
    }
    return targets;
}

char *
discord_text_prepare(const char *text)
{
    g_autofree char *clean = discord_clean(text);
    g_autoptr(GHashTable) targets = read_targets(clean);
    g_autoptr(GString) out = g_string_sized_new(strlen(clean) + 64);
    g_autoptr(GString) prose = g_string_new(NULL);

    for (const char *p = clean; *p != '\0';) {
        const gsize length = line_length(p), end = p[length] == '\n' ? 1 : 0;
        g_autoptr(GString) line = without_zwsp(p, length);
        Fence open;
        p += length + end;
        if (!opens(line->str, line->len, &open)) {
            g_string_append_len(prose, line->str, (gssize)line->len);
            g_string_append(prose, end > 0 ? "\n" : "");
            continue;
        }
        discord_links_write_out(out, prose->str, prose->len, targets);
        g_string_truncate(prose, 0);
        add_opening(out, &open, line->str, line->len);
        g_string_append(out, end > 0 ? "\n" : "");
        p = add_code(out, &open, p);
    }
    discord_links_write_out(out, prose->str, prose->len, targets);
    return break_mentions(out->str);
}

/* --- plain text --- */

static char *
clean_plain(const char *text)
{
    g_autofree char *clean = discord_clean(text);

    return g_string_free(without_zwsp(clean, strlen(clean)), FALSE);
}

char *
discord_text_escape(const char *text)
{
    g_autofree char *clean = clean_plain(text);
    g_autoptr(GString) out = g_string_sized_new(strlen(clean) + 16);
    gboolean start = TRUE;  /* nothing but white space in this line so far */
    gboolean number = TRUE; /* nothing but white space and digits: a dot would begin a list */

    for (const char *c = clean; *c != '\0'; c++) {
        if (strchr("\\*_~`|<>[]():", *c) != NULL || (start && strchr("#-+", *c) != NULL) ||
            (number && !start && *c == '.'))
            g_string_append_c(out, '\\');
        g_string_append_c(out, *c);
        start = *c == '\n' || (start && (*c == ' ' || *c == '\t'));
        number = start || (number && g_ascii_isdigit(*c));
    }
    return break_mentions(out->str);
}

char *
discord_text_title(const char *text)
{
    g_autofree char *clean = clean_plain(text);
    g_autoptr(GString) out = g_string_new(NULL);

    for (const char *p = clean; *p != '\0'; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        if (!g_unichar_isspace(c))
            g_string_append_unichar(out, c);
        else if (out->len > 0 && out->str[out->len - 1] != ' ')
            g_string_append_c(out, ' ');
    }
    if (out->len > 0 && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    return out->len > 0 ? discord_clean_cut(out->str, TITLE_MAX) : g_strdup("untitled");
}
