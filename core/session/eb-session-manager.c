/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/base/eb-source.h"
#include "core/session/eb-session-manager-private.h"

#include "core/session/eb-project-name.h"
#include "core/session/eb-router.h"
#include "core/session/eb-session-sweep.h"
#include "core/state/eb-journal.h"
#include "core/state/eb-transcript.h"

G_DEFINE_FINAL_TYPE(EbSessionManager, eb_session_manager, G_TYPE_OBJECT)

enum { SIGNAL_PROMPT_OUTCOME, SIGNAL_TURN_ENDED, SIGNAL_SESSION_ENDED, N_SIGNALS };
static guint signals[N_SIGNALS];

void
eb_session_manager_note_error(EbSessionManager *self, const char *text)
{
    g_autofree char *masked = eb_redact_set_mask(self->parts->secrets, text, -1);
    g_queue_push_head(&self->errors, eb_log_escape(masked, -1, 500));
    while (self->errors.length > EB_MANAGER_MAX_ERRORS)
        g_free(g_queue_pop_tail(&self->errors));
}

/* --- the backend --- */

gboolean
eb_session_manager_is_live_instance(const char *instance, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session)) {
        EbSessionRecord *record = eb_session_get_record(session);
        /* Sessions name their guest before they have it. */
        if (eb_session_is_instance(session, instance) || g_strcmp0(record->instance, instance) == 0)
            return TRUE;
    }
    return FALSE;
}

static void
on_guests_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSessionManager) self = EB_SESSION_MANAGER(user_data);
    g_autoptr(GError) error = NULL;
    self->sweeping = FALSE;
    self->swept = eb_session_sweep_guests_finish(result, NULL, &error);
    if (!self->swept)
        eb_warning("guests nobody has could not be looked for: %s", error->message);
}

static void
sweep_guests(EbSessionManager *self)
{
    if (self->sweeping || self->closing)
        return;
    self->sweeping = TRUE;
    eb_session_sweep_guests_async(self->parts, eb_session_manager_is_live_instance, self, on_guests_swept,
                                  g_object_ref(self));
}

static void
guest_gone(EbSessionManager *self, const char *name)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session)) {
        if (!eb_session_is_instance(session, name) || eb_session_is_ending(session))
            continue;
        /* The exec's end says more when it comes; this is for a guest that goes without one. */
        eb_session_guest_gone(session);
        return;
    }
}

static void
tell_working(EbSessionManager *self, const char *text)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session))
        if (eb_session_get_state(session) == EB_SESSION_WORKING)
            eb_session_notice(session, text);
}

static gboolean on_sweep_due(gpointer data);

static void
arm_sweep(EbSessionManager *self, guint seconds)
{
    eb_clear_source(&self->sweep_timer);
    self->sweep_timer = g_timeout_source_new_seconds(seconds);
    g_source_set_callback(self->sweep_timer, on_sweep_due, self, NULL);
    g_source_attach(self->sweep_timer, g_main_context_get_thread_default());
}

static gboolean
on_sweep_due(gpointer data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(data);
    sweep_guests(self);
    arm_sweep(self, EB_MANAGER_SWEEP_S);
    return G_SOURCE_REMOVE;
}

static void
on_instance_event(EbContainerBackend *backend, EbInstanceEvent event, const char *name, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    switch (event) {
    case EB_INSTANCE_EVENT_STOPPED:
    case EB_INSTANCE_EVENT_DELETED:
        if (name != NULL)
            guest_gone(self, name);
        break;
    case EB_INSTANCE_EVENT_BACKEND_LOST:
        self->swept = FALSE;
        eb_gap_check_forget(self->parts->gaps);
        eb_session_manager_note_error(self, "the container backend went away");
        tell_working(self, "the container backend went away; waiting whether the guest survives it");
        break;
    case EB_INSTANCE_EVENT_BACKEND_BACK:
        eb_gap_check_forget(self->parts->gaps);
        sweep_guests(self);
        break;
    case EB_INSTANCE_EVENT_STARTED:
        break;
    }
}

void
eb_session_manager_connect_backend(EbSessionManager *self)
{
    g_signal_connect_object(self->parts->backend, "instance-event", G_CALLBACK(on_instance_event), self, 0);
    arm_sweep(self, EB_MANAGER_FIRST_SWEEP_S);
}

/* --- sessions --- */

EbSession *
eb_session_manager_find_live(EbSessionManager *self, const char *transport, const char *thread)
{
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session)) {
        EbSessionRecord *record = eb_session_get_record(session);
        if (g_strcmp0(record->transport, transport) == 0 && g_strcmp0(record->thread, thread) == 0)
            return session;
    }
    return NULL;
}

EbSessionRecord *
eb_session_manager_find_record(EbSessionManager *self, const char *transport, const char *thread, gboolean stopped)
{
    EbSessionRecord *best = NULL;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, self->records);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        EbSessionRecord *record = value;
        if (g_strcmp0(record->transport, transport) != 0 || g_strcmp0(record->thread, thread) != 0 ||
            record->agent_session == NULL || g_hash_table_contains(self->sessions, record->id) ||
            g_strcmp0(record->end_reason, EB_SESSION_REMOVED) == 0)
            continue;
        if (!stopped && g_strcmp0(record->end_reason, eb_session_end_to_string(EB_SESSION_END_STOPPED)) == 0)
            continue;
        if (best == NULL || record->last_activity_ms > best->last_activity_ms)
            best = record;
    }
    return best;
}

static void
on_prompt_state(EbSession *session, const char *message_id, int state, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    EbSessionRecord *record = eb_session_get_record(session);
    if (record->transport != NULL && message_id != NULL)
        eb_journal_mark(self->parts->store, record->transport, message_id, (EbJournalState)state, record->id);
}

static void
on_prompt_outcome(EbSession *session, const char *message_id, int outcome, gpointer user_data)
{
    EbSessionRecord *record = eb_session_get_record(session);
    g_signal_emit(user_data, signals[SIGNAL_PROMPT_OUTCOME], 0, record->transport, record->thread, message_id, outcome);
}

static void
on_turn_ended(EbSession *session, const char *stop_reason, const GError *error, gpointer user_data)
{
    EbSessionManager *self = EB_SESSION_MANAGER(user_data);
    EbSessionRecord *record = eb_session_get_record(session);
    if (error != NULL)
        eb_session_manager_note_error(self, error->message);
    eb_host_desk_turn_ended(self->desk, session);
    g_signal_emit(self, signals[SIGNAL_TURN_ENDED], 0, record->id, record->thread, stop_reason, error);
}

static void
on_session_ended(EbSession *session, const char *reason, const GError *error, gpointer user_data)
{
    g_autoptr(EbSessionManager) self = g_object_ref(EB_SESSION_MANAGER(user_data));
    g_autoptr(EbSessionRecord) record = eb_session_record_ref(eb_session_get_record(session));
    if (error != NULL)
        eb_session_manager_note_error(self, error->message);
    g_hash_table_remove(self->sessions, record->id);
    g_hash_table_remove(self->told_hold, record->id);
    if (record->agent_session == NULL) {
        g_hash_table_remove(self->records, record->id);
        eb_host_desk_forget(self->desk, record->id, "closed: the session is gone");
    } else if (g_strcmp0(reason, eb_session_end_to_string(EB_SESSION_END_STOPPED)) == 0) {
        eb_host_desk_forget(self->desk, record->id, "closed: the session was ended");
    }
    g_signal_emit(self, signals[SIGNAL_SESSION_ENDED], 0, record->id, record->thread, reason, error);
    for (guint i = 0; i < self->routers->len; i++) {
        EbRouter *router = self->routers->pdata[i];
        if (g_strcmp0(eb_router_get_name(router), record->transport) == 0)
            eb_router_session_ended(router, record->thread, reason);
    }
    eb_session_manager_tell_decisions(self, record->id);
    eb_session_manager_wake_waits(self);
}

/* The database keeps all; memory keeps the live ones and the most recent. */
static void
forget_oldest(EbSessionManager *self)
{
    while (g_hash_table_size(self->records) >= EB_SESSION_STORE_MAX) {
        EbSessionRecord *oldest = NULL;
        GHashTableIter iter;
        gpointer value;
        g_hash_table_iter_init(&iter, self->records);
        while (g_hash_table_iter_next(&iter, NULL, &value)) {
            EbSessionRecord *record = value;
            if (!g_hash_table_contains(self->sessions, record->id) &&
                (oldest == NULL || record->last_activity_ms < oldest->last_activity_ms))
                oldest = record;
        }
        if (oldest == NULL)
            return;
        eb_host_desk_forget(self->desk, oldest->id, NULL);
        g_hash_table_remove(self->records, oldest->id);
    }
}

EbSession *
eb_session_manager_begin(EbSessionManager *self, EbSessionRecord *record, gboolean fresh, EbChatTransport *transport)
{
    if (!g_hash_table_contains(self->records, record->id))
        forget_oldest(self);
    EbSession *session = eb_session_new(self->parts, record, fresh, transport);
    g_hash_table_replace(self->records, record->id, eb_session_record_ref(record));
    g_hash_table_replace(self->sessions, record->id, session);
    g_signal_connect_object(session, "prompt-state", G_CALLBACK(on_prompt_state), self, 0);
    g_signal_connect_object(session, "prompt-outcome", G_CALLBACK(on_prompt_outcome), self, 0);
    g_signal_connect_object(session, "turn-ended", G_CALLBACK(on_turn_ended), self, 0);
    g_signal_connect_object(session, "ended", G_CALLBACK(on_session_ended), self, 0);
    eb_session_set_policy(session, eb_session_manager_get_policy(self, record));
    eb_session_manager_watch_hosts(self, session);
    eb_session_start(session);
    eb_session_manager_note_begun(self, session);
    return session;
}

void
eb_session_manager_attach_transport(EbSessionManager *self, const char *name, EbChatTransport *transport)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self) && name != NULL && EB_IS_CHAT_TRANSPORT(transport));
    if (self->closing)
        return;
    g_ptr_array_add(self->routers, eb_router_new(self, name, transport));
    eb_session_manager_take_up_questions(self, name, transport);
    eb_host_desk_take_up(self->desk, name, transport);
    if (!self->swept)
        sweep_guests(self);
}

char *
eb_session_manager_resolve(EbSessionManager *self, const char *text, GError **error)
{
    const char *found = NULL;
    guint matches = 0;
    if (text != NULL && g_hash_table_contains(self->records, text))
        return g_strdup(text);
    GHashTableIter iter;
    gpointer id;
    g_hash_table_iter_init(&iter, self->records);
    while (text != NULL && *text != '\0' && g_hash_table_iter_next(&iter, &id, NULL)) {
        if (g_str_has_prefix(id, text) || g_str_has_suffix(id, text)) {
            found = id;
            matches++;
        }
    }
    if (matches == 1)
        return g_strdup(found);
    g_autofree char *shown = eb_log_escape(text != NULL ? text : "", -1, 80);
    if (matches > 1)
        eb_set_error(error, EB_ERROR_INVALID, "session.ambiguous", "%u sessions begin or end with \"%s\"", matches,
                     shown);
    else
        eb_set_error(error, EB_ERROR_NOT_FOUND, "session.unknown", "there is no session \"%s\"", shown);
    return NULL;
}

/* --- gaps and logs --- */

void
eb_session_manager_set_accept_all_degraded(EbSessionManager *self, gboolean accept)
{
    eb_gap_check_set_accept_all(self->parts->gaps, accept);
}

static void
on_checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    const EbProbeReport *report = eb_gap_check_run_finish(EB_GAP_CHECK(source), result, NULL, &error);
    if (report == NULL) {
        g_task_return_error(task, error);
        return;
    }
    EbProbeReport *copy = eb_probe_report_new(report->server, report->access);
    for (guint i = 0; i < report->items->len; i++) {
        const EbProbeItem *item = report->items->pdata[i];
        eb_probe_report_add(copy, item->guarantee, item->enforced, item->degraded_id, item->detail);
    }
    g_task_return_pointer(task, copy, (GDestroyNotify)eb_probe_report_free);
}

void
eb_session_manager_check_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_check_async);
    eb_gap_check_run_async(self->parts->gaps, cancellable, on_checked, task);
}

EbProbeReport *
eb_session_manager_check_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

const EbProbeReport *
eb_session_manager_get_probe(EbSessionManager *self)
{
    return eb_gap_check_get_report(self->parts->gaps);
}

static void
on_log(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    GPtrArray *events = eb_transcript_read_finish(EB_STORE(source), result, &error);
    if (events == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, events, (GDestroyNotify)g_ptr_array_unref);
}

static void
on_egress(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    GPtrArray *rows = eb_egress_store_read_finish(EB_STORE(source), result, &error);
    const GError *unknown = g_task_get_task_data(task);
    if (rows == NULL)
        g_task_return_error(task, error);
    else if (unknown != NULL && rows->len <= 1) {
        /* The verdict on a chain without a row: of an id that nobody ever had it would be called whole. */
        g_ptr_array_unref(rows);
        g_task_return_error(task, g_error_copy(unknown));
    } else
        g_task_return_pointer(task, rows, (GDestroyNotify)g_ptr_array_unref);
}

void
eb_session_manager_log_async(EbSessionManager *self, const char *id, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_log_async);
    GError *error = NULL;
    g_autofree char *whole = eb_session_manager_resolve(self, id, &error);
    if (whole == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    EbSession *session = g_hash_table_lookup(self->sessions, whole);
    if (session != NULL)
        eb_session_flush_log(session);
    eb_transcript_read_async(self->parts->store, whole, NULL, on_log, task);
}

GPtrArray *
eb_session_manager_log_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
eb_session_manager_egress_async(EbSessionManager *self, const char *id, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_egress_async);
    GError *error = NULL;
    g_autofree char *whole = eb_session_manager_resolve(self, id, &error);
    if (error != NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    if (error != NULL)
        g_task_set_task_data(task, error, (GDestroyNotify)g_error_free);
    eb_egress_log_flush(self->parts->egress);
    /* The audit of a session that was removed is still there, under its whole id. */
    eb_egress_store_read_async(self->parts->store, whole != NULL ? whole : id, NULL, on_egress, task);
}

/* --- the object --- */

static void
eb_session_manager_dispose(GObject *object)
{
    EbSessionManager *self = EB_SESSION_MANAGER(object);
    for (guint i = 0; i < self->routers->len; i++)
        eb_router_close(self->routers->pdata[i]);
    g_ptr_array_set_size(self->routers, 0);
    if (self->parts != NULL)
        eb_questions_let_go(self->parts->questions);
    g_hash_table_remove_all(self->sessions);
    eb_clear_source(&self->close_timer);
    eb_clear_source(&self->sweep_timer);
    eb_clear_source(&self->hold_timer);
    G_OBJECT_CLASS(eb_session_manager_parent_class)->dispose(object);
}

static void
eb_session_manager_finalize(GObject *object)
{
    EbSessionManager *self = EB_SESSION_MANAGER(object);
    eb_host_desk_free(self->desk);
    g_ptr_array_unref(self->routers);
    g_ptr_array_unref(self->waits);
    g_hash_table_unref(self->sessions);
    g_hash_table_unref(self->records);
    g_hash_table_unref(self->policies);
    g_ptr_array_unref(self->decisions);
    g_queue_clear_full(&self->errors, g_free);
    g_hash_table_unref(self->told_hold);
    g_hash_table_unref(self->refused);
    eb_session_hold_free(self->hold);
    /* The run's lock last: a guest of a run whose lock is free is fair game for others. */
    eb_dir_lock_release(self->state_lock);
    eb_dir_lock_release(self->run_lock);
    eb_session_parts_unref(self->parts);
    G_OBJECT_CLASS(eb_session_manager_parent_class)->finalize(object);
}

static void
eb_session_manager_class_init(EbSessionManagerClass *klass)
{
    GType type = G_TYPE_FROM_CLASS(klass);
    G_OBJECT_CLASS(klass)->dispose = eb_session_manager_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_session_manager_finalize;
    signals[SIGNAL_PROMPT_OUTCOME] =
        g_signal_new("prompt-outcome", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4, G_TYPE_STRING,
                     G_TYPE_STRING, G_TYPE_STRING, G_TYPE_INT);
    signals[SIGNAL_TURN_ENDED] = g_signal_new("turn-ended", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                              4, G_TYPE_STRING, G_TYPE_STRING, G_TYPE_STRING, G_TYPE_ERROR);
    signals[SIGNAL_SESSION_ENDED] =
        g_signal_new("session-ended", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4, G_TYPE_STRING,
                     G_TYPE_STRING, G_TYPE_STRING, G_TYPE_ERROR);
}

static void
record_free(gpointer data)
{
    eb_session_record_unref(data);
}

static void
eb_session_manager_init(EbSessionManager *self)
{
    self->records = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, record_free);
    self->sessions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_object_unref);
    self->policies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->decisions = g_ptr_array_new_with_free_func(eb_decision_free);
    self->routers = g_ptr_array_new_with_free_func(g_object_unref);
    self->waits = g_ptr_array_new_with_free_func(g_object_unref);
    g_queue_init(&self->errors);
    self->hold = eb_session_hold_new();
    self->desk = eb_host_desk_new(self);
    self->told_hold = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->refused = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

void
eb_session_manager_keys_changed(EbSessionManager *self, const char *name)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    GHashTableIter iter;
    gpointer session;
    g_hash_table_iter_init(&iter, self->sessions);
    while (g_hash_table_iter_next(&iter, NULL, &session))
        eb_session_keys_changed(session, name);
}
