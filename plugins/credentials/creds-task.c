/* SPDX-License-Identifier: MIT */
#include "creds-task.h"

#include <string.h>

static void
task_free(gpointer data)
{
    CredsTask *self = data;

    g_free(self->name);
    eb_secret_unref(self->secret);
    g_free(self);
}

gboolean
creds_is_name(const char *name, gsize length)
{
    if (length == 0 || length > 63 || !g_ascii_islower(name[0]))
        return FALSE;
    for (gsize i = 0; i < length; i++)
        if (!g_ascii_islower(name[i]) && !g_ascii_isdigit(name[i]) && name[i] != '-')
            return FALSE;
    return TRUE;
}

void
creds_task_start(EbCredentialStore *store, const char *name, EbSecret *secret, gint64 expires, GTaskThreadFunc func,
                 gpointer tag, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(store, cancellable, callback, user_data);

    g_task_set_source_tag(task, tag);
    if (name != NULL && !creds_is_name(name, strlen(name))) {
        g_autofree char *shown = eb_log_escape(name, -1, 80);
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, "credentials.name",
                                               "\"%s\" is no name of a credential (lower-case letters, digits, \"-\")",
                                               shown));
        return;
    }
    if (g_task_return_error_if_cancelled(task))
        return;
    CredsTask *self = g_new0(CredsTask, 1);
    self->name = g_strdup(name);
    self->secret = secret != NULL ? eb_secret_ref(secret) : NULL;
    self->expires = expires;
    g_task_set_task_data(task, self, task_free);
    g_task_run_in_thread(task, func);
}

void
creds_task_return(GTask *task, GError *error)
{
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_boolean(task, TRUE);
}

EbCredential *
creds_task_lookup_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

char **
creds_task_list_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

gboolean
creds_task_change_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), FALSE);
    if (!g_task_propagate_boolean(G_TASK(result), error))
        return FALSE;
    const CredsTask *self = g_task_get_task_data(G_TASK(result));
    g_signal_emit_by_name(store, "changed", self->name);
    return TRUE;
}

char **
creds_task_sorted(GHashTable *names)
{
    g_autoptr(GList) sorted = g_list_sort(g_hash_table_get_keys(names), (GCompareFunc)strcmp);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    for (GList *at = sorted; at != NULL; at = at->next)
        g_strv_builder_add(builder, at->data);
    return g_strv_builder_end(builder);
}
