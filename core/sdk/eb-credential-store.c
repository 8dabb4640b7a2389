/* SPDX-License-Identifier: MIT */
#include "eb-credential-store.h"

#include "eb-async-private.h"

G_DEFINE_INTERFACE(EbCredentialStore, eb_credential_store, G_TYPE_OBJECT)

static void
default_lookup_async(EbCredentialStore *self, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
                     gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_lookup_async, "look secrets up");
}

static EbCredential *
default_lookup_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_list_async(EbCredentialStore *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_list_async, "list secrets");
}

static char **
default_list_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
default_put_async(EbCredentialStore *self, const char *name, EbSecret *secret, GCancellable *cancellable,
                  GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_put_async, "store secrets");
}

static gboolean
default_put_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
default_remove_async(EbCredentialStore *self, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
                     gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_remove_async, "remove secrets");
}

static gboolean
default_remove_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

/* What has no expiry any store can keep. */
static void
default_put_credential_async(EbCredentialStore *self, const char *name, const EbCredential *credential,
                             GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    if (credential->expires_unix == 0)
        eb_credential_store_put_async(self, name, credential->secret, cancellable, callback, user_data);
    else
        eb_report_not_supported(self, callback, user_data, default_put_credential_async, "keep when a secret expires");
}

static gboolean
default_put_credential_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    if (g_async_result_is_tagged(result, default_put_credential_async))
        return g_task_propagate_boolean(G_TASK(result), error);
    return EB_CREDENTIAL_STORE_GET_IFACE(self)->put_finish(self, result, error);
}

static void
default_rekey_async(EbCredentialStore *self, EbSecret *previous, GCancellable *cancellable,
                    GAsyncReadyCallback callback, gpointer user_data)
{
    eb_report_not_supported(self, callback, user_data, default_rekey_async, "lock secrets up under a key");
}

static gboolean
default_rekey_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static char *
default_describe(EbCredentialStore *self)
{
    return g_strdup(G_OBJECT_TYPE_NAME(self));
}

static void
eb_credential_store_default_init(EbCredentialStoreInterface *iface)
{
    iface->lookup_async = default_lookup_async;
    iface->lookup_finish = default_lookup_finish;
    iface->list_async = default_list_async;
    iface->list_finish = default_list_finish;
    iface->put_async = default_put_async;
    iface->put_finish = default_put_finish;
    iface->remove_async = default_remove_async;
    iface->remove_finish = default_remove_finish;
    iface->describe = default_describe;
    iface->put_credential_async = default_put_credential_async;
    iface->put_credential_finish = default_put_credential_finish;
    iface->rekey_async = default_rekey_async;
    iface->rekey_finish = default_rekey_finish;

    g_signal_new("changed", EB_TYPE_CREDENTIAL_STORE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                 G_TYPE_STRING);
}

EbCredential *
eb_credential_new(EbSecret *secret, gint64 expires_unix, const char *source)
{
    EbCredential *self;

    g_return_val_if_fail(secret != NULL, NULL);
    self = g_new0(EbCredential, 1);
    self->secret = eb_secret_ref(secret);
    self->expires_unix = expires_unix;
    self->source = g_strdup(source != NULL ? source : "");
    return self;
}

void
eb_credential_free(EbCredential *self)
{
    if (self == NULL)
        return;
    eb_secret_unref(self->secret);
    g_free(self->source);
    g_free(self);
}

char *
eb_credential_store_describe(EbCredentialStore *self)
{
    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), NULL);
    return EB_CREDENTIAL_STORE_GET_IFACE(self)->describe(self);
}

void
eb_credential_store_lookup_async(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self) && name != NULL);
    EB_CREDENTIAL_STORE_GET_IFACE(self)->lookup_async(self, name, cancellable, callback, user_data);
}

EbCredential *
eb_credential_store_lookup_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    EbCredential *value;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), NULL);
    value = EB_CREDENTIAL_STORE_GET_IFACE(self)->lookup_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_credential_store_list_async(EbCredentialStore *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self));
    EB_CREDENTIAL_STORE_GET_IFACE(self)->list_async(self, cancellable, callback, user_data);
}

char **
eb_credential_store_list_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    char **value;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), NULL);
    value = EB_CREDENTIAL_STORE_GET_IFACE(self)->list_finish(self, result, error);
    return eb_border_pointer(value, error);
}

void
eb_credential_store_put_async(EbCredentialStore *self, const char *name, EbSecret *secret, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self) && name != NULL && secret != NULL);
    EB_CREDENTIAL_STORE_GET_IFACE(self)->put_async(self, name, secret, cancellable, callback, user_data);
}

gboolean
eb_credential_store_put_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), FALSE);
    done = EB_CREDENTIAL_STORE_GET_IFACE(self)->put_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_credential_store_remove_async(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self) && name != NULL);
    EB_CREDENTIAL_STORE_GET_IFACE(self)->remove_async(self, name, cancellable, callback, user_data);
}

gboolean
eb_credential_store_remove_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), FALSE);
    done = EB_CREDENTIAL_STORE_GET_IFACE(self)->remove_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_credential_store_put_credential_async(EbCredentialStore *self, const char *name, const EbCredential *credential,
                                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self) && name != NULL && credential != NULL && credential->secret != NULL);
    EB_CREDENTIAL_STORE_GET_IFACE(self)->put_credential_async(self, name, credential, cancellable, callback, user_data);
}

gboolean
eb_credential_store_put_credential_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), FALSE);
    done = EB_CREDENTIAL_STORE_GET_IFACE(self)->put_credential_finish(self, result, error);
    return eb_border_boolean(done, error);
}

void
eb_credential_store_rekey_async(EbCredentialStore *self, EbSecret *previous, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CREDENTIAL_STORE(self));
    EB_CREDENTIAL_STORE_GET_IFACE(self)->rekey_async(self, previous, cancellable, callback, user_data);
}

gboolean
eb_credential_store_rekey_finish(EbCredentialStore *self, GAsyncResult *result, GError **error)
{
    gboolean done;

    g_return_val_if_fail(EB_IS_CREDENTIAL_STORE(self), FALSE);
    done = EB_CREDENTIAL_STORE_GET_IFACE(self)->rekey_finish(self, result, error);
    return eb_border_boolean(done, error);
}
