/* SPDX-License-Identifier: MIT */
#include "eb-test.h"
#include "split-oracle.h"

#include <string.h>

static GPtrArray *
split(const char *text, guint max)
{
    GPtrArray *parts = eb_text_split_parts(text, max);
    const char *wrong = split_oracle_check(text, max, parts);
    if (wrong != NULL) {
        for (guint i = 0; i < parts->len; i++)
            g_printerr("--- part %u\n%s\n", i, ((EbTextPart *)parts->pdata[i])->text);
        g_error("%s, max %u:\n%s", wrong, max, text);
    }
    return parts;
}

static const char *
part(GPtrArray *parts, guint i)
{
    g_assert_cmpuint(i, <, parts->len);
    return ((EbTextPart *)parts->pdata[i])->text;
}

static char *
repeat(const char *text, guint n)
{
    GString *all = g_string_new(NULL);
    for (guint i = 0; i < n; i++)
        g_string_append(all, text);
    return g_string_free(all, FALSE);
}

/* Openclaw's fault: an information line of 1990 characters repeated in every part. */
static void
test_long_information(void)
{
    for (guint n = 1; n < 4200; n += n < 1900 || n > 2100 ? 97 : 1) {
        g_autofree char *info = g_strnfill(n, 'x');
        g_autofree char *text = g_strdup_printf("Look:\n\n```%s\nint a;\nint b;\n```\nafter", info);
        g_autoptr(GPtrArray) parts = split(text, 2000);
        g_assert_true(g_str_has_suffix(part(parts, parts->len - 1), "after"));
    }
}

static void
test_tildes_and_nested(void)
{
    g_autofree char *code = repeat("```c\nint a;\n```\n", 60);
    g_autofree char *tilde = g_strdup_printf("~~~~ markdown\n%s~~~~\nend", code);
    g_autoptr(GPtrArray) tildes = split(tilde, 300);
    for (guint i = 0; i + 1 < tildes->len; i++) {
        g_assert_true(g_str_has_prefix(part(tildes, i), i == 0 ? "~~~~ markdown\n" : "~~~~markdown\n"));
        g_assert_true(g_str_has_suffix(part(tildes, i), "\n~~~~"));
    }
    g_autofree char *longer = g_strdup_printf("`````md\n%s`````\nend", code);
    g_autoptr(GPtrArray) fives = split(longer, 300);
    g_assert_cmpuint(fives->len, >, 3);
    g_assert_true(g_str_has_prefix(part(fives, 1), "`````md\n"));
}

static void
test_quotes(void)
{
    g_autofree char *words = repeat("a quoted word ", 40);
    g_autofree char *text = g_strdup_printf("> %s\nanswer", words);
    g_autoptr(GPtrArray) parts = split(text, 200);
    g_assert_cmpuint(parts->len, >, 2);
    for (guint i = 0; i + 1 < parts->len; i++)
        g_assert_true(g_str_has_prefix(part(parts, i), "> a quoted") || g_str_has_prefix(part(parts, i), "> quoted") ||
                      g_str_has_prefix(part(parts, i), "> word"));
    g_autofree char *lines = repeat("> int value;\n", 40);
    g_autofree char *code = g_strdup_printf("> ```c\n%s> ```\nanswer", lines);
    g_autoptr(GPtrArray) blocks = split(code, 200);
    g_assert_true(g_str_has_prefix(part(blocks, 1), "> ```c\n> int"));
    g_assert_true(g_str_has_suffix(part(blocks, 1), "\n> ```"));
    g_assert_true(g_str_has_suffix(part(blocks, blocks->len - 1), "> ```\nanswer"));
}

static void
test_lists(void)
{
    g_autofree char *items = repeat("1. one\n   - two\n     more\n", 30);
    g_autoptr(GPtrArray) parts = split(items, 100);
    for (guint i = 1; i < parts->len; i++) {
        const char *text = part(parts, i);
        if (g_str_has_prefix(text, "\xe2\x80\x8b\n"))
            g_assert_true(g_str_has_prefix(text, "\xe2\x80\x8b\n   - two"));
        else
            g_assert_true(g_str_has_prefix(text, "1. one") || g_str_has_prefix(text, "\xe2\x80\x8b     more"));
    }
    g_autofree char *lines = repeat("   int a;\n", 30);
    g_autofree char *code = g_strdup_printf("- ```c\n%s  ```\n- next", lines);
    g_autoptr(GPtrArray) blocks = split(code, 100);
    g_assert_true(g_str_has_suffix(part(blocks, 0), "\n  ```"));
    g_assert_true(g_str_has_prefix(part(blocks, 1), "```c\n   int"));
    g_assert_true(g_str_has_suffix(part(blocks, blocks->len - 1), "- next"));
}

static void
test_indent_is_kept(void)
{
    g_autoptr(GPtrArray) one = split("    four spaces\n", 2000);
    g_assert_cmpstr(part(one, 0), ==, "\xe2\x80\x8b    four spaces");
    g_autoptr(GPtrArray) newlines = split("\n\n  two\n\n", 2000);
    g_assert_cmpstr(part(newlines, 0), ==, "\xe2\x80\x8b  two");
    g_autoptr(GPtrArray) plain = split("hello\n", 2000);
    g_assert_cmpstr(part(plain, 0), ==, "hello");
}

/* What each unit is made of is never torn apart. */
static void
test_whole_things(void)
{
    static const char *const things[] = {
        "<@123456789012345678>",
        "<#123456789012345678>",
        "<:party:123456789012345678>",
        "<a:party:123456789012345678>",
        "<t:1700000000:R>",
        "https://example.org/a/very/long/path?with=a&query=of#things",
        "[text of a link](https://example.org/)",
        "`some code in a line`",
        "👨‍👩‍👧‍👦",
        "🇩🇪",
        "é̂̃",
        "👍🏽",
        "각",
        "நி",
    };
    for (guint i = 0; i < G_N_ELEMENTS(things); i++) {
        for (guint shift = 0; shift < 80; shift++) {
            g_autofree char *before = g_strnfill(shift, 'x');
            g_autofree char *many = repeat(things[i], i >= 8 ? 30 : 1);
            g_autofree char *after = g_strnfill(100, 'y');
            g_autofree char *text = g_strconcat(before, many, after, NULL);
            g_autoptr(GPtrArray) parts = split(text, 80);
            guint found = 0;
            for (guint p = 0; p < parts->len; p++)
                for (const char *at = part(parts, p); (at = strstr(at, things[i])) != NULL; at += strlen(things[i]))
                    found++;
            g_assert_cmpuint(found, ==, i >= 8 ? 30 : 1);
        }
    }
}

static void
test_spaces(void)
{
    g_autofree char *words = repeat("wordy ", 200);
    g_autoptr(GPtrArray) parts = split(words, 100);
    for (guint i = 0; i < parts->len; i++) {
        g_assert_true(g_str_has_prefix(part(parts, i), "wordy"));
        g_assert_true(g_str_has_suffix(part(parts, i), "wordy"));
    }
    /* What only happens to stand at a cut is no list, heading or quotation. */
    static const char *const marks[] = {"- ", "> ", "# ", "1. ", "* "};
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++) {
        g_autofree char *many = repeat(marks[i], 100);
        g_autofree char *line = g_strconcat("x ", many, NULL);
        g_autoptr(GPtrArray) lines = split(line, 100);
        for (guint p = 1; p < lines->len; p++)
            g_assert_true(g_str_has_prefix(part(lines, p), "\xe2\x80\x8b"));
    }
    g_autofree char *zalgo = repeat("\xcc\x81", 500);
    g_autofree char *text = g_strconcat("e", zalgo, NULL);
    g_autoptr(GPtrArray) heap = split(text, 100);
    g_assert_cmpuint(heap->len, >=, 1);
}

static void
test_paragraphs(void)
{
    g_autofree char *long_one = repeat("first words ", 14);
    g_autofree char *text = g_strdup_printf("%s\n\n%s", long_one, long_one);
    g_autoptr(GPtrArray) parts = split(text, 200);
    g_assert_cmpuint(parts->len, ==, 2);
    /* No empty block at the end of a part: the fence begins in the next. */
    g_autofree char *code = repeat("int a;\n", 20);
    g_autofree char *fenced = g_strdup_printf("%s\n```c\n%s```", long_one, code);
    g_autoptr(GPtrArray) blocks = split(fenced, 182);
    g_assert_null(strstr(part(blocks, 0), "```"));
    g_assert_true(g_str_has_prefix(part(blocks, 1), "```c\nint a;"));
}

static void
test_blank_and_open(void)
{
    g_autofree char *blank = repeat(" \n\t\n", 3000);
    g_autoptr(GPtrArray) none = split(blank, 100);
    g_assert_cmpuint(none->len, ==, 0);
    g_autofree char *far = g_strdup_printf("a%sb", blank);
    g_autoptr(GPtrArray) two = split(far, 100);
    g_assert_cmpuint(two->len, ==, 2);
    g_assert_cmpstr(part(two, 1), ==, "b");
    g_autoptr(GPtrArray) open = split("```c\nint a;", 100);
    g_assert_cmpstr(part(open, 0), ==, "```c\nint a;\n```");
}

/* A run of backticks anywhere at a cut must not become a fence, however long it is. */
static void
test_marks_everywhere(void)
{
    for (guint n = 3; n < 300; n += 7) {
        g_autofree char *ticks = g_strnfill(n, n % 2 ? '`' : '~');
        for (guint shift = 0; shift < 140; shift += 3) {
            g_autofree char *before = g_strnfill(shift, 'x');
            g_autofree char *text = g_strdup_printf("%s%s%s\n```c\n%s%s x\n> > %s x ` y\n```\nz", before, ticks, before,
                                                    before, ticks, ticks);
            g_autoptr(GPtrArray) parts = split(text, 64 + shift % 40);
            g_assert_cmpuint(parts->len, >, 0);
        }
    }
}

static void
test_random_markdown(void)
{
    static const char *const bits[] = {
        "```",      "~~~",          "````",   "\n",   "\n",   "word ", "😀",  "```python\n",    "\n```\n",
        "   ",      "`x`",          "> ",     "\n> ", "- ",   "1. ",   "\t", "\n\n",           "é",
        "\n~~~~\n", "```c ` d",     "x",      "  \n", "\r\n", "🇩🇪🇫🇷",  "><", "<@12345678901>", "http://a.b/cdef",
        "**bold**", "\xe2\x80\x8b", "\n    ", "`",    "~",    "[a](b)"};
    for (guint round = 0; round < 30000; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        guint n = (guint)g_test_rand_int_range(0, round < 20000 ? 24 : 200);
        for (guint i = 0; i < n; i++)
            g_string_append(text, bits[g_test_rand_int_range(0, G_N_ELEMENTS(bits))]);
        g_autoptr(GPtrArray) parts = split(text->str, (guint)g_test_rand_int_range(64, round < 20000 ? 80 : 300));
    }
}

/* A megabyte in one line, and in lines, is work in proportion; the test ends at all. */
static void
test_large(void)
{
    g_autofree char *line = repeat("`[<h", 250000);
    g_autoptr(GPtrArray) parts = eb_text_split_parts(line, 2000);
    g_assert_cmpuint(parts->len, >=, 500);
    g_autofree char *lines = repeat("\n\n[", 300000);
    g_autoptr(GPtrArray) more = eb_text_split_parts(lines, 2000);
    g_assert_cmpuint(more->len, >=, 450);
}

static void
test_cut_all(void)
{
    g_autofree char *whole = eb_text_cut_all("short", 10);
    g_assert_cmpstr(whole, ==, "short");
    g_autofree char *cut = eb_text_cut_all("12345🇩🇪🇫🇷", 10);
    g_assert_cmpstr(cut, ==, "12345🇩🇪…");
    g_autofree char *tiny = eb_text_cut_all("12345", 2);
    g_assert_cmpstr(tiny, ==, "…");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/split/long-information", test_long_information);
    g_test_add_func("/split/tildes-and-nested", test_tildes_and_nested);
    g_test_add_func("/split/quotes", test_quotes);
    g_test_add_func("/split/lists", test_lists);
    g_test_add_func("/split/indent-is-kept", test_indent_is_kept);
    g_test_add_func("/split/whole-things", test_whole_things);
    g_test_add_func("/split/spaces", test_spaces);
    g_test_add_func("/split/paragraphs", test_paragraphs);
    g_test_add_func("/split/blank-and-open", test_blank_and_open);
    g_test_add_func("/split/marks-everywhere", test_marks_everywhere);
    g_test_add_func("/split/random-markdown", test_random_markdown);
    g_test_add_func("/split/large", test_large);
    g_test_add_func("/split/cut-all", test_cut_all);
    return g_test_run();
}
