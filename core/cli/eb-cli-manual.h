/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli-args.h"

G_BEGIN_DECLS

/*
 * What is installed beside the program and says what it takes: manual pages (roff, man(7)) and completions of shells,
 * all from the tables that the parser itself reads, so that they cannot tell anything else.
 */

/** eb_cli_manual_program: (transfer full): errand-box(1): every command with its verbs and options. */
char *eb_cli_manual_program(void);
/** eb_cli_manual_config: (transfer full): errand-box.toml(5): every key with its default, range and meaning. */
char *eb_cli_manual_config(void);

/** eb_cli_completion_bash, eb_cli_completion_zsh, eb_cli_completion_fish: (transfer full) */
char *eb_cli_completion_bash(void);
char *eb_cli_completion_zsh(void);
char *eb_cli_completion_fish(void);

G_END_DECLS
