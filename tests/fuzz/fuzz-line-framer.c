/* SPDX-License-Identifier: MIT */
#include "core/base/eb-line-framer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

/* What the framer must give, computed the plain way. */
static void
expect(GPtrArray *lines, const char *text, gsize length, gsize max)
{
    const char *end = text + length;

    while (text < end) {
        const char *lf = memchr(text, '\n', (gsize)(end - text));
        gsize line = (gsize)((lf != NULL ? lf : end) - text);

        if (line > 0 && text[line - 1] == '\r' && line <= max + 1)
            line--;
        g_ptr_array_add(lines, g_bytes_new(text, MIN(line, max)));
        if (lf == NULL)
            break;
        text = lf + 1;
    }
}

static void
take(EbLineFramer *framer, GPtrArray *lines)
{
    const char *line = NULL;
    gsize length = 0;
    EbLineStatus status;

    while ((status = eb_line_framer_next(framer, &line, &length)) == EB_LINE_READY || status == EB_LINE_CUT) {
        if (line[length] != '\0')
            g_error("no NUL behind the line");
        g_ptr_array_add(lines, g_bytes_new(line, length));
    }
}

/* The first two bytes choose the size of the pieces and the limit. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(GPtrArray) expected = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(GPtrArray) got = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autoptr(EbLineFramer) framer = NULL;
    g_autoptr(EbLineFramer) strict = NULL;
    g_autoptr(GPtrArray) fewer = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    gsize step;
    gsize max;

    if (size < 2)
        return 0;
    step = (gsize)data[0] + 1;
    max = (gsize)data[1] + 1;
    framer = eb_line_framer_new(max, EB_LINE_OVERFLOW_CUT);
    strict = eb_line_framer_new(max, EB_LINE_OVERFLOW_STOP);
    data += 2;
    size -= 2;
    expect(expected, (const char *)data, size, max);
    for (gsize at = 0; at < size; at += step) {
        eb_line_framer_push(framer, (const char *)data + at, MIN(step, size - at));
        eb_line_framer_push(strict, (const char *)data + at, MIN(step, size - at));
        take(framer, got);
        take(strict, fewer);
    }
    eb_line_framer_end(framer);
    eb_line_framer_end(strict);
    take(framer, got);
    take(strict, fewer);
    if (got->len != expected->len)
        g_error("%u lines instead of %u", got->len, expected->len);
    for (guint i = 0; i < got->len; i++)
        if (!g_bytes_equal(got->pdata[i], expected->pdata[i]))
            g_error("line %u differs", i);
    for (guint i = 0; i < fewer->len; i++)
        if (!g_bytes_equal(fewer->pdata[i], expected->pdata[i]))
            g_error("line %u differs before the limit", i);
    return 0;
}
