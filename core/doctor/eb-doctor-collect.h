/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/doctor/eb-doctor.h"

/*
 * Runs the checks of every plugin in a process of its own, and puts together what they tell. A plugin that crashes,
 * hangs or floods takes down its own process alone: it is named, its checks that had not come back are run again, each
 * in a process of its own, so that the one to blame is named too, and all others report.
 */

G_BEGIN_DECLS

/** EB_DOCTOR_TOTAL_MS: a whole run ends within this, whatever plugins do. */
#define EB_DOCTOR_TOTAL_MS (9400 * EB_DOCTOR_SLOWER)
/** EB_DOCTOR_AT_ONCE: checks of a plugin that crashed that are run again at the same time. */
#define EB_DOCTOR_AT_ONCE 8
/** EB_DOCTOR_PLUGINS_CHECK: the check that says which plugins brought no checks, or broke. */
#define EB_DOCTOR_PLUGINS_CHECK "E-75"

/** EbDoctorCollect: what to run; all borrowed until the call returns. */
typedef struct {
    int program_fd;               /* the program errand-box: it has the command that runs one plugin's checks */
    const char *const *arguments; /* of that command, the plugin's name, the flags below left out */
    const char *const *plugins;   /* that bring checks */
    const char *const *ids;       /* (nullable): these checks alone */
    const char *const *problems;  /* (nullable): what is known to be wrong with plugins that are not run */
    gboolean list;                /* say what is checked, run nothing */
    gboolean watch;               /* those alone that watch what changes by itself */
    gboolean service;             /* those alone for which a service takes no new sessions */
    EbDoctorReport *report;       /* filled */
} EbDoctorCollect;

/** eb_doctor_collect_async: nothing a plugin does is an error; rows are in the report, sorted, when it is done. */
void eb_doctor_collect_async(const EbDoctorCollect *order, GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer user_data);
/** eb_doctor_collect_finish: EB_ERROR_NOT_FOUND: an id asked for is none; the nearest known one is named. */
gboolean eb_doctor_collect_finish(GAsyncResult *result, GError **error);

/**
 * eb_doctor_adopt_orphans: from here on what a plugin's process leaves running becomes a child of this one.
 * eb_doctor_end_orphans: ends them, by pidfd. For a program that starts nothing besides: it ends every child it has.
 */
void eb_doctor_adopt_orphans(void);
void eb_doctor_end_orphans(void);

G_END_DECLS
