/* SPDX-License-Identifier: MIT */
/* What was freed, by whichever library, is in this process's heap no more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eb-test.h"

#define MARK 24

/* Nowhere in this program but in what the tests make of it. */
static void
make_mark(char *mark)
{
    for (guint i = 0; i < MARK; i++)
        mark[i] = (char)('a' + (i * 7 + 3) % 26);
}

/* How often the mark stands in the heap; looked for byte by byte, so that looking leaves no copy. */
static guint
count_marks(void)
{
    g_autofree char *maps = NULL;
    guint64 begin = 0, end = 0;
    guint count = 0;

    g_assert_true(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    for (const char *line = maps; line != NULL; line = strchr(line, '\n') != NULL ? strchr(line, '\n') + 1 : NULL) {
        const char *heap = strstr(line, "[heap]"), *next = strchr(line, '\n');

        if (heap == NULL || (next != NULL && heap > next))
            continue;
        begin = g_ascii_strtoull(line, NULL, 16);
        end = g_ascii_strtoull(strchr(line, '-') + 1, NULL, 16);
    }
    g_assert_cmpuint(begin, >, 0);
    for (const char *at = (const char *)(gsize)begin; at + MARK <= (const char *)(gsize)end; at++) {
        guint i = 0;

        while (i < MARK && at[i] == (char)('a' + (i * 7 + 3) % 26))
            i++;
        count += i == MARK;
    }
    return count;
}

static void
test_free(void)
{
    static const gsize SIZES[] = {MARK + 32, 512, 4000, 60000};

    for (gsize i = 0; i < G_N_ELEMENTS(SIZES); i++) {
        char *block = g_malloc0(SIZES[i]);

        make_mark(block + SIZES[i] - MARK);
        g_assert_cmpuint(count_marks(), ==, 1);
        g_free(block);
        g_assert_cmpuint(count_marks(), ==, 0);
    }
}

/* As a string that a library puts together does: it moves again and again. */
static void
test_growth(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    char mark[MARK];

    make_mark(mark);
    g_string_append_len(text, "0123456789abcdef0123456789abcdef", 32);
    g_string_append_len(text, mark, MARK);
    for (guint i = 0; i < 5000; i++)
        g_string_append(text, "more of it ");
    g_assert_cmpuint(count_marks(), ==, 1);
    g_assert_cmpmem(text->str + 32, MARK, mark, MARK);
    text->str = g_realloc(text->str, 32);
    text->len = 31;
    text->allocated_len = 32;
    text->str[31] = '\0';
    g_assert_cmpuint(count_marks(), ==, 0);
}

static void
test_edges(void)
{
    char *block = NULL;

    block = g_realloc_n(block, 10, 10);
    memset(block, 1, 100);
    block = g_realloc_n(block, 100, 100);
    g_assert_cmpint(block[99], ==, 1);
    g_free(g_realloc(block, 0));
    free(NULL);
#ifndef __SANITIZE_ADDRESS__ /* which has an allocator of its own, that ends the program for this */
    volatile gsize half = G_MAXSIZE / 2;

    errno = 0;
    g_assert_null(reallocarray(NULL, half, 4));
    g_assert_cmpint(errno, ==, ENOMEM);
#endif
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#ifndef __SANITIZE_ADDRESS__
    g_test_add_func("/wiping-free/free", test_free);
    g_test_add_func("/wiping-free/growth", test_growth);
#endif
    g_test_add_func("/wiping-free/edges", test_edges);
    return g_test_run();
}
