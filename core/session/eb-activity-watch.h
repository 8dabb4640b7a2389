/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_ACTIVITY_SILENT_MS: an agent silent for so long in a turn is mentioned, then after twice that, and so on. */
#define EB_ACTIVITY_SILENT_MS 30000

/**
 * EbActivityWatch: looks at an agent while a turn runs. Agents whose provider is gone, or that hang at their memory limit
 * without an OOM kill, say nothing at all; people must hear of it from us.
 *
 * Signals: "silent" (guint seconds); "stalled" (guint64 limit_bytes): silent, and the memory limit is reached.
 */
#define EB_TYPE_ACTIVITY_WATCH (eb_activity_watch_get_type())
G_DECLARE_FINAL_TYPE(EbActivityWatch, eb_activity_watch, EB, ACTIVITY_WATCH, GObject)

/** eb_activity_watch_new: @silent_ms: EB_ACTIVITY_SILENT_MS outside tests */
EbActivityWatch *eb_activity_watch_new(EbAcpClient *client, EbContainerBackend *backend, const char *instance,
                                       guint silent_ms);
void eb_activity_watch_start(EbActivityWatch *self);
void eb_activity_watch_stop(EbActivityWatch *self);
/** eb_activity_watch_pause: while a person is asked the agent has every reason to be silent. Calls are counted. */
void eb_activity_watch_pause(EbActivityWatch *self, gboolean pause);

G_END_DECLS
