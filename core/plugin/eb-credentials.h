/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/plugin/eb-credential-renewal.h"
#include "core/plugin/eb-plugin-registry.h"

G_BEGIN_DECLS

/** EB_CREDENTIALS_MAX_KEPT: values kept in memory by eb_credentials_keep_async(). */
#define EB_CREDENTIALS_MAX_KEPT 128
/** EB_CREDENTIALS_DEADLINE_MS: what one store may take for one answer. */
#define EB_CREDENTIALS_DEADLINE_MS 10000

/**
 * EbCredentials: resolves credential names through the registry's stores, in the configured order.
 *
 * A store that is named and not loaded is passed over. Absence (EB_ERROR_NOT_FOUND) leads to the next store; any other
 * failure of a store ends the search, since the next one may hold an older value. What is found is registered with the
 * log's mask.
 *
 * Signals: "changed" (const char *name (nullable)): a store says that a value may be new.
 */
#define EB_TYPE_CREDENTIALS (eb_credentials_get_type())
G_DECLARE_FINAL_TYPE(EbCredentials, eb_credentials, EB, CREDENTIALS, GObject)

/**
 * eb_credentials_new: (transfer full): also becomes what the plugins' own lookups go through, and what
 * eb_credentials_from_registry() gives as long as @registry lives.
 * @order: (array zero-terminated=1): names of stores
 */
EbCredentials *eb_credentials_new(EbPluginRegistry *registry, const char *const *order);
/** eb_credentials_from_registry: (transfer none) (nullable) */
EbCredentials *eb_credentials_from_registry(EbPluginRegistry *registry);

/**
 * eb_credentials_lookup_async: missing everywhere is EB_ERROR_UNAUTHENTICATED, reason "credential.missing", with the
 * places looked at and what to do. What ends within EB_RENEWAL_EARLY_S is renewed first, where there is a renewer; without
 * one, what has ended is EB_ERROR_UNAUTHENTICATED "credential.expired".
 */
void eb_credentials_lookup_async(EbCredentials *self, const char *name, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** eb_credentials_lookup_finish: (transfer full) (nullable) */
EbSecret *eb_credentials_lookup_finish(EbCredentials *self, GAsyncResult *result, GError **error);

/**
 * eb_credentials_set_renewer: @renew makes new values for credential @name from now on, also when no store has any; see
 * eb_renewals_set(). Whoever looks it up while it is being renewed waits, so that a token that is exchanged for the next
 * one is exchanged once.
 */
gboolean eb_credentials_set_renewer(EbCredentials *self, const char *name, EbCredentialRenew renew, gpointer user_data,
                                    GDestroyNotify destroy);

/**
 * eb_credentials_keep_async: looks @names up and keeps what is found, for a program that is about to give up the right
 * to read the stores: a later lookup that finds nothing any more is answered from memory, where a store says that it may
 * not look everywhere ("credentials.unreadable"). What was removed is gone. Names that are missing now are no error here. Called again it takes newer values over, where the stores still give any.
 */
void eb_credentials_keep_async(EbCredentials *self, const char *const *names, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/** eb_credentials_keep_finish: FALSE when a store failed in another way than by not having the value. */
gboolean eb_credentials_keep_finish(EbCredentials *self, GAsyncResult *result, GError **error);

/** eb_credentials_get_stores: (transfer full) (element-type EbExtension): those in use, in order. */
GPtrArray *eb_credentials_get_stores(EbCredentials *self);

G_END_DECLS
