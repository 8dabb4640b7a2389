/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli-call.h"
#include "core/plugin/eb-credentials.h"

G_BEGIN_DECLS

/* What the forms of `errand-box creds` share: one call of a store each, waited for. */

/** eb_cli_creds_lookup: (transfer full) (nullable) */
EbCredential *eb_cli_creds_lookup(EbCli *cli, const EbExtension *store, const char *name, GError **error);
/** eb_cli_creds_names: (transfer full) (nullable) */
char **eb_cli_creds_names(EbCli *cli, const EbExtension *store, GError **error);
gboolean eb_cli_creds_put(EbCli *cli, const EbExtension *store, const char *name, const EbCredential *credential,
                          GError **error);
gboolean eb_cli_creds_remove(EbCli *cli, const EbExtension *store, const char *name, GError **error);
/** eb_cli_creds_print_json: with --json alone: {@member: @list}. @list: (transfer full) */
void eb_cli_creds_print_json(EbCli *cli, const char *member, JsonArray *list);
/** eb_cli_creds_time: (transfer full) (nullable): RFC 3339; NULL for 0 */
char *eb_cli_creds_time(gint64 unix_seconds);
/**
 * eb_cli_creds_parse_expiry: "30d", "12h", "2027-01-31", "2027-01-31T12:00:00Z" (UTC without a zone): unix seconds. 0 with
 * @error when it is none of these, or not after @now.
 */
gint64 eb_cli_creds_parse_expiry(const char *text, gint64 now, GError **error);

/** eb_cli_creds_list, eb_cli_creds_seal: forms of the command. @stores: (element-type EbExtension): in order */
int eb_cli_creds_list(EbCli *cli, GPtrArray *stores);
int eb_cli_creds_seal(EbCli *cli, GPtrArray *stores);

G_END_DECLS
