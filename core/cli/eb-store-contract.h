/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbStoreContract: runs a credential store through what eb-credential-store.h promises. It puts and removes credentials of
 * its own ("eb-contract-..."), and looks at others by their names alone.
 */

/** EB_CONTRACT_DEADLINE_MS: what one call may take before it counts as hanging. */
#define EB_CONTRACT_DEADLINE_MS 20000

/** EbContractOpen: (transfer full) (nullable): another object on the same place, as the service has after a restart. */
typedef EbCredentialStore *(*EbContractOpen)(gpointer user_data, GError **error);

/** EbContractReport: one case is over. @problem: (nullable): what is wrong; @skipped: (nullable): why it does not apply */
typedef void (*EbContractReport)(const char *name, const char *problem, const char *skipped, gpointer user_data);

/**
 * eb_store_contract_run: iterates the default main context while it waits: for a program that does nothing else.
 * @report: called for each case, in order
 *
 * Returns: number of cases with a problem.
 */
guint eb_store_contract_run(EbContractOpen open, EbContractReport report, gpointer user_data);
/** eb_store_contract_count: how many cases there are. */
guint eb_store_contract_count(void);

G_END_DECLS
