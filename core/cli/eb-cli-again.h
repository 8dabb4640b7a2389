/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/** EB_CLI_AGAIN_MAX: bytes kept of what the second process says; more is cut. */
#define EB_CLI_AGAIN_MAX (1024 * 1024)

/** EbCliAgain: what the second process's streams are; those not named are this process's own. */
typedef enum {
    EB_CLI_AGAIN_OUTPUT, /* stdout: the descriptor given; stderr is kept */
    EB_CLI_AGAIN_INPUT,  /* stdin: the descriptor given */
    EB_CLI_AGAIN_LISTEN, /* stdout is kept */
} EbCliAgain;

/**
 * eb_cli_again: runs this program once more, with the same --config and --json, for work that must be done as another
 * account. Signals that interrupt this process end it.
 * @args: (array zero-terminated=1): command, verb, operands, options
 * @fd: (transfer full): -1 with EB_CLI_AGAIN_LISTEN
 * @said: (out) (transfer full) (nullable): what was kept
 *
 * Returns: its exit code; EB_EXIT_FAILED with @error when it could not be started
 */
int eb_cli_again(EbCli *cli, const char *const *args, EbCliAgain streams, int fd, char **said, GError **error);

G_END_DECLS
