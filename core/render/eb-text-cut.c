/* SPDX-License-Identifier: MIT */
#include "core/render/eb-text-cut.h"

#include <string.h>
#include <utf8proc.h>

/* Longer ones are cut like text. Bytes: <@id>, <:name:id>; code and links within a line. */
#define MAX_MENTION_BYTES 100
#define MAX_SPAN_BYTES 300

gsize
eb_text_units(const char *text, gssize length)
{
    gsize size = length < 0 ? strlen(text) : (gsize)length;
    gsize units = 0;
    for (gsize i = 0; i < size; i++) {
        guchar c = (guchar)text[i];
        if ((c & 0xc0) != 0x80)
            units += c >= 0xf0 ? 2 : 1;
    }
    return units;
}

/* Up to and with @end, when that comes before white space and within @max bytes; else 0. */
static gsize
until(const char *text, gsize length, char end, gsize max)
{
    for (gsize i = 1; i < MIN(length, max); i++) {
        if (text[i] == end)
            return i + 1;
        if (g_ascii_isspace(text[i]))
            return 0;
    }
    return 0;
}

static gsize
address_length(const char *text, gsize length)
{
    gsize at = 0;
    if (length > 8 && g_ascii_strncasecmp(text, "https://", 8) == 0)
        at = 8;
    else if (length > 7 && g_ascii_strncasecmp(text, "http://", 7) == 0)
        at = 7;
    else
        return 0;
    while (at < length && !g_ascii_isspace(text[at]) && strchr("<>\"`", text[at]) == NULL)
        at++;
    return at;
}

/* `code` with the same number of marks at both ends. */
static gsize
code_length(const char *text, gsize length)
{
    gsize run = 0;
    while (run < length && text[run] == '`')
        run++;
    for (gsize at = run; at < MIN(length, MAX_SPAN_BYTES);) {
        gsize other = 0;
        while (at + other < length && text[at + other] == '`')
            other++;
        if (other == run)
            return at + run;
        at += MAX(other, 1);
    }
    return run; /* marks alone are not torn apart either */
}

/* [text](address) */
static gsize
link_length(const char *text, gsize length)
{
    gsize bound = MIN(length, MAX_SPAN_BYTES);
    const char *middle = memmem(text, bound, "](", 2);
    if (middle == NULL || memchr(text + 1, '[', (gsize)(middle - text) - 1) != NULL)
        return 0;
    const char *end = memchr(middle, ')', bound - (gsize)(middle - text));
    return end != NULL ? (gsize)(end - text) + 1 : 0;
}

/* Bytes of what starts here and should stay in one piece; 0 = nothing special. */
static gsize
whole_length(const char *text, gsize length)
{
    switch (*text) {
    case '<':
        return length > 1 && strchr("@#:/atih", text[1]) != NULL ? until(text, length, '>', MAX_MENTION_BYTES) : 0;
    case 'h':
    case 'H':
        return address_length(text, length);
    case '`':
        return code_length(text, length);
    case '[':
        return link_length(text, length);
    default:
        return 0;
    }
}

typedef struct {
    gsize space;       /* behind white space, nothing whole is cut */
    gsize space_units; /* up to there */
    gsize border;      /* between grapheme clusters, nothing whole is cut */
    gsize border_units;
    gsize cluster; /* between grapheme clusters */
    gsize character;
} EbCuts;

static void
find_cuts(const char *line, gsize length, gsize room, gboolean prose, EbCuts *cuts)
{
    gsize units = 0;
    gsize whole_end = 0;
    gunichar before = 0;
    utf8proc_int32_t state = 0;
    for (gsize at = 0; at < length;) {
        gunichar c = g_utf8_get_char(line + at);
        gboolean cluster =
            at > 0 && utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)c, &state);
        if (at > 0 && units <= room) {
            cuts->character = at;
            cuts->cluster = cluster ? at : cuts->cluster;
            if (cluster && at >= whole_end) {
                cuts->border = at;
                cuts->border_units = units;
                if (g_unichar_isspace(before) && !g_unichar_isspace(c)) {
                    cuts->space = at;
                    cuts->space_units = units;
                }
            }
        }
        units += c >= 0x10000 ? 2 : 1;
        if (units > room)
            return;
        if (prose && at >= whole_end)
            whole_end = at + whole_length(line + at, length - at);
        before = c;
        at += (gsize)(g_utf8_next_char(line + at) - (line + at));
    }
    *cuts = (EbCuts){.space = length, .space_units = room, .character = length};
}

gsize
eb_text_cut(const char *line, gsize length, gsize room, gboolean prose)
{
    EbCuts cuts = {0};
    find_cuts(line, length, room, prose, &cuts);
    if (cuts.space == length)
        return length;
    /* A cut far before the end would make many short parts: then rather within a word, or even an address. */
    if (prose && cuts.space_units * 2 >= room)
        return cuts.space;
    if (prose && cuts.border_units * 4 >= room)
        return cuts.border;
    if (cuts.cluster > 0)
        return cuts.cluster;
    return cuts.character > 0 ? cuts.character : (gsize)(g_utf8_next_char(line) - line);
}

char *
eb_text_cut_all(const char *text, gsize room)
{
    gsize length = strlen(text);
    if (eb_text_units(text, (gssize)length) <= room)
        return g_strndup(text, length);
    gsize end = room > 2 ? eb_text_cut(text, length, room - 1, FALSE) : 0;
    return g_strdup_printf("%.*s…", (int)end, text);
}
