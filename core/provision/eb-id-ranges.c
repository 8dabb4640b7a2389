/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-id-ranges.h"

#include <string.h>

/* One line "owner:start:count"; FALSE for comments, other owners and nonsense. */
static gboolean
parse_line(const char *line, const char *owner, guint64 *start, guint64 *count)
{
    g_auto(GStrv) fields = g_strsplit(line, ":", 4);

    return g_strv_length(fields) == 3 && strcmp(g_strstrip(fields[0]), owner) == 0 &&
           g_ascii_string_to_unsigned(g_strstrip(fields[1]), 10, 0, G_MAXUINT32, start, NULL) &&
           g_ascii_string_to_unsigned(g_strstrip(fields[2]), 10, 1, G_MAXUINT32, count, NULL);
}

guint64
eb_id_ranges_largest(const char *text, const char *owner)
{
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    guint64 largest = 0, start, count;

    for (guint i = 0; lines[i] != NULL; i++)
        if (parse_line(lines[i], owner, &start, &count) && count > largest)
            largest = count;
    return largest;
}

gboolean
eb_id_ranges_contains(const char *text, const char *owner, guint64 id)
{
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    guint64 start, count;

    for (guint i = 0; lines[i] != NULL; i++)
        if (parse_line(lines[i], owner, &start, &count) && id >= start && id - start < count)
            return TRUE;
    return FALSE;
}
