/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CREDS_WATCH_MAX: files of one watch. */
#define CREDS_WATCH_MAX 8
/** CREDS_WATCH_SETTLE_MS: changes of one moment are told as one. */
#define CREDS_WATCH_SETTLE_MS 200

/** CredsWatch: emits "changed" (any name) of a store when one of its files was changed, replaced or removed by others. */
typedef struct _CredsWatch CredsWatch;
/** creds_watch_new: (transfer full): of the thread-default main context. @store: (transfer none): must outlive it */
CredsWatch *creds_watch_new(EbCredentialStore *store);
/** creds_watch_add: @path: (nullable): need not exist; beyond CREDS_WATCH_MAX nothing is added. */
void creds_watch_add(CredsWatch *self, const char *path);
void creds_watch_free(CredsWatch *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CredsWatch, creds_watch_free)

G_END_DECLS
