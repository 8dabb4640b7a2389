/* SPDX-License-Identifier: MIT */
#include "core/config/eb-toml.h"

#include <string.h>

typedef enum {
    IN_NOTHING = 0,
    IN_COMMENT,
    IN_BASIC,         /* "..." */
    IN_LITERAL,       /* '...' */
    IN_MULTI_BASIC,   /* """...""" */
    IN_MULTI_LITERAL, /* '''...''' */
} ScanState;

typedef struct {
    const char *name;
    const char *text;
    gsize length;
    gsize at;
    guint line;
    gsize line_start;
    ScanState state;
    guint brackets; /* open [ and { */
    guint dots;     /* of the dotted key being read */
} Scan;

static gboolean
scan_fail(const Scan *scan, GError **error, const char *what)
{
    eb_set_error(error, EB_ERROR_CONFIG, "config.syntax", "%s:%u:%u: %s", scan->name, scan->line,
                 (guint)(scan->at - scan->line_start + 1), what);
    return FALSE;
}

static gboolean
scan_starts(const Scan *scan, const char *word)
{
    gsize length = strlen(word);
    return scan->length - scan->at >= length && memcmp(scan->text + scan->at, word, length) == 0;
}

/* Opens a string: three quotes begin a multi-line one. */
static void
scan_open_string(Scan *scan, char quote)
{
    gboolean basic = quote == '"';
    if (scan_starts(scan, basic ? "\"\"\"" : "'''")) {
        scan->state = basic ? IN_MULTI_BASIC : IN_MULTI_LITERAL;
        scan->at += 2;
        return;
    }
    scan->state = basic ? IN_BASIC : IN_LITERAL;
}

static void
scan_inside_string(Scan *scan, char c)
{
    gboolean basic = scan->state == IN_BASIC || scan->state == IN_MULTI_BASIC;
    gboolean multi = scan->state == IN_MULTI_BASIC || scan->state == IN_MULTI_LITERAL;
    char quote = basic ? '"' : '\'';

    if (basic && c == '\\') {
        /* Never steps over a line end, so that lines are counted. */
        if (scan->at + 1 < scan->length && scan->text[scan->at + 1] != '\n')
            scan->at++;
        return;
    }
    if (c != quote) {
        if (c == '\n' && !multi)
            scan->state = IN_NOTHING; /* an error that the parser reports in its own words */
        return;
    }
    if (!multi) {
        scan->state = IN_NOTHING;
        return;
    }
    if (!scan_starts(scan, basic ? "\"\"\"" : "'''"))
        return;
    scan->at += 2;
    /* Up to two quotes may stand directly before the closing three. */
    for (guint i = 0; i < 2 && scan->at + 1 < scan->length && scan->text[scan->at + 1] == quote; i++)
        scan->at++;
    scan->state = IN_NOTHING;
}

static gboolean
scan_outside(Scan *scan, char c, GError **error)
{
    switch (c) {
    case '#':
        scan->state = IN_COMMENT;
        break;
    case '"':
    case '\'':
        scan_open_string(scan, c);
        break;
    case '.':
        if (++scan->dots >= EB_TOML_MAX_DEPTH)
            return scan_fail(scan, error, "this key has too many parts");
        break;
    case '[':
    case '{':
        scan->dots = 0;
        if (++scan->brackets > EB_TOML_MAX_DEPTH)
            return scan_fail(scan, error, "nested too deeply");
        break;
    case ']':
    case '}':
        scan->dots = 0;
        if (scan->brackets > 0)
            scan->brackets--;
        break;
    case '=':
    case ',':
    case '\n':
        scan->dots = 0;
        break;
    default:
        break;
    }
    return TRUE;
}

static gboolean
scan_encoding(Scan *scan, GError **error)
{
    const char *bad = NULL;

    if (scan->length >= 2 && (memcmp(scan->text, "\xff\xfe", 2) == 0 || memcmp(scan->text, "\xfe\xff", 2) == 0))
        return scan_fail(scan, error, "this file is UTF-16, save it as UTF-8");
    if (scan->length == 0 || g_utf8_validate_len(scan->text, scan->length, &bad))
        return TRUE;
    gsize stop = (gsize)(bad - scan->text);
    for (; scan->at < stop; scan->at++) {
        if (scan->text[scan->at] == '\n') {
            scan->line++;
            scan->line_start = scan->at + 1;
        }
    }
    return scan_fail(scan, error, scan->text[stop] == '\0' ? "a NUL byte" : "not UTF-8 text");
}

gboolean
eb_toml_scan(const char *text, gsize length, const char *name, GError **error)
{
    Scan scan = {.name = name, .text = text, .length = length, .line = 1};

    if (length > EB_TOML_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_CONFIG, "config.too-long", "%s: longer than %u KiB", name,
                     EB_TOML_MAX_BYTES / 1024);
        return FALSE;
    }
    if (!scan_encoding(&scan, error))
        return FALSE;
    for (; scan.at < length; scan.at++) {
        char c = text[scan.at];
        if (scan.state == IN_NOTHING) {
            if (!scan_outside(&scan, c, error))
                return FALSE;
        } else if (scan.state == IN_COMMENT) {
            if (c == '\n')
                scan.state = IN_NOTHING;
        } else {
            scan_inside_string(&scan, c);
        }
        if (c == '\n') {
            scan.dots = 0;
            scan.line++;
            scan.line_start = scan.at + 1;
        }
    }
    return TRUE;
}
