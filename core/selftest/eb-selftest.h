/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/config/eb-config.h"

G_BEGIN_DECLS

/** EB_SELFTEST_MAX_KILLS, EB_SELFTEST_MAX_JOBS: bounds of what one run may be asked for. */
#define EB_SELFTEST_MAX_KILLS 100000
#define EB_SELFTEST_MAX_JOBS 16

/** EbSelftestOptions: all borrowed until the end of the run. */
typedef struct {
    EbConfig *config; /* of the service that is not touched: account, backend, what is accepted */
    EbPaths *paths;
    EbContainerBackend *backend; /* started; used from the main context */
    const char *backend_plugin;  /* name of the plugin it is of */
    guint kills, jobs;
    guint32 seed;
    const char *reports; /* directory for what is kept of violations; made when there are any */
} EbSelftestOptions;

/** EbSelftestReport: what came of it. */
typedef struct {
    guint kills, starts, prompts, sessions, late_guests, missed;
    guint start_median_ms, start_slowest_ms;
    char *slowest;         /* (nullable): what the slowest start came after */
    GHashTable *groups;    /* (utf8 -> guint): kills by group of steps */
    GHashTable *killed_at; /* (utf8 "way step" -> guint): kills by place */
    GPtrArray *violations; /* (element-type utf8) */
    gint64 us;
} EbSelftestReport;
void eb_selftest_report_free(EbSelftestReport *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSelftestReport, eb_selftest_report_free)

/**
 * eb_selftest_run_async: starts services of its own below <state_dir>/try, kills each again and again with SIGKILL while
 * it works, and looks at what is left after every start. Needs to be the service's account. Progress goes to the log of
 * errors, a line every ten kills.
 * @cancellable: (nullable): ends it early; everything that was made is taken back all the same
 */
void eb_selftest_run_async(const EbSelftestOptions *options, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data);
/** eb_selftest_run_finish: (transfer full) (nullable): an error when it could not be carried out. */
EbSelftestReport *eb_selftest_run_finish(GAsyncResult *result, GError **error);

G_END_DECLS
