/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-args.h"
#include "tests/lib/eb-test.h"

#include <string.h>

static void
test_table(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    for (const EbCliCommand *at = eb_cli_commands(); at->name != NULL; at++) {
        g_autofree char *help = eb_cli_help_command(at);
        g_assert_true(g_hash_table_add(names, (gpointer)at->name));
        g_assert_nonnull(at->run);
        g_assert_cmpuint(strlen(at->help), >, 5);
        for (const EbCliVerb *verb = at->verbs; verb->name != NULL; verb++) {
            g_autofree char *form =
                g_strdup_printf("errand-box %s%s%s", at->name, *verb->name != '\0' ? " " : "", verb->name);
            g_assert_nonnull(strstr(help, form));
            g_assert_cmpuint(verb->min_operands, <=, verb->max_operands);
            g_assert_true((verb->max_operands > 0) == (*verb->operands != '\0'));
        }
        for (const EbCliOption *option = at->options; option->name != NULL; option++) {
            g_autofree char *dashed = g_strconcat("--", option->name, NULL);
            g_assert_nonnull(strstr(help, dashed));
            for (const EbCliOption *global = eb_cli_global_options(); global->name != NULL; global++)
                g_assert_cmpstr(option->name, !=, global->name);
        }
    }
    g_autofree char *help = eb_cli_help_program();
    g_assert_nonnull(strstr(help, "config"));
}

typedef struct {
    const char *line;
    const char *says; /* (nullable): NULL = taken */
} Row;

static const Row rows[] = {
    {"", "no command"},
    {"version", NULL},
    {"--json version", NULL},
    {"version --json", NULL},
    {"-vv --config /x config check", NULL},
    {"config check --config=/x", NULL},
    {"--help", NULL},
    {"config --help", NULL},
    {"config", "needs one of its verbs"},
    {"config shwo", "did you mean \"show\"?"},
    {"config show extra", "one too many"},
    {"confg show", "did you mean \"config\"?"},
    {"config show --jsno", "did you mean \"--json\"?"},
    {"--config", "needs a value (FILE)"},
    {"--config a --config b version", "given twice"},
    {"--json=yes version", "takes no value"},
    {"-x version", "unknown option \"-x\""},
    {"creds set", "needs NAME"},
    {"creds set a", NULL},
    {"creds set a b", "one too many"},
    {"creds import -- --odd-name", NULL},
    {"plugin", NULL},
    {"plugin show", "needs NAME"},
    {"frobnicate", "there is no command"},
    {"version \x1b[2J", "\\x1b[2J"},
};

static void
test_rows(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) words = *rows[i].line != '\0' ? g_strsplit(rows[i].line, " ", -1) : g_new0(char *, 1);
        g_autoptr(GError) error = NULL;
        g_autoptr(EbCliArgs) args = eb_cli_args_parse((int)g_strv_length(words), words, &error);
        g_test_message("%s", rows[i].line);
        if (rows[i].says == NULL) {
            g_assert_no_error(error);
            g_assert_nonnull(args);
        } else {
            g_assert_null(args);
            eb_test_assert_error(error, EB_ERROR_INVALID, "cli.usage", rows[i].says);
        }
    }
}

static void
test_values(void)
{
    const char *const words[] = {"-v", "creds", "--store=s", "set", "-v", "name", "--file", "/f", "--json", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCliArgs) args = eb_cli_args_parse(9, (char *const *)words, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(eb_cli_args_get_command(args)->name, ==, "creds");
    g_assert_cmpstr(eb_cli_args_get_verb(args), ==, "set");
    g_assert_cmpstr(eb_cli_args_operands(args)[0], ==, "name");
    g_assert_null(eb_cli_args_operands(args)[1]);
    g_assert_cmpstr(eb_cli_args_value(args, "store"), ==, "s");
    g_assert_cmpstr(eb_cli_args_value(args, "file"), ==, "/f");
    g_assert_true(eb_cli_args_flag(args, "json"));
    g_assert_cmpuint(eb_cli_args_count(args, "verbose"), ==, 2);
    g_assert_cmpint(eb_cli_args_get_rest(args), ==, 2);
    g_assert_null(eb_cli_args_value(args, "config"));
    g_assert_null(eb_cli_args_values(args, "config")[0]);
}

static void
test_random(void)
{
    static const char *const words[] = {"config", "show",  "creds", "set",  "--",   "--json", "-v",     "--config", "-",
                                        "--=",    "--x=y", "",      "\xff", "-vvx", "--help", "plugin", "check"};

    for (guint round = 0; round < 20000; round++) {
        const char *line[8];
        int n = g_test_rand_int_range(0, 8);
        g_autoptr(GError) error = NULL;
        for (int i = 0; i < n; i++)
            line[i] = words[g_test_rand_int_range(0, G_N_ELEMENTS(words))];
        g_autoptr(EbCliArgs) args = eb_cli_args_parse(n, (char *const *)line, &error);
        g_assert_true((args == NULL) == (error != NULL));
        if (error != NULL)
            g_assert_true(g_utf8_validate(error->message, -1, NULL));
    }
}

static const Row lines[] = {
    {"errand-box version", NULL},
    {"sudo errand-box version", "does not begin with errand-box"},
    {"build/errand-box config check", NULL},
    {"errand-box config check|show|schema", NULL},
    {"errand-box creds set NAME [--store NAME]", NULL},
    {"errand-box creds set <name>", NULL},
    {"errand-box config chekc", "did you mean"},
    {"errand-box version 'open", "not a command line"},
    {"errand-box", NULL},
};

static void
test_check_line(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autoptr(GError) error = NULL;
        gboolean good = eb_cli_check_line(lines[i].line, &error);
        g_test_message("%s", lines[i].line);
        if (lines[i].says == NULL)
            g_assert_no_error(error);
        else
            eb_test_assert_error(error, EB_ERROR_INVALID, NULL, lines[i].says);
        g_assert_cmpint(good, ==, lines[i].says == NULL);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/cli/table", test_table);
    g_test_add_func("/cli/rows", test_rows);
    g_test_add_func("/cli/values", test_values);
    g_test_add_func("/cli/random", test_random);
    g_test_add_func("/cli/check-line", test_check_line);
    return g_test_run();
}
