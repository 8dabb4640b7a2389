/* SPDX-License-Identifier: MIT */
#include "core/plugin/eb-credentials.h"
#include "core/base/eb-redactor.h"

#include <string.h>

#define REGISTRY_KEY "eb-credentials"
/* The reason of an EB_ERROR_NOT_FOUND that is not certain: a place of the store is closed to this program. */
#define CLOSED "credentials.unreadable"

struct _EbCredentials {
    GObject parent_instance;
    EbPluginRegistry *registry; /* not owned: it owns this, once attached */
    char **order;
    EbRenewals *renewals;
    GHashTable *kept; /* (element-type utf8 EbSecret), at most EB_CREDENTIALS_MAX_KEPT */
};

G_DEFINE_FINAL_TYPE(EbCredentials, eb_credentials, G_TYPE_OBJECT)

/* One lookup: the stores still to ask, and what was seen so far. */
typedef struct {
    char *name;
    GPtrArray *stores; /* (element-type EbCredentialStore) (owned) */
    guint next;
    GString *looked;       /* for the message when nothing is found */
    gboolean closed;       /* some of it may be where this program may not look */
    GCancellable *current; /* of the store that is asked now */
    GSource *deadline;     /* (nullable) */
    gulong cancelled;      /* handler on the task's cancellable */
    gboolean late;
} Search;

static void ask_next(GTask *task);

static void
eb_credentials_finalize(GObject *object)
{
    EbCredentials *self = EB_CREDENTIALS(object);

    g_strfreev(self->order);
    g_hash_table_unref(self->kept);
    g_object_unref(self->renewals);
    G_OBJECT_CLASS(eb_credentials_parent_class)->finalize(object);
}

static void
eb_credentials_class_init(EbCredentialsClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_credentials_finalize;
    g_signal_new("changed", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 G_TYPE_STRING);
}

static void
eb_credentials_init(EbCredentials *self)
{
    self->kept = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)eb_secret_unref);
    self->renewals = eb_renewals_new();
}

static void
looked_up_for_plugin(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    EbSecret *secret = eb_credentials_lookup_finish(EB_CREDENTIALS(source), result, &error);

    if (secret != NULL)
        g_task_return_pointer(task, secret, (GDestroyNotify)eb_secret_unref);
    else
        g_task_return_error(task, error);
}

static void
lookup_for_plugin(const char *name, GTask *task, gpointer user_data)
{
    eb_credentials_lookup_async(user_data, name, g_task_get_cancellable(task), looked_up_for_plugin, task);
}

static void
store_changed(EbCredentialStore *store, const char *name, gpointer user_data)
{
    g_signal_emit_by_name(user_data, "changed", name);
}

EbCredentials *
eb_credentials_new(EbPluginRegistry *registry, const char *const *order)
{
    EbCredentials *self;

    g_return_val_if_fail(EB_IS_PLUGIN_REGISTRY(registry) && order != NULL, NULL);
    self = g_object_new(EB_TYPE_CREDENTIALS, NULL);
    self->registry = registry;
    self->order = g_strdupv((char **)order);
    g_object_set_data_full(G_OBJECT(registry), REGISTRY_KEY, g_object_ref(self), g_object_unref);
    eb_plugin_registry_set_lookup(registry, lookup_for_plugin, self);
    g_autoptr(GPtrArray) stores = eb_credentials_get_stores(self);
    for (guint i = 0; i < stores->len; i++) {
        const EbExtension *extension = stores->pdata[i];
        g_signal_connect_object(extension->object, "changed", G_CALLBACK(store_changed), self, 0);
    }
    return self;
}

EbCredentials *
eb_credentials_from_registry(EbPluginRegistry *registry)
{
    g_return_val_if_fail(EB_IS_PLUGIN_REGISTRY(registry), NULL);
    return g_object_get_data(G_OBJECT(registry), REGISTRY_KEY);
}

gboolean
eb_credentials_set_renewer(EbCredentials *self, const char *name, EbCredentialRenew renew, gpointer user_data,
                           GDestroyNotify destroy)
{
    g_return_val_if_fail(EB_IS_CREDENTIALS(self) && name != NULL, FALSE);
    return eb_renewals_set(self->renewals, name, renew, user_data, destroy);
}

GPtrArray *
eb_credentials_get_stores(EbCredentials *self)
{
    g_return_val_if_fail(EB_IS_CREDENTIALS(self), NULL);
    g_autoptr(GPtrArray) all = eb_plugin_registry_list(self->registry, EB_EXTENSION_CREDENTIAL_STORE);
    GPtrArray *result = g_ptr_array_new_with_free_func(g_free);

    for (char **name = self->order; *name != NULL; name++)
        for (guint i = 0; i < all->len; i++) {
            const EbExtension *extension = all->pdata[i];
            if (strcmp(extension->name, *name) == 0)
                g_ptr_array_add(result, g_memdup2(extension, sizeof *extension));
        }
    return result;
}

/* --- one lookup --- */

static void
search_free(gpointer data)
{
    Search *search = data;

    g_free(search->name);
    g_ptr_array_unref(search->stores);
    g_string_free(search->looked, TRUE);
    g_clear_object(&search->current);
    if (search->deadline != NULL) {
        g_source_destroy(search->deadline);
        g_source_unref(search->deadline);
    }
    g_free(search);
}

/* @credential: (nullable): of a store, or only in memory. What ends soon is renewed where somebody can. */
static void
found(GTask *task, const EbCredential *credential)
{
    EbCredentials *self = g_task_get_source_object(task);
    const Search *search = g_task_get_task_data(task);
    const EbCredential *held = eb_renewals_peek(self->renewals, search->name);
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;

    /* A newer one that could not be stored. */
    if (held != NULL && (credential == NULL || held->expires_unix > credential->expires_unix))
        credential = held;
    if (eb_renewals_knows(self->renewals, search->name) &&
        (credential == NULL || eb_renewal_is_due(credential->expires_unix, now))) {
        eb_renewals_join(self->renewals, search->name, credential, search->stores, g_object_ref(task));
        return;
    }
    if (eb_renewal_is_over(credential->expires_unix, now)) {
        g_autoptr(GDateTime) when = g_date_time_new_from_unix_utc(credential->expires_unix);
        g_autofree char *text = when != NULL ? g_date_time_format_iso8601(when) : g_strdup("long ago");
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAUTHENTICATED, "credential.expired",
                                               "credential \"%s\" in %s expired at %s (errand-box creds set %s)",
                                               search->name, credential->source, text, search->name));
        return;
    }
    if (g_hash_table_contains(self->kept, search->name))
        g_hash_table_replace(self->kept, g_strdup(search->name), eb_secret_ref(credential->secret));
    g_task_return_pointer(task, eb_secret_ref(credential->secret), (GDestroyNotify)eb_secret_unref);
}

static void
not_found(GTask *task)
{
    EbCredentials *self = g_task_get_source_object(task);
    Search *search = g_task_get_task_data(task);
    EbSecret *kept = g_hash_table_lookup(self->kept, search->name);

    if (eb_renewals_knows(self->renewals, search->name)) {
        found(task, eb_renewals_peek(self->renewals, search->name));
        return;
    }
    if (kept != NULL && search->closed) {
        g_task_return_pointer(task, eb_secret_ref(kept), (GDestroyNotify)eb_secret_unref);
        return;
    }
    /* Every store was asked: somebody removed it, and counts on that. */
    g_hash_table_remove(self->kept, search->name);
    if (search->looked->len == 0)
        g_string_append(search->looked, "no credential store is loaded");
    g_task_return_error(task, eb_error_new(EB_ERROR_UNAUTHENTICATED, "credential.missing",
                                           "credential \"%s\" was not found: %s (errand-box creds set %s)",
                                           search->name, search->looked->str, search->name));
}

static gboolean
store_late(gpointer user_data)
{
    Search *search = user_data;

    search->late = TRUE;
    g_cancellable_cancel(search->current);
    return G_SOURCE_REMOVE;
}

static void
clear_deadline(Search *search, GCancellable *outer)
{
    g_source_destroy(search->deadline);
    g_clear_pointer(&search->deadline, g_source_unref);
    if (search->cancelled != 0)
        g_cancellable_disconnect(outer, search->cancelled);
    search->cancelled = 0;
    g_clear_object(&search->current);
}

static void
store_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Search *search = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(EbCredential) credential = eb_credential_store_lookup_finish(EB_CREDENTIAL_STORE(source), result, &error);
    gboolean late = search->late;

    clear_deadline(search, g_task_get_cancellable(task));
    if (credential != NULL) {
        eb_log_mask_add(credential->secret);
        eb_redact_add_configured(credential->secret);
        found(task, credential);
    } else if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        g_string_append_printf(search->looked, "%s%s", search->looked->len > 0 ? "; " : "", error->message);
        search->closed = search->closed || g_strcmp0(eb_error_get_reason(error), CLOSED) == 0;
        g_error_free(error);
        ask_next(g_steal_pointer(&task));
    } else if (late) {
        g_autofree char *where = eb_credential_store_describe(EB_CREDENTIAL_STORE(source));
        g_error_free(error);
        g_task_return_error(task, eb_error_new(EB_ERROR_TIMEOUT, "credential.late", "%s did not answer within %d s",
                                               where, EB_CREDENTIALS_DEADLINE_MS / 1000));
    } else {
        eb_error_convert(&error, "credential.store", NULL);
        g_task_return_error(task, error);
    }
}

static void
pass_cancel(GCancellable *outer, gpointer user_data)
{
    g_cancellable_cancel(user_data);
}

/* @task: (transfer full) */
static void
ask_next(GTask *task)
{
    Search *search = g_task_get_task_data(task);
    GCancellable *outer = g_task_get_cancellable(task);

    if (search->next >= search->stores->len) {
        not_found(task);
        g_object_unref(task);
        return;
    }
    search->current = g_cancellable_new();
    if (outer != NULL)
        search->cancelled =
            g_cancellable_connect(outer, G_CALLBACK(pass_cancel), g_object_ref(search->current), g_object_unref);
    search->deadline = g_timeout_source_new(EB_CREDENTIALS_DEADLINE_MS);
    g_source_set_callback(search->deadline, store_late, search, NULL);
    g_source_attach(search->deadline, g_task_get_context(task));
    eb_credential_store_lookup_async(search->stores->pdata[search->next++], search->name, search->current,
                                     store_answered, task);
}

void
eb_credentials_lookup_async(EbCredentials *self, const char *name, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIALS(self) && name != NULL);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    Search *search = g_new0(Search, 1);
    g_autoptr(GPtrArray) stores = eb_credentials_get_stores(self);

    g_task_set_source_tag(task, eb_credentials_lookup_async);
    search->name = g_strdup(name);
    search->looked = g_string_new(NULL);
    search->stores = g_ptr_array_new_with_free_func(g_object_unref);
    for (guint i = 0; i < stores->len; i++)
        g_ptr_array_add(search->stores, g_object_ref(((const EbExtension *)stores->pdata[i])->object));
    g_task_set_task_data(task, search, search_free);
    ask_next(task);
}

EbSecret *
eb_credentials_lookup_finish(EbCredentials *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- keeping --- */

typedef struct {
    char **names;
    guint next;
} Keep;

static void
keep_free(gpointer data)
{
    Keep *keep = data;

    g_strfreev(keep->names);
    g_free(keep);
}

static void keep_next(GTask *task);

static void
kept_one(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbCredentials *self = EB_CREDENTIALS(source);
    g_autoptr(GTask) task = user_data;
    Keep *keep = g_task_get_task_data(task);
    GError *error = NULL;
    EbSecret *secret = eb_credentials_lookup_finish(self, result, &error);

    if (secret != NULL && g_hash_table_size(self->kept) < EB_CREDENTIALS_MAX_KEPT) {
        g_hash_table_replace(self->kept, g_strdup(keep->names[keep->next - 1]), secret);
    } else if (secret != NULL) {
        eb_secret_unref(secret);
    } else if (!g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED)) {
        g_task_return_error(task, error);
        return;
    }
    g_clear_error(&error);
    keep_next(g_steal_pointer(&task));
}

/* @task: (transfer full) */
static void
keep_next(GTask *task)
{
    EbCredentials *self = g_task_get_source_object(task);
    Keep *keep = g_task_get_task_data(task);
    const char *name = keep->names[keep->next];

    if (name == NULL) {
        g_task_return_boolean(task, TRUE);
        g_object_unref(task);
        return;
    }
    keep->next++;
    eb_credentials_lookup_async(self, name, g_task_get_cancellable(task), kept_one, task);
}

void
eb_credentials_keep_async(EbCredentials *self, const char *const *names, GCancellable *cancellable,
                          GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIALS(self) && names != NULL);
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    Keep *keep = g_new0(Keep, 1);

    g_task_set_source_tag(task, eb_credentials_keep_async);
    keep->names = g_strdupv((char **)names);
    g_task_set_task_data(task, keep, keep_free);
    keep_next(task);
}

gboolean
eb_credentials_keep_finish(EbCredentials *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
