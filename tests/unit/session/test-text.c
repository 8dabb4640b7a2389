/* SPDX-License-Identifier: MIT */
/* Splitting texts for a chat, and diffs. */
#include "core/render/eb-diff.h"
#include "core/render/eb-text-split.h"
#include "eb-test.h"

#include <string.h>

static guint
count_fences(const char *text)
{
    guint n = 0;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++)
        n += g_str_has_prefix(lines[i], "```");
    return n;
}

static void
assert_parts(GPtrArray *parts, guint max)
{
    for (guint i = 0; i < parts->len; i++) {
        g_assert_true(g_utf8_validate(parts->pdata[i], -1, NULL));
        g_assert_cmpuint(eb_text_units(parts->pdata[i], -1), <=, max);
        g_assert_cmpuint(count_fences(parts->pdata[i]) % 2, ==, 0);
    }
}

static void
test_short(void)
{
    g_autoptr(GPtrArray) parts = eb_text_split("hello\n", 2000);
    g_assert_cmpuint(parts->len, ==, 1);
    g_assert_cmpstr(parts->pdata[0], ==, "hello");
    g_autoptr(GPtrArray) none = eb_text_split("", 2000);
    g_assert_cmpuint(none->len, ==, 0);
}

static void
test_lines(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < 100; i++)
        g_string_append_printf(text, "line %u of the text that is longer than one message\n", i);
    g_autoptr(GPtrArray) parts = eb_text_split(text->str, 500);
    g_assert_cmpuint(parts->len, >, 9);
    assert_parts(parts, 500);
    g_autoptr(GString) joined = g_string_new(NULL);
    for (guint i = 0; i < parts->len; i++)
        g_string_append_printf(joined, "%s\n", (char *)parts->pdata[i]);
    g_assert_cmpstr(joined->str, ==, text->str);
}

static void
test_fence_is_reopened(void)
{
    g_autoptr(GString) text = g_string_new("Look:\n```c\n");
    for (guint i = 0; i < 60; i++)
        g_string_append_printf(text, "int value_%u = %u;\n", i, i);
    g_string_append(text, "```\nDone.\n");
    g_autoptr(GPtrArray) parts = eb_text_split(text->str, 300);
    assert_parts(parts, 300);
    g_assert_cmpuint(parts->len, >, 3);
    for (guint i = 1; i + 1 < parts->len; i++)
        g_assert_true(g_str_has_prefix(parts->pdata[i], "```c\n"));
    g_assert_true(g_str_has_suffix(parts->pdata[parts->len - 1], "Done."));
}

static void
test_long_info_string(void)
{
    g_autofree char *info = g_strnfill(1990, 'x');
    g_autofree char *body = g_strnfill(3000, 'y');
    g_autofree char *text = g_strdup_printf("```%s\n%s\n```\nafter", info, body);
    g_autoptr(GPtrArray) parts = eb_text_split(text, 2000);
    assert_parts(parts, 2000);
    guint ys = 0;
    for (guint i = 0; i < parts->len; i++)
        for (const char *at = parts->pdata[i]; *at != '\0'; at++)
            ys += *at == 'y';
    g_assert_cmpuint(ys, ==, 3000);
}

static void
test_utf16_units(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < 400; i++)
        g_string_append(text, "😀é");
    g_assert_cmpuint(eb_text_units(text->str, -1), ==, 1200);
    g_autoptr(GPtrArray) parts = eb_text_split(text->str, 100);
    assert_parts(parts, 100);
    g_autofree char *joined = g_strjoinv("", (char *[]){NULL});
    for (guint i = 0; i < parts->len; i++) {
        char *more = g_strconcat(joined, parts->pdata[i], NULL);
        g_free(joined);
        joined = more;
    }
    g_assert_cmpstr(joined, ==, text->str);
}

static void
test_random_markdown(void)
{
    const char *const bits[] = {"```", "~~~", "````", "\n", "word ", "😀", "```python\n", "\n```\n", "   ", "`x`"};
    for (guint round = 0; round < 2000; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        guint n = (guint)g_test_rand_int_range(0, 200);
        for (guint i = 0; i < n; i++)
            g_string_append(text, bits[g_test_rand_int_range(0, G_N_ELEMENTS(bits))]);
        guint max = (guint)g_test_rand_int_range(64, 200);
        g_autoptr(GPtrArray) parts = eb_text_split(text->str, max);
        for (guint i = 0; i < parts->len; i++) {
            g_assert_true(g_utf8_validate(parts->pdata[i], -1, NULL));
            g_assert_cmpuint(eb_text_units(parts->pdata[i], -1), <=, max);
        }
    }
}

static void
test_diff_small(void)
{
    guint added, removed;
    g_autofree char *diff =
        eb_diff_unified("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nX\ne\nf\ng\nh\n", NULL, &added, &removed);
    g_assert_cmpuint(added, ==, 2);
    g_assert_cmpuint(removed, ==, 1);
    g_assert_cmpstr(diff, ==, "@@ -2,6 +2,7 @@\n b\n c\n-d\n+X\n e\n f\n g\n+h\n");
    g_autofree char *created = eb_diff_unified(NULL, "one\ntwo\n", NULL, &added, &removed);
    g_assert_cmpstr(created, ==, "@@ -0,0 +1,2 @@\n+one\n+two\n");
    g_autofree char *same = eb_diff_unified("x\n", "x\n", NULL, &added, &removed);
    g_assert_cmpstr(same, ==, "");
}

/* Applying the diff with all context gives the new text. */
static void
test_diff_applies(void)
{
    const EbDiffLimits all = {1 << 20, 100000, 1000, 1000};
    for (guint round = 0; round < 500; round++) {
        g_autoptr(GString) before = g_string_new(NULL);
        g_autoptr(GString) after = g_string_new(NULL);
        guint n = (guint)g_test_rand_int_range(1, 40);
        for (guint i = 0; i < n; i++) {
            int what = g_test_rand_int_range(0, 5);
            int line = g_test_rand_int_range(0, 6);
            if (what != 0)
                g_string_append_printf(before, "l%d\n", line);
            if (what != 1)
                g_string_append_printf(after, "l%d\n", what == 2 ? line + 1 : line);
        }
        guint added, removed;
        g_autofree char *diff = eb_diff_unified(before->str, after->str, &all, &added, &removed);
        if (added + removed == 0) {
            g_assert_cmpstr(before->str, ==, after->str);
            continue;
        }
        g_autoptr(GString) old_side = g_string_new(NULL);
        g_autoptr(GString) new_side = g_string_new(NULL);
        g_auto(GStrv) lines = g_strsplit(diff, "\n", -1);
        for (guint i = 1; lines[i] != NULL && *lines[i] != '\0'; i++) {
            if (lines[i][0] != '+')
                g_string_append_printf(old_side, "%s\n", lines[i] + 1);
            if (lines[i][0] != '-')
                g_string_append_printf(new_side, "%s\n", lines[i] + 1);
        }
        g_assert_cmpstr(old_side->str, ==, before->str);
        g_assert_cmpstr(new_side->str, ==, after->str);
    }
}

static void
test_diff_bounds(void)
{
    g_autoptr(GString) before = g_string_new(NULL);
    g_autoptr(GString) after = g_string_new(NULL);
    for (guint i = 0; i < 20000; i++) {
        g_string_append_printf(before, "%u\n", i);
        g_string_append_printf(after, "%u-\n", i);
    }
    guint added, removed;
    g_autofree char *diff = eb_diff_unified(before->str, after->str, NULL, &added, &removed);
    g_assert_cmpuint(added, ==, 20000);
    g_assert_cmpuint(removed, ==, 20000);
    g_assert_nonnull(strstr(diff, "more lines\n"));
    g_assert_cmpuint(strlen(diff), <, 4096);
    g_autofree char *huge = g_strnfill(600 * 1024, 'z');
    g_autofree char *counted = eb_diff_unified("a\n", huge, NULL, &added, &removed);
    g_assert_nonnull(strstr(counted, "too long"));
    g_autofree char *wide = g_strnfill(5000, 'w');
    g_autofree char *clipped = eb_diff_unified("", wide, NULL, &added, &removed);
    g_assert_cmpuint(strlen(clipped), <, 300);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/text/short", test_short);
    g_test_add_func("/text/lines", test_lines);
    g_test_add_func("/text/fence-is-reopened", test_fence_is_reopened);
    g_test_add_func("/text/long-info-string", test_long_info_string);
    g_test_add_func("/text/utf16-units", test_utf16_units);
    g_test_add_func("/text/random-markdown", test_random_markdown);
    g_test_add_func("/diff/small", test_diff_small);
    g_test_add_func("/diff/applies", test_diff_applies);
    g_test_add_func("/diff/bounds", test_diff_bounds);
    return g_test_run();
}
