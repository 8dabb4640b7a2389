/* SPDX-License-Identifier: MIT */
#include "discord-text.h"

#include "discord-clean.h"
#include "discord-links.h"

#include <string.h>

/* Names of channels and threads have 1 to 100 characters. */
#define TITLE_MAX 100

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

/* --- fences --- */

typedef struct {
    char mark;       /* '`' or '~', 0 = no fence */
    gsize length;    /* of the run */
    gboolean quoted; /* behind a '>' */
} Fence;

static gsize
line_length(const char *p)
{
    const char *end = strchr(p, '\n');

    return end != NULL ? (gsize)(end - p) : strlen(p);
}

/* The fence that @line may be; @info: (out): what follows the run. */
static Fence
read_fence(const char *line, gsize length, const char **info)
{
    Fence fence = {0};
    gsize i = 0, begin;

    while (i < length && (line[i] == ' ' || line[i] == '\t' || line[i] == '>')) {
        fence.quoted |= line[i] == '>';
        i++;
    }
    begin = i;
    while (i < length && line[i] == line[begin] && (line[i] == '`' || line[i] == '~'))
        i++;
    fence.length = i - begin;
    *info = line + i;
    if (fence.length < 3)
        return fence;
    fence.mark = line[begin];
    if (fence.mark == '`' && memchr(line + i, '`', length - i) != NULL)
        fence.mark = '\0';
    return fence;
}

static gboolean
opens(const char *line, gsize length, Fence *fence)
{
    const char *info;

    *fence = read_fence(line, length, &info);
    return fence->mark != '\0';
}

static gboolean
closes(const Fence *open, const char *line, gsize length)
{
    const char *info;
    Fence fence = read_fence(line, length, &info);

    if (fence.mark != open->mark || fence.length < open->length)
        return FALSE;
    while (info < line + length && (*info == ' ' || *info == '\t'))
        info++;
    return info == line + length;
}

/* A line of quoted code ends where the quote does. */
static gboolean
leaves(const Fence *open, const char *line, gsize length)
{
    return open->quoted && (length == 0 || line[strspn(line, " \t")] != '>');
}

/* One line of code: Discord would end the block at three backticks wherever they are. */
static void
add_code_line(GString *out, const Fence *open, const char *line, gsize length)
{
    if (open->mark == '~' || open->quoted) {
        discord_links_break(out, line, length);
        return;
    }
    for (gsize i = 0; i < length;) {
        gsize end = i;
        while (end < length && line[end] == '`')
            end++;
        for (gsize k = i; k < end; k++) {
            g_string_append_c(out, '`');
            if (end - i >= 3 && k + 1 < end)
                g_string_append(out, DISCORD_ZWSP);
        }
        if (end == i)
            g_string_append_c(out, line[end++]);
        i = end;
    }
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
        if (leaves(open, p, length))
            return p;
        if (closes(open, p, length)) {
            /* Discord takes the fence of an empty block for its content, and what follows for code. */
            if (empty && open->mark == '`' && !open->quoted)
                g_string_insert(out, (gssize)begin, out->len > begin ? DISCORD_ZWSP : DISCORD_ZWSP "\n");
            g_string_append_len(out, p, next - p);
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
    Fence open = {0};

    for (const char *p = text; *p != '\0';) {
        const gsize length = line_length(p);
        if (open.mark != '\0' && (leaves(&open, p, length) || closes(&open, p, length))) {
            const gboolean again = !closes(&open, p, length);
            open = (Fence){0};
            if (again)
                continue;
        } else if (open.mark == '\0' && !opens(p, length, &open)) {
            discord_link_targets_read(targets, p, length);
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
    const char *prose = clean;

    for (const char *p = clean;;) {
        const gsize length = line_length(p);
        const char *next = p + length + (p[length] == '\n' ? 1 : 0);
        Fence open = {0};
        if (*p != '\0' && !opens(p, length, &open)) {
            p = next;
            continue;
        }
        discord_links_write_out(out, prose, (gsize)(p - prose), targets);
        if (*p == '\0')
            break;
        discord_links_break(out, p, (gsize)(next - p));
        p = prose = add_code(out, &open, next);
    }
    return break_mentions(out->str);
}

/* --- plain text --- */

char *
discord_text_escape(const char *text)
{
    g_autofree char *clean = discord_clean(text);
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
    g_autofree char *clean = discord_clean(text);
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
