/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_RENEWAL_EARLY_S: seconds before its end that a credential is renewed: a turn that begins with it should not outlive it
 *  by much; shorter-lived ones are renewed at half their time by whoever makes them (tokens for an hour are usual). */
#define EB_RENEWAL_EARLY_S 120
/** EB_RENEWAL_DEADLINE_MS: what a renewal may take; then those that wait get what there is, or the error. */
#define EB_RENEWAL_DEADLINE_MS 30000
/** EB_RENEWAL_PAUSE_S: seconds after a failure in which nobody asks again. */
#define EB_RENEWAL_PAUSE_S 5
/** EB_RENEWAL_MAX: names with a renewer. */
#define EB_RENEWAL_MAX 64
/** EB_RENEWAL_MAX_WAITING: lookups that wait for one renewal. */
#define EB_RENEWAL_MAX_WAITING 256

/**
 * EbCredentialRenew: gets a new value for credential @name.
 * @old: (nullable): the one so far; a token that is exchanged for the next is used up by this
 * @task: (transfer full): return an EbCredential with eb_credential_free, or an error; in the main loop's thread. Its
 *     cancellable is cancelled at the deadline; a value that comes later is kept all the same.
 */
typedef void (*EbCredentialRenew)(const char *name, EbSecret *old, GTask *task, gpointer user_data);

/** eb_renewal_is_due, eb_renewal_is_over: @expires, @now: unix seconds; 0 = never */
gboolean eb_renewal_is_due(gint64 expires, gint64 now);
gboolean eb_renewal_is_over(gint64 expires, gint64 now);

/**
 * EbRenewals: one renewal of a credential at a time, whoever asks meanwhile waits for it. The new value is in its store
 * before anybody gets it; where no store takes it, it is kept in memory.
 */
#define EB_TYPE_RENEWALS (eb_renewals_get_type())
G_DECLARE_FINAL_TYPE(EbRenewals, eb_renewals, EB, RENEWALS, GObject)

EbRenewals *eb_renewals_new(void);
/** eb_renewals_set: @renew: (nullable): NULL takes it back. FALSE when there are EB_RENEWAL_MAX already. */
gboolean eb_renewals_set(EbRenewals *self, const char *name, EbCredentialRenew renew, gpointer user_data,
                         GDestroyNotify destroy);
gboolean eb_renewals_knows(EbRenewals *self, const char *name);
/** eb_renewals_peek: (transfer none) (nullable): the value that no store took. */
const EbCredential *eb_renewals_peek(EbRenewals *self, const char *name);
/**
 * eb_renewals_join: begins a renewal, or waits for the one under way.
 * @old: (nullable) (transfer none): what was found
 * @stores: (element-type EbCredentialStore): where the new one goes: the first that takes it
 * @waiter: (transfer full): gets an EbSecret: the new one, or @old when that fails and @old is not over yet
 */
void eb_renewals_join(EbRenewals *self, const char *name, const EbCredential *old, GPtrArray *stores, GTask *waiter);

G_END_DECLS
