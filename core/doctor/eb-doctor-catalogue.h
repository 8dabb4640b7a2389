/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

/* What data/checks.d says of each check of the project beyond what plugins declare. */

G_BEGIN_DECLS

/** EbDoctorEntry: one file of data/checks.d. Static storage. */
typedef struct {
    const char *id, *title, *expected, *remedy;
    const char *cost;     /* what a degraded host costs; "" when the check only fails */
    const char *fixed_by; /* (nullable): step of setup that mends it */
    const char *hold;     /* from which status on the service takes no new sessions: "degraded", "fail" or "never" */
    gboolean watch;       /* changes by itself while a host runs: looked at every minute, so it is cheap */
} EbDoctorEntry;

/** eb_doctor_entries: (transfer none): all of them; ends with a NULL id. */
const EbDoctorEntry *eb_doctor_entries(void);
/** eb_doctor_entry_find: (nullable) (transfer none) */
const EbDoctorEntry *eb_doctor_entry_find(const char *id);
/** eb_doctor_entry_watches: FALSE also for checks of others: those run with all the rest alone. */
gboolean eb_doctor_entry_watches(const char *id);

/** eb_doctor_entry_hold: EbDoctorEntry.hold; "degraded" for checks of others. */
const char *eb_doctor_entry_hold(const char *id);

G_END_DECLS
