/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * EbLineFramer: bytes in, lines out; no I/O.
 *
 * A line ends at LF alone: U+2028, U+2029, NEL and a lone CR are data, and a character split over two pushes is put
 * together again because nothing is decoded. One CR before the LF is dropped. Work is linear in the bytes pushed, also
 * for one long line that arrives a byte at a time. Memory never exceeds the longest line plus one push, and a buffer
 * that had to grow is given back once its long line has been read.
 */
typedef struct _EbLineFramer EbLineFramer;

/** EbLineOverflow: what a line beyond the limit does. */
typedef enum {
    EB_LINE_OVERFLOW_STOP = 0, /* eb_line_framer_next() gives EB_LINE_TOO_LONG for ever */
    EB_LINE_OVERFLOW_CUT = 1,  /* its beginning is one line, the rest up to LF is skipped */
} EbLineOverflow;

typedef enum {
    EB_LINE_NONE = 0,     /* no whole line yet */
    EB_LINE_READY = 1,    /* a line */
    EB_LINE_CUT = 2,      /* the beginning of a line that was longer than the limit */
    EB_LINE_TOO_LONG = 3, /* the limit was passed; this framer is done */
} EbLineStatus;

/** eb_line_framer_new: (transfer full): @max_line: bytes of a line without its end, at least 1. */
EbLineFramer *eb_line_framer_new(gsize max_line, EbLineOverflow overflow);
void eb_line_framer_free(EbLineFramer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbLineFramer, eb_line_framer_free)

/** eb_line_framer_push: copies @length bytes in. Take out all lines with eb_line_framer_next() before the next push. */
void eb_line_framer_push(EbLineFramer *self, const char *bytes, gsize length);
/** eb_line_framer_end: no more bytes come: a last line without LF becomes a line. */
void eb_line_framer_end(EbLineFramer *self);
/**
 * eb_line_framer_next:
 * @line: (out): valid until the next call on @self; NUL-terminated behind @length; may contain NUL bytes; may be empty
 * @length: (out): bytes
 */
EbLineStatus eb_line_framer_next(EbLineFramer *self, const char **line, gsize *length);

/** eb_line_framer_get_capacity: bytes allocated now, for tests and status. */
gsize eb_line_framer_get_capacity(EbLineFramer *self);

G_END_DECLS
