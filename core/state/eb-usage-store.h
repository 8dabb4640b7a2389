/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_USAGE_KEEP_DAYS: days of which sums are kept for sessions that are gone; those of a session stay as long as it. */
#define EB_USAGE_KEEP_DAYS 62

/** EbUsageRow: what one request used, or was given to use; also a sum of several. */
typedef struct {
    gint64 hold; /* of what was set aside for it, 0 = nothing */
    char *session;
    guint turn;
    gint64 day;   /* since the epoch, UTC */
    char *person; /* "" = nobody known */
    char *provider;
    char *model; /* "" = unknown */
    guint64 tokens_in, tokens_out, tokens_cached;
    gboolean estimated;
    guint64 micros; /* millionths of a unit of currency */
} EbUsageRow;

EbUsageRow *eb_usage_row_new(const char *session, guint turn, gint64 day, const char *person, const char *provider,
                             const char *model);
void eb_usage_row_free(EbUsageRow *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbUsageRow, eb_usage_row_free)

/** eb_usage_store_hold_async: sets aside tokens_in and micros of @row (transfer full) under its hold, or changes it. */
void eb_usage_store_hold_async(EbStore *store, EbUsageRow *row, GAsyncReadyCallback callback, gpointer user_data);
/** eb_usage_store_settle_async: adds @row (transfer full) to the sums in place of its hold. */
void eb_usage_store_settle_async(EbStore *store, EbUsageRow *row, GAsyncReadyCallback callback, gpointer user_data);
/** eb_usage_store_finish: of both. */
gboolean eb_usage_store_finish(EbStore *store, GAsyncResult *result, GError **error);

/**
 * eb_usage_store_load_async: takes what a killed run had set aside for used, forgets sums that are too old, and gives what
 * is left, added up by session, day and person. @today: day since the epoch
 */
void eb_usage_store_load_async(EbStore *store, gint64 today, GAsyncReadyCallback callback, gpointer user_data);
/** eb_usage_store_load_finish: (transfer full) (nullable) (element-type EbUsageRow) */
GPtrArray *eb_usage_store_load_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
