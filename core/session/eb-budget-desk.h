/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-budget.h"

G_BEGIN_DECLS

/** EB_BUDGET_MAX_OPEN: requests of one broker that something is set aside for; it has no more connections. */
#define EB_BUDGET_MAX_OPEN 4096
/** EB_BUDGET_MAX_MODELS: models of one broker's session with rows of their own. */
#define EB_BUDGET_MAX_MODELS 64

/**
 * EbBudgetDesk: the ledger with its hands: brokers ask it, it writes down before it grants, and what a broker that died had
 * open counts as used.
 *
 * Signal "exhausted" (const char *session, const char *text): a cap stopped a request; once a session and cap.
 */
#define EB_TYPE_BUDGET_DESK (eb_budget_desk_get_type())
G_DECLARE_FINAL_TYPE(EbBudgetDesk, eb_budget_desk, EB, BUDGET_DESK, GObject)

typedef struct _EbBudgetClient EbBudgetClient;

EbBudgetDesk *eb_budget_desk_new(EbStore *store, EbConfig *config);
/** eb_budget_desk_load_async: what earlier runs used; before anybody asks. */
void eb_budget_desk_load_async(EbBudgetDesk *self, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_budget_desk_load_finish(EbBudgetDesk *self, GAsyncResult *result, GError **error);

/** EB_BUDGET_HOLD_MS: how long a request waits for others to give back what they hold; its broker waits two seconds longer. */
#define EB_BUDGET_HOLD_MS 8000
/** EB_BUDGET_MAX_WAITS, EB_BUDGET_MAX_OWN_WAITS: requests that wait so, of all brokers and of one. */
#define EB_BUDGET_MAX_WAITS 512
#define EB_BUDGET_MAX_OWN_WAITS 64

/**
 * eb_budget_desk_take_config: other caps and prices while sessions run. FALSE: brokers that run do not ask, as there were no
 * caps when they were started: EB_ERROR_CONFIG "budget.restart"
 */
gboolean eb_budget_desk_take_config(EbBudgetDesk *self, EbConfig *config, GError **error);

/** eb_budget_desk_lacks_price: see eb_budget_lacks_price() */
gboolean eb_budget_desk_lacks_price(EbBudgetDesk *self, const char *provider, const char *model);

/** eb_budget_desk_serve: (transfer none): answers @broker from now on; what it returns lives as long as that. */
EbBudgetClient *eb_budget_desk_serve(EbBudgetDesk *self, GObject *broker, const char *session);
/** eb_budget_client_set_turn: whose turn what it asks for belongs to from now on. @person: (nullable) */
void eb_budget_client_set_turn(EbBudgetClient *self, guint turn, const char *person);

/** eb_budget_desk_to_json: (transfer full): see eb_budget_to_json(). @session: (nullable): the day alone */
JsonObject *eb_budget_desk_to_json(EbBudgetDesk *self, const char *session, guint turn, const char *person);

G_END_DECLS
