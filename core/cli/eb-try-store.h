/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/**
 * What the command line does with the database of a state root that no process has open: a finished try, or a service
 * that is down. Waits with the program's main loop.
 */

/**
 * eb_try_store_list: adds the root's sessions as objects of `sessions list --json`. A root without a database, or with
 * one that cannot be read, is told on stderr and passed over.
 * @origin: (nullable): value of the member "origin"
 *
 * Returns: EB_EXIT_OK, or what a command that did not list everything exits with
 */
int eb_try_store_list(EbCli *cli, const char *root, const char *origin, JsonArray *sessions);

/** eb_try_store_do: (transfer full) (nullable): @verb "show", "logs", "egress", "stop", "pin", "unpin" or "remove" of session @id in @root. */
JsonNode *eb_try_store_do(EbCli *cli, const char *root, const char *verb, const char *id, GError **error);

/** eb_try_store_remove_root: a finished try with all it kept; EB_ERROR_LOCKED while it runs. */
gboolean eb_try_store_remove_root(const char *root, GError **error);

G_END_DECLS
