/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-private.h"

G_BEGIN_DECLS

/** eb_canary_new: (transfer full): a key as providers of @kind (nullable) give them, that works nowhere. */
EbSecret *eb_canary_new(const char *kind);

/** eb_session_canary_watch, _unwatch: whether the canary of its guest shows up: at the broker, or in what is masked. */
void eb_session_canary_watch(EbSession *self);
void eb_session_canary_unwatch(EbSession *self);

G_END_DECLS
