/* SPDX-License-Identifier: MIT */
#include "guest/block.h"
#include "guest/options.h"

#include <glib.h>
#include <string.h>

static struct block block;

static const char *
parse(const char *bytes, gsize size)
{
    static guint8 *copy; /* what was parsed points into it */

    g_free(copy);
    copy = g_memdup2(bytes, size);
    return block_parse(copy, size, &block);
}
#define PARSE(literal) parse(literal, sizeof(literal) - 1)

static void
test_header(void)
{
    static const char *const bad[] = {"ERRAND1 \n",           "ERRAND1 12",     "ERRAND1 -1\n", "ERRAND1 +1\n",
                                      "ERRAND1 01\n",         "ERRAND1 1 \n",   "ERRAND1  1\n", "ERRAND2 1\n",
                                      "errand1 1\n",          "{\"jsonrpc\"\n", "\n",           "ERRAND1 8388609\n",
                                      "ERRAND1 99999999999\n"};
    size_t size = 77;

    g_assert_null(block_parse_header("ERRAND1 0\n", 10, &size));
    g_assert_cmpuint(size, ==, 0);
    g_assert_null(block_parse_header("ERRAND1 8388608\n", 16, &size));
    g_assert_cmpuint(size, ==, BLOCK_MAX_BYTES);
    size = 77;
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_nonnull(block_parse_header(bad[i], strlen(bad[i]), &size));
    g_assert_cmpuint(size, ==, 77);
}

static void
test_env(void)
{
    g_assert_null(PARSE("EA=1\0EB=\0EC=x=y\n\0"));
    g_assert_cmpuint(block.n_env, ==, 3);
    g_assert_cmpstr(block.env[0], ==, "A=1");
    g_assert_cmpstr(block_find_env(&block, "B"), ==, "");
    g_assert_cmpstr(block_find_env(&block, "C"), ==, "x=y\n");
    g_assert_null(block_find_env(&block, "X"));
    g_assert_null(block.env[3]);
    g_assert_null(PARSE(""));
    g_assert_cmpuint(block.n_env, ==, 0);

    g_assert_nonnull(PARSE("EA=1"));         /* no end */
    g_assert_nonnull(PARSE("E=1\0"));        /* no name */
    g_assert_nonnull(PARSE("EA\0"));         /* no value */
    g_assert_nonnull(PARSE("EA B=1\0"));     /* blank in a name */
    g_assert_nonnull(PARSE("EA=1\0EA=2\0")); /* twice */
    g_assert_null(PARSE("EAB=1\0EA=2\0"));   /* not twice */
    g_assert_nonnull(PARSE("XA=1\0"));
    g_assert_nonnull(PARSE("EA=1\0\0"));
}

static void
test_env_bounds(void)
{
    g_autoptr(GString) text = g_string_new("EA=");

    for (gsize i = 0; i < BLOCK_MAX_STRING - 2; i++)
        g_string_append_c(text, 'v');
    g_assert_nonnull(parse(text->str, text->len + 1));
    g_string_truncate(text, 1 + BLOCK_MAX_STRING - 1);
    g_assert_null(parse(text->str, text->len + 1));

    g_string_truncate(text, 0);
    for (guint i = 0; i <= BLOCK_MAX_ENV; i++) {
        g_assert_cmpuint(block.n_env, <=, BLOCK_MAX_ENV);
        g_string_append_printf(text, "EV%u=x%c", i, '\0');
        const char *wrong = i + 1 == BLOCK_MAX_ENV || i == BLOCK_MAX_ENV ? parse(text->str, text->len) : NULL;
        g_assert_true((wrong != NULL) == (i == BLOCK_MAX_ENV));
    }
}

static void
test_files(void)
{
    g_assert_null(PARSE("F.conf/a\0"
                        "600\0"
                        "3\0"
                        "x\0yEA=1\0"));
    g_assert_cmpuint(block.n_files, ==, 1);
    g_assert_cmpstr(block.files[0].path, ==, ".conf/a");
    g_assert_cmpuint(block.files[0].mode, ==, 0600);
    g_assert_cmpmem(block.files[0].data, block.files[0].size, "x\0y", 3);
    g_assert_cmpstr(block_find_env(&block, "A"), ==, "1");
    g_assert_null(PARSE("Fa\0"
                        "0644\0"
                        "0\0"));

    g_assert_nonnull(PARSE("Fa\0"
                           "644\0"
                           "5\0"
                           "four"));
    g_assert_nonnull(PARSE("Fa\0"
                           "4755\0"
                           "0\0"));
    g_assert_nonnull(PARSE("Fa\0"
                           "68\0"
                           "0\0"));
    g_assert_nonnull(PARSE("Fa\0"
                           "644\0"
                           "00\0"));
    g_assert_nonnull(PARSE("Fa\0"
                           "644\0"
                           "18446744073709551617\0"));
    g_assert_nonnull(PARSE("Fa\0"
                           "644\0"));
}

static void
test_paths(void)
{
    static const char *const bad[] = {"/etc/passwd",
                                      "../x",
                                      "a/../b",
                                      "a//b",
                                      "a/",
                                      ".",
                                      "..",
                                      "./a",
                                      "a/.",
                                      "",
                                      "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q"};
    static const char *const good[] = {"a", ".a", "...", "..a/b", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p"};

    for (gsize i = 0; i < G_N_ELEMENTS(bad) + G_N_ELEMENTS(good); i++) {
        gboolean is_bad = i < G_N_ELEMENTS(bad);
        g_autoptr(GString) text = g_string_new("F");
        g_string_append(text, is_bad ? bad[i] : good[i - G_N_ELEMENTS(bad)]);
        g_string_append_len(text,
                            "\0"
                            "600\0"
                            "0\0",
                            7);
        g_assert_true((parse(text->str, text->len) != NULL) == is_bad);
    }
}

static void
test_options(void)
{
    char *good[] = {(char *)"launch",  (char *)"--relay", (char *)"47129",  (char *)"--tmp",
                    (char *)"1048576", (char *)"--lease", (char *)"--home", (char *)"/state/home",
                    (char *)"--",      (char *)"agent",   (char *)"--tmp",  NULL};
    static const char *const bad[][5] = {{"launch", "agent"},
                                         {"launch", "--"},
                                         {"launch", "--relay", "0", "--", "a"},
                                         {"launch", "--relay", "65536", "--", "a"},
                                         {"launch", "--tmp", "1k", "--", "a"},
                                         {"launch", "--home", "state", "--", "a"},
                                         {"launch", "--home", "/a/../b", "--", "a"},
                                         {"launch", "--what", "1", "--", "a"}};
    struct options options;

    g_assert_null(options_parse(11, good, &options));
    g_assert_cmpuint(options.relay_port, ==, 47129);
    g_assert_cmpuint(options.tmp_bytes, ==, 1048576);
    g_assert_true(options.lease);
    g_assert_false(options.containers);
    g_assert_cmpstr(options.command[0], ==, "agent");
    g_assert_cmpstr(options.command[1], ==, "--tmp");
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *argv[6] = {NULL};
        int argc = 0;
        for (; argc < 5 && bad[i][argc] != NULL; argc++)
            argv[argc] = (char *)bad[i][argc];
        g_assert_nonnull(options_parse(argc, argv, &options));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/block/header", test_header);
    g_test_add_func("/guest/block/env", test_env);
    g_test_add_func("/guest/block/env-bounds", test_env_bounds);
    g_test_add_func("/guest/block/files", test_files);
    g_test_add_func("/guest/block/paths", test_paths);
    g_test_add_func("/guest/options", test_options);
    return g_test_run();
}
