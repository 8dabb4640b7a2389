/* SPDX-License-Identifier: MIT */
/* Templates of units, filled in. */
#include <string.h>

#include "core/provision/eb-unit-text.h"
#include "tests/lib/eb-test.h"

static void
test_fill(void)
{
    static const EbUnitValue VALUES[] = {{"A", "one"}, {"LONG_NAME", "@A@"}, {"EMPTY", ""}, {NULL}};
    g_autoptr(GError) error = NULL;
    g_autofree char *text =
        eb_unit_text_fill("x=@A@ y=@LONG_NAME@ @EMPTY@\n~@privileged @resources @A user@host @", VALUES, &error);

    g_assert_no_error(error);
    /* A value is not filled in again. */
    g_assert_cmpstr(text, ==, "x=one y=@A@ \n~@privileged @resources @A user@host @");
    g_assert_null(eb_unit_text_fill("@B@", VALUES, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "unit.template", "@B@");
}

static void
test_words(void)
{
    static const struct {
        const char *word;
        const char *systemd;
        const char *command;
        const char *shell;
    } CASES[] = {
        {"/usr/bin/x", "/usr/bin/x", "/usr/bin/x", "/usr/bin/x"},
        {"/a b", "\"/a b\"", "\"/a b\"", "'/a b'"},
        {"/a%n", "\"/a%%n\"", "\"/a%%n\"", "'/a%n'"},
        {"/a$HOME", "\"/a$HOME\"", "\"/a$$HOME\"", "'/a$HOME'"},
        {"/a\"b\\c", "\"/a\\\"b\\\\c\"", "\"/a\\\"b\\\\c\"", "'/a\"b\\c'"},
        {"/it's;x", "\"/it's;x\"", "\"/it's;x\"", "'/it'\\''s;x'"},
        {"", "\"\"", "\"\"", "''"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *systemd = eb_unit_text_systemd(CASES[i].word, FALSE, NULL);
        g_autofree char *command = eb_unit_text_systemd(CASES[i].word, TRUE, NULL);
        g_autofree char *shell = eb_unit_text_shell(CASES[i].word, NULL);
        g_assert_cmpstr(systemd, ==, CASES[i].systemd);
        g_assert_cmpstr(command, ==, CASES[i].command);
        g_assert_cmpstr(shell, ==, CASES[i].shell);
    }
    /* A line of its own in a unit would be a setting of its own. */
    g_autoptr(GError) error = NULL;
    g_assert_null(eb_unit_text_systemd("/a\nUser=root", FALSE, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "unit.word", "control characters");
    g_assert_null(eb_unit_text_shell("/a\n", NULL));
}

static void
test_below(void)
{
    const char *paths[] = {"/var/lib/x", NULL, "/home/agent/y"};

    g_assert_true(eb_unit_text_is_below(paths, 3, "/home"));
    g_assert_true(eb_unit_text_is_below(paths, 3, "/var/lib/x"));
    g_assert_false(eb_unit_text_is_below(paths, 3, "/ho"));
    g_assert_false(eb_unit_text_is_below(paths, 3, "/root"));
    g_assert_false(eb_unit_text_is_below(paths, 1, "/home"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/units/fill", test_fill);
    g_test_add_func("/units/words", test_words);
    g_test_add_func("/units/below", test_below);
    return g_test_run();
}
