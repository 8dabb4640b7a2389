/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/doctor/eb-doctor.h"

/* The process that holds one plugin's checks: what happens in it stays in it. */

G_BEGIN_DECLS

/** EB_DOCTOR_WORKER_FD: descriptor of the pipe to the doctor. */
#define EB_DOCTOR_WORKER_FD 3

/** eb_doctor_worker_confine: bounds of this process, before any foreign code runs: no core file, 2 GiB of memory. */
void eb_doctor_worker_confine(void);

/** EbDoctorWorkerOrder: what is wanted of it. */
typedef struct {
    const char *plugin;
    const char *const *ids; /* (nullable): these alone */
    gboolean list;          /* name the checks, run none */
    gboolean watch;         /* those alone that watch what changes by itself */
    gboolean service;       /* those alone for which a service takes no new sessions */
} EbDoctorWorkerOrder;

/**
 * eb_doctor_worker_run: tells EB_DOCTOR_WORKER_FD of the checks of @order's plugin in @registry, runs them and tells
 * what each saw, as soon as it is known. Blocks.
 *
 * Returns: FALSE when the doctor no longer reads
 */
gboolean eb_doctor_worker_run(EbPluginRegistry *registry, const EbDoctorWorkerOrder *order, EbHost *host,
                              EbConfigSection *settings);

G_END_DECLS
