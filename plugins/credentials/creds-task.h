/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CredsTask: one call of a store, done in a thread: files may lie on a slow disk, and the loop must not wait for one. */
typedef struct {
    char *name;       /* (nullable) */
    EbSecret *secret; /* (owned) (nullable) */
    gint64 expires;   /* unix seconds, 0 = does not expire */
} CredsTask;

/**
 * creds_task_start: checks @name, when there is one, and runs @func in a thread with a CredsTask as the task's data.
 * @secret: (nullable) (transfer none)
 */
void creds_task_start(EbCredentialStore *store, const char *name, EbSecret *secret, gint64 expires,
                      GTaskThreadFunc func, gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback,
                      gpointer user_data);
/** creds_task_return: ends @task with TRUE, or with @error: (transfer full) (nullable) */
void creds_task_return(GTask *task, GError *error);
/** creds_task_lookup_finish, _list_finish, _change_finish: the _finish half of every call; a change emits "changed". */
EbCredential *creds_task_lookup_finish(EbCredentialStore *store, GAsyncResult *result, GError **error);
char **creds_task_list_finish(EbCredentialStore *store, GAsyncResult *result, GError **error);
gboolean creds_task_change_finish(EbCredentialStore *store, GAsyncResult *result, GError **error);
/** creds_task_sorted: (transfer full): the keys of @names as a sorted list. */
char **creds_task_sorted(GHashTable *names);
gboolean creds_is_name(const char *name, gsize length);

G_END_DECLS
