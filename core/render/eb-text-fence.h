/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Bounds of what is repeated when a fence is closed and opened again, in bytes (all ASCII). */
#define EB_TEXT_FENCE_MAX_RUN 32
#define EB_TEXT_FENCE_MAX_INFO 32
#define EB_TEXT_FENCE_MAX_QUOTE 8
#define EB_TEXT_FENCE_MAX_INDENT 8

/** EbTextFence: the code fence that is open at a place of a Markdown text. Plain data; all zero: none is. */
typedef struct {
    guint run;    /* marks of the opening line; 0 = no fence */
    char mark;    /* '`' or '~' */
    guint indent; /* columns before the marks */
    guint depth;  /* of the quote it stands in: a line with fewer marks of quotation ends it */
    char quote[EB_TEXT_FENCE_MAX_QUOTE + 1];
    char info[EB_TEXT_FENCE_MAX_INFO + 1]; /* "" when it is too long or too strange to be repeated */
} EbTextFence;

typedef enum {
    EB_TEXT_LINE_PROSE,
    EB_TEXT_LINE_OPEN,  /* opens a fence */
    EB_TEXT_LINE_CODE,  /* within one */
    EB_TEXT_LINE_CLOSE, /* closes it */
} EbTextLine;

/**
 * eb_text_fence_follow: what the line is and how it changes the fence. As CommonMark has it, but both lines of a fence
 * may stand at any indent (within lists), and the first behind the mark of a list item.
 * @fence: (inout)
 * @line: with or without its line end
 * @quote_length: (out) (optional): bytes of the marks of quotation at its begin, at most EB_TEXT_FENCE_MAX_QUOTE
 */
EbTextLine eb_text_fence_follow(EbTextFence *fence, const char *line, gsize length, gsize *quote_length);

/** eb_text_fence_append_open: the opening line, with its line end, as it is repeated. */
void eb_text_fence_append_open(const EbTextFence *fence, GString *out);
/** eb_text_fence_append_close: the closing line, without line end. */
void eb_text_fence_append_close(const EbTextFence *fence, GString *out);
/** eb_text_fence_close_length: bytes (and units) of the closing line and of the line end before it; 0 without a fence. */
guint eb_text_fence_close_length(const EbTextFence *fence);

/** eb_text_fence_marks: (transfer full): of backticks, for a block that holds @text: longer than any run in it, 3 to 32. */
char *eb_text_fence_marks(const char *text);

G_END_DECLS
