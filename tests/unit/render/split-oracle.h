/* SPDX-License-Identifier: MIT */
/* What is true of every split; for the unit tests and the fuzz target. Reads Markdown by its own, simple means. */
#pragma once

#include "core/render/eb-text-split.h"

#include <string.h>

/* Of each byte of a text: '.' outside code, 'c' code, 'f' a fence's own line. Knows fences of backticks and tildes at
 * any indent, in quotes and list items, and nothing else. */
static inline char *
split_oracle_flags(const char *text, gboolean *open_at_end)
{
    static GRegex *open;
    static GRegex *close;
    if (open == NULL) {
        open = g_regex_new(
            "^((?: {0,3}> ?)*)([ \\t]*(?:(?:[-*+]|\\d{1,9}[.)])[ \\t]*(?<= ))?[ \\t]*)(?:(`{3,})[^`]*|(~{3,}).*)$",
            G_REGEX_DOTALL | G_REGEX_DOLLAR_ENDONLY, 0, NULL);
        close = g_regex_new("^([ \\t]*)(`{3,}|~{3,})[ \\t\\r]*$", G_REGEX_DOLLAR_ENDONLY, 0, NULL);
    }
    GString *flags = g_string_new(NULL);
    char mark = 0;
    gsize run = 0;
    guint depth = 0;
    for (const char *line = text; *line != '\0';) {
        gsize length = strcspn(line, "\n");
        g_autofree char *body = g_strndup(line, length);
        char flag = '.';
        if (mark != 0) {
            const char *rest = body;
            guint found = 0;
            while (found < depth) {
                const char *at = rest + MIN(strspn(rest, " "), 3);
                if (*at != '>' || at + 1 + (at[1] == ' ') - body > 8)
                    break;
                rest = at + 1 + (at[1] == ' ');
                found++;
            }
            g_autoptr(GMatchInfo) match = NULL;
            if (found < depth) {
                mark = 0;
            } else if (g_regex_match(close, rest, 0, &match)) {
                g_autofree char *marks = g_match_info_fetch(match, 2);
                flag = 'c';
                if (*marks == mark && strlen(marks) >= run) {
                    mark = 0;
                    flag = 'f';
                }
            } else {
                flag = 'c';
            }
        }
        g_autoptr(GMatchInfo) match = NULL;
        if (mark == 0 && flag == '.' && g_regex_match(open, body, 0, &match)) {
            g_autofree char *quote = g_match_info_fetch(match, 1);
            g_autofree char *ticks = g_match_info_fetch(match, 3);
            g_autofree char *tildes = g_match_info_fetch(match, 4);
            const char *marks = ticks != NULL && *ticks != '\0' ? ticks : tildes;
            flag = 'f';
            mark = *marks;
            run = strlen(marks);
            depth = 0;
            for (const char *at = quote; *at != '\0'; at++)
                depth += *at == '>';
        }
        for (gsize i = 0; i < length + (line[length] == '\n'); i++)
            g_string_append_c(flags, flag);
        line += length + (line[length] == '\n');
    }
    *open_at_end = mark != 0;
    return g_string_free(flags, FALSE);
}

/* Quotations so deep that fences in them are taken for text. */
static inline gboolean
split_oracle_is_deep(const char *text)
{
    static GRegex *deep;
    if (deep == NULL)
        deep = g_regex_new("^[ >]{8}", G_REGEX_MULTILINE, 0, NULL);
    return g_regex_match(deep, text, 0, NULL);
}

/* Fences so long that they are not repeated, but kept from being fences. */
static inline gboolean
split_oracle_is_long(const char *text, guint max)
{
    g_autofree char *ticks = g_strnfill(MIN(32, max / 8) + 1, '`');
    g_autofree char *tildes = g_strnfill(MIN(32, max / 8) + 1, '~');
    return strstr(text, ticks) != NULL || strstr(text, tildes) != NULL;
}

static inline gboolean
split_oracle_gap_is_fair(const char *text, gsize from, gsize to, const EbTextPart *before, const EbTextPart *after)
{
    if (eb_text_is_blank(text + from, (gssize)(to - from)))
        return TRUE;
    gboolean marks = before != NULL && before->tail > 0;
    gboolean quote = after != NULL && memchr(after->text, '>', after->head) != NULL;
    for (const char *at = text + from; at < text + to; at = g_utf8_next_char(at))
        if (!eb_text_is_blank(at, 1) && !(marks && strchr("`~>", *at) != NULL) && !(quote && *at == '>'))
            return FALSE;
    return TRUE;
}

/* NULL, or what is wrong. */
static inline const char *
split_oracle_check(const char *text, guint max, GPtrArray *parts)
{
    gboolean ignored;
    g_autofree char *flags = split_oracle_flags(text, &ignored);
    gboolean deep = split_oracle_is_deep(text);
    gboolean strange = deep || split_oracle_is_long(text, max);
    gsize reached = 0;
    for (guint i = 0; i < parts->len; i++) {
        const EbTextPart *part = parts->pdata[i];
        gsize length = strlen(part->text);
        if (!g_utf8_validate(part->text, -1, NULL))
            return "a part is no UTF-8";
        if (eb_text_units(part->text, -1) > max)
            return "a part is too long";
        if (part->start < reached || part->end <= part->start)
            return "parts out of order";
        if (!split_oracle_gap_is_fair(text, reached, part->start, i > 0 ? parts->pdata[i - 1] : NULL, part))
            return "something is lost between two parts";
        if (length != part->head + (part->end - part->start) + part->tail ||
            memcmp(part->text + part->head, text + part->start, part->end - part->start) != 0)
            return "a part is not what was said";
        if (part->head > 90 || part->tail > 90)
            return "too much is put around a part";
        if (g_unichar_isspace(g_utf8_get_char(part->text)) || eb_text_is_blank(part->text, -1))
            return "a part begins with what is trimmed";
        gboolean open = FALSE;
        g_autofree char *shown = split_oracle_flags(part->text, &open);
        if (open && !deep)
            return "a fence is left open";
        for (gsize at = part->start; at < part->end && !strange; at++) {
            char was = flags[at];
            char is = shown[part->head + at - part->start];
            /* The rest of an information line that fits into no part is shown as code. */
            if (was != is && !(was == 'f' && is == 'c'))
                return is == 'c' ? "prose becomes code" : "code becomes prose";
        }
        reached = part->end;
    }
    if (!split_oracle_gap_is_fair(text, reached, strlen(text), parts->len > 0 ? parts->pdata[parts->len - 1] : NULL,
                                  NULL))
        return "the end is lost";
    return NULL;
}
