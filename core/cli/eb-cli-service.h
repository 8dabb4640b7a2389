/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"
#include "core/provision/eb-supervisor.h"
#include "core/session/eb-lock-holder.h"

G_BEGIN_DECLS

/** EB_CLI_SERVICE_UNIT, EB_CLI_WATCHDOG_UNIT: names under a supervisor. */
#define EB_CLI_SERVICE_UNIT "errand-boxd"
#define EB_CLI_WATCHDOG_UNIT "errand-box-watchdog"

/** EB_CLI_START_MS, EB_CLI_STOP_MS: what a start and a drain may take; a little more than the units' own limits. */
#define EB_CLI_START_MS 120000
#define EB_CLI_STOP_MS 150000

/** EbCliService: the service of one configuration, as this host knows it. */
typedef struct {
    EbSupervisor *supervisor; /* (owned) */
    EbUnitStatus unit;
    gboolean ours;        /* the supervisor has a unit, and that runs this configuration */
    GError *unit_problem; /* (owned) (nullable): why the supervisor does not tell of it */
    EbLockHolder holder;  /* pid 0: nobody holds the state directory, or see below */
    GError *lock_problem; /* (owned) (nullable): somebody does, and cannot be told */
} EbCliService;

/** eb_cli_service_find: looks at supervisor, unit and lock. FALSE: configuration or scan directory are bad. */
gboolean eb_cli_service_find(EbCli *cli, EbConfig *config, EbCliService *service, GError **error);
/** eb_cli_service_query: asks the supervisor again. */
gboolean eb_cli_service_query(EbCliService *service, GError **error);
void eb_cli_service_clear(EbCliService *service);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbCliService, eb_cli_service_clear)

/** eb_cli_service_is_held: somebody holds the state directory. */
gboolean eb_cli_service_is_held(const EbCliService *service);
/** eb_cli_service_same_config: do both names (nullable: the files in /etc/errand-box) mean one configuration? */
gboolean eb_cli_service_same_config(const char *a, const char *b);
/** eb_cli_service_exit_means: (transfer full): an end in words, by the contract's exit codes. */
char *eb_cli_service_exit_means(int exit_code, int exit_signal);
/** eb_cli_service_last_error: (transfer full) (nullable): the last line of @log that the program wrote as its error. */
char *eb_cli_service_last_error(const char *log);

G_END_DECLS
