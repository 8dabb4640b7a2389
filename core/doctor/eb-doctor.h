/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-registry.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbDoctorRow: one check and its outcome. */
typedef struct {
    const EbCheckInfo *info;
    const char *plugin;
    EbCheckResult *result;
    guint ms;
} EbDoctorRow;
typedef struct {
    GPtrArray *rows; /* (element-type EbDoctorRow) (owned), by id */
    guint ok, degraded, fail, skipped;
    char *kernel; /* release */
    char *system; /* (nullable): name of the distribution */
} EbDoctorReport;
void eb_doctor_report_free(EbDoctorReport *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDoctorReport, eb_doctor_report_free)

/**
 * eb_doctor_run: all checks in parallel, each with its deadline; blocks (CLI). A check that hangs is reported as failed
 * with its plugin's name while the others report.
 * @checks: (element-type EbExtension); @ids: (nullable): only these; unknown ones are EB_ERROR_NOT_FOUND
 */
EbDoctorReport *eb_doctor_run(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids,
                              GError **error);
/** eb_doctor_run_async: the same for the service: never blocks the loop. */
void eb_doctor_run_async(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
EbDoctorReport *eb_doctor_run_finish(GAsyncResult *result, GError **error);
/**
 * eb_doctor_report_to_text: (transfer full): what fails, then what is degraded, in full; the rest in a few lines.
 * @verbose: also what every passed check saw
 */
char *eb_doctor_report_to_text(EbDoctorReport *self, gboolean color, gboolean verbose);
/** eb_doctor_report_to_json: (transfer full): as in the contract. */
JsonNode *eb_doctor_report_to_json(EbDoctorReport *self);
/** eb_doctor_exit_code: 0, 1 or 3 as in the contract. */
int eb_doctor_exit_code(EbDoctorReport *self, gboolean strict);

G_END_DECLS
