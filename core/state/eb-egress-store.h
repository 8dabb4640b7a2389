/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-egress-row.h"
#include "core/state/eb-store.h"

G_BEGIN_DECLS

/**
 * The egress audit: one chain of rows a session. A row holds the hash of the one before; the session's anchor holds where
 * the kept part begins and what hash it goes on from, so that what was pruned leaves the rest verifiable; its head holds
 * where it ends, so that rows cut off at the end are missed. Rows outlive the session's removal until they are too old.
 *
 * What it proves: that rows were not changed, taken out or put in by anybody who did not write the whole chain anew. Who
 * can write the database can do that; the head is therefore logged at the end of a session, where others keep it.
 */

/** EB_EGRESS_MAX_ROWS: kept of one session; the oldest go. */
#define EB_EGRESS_MAX_ROWS 20000
/** EB_EGRESS_KEEP_MS: how long rows are kept: 30 days. */
#define EB_EGRESS_KEEP_MS (G_GINT64_CONSTANT(30) * 24 * 60 * 60 * 1000)

/** eb_egress_store_append: in the store's thread, in a transaction: seals and writes @rows of any sessions, in order. */
gboolean eb_egress_store_append(sqlite3 *db, GPtrArray *rows, GError **error);
/** eb_egress_store_prune: in the store's thread, in a transaction: rows of before @before_ms go, each chain's oldest. */
gboolean eb_egress_store_prune(sqlite3 *db, gint64 before_ms, GError **error);

/** eb_egress_store_head: in the store's thread: (transfer full) (nullable): a line for the log; NULL without rows. */
char *eb_egress_store_head(sqlite3 *db, const char *session, GError **error);

/** EbEgressVerdict: whether a chain is whole. */
typedef struct {
    gint64 rows;      /* kept */
    gint64 pruned;    /* before them */
    gint64 broken_at; /* seq of the first row that is not what was written, 0 = none */
    const char *why;  /* (nullable) static */
    char head[EB_EGRESS_HASH * 2 + 1];
} EbEgressVerdict;

/** eb_egress_store_verify: in the store's thread. FALSE: it could not be read. */
gboolean eb_egress_store_verify(sqlite3 *db, const char *session, EbEgressVerdict *verdict, GError **error);

/** EB_EGRESS_SURVEY_ROWS: the newest rows, of all sessions, whose hashes a survey looks at. */
#define EB_EGRESS_SURVEY_ROWS 5000
/** EB_EGRESS_SURVEY_BROKEN: sessions that a survey names. */
#define EB_EGRESS_SURVEY_BROKEN 16

/** EbEgressFault: one session whose chain is not whole. */
typedef struct {
    char *session;
    gint64 at;       /* seq */
    const char *why; /* static */
} EbEgressFault;

/** EbEgressSurvey: what a look over all chains at once found. */
typedef struct {
    gint64 chains, rows; /* that there are */
    gint64 checked;      /* rows whose hashes were looked at */
    GPtrArray *faults;   /* (element-type EbEgressFault) */
} EbEgressSurvey;
void eb_egress_survey_free(EbEgressSurvey *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbEgressSurvey, eb_egress_survey_free)

/**
 * eb_egress_store_survey: in the store's thread: (transfer full) (nullable): both ends of every chain, and the newest
 * EB_EGRESS_SURVEY_ROWS rows of all of them: a look at all rows could keep the store for seconds.
 */
EbEgressSurvey *eb_egress_store_survey(sqlite3 *db, GError **error);

/**
 * eb_egress_store_read_async: the rows of @session, oldest first, and last an object with event "chain": rows, pruned,
 * broken_at (null when whole), why, head.
 */
void eb_egress_store_read_async(EbStore *store, const char *session, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);
/** eb_egress_store_read_finish: (transfer full) (nullable) (element-type JsonNode) */
GPtrArray *eb_egress_store_read_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
