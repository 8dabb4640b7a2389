/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-jsonrpc.h"
#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/** eb_daemon_maint_request: answers @method when it is one of upkeep ("maint.gc" {plan?, free?}, "sessions.pin" {id},
 *  "sessions.unpin" {id}); FALSE: it is none. */
gboolean eb_daemon_maint_request(EbSessionManager *manager, EbJsonrpc *peer, const char *method, JsonObject *params,
                                 JsonNode *id);

/**
 * eb_daemon_maint_relieve: the file system of the state directory has @free_bytes left, too few: collects garbage, and
 * gives up what was unused for longest; logs what went.
 */
void eb_daemon_maint_relieve(EbSessionManager *manager, guint64 free_bytes, guint64 min_free);

G_END_DECLS
