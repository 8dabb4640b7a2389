/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/watchdog/eb-watchdog-rules.h"

G_BEGIN_DECLS

/** EbWatchdogView: what the watchdog shows: to people, to the service, to `status`. Made of values, without I/O. */
typedef struct {
    const EbWatchdogRules *rules;
    gint64 now_us;              /* monotonic */
    const char *process_detail; /* (nullable): of the service's process */
    const char *backend_detail; /* (nullable): what the backend said */
    const char *remedy;         /* (nullable): what to type when the backend is ill */
    guint guests_ended;
    guint services_ended;
    const char *last_error; /* (nullable): of something the watchdog wanted to do */
    gboolean once;          /* one look: nothing is done about what it sees */
} EbWatchdogView;

/** eb_watchdog_view_service: (transfer full): one line: how the service is, and what to do about it. */
char *eb_watchdog_view_service(const EbWatchdogView *self);
/** eb_watchdog_view_backend: (transfer full): the same of the container backend. */
char *eb_watchdog_view_backend(const EbWatchdogView *self);
/**
 * eb_watchdog_view_json: (transfer full): what stands in watchdog.json.
 * @at: wall clock, for people
 */
JsonNode *eb_watchdog_view_json(const EbWatchdogView *self, GDateTime *at);
/** eb_watchdog_view_report: (transfer full): params of "watchdog.report"; @target: [session] backend */
JsonNode *eb_watchdog_view_report(const EbWatchdogView *self, const char *target);

G_END_DECLS
