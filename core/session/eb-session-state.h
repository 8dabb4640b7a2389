/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EbSessionState: starting -> ready <-> working -> idle -> ended. */
typedef enum {
    EB_SESSION_STARTING = 0, /* guest and agent are being prepared */
    EB_SESSION_READY = 1,    /* the agent waits for a prompt */
    EB_SESSION_WORKING = 2,  /* a turn runs; it ends by the answer to its prompt alone */
    EB_SESSION_IDLE = 3,     /* nothing was said for a while; the guest is still there */
    EB_SESSION_ENDED = 4,
} EbSessionState;

typedef enum {
    EB_SESSION_EVENT_OPENED = 0,   /* the agent's session is open */
    EB_SESSION_EVENT_PROMPTED = 1, /* a prompt was sent */
    EB_SESSION_EVENT_SETTLED = 2,  /* its answer came */
    EB_SESSION_EVENT_RESTED = 3,   /* nothing happened for the resting time */
    EB_SESSION_EVENT_ENDED = 4,    /* for any reason */
} EbSessionEvent;

/** eb_session_state_next: FALSE when @event cannot happen in @state; then @next is not touched. */
gboolean eb_session_state_next(EbSessionState state, EbSessionEvent event, EbSessionState *next);
/** eb_session_state_to_string: as in `sessions list --json`. */
const char *eb_session_state_to_string(EbSessionState state);

G_END_DECLS
