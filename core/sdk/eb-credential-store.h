/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-secret.h"
#include "eb-types.h"

G_BEGIN_DECLS

/** EbCredential: one answer of a store. */
struct _EbCredential {
    EbSecret *secret;    /* (owned) */
    gint64 expires_unix; /* seconds, 0 = does not expire */
    char *source;        /* where it was found, without the value: "env-file /etc/errand-box/creds.env:3" */
};
EB_API EbCredential *eb_credential_new(EbSecret *secret, gint64 expires_unix, const char *source);
EB_API void eb_credential_free(EbCredential *self);

/**
 * EbCredentialStore: holds secrets by name ([a-z][a-z0-9-]{0,62}).
 *
 * Signals: "changed" (const char *name (nullable)): a value may be new; NULL = any.
 */
#define EB_TYPE_CREDENTIAL_STORE (eb_credential_store_get_type())
EB_API
G_DECLARE_INTERFACE(EbCredentialStore, eb_credential_store, EB, CREDENTIAL_STORE, GObject)

struct _EbCredentialStoreInterface {
    GTypeInterface parent_iface;

    /** describe: (transfer full): where this store looks, for messages: "env-file /etc/errand-box/creds.env". */
    char *(*describe)(EbCredentialStore *self);

    void (*lookup_async)(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);
    EbCredential *(*lookup_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);

    void (*list_async)(EbCredentialStore *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                       gpointer user_data);
    char **(*list_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);

    void (*put_async)(EbCredentialStore *self, const char *name, EbSecret *secret, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*put_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);

    void (*remove_async)(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*remove_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);
};

EB_API char *eb_credential_store_describe(EbCredentialStore *self);
/** eb_credential_store_lookup_async: absence is EB_ERROR_NOT_FOUND, anything else wrong with the store is not. */
EB_API void eb_credential_store_lookup_async(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
/** eb_credential_store_lookup_finish: (transfer full) (nullable) */
EB_API EbCredential *eb_credential_store_lookup_finish(EbCredentialStore *self, GAsyncResult *result, GError **error);
EB_API void eb_credential_store_list_async(EbCredentialStore *self, GCancellable *cancellable,
                                           GAsyncReadyCallback callback, gpointer user_data);
/** eb_credential_store_list_finish: (transfer full) (nullable) (array zero-terminated=1): names */
EB_API char **eb_credential_store_list_finish(EbCredentialStore *self, GAsyncResult *result, GError **error);
/** eb_credential_store_put_async: EB_ERROR_NOT_SUPPORTED from read-only stores. */
EB_API void eb_credential_store_put_async(EbCredentialStore *self, const char *name, EbSecret *secret,
                                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_credential_store_put_finish(EbCredentialStore *self, GAsyncResult *result, GError **error);
EB_API void eb_credential_store_remove_async(EbCredentialStore *self, const char *name, GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_credential_store_remove_finish(EbCredentialStore *self, GAsyncResult *result, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCredential, eb_credential_free)

G_END_DECLS
