/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_HEALTH_MAX_CHECKS: rows of one report; as many as a run of the doctor has at most. */
#define EB_HEALTH_MAX_CHECKS 256
/** EB_HEALTH_MAX_TEXT: bytes of what a check says; longer texts are cut. */
#define EB_HEALTH_MAX_TEXT 400
/** EB_HEALTH_CLEAN_RUNS: what runs out slowly goes up and down around its limit: it must be good so often in a row. */
#define EB_HEALTH_CLEAN_RUNS 2

/**
 * EbHealthRules: what the reports of `errand-box doctor --json` mean for the service. Pure: no time, no process, no chat.
 *
 * A check whose status is FAIL, or DEGRADED with an id that the operator has not accepted, holds new sessions. Rows say
 * themselves when that is otherwise: "hold" is "degraded" (so it is without it), "fail" (degraded is a warning) or
 * "never" (the service watches that itself). "watch": it changes by itself and is asked for often.
 *
 * What was good and is not any more is a suspect first: a host that is busy makes checks fail that only took too long.
 * It holds when the next report says so too.
 */
typedef struct _EbHealthRules EbHealthRules;
/** eb_health_rules_new: @accepted: (array zero-terminated=1) (nullable): ids */
EbHealthRules *eb_health_rules_new(const char *const *accepted);
void eb_health_rules_free(EbHealthRules *self);

/**
 * eb_health_rules_take: a report.
 * @whole: of all checks: what it does not name is gone; otherwise that stays as it was known
 * @now_ms: real time
 *
 * Returns: FALSE with EB_ERROR_PROTOCOL "health.report": it is none, and nothing was taken
 */
gboolean eb_health_rules_take(EbHealthRules *self, JsonNode *report, gboolean whole, gint64 now_ms, GError **error);
/**
 * eb_health_rules_note_failure: the doctor itself did not work; what was known before stays. Until it has worked once,
 * this holds new sessions.
 * @why: (nullable): NULL = it works
 *
 * Returns: TRUE when that is news
 */
gboolean eb_health_rules_note_failure(EbHealthRules *self, const GError *why);

/**
 * eb_health_rules_gate: may the service start here?
 * @probe: (nullable): what the backend says by itself; an id that a check named is not named again
 * @config_file: where accept_degraded stands
 *
 * Returns: FALSE with EB_ERROR_DEGRADED "health.degraded": every id, its title, and the line for the configuration
 */
gboolean eb_health_rules_gate(const EbHealthRules *self, const EbProbeReport *probe, const char *config_file,
                              GError **error);
/** eb_health_rules_hold: (transfer full) (nullable): why no session may start; NULL = nothing is against it. */
GError *eb_health_rules_hold(const EbHealthRules *self);
/** eb_health_rules_warn: (transfer full) (nullable): what has begun to run out and was not yet told of. */
char *eb_health_rules_warn(EbHealthRules *self);
/** eb_health_rules_watched: (transfer full) (array zero-terminated=1): ids to ask for often, and those that hold. */
char **eb_health_rules_watched(const EbHealthRules *self);
/** eb_health_rules_suspects: (transfer full) (array zero-terminated=1): ids that are to be asked for once more, soon. */
char **eb_health_rules_suspects(const EbHealthRules *self);
/** eb_health_rules_to_json: (transfer full): [{id,title,status,observed,remedy,accepted,holds,since}] of all not ok. */
JsonArray *eb_health_rules_to_json(const EbHealthRules *self);
/** eb_health_rules_get_failure: (nullable): why the doctor did not work the last time. */
const char *eb_health_rules_get_failure(const EbHealthRules *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbHealthRules, eb_health_rules_free)

G_END_DECLS
