/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pin-edit.h"

#include <string.h>

/* TRUE when the line is the header of the table, whatever follows it. */
static gboolean
is_header_of(const char *line, const EbPin *pin)
{
    const char *kind = eb_pin_kind_name(pin->kind);
    g_autofree char *plain = g_strdup_printf("[%s.%s]", kind, pin->name);
    g_autofree char *quoted = g_strdup_printf("[%s.\"%s\"]", kind, pin->name);

    line += strspn(line, " \t");
    return g_str_has_prefix(line, plain) || g_str_has_prefix(line, quoted);
}

/* (nullable): where the value of @key in quotes begins on this line, behind the quote */
static const char *
value_on(const char *line, const char *key)
{
    line += strspn(line, " \t");
    if (!g_str_has_prefix(line, key))
        return NULL;
    line += strlen(key);
    line += strspn(line, " \t");
    if (*line != '=')
        return NULL;
    line++;
    line += strspn(line, " \t");
    return *line == '"' ? line + 1 : NULL;
}

char *
eb_pin_edit_set(const char *text, const EbPin *pin, const char *key, const char *value, GError **error)
{
    gboolean inside = FALSE;

    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *next = strchr(line, '\n');
        const char *start = inside ? value_on(line, key) : NULL;
        gsize length = start != NULL ? strcspn(start, "\"\\\n") : 0;
        if (start != NULL && start[length] == '"' && !g_str_has_prefix(start, "\"\"")) {
            GString *result = g_string_new_len(text, start - text);
            g_string_append(result, value);
            g_string_append(result, start + length);
            return g_string_free(result, FALSE);
        }
        if (line[strspn(line, " \t")] == '[')
            inside = is_header_of(line, pin);
        line = next != NULL ? next + 1 : NULL;
    }
    eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "pins.edit",
                 "[%s.%s]: %s is not written as %s = \"...\" on one line: change it by hand",
                 eb_pin_kind_name(pin->kind), pin->name, key, key);
    return NULL;
}

/* Compares up to the end of the shorter part: digits by value, before anything else. */
static int
compare_part(const char *left, gsize left_length, const char *right, gsize right_length)
{
    gboolean left_number = strspn(left, "0123456789") >= left_length;
    gboolean right_number = strspn(right, "0123456789") >= right_length;

    if (left_number && right_number) {
        for (; left_length > 0 && *left == '0'; left++)
            left_length--;
        for (; right_length > 0 && *right == '0'; right++)
            right_length--;
        if (left_length != right_length)
            return left_length < right_length ? -1 : 1;
        return strncmp(left, right, left_length);
    }
    if (left_number != right_number)
        return left_number ? -1 : 1;
    int order = strncmp(left, right, MIN(left_length, right_length));
    return order != 0 || left_length == right_length ? order : left_length < right_length ? -1 : 1;
}

/* @missing: what stands for a part that one of them lacks */
static int
compare_parts(const char *left, gsize left_length, const char *right, gsize right_length, const char *missing)
{
    const char *left_end = left + left_length;
    const char *right_end = right + right_length;

    while (left < left_end || right < right_end) {
        gsize l = left < left_end ? MIN(strcspn(left, "."), (gsize)(left_end - left)) : 0;
        gsize r = right < right_end ? MIN(strcspn(right, "."), (gsize)(right_end - right)) : 0;
        if (missing == NULL && (left >= left_end || right >= right_end))
            return left >= left_end ? -1 : 1;
        int order = compare_part(left < left_end ? left : missing, left < left_end ? l : strlen(missing),
                                 right < right_end ? right : missing, right < right_end ? r : strlen(missing));
        if (order != 0)
            return order;
        left = left < left_end ? left + l + 1 : left;
        right = right < right_end ? right + r + 1 : right;
    }
    return 0;
}

int
eb_pin_version_compare(const char *left, const char *right)
{
    gsize left_whole = strcspn(left, "+");
    gsize right_whole = strcspn(right, "+");
    gsize left_core = MIN(strcspn(left, "-"), left_whole);
    gsize right_core = MIN(strcspn(right, "-"), right_whole);
    int order = compare_parts(left, left_core, right, right_core, "0");

    if (order != 0)
        return order;
    if (left_core == left_whole || right_core == right_whole)
        return (left_core == left_whole ? 1 : 0) - (right_core == right_whole ? 1 : 0);
    return compare_parts(left + left_core + 1, left_whole - left_core - 1, right + right_core + 1,
                         right_whole - right_core - 1, NULL);
}

gboolean
eb_pin_version_in_series(const char *version, const char *series)
{
    if (series == NULL)
        return TRUE;
    gsize length = strlen(series);
    return strncmp(version, series, length) == 0 && (version[length] == '\0' || strchr(".-+", version[length]) != NULL);
}

gboolean
eb_pin_version_is_prerelease(const char *version)
{
    return strcspn(version, "-") < strcspn(version, "+");
}

const char *
eb_pin_version_pick(GPtrArray *versions, const char *current, const char *series)
{
    const char *best = NULL;

    for (guint i = 0; i < versions->len; i++) {
        const char *version = g_ptr_array_index(versions, i);
        if (!eb_pin_version_is_valid(version) || !eb_pin_version_in_series(version, series) ||
            (eb_pin_version_is_prerelease(version) && !eb_pin_version_is_prerelease(current)))
            continue;
        if (eb_pin_version_compare(version, best != NULL ? best : current) > 0)
            best = version;
    }
    return best;
}
