/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-egress-store.h"

G_BEGIN_DECLS

/** EB_EGRESS_LOG_MAX_PENDING: rows not yet written; further ones are counted, and the next row of the session says so. */
#define EB_EGRESS_LOG_MAX_PENDING 16384
/** EB_EGRESS_LOG_MAX_OF_SESSION: of them of one session, so that one guest leaves others' rows their room. */
#define EB_EGRESS_LOG_MAX_OF_SESSION 2048
/**
 * EB_EGRESS_LOG_REFUSED_BURST: rows of a session about requests for which nothing was connected to; EB_EGRESS_LOG_REFUSED_MS
 * later there may be one more. Further ones are counted: asking for what is refused costs a guest nothing, and would push
 * what it did reach out of the rows that are kept (EB_EGRESS_MAX_ROWS).
 */
#define EB_EGRESS_LOG_REFUSED_BURST 4096
#define EB_EGRESS_LOG_REFUSED_MS 1000

/** EbEgressLog: takes audit rows of all sessions and writes them in batches, in the store's thread. */
#define EB_TYPE_EGRESS_LOG (eb_egress_log_get_type())
G_DECLARE_FINAL_TYPE(EbEgressLog, eb_egress_log, EB, EGRESS_LOG, GObject)

EbEgressLog *eb_egress_log_new(EbStore *store);
/** eb_egress_log_add: @row: (transfer full) */
void eb_egress_log_add(EbEgressLog *self, EbEgressRow *row);
/** eb_egress_log_note_death: the broker of @session ended: a row that says so, and that rows before it are missing. */
void eb_egress_log_note_death(EbEgressLog *self, const char *session);
/** eb_egress_log_end_session: writes what waits and logs the head of its chain, where others than we keep it. */
void eb_egress_log_end_session(EbEgressLog *self, const char *session);
/** eb_egress_log_flush: hands everything to the store now. */
void eb_egress_log_flush(EbEgressLog *self);

G_END_DECLS
