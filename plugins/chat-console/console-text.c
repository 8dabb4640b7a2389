/* SPDX-License-Identifier: MIT */
#include "console-text.h"

#include <string.h>

static gboolean
is_misleading(gunichar c)
{
    return c == 0x061c || c == 0x180e || (c >= 0x200b && c <= 0x200f && c != 0x200c && c != 0x200d) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

static char *
clean(const char *text, gssize length, gboolean line)
{
    g_autofree char *valid = g_utf8_make_valid(text, length);
    g_autoptr(GString) out = g_string_sized_new(strlen(valid));

    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (c == '\n' || c == '\t')
            g_string_append_c(out, line ? ' ' : (char)c);
        else if (c == '\r' && at[1] == '\n')
            continue;
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            g_string_append_printf(out, "\\x%02x", c);
        else if (is_misleading(c))
            g_string_append_printf(out, "\\u{%04x}", c);
        else
            g_string_append_unichar(out, c);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
console_text_clean(const char *text, gssize length)
{
    return clean(text, length, FALSE);
}

char *
console_text_clean_line(const char *text, gssize length)
{
    return clean(text, length, TRUE);
}

static const char *
style_code(ConsoleStyle style)
{
    switch (style) {
    case CONSOLE_DIM:
        return "2";
    case CONSOLE_BOLD:
        return "1";
    case CONSOLE_RED:
        return "31";
    case CONSOLE_GREEN:
        return "32";
    case CONSOLE_CYAN:
        return "36";
    case CONSOLE_PLAIN:
        break;
    }
    return NULL;
}

/* Each line is switched on and off by itself: a terminal that clears to the end of a line keeps no colour. */
char *
console_text_style(const char *text, ConsoleStyle style, gboolean color)
{
    const char *code = color ? style_code(style) : NULL;

    if (code == NULL)
        return g_strdup(text);
    g_autoptr(GString) out = g_string_new(NULL);
    for (const char *at = text; *at != '\0';) {
        gsize length = strcspn(at, "\n");
        if (length > 0)
            g_string_append_printf(out, "\033[%sm%.*s\033[0m", code, (int)length, at);
        at += length;
        if (*at == '\n') {
            g_string_append_c(out, '\n');
            at++;
        }
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
console_text_diff(const char *diff, gboolean color)
{
    g_autofree char *safe = console_text_clean(diff, -1);
    g_auto(GStrv) lines = g_strsplit(safe, "\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);

    for (char **line = lines; *line != NULL; line++) {
        ConsoleStyle style = CONSOLE_PLAIN;
        if (line[1] == NULL && **line == '\0')
            break;
        if (g_str_has_prefix(*line, "@@"))
            style = CONSOLE_CYAN;
        else if (g_str_has_prefix(*line, "+++") || g_str_has_prefix(*line, "---"))
            style = CONSOLE_BOLD;
        else if (**line == '+')
            style = CONSOLE_GREEN;
        else if (**line == '-')
            style = CONSOLE_RED;
        g_autofree char *styled = console_text_style(*line, style, color);
        g_string_append_printf(out, "%s\n", styled);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
