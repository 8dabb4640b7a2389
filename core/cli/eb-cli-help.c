/* SPDX-License-Identifier: MIT */
/* Help and the documentation check, both from the command table. */
#include "core/cli/eb-cli-args.h"

#include <string.h>

static void
append_option(GString *out, const EbCliOption *option)
{
    g_autofree char *left = NULL;
    g_autofree char *value = option->value != NULL ? g_strdup_printf(" %s", option->value) : g_strdup("");

    if (option->letter != 0)
        left = g_strdup_printf("-%c, --%s%s", option->letter, option->name, value);
    else
        left = g_strdup_printf("    --%s%s", option->name, value);
    g_string_append_printf(out, "  %-30s %s\n", left, option->help);
}

char *
eb_cli_help_program(void)
{
    g_autoptr(GString) out = g_string_new("usage: errand-box [OPTIONS] COMMAND ...\n\n"
                                          "Runs coding agents in unprivileged containers without a network device.\n\n"
                                          "commands:\n");

    for (const EbCliCommand *at = eb_cli_commands(); at->name != NULL; at++)
        if (!at->hidden)
            g_string_append_printf(out, "  %-10s %s\n", at->name, at->help);
    g_string_append(out, "\noptions:\n");
    for (const EbCliOption *at = eb_cli_global_options(); at->name != NULL; at++)
        append_option(out, at);
    g_string_append(out,
                    "\nexit codes: 0 done; 1 failed while running; 2 refused (usage, configuration, a credential);\n"
                    "3 a guarantee cannot be enforced here and was not accepted; 4 the state directory is in use.\n"
                    "errand-box COMMAND --help tells more.\n");
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
eb_cli_help_command(const EbCliCommand *command)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *lead = "usage:";

    for (const EbCliVerb *at = command->verbs; at->name != NULL; at++) {
        g_string_append_printf(out, "%s errand-box %s%s%s%s%s%s\n", lead, command->name, *at->name != '\0' ? " " : "",
                               at->name, command->options[0].name != NULL ? " [OPTIONS]" : "",
                               *at->operands != '\0' ? " " : "", at->operands);
        lead = "      ";
    }
    g_string_append_printf(out, "\n%s\n", command->help);
    gboolean several = command->verbs[1].name != NULL;
    if (several)
        g_string_append(out, "\nverbs:\n");
    for (const EbCliVerb *at = command->verbs; several && at->name != NULL; at++)
        g_string_append_printf(out, "  %-20s %s\n", *at->name != '\0' ? at->name : "(none)", at->help);
    if (!several && command->verbs[0].help != NULL)
        g_string_append_printf(out, "%s\n", command->verbs[0].help);
    if (command->options[0].name != NULL)
        g_string_append(out, "\noptions:\n");
    for (const EbCliOption *at = command->options; at->name != NULL; at++)
        append_option(out, at);
    g_string_append(out, "\noptions of every command:\n");
    for (const EbCliOption *at = eb_cli_global_options(); at->name != NULL; at++)
        append_option(out, at);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char **
eb_cli_split_line(const char *line, GError **error)
{
    char **words = NULL;
    g_autoptr(GError) local = NULL;

    if (!g_shell_parse_argv(line, NULL, &words, &local)) {
        eb_set_error(error, EB_ERROR_INVALID, "cli.usage", "not a command line: %s", local->message);
        return NULL;
    }
    return words;
}

/* A synopsis: "[...]" is optional and left out, "a|b" stands for a, "<name>" for a word, "..." for nothing. */
static char *
plain_line(const char *line)
{
    g_autoptr(GString) out = g_string_new(NULL);
    guint depth = 0;

    for (const char *c = line; *c != '\0'; c++) {
        if (*c == '[')
            depth++;
        else if (*c == ']' && depth > 0)
            depth--;
        else if (depth == 0 && *c != '<' && *c != '>')
            g_string_append_c(out, *c);
    }
    g_string_replace(out, "...", "", 0);
    g_string_replace(out, "\342\200\246", "", 0);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

gboolean
eb_cli_check_line(const char *line, GError **error)
{
    g_autofree char *plain = plain_line(line);
    g_auto(GStrv) words = eb_cli_split_line(plain, error);

    if (words == NULL)
        return FALSE;
    const char *base = strrchr(words[0], '/');
    if (strcmp(base != NULL ? base + 1 : words[0], "errand-box") != 0) {
        eb_set_error(error, EB_ERROR_INVALID, "cli.usage", "does not begin with errand-box");
        return FALSE;
    }
    for (char **word = words + 1; *word != NULL; word++) {
        char *bar = strchr(*word, '|');
        if (bar != NULL)
            *bar = '\0';
    }
    if (words[1] == NULL)
        return TRUE; /* the program's name alone */
    g_autoptr(EbCliArgs) args = eb_cli_args_parse((int)g_strv_length(words) - 1, words + 1, error);
    return args != NULL;
}
