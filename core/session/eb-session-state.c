/* SPDX-License-Identifier: MIT */
#include "core/session/eb-session-state.h"

#define NONE (-1)

/* [state][event] */
static const gint8 table[5][5] = {
    [EB_SESSION_STARTING] = {EB_SESSION_READY, NONE, NONE, NONE, EB_SESSION_ENDED},
    [EB_SESSION_READY] = {NONE, EB_SESSION_WORKING, NONE, EB_SESSION_IDLE, EB_SESSION_ENDED},
    [EB_SESSION_WORKING] = {NONE, NONE, EB_SESSION_READY, NONE, EB_SESSION_ENDED},
    [EB_SESSION_IDLE] = {NONE, EB_SESSION_WORKING, NONE, NONE, EB_SESSION_ENDED},
    [EB_SESSION_ENDED] = {NONE, NONE, NONE, NONE, NONE},
};

gboolean
eb_session_state_next(EbSessionState state, EbSessionEvent event, EbSessionState *next)
{
    if ((guint)state >= G_N_ELEMENTS(table) || (guint)event >= G_N_ELEMENTS(table[0]))
        return FALSE;
    gint8 found = table[state][event];
    if (found == NONE)
        return FALSE;
    *next = (EbSessionState)found;
    return TRUE;
}

const char *
eb_session_state_to_string(EbSessionState state)
{
    static const char *const names[] = {"starting", "ready", "working", "idle", "ended"};
    return (guint)state < G_N_ELEMENTS(names) ? names[state] : "ended";
}
