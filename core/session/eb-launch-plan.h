/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-guest.h"
#include "core/session/eb-session-env.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/** EbLaunchPlan: what a session will run, decided before anything is touched. */
typedef struct {
    EbAgentProfile *profile;
    const EbProviderConfig *provider; /* (nullable) (transfer none): of the config */
    const char *dialect;              /* (nullable) (transfer none) */
    char *model;                      /* (nullable) */
    gboolean provider_named;          /* somebody chose it: there is no other */
    gboolean model_named;             /* somebody chose it: providers of other kinds have no such model */
} EbLaunchPlan;
void eb_launch_plan_free(EbLaunchPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbLaunchPlan, eb_launch_plan_free)

/**
 * eb_launch_plan_new: pure. @agent, @model, @provider: (nullable): defaults of the config.
 *
 * Refuses unknown agents, an agent and a provider that do not speak the same way, and limits below the agent's floor.
 */
EbLaunchPlan *eb_launch_plan_new(EbConfig *config, const char *agent, const char *model, const char *provider,
                                 GError **error);
/**
 * eb_launch_plan_next_provider: the one chosen cannot be routed: takes the next configured one that this agent can use
 * instead, with the same model. FALSE: there is none, and nothing is changed.
 */
gboolean eb_launch_plan_next_provider(EbLaunchPlan *self, EbConfig *config);
/** eb_launch_plan_spec: (transfer full): the instance. */
EbContainerSpec *eb_launch_plan_spec(EbGuest *guest);
/** eb_launch_plan_exec: (transfer full) (nullable): the launcher with the agent's command. */
EbExecSpec *eb_launch_plan_exec(const EbLaunchPlan *self, EbConfig *config, GError **error);
/** eb_launch_plan_rules: (transfer full): what the broker lets through. @key, @nonce: (nullable) */
EbBrokerRules *eb_launch_plan_rules(const EbLaunchPlan *self, EbConfig *config, const char *session, EbSecret *key,
                                    EbSecret *nonce);
/** eb_launch_plan_env: fills the description of the launcher's block; borrows from @self and @nonce. */
EbSessionEnv eb_launch_plan_env(const EbLaunchPlan *self, EbConfig *config, EbSecret *nonce);

G_END_DECLS
