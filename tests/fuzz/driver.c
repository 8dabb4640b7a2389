/* SPDX-License-Identifier: MIT */

/*
 * The plain driver of the fuzz targets, so that they run as tests with any compiler: every file of the corpus as it is,
 * then mutations of it from a seed that is printed.
 *
 *   fuzz-NAME CORPUS_DIR [ROUNDS]        EB_FUZZ_SEED=N repeats a run
 */

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_INPUT ((gsize)1024 * 1024)

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static const char *const tokens[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     "\"",
                                     ":",
                                     ",",
                                     "null",
                                     "true",
                                     "\\",
                                     "\\u0",
                                     "\n",
                                     "\r\n",
                                     "\xff",
                                     "\0",
                                     "-1",
                                     "1e999",
                                     "0",
                                     "\x1b[",
                                     "\xf0\x9f\x98\x80",
                                     "\xe2\x80\xa8",
                                     "\\ud800",
                                     "9223372036854775808",
                                     "%s",
                                     "//",
                                     "=",
                                     "\""};

static void
splice(GByteArray *input, GRand *rand, const void *bytes, gsize length)
{
    const gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)input->len + 1);
    const gsize old = input->len;

    g_byte_array_set_size(input, (guint)(old + length));
    memmove(input->data + at + length, input->data + at, old - at);
    memcpy(input->data + at, bytes, length);
}

static void
mutate(GByteArray *input, GRand *rand)
{
    const gint32 length = (gint32)input->len;
    const char *token = tokens[g_rand_int_range(rand, 0, G_N_ELEMENTS(tokens))];

    switch (g_rand_int_range(rand, 0, 6)) {
    case 0:
        if (length > 0)
            input->data[g_rand_int_range(rand, 0, length)] = (guint8)g_rand_int_range(rand, 0, 256);
        break;
    case 1:
        splice(input, rand, token, MAX(strlen(token), 1));
        break;
    case 2:
        if (length > 0)
            g_byte_array_set_size(input, (guint)g_rand_int_range(rand, 0, length));
        break;
    case 3:
        if (length > 1) {
            const gint32 from = g_rand_int_range(rand, 0, length - 1);
            const gint32 many = g_rand_int_range(rand, 1, MIN(length - from, 64) + 1);

            g_byte_array_remove_range(input, (guint)from, (guint)many);
        }
        break;
    case 4:
        if (length > 1 && input->len < LONGEST_INPUT / 2) {
            const gint32 from = g_rand_int_range(rand, 0, length - 1);
            const gint32 many = g_rand_int_range(rand, 1, length - from + 1);
            g_autofree guint8 *part = g_memdup2(input->data + from, (gsize)many);

            splice(input, rand, part, (gsize)many);
        }
        break;
    default:
        if (length > 0)
            input->data[g_rand_int_range(rand, 0, length)] ^= (guint8)(1u << g_rand_int_range(rand, 0, 8));
        break;
    }
}

/* Given to the target in memory of its exact size, so that a sanitizer sees a read beyond it. */
static void
run_one(const guint8 *bytes, gsize length)
{
    guint8 *copy = malloc(MAX(length, 1));

    if (length > 0)
        memcpy(copy, bytes, length);
    LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

static void
run_file(const char *bytes, gsize length, GRand *rand, guint rounds)
{
    run_one((const guint8 *)bytes, length);
    for (guint i = 0; i < rounds; i++) {
        g_autoptr(GByteArray) input = g_byte_array_new();
        const gint32 changes = g_rand_int_range(rand, 1, 6);

        g_byte_array_append(input, (const guint8 *)bytes, (guint)MIN(length, LONGEST_INPUT));
        for (gint32 k = 0; k < changes; k++)
            mutate(input, rand);
        run_one(input->data, input->len);
    }
}

int
main(int argc, char **argv)
{
    const char *wanted = g_getenv("EB_FUZZ_SEED");
    const guint32 seed = wanted != NULL ? (guint32)g_ascii_strtoull(wanted, NULL, 10) : g_random_int();
    const guint rounds = argc > 2 ? (guint)g_ascii_strtoull(argv[2], NULL, 10) : 500;
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GDir) dir = argc > 1 ? g_dir_open(argv[1], 0, NULL) : NULL;
    guint files = 0;
    const char *name;

    printf("1..1\n# EB_FUZZ_SEED=%u\n", seed);
    fflush(stdout);
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(argv[1], name, NULL);
        g_autofree char *bytes = NULL;
        gsize length = 0;

        if (!g_file_get_contents(path, &bytes, &length, NULL))
            continue;
        files++;
        run_file(bytes, length, rand, rounds);
    }
    run_file("", 0, rand, rounds);
    /* An empty corpus is a mistake in the build, not a success. */
    printf("%s 1 - %u files of the corpus, %u mutations of each\n", files > 0 ? "ok" : "not ok", files, rounds);
    return files > 0 ? 0 : 1;
}
