/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/**
 * IncusLeftovers: instances of launches that ended while incusd did not answer. They are looked for until they are
 * gone, also when incusd makes them only later from a request it had taken. A restart of the service forgets them;
 * its sweep by label finds them then.
 */
#define INCUS_TYPE_LEFTOVERS (incus_leftovers_get_type())
G_DECLARE_FINAL_TYPE(IncusLeftovers, incus_leftovers, INCUS, LEFTOVERS, GObject)

/** INCUS_LEFTOVERS_MAX: entries kept; beyond it the oldest is left to the sweep. */
#define INCUS_LEFTOVERS_MAX 256

/** incus_leftovers_new: (transfer full) */
IncusLeftovers *incus_leftovers_new(IncusClient *client);
void incus_leftovers_add(IncusLeftovers *self, const char *name, const char *launch_id);
/** incus_leftovers_retry: tries all now, e.g. because incusd is back. */
void incus_leftovers_retry(IncusLeftovers *self);
/** incus_leftovers_stop: forgets all and ends what runs. */
void incus_leftovers_stop(IncusLeftovers *self);
guint incus_leftovers_get_count(IncusLeftovers *self);

G_END_DECLS
