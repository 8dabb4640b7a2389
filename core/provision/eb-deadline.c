/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-deadline.h"

struct _EbDeadline {
    GMutex lock;
    GCond done_changed;
    gboolean done;
    gboolean over;
    gint64 until;              /* monotonic, us */
    GCancellable *cancellable; /* (owned) */
    GCancellable *leader;      /* (owned) (nullable) */
    gulong leader_handler;
    GThread *thread;
};

static gpointer
watch(gpointer data)
{
    EbDeadline *self = data;

    g_mutex_lock(&self->lock);
    while (!self->done && g_cond_wait_until(&self->done_changed, &self->lock, self->until))
        ;
    self->over = !self->done;
    g_mutex_unlock(&self->lock);
    if (self->over)
        g_cancellable_cancel(self->cancellable);
    return NULL;
}

static void
on_leader_cancelled(GCancellable *leader, gpointer user_data)
{
    g_cancellable_cancel(user_data);
}

EbDeadline *
eb_deadline_new(GCancellable *leader, guint ms)
{
    EbDeadline *self = g_new0(EbDeadline, 1);

    g_mutex_init(&self->lock);
    g_cond_init(&self->done_changed);
    self->until = g_get_monotonic_time() + (gint64)ms * 1000;
    self->cancellable = g_cancellable_new();
    if (leader != NULL) {
        self->leader = g_object_ref(leader);
        self->leader_handler = g_cancellable_connect(leader, G_CALLBACK(on_leader_cancelled),
                                                     g_object_ref(self->cancellable), g_object_unref);
    }
    self->thread = g_thread_new("deadline", watch, self);
    return self;
}

void
eb_deadline_free(EbDeadline *self)
{
    g_mutex_lock(&self->lock);
    self->done = TRUE;
    g_cond_signal(&self->done_changed);
    g_mutex_unlock(&self->lock);
    g_thread_join(self->thread);
    if (self->leader != NULL)
        g_cancellable_disconnect(self->leader, self->leader_handler);
    g_clear_object(&self->leader);
    g_object_unref(self->cancellable);
    g_cond_clear(&self->done_changed);
    g_mutex_clear(&self->lock);
    g_free(self);
}

GCancellable *
eb_deadline_get_cancellable(EbDeadline *self)
{
    return self->cancellable;
}

gboolean
eb_deadline_is_over(EbDeadline *self)
{
    g_mutex_lock(&self->lock);
    gboolean over = self->over;
    g_mutex_unlock(&self->lock);
    return over;
}
