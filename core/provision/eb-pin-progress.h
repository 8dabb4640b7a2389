/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-pin-fetch.h"

G_BEGIN_DECLS

/** EbPinProgressRelay: whom to tell, and in which main loop: for work that goes on in a thread. */
typedef struct {
    EbPinProgress progress; /* (nullable): nobody */
    gpointer progress_data;
    GMainContext *context; /* (owned) */
} EbPinProgressRelay;

/** eb_pin_progress_relay_init: calls will come in the context that is the thread's default now. */
void eb_pin_progress_relay_init(EbPinProgressRelay *self, EbPinProgress progress, gpointer progress_data);
void eb_pin_progress_relay_clear(EbPinProgressRelay *self);
/** eb_pin_progress_relay_tell: an EbPinProgress, from any thread. @relay: EbPinProgressRelay */
void eb_pin_progress_relay_tell(const char *what, gpointer relay);

G_END_DECLS
