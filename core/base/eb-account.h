/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbAccount: an account of this host. */
typedef struct {
    char *name;
    guint32 uid;
    guint32 gid;
    char *home;
} EbAccount;
void eb_account_free(EbAccount *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAccount, eb_account_free)

/** eb_account_find: (transfer full) (nullable): EB_ERROR_CONFIG "account.missing" when there is none. Blocks. */
EbAccount *eb_account_find(const char *name, GError **error);

/**
 * eb_account_check_caller: may this process do the account's work? Root (it will become the account) and the account
 * itself may, anybody else is EB_ERROR_DENIED, which says how to run it.
 */
gboolean eb_account_check_caller(const EbAccount *self, GError **error);

/**
 * eb_account_become: gives up root for good: groups, ids, capabilities, HOME; umask 077, "/" as directory, no new
 * privileges. For a process that is the account already only the last three. All threads change.
 */
gboolean eb_account_become(const EbAccount *self, GError **error);

/** eb_account_protect_process: no core dumps, and no other process of the account may look into this one. */
gboolean eb_account_protect_process(GError **error);

G_END_DECLS
