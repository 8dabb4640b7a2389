/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-id-ranges.h"

#include <stdio.h>
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

char *
eb_id_ranges_without(const char *text, const char *line)
{
    gsize length = strlen(line);
    const char *found = NULL;

    for (const char *start = text; *start != '\0';) {
        const char *end = strchrnul(start, '\n');
        if ((gsize)(end - start) == length && strncmp(start, line, length) == 0)
            found = start;
        start = *end == '\n' ? end + 1 : end;
    }
    if (found == NULL)
        return NULL;
    g_autofree char *head = g_strndup(text, (gsize)(found - text));
    return g_strconcat(head, found + length + (found[length] == '\n' ? 1 : 0), NULL);
}

gboolean
eb_id_map_overlaps(const char *map, const char *line)
{
    g_autofree char *owner = g_strndup(line, strcspn(line, ":"));
    g_auto(GStrv) lines = g_strsplit(map, "\n", -1);
    guint64 start, count;

    if (!parse_line(line, owner, &start, &count))
        return FALSE;
    for (guint i = 0; lines[i] != NULL; i++) {
        unsigned long long inside, outside, size;
        /* The initial namespace maps everything onto itself: that uses no range. */
        if (sscanf(lines[i], "%llu %llu %llu", &inside, &outside, &size) == 3 && size < G_MAXUINT32 &&
            outside < start + count && start < outside + size)
            return TRUE;
    }
    return FALSE;
}
