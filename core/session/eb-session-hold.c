/* SPDX-License-Identifier: MIT */
#include "core/session/eb-session-hold.h"

struct _EbSessionHold {
    GError *reasons[EB_N_HOLD_SOURCES]; /* (nullable) */
    gint64 changed_us;                  /* when it was held, or not, for the first time */
    gboolean told;                      /* what the threads believe */
    guint notices;                      /* that may be given at once */
    gint64 refilled_us;                 /* when the last of them came */
};

EbSessionHold *
eb_session_hold_new(void)
{
    EbSessionHold *self = g_new0(EbSessionHold, 1);
    self->notices = EB_HOLD_MAX_NOTICES;
    return self;
}

void
eb_session_hold_free(EbSessionHold *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < EB_N_HOLD_SOURCES; i++)
        g_clear_error(&self->reasons[i]);
    g_free(self);
}

gboolean
eb_session_hold_is_held(const EbSessionHold *self)
{
    for (guint i = 0; i < EB_N_HOLD_SOURCES; i++)
        if (self->reasons[i] != NULL)
            return TRUE;
    return FALSE;
}

gboolean
eb_session_hold_is_told(const EbSessionHold *self)
{
    return self->told;
}

gboolean
eb_session_hold_set(EbSessionHold *self, EbHoldSource source, const GError *why, gint64 now_us)
{
    g_return_val_if_fail((guint)source < EB_N_HOLD_SOURCES, FALSE);
    GError **reason = &self->reasons[source];
    if (why == NULL && *reason == NULL)
        return FALSE;
    gboolean held = eb_session_hold_is_held(self);
    g_autofree char *line = why != NULL ? eb_log_escape(why->message, -1, EB_HOLD_MAX_REASON) : NULL;
    if (why != NULL && *reason != NULL && (*reason)->code == why->code && g_str_equal((*reason)->message, line))
        return FALSE;
    g_clear_error(reason);
    if (why != NULL)
        *reason = eb_error_new((EbErrorCode)why->code, "session.hold", "%s", line);
    if (held != eb_session_hold_is_held(self))
        self->changed_us = now_us;
    return TRUE;
}

char *
eb_session_hold_describe(const EbSessionHold *self)
{
    if (!eb_session_hold_is_held(self))
        return NULL;
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < EB_N_HOLD_SOURCES; i++)
        if (self->reasons[i] != NULL)
            g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", self->reasons[i]->message);
    return g_string_free(text, FALSE);
}

gboolean
eb_session_hold_check(const EbSessionHold *self, GError **error)
{
    g_autofree char *why = eb_session_hold_describe(self);
    for (guint i = 0; i < EB_N_HOLD_SOURCES; i++) {
        if (self->reasons[i] == NULL)
            continue;
        eb_set_error(error, (EbErrorCode)self->reasons[i]->code, "session.hold",
                     "no session can start just now: %s; say it again when that is over", why);
        return FALSE;
    }
    return TRUE;
}

static void
refill(EbSessionHold *self, gint64 now_us)
{
    if (self->notices >= EB_HOLD_MAX_NOTICES)
        return;
    gint64 earned = (now_us - self->refilled_us) / EB_HOLD_NOTICE_US;
    self->notices = (guint)MIN(self->notices + earned, EB_HOLD_MAX_NOTICES);
    self->refilled_us += earned * EB_HOLD_NOTICE_US;
}

EbHoldNotice
eb_session_hold_next(EbSessionHold *self, gint64 now_us, gint64 *wait_us)
{
    gboolean held = eb_session_hold_is_held(self);
    *wait_us = -1;
    if (held == self->told)
        return EB_HOLD_NOTICE_NONE;
    refill(self, now_us);
    gint64 due_us = self->changed_us + EB_HOLD_SETTLE_US;
    if (self->notices == 0)
        due_us = MAX(due_us, self->refilled_us + EB_HOLD_NOTICE_US);
    if (now_us < due_us) {
        *wait_us = due_us - now_us;
        return EB_HOLD_NOTICE_NONE;
    }
    if (self->notices == EB_HOLD_MAX_NOTICES)
        self->refilled_us = now_us;
    self->notices--;
    self->told = held;
    return held ? EB_HOLD_NOTICE_BEGUN : EB_HOLD_NOTICE_OVER;
}
