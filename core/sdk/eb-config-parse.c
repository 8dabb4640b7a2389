/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "eb-config-section.h"
#include "eb-error.h"

typedef struct {
    const char *suffix;
    guint64 factor;
} Unit;

static const Unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"TB", G_GUINT64_CONSTANT(1000000000000)},
    {"KiB", 1024},
    {"MiB", 1024 * 1024},
    {"GiB", 1024 * 1024 * 1024},
    {"TiB", G_GUINT64_CONSTANT(1099511627776)},
};

static const Unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"min", 60 * 1000}, {"h", 60 * 60 * 1000}, {"d", 24 * 60 * 60 * 1000},
};

static gboolean
parse_with_unit(const char *text, const Unit *units, gsize n_units, guint64 *result, const char **problem)
{
    guint64 number = 0;
    const char *at = text;

    if (!g_ascii_isdigit(*at)) {
        *problem = "does not begin with a number";
        return FALSE;
    }
    for (; g_ascii_isdigit(*at); at++) {
        guint digit = (guint)(*at - '0');

        if (number > (G_MAXUINT64 - digit) / 10) {
            *problem = "is too large";
            return FALSE;
        }
        number = number * 10 + digit;
    }
    while (*at == ' ')
        at++;
    for (gsize i = 0; i < n_units; i++) {
        if (strcmp(at, units[i].suffix) != 0)
            continue;
        if (number > G_MAXUINT64 / units[i].factor) {
            *problem = "is too large";
            return FALSE;
        }
        *result = number * units[i].factor;
        return TRUE;
    }
    *problem = *at == '\0' ? "has no unit" : *at == '.' ? "is no whole number" : "has an unknown unit";
    return FALSE;
}

gboolean
eb_config_parse_size(const char *text, guint64 *bytes, GError **error)
{
    const char *problem = NULL;

    g_return_val_if_fail(text != NULL && bytes != NULL, FALSE);
    if (parse_with_unit(text, size_units, G_N_ELEMENTS(size_units), bytes, &problem))
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "config.size", "size \"%.40s\" %s (write 512MiB or 4GiB)", text, problem);
    return FALSE;
}

gboolean
eb_config_parse_duration(const char *text, guint64 *ms, GError **error)
{
    const char *problem = NULL;

    g_return_val_if_fail(text != NULL && ms != NULL, FALSE);
    if (parse_with_unit(text, duration_units, G_N_ELEMENTS(duration_units), ms, &problem))
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "config.duration", "duration \"%.40s\" %s (write 500ms, 15s, 30min, 2h or 1d)",
                 text, problem);
    return FALSE;
}

#define NEAREST_MAX_WORD 64

/* Edit distance with swaps of neighbours as one edit (optimal string alignment). */
static guint
edit_distance(const char *a, gsize a_length, const char *b, gsize b_length)
{
    guint rows[3][NEAREST_MAX_WORD + 1];

    for (gsize j = 0; j <= b_length; j++)
        rows[0][j] = (guint)j;
    for (gsize i = 1; i <= a_length; i++) {
        guint *row = rows[i % 3];
        const guint *above = rows[(i + 2) % 3];
        const guint *above2 = rows[(i + 1) % 3];

        row[0] = (guint)i;
        for (gsize j = 1; j <= b_length; j++) {
            guint cost = a[i - 1] == b[j - 1] ? 0 : 1;

            row[j] = MIN(MIN(above[j] + 1, row[j - 1] + 1), above[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *
eb_config_nearest(const char *word, const char *const *candidates)
{
    const char *best = NULL;
    gsize length;
    guint limit;

    g_return_val_if_fail(word != NULL, NULL);
    length = strlen(word);
    if (candidates == NULL || length == 0 || length > NEAREST_MAX_WORD)
        return NULL;
    limit = MAX(1, (guint)length / 3);
    for (; *candidates != NULL; candidates++) {
        gsize candidate_length = strlen(*candidates);
        guint distance;

        if (candidate_length > NEAREST_MAX_WORD)
            continue;
        distance = edit_distance(word, length, *candidates, candidate_length);
        if (distance > limit || (best != NULL && distance == limit))
            continue;
        best = *candidates;
        limit = distance;
    }
    return best;
}
