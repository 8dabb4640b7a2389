/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/doctor/eb-doctor-line.h"
#include "core/doctor/eb-doctor.h"

G_BEGIN_DECLS

/** EB_DOCTOR_LOAD_MS: how long a plugin may take to load and to say what it checks. */
#define EB_DOCTOR_LOAD_MS (4000 * EB_DOCTOR_SLOWER)

/** EbDoctorChildSpec: one process to run; all borrowed until the call returns. */
typedef struct {
    int program_fd;               /* the program errand-box */
    const char *const *arguments; /* after the program's name */
    gint64 end;                   /* monotonic microseconds: killed then at the latest */
} EbDoctorChildSpec;

/** EbDoctorOutcome: what it told before it ended, and how it ended. */
typedef struct {
    GPtrArray *infos;   /* (element-type EbCheckInfo) (owned) */
    GPtrArray *results; /* (element-type EbDoctorLine) (owned): of kind EB_DOCTOR_LINE_RESULT, each for one of infos */
    char *problem;      /* (owned) (nullable): in the process's own words why the plugin brings no checks */
    char *fault;        /* (owned) (nullable): what it did instead of ending as it should: "was killed by SIGSEGV" */
    gboolean described; /* it named all its checks */
} EbDoctorOutcome;
/** eb_doctor_outcome_new: (transfer full): nothing told */
EbDoctorOutcome *eb_doctor_outcome_new(void);
void eb_doctor_outcome_free(EbDoctorOutcome *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbDoctorOutcome, eb_doctor_outcome_free)
/** eb_doctor_outcome_result: (nullable) (transfer none) */
const EbDoctorLine *eb_doctor_outcome_result(const EbDoctorOutcome *self, const char *id);

/**
 * eb_doctor_child_run_async: starts the process and takes in what it tells, until it has ended: by itself, or killed
 * because it was late or told what is no answer. Nothing it does is an error here.
 */
void eb_doctor_child_run_async(const EbDoctorChildSpec *spec, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
/** eb_doctor_child_run_finish: (transfer full) (nullable): NULL when it could not be started or was cancelled. */
EbDoctorOutcome *eb_doctor_child_run_finish(GAsyncResult *result, GError **error);

G_END_DECLS
