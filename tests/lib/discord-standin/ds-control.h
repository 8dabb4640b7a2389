/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-world.h"

G_BEGIN_DECLS

/** DsVerb: one call of the control interface. */
typedef struct {
    const char *name;
    /** run: (transfer full) (nullable): with @error when the test asks for what cannot be */
    JsonObject *(*run)(DsWorld *world, JsonObject *args, GError **error);
} DsVerb;

extern const DsVerb ds_verbs_people[];
extern const DsVerb ds_verbs_lists[];
extern const DsVerb ds_verbs_faults[];

/** DsControl: calls that wait for something. */
typedef struct {
    DsWorld *world;   /* (unowned) */
    GPtrArray *waits; /* (element-type DsWait) */
    guint idle;
} DsControl;

DsControl *ds_control_new(DsWorld *world);
void ds_control_free(DsControl *self);
/** ds_control_run: (transfer full) (nullable): @args: (nullable) */
JsonObject *ds_control_run(DsWorld *world, const char *verb, JsonObject *args, GError **error);
/** ds_control_handle: a request below /__control. */
void ds_control_handle(DsControl *self, SoupServerMessage *message, const char *path);
/** ds_control_changed: looks again at what is waited for. */
void ds_control_changed(DsControl *self);
/** ds_control_holds: whether @result of a list is what a wait wants. */
gboolean ds_control_holds(JsonObject *result, gint64 count);

/* For the verbs: each finds what @args name, or sets @error. */
DsChannel *ds_args_channel(DsWorld *world, JsonObject *args, GError **error);
DsMessage *ds_args_message(DsWorld *world, DsChannel *channel, JsonObject *args, GError **error);
const char *ds_args_user(DsWorld *world, JsonObject *args, GError **error);

G_END_DECLS
