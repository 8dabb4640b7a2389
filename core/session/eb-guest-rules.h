/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-guest.h"

G_BEGIN_DECLS

/**
 * EbGuest.rules is what the guest's broker goes by. Whoever changes a part of it (a key, the hosts of this session) does so
 * in place and calls eb_guest_tell_broker(), so that no change takes another one back.
 */

/**
 * eb_guest_tell_broker: gives the broker the rules as they are now, without a restart; nothing when there is no broker. What
 * it refuses, or does not take in time, is logged, and it goes on with those it had.
 */
void eb_guest_tell_broker(EbGuest *self);

/**
 * eb_guest_refresh_keys: looks up anew the keys that the broker puts on; a key that is another one now is masked in this
 * session and given to the broker. A key that cannot be read is logged, and the broker keeps the one it has.
 * @name: (nullable): the credential that may be new; NULL = any
 */
void eb_guest_refresh_keys(EbGuest *self, const char *name);

G_END_DECLS
