/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-plugin-registry.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_DOCTOR_OWN_PLUGIN: the plugin with the project's own checks: always asked, whatever is enabled. */
#define EB_DOCTOR_OWN_PLUGIN "doctor-checks"
/** EB_DOCTOR_SLOWER: programs built to find faults take so many times as long. */
#ifdef __SANITIZE_ADDRESS__
#define EB_DOCTOR_SLOWER 5
#else
#define EB_DOCTOR_SLOWER 1
#endif
/** EB_DOCTOR_MAX_CHECKS: of one plugin; each takes a thread while it runs. */
#define EB_DOCTOR_MAX_CHECKS 256
/** EB_DOCTOR_GRACE_MS: after its deadline a check has this long to notice that it was cancelled and say what it saw. */
#define EB_DOCTOR_GRACE_MS 250

/** EbDoctorRow: one check and its outcome. */
typedef struct {
    EbCheckInfo *info;     /* (owned) */
    char *plugin;          /* (owned) */
    EbCheckResult *result; /* (owned) (nullable): it was only listed */
    guint ms;
} EbDoctorRow;
typedef struct {
    GPtrArray *rows; /* (element-type EbDoctorRow) (owned), by id */
    guint ok, degraded, fail, skipped;
    char *kernel; /* release */
    char *system; /* (nullable): name of the distribution */
    guint ms;     /* the whole run */
} EbDoctorReport;
/** eb_doctor_report_new: (transfer full): no row yet; @host: names kernel and distribution */
EbDoctorReport *eb_doctor_report_new(EbHost *host);
void eb_doctor_report_free(EbDoctorReport *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDoctorReport, eb_doctor_report_free)
/** eb_doctor_report_add: @info: copied; @result: (transfer full) (nullable) */
void eb_doctor_report_add(EbDoctorReport *self, const char *plugin, const EbCheckInfo *info, EbCheckResult *result,
                          guint ms);
/** eb_doctor_report_sort: "E-5" before "E-17", ours before others'. */
void eb_doctor_report_sort(EbDoctorReport *self);
/** eb_doctor_report_find: (nullable) (transfer none) */
const EbDoctorRow *eb_doctor_report_find(EbDoctorReport *self, const char *id);

/** eb_doctor_deadline_ms: what a check that asks for @deadline_ms (0 = the default) gets: 8 s at most, so that a whole
 *  run stays below ten seconds on the sickest host. */
guint eb_doctor_deadline_ms(guint deadline_ms);

/** EbDoctorDone: called in the thread of eb_doctor_run() for each check that has ended. */
typedef void (*EbDoctorDone)(const EbCheckInfo *info, const EbCheckResult *result, guint ms, gpointer user_data);
/**
 * eb_doctor_run: checks in parallel in this process, each with its deadline; blocks. A check that hangs is reported as
 * failed with its plugin's name while the others report. The CLI does not call this itself: see eb-doctor-collect.h.
 * @checks: (element-type EbExtension)
 * @ids: (nullable): of these alone; those that are not there are left out
 * @done: (nullable)
 */
EbDoctorReport *eb_doctor_run(GPtrArray *checks, EbHost *host, EbConfigSection *settings, const char *const *ids,
                              EbDoctorDone done, gpointer user_data, GError **error);

/**
 * eb_doctor_report_to_text: (transfer full): what fails, then what is degraded, in full; the rest in a few lines.
 * @verbose: also what every passed check saw
 */
char *eb_doctor_report_to_text(EbDoctorReport *self, gboolean color, gboolean verbose);
/** eb_doctor_report_to_json: (transfer full): as in the contract, and "ms" of the whole run. */
JsonNode *eb_doctor_report_to_json(EbDoctorReport *self);
/** eb_doctor_report_list_text, _list_json: (transfer full): what is checked, without results. */
char *eb_doctor_report_list_text(EbDoctorReport *self, gboolean verbose);
JsonNode *eb_doctor_report_list_json(EbDoctorReport *self);
/** eb_doctor_exit_code: 0, 1 or 3 as in the contract. */
int eb_doctor_exit_code(EbDoctorReport *self, gboolean strict);

G_END_DECLS
