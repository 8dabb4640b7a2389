/* SPDX-License-Identifier: MIT */
#include "eb-json-private.h"

#include <math.h>
#include <string.h>

#include "eb-error.h"

/*
 * A strict RFC 8259 grammar check without recursion. json-glib reads a superset (comments, assignments), recurses
 * without a bound and asserts on half a surrogate pair, so nothing reaches it that has not passed here.
 */

/* Longest number, and the length up to which one without an exponent is in range for sure. */
#define NUMBER_MAX_BYTES 512
#define NUMBER_SURE_BYTES 300

typedef enum {
    EXPECT_VALUE,          /* any value */
    EXPECT_VALUE_OR_CLOSE, /* behind '[' */
    EXPECT_KEY_OR_CLOSE,   /* behind '{' */
    EXPECT_KEY,            /* behind ',' in an object */
    EXPECT_COMMA_OR_CLOSE, /* behind a value in a container */
    EXPECT_END,            /* behind the root */
} Expect;

typedef struct {
    const char *start;
    const char *at;
    const char *end;
    char *repair; /* (nullable) (unowned) */
    guint n_repairs;
    guint n_values;
    guint depth;
    guint8 objects[EB_JSON_MAX_DEPTH / 8]; /* one bit a level: an object, not an array */
} Scan;

static gboolean
scan_error(const Scan *scan, const char *reason, const char *what, GError **error)
{
    eb_set_error(error, EB_ERROR_INVALID, reason, "%s at byte %" G_GSIZE_FORMAT " of JSON", what,
                 (gsize)(scan->at - scan->start));
    return FALSE;
}

static gboolean
in_object(const Scan *scan)
{
    guint level = scan->depth - 1;

    return (scan->objects[level / 8] >> (level % 8)) & 1;
}

static void
push(Scan *scan, gboolean object)
{
    guint level = scan->depth++;
    guint8 bit = (guint8)(1u << (level % 8));

    if (object)
        scan->objects[level / 8] |= bit;
    else
        scan->objects[level / 8] &= (guint8)~bit;
}

/* The four hex digits behind "\u" at @at, or -1. */
static int
read_hex4(const char *at, const char *end)
{
    int value = 0;

    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = g_ascii_xdigit_value(at[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void
replace_escape(Scan *scan, const char *backslash)
{
    scan->n_repairs++;
    if (scan->repair != NULL)
        memcpy(scan->repair + (backslash - scan->start), "\\ufffd", 6);
}

/* @scan->at is at a backslash; moves behind the escape. */
static gboolean
scan_escape(Scan *scan, GError **error)
{
    const char *backslash = scan->at;
    int unit;

    if (scan->end - scan->at < 2)
        return scan_error(scan, "json.syntax", "unfinished escape", error);
    if (scan->at[1] != 'u') {
        if (scan->at[1] == '\0' || strchr("\"\\/bfnrt", scan->at[1]) == NULL)
            return scan_error(scan, "json.syntax", "unknown escape", error);
        scan->at += 2;
        return TRUE;
    }
    unit = read_hex4(scan->at + 2, scan->end);
    if (unit < 0)
        return scan_error(scan, "json.syntax", "bad \\u escape", error);
    scan->at += 6;
    if (unit >= 0xd800 && unit <= 0xdbff && scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u') {
        int low = read_hex4(scan->at + 2, scan->end);

        if (low >= 0xdc00 && low <= 0xdfff) {
            scan->at += 6;
            return TRUE;
        }
    }
    if (unit == 0 || (unit >= 0xd800 && unit <= 0xdfff))
        replace_escape(scan, backslash);
    return TRUE;
}

/* @scan->at is at a quote; moves behind the closing one. */
static gboolean
scan_string(Scan *scan, GError **error)
{
    scan->at++;
    while (scan->at < scan->end) {
        guint8 c = (guint8)*scan->at;

        if (c == '"') {
            scan->at++;
            return TRUE;
        }
        if (c < 0x20)
            return scan_error(scan, "json.syntax", "control byte in a string", error);
        if (c == '\\') {
            if (!scan_escape(scan, error))
                return FALSE;
        } else {
            scan->at++;
        }
    }
    return scan_error(scan, "json.syntax", "unfinished string", error);
}

static gboolean
scan_digits(Scan *scan)
{
    const char *first = scan->at;

    while (scan->at < scan->end && g_ascii_isdigit(*scan->at))
        scan->at++;
    return scan->at > first;
}

/* A number that no double holds would come out of the generator as "inf", which nobody reads. */
static gboolean
check_range(Scan *scan, const char *first, GError **error)
{
    char text[NUMBER_MAX_BYTES + 1];
    gsize length = (gsize)(scan->at - first);

    if (length <= NUMBER_SURE_BYTES && memchr(first, 'e', length) == NULL && memchr(first, 'E', length) == NULL)
        return TRUE;
    if (length > NUMBER_MAX_BYTES)
        return scan_error(scan, "json.syntax", "number of too many digits", error);
    memcpy(text, first, length);
    text[length] = '\0';
    if (!isfinite(g_ascii_strtod(text, NULL)))
        return scan_error(scan, "json.syntax", "number out of range", error);
    return TRUE;
}

static gboolean
scan_number(Scan *scan, GError **error)
{
    const char *first = scan->at;

    if (*scan->at == '-')
        scan->at++;
    if (scan->at < scan->end && *scan->at == '0')
        scan->at++;
    else if (!scan_digits(scan))
        return scan_error(scan, "json.syntax", "bad number", error);
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!scan_digits(scan))
            return scan_error(scan, "json.syntax", "bad number", error);
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        if (!scan_digits(scan))
            return scan_error(scan, "json.syntax", "bad number", error);
    }
    return check_range(scan, first, error);
}

static gboolean
scan_word(Scan *scan, GError **error)
{
    static const char *const words[] = {"true", "false", "null"};

    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        gsize length = strlen(words[i]);

        if ((gsize)(scan->end - scan->at) >= length && memcmp(scan->at, words[i], length) == 0) {
            scan->at += length;
            return TRUE;
        }
    }
    return scan_error(scan, "json.syntax", "unexpected byte", error);
}

static void
skip_space(Scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
}

static gboolean
scan_key(Scan *scan, GError **error)
{
    if (scan->at >= scan->end || *scan->at != '"')
        return scan_error(scan, "json.syntax", "expected a member name", error);
    if (!scan_string(scan, error))
        return FALSE;
    skip_space(scan);
    if (scan->at >= scan->end || *scan->at != ':')
        return scan_error(scan, "json.syntax", "expected a colon", error);
    scan->at++;
    return TRUE;
}

/* One value, or the opening of a container; @expect: (out): what comes next. */
static gboolean
scan_value(Scan *scan, guint max_depth, Expect *expect, GError **error)
{
    char c = *scan->at;
    gboolean ok;

    if (++scan->n_values > EB_JSON_MAX_VALUES)
        return scan_error(scan, "json.values", "too many values", error);
    if (c == '{' || c == '[') {
        if (scan->depth >= max_depth)
            return scan_error(scan, "json.depth", "too deep nesting", error);
        push(scan, c == '{');
        scan->at++;
        *expect = c == '{' ? EXPECT_KEY_OR_CLOSE : EXPECT_VALUE_OR_CLOSE;
        return TRUE;
    }
    if (c == '"')
        ok = scan_string(scan, error);
    else if (c == '-' || g_ascii_isdigit(c))
        ok = scan_number(scan, error);
    else
        ok = scan_word(scan, error);
    *expect = scan->depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_END;
    return ok;
}

/* @scan->at is at the first byte behind spaces. */
static gboolean
scan_step(Scan *scan, guint max_depth, Expect *expect, GError **error)
{
    char c = *scan->at;
    char closing = scan->depth > 0 ? (in_object(scan) ? '}' : ']') : '\0';

    switch (*expect) {
    case EXPECT_END:
        return scan_error(scan, "json.syntax", "something behind the value", error);
    case EXPECT_KEY_OR_CLOSE:
    case EXPECT_VALUE_OR_CLOSE:
    case EXPECT_COMMA_OR_CLOSE:
        if (c == closing) {
            scan->at++;
            scan->depth--;
            *expect = scan->depth > 0 ? EXPECT_COMMA_OR_CLOSE : EXPECT_END;
            return TRUE;
        }
        break;
    case EXPECT_VALUE:
    case EXPECT_KEY:
    default:
        break;
    }
    if (*expect == EXPECT_COMMA_OR_CLOSE) {
        if (c != ',')
            return scan_error(scan, "json.syntax", "expected a comma or the end", error);
        scan->at++;
        *expect = in_object(scan) ? EXPECT_KEY : EXPECT_VALUE;
        return TRUE;
    }
    if (*expect == EXPECT_KEY || *expect == EXPECT_KEY_OR_CLOSE) {
        *expect = EXPECT_VALUE;
        return scan_key(scan, error);
    }
    return scan_value(scan, max_depth, expect, error);
}

gboolean
eb_json_scan_repair(const char *text, gsize length, const EbJsonLimits *limits, char *repair, guint *n_repairs,
                    GError **error)
{
    Scan scan = {.start = text, .at = text, .end = text + length, .repair = repair};
    Expect expect = EXPECT_VALUE;
    guint max_depth;

    if (limits == NULL)
        limits = &EB_JSON_LIMITS_DEFAULT;
    max_depth = MIN(limits->max_depth, EB_JSON_MAX_DEPTH);
    if (length > limits->max_bytes) {
        eb_set_error(error, EB_ERROR_INVALID, "json.size",
                     "JSON of %" G_GSIZE_FORMAT " bytes is longer than the %" G_GSIZE_FORMAT " allowed", length,
                     limits->max_bytes);
        return FALSE;
    }
    if (!g_utf8_validate_len(text, length, &scan.at))
        return scan_error(&scan, "json.utf8", "not UTF-8", error);
    scan.at = text;
    for (skip_space(&scan); scan.at < scan.end; skip_space(&scan)) {
        if (!scan_step(&scan, max_depth, &expect, error))
            return FALSE;
    }
    if (expect != EXPECT_END)
        return scan_error(&scan, "json.syntax", length == 0 ? "nothing" : "unfinished value", error);
    if (n_repairs != NULL)
        *n_repairs = scan.n_repairs;
    return TRUE;
}

gboolean
eb_json_scan(const char *text, gsize length, const EbJsonLimits *limits, GError **error)
{
    g_return_val_if_fail(text != NULL || length == 0, FALSE);
    return eb_json_scan_repair(text != NULL ? text : "", length, limits, NULL, NULL, error);
}
