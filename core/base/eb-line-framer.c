/* SPDX-License-Identifier: MIT */
#include "core/base/eb-line-framer.h"

#include <string.h>

/* What a framer keeps when it has nothing to hold; larger buffers are given back. */
#define KEEP_CAPACITY ((gsize)64 * 1024)

struct _EbLineFramer {
    gsize max_line;
    EbLineOverflow overflow;
    char *data;
    gsize capacity; /* without the byte for the final NUL; at most max_line + the largest push + KEEP_CAPACITY */
    gsize start;    /* first byte not given out */
    gsize scanned;  /* no LF in [start, scanned) */
    gsize end;
    gboolean skipping; /* the rest of a cut line is being dropped */
    gboolean ended;
    gboolean failed;
};

EbLineFramer *
eb_line_framer_new(gsize max_line, EbLineOverflow overflow)
{
    EbLineFramer *self = g_new0(EbLineFramer, 1);

    self->max_line = MAX(max_line, 1);
    self->overflow = overflow;
    return self;
}

void
eb_line_framer_free(EbLineFramer *self)
{
    if (self == NULL)
        return;
    g_free(self->data);
    g_free(self);
}

/* Moves what is left to the front. Each byte of a line moves at most once a push, and only when lines before it have
 * been given out, so the work stays linear. */
static void
compact(EbLineFramer *self)
{
    if (self->start == 0)
        return;
    memmove(self->data, self->data + self->start, self->end - self->start);
    self->end -= self->start;
    self->scanned -= self->start;
    self->start = 0;
}

static void
shrink(EbLineFramer *self)
{
    const gsize used = self->end - self->start;

    if (self->capacity <= KEEP_CAPACITY || used > self->capacity / 4)
        return;
    compact(self);
    self->capacity = MAX(used * 2, KEEP_CAPACITY);
    self->data = g_realloc(self->data, self->capacity + 1);
}

static void
make_room(EbLineFramer *self, gsize length)
{
    shrink(self);
    if (self->capacity - self->end >= length && self->data != NULL)
        return;
    compact(self);
    if (self->capacity - self->end >= length && self->data != NULL)
        return;
    /* Doubling keeps the work linear; the cap keeps a line of just above a power of two from taking twice its size. */
    self->capacity = MIN(self->capacity * 2, self->max_line + length + KEEP_CAPACITY);
    self->capacity = MAX(MAX(self->capacity, self->end + length), KEEP_CAPACITY);
    self->data = g_realloc(self->data, self->capacity + 1);
}

void
eb_line_framer_push(EbLineFramer *self, const char *bytes, gsize length)
{
    g_return_if_fail(!self->ended);

    if (length == 0 || self->failed)
        return;
    if (self->skipping) {
        const char *lf = memchr(bytes, '\n', length);

        if (lf == NULL)
            return;
        length -= (gsize)(lf + 1 - bytes);
        bytes = lf + 1;
        self->skipping = FALSE;
        if (length == 0)
            return;
    }
    make_room(self, length);
    memcpy(self->data + self->end, bytes, length);
    self->end += length;
}

void
eb_line_framer_end(EbLineFramer *self)
{
    self->ended = TRUE;
}

/* Where a line that ends before @at really ends: before one CR. */
static gsize
trim_cr(EbLineFramer *self, gsize at)
{
    return at > self->start && self->data[at - 1] == '\r' ? at - 1 : at;
}

/* Gives out [start, stop) and goes on behind @resume. */
static void
give(EbLineFramer *self, gsize stop, gsize resume, const char **line, gsize *length)
{
    /* The byte at stop is the line's own CR or LF, the first byte of a part that is dropped, or the spare one. */
    self->data[stop] = '\0';
    *line = self->data + self->start;
    *length = stop - self->start;
    self->start = resume;
    self->scanned = resume;
}

static EbLineStatus
overflowed(EbLineFramer *self, gboolean whole, gsize lf, const char **line, gsize *length)
{
    const gsize stop = self->start + self->max_line;

    if (self->overflow == EB_LINE_OVERFLOW_STOP) {
        self->failed = TRUE;
        g_clear_pointer(&self->data, g_free);
        self->capacity = self->start = self->scanned = self->end = 0;
        return EB_LINE_TOO_LONG;
    }
    give(self, stop, whole ? lf + 1 : self->end, line, length);
    self->skipping = !whole;
    return EB_LINE_CUT;
}

EbLineStatus
eb_line_framer_next(EbLineFramer *self, const char **line, gsize *length)
{
    const char *lf = NULL;
    gsize at;

    if (self->failed)
        return EB_LINE_TOO_LONG;
    if (self->data == NULL)
        return EB_LINE_NONE;
    if (self->end > self->scanned)
        lf = memchr(self->data + self->scanned, '\n', self->end - self->scanned);
    at = lf != NULL ? (gsize)(lf - self->data) : self->end;
    self->scanned = at;
    /* A CR that belongs to the line's end does not count. */
    if (at - self->start > self->max_line && !(at - self->start == self->max_line + 1 && self->data[at - 1] == '\r'))
        return overflowed(self, lf != NULL, at, line, length);
    if (lf != NULL) {
        give(self, trim_cr(self, at), at + 1, line, length);
        return EB_LINE_READY;
    }
    if (self->ended && at > self->start) {
        give(self, trim_cr(self, at), at, line, length);
        return EB_LINE_READY;
    }
    if (self->start == self->end)
        self->start = self->scanned = self->end = 0;
    shrink(self);
    return EB_LINE_NONE;
}

gsize
eb_line_framer_get_capacity(EbLineFramer *self)
{
    return self->capacity;
}
