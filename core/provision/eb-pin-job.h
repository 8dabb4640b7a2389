/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-pins.h"
#include "core/provision/eb-pin-fetch.h"

G_BEGIN_DECLS

/** EbPinState: what was found of one entry. */
typedef enum {
    EB_PIN_STATE_OK = 0,  /* all of it is there, checked */
    EB_PIN_STATE_MISSING, /* well formed, but not (all) fetched or installed */
    EB_PIN_STATE_FETCHED, /* fetched now, checked */
    EB_PIN_STATE_BAD,     /* see the error */
} EbPinState;

/** EbPinOutcome: of one entry of pins.toml. */
typedef struct {
    EbPinKind kind;
    char *name;
    char *package; /* (nullable) */
    char *version; /* (nullable) */
    char *digest;  /* (nullable) */
    EbPinState state;
    char *detail;  /* for people: "12 of 12 packages in the cache" */
    GError *error; /* (nullable): of EB_PIN_STATE_BAD */
} EbPinOutcome;

/** eb_pin_state_name: "ok", "missing", "fetched", "bad" */
const char *eb_pin_state_name(EbPinState state);

/**
 * eb_pin_verify_async: without network: is pins.toml well formed, are its lock files what it says, is everything that
 * was fetched still what it was, are Debian packages new enough?
 * @tree: directory with pins.toml and guest/
 * @cache_dir: a missing one is an empty one
 */
void eb_pin_verify_async(const char *tree, const char *cache_dir, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);
/**
 * eb_pin_fetch_async: fetches what is not in the cache.
 * @name: (nullable): one entry alone
 * @progress: (nullable): called in the main context of the caller
 */
void eb_pin_fetch_async(const char *tree, const char *cache_dir, const char *name, EbPinProgress progress,
                        gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                        gpointer user_data);
/**
 * eb_pin_job_finish: of both.
 *
 * Returns: (transfer full) (nullable) (element-type EbPinOutcome): one an entry, bad ones among them; NULL when
 *   pins.toml or the cache cannot be used at all, or it was cancelled
 */
GPtrArray *eb_pin_job_finish(GAsyncResult *result, GError **error);

/** eb_pin_sweep_cache: removes from the cache what pins.toml in @tree does not name; small, blocking. */
gboolean eb_pin_sweep_cache(const char *tree, const char *cache_dir, gboolean dry_run, EbPinCacheCount *count,
                            GError **error);

G_END_DECLS
