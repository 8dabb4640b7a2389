/* SPDX-License-Identifier: MIT */
#include "incus-deadline.h"

struct _IncusDeadline {
    gatomicrefcount refs;
    GCancellable *cancellable;
    GCancellable *caller; /* (nullable) */
    gulong caller_handler;
    GSource *timer; /* (nullable) */
    GSource *relay; /* (nullable): carries the caller's cancel out of its handler */
    gint64 end_us;  /* monotonic, 0 = none */
    gboolean timed_out;
};

static gboolean
on_timer(gpointer user_data)
{
    IncusDeadline *self = user_data;
    self->timed_out = !g_cancellable_is_cancelled(self->cancellable);
    g_cancellable_cancel(self->cancellable);
    return G_SOURCE_REMOVE;
}

static gboolean
on_relay(gpointer user_data)
{
    IncusDeadline *self = user_data;
    g_cancellable_cancel(self->cancellable);
    return G_SOURCE_REMOVE;
}

/* The handler runs under the caller's lock, in which disconnecting would deadlock: hand over to the loop. */
static void
on_caller_cancelled(GCancellable *caller, gpointer user_data)
{
    IncusDeadline *self = user_data;
    g_source_set_ready_time(self->relay, 0);
}

static gboolean
relay_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    g_source_set_ready_time(source, -1);
    return callback != NULL ? callback(user_data) : G_SOURCE_REMOVE;
}

static GSourceFuncs relay_funcs = {.dispatch = relay_dispatch};

IncusDeadline *
incus_deadline_new(guint ms, GCancellable *caller)
{
    IncusDeadline *self = g_new0(IncusDeadline, 1);
    g_atomic_ref_count_init(&self->refs);
    self->cancellable = g_cancellable_new();
    if (ms > 0) {
        self->end_us = g_get_monotonic_time() + (gint64)ms * 1000;
        self->timer = g_timeout_source_new(ms);
        g_source_set_callback(self->timer, on_timer, self, NULL);
        g_source_attach(self->timer, g_main_context_get_thread_default());
    }
    if (caller != NULL) {
        self->relay = g_source_new(&relay_funcs, sizeof(GSource));
        g_source_set_callback(self->relay, on_relay, self, NULL);
        g_source_attach(self->relay, g_main_context_get_thread_default());
        self->caller = g_object_ref(caller);
        self->caller_handler = g_cancellable_connect(caller, G_CALLBACK(on_caller_cancelled), self, NULL);
    }
    return self;
}

IncusDeadline *
incus_deadline_ref(IncusDeadline *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

void
incus_deadline_unref(IncusDeadline *self)
{
    if (!g_atomic_ref_count_dec(&self->refs))
        return;
    if (self->caller_handler != 0)
        g_cancellable_disconnect(self->caller, self->caller_handler);
    g_clear_object(&self->caller);
    if (self->timer != NULL)
        g_source_destroy(self->timer);
    g_clear_pointer(&self->timer, g_source_unref);
    if (self->relay != NULL)
        g_source_destroy(self->relay);
    g_clear_pointer(&self->relay, g_source_unref);
    g_clear_object(&self->cancellable);
    g_free(self);
}

GCancellable *
incus_deadline_get_cancellable(IncusDeadline *self)
{
    return self->cancellable;
}

guint
incus_deadline_get_remaining(IncusDeadline *self)
{
    if (self->end_us == 0)
        return G_MAXUINT;
    gint64 left = self->end_us - g_get_monotonic_time();
    return left <= 0 ? 0 : (guint)(left / 1000);
}

void
incus_deadline_cancel(IncusDeadline *self)
{
    g_cancellable_cancel(self->cancellable);
}

static gboolean
is_over(IncusDeadline *self)
{
    return g_cancellable_is_cancelled(self->cancellable) || incus_deadline_get_remaining(self) == 0 ||
           (self->caller != NULL && g_cancellable_is_cancelled(self->caller));
}

gboolean
incus_deadline_check(IncusDeadline *self, const char *what, GError **error)
{
    if (!is_over(self))
        return TRUE;
    if (self->timed_out || incus_deadline_get_remaining(self) == 0) {
        eb_set_error(error, EB_ERROR_TIMEOUT, "incus.timeout", "%s: incusd did not answer in time", what);
        if (error != NULL && *error != NULL)
            eb_error_set_retry(*error, 0);
    } else {
        eb_set_error(error, EB_ERROR_CANCELLED, "incus.cancelled", "%s: cancelled", what);
    }
    return FALSE;
}

void
incus_deadline_convert(IncusDeadline *self, const char *what, GError **error)
{
    if (error == NULL || *error == NULL || (*error)->domain == EB_ERROR)
        return;
    if (g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && is_over(self)) {
        g_clear_error(error);
        incus_deadline_check(self, what, error);
        return;
    }
    eb_error_convert(error, "incus.io", what);
}

/* --- sleeping --- */

typedef struct {
    IncusDeadline *deadline; /* (owned) */
    IncusSleepFunc func;
    gpointer user_data;
} Sleep;

static void
sleep_free(gpointer data)
{
    Sleep *sleep = data;
    incus_deadline_unref(sleep->deadline);
    g_free(sleep);
}

static gboolean
on_slept(gpointer user_data)
{
    Sleep *sleep = user_data;
    sleep->func(sleep->user_data);
    return G_SOURCE_REMOVE;
}

static gboolean
sleep_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    return callback != NULL ? callback(user_data) : G_SOURCE_REMOVE;
}

static GSourceFuncs sleep_funcs = {.dispatch = sleep_dispatch};

void
incus_deadline_sleep(IncusDeadline *self, guint ms, IncusSleepFunc func, gpointer user_data)
{
    Sleep *sleep = g_new0(Sleep, 1);
    sleep->deadline = incus_deadline_ref(self);
    sleep->func = func;
    sleep->user_data = user_data;
    g_autoptr(GSource) source = g_source_new(&sleep_funcs, sizeof(GSource));
    g_autoptr(GSource) child = g_cancellable_source_new(self->cancellable);
    g_source_set_ready_time(source, g_get_monotonic_time() + (gint64)ms * 1000);
    g_source_set_dummy_callback(child);
    g_source_add_child_source(source, child);
    g_source_set_callback(source, on_slept, sleep, sleep_free);
    g_source_attach(source, g_main_context_get_thread_default());
}
