/* SPDX-License-Identifier: MIT */
#include "core/render/eb-text-split.h"

#include <string.h>

/* An info string longer than this is not worth repeating in every part. */
#define MAX_REOPEN_UNITS 32

typedef struct {
    GPtrArray *parts;
    GString *part;
    gsize units;      /* of part */
    gsize head_units; /* of what only reopens the fence */
    gsize max;
    guint fence; /* length of the open fence, 0 = none */
    char mark;   /* '`' or '~' */
    char reopen[64];
} EbSplit;

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

/* Units that closing the open fence costs: a line end and the marks. */
static gsize
closing_cost(const EbSplit *self)
{
    return self->fence > 0 ? 1 + self->fence : 0;
}

static void
append(EbSplit *self, const char *text, gsize length)
{
    g_string_append_len(self->part, text, (gssize)length);
    self->units += eb_text_units(text, (gssize)length);
}

static gboolean
has_content(const EbSplit *self)
{
    return self->units > self->head_units;
}

static void
end_part(EbSplit *self)
{
    gboolean blank = TRUE;
    for (gsize i = 0; i < self->part->len && blank; i++)
        blank = g_ascii_isspace(self->part->str[i]);
    if (self->fence > 0) {
        if (self->part->len > 0 && self->part->str[self->part->len - 1] != '\n')
            g_string_append_c(self->part, '\n');
        for (guint i = 0; i < self->fence; i++)
            g_string_append_c(self->part, self->mark);
    }
    while (self->part->len > 0 && self->part->str[self->part->len - 1] == '\n')
        g_string_truncate(self->part, self->part->len - 1);
    if (!blank)
        g_ptr_array_add(self->parts, g_strdup(self->part->str));
    g_string_truncate(self->part, 0);
    self->units = 0;
    if (self->fence > 0)
        append(self, self->reopen, strlen(self->reopen));
    self->head_units = self->units;
}

/* Follows the fence over one line. */
static void
track_fence(EbSplit *self, const char *line, gsize length)
{
    gsize at = 0;
    while (at < length && at < 3 && line[at] == ' ')
        at++;
    char mark = at < length ? line[at] : '\0';
    if (mark != '`' && mark != '~')
        return;
    gsize run = 0;
    while (at + run < length && line[at + run] == mark)
        run++;
    if (run < 3)
        return;
    const char *rest = line + at + run;
    gsize rest_length = length - at - run;
    while (rest_length > 0 && g_ascii_isspace(rest[rest_length - 1]))
        rest_length--;
    if (self->fence > 0) {
        if (mark == self->mark && run >= self->fence && rest_length == 0)
            self->fence = 0;
        return;
    }
    if (mark == '`' && memchr(rest, '`', rest_length) != NULL)
        return; /* inline code, no fence */
    self->mark = mark;
    self->fence = (guint)MIN(run, 16);
    gsize n = 0;
    while (n < self->fence)
        self->reopen[n++] = mark;
    gboolean plain = rest_length <= MAX_REOPEN_UNITS;
    for (gsize i = 0; i < rest_length && plain; i++)
        plain = (guchar)rest[i] < 0x80;
    if (plain) {
        memcpy(self->reopen + n, rest, rest_length);
        n += rest_length;
    }
    self->reopen[n++] = '\n';
    self->reopen[n] = '\0';
}

/* Bytes of @text that fit into @room units; at a space when one is near the end and the text is prose. */
static gsize
bytes_that_fit(const char *text, gsize length, gsize room, gboolean prose)
{
    gsize units = 0;
    gsize at = 0;
    gsize space = 0;
    while (at < length) {
        gsize size = (gsize)(g_utf8_next_char(text + at) - (text + at));
        gsize cost = (guchar)text[at] >= 0xf0 ? 2 : 1;
        if (units + cost > room)
            break;
        units += cost;
        at += size;
        if (text[at - 1] == ' ' && units * 4 >= room * 3)
            space = at;
    }
    return prose && at < length && space > 0 ? space : at;
}

static void
add_line(EbSplit *self, const char *line, gsize length)
{
    guint fence_before = self->fence;
    /* The line end itself never needs room: a part may end before it. */
    gsize body = length > 0 && line[length - 1] == '\n' ? length - 1 : length;
    gsize units = eb_text_units(line, (gssize)body);
    EbSplit probe = *self;
    track_fence(&probe, line, length);
    gsize cost = MAX(closing_cost(&probe), probe.fence > 0 ? closing_cost(self) : 0);
    if (self->units + units + cost > self->max && has_content(self))
        end_part(self);
    track_fence(self, line, length);
    if (self->units + units + cost <= self->max) {
        append(self, line, length);
        return;
    }
    while (length > 0) {
        gsize used = self->units + closing_cost(self);
        gsize room = self->max > used ? self->max - used : 1;
        gsize fit = bytes_that_fit(line, length, room, fence_before == 0 && self->fence == 0);
        if (fit == 0)
            break;
        append(self, line, fit);
        line += fit;
        length -= fit;
        if (length > 0 && !(length == 1 && *line == '\n'))
            end_part(self);
        else if (length == 1) {
            append(self, line, 1);
            length = 0;
        }
    }
}

GPtrArray *
eb_text_split(const char *text, guint max_units)
{
    g_return_val_if_fail(text != NULL, NULL);
    GPtrArray *parts = g_ptr_array_new_with_free_func(g_free);
    if (max_units == 0 || eb_text_units(text, -1) <= max_units) {
        if (*text != '\0')
            g_ptr_array_add(parts, g_strdup(text));
        return parts;
    }
    EbSplit self = {.parts = parts, .part = g_string_new(NULL), .max = MAX(max_units, EB_TEXT_SPLIT_MIN)};
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');
        gsize length = end != NULL ? (gsize)(end - line) + 1 : strlen(line);
        add_line(&self, line, length);
        line += length;
    }
    self.fence = has_content(&self) ? self.fence : 0;
    if (has_content(&self))
        end_part(&self);
    g_string_free(self.part, TRUE);
    return parts;
}
