/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-pins.h"
#include "core/provision/eb-pin-fetch.h"

G_BEGIN_DECLS

/** EbPinNews: what was found about one entry of pins.toml. */
typedef enum {
    EB_PIN_NEWS_NONE = 0, /* nothing newer, or nobody to ask: see the note */
    EB_PIN_NEWS_NEWER,    /* there is, and pins.toml was changed unless only a plan was wanted */
    EB_PIN_NEWS_FAILED,   /* it could not be found out, or the new version cannot be pinned */
} EbPinNews;

/** EbPinChange: one entry. */
typedef struct {
    EbPinKind kind;
    char *name;
    EbPinNews news;
    char *old_version;  /* (nullable) */
    char *new_version;  /* (nullable): of EB_PIN_NEWS_NEWER */
    char *old_digest;   /* (nullable) */
    char *new_digest;   /* (nullable): not in a plan */
    gboolean is_signed; /* checked against the publisher's key */
    char *note;         /* (nullable): for people */
    GError *error;      /* (nullable): of EB_PIN_NEWS_FAILED */
} EbPinChange;

/**
 * eb_pin_update_async: looks for newer versions of everything pinned and rewrites pins.toml and the lock files beside it;
 * comments and order stay. Each file is replaced whole, pins.toml last: an interrupted run is done by the next. The
 * result is verified.
 * @tree: directory with pins.toml and guest/
 * @cache_dir: where archives are staged
 * @plan_only: look, fetch nothing and change nothing
 * @progress: (nullable): called in the main context of the caller
 */
void eb_pin_update_async(const char *tree, const char *cache_dir, gboolean plan_only, EbPinProgress progress,
                         gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data);
/** eb_pin_update_finish: (transfer full) (nullable) (element-type EbPinChange): one an entry, in order. */
GPtrArray *eb_pin_update_finish(GAsyncResult *result, GError **error);

/** eb_pin_update_count: how many of @changes have @news. */
guint eb_pin_update_count(GPtrArray *changes, EbPinNews news);
/** eb_pin_update_to_markdown: (transfer full): what changed, with digests, as the text of a pull request. */
char *eb_pin_update_to_markdown(GPtrArray *changes);
/** eb_pin_update_to_json: (transfer full) */
JsonNode *eb_pin_update_to_json(GPtrArray *changes);

void eb_pin_change_free(EbPinChange *change);

G_END_DECLS
