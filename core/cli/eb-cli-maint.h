/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/* One function a verb of `maint`, in cmd-maint-VERB.c; each returns the exit code. */
int eb_cli_maint_backup(EbCli *cli);
int eb_cli_maint_restore(EbCli *cli);
int eb_cli_maint_due(EbCli *cli);
int eb_cli_maint_gc(EbCli *cli);
int eb_cli_maint_images(EbCli *cli);
int eb_cli_maint_selftest(EbCli *cli);
int eb_cli_maint_pins(EbCli *cli);

/** eb_cli_maint_collect: (transfer full) (nullable): the report of one gc, see eb_gc_to_json(); @plan: counts alone;
 *  @free_bytes: see eb_session_manager_gc_async(). Without a service this process is the service's account afterwards. */
JsonNode *eb_cli_maint_collect(EbCli *cli, gboolean plan, guint64 free_bytes, GError **error);
void eb_cli_maint_print_gc(EbCli *cli, JsonNode *report, gboolean plan);

/** EB_CLI_MAINT_IMAGE_DAYS: after so many days a guest image is made anew, for its distribution's security updates. */
#define EB_CLI_MAINT_IMAGE_DAYS 30
/** eb_cli_maint_days: --days, else that. @max_age_s: (out): seconds */
gboolean eb_cli_maint_days(EbCli *cli, gint64 *max_age_s, GError **error);
/** eb_cli_maint_refresh_images: (transfer full) (nullable): {"schema","due","changed","detail","old":{class}} */
JsonObject *eb_cli_maint_refresh_images(EbCli *cli, gboolean plan, GError **error);
void eb_cli_maint_print_images(EbCli *cli, JsonObject *object);

G_END_DECLS
