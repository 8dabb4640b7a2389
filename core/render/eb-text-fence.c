/* SPDX-License-Identifier: MIT */
#include "core/render/eb-text-fence.h"

#include <string.h>

/* Marks of quotation: '>' with a space behind each or none; nothing else counts in the chats there are. */
static gsize
quote_marks(const char *line, gsize length, guint max_depth, guint *depth)
{
    gsize at = 0;
    gsize end = 0;
    *depth = 0;
    while (*depth < max_depth) {
        gsize mark = at;
        while (mark < length && mark < at + 3 && line[mark] == ' ')
            mark++;
        if (mark >= length || line[mark] != '>')
            break;
        mark++;
        if (mark < length && line[mark] == ' ')
            mark++;
        if (mark > EB_TEXT_FENCE_MAX_QUOTE)
            break;
        at = end = mark;
        (*depth)++;
    }
    return end;
}

static gsize
skip_indent(const char *line, gsize length, gsize at, guint *indent)
{
    while (at < length && (line[at] == ' ' || line[at] == '\t')) {
        *indent += line[at] == '\t' ? 4 : 1;
        at++;
    }
    return at;
}

/* Behind "- ", "* ", "+ ", "1. " or "1) "; @at when there is none. */
static gsize
skip_list_mark(const char *line, gsize length, gsize at, guint *indent)
{
    gsize mark = at;
    if (mark < length && strchr("-*+", line[mark]) != NULL && line[mark] != '\0') {
        mark++;
    } else {
        while (mark < length && mark < at + 9 && g_ascii_isdigit(line[mark]))
            mark++;
        if (mark == at || mark >= length || (line[mark] != '.' && line[mark] != ')'))
            return at;
        mark++;
    }
    if (mark >= length || line[mark] != ' ')
        return at;
    *indent += (guint)(mark - at);
    return skip_indent(line, length, mark, indent);
}

static gsize
run_length(const char *line, gsize length, gsize at)
{
    char mark = at < length ? line[at] : '\0';
    gsize run = 0;
    while ((mark == '`' || mark == '~') && at + run < length && line[at + run] == mark)
        run++;
    return run;
}

static gsize
trimmed(const char *line, gsize length)
{
    while (length > 0 && strchr(" \t\r\n", line[length - 1]) != NULL)
        length--;
    return length;
}

static void
keep_info(EbTextFence *fence, const char *info, gsize length)
{
    while (length > 0 && (*info == ' ' || *info == '\t')) {
        info++;
        length--;
    }
    gboolean plain = length <= EB_TEXT_FENCE_MAX_INFO;
    for (gsize i = 0; i < length && plain; i++)
        plain = (guchar)info[i] < 0x80 && !g_ascii_iscntrl(info[i]) && info[i] != fence->mark;
    if (plain)
        memcpy(fence->info, info, length);
}

static gboolean
closes(const EbTextFence *fence, const char *line, gsize length, gsize at)
{
    guint indent = 0;
    at = skip_indent(line, length, at, &indent);
    gsize run = run_length(line, length, at);
    return run >= fence->run && line[at] == fence->mark && trimmed(line + at + run, length - at - run) == 0;
}

EbTextLine
eb_text_fence_follow(EbTextFence *fence, const char *line, gsize length, gsize *quote_length)
{
    guint depth = 0;
    gsize quote = 0;
    if (fence->run > 0) {
        quote = quote_marks(line, length, fence->depth, &depth);
        if (quote_length != NULL)
            *quote_length = quote;
        if (depth == fence->depth) {
            if (!closes(fence, line, length, quote))
                return EB_TEXT_LINE_CODE;
            memset(fence, 0, sizeof *fence);
            return EB_TEXT_LINE_CLOSE;
        }
        memset(fence, 0, sizeof *fence);
    }
    quote = quote_marks(line, length, EB_TEXT_FENCE_MAX_QUOTE, &depth);
    if (quote_length != NULL)
        *quote_length = quote;
    guint indent = 0;
    gsize at = skip_indent(line, length, quote, &indent);
    at = skip_list_mark(line, length, at, &indent);
    gsize run = run_length(line, length, at);
    if (run < 3)
        return EB_TEXT_LINE_PROSE;
    const char *info = line + at + run;
    gsize info_length = trimmed(info, length - at - run);
    if (line[at] == '`' && memchr(info, '`', info_length) != NULL)
        return EB_TEXT_LINE_PROSE; /* code within a line */
    *fence = (EbTextFence){.run = (guint)MIN(run, G_MAXINT), .mark = line[at], .indent = indent, .depth = depth};
    gsize spaces = strspn(line, " ");
    if (quote > 0)
        memcpy(fence->quote, line + spaces, quote - spaces);
    keep_info(fence, info, info_length);
    return EB_TEXT_LINE_OPEN;
}

static void
append_marks(const EbTextFence *fence, GString *out)
{
    for (guint i = 0; i < fence->run; i++)
        g_string_append_c(out, fence->mark);
}

void
eb_text_fence_append_open(const EbTextFence *fence, GString *out)
{
    g_string_append(out, fence->quote);
    append_marks(fence, out);
    g_string_append(out, fence->info);
    g_string_append_c(out, '\n');
}

static guint
close_indent(const EbTextFence *fence)
{
    return MIN(fence->indent, EB_TEXT_FENCE_MAX_INDENT);
}

void
eb_text_fence_append_close(const EbTextFence *fence, GString *out)
{
    g_string_append(out, fence->quote);
    for (guint i = 0; i < close_indent(fence); i++)
        g_string_append_c(out, ' ');
    append_marks(fence, out);
}

guint
eb_text_fence_close_length(const EbTextFence *fence)
{
    return fence->run > 0 ? 1 + (guint)strlen(fence->quote) + close_indent(fence) + fence->run : 0;
}

char *
eb_text_fence_marks(const char *text)
{
    gsize longest = 2;
    for (const char *at = strchr(text, '`'); at != NULL; at = strchr(at, '`')) {
        gsize run = strspn(at, "`");
        longest = MAX(longest, run);
        at += run;
    }
    return g_strnfill(MIN(longest + 1, EB_TEXT_FENCE_MAX_RUN), '`');
}
