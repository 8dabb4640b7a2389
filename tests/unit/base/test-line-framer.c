/* SPDX-License-Identifier: MIT */
#include "core/base/eb-line-framer.h"

#include <string.h>

/* Takes all lines out; each becomes one entry, a cut one begins with "CUT:". */
static void
drain(EbLineFramer *framer, GPtrArray *lines)
{
    const char *line = NULL;
    gsize length = 0;

    for (;;) {
        switch (eb_line_framer_next(framer, &line, &length)) {
        case EB_LINE_NONE:
            return;
        case EB_LINE_READY:
            g_assert_cmpint(line[length], ==, '\0');
            g_ptr_array_add(lines, g_strndup(line, length));
            break;
        case EB_LINE_CUT:
            g_ptr_array_add(lines, g_strdup_printf("CUT:%.*s", (int)length, line));
            break;
        case EB_LINE_TOO_LONG:
            if (lines->len == 0 || strcmp(g_ptr_array_index(lines, lines->len - 1), "TOO LONG") != 0)
                g_ptr_array_add(lines, g_strdup("TOO LONG"));
            return;
        }
    }
}

/* The lines of @text when it comes in pieces of @step bytes, joined by '|'. */
static char *
frame(const char *text, gsize step, gsize max_line, EbLineOverflow overflow)
{
    g_autoptr(EbLineFramer) framer = eb_line_framer_new(max_line, overflow);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    const gsize length = strlen(text);

    for (gsize at = 0; at < length; at += step) {
        eb_line_framer_push(framer, text + at, MIN(step, length - at));
        drain(framer, lines);
    }
    eb_line_framer_end(framer);
    drain(framer, lines);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("|", (char **)lines->pdata);
}

static void
test_lines(void)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"", ""},
        {"a\nb\n", "a|b"},
        {"a\r\nb\r\n", "a|b"},
        {"\n\r\n\nx", "||"
                      "|x"},
        {"last", "last"},
        {"a\rb\n", "a\rb"},
        {"a\r\r\n", "a\r"},
        {"one\xe2\x80\xa8two\xe2\x80\xa9three\xc2\x85"
         "four\n",
         "one\xe2\x80\xa8two\xe2\x80\xa9three\xc2\x85"
         "four"},
        {"\xf0\x9f\x98\x80\n\xff\xfe\n", "\xf0\x9f\x98\x80|\xff\xfe"},
        {"end with cr\r", "end with cr"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (gsize step = 1; step <= 12; step++) {
            g_autofree char *stop = frame(cases[i].text, step, 1000, EB_LINE_OVERFLOW_STOP);
            g_autofree char *cut = frame(cases[i].text, step, 1000, EB_LINE_OVERFLOW_CUT);

            g_assert_cmpstr(stop, ==, cases[i].expected);
            g_assert_cmpstr(cut, ==, cases[i].expected);
        }
    }
}

static void
test_nul_is_data(void)
{
    g_autoptr(EbLineFramer) framer = eb_line_framer_new(100, EB_LINE_OVERFLOW_STOP);
    const char *line = NULL;
    gsize length = 0;

    eb_line_framer_push(framer, "a\0b\n", 4);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_READY);
    g_assert_cmpmem(line, length, "a\0b", 3);
}

static void
test_limit(void)
{
    for (gsize step = 1; step <= 14; step++) {
        g_autofree char *fits = frame("12345\n12345\r\n123456\nx\n", step, 5, EB_LINE_OVERFLOW_STOP);
        g_autofree char *cut = frame("1234567890\nab\r\n123456\n12345\r\n", step, 5, EB_LINE_OVERFLOW_CUT);
        g_autofree char *open_end = frame("ab\n1234567890", step, 5, EB_LINE_OVERFLOW_CUT);

        g_assert_cmpstr(fits, ==, "12345|12345|TOO LONG");
        g_assert_cmpstr(cut, ==, "CUT:12345|ab|CUT:12345|12345");
        g_assert_cmpstr(open_end, ==, "ab|CUT:12345");
    }
}

static void
test_stays_stopped(void)
{
    g_autoptr(EbLineFramer) framer = eb_line_framer_new(3, EB_LINE_OVERFLOW_STOP);
    const char *line = NULL;
    gsize length = 0;

    eb_line_framer_push(framer, "12345", 5);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_TOO_LONG);
    eb_line_framer_push(framer, "\nok\n", 4);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_TOO_LONG);
    g_assert_cmpuint(eb_line_framer_get_capacity(framer), ==, 0);
}

/* A line of 32 MiB grows the buffer no further than needed, and the buffer is given back. */
static void
test_grows_and_shrinks(void)
{
    const gsize max = (gsize)32 * 1024 * 1024;
    const gsize chunk = (gsize)64 * 1024;
    g_autoptr(EbLineFramer) framer = eb_line_framer_new(max, EB_LINE_OVERFLOW_STOP);
    g_autofree char *block = g_malloc(chunk);
    const char *line = NULL;
    gsize length = 0;

    memset(block, 'x', chunk);
    for (gsize sent = 0; sent < max; sent += chunk) {
        eb_line_framer_push(framer, block, chunk);
        g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_NONE);
        g_assert_cmpuint(eb_line_framer_get_capacity(framer), <=, max + 2 * chunk);
    }
    eb_line_framer_push(framer, "\nnext", 5);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_READY);
    g_assert_cmpuint(length, ==, max);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_NONE);
    g_assert_cmpuint(eb_line_framer_get_capacity(framer), <=, chunk);
    eb_line_framer_push(framer, "\n", 1);
    g_assert_cmpint(eb_line_framer_next(framer, &line, &length), ==, EB_LINE_READY);
    g_assert_cmpmem(line, length, "next", 4);
}

/* A cut line of any length takes no more than its limit and what comes at once. */
static void
test_cut_is_bounded(void)
{
    const gsize chunk = (gsize)64 * 1024;
    g_autoptr(EbLineFramer) framer = eb_line_framer_new(4096, EB_LINE_OVERFLOW_CUT);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *block = g_malloc(chunk);

    memset(block, 'x', chunk);
    for (guint i = 0; i < 3200; i++) { /* 200 MiB */
        eb_line_framer_push(framer, block, chunk);
        drain(framer, lines);
        g_assert_cmpuint(eb_line_framer_get_capacity(framer), <=, 4 * chunk);
    }
    eb_line_framer_push(framer, "\nafter\n", 7);
    drain(framer, lines);
    g_assert_cmpuint(lines->len, ==, 2);
    g_assert_cmpuint(strlen(g_ptr_array_index(lines, 0)), ==, 4 + 4096);
    g_assert_cmpstr(g_ptr_array_index(lines, 1), ==, "after");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/line-framer/lines", test_lines);
    g_test_add_func("/base/line-framer/nul-is-data", test_nul_is_data);
    g_test_add_func("/base/line-framer/limit", test_limit);
    g_test_add_func("/base/line-framer/stays-stopped", test_stays_stopped);
    g_test_add_func("/base/line-framer/grows-and-shrinks", test_grows_and_shrinks);
    g_test_add_func("/base/line-framer/cut-is-bounded", test_cut_is_bounded);
    return g_test_run();
}
