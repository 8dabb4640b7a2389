/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"
#include "core/plugin/eb-credentials.h"

G_BEGIN_DECLS

/**
 * eb_cli_enter:
 * @registry: loaded, with every plugin that will be needed: modules are opened while root still may
 *
 * The step from the program that an operator or a supervisor started to the one that does the work: checks that the
 * state directory is there, keeps in memory which credentials only root can read, becomes the service's account for
 * good and shields the process. Started as the account it does the same, without the change.
 *
 * Returns: (transfer full) (nullable)
 */
EbCredentials *eb_cli_enter(EbCli *cli, EbConfig *config, EbPluginRegistry *registry, GError **error);

/**
 * eb_cli_enter_account: the same without credentials, for a program that needs none: the account, for good, and the
 * shield.
 */
gboolean eb_cli_enter_account(EbConfig *config, GError **error);

G_END_DECLS
