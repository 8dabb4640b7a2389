/* SPDX-License-Identifier: MIT */
#include "discord-clean.h"
#include "discord-text.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
check_characters(const char *text)
{
    for (const char *c = text; *c != '\0'; c = g_utf8_next_char(c)) {
        const gunichar u = g_utf8_get_char(c);
        if ((u < 0x20 && u != '\n' && u != '\t') || (u >= 0x7f && u < 0xa0) || (u >= 0x202a && u <= 0x202e) ||
            (u >= 0x2066 && u <= 0x2069))
            g_error("character U+%04X is left", u);
    }
}

/* Outside fenced code no "](http://" is left, and nowhere anything that pings. */
static void
check_prepared(const char *text)
{
    check_characters(text);
    if (strstr(text, "@everyone") != NULL || strstr(text, "@here") != NULL)
        g_error("a mention of everybody is left");
    for (const char *at = strstr(text, "<@"); at != NULL; at = strstr(at + 1, "<@"))
        if (g_ascii_isdigit(at[2]) || ((at[2] == '!' || at[2] == '&') && g_ascii_isdigit(at[3])))
            g_error("a mention is left");
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        const char *run = line + strspn(line, "\n\t >");
        const char *end = run + strspn(run, "`");
        if (end - run > 3 && end[strcspn(end, "`\n")] != '`')
            g_error("a fence that Discord does not know");
        line += strspn(line, "\n");
    }
    if (strstr(text, "```") == NULL && (strstr(text, "](http://") != NULL || strstr(text, "](<http://") != NULL))
        g_error("a link that hides its target is left");
}

static void
check_same(const char *what, const char *once, const char *twice)
{
    if (strcmp(once, twice) != 0) {
        g_autofree char *first = g_strescape(once, NULL);
        g_autofree char *second = g_strescape(twice, NULL);
        g_error("%s: once \"%s\", twice \"%s\"", what, first, second);
    }
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autofree char *clean = discord_clean(text);
    g_autofree char *clean_again = discord_clean(clean);
    g_autofree char *prepared = discord_text_prepare(text);
    g_autofree char *again = discord_text_prepare(prepared);
    g_autofree char *escaped = discord_text_escape(text);
    g_autofree char *escaped_prepared = discord_text_prepare(escaped);
    g_autofree char *title = discord_text_title(text);
    g_autofree char *title_again = discord_text_title(title);

    if (!g_utf8_validate(prepared, -1, NULL) || !g_utf8_validate(escaped, -1, NULL) ||
        !g_utf8_validate(title, -1, NULL))
        g_error("no UTF-8");
    check_prepared(prepared);
    check_characters(escaped);
    check_characters(title);
    check_same("clean", clean, clean_again);
    check_same("prepare", prepared, again);
    check_same("title", title, title_again);
    check_same("prepare after escape", escaped, escaped_prepared);
    if (strchr(title, '\n') != NULL || *title == '\0' || g_utf8_strlen(title, -1) > 100)
        g_error("no title");
    return 0;
}
