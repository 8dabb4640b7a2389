/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-config-section.h"
#include "eb-host.h"
#include "eb-types.h"

G_BEGIN_DECLS

/** EbCheckStatus: outcome of a check. */
typedef enum {
    EB_CHECK_OK = 0,       /* the guarantee holds */
    EB_CHECK_DEGRADED = 1, /* it works, with less protection than promised: an operator must accept it */
    EB_CHECK_FAIL = 2,     /* errand-box cannot work like this */
    EB_CHECK_SKIPPED = 3,  /* does not apply or could not be looked at; observed says why */
} EbCheckStatus;

/** eb_check_status_to_string: "ok", "degraded", "fail", "skipped". */
EB_API const char *eb_check_status_to_string(EbCheckStatus status);

/** EbCheckInfo: what a check declares before it runs. Static storage. */
struct _EbCheckInfo {
    const char *id;           /* "E-05"; third parties: "x-vendor-what" */
    const char *title;        /* one line */
    const char *expected;     /* what a good host shows */
    const char *remedy;       /* what to do; every `errand-box ...` in it must parse */
    const char *doc;          /* (nullable): page or URL */
    const char *const *reads; /* (array zero-terminated=1): all it looks at, see eb_doctor_check_run() */
    guint deadline_ms;        /* 0 = the doctor's default of 3000 */
};

/** EbCheckResult: what it saw. */
struct _EbCheckResult {
    EbCheckStatus status;
    char *observed; /* what was seen, no secret */
    char *remedy;   /* (nullable): more precise than the declared one */
};
EB_API EbCheckResult *eb_check_result_new(EbCheckStatus status, const char *observed_format, ...) G_GNUC_PRINTF(2, 3);
EB_API void eb_check_result_set_remedy(EbCheckResult *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
EB_API void eb_check_result_free(EbCheckResult *self);

/**
 * EbDoctorCheck: looks at one thing of the host.
 *
 * run() is called in a thread of the doctor, sees the host through @host alone, and may block up to its deadline;
 * @cancellable fires then. @settings is the table [service] merged with the backend's table ("backend.socket",
 * "backend.project", "backend.pool", "backend.image") and may lack any key.
 */
#define EB_TYPE_DOCTOR_CHECK (eb_doctor_check_get_type())
EB_API
G_DECLARE_INTERFACE(EbDoctorCheck, eb_doctor_check, EB, DOCTOR_CHECK, GObject)

struct _EbDoctorCheckInterface {
    GTypeInterface parent_iface;
    const EbCheckInfo *(*get_info)(EbDoctorCheck *self);
    EbCheckResult *(*run)(EbDoctorCheck *self, EbHost *host, EbConfigSection *settings, GCancellable *cancellable);
};
/** eb_doctor_check_get_info: (transfer none) */
EB_API const EbCheckInfo *eb_doctor_check_get_info(EbDoctorCheck *self);
/**
 * eb_doctor_check_run: (transfer full): never NULL
 *
 * A check sees of @host what its info declares in reads: files and directories with all below them ("/etc/subuid"),
 * "unix:SOCKET" and "run:PROGRAM"; "{KEY}" in an item is filled from @settings ("unix:{backend.socket}"). When it asks
 * for anything else the answer is an error and the result is SKIPPED, naming it. The kernel's release is always shown.
 */
EB_API EbCheckResult *eb_doctor_check_run(EbDoctorCheck *self, EbHost *host, EbConfigSection *settings,
                                          GCancellable *cancellable);

/** EbCheckFunc: a check as a plain function. */
typedef EbCheckResult *(*EbCheckFunc)(EbHost *host, EbConfigSection *settings, GCancellable *cancellable);
/** eb_simple_check_new: (transfer full): the easy way: @info static, @run the function. */
EB_API EbDoctorCheck *eb_simple_check_new(const EbCheckInfo *info, EbCheckFunc run);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCheckResult, eb_check_result_free)

G_END_DECLS
