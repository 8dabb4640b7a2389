/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

typedef struct _EbCli EbCli;

/** EbCliOption: one option; the long name is the key for the getters. */
typedef struct {
    const char *name;  /* "project" for --project */
    char letter;       /* 'v' for -v, 0 = none */
    const char *value; /* "NAME": takes a value; NULL: a flag */
    gboolean repeat;   /* may be given several times */
    const char *help;
} EbCliOption;

/** EbCliVerb: one form of a command: `sessions show ID`. The verb "" is the command without a verb. */
typedef struct {
    const char *name;
    const char *operands;     /* "ID" or "NAME..." for help; "" = none */
    guint min_operands;       /* fewest */
    guint max_operands;       /* most */
    const char *const *words; /* (nullable) (array zero-terminated=1): the only operands allowed */
    const char *help;
} EbCliVerb;

/** EbCliCommand: a row of the table that help, completions, the parser and the documentation test are made from. */
typedef struct {
    const char *name;
    const char *help;           /* one line */
    const EbCliVerb *verbs;     /* ends with a NULL name */
    const EbCliOption *options; /* ends with a NULL name */
    int (*run)(EbCli *cli, int argc, char **argv);
    gboolean hidden;
} EbCliCommand;

/** eb_cli_commands: (transfer none): the table; ends with a NULL name. */
const EbCliCommand *eb_cli_commands(void);
/** eb_cli_global_options: (transfer none): --config, --json, ... taken anywhere before "--". */
const EbCliOption *eb_cli_global_options(void);
/** eb_cli_find_command: (nullable) (transfer none): EB_ERROR_INVALID names the nearest. */
const EbCliCommand *eb_cli_find_command(const char *name, GError **error);

/** EbCliArgs: a parsed command line. */
typedef struct _EbCliArgs EbCliArgs;

/**
 * eb_cli_args_parse:
 * @argv: without the program's name: global options, the command, its verb, options and operands
 *
 * Decides alone, runs nothing. --help and --version are flags in the result and then excuse what is missing.
 * Returns: (transfer full) (nullable): NULL with EB_ERROR_INVALID, a message for people.
 */
EbCliArgs *eb_cli_args_parse(int argc, char *const *argv, GError **error);
void eb_cli_args_free(EbCliArgs *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCliArgs, eb_cli_args_free)

/** eb_cli_args_get_command: (nullable) (transfer none): NULL: none was named (only with --help or --version). */
const EbCliCommand *eb_cli_args_get_command(EbCliArgs *self);
/** eb_cli_args_get_verb: (transfer none): "" when there is none. */
const char *eb_cli_args_get_verb(EbCliArgs *self);
/** eb_cli_args_get_rest: index in the argv given of what follows the command's name. */
int eb_cli_args_get_rest(EbCliArgs *self);
gboolean eb_cli_args_flag(EbCliArgs *self, const char *name);
/** eb_cli_args_count: how often a repeatable flag was given. */
guint eb_cli_args_count(EbCliArgs *self, const char *name);
/** eb_cli_args_value: (nullable) (transfer none): the last one given. */
const char *eb_cli_args_value(EbCliArgs *self, const char *name);
/** eb_cli_args_values: (transfer none) (array zero-terminated=1): every one given, in order. */
const char *const *eb_cli_args_values(EbCliArgs *self, const char *name);
/** eb_cli_args_operands: (transfer none) (array zero-terminated=1): after the verb. */
const char *const *eb_cli_args_operands(EbCliArgs *self);

/** eb_cli_split_line: (transfer full) (nullable): a printed command line into words, with quotes as a shell has them. */
char **eb_cli_split_line(const char *line, GError **error);
/**
 * eb_cli_check_line: is @line ("errand-box doctor --check E-05", placeholders in capitals or <...> or [...] allowed) a
 * command that this program takes? For the tests that read documentation and remedies.
 */
gboolean eb_cli_check_line(const char *line, GError **error);

/** eb_cli_help_program, eb_cli_help_command: (transfer full): the text of --help. */
char *eb_cli_help_program(void);
char *eb_cli_help_command(const EbCliCommand *command);

G_END_DECLS
