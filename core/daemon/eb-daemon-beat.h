/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-manager.h"

G_BEGIN_DECLS

/**
 * EbDaemonBeat: what the supervisor is told as long as the service's main loop turns: that a long start or a long drain
 * goes on, and, once it is ready, one line of how it is.
 */
typedef struct _EbDaemonBeat EbDaemonBeat;

/** EB_DAEMON_BEAT_MS: between two looks. */
#define EB_DAEMON_BEAT_MS 5000
/** EB_DAEMON_EXTEND_MS: what each beat asks for while starting or draining: six beats may be late. */
#define EB_DAEMON_EXTEND_MS 30000
/** EB_DAEMON_MAX_EXTEND_MS: beyond this a start or a drain is left to the unit's own limits. */
#define EB_DAEMON_MAX_EXTEND_MS (10 * 60 * 1000)

/** eb_daemon_beat_new: a start begins. */
EbDaemonBeat *eb_daemon_beat_new(void);
void eb_daemon_beat_free(EbDaemonBeat *self);
/** eb_daemon_beat_ready: tells "ready", then the line whenever it changes. @manager: not owned, until _stopping. */
void eb_daemon_beat_ready(EbDaemonBeat *self, EbSessionManager *manager);
/** eb_daemon_beat_stopping: a drain begins. */
void eb_daemon_beat_stopping(EbDaemonBeat *self);

/** eb_daemon_beat_text: (transfer full): the line for a status of the manager; @hold: (nullable): why no new sessions. */
char *eb_daemon_beat_text(JsonObject *status, const char *hold);

G_END_DECLS
