/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-catalogue.h"

#include "eb-doctor-entries.h"

#include <string.h>

const EbDoctorEntry *
eb_doctor_entries(void)
{
    return ENTRIES;
}

const EbDoctorEntry *
eb_doctor_entry_find(const char *id)
{
    for (const EbDoctorEntry *entry = ENTRIES; entry->id != NULL; entry++)
        if (strcmp(entry->id, id) == 0)
            return entry;
    return NULL;
}

gboolean
eb_doctor_entry_watches(const char *id)
{
    const EbDoctorEntry *entry = eb_doctor_entry_find(id);

    return entry != NULL && entry->watch;
}

const char *
eb_doctor_entry_hold(const char *id)
{
    const EbDoctorEntry *entry = eb_doctor_entry_find(id);

    return entry != NULL ? entry->hold : "degraded";
}
