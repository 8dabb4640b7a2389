/* SPDX-License-Identifier: MIT */
#include "discord-clean.h"

#include <string.h>

/* Marks on one character, as in the Stream-Safe Text Format of UAX #15: no writing has more, and nobody can cut between
   ten thousand of them. */
#define MAX_MARKS 30
/* Flags of England, Scotland and Wales: the tag characters that mean something, between U+1F3F4 and U+E007F. */
static const char *const FLAG_TAGS[] = {"gbeng", "gbsct", "gbwls"};

#define ZWNJ 0x200c
#define ZWJ 0x200d
#define BLACK_FLAG 0x1f3f4
#define TAG_BASE 0xe0000
#define TAG_END 0xe007f

static gboolean
is_emoji(gunichar c)
{
    return (c >= 0x1f000 && c <= 0x1fbff) || (c >= 0x2190 && c <= 0x2bff) || c == 0xa9 || c == 0xae || c == 0x203c ||
           c == 0x2049 || c == 0x2122 || c == 0x2139 || c == 0x3030 || c == 0x303d || c == 0x3297 || c == 0x3299;
}

static gboolean
is_variation(gunichar c)
{
    return (c >= 0xfe00 && c <= 0xfe0f) || (c >= 0xe0100 && c <= 0xe01ef);
}

/* Invisible by the Unicode Standard (default ignorable) or by what fonts do, and of no use in a chat. */
static gboolean
is_invisible(gunichar c)
{
    return c == 0xad || c == 0x34f || c == 0x61c || c == 0x115f || c == 0x1160 || c == 0x17b4 || c == 0x17b5 ||
           (c >= 0x180b && c <= 0x180f) || (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0x3164 || c == 0xfeff || c == 0xffa0 || (c >= 0xfff0 && c <= 0xfffb) ||
           (c >= 0x1bca0 && c <= 0x1bca3) || (c >= 0x1d173 && c <= 0x1d17a) || (c >= TAG_BASE && c <= 0xe0fff) ||
           is_variation(c) || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef);
}

/* Those that change the order of what follows them: left out silently they would hide that somebody tried. */
static gboolean
is_direction(gunichar c)
{
    return c == 0x202a || c == 0x202b || c == 0x202d || c == 0x202e || c == 0x2066 || c == 0x2067;
}

/* Scripts whose letters change shape at a joiner. */
static gboolean
is_joining(gunichar c)
{
    if (c < 0x600)
        return FALSE;
    switch (g_unichar_get_script(c)) {
    case G_UNICODE_SCRIPT_ARABIC:
    case G_UNICODE_SCRIPT_SYRIAC:
    case G_UNICODE_SCRIPT_NKO:
    case G_UNICODE_SCRIPT_MONGOLIAN:
    case G_UNICODE_SCRIPT_DEVANAGARI:
    case G_UNICODE_SCRIPT_BENGALI:
    case G_UNICODE_SCRIPT_GURMUKHI:
    case G_UNICODE_SCRIPT_GUJARATI:
    case G_UNICODE_SCRIPT_ORIYA:
    case G_UNICODE_SCRIPT_TAMIL:
    case G_UNICODE_SCRIPT_TELUGU:
    case G_UNICODE_SCRIPT_KANNADA:
    case G_UNICODE_SCRIPT_MALAYALAM:
    case G_UNICODE_SCRIPT_SINHALA:
    case G_UNICODE_SCRIPT_KHMER:
    case G_UNICODE_SCRIPT_MYANMAR:
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean
is_right_to_left(gunichar c)
{
    if (c < 0x590 || is_invisible(c))
        return FALSE;
    switch (g_unichar_get_script(c)) {
    case G_UNICODE_SCRIPT_HEBREW:
    case G_UNICODE_SCRIPT_ARABIC:
    case G_UNICODE_SCRIPT_SYRIAC:
    case G_UNICODE_SCRIPT_THAANA:
    case G_UNICODE_SCRIPT_NKO:
        return TRUE;
    default:
        return FALSE;
    }
}

/* Is invisible @c of use between @before (kept) and @after (as it comes)? Every reason is one that a second look at the
   result finds again. */
static gboolean
is_needed(gunichar c, gunichar before, gunichar after)
{
    if (c == 0xfe0e || c == 0xfe0f)
        return is_emoji(before) || before == '#' || before == '*' || (before < 0x80 && g_ascii_isdigit((char)before));
    if (is_variation(c))
        return before >= 0x3000 && g_unichar_get_script(before) == G_UNICODE_SCRIPT_HAN && !is_variation(before);
    if (c == ZWJ && is_emoji(after))
        return is_emoji(before) || before == 0xfe0f;
    if (c == ZWJ || c == ZWNJ)
        return is_joining(before);
    if (c == 0x200b) /* between backticks it keeps them from being a fence */
        return before == '`' && after == '`';
    if (c == 0x200e || c == 0x200f || c == 0x61c)
        return is_right_to_left(before) || is_right_to_left(after);
    return FALSE;
}

/* The end of a terminal's sequence that begins at @p, behind its ESC (or C1 character) and @kind; unterminated strings
   end at once, so that no text is lost with them. */
static const char *
skip_sequence(const char *p, gunichar kind)
{
    const char *end = p;

    if (kind == '[') {
        while (*end >= 0x20 && *end <= 0x3f)
            end++;
        return *end >= 0x40 && *end <= 0x7e ? end + 1 : end;
    }
    if (strchr("]PX^_", (int)kind) == NULL)
        return p;
    for (; *end != '\0' && *end != '\n'; end++) {
        if (*end == '\a')
            return end + 1;
        if (*end == '\x1b' && end[1] == '\\')
            return end + 2;
        if ((guchar)*end == 0xc2 && (guchar)end[1] == 0x9c)
            return end + 2;
    }
    return p;
}

/* Control character @c just before @p: what takes its place goes to @out. Returns where to read on. */
static const char *
add_control(GString *out, gunichar c, const char *p)
{
    if (c == '\r') {
        if (*p != '\n')
            g_string_append_c(out, '\n');
        return p;
    }
    if (c == '\v' || c == '\f' || c == 0x85) {
        g_string_append_c(out, '\n');
        return p;
    }
    if (c == 0x1b && *p >= 0x20 && *p <= 0x7e) {
        const char *intermediate = p;
        /* ESC ( B and the like: intermediates, then one final character. */
        while (*intermediate >= 0x20 && *intermediate <= 0x2f)
            intermediate++;
        if (intermediate > p)
            return *intermediate >= 0x30 && *intermediate <= 0x7e ? intermediate + 1 : intermediate;
        return skip_sequence(p + 1, (gunichar)*p);
    }
    if (c == 0x90 || c == 0x98 || (c >= 0x9b && c <= 0x9f && c != 0x9c))
        return skip_sequence(p, c - 0x40);
    return p;
}

/* Tag characters at @p that make a flag of the U+1F3F4 before them: how many bytes, 0 = none. */
static gsize
flag_tags(const char *p)
{
    for (guint i = 0; i < G_N_ELEMENTS(FLAG_TAGS); i++) {
        const char *c = p, *tag = FLAG_TAGS[i];
        while (*tag != '\0' && g_utf8_get_char(c) == TAG_BASE + (gunichar)*tag) {
            c = g_utf8_next_char(c);
            tag++;
        }
        if (*tag == '\0' && g_utf8_get_char(c) == TAG_END)
            return (gsize)(g_utf8_next_char(c) - p);
    }
    return 0;
}

/* What discord_clean() knows about the result so far. */
typedef struct {
    GString *out;
    gunichar before; /* last character of the result, 0 = none */
    guint marks;     /* marks at its end */
} Clean;

static void
keep(Clean *self, gunichar c)
{
    if (g_unichar_ismark(c) && !is_variation(c)) {
        if (self->marks >= MAX_MARKS)
            return;
        self->marks++;
    } else if (!is_invisible(c)) {
        self->marks = 0;
    }
    g_string_append_unichar(self->out, c);
    self->before = c;
}

char *
discord_clean(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    Clean self = {.out = g_string_sized_new(strlen(valid) + 16)};
    const char *p = valid;

    while (*p != '\0') {
        gunichar c = g_utf8_get_char(p);
        p = g_utf8_next_char(p);
        if (c != '\n' && c != '\t' && (c < 0x20 || (c >= 0x7f && c < 0xa0))) {
            const gsize length = self.out->len;
            p = add_control(self.out, c, p);
            if (self.out->len > length) {
                self.before = '\n';
                self.marks = 0;
            }
        } else if (c == 0x2028 || c == 0x2029) {
            keep(&self, '\n');
        } else if (is_direction(c)) {
            g_string_append_printf(self.out, "{U+%04X}", c);
            self.before = '}';
            self.marks = 0;
        } else if (!is_invisible(c) || is_needed(c, self.before, g_utf8_get_char(p))) {
            keep(&self, c);
            if (c == BLACK_FLAG) {
                const gsize tags = flag_tags(p);
                g_string_append_len(self.out, p, (gssize)tags);
                p += tags;
            }
        }
    }
    return g_string_free(self.out, FALSE);
}

/* May a text be cut between @before and @after? @flags: regional indicators in a row that end with @before. */
static gboolean
may_cut(gunichar before, gunichar after, guint flags)
{
    if (g_unichar_ismark(after) || is_invisible(after) || before == ZWJ || (after >= 0x1f3fb && after <= 0x1f3ff))
        return FALSE;
    return !(after >= 0x1f1e6 && after <= 0x1f1ff && flags % 2 == 1);
}

char *
discord_clean_cut(const char *text, guint max_units)
{
    const char *safe = text;
    gunichar before = 0;
    guint units = 0, flags = 0;

    /* One unit is kept for the ellipsis; a text that would fit without it is found out on the way. */
    for (const char *p = text;; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        if (units <= max_units - 1 && (p == text || may_cut(before, c, flags)))
            safe = p;
        if (c == 0)
            return g_strdup(text);
        units += c > 0xffff ? 2 : 1;
        if (units > max_units)
            break;
        flags = c >= 0x1f1e6 && c <= 0x1f1ff ? flags + 1 : 0;
        before = c;
    }
    while (safe > text && g_ascii_isspace(safe[-1]))
        safe--;
    return g_strdup_printf("%.*s…", (int)(safe - text), text);
}
