/* SPDX-License-Identifier: MIT */
#include "core/render/eb-text-split.h"

#include "core/render/eb-text-fence.h"

#include <string.h>

/* Chats cut white space off at both ends of a message; this one is kept, and seen by nobody. */
#define GUARD "\xe2\x80\x8b"
#define GUARD_UNITS 1

typedef struct {
    gsize offset; /* of the source: where the next part would begin */
    gsize length; /* of the part up to there */
    gsize units;
} EbBreak;

typedef struct {
    const char *text;
    gsize length;
    gsize max;
    guint max_run;
    GPtrArray *parts;
    EbTextFence fence; /* at the place reached */

    /* the part under way */
    gboolean open;
    GString *part;
    gsize units;
    gsize head; /* bytes */
    gsize start;
    gsize end;
    EbBreak paragraph; /* between two paragraphs, near its end; offset 0 = none */
    EbBreak opening;   /* before the line of a fence that has no content here yet; offset 0 = none */
} EbSplit;

void
eb_text_part_free(EbTextPart *self)
{
    g_free(self->text);
    g_free(self);
}

gboolean
eb_text_is_blank(const char *text, gssize length)
{
    const char *end = text + (length < 0 ? strlen(text) : (gsize)length);
    for (; text < end; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        if (!g_unichar_isspace(c) && !g_unichar_iscntrl(c) && !g_unichar_iszerowidth(c))
            return FALSE;
    }
    return TRUE;
}

static void
append(EbSplit *self, const char *text, gsize length)
{
    g_string_append_len(self->part, text, (gssize)length);
    self->units += eb_text_units(text, (gssize)length);
}

static void
begin_part(EbSplit *self, gsize offset, const char *quote, gsize quote_length, gboolean guard)
{
    self->open = TRUE;
    self->start = self->end = offset;
    self->units = 0;
    self->paragraph = self->opening = (EbBreak){0};
    g_string_truncate(self->part, 0);
    if (self->fence.run > 0) {
        /* What the cut-off begin of the fence stood in, a list, is not there in this part. */
        self->fence.indent = 0;
        if (strlen(self->fence.info) > self->max / 8)
            self->fence.info[0] = '\0';
        eb_text_fence_append_open(&self->fence, self->part);
    }
    if (quote_length > 0)
        g_string_append_len(self->part, quote + strspn(quote, " "), (gssize)(quote_length - strspn(quote, " ")));
    const char *line = self->text + offset;
    if (guard) {
        g_string_append(self->part, GUARD);
    } else if (self->part->len == 0 && g_unichar_isspace(g_utf8_get_char(line))) {
        /* The mark of a list item must stay the first on its line to be one. */
        const char *first = line + strspn(line, " \t");
        g_string_append(self->part, strchr("-*+0123456789", *first) != NULL ? GUARD "\n" : GUARD);
    }
    self->head = self->part->len;
    self->units = eb_text_units(self->part->str, (gssize)self->part->len);
}

/* Closes the part at the place reached. */
static void
end_part(EbSplit *self)
{
    if (!self->open)
        return;
    self->open = FALSE;
    gsize tail = 0;
    if (self->fence.run > 0) {
        gsize before = self->part->len;
        if (self->part->str[before - 1] != '\n')
            g_string_append_c(self->part, '\n');
        eb_text_fence_append_close(&self->fence, self->part);
        tail = self->part->len - before;
    } else {
        while (self->part->len > self->head && g_ascii_isspace(self->part->str[self->part->len - 1])) {
            g_string_truncate(self->part, self->part->len - 1);
            self->end--;
        }
    }
    if (self->end <= self->start || eb_text_is_blank(self->text + self->start, (gssize)(self->end - self->start)))
        return;
    EbTextPart *part = g_new0(EbTextPart, 1);
    *part = (EbTextPart){g_strndup(self->part->str, self->part->len), self->start, self->end, self->head, tail};
    g_ptr_array_add(self->parts, part);
}

/* The part is full at @offset: closes it there or at a better place before. Returns where the next one begins. */
static gsize
end_part_well(EbSplit *self, gsize offset)
{
    EbBreak back = self->paragraph.offset > 0 ? self->paragraph : self->opening;
    if (back.offset > 0) {
        g_string_truncate(self->part, back.length);
        self->units = back.units;
        self->end = offset = back.offset;
        memset(&self->fence, 0, sizeof self->fence);
    }
    end_part(self);
    return offset;
}

static void
note_breaks(EbSplit *self, gsize offset, EbTextLine kind, gboolean blank)
{
    EbBreak here = {offset, self->part->len, self->units};
    gboolean within = self->fence.run > 0;
    if (kind == EB_TEXT_LINE_OPEN)
        self->opening = offset > self->start && !within ? here : (EbBreak){0};
    else if (!blank)
        self->opening = (EbBreak){0};
    if (!within && !blank && offset > self->start && self->units * 3 >= self->max * 2 &&
        g_str_has_suffix(self->part->str, "\n\n"))
        self->paragraph = here;
}

static void
place(EbSplit *self, gsize offset, gsize length)
{
    append(self, self->text + offset, length);
    self->end = offset + length;
}

/* A piece of a line must not look like a fence where it is put. @shown: the piece behind what is put before it. */
static gboolean
needs_guard(EbSplit *self, const char *shown, gsize length, EbTextLine meant)
{
    EbTextFence seen = self->fence;
    EbTextLine kind = eb_text_fence_follow(&seen, shown, length, NULL);
    if (kind == EB_TEXT_LINE_OPEN && seen.run > self->max_run)
        return TRUE;
    return (kind == EB_TEXT_LINE_OPEN || kind == EB_TEXT_LINE_CLOSE) && kind != meant;
}

/* What at the begin of a line would be a quotation, a heading or an item of a list. */
static gboolean
looks_like_block(const char *piece, gsize length)
{
    gsize at = 0;
    while (at < length && strchr("#-*+", piece[at]) != NULL)
        at++;
    if (at == 0)
        while (at < length && g_ascii_isdigit(piece[at]))
            at++;
    if (at > 0 && at < length && (piece[at] == '.' || piece[at] == ')'))
        at++;
    return length > 0 && (*piece == '>' || (at > 0 && at < length && piece[at] == ' '));
}

/* A line that fits into no part, or only behind a guard; the part before is closed. */
static void
add_long_line(EbSplit *self, gsize offset, gsize length, gsize quote_length, EbTextLine meant)
{
    const char *quote = self->text + offset;
    gsize at = 0;
    gboolean guarded = FALSE;
    while (at < length) {
        gsize line_end = length - (self->text[offset + length - 1] == '\n');
        gboolean code = self->fence.run > 0;
        begin_part(self, offset + at, quote, at > 0 ? quote_length : 0, guarded);
        gsize used = self->units + (guarded ? 0 : GUARD_UNITS) + eb_text_fence_close_length(&self->fence);
        /* An opening line closes with as many marks as it has itself. */
        if (meant == EB_TEXT_LINE_OPEN && at == 0)
            used += 1 + EB_TEXT_FENCE_MAX_QUOTE + EB_TEXT_FENCE_MAX_INDENT + self->max_run;
        const char *piece = self->text + offset + at;
        gsize fit = eb_text_cut(piece, line_end - at, self->max > used + 2 ? self->max - used : 2, !code);
        g_autofree char *shown = g_strdup_printf("%.*s%.*s", at > 0 ? (int)quote_length : 0, quote, (int)fit, piece);
        if (!guarded && ((at > 0 && !code && looks_like_block(piece, fit)) ||
                         needs_guard(self, shown, strlen(shown), at == 0 ? meant : EB_TEXT_LINE_PROSE))) {
            self->open = FALSE;
            guarded = TRUE;
            at = at == 0 ? quote_length : at;
            continue;
        }
        if (!guarded && at == 0)
            eb_text_fence_follow(&self->fence, piece, fit, NULL);
        guarded = FALSE;
        place(self, offset + at, fit);
        at += fit;
        if (at < line_end) {
            end_part(self);
            while (self->fence.run == 0 && at < line_end && self->text[offset + at] == ' ')
                at++;
        }
        if (at >= line_end) {
            if (self->open)
                place(self, offset + at, length - at);
            return;
        }
    }
}

/* Returns where to go on. */
static gsize
add_line(EbSplit *self, gsize offset)
{
    const char *line = self->text + offset;
    const char *newline = memchr(line, '\n', self->length - offset);
    gsize length = newline != NULL ? (gsize)(newline - line) + 1 : self->length - offset;
    gsize body = length - (newline != NULL);
    gboolean blank = eb_text_is_blank(line, (gssize)body);
    EbTextFence after = self->fence;
    gsize quote_length = 0;
    EbTextLine kind = eb_text_fence_follow(&after, line, body, &quote_length);
    if (!self->open && blank && kind == EB_TEXT_LINE_PROSE) {
        memset(&self->fence, 0, sizeof self->fence);
        return offset + length; /* nothing begins with it */
    }
    if (self->open && self->fence.run > 0 && (kind == EB_TEXT_LINE_PROSE || kind == EB_TEXT_LINE_OPEN)) {
        /* Its quotation ends without a closing line. */
        end_part(self);
        memset(&self->fence, 0, sizeof self->fence);
        return offset;
    }
    gboolean guard = kind == EB_TEXT_LINE_OPEN && after.run > self->max_run;
    gsize units = eb_text_units(line, (gssize)body);
    gsize cost = units + eb_text_fence_close_length(&after);
    if (self->open && (guard || self->units + cost > self->max)) {
        if (kind == EB_TEXT_LINE_CLOSE || (blank && kind == EB_TEXT_LINE_PROSE)) {
            end_part(self);
            memset(&self->fence, 0, sizeof self->fence);
            return offset + length;
        }
        if (!guard)
            return end_part_well(self, offset);
        end_part(self);
        return offset;
    }
    if (!self->open) {
        /* A fence that ends where its quotation does is not opened once more for that. */
        if (kind == EB_TEXT_LINE_PROSE || kind == EB_TEXT_LINE_OPEN)
            memset(&self->fence, 0, sizeof self->fence);
        else if (kind == EB_TEXT_LINE_CLOSE) {
            self->fence = after;
            return offset + length;
        }
        /* Before a fence or a quotation an indent is of no use, and nothing else may stand there. */
        gsize indent = strspn(line, " \t");
        if (indent > 0 && (quote_length > 0 || (kind == EB_TEXT_LINE_OPEN && strchr("`~", line[indent]) != NULL)))
            return offset + indent;
        begin_part(self, offset, NULL, 0, FALSE);
        if (guard || self->units + cost > self->max) {
            self->open = FALSE;
            add_long_line(self, offset, length, quote_length, kind);
            return offset + length;
        }
        if (self->fence.run > 0)
            after.indent = 0;
    }
    note_breaks(self, offset, kind, blank);
    self->fence = after;
    place(self, offset, length);
    return offset + length;
}

GPtrArray *
eb_text_split_parts(const char *text, guint max_units)
{
    g_return_val_if_fail(text != NULL, NULL);
    EbSplit self = {.text = text, .length = strlen(text), .max = MAX(max_units, EB_TEXT_SPLIT_MIN)};
    self.parts = g_ptr_array_new_with_free_func((GDestroyNotify)eb_text_part_free);
    self.part = g_string_new(NULL);
    self.max_run = (guint)MIN(EB_TEXT_FENCE_MAX_RUN, self.max / 8);
    for (gsize offset = 0; offset < self.length;)
        offset = add_line(&self, offset);
    end_part(&self);
    g_string_free(self.part, TRUE);
    return self.parts;
}

GPtrArray *
eb_text_split(const char *text, guint max_units)
{
    g_return_val_if_fail(text != NULL, NULL);
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    if (max_units == 0) {
        if (*text != '\0')
            g_ptr_array_add(texts, g_strdup(text));
        return texts;
    }
    g_autoptr(GPtrArray) parts = eb_text_split_parts(text, max_units);
    for (guint i = 0; i < parts->len; i++)
        g_ptr_array_add(texts, g_steal_pointer(&((EbTextPart *)parts->pdata[i])->text));
    return texts;
}
