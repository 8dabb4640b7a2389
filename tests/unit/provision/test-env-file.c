/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/lib/eb-test.h"

static GPtrArray *
parse(const char *text, GError **error)
{
    return eb_env_file_parse(text, strlen(text), error);
}

static void
test_plain(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = parse("# a comment\n\n  A=1\r\nB_2 = two words \nC=\"quoted # =\"\nD='$HOME'\nE=\n"
                                         "F=tail#kept",
                                         &error);

    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, 6);
    g_assert_cmpstr(eb_env_file_lookup(entries, "A"), ==, "1");
    g_assert_cmpstr(eb_env_file_lookup(entries, "B_2"), ==, "two words");
    g_assert_cmpstr(eb_env_file_lookup(entries, "C"), ==, "quoted # =");
    g_assert_cmpstr(eb_env_file_lookup(entries, "D"), ==, "$HOME");
    g_assert_cmpstr(eb_env_file_lookup(entries, "E"), ==, "");
    g_assert_cmpstr(eb_env_file_lookup(entries, "F"), ==, "tail#kept");
    g_assert_null(eb_env_file_lookup(entries, "G"));
    g_assert_cmpuint(((EbEnvEntry *)entries->pdata[1])->line, ==, 4);
}

static void
test_refused(void)
{
    static const struct {
        const char *text;
        const char *reason;
    } CASES[] = {
        {"A=1\nhidden-without-key\n", "env-file.line"},
        {"=hidden\n", "env-file.line"},
        {"1A=hidden\n", "env-file.line"},
        {"A B=hidden\n", "env-file.line"},
        {"A=\"hidden\n", "env-file.quote"},
        {"A=\"\n", "env-file.quote"},
        {"A='a'b'\n", "env-file.quote"},
        {"A=1\nA=2\n", "env-file.twice"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(parse(CASES[i].text, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, CASES[i].reason, NULL);
        g_assert_null(strstr(error->message, "hidden"));
    }
}

/* What editors and shells add. */
static void
test_adornments(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) entries = parse("\xef\xbb\xbf"
                                         "A=1\r\nexport B=2\r\nexport\t C=\"3\"\r\nexported=4\nexport=5\n",
                                         &error);

    g_assert_no_error(error);
    g_assert_cmpuint(entries->len, ==, 5);
    g_assert_cmpstr(eb_env_file_lookup(entries, "A"), ==, "1");
    g_assert_cmpstr(eb_env_file_lookup(entries, "B"), ==, "2");
    g_assert_cmpstr(eb_env_file_lookup(entries, "C"), ==, "3");
    g_assert_cmpstr(eb_env_file_lookup(entries, "exported"), ==, "4");
    g_assert_cmpstr(eb_env_file_lookup(entries, "export"), ==, "5");
    g_assert_null(eb_env_file_parse("A=1\nB=\0\n", 8, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "env-file.binary", "line 2");
}

static void
test_bounds(void)
{
    g_autoptr(GString) many = g_string_new(NULL);
    g_autofree char *large = g_malloc0(EB_ENV_FILE_MAX_BYTES + 1);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i <= EB_ENV_FILE_MAX_ENTRIES; i++)
        g_string_append_printf(many, "K%u=v\n", i);
    g_assert_null(parse(many->str, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "env-file.long", NULL);
    g_clear_error(&error);
    g_assert_null(eb_env_file_parse(large, EB_ENV_FILE_MAX_BYTES + 1, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "env-file.long", NULL);
    g_clear_error(&error);
    g_assert_null(eb_env_file_parse("A=1\0", 4, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "env-file.binary", NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/env-file/plain", test_plain);
    g_test_add_func("/env-file/refused", test_refused);
    g_test_add_func("/env-file/adornments", test_adornments);
    g_test_add_func("/env-file/bounds", test_bounds);
    return g_test_run();
}
