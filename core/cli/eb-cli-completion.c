/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/cli/eb-cli-manual.h"

/* An option's value, or an operand, of this name is a file; anything else is for the person to know. */
static gboolean
is_file(const char *value)
{
    return value != NULL && (strcmp(value, "FILE") == 0 || strcmp(value, "DIR") == 0);
}

static void
append_options(GString *out, const EbCliOption *options, gboolean of_files)
{
    for (const EbCliOption *option = options; option->name != NULL; option++)
        if (!of_files || is_file(option->value))
            g_string_append_printf(out, " --%s", option->name);
}

static void
append_commands(GString *out)
{
    for (const EbCliCommand *command = eb_cli_commands(); command->name != NULL; command++)
        if (!command->hidden)
            g_string_append_printf(out, " %s", command->name);
}

/* One line "COMMAND) verbs=... options=... files=... ;;" for each command, for the two shells that have case. */
static void
append_cases(GString *out)
{
    for (const EbCliCommand *command = eb_cli_commands(); command->name != NULL; command++) {
        gboolean takes_file = FALSE;
        if (command->hidden)
            continue;
        g_string_append_printf(out, "    %s)\n        verbs='", command->name);
        for (const EbCliVerb *verb = command->verbs; verb->name != NULL; verb++) {
            if (*verb->name != '\0')
                g_string_append_printf(out, " %s", verb->name);
            takes_file = takes_file || is_file(verb->operands);
        }
        g_string_append(out, "'\n        options='");
        append_options(out, command->options, FALSE);
        g_string_append(out, "'\n        files='");
        append_options(out, command->options, TRUE);
        g_string_append_printf(out, "%s'\n        ;;\n", takes_file ? " operand" : "");
    }
}

char *
eb_cli_completion_bash(void)
{
    GString *out = g_string_new("# Completion of errand-box for bash. Made from the command table of the program.\n"
                                "_errand_box()\n{\n"
                                "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                                "    local command= verb= verbs= options= files= i\n"
                                "    COMPREPLY=()\n"
                                "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                                "        case ${COMP_WORDS[i]} in\n"
                                "        -*) ;;\n"
                                "        *)\n"
                                "            if [[ ${COMP_WORDS[i-1]} == --config ]]; then continue; fi\n"
                                "            if [[ -z $command ]]; then command=${COMP_WORDS[i]}\n"
                                "            elif [[ -z $verb ]]; then verb=${COMP_WORDS[i]}; fi\n"
                                "            ;;\n"
                                "        esac\n"
                                "    done\n"
                                "    case $command in\n");

    append_cases(out);
    g_string_append(out, "    esac\n"
                         "    if [[ $before == --config || \" $files \" == *\" $before \"* ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                         "    elif [[ $word == -* ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -W \"$options");
    append_options(out, eb_cli_global_options(), FALSE);
    g_string_append(out, "\" -- \"$word\")\n    elif [[ -z $command ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -W \"");
    append_commands(out);
    g_string_append(out, "\" -- \"$word\")\n"
                         "    elif [[ -z $verb && -n $verbs ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -W \"$verbs\" -- \"$word\")\n"
                         "    elif [[ \" $files \" == *' operand '* ]]; then\n"
                         "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
                         "    fi\n"
                         "}\n"
                         "complete -o filenames -F _errand_box errand-box\n");
    return g_string_free(out, FALSE);
}

char *
eb_cli_completion_zsh(void)
{
    GString *out = g_string_new("#compdef errand-box\n"
                                "# Completion of errand-box for zsh. Made from the command table of the program.\n"
                                "local command= verb= verbs= options= files= i\n"
                                "for ((i = 2; i < CURRENT; i++)); do\n"
                                "    [[ ${words[i]} == -* || ${words[i-1]} == --config ]] && continue\n"
                                "    if [[ -z $command ]]; then command=${words[i]}\n"
                                "    elif [[ -z $verb ]]; then verb=${words[i]}; fi\n"
                                "done\n"
                                "case $command in\n");

    append_cases(out);
    g_string_append(out,
                    "esac\n"
                    "if [[ ${words[CURRENT-1]} == --config || \" $files \" == *\" ${words[CURRENT-1]} \"* ]]; then\n"
                    "    _files\n"
                    "elif [[ ${words[CURRENT]} == -* ]]; then\n"
                    "    compadd -- ${=options}");
    append_options(out, eb_cli_global_options(), FALSE);
    g_string_append(out, "\nelif [[ -z $command ]]; then\n    compadd --");
    append_commands(out);
    g_string_append(out, "\nelif [[ -z $verb && -n $verbs ]]; then\n"
                         "    compadd -- ${=verbs}\n"
                         "elif [[ \" $files \" == *' operand '* ]]; then\n"
                         "    _files\n"
                         "fi\n");
    return g_string_free(out, FALSE);
}

/* For fish's single quotes. */
static char *
quote_fish(const char *text)
{
    GString *out = g_string_new("'");

    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\'' || *c == '\\')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *c);
    }
    g_string_append_c(out, '\'');
    return g_string_free(out, FALSE);
}

static void
append_fish_option(GString *out, const char *condition, const EbCliOption *option)
{
    g_autofree char *help = quote_fish(option->help);

    g_string_append_printf(out, "complete -c errand-box%s -l %s", condition, option->name);
    if (option->letter != 0)
        g_string_append_printf(out, " -s %c", option->letter);
    if (option->value != NULL)
        g_string_append(out, is_file(option->value) ? " -rF" : " -x");
    g_string_append_printf(out, " -d %s\n", help);
}

char *
eb_cli_completion_fish(void)
{
    GString *out = g_string_new("# Completion of errand-box for fish. Made from the command table of the program.\n"
                                "complete -c errand-box -f\n");

    for (const EbCliOption *option = eb_cli_global_options(); option->name != NULL; option++)
        append_fish_option(out, "", option);
    for (const EbCliCommand *command = eb_cli_commands(); command->name != NULL; command++) {
        g_autofree char *help = quote_fish(command->help);
        g_autofree char *condition = g_strdup_printf(" -n '__fish_seen_subcommand_from %s'", command->name);
        if (command->hidden)
            continue;
        g_string_append_printf(out, "complete -c errand-box -n __fish_use_subcommand -a %s -d %s\n", command->name,
                               help);
        for (const EbCliVerb *verb = command->verbs; verb->name != NULL; verb++) {
            g_autofree char *what = quote_fish(verb->help != NULL ? verb->help : command->help);
            if (*verb->name != '\0')
                g_string_append_printf(out, "complete -c errand-box%s -a %s -d %s\n", condition, verb->name, what);
            if (is_file(verb->operands))
                g_string_append_printf(out, "complete -c errand-box%s -F\n", condition);
        }
        for (const EbCliOption *option = command->options; option->name != NULL; option++)
            append_fish_option(out, condition, option);
    }
    return g_string_free(out, FALSE);
}
