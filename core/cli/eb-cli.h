/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/cli/eb-cli-args.h"
#include "core/config/eb-config.h"
#include "core/plugin/eb-plugin-registry.h"

G_BEGIN_DECLS

/** EbExit: exit codes of every command (the contract). */
typedef enum {
    EB_EXIT_OK = 0,
    EB_EXIT_FAILED = 1,   /* failed while running; the one a supervisor restarts on */
    EB_EXIT_REFUSED = 2,  /* usage, configuration, a backend, token or credential that cannot work */
    EB_EXIT_DEGRADED = 3, /* a guarantee cannot be enforced and was not accepted */
    EB_EXIT_LOCKED = 4,   /* another instance holds the state directory */
} EbExit;

/**
 * EbCli: what a command works with. Configuration, paths and plugins are read on first use, so that a command which
 * needs none of them starts at once.
 */
typedef struct _EbCli EbCli;

/** EbCliFunc: runs one command; @argc, @argv: what follows the command's name, options included. Returns: exit code */
typedef int (*EbCliFunc)(EbCli *cli, int argc, char **argv);

/** eb_cli_main: the program errand-box. */
int eb_cli_main(int argc, char **argv);

/** eb_cli_get_args: (transfer none): the command's options and operands, parsed and checked against the table. */
EbCliArgs *eb_cli_get_args(EbCli *cli);
gboolean eb_cli_get_json(EbCli *cli);
/** eb_cli_get_verbosity: 0 to 3 */
int eb_cli_get_verbosity(EbCli *cli);
/** eb_cli_get_color: may escape sequences be written to stdout (a terminal, no NO_COLOR, TERM not dumb)? */
gboolean eb_cli_get_color(EbCli *cli);
/** eb_cli_get_config_file: (nullable): --config or ERRAND_BOX_CONFIG; NULL = the files in /etc/errand-box. */
const char *eb_cli_get_config_file(EbCli *cli);

/** eb_cli_get_paths: (transfer none) (nullable) */
EbPaths *eb_cli_get_paths(EbCli *cli, GError **error);
/** eb_cli_get_config: (transfer none) (nullable): EB_ERROR_CONFIG with every problem. */
EbConfig *eb_cli_get_config(EbCli *cli, GError **error);
/** eb_cli_get_config_or_default: (transfer none): for doctor and setup, which run with a broken configuration too:
 *  built-in defaults then, and the error in @problem. @problem: (out) (optional) (transfer full) (nullable) */
EbConfig *eb_cli_get_config_or_default(EbCli *cli, GError **problem);
/** eb_cli_tell_failures: before eb_cli_get_registry(): the command itself tells of plugins that fail to load. */
void eb_cli_tell_failures(EbCli *cli);
/**
 * eb_cli_get_registry:
 * @only: (nullable) (array zero-terminated=1): extension points ("doctor-check", "chat-transport:console") to open
 *   plugins for, NULL = all enabled; the first call decides
 * @sections: (nullable): replaces the configuration's [plugin.NAME] tables; NULL = those
 *
 * Opens and configures plugins, starts none. Each plugin's own failure is in its record.
 * Returns: (transfer none) (nullable)
 */
EbPluginRegistry *eb_cli_get_registry(EbCli *cli, const char *const *only, EbSectionLookup sections, gpointer user_data,
                                      GError **error);

/** eb_cli_fail: writes `errand-box: WHAT: why` for @error (nullable: @what alone). Returns: its exit code */
int eb_cli_fail(EbCli *cli, const char *what, const GError *error);
/** eb_cli_refuse: the same for a usage error found by a command itself: EB_EXIT_REFUSED. */
int eb_cli_refuse(EbCli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_cli_note: a line on stderr that is no failure: what whoever typed this should know as well. */
void eb_cli_note(EbCli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_cli_exit_code: the exit code an error stands for. */
EbExit eb_cli_exit_code(const GError *error);

/** eb_cli_print: to stdout, without control characters but newline and tab; a closed pipe ends the program quietly. */
void eb_cli_print(EbCli *cli, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_cli_print_own: the same with @text as it is: colours of ours, nothing that was said by others. */
void eb_cli_print_own(EbCli *cli, const char *text);
/** eb_cli_print_json: one document and a newline. @node: (transfer full) */
void eb_cli_print_json(EbCli *cli, JsonNode *node);

/** eb_cli_wait: runs the main loop of the program until *@done; for commands, which have no other. */
void eb_cli_wait(EbCli *cli, const gboolean *done);

G_END_DECLS
