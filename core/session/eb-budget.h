/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config.h"
#include "core/state/eb-usage-store.h"

G_BEGIN_DECLS

/** EbBudgetUse: whose request it is. */
typedef struct {
    const char *session;
    guint turn;
    const char *person; /* (nullable): who asked for the turn */
    const char *provider;
    const char *model; /* (nullable): as far as it is known */
} EbBudgetUse;

/** EbBudgetDenial: what a request did not fit into. */
typedef struct {
    EbBudgetScope scope;
    gboolean money;     /* of its two caps the one on money */
    gboolean temporary; /* it fits once others gave back what is set aside for them */
    gboolean gains;     /* more of it fits then, if not all */
} EbBudgetDenial;

/** EbBudgetCount: what a request used; cached and written tokens are part of in. */
typedef struct {
    guint64 in, out, cached, written;
    gboolean estimated;
} EbBudgetCount;

/**
 * EbBudget: the one ledger of what all sessions use, and of what is set aside for requests under way. No I/O: it is given
 * what was used before and the time, and tells what is to be written down. As every request, of whichever session, is
 * set aside here before it goes up, requests at one time cannot exceed a cap together.
 */
typedef struct _EbBudget EbBudget;

/** eb_budget_new: @config, @providers (element-type EbProviderConfig): outlive it */
EbBudget *eb_budget_new(const EbBudgetConfig *config, GPtrArray *providers);
/** eb_budget_set_config: other caps and prices, from the next request on; what was used and set aside stays. As eb_budget_new(). */
void eb_budget_set_config(EbBudget *self, const EbBudgetConfig *config, GPtrArray *providers);
void eb_budget_free(EbBudget *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbBudget, eb_budget_free)
/** eb_budget_is_capped: FALSE: nothing is set aside, only counted. */
gboolean eb_budget_is_capped(const EbBudgetConfig *config);
/** eb_budget_caps_money: is there a cap on money? */
gboolean eb_budget_caps_money(const EbBudgetConfig *config);
/** eb_budget_day: the day of a time in milliseconds since the epoch, UTC. */
gint64 eb_budget_day(gint64 now_ms);
/** eb_budget_add_past: a sum of earlier runs. */
void eb_budget_add_past(EbBudget *self, const EbUsageRow *row);

/**
 * eb_budget_reserve: sets aside @in tokens and up to @out more for a request.
 * @whole: all of it or nothing; FALSE: what is left will do
 * @denial: (out): set with 0
 * @row: (out) (transfer full) (nullable): what to write down before the request goes up
 *
 * Returns: tokens granted, those of @in included; 0 = none
 */
guint64 eb_budget_reserve(EbBudget *self, const EbBudgetUse *use, guint64 in, guint64 out, gboolean whole,
                          gint64 now_ms, EbBudgetDenial *denial, EbUsageRow **row);
/** eb_budget_extend: up to @tokens more for request @hold; 0 = there is no more. As eb_budget_reserve(). */
guint64 eb_budget_extend(EbBudget *self, gint64 hold, guint64 tokens, gboolean whole, EbBudgetDenial *denial,
                         EbUsageRow **row);
/**
 * eb_budget_settle: (transfer full): what to write down of a request that is over.
 * @hold: 0 = nothing was set aside for it; @use: then; @model: (nullable): as the answer says
 */
EbUsageRow *eb_budget_settle(EbBudget *self, gint64 hold, const EbBudgetUse *use, const char *model,
                             const EbBudgetCount *count, gint64 now_ms);
/** eb_budget_lacks_price: money is capped, and @model of @provider has no price: it counts as the dearest. */
gboolean eb_budget_lacks_price(EbBudget *self, const char *provider, const char *model);
/** eb_budget_forfeit: (transfer full) (nullable): nobody will tell what request @hold used: all that was set aside. */
EbUsageRow *eb_budget_forfeit(EbBudget *self, gint64 hold);

/** EbBudgetState: how a cap stands that stopped a request. */
typedef enum {
    EB_BUDGET_USED_UP,
    EB_BUDGET_TOO_LITTLE, /* what is left is less than a request needs */
    EB_BUDGET_SET_ASIDE,  /* what is left is set aside for others */
} EbBudgetState;
EbBudgetState eb_budget_judge(EbBudget *self, const EbBudgetDenial *denial, const EbBudgetUse *use);
/** eb_budget_describe: (transfer full): which cap stopped a request, and what to do: for people */
char *eb_budget_describe(EbBudget *self, const EbBudgetDenial *denial, const EbBudgetUse *use, gint64 now_ms);
/** eb_budget_to_json: (transfer full): {currency, turn?, session?, person?, day: {tokens, money, max_tokens, max_money,
 *  held_tokens}}. @use: (nullable): NULL = the day alone */
JsonObject *eb_budget_to_json(EbBudget *self, const EbBudgetUse *use, gint64 now_ms);

/** eb_budget_json_to_text: (transfer full): one line of it for people: "this session 1200 of 5000 tokens; ..." */
char *eb_budget_json_to_text(JsonObject *object);

G_END_DECLS
