/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-jsonrpc.h"
#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/** eb_daemon_maint_request: answers @method when it is one of upkeep ("maint.gc" {plan?, free?}, "sessions.pin" {id},
 *  "sessions.unpin" {id}); FALSE: it is none. */
gboolean eb_daemon_maint_request(EbSessionManager *manager, EbJsonrpc *peer, const char *method, JsonObject *params,
                                 JsonNode *id);

G_END_DECLS
