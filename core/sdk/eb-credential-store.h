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
    gint64
        changed_unix; /* since ABI 1.3: seconds, when the value was last set, as far as the store knows; 0 = unknown */
};
/** eb_credential_new: (transfer full): @secret: (transfer none): referenced; changed_unix is 0 and may be set. */
EB_API EbCredential *eb_credential_new(EbSecret *secret, gint64 expires_unix, const char *source);
EB_API void eb_credential_free(EbCredential *self);

/**
 * EbCredentialStore: holds secrets by name ([a-z][a-z0-9-]{0,62}).
 *
 * Signals: "changed" (const char *name (nullable)): a value may be new; NULL = any. From the thread of the main loop.
 *
 * errand-box-store-test runs a store through what is promised here.
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

    /* Since ABI 1.3. */
    void (*put_credential_async)(EbCredentialStore *self, const char *name, const EbCredential *credential,
                                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*put_credential_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);
    void (*rekey_async)(EbCredentialStore *self, EbSecret *previous, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*rekey_finish)(EbCredentialStore *self, GAsyncResult *result, GError **error);
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

/**
 * eb_credential_store_put_credential_async: as eb_credential_store_put_async(), with an expiry. When it ends with success
 * the value is on the disk: whoever renews a credential may give the old one up then.
 * @credential: (transfer none): secret and expires_unix are kept
 *
 * EB_ERROR_NOT_SUPPORTED from stores that keep no expiry, when there is one. Since ABI 1.3.
 */
EB_API void eb_credential_store_put_credential_async(EbCredentialStore *self, const char *name,
                                                     const EbCredential *credential, GCancellable *cancellable,
                                                     GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_credential_store_put_credential_finish(EbCredentialStore *self, GAsyncResult *result,
                                                          GError **error);
/**
 * eb_credential_store_rekey_async: for a store that locks its values up: makes them anew under the key its configuration
 * names now. Where it has no key at all yet, it makes one, if it can.
 * @previous: (nullable) (transfer none): what opened it until now; NULL = only make sure that there is a key
 *
 * EB_ERROR_NOT_SUPPORTED from stores without a key. Since ABI 1.3.
 */
EB_API void eb_credential_store_rekey_async(EbCredentialStore *self, EbSecret *previous, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_credential_store_rekey_finish(EbCredentialStore *self, GAsyncResult *result, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbCredential, eb_credential_free)

G_END_DECLS
