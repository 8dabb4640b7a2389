/* SPDX-License-Identifier: MIT */
/* Taking no new sessions for a while: who is refused, who waits, who is told. */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-router-private.h"
#include "core/session/eb-session-manager-private.h"
#include "core/session/eb-session-private.h"

#define OVER "new sessions can start again"

/* A session is told once that one holds, and then that it is over. */
static void
tell_begun(EbSessionManager *self, EbSession *session)
{
    EbSessionRecord *record = eb_session_get_record(session);
    g_autofree char *why = eb_session_hold_describe(self->hold);
    if (why == NULL || !g_hash_table_add(self->told_hold, g_strdup(record->id)))
        return;
    g_autofree char *text =
        g_strdup_printf("new sessions are paused: %s. %s", why,
                        session->waiting_place ? "This one starts when that is over." : "This one goes on.");
    eb_session_notice(session, text);
}

void
eb_session_manager_note_refused(EbSessionManager *self, const char *transport, const char *thread)
{
    if (eb_session_hold_is_held(self->hold) && g_hash_table_size(self->refused) < EB_HOLD_MAX_REFUSED)
        g_hash_table_add(self->refused, g_strdup_printf("%s %s", transport, thread != NULL ? thread : ""));
}

/* Who was refused knows when to come back; a thread that is live again hears it as such. */
static void
tell_refused(EbSessionManager *self)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, self->refused);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        g_auto(GStrv) place = g_strsplit(key, " ", 2);
        const char *thread = *place[1] != '\0' ? place[1] : NULL;
        if (thread != NULL && eb_session_manager_find_live(self, place[0], thread) != NULL)
            continue;
        for (guint i = 0; i < self->routers->len; i++)
            if (g_str_equal(eb_router_get_name(self->routers->pdata[i]), place[0]))
                eb_router_tell(self->routers->pdata[i], thread, EB_CHAT_POST_NOTICE, OVER, NULL);
    }
    g_hash_table_remove_all(self->refused);
}

static void
tell_over(EbSessionManager *self)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session))
        if (!eb_session_is_ending(session) &&
            g_hash_table_contains(self->told_hold, eb_session_get_record(session)->id))
            eb_session_notice(session, OVER);
    tell_refused(self);
    g_hash_table_remove_all(self->told_hold);
}

static void look(EbSessionManager *self);

static gboolean
on_look(gpointer data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(data);
    g_clear_pointer(&self->hold_timer, g_source_unref);
    look(self);
    return G_SOURCE_REMOVE;
}

static void
look(EbSessionManager *self)
{
    gint64 wait_us = -1;
    EbHoldNotice notice = eb_session_hold_next(self->hold, g_get_monotonic_time(), &wait_us);
    GHashTableIter iter;
    gpointer session;
    eb_clear_source(&self->hold_timer);
    if (notice == EB_HOLD_NOTICE_OVER) {
        tell_over(self);
    } else if (notice == EB_HOLD_NOTICE_BEGUN) {
        g_hash_table_iter_init(&iter, self->sessions);
        while (g_hash_table_iter_next(&iter, NULL, &session))
            if (!eb_session_is_ending(session))
                tell_begun(self, session);
    }
    if (wait_us < 0)
        return;
    self->hold_timer = g_timeout_source_new((guint)(wait_us / 1000 + 1));
    g_source_set_callback(self->hold_timer, on_look, self, NULL);
    g_source_attach(self->hold_timer, g_main_context_get_thread_default());
}

void
eb_session_manager_note_begun(EbSessionManager *self, EbSession *session)
{
    /* It was let in before the hold began and waits in the queue now. */
    if (eb_session_hold_is_held(self->hold))
        tell_begun(self, session);
}

void
eb_session_manager_set_hold(EbSessionManager *self, EbHoldSource source, const GError *why)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    gboolean held = eb_session_hold_is_held(self->hold);
    if (self->closing || !eb_session_hold_set(self->hold, source, why, g_get_monotonic_time()))
        return;
    g_autofree char *text = eb_session_hold_describe(self->hold);
    if (text != NULL)
        eb_warning("no session can start: %s", text);
    else if (held)
        eb_info("sessions can start again");
    eb_admission_pause(self->parts->live, text);
    look(self);
}

gboolean
eb_session_manager_check_hold(EbSessionManager *self, GError **error)
{
    return eb_session_hold_check(self->hold, error);
}

char *
eb_session_manager_describe_hold(EbSessionManager *self)
{
    return eb_session_hold_describe(self->hold);
}

void
eb_session_manager_tell_live(EbSessionManager *self, const char *text)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session))
        if (!eb_session_is_ending(session))
            eb_session_notice(session, text);
}
