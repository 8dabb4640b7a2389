/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-guest.h"

G_BEGIN_DECLS

/**
 * eb_guest_listen_egress: what the guest's broker reports goes into the audit, from its first connection to its last:
 * before the session has an agent, and after it let go of it.
 */
void eb_guest_listen_egress(EbGuest *self);

G_END_DECLS
