/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/render/eb-text-cut.h"

G_BEGIN_DECLS

/** EB_TEXT_SPLIT_MIN: smallest bound that eb_text_split() keeps. */
#define EB_TEXT_SPLIT_MIN 64

/**
 * EbTextPart: one message's worth of a text. @text is @head bytes that were put in front (a fence opened again, marks of
 * quotation, U+200B that keeps an indent), the bytes @start to @end of the source, and @tail bytes that close a fence.
 */
typedef struct {
    char *text;
    gsize start;
    gsize end;
    gsize head;
    gsize tail;
} EbTextPart;
void eb_text_part_free(EbTextPart *self);

/**
 * eb_text_split_parts:
 * @text: valid UTF-8, Markdown
 * @max_units: UTF-16 code units of a part, EB_TEXT_SPLIT_MIN at least; that is never less than a count of code points, so
 *     a part also fits where those are counted
 *
 * Cuts between paragraphs or lines where possible, else at spaces, else between grapheme clusters (eb_text_cut()). In
 * every part each code fence is closed; one open at a cut is closed and opened again in the next part, and so is a
 * quotation. What is in no part is white space at the cuts, and a closing line that a part has anyway.
 *
 * Returns: (transfer full) (element-type EbTextPart): none with white space alone
 */
GPtrArray *eb_text_split_parts(const char *text, guint max_units);

/** eb_text_split: (transfer full) (element-type utf8): the texts alone; @max_units: 0 = one part, as it is */
GPtrArray *eb_text_split(const char *text, guint max_units);

/** eb_text_is_blank: whether nothing of @text would be seen. */
gboolean eb_text_is_blank(const char *text, gssize length);

G_END_DECLS
