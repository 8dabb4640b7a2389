/* SPDX-License-Identifier: MIT */
#include "incus-leftovers.h"

#include "incus-stop.h"

#define RETRY_S 15
#define TRY_MS 10000
/* A creation that incusd had accepted may surface this much later. */
#define KEEP_US (90 * G_USEC_PER_SEC)

typedef struct {
    char *name;
    char *launch_id;
    gint64 since_us;
} Leftover;

struct _IncusLeftovers {
    GObject parent_instance;
    IncusClient *client;   /* (owned) */
    GQueue queue;          /* (element-type Leftover), bounded by INCUS_LEFTOVERS_MAX */
    Leftover *current;     /* (nullable): being removed, not in the queue */
    IncusDeadline *trying; /* (nullable) */
    guint round;           /* entries still to try in this round */
    GSource *timer;        /* (nullable) */
};

G_DEFINE_FINAL_TYPE(IncusLeftovers, incus_leftovers, G_TYPE_OBJECT)

static void next_try(IncusLeftovers *self);

static void
leftover_free(gpointer data)
{
    Leftover *leftover = data;
    g_free(leftover->name);
    g_free(leftover->launch_id);
    g_free(leftover);
}

static void
drop_timer(IncusLeftovers *self)
{
    if (self->timer != NULL)
        g_source_destroy(self->timer);
    g_clear_pointer(&self->timer, g_source_unref);
}

static void
incus_leftovers_finalize(GObject *object)
{
    IncusLeftovers *self = INCUS_LEFTOVERS(object);
    drop_timer(self);
    g_queue_clear_full(&self->queue, leftover_free);
    g_clear_pointer(&self->current, leftover_free);
    g_clear_pointer(&self->trying, incus_deadline_unref);
    g_clear_object(&self->client);
    G_OBJECT_CLASS(incus_leftovers_parent_class)->finalize(object);
}

static void
incus_leftovers_class_init(IncusLeftoversClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_leftovers_finalize;
}

static void
incus_leftovers_init(IncusLeftovers *self)
{
    g_queue_init(&self->queue);
}

IncusLeftovers *
incus_leftovers_new(IncusClient *client)
{
    IncusLeftovers *self = g_object_new(INCUS_TYPE_LEFTOVERS, NULL);
    self->client = g_object_ref(client);
    return self;
}

static gboolean
on_timer(gpointer user_data)
{
    IncusLeftovers *self = user_data;
    drop_timer(self);
    incus_leftovers_retry(self);
    return G_SOURCE_REMOVE;
}

static void
arm_timer(IncusLeftovers *self)
{
    if (self->timer != NULL || g_queue_is_empty(&self->queue))
        return;
    self->timer = g_timeout_source_new_seconds(RETRY_S);
    g_source_set_callback(self->timer, on_timer, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

static void
on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(IncusLeftovers) self = user_data;
    g_autoptr(GError) error = NULL;
    gboolean gone = incus_stop_finish(result, &error);
    g_clear_pointer(&self->trying, incus_deadline_unref);
    Leftover *leftover = g_steal_pointer(&self->current);
    if (leftover == NULL) /* stopped meanwhile */
        return;
    if (gone && g_get_monotonic_time() - leftover->since_us > KEEP_US)
        leftover_free(leftover);
    else
        g_queue_push_tail(&self->queue, leftover);
    next_try(self);
}

static void
next_try(IncusLeftovers *self)
{
    if (self->current != NULL)
        return;
    if (self->round == 0 || g_queue_is_empty(&self->queue)) {
        self->round = 0;
        arm_timer(self);
        return;
    }
    self->round--;
    self->current = g_queue_pop_head(&self->queue);
    self->trying = incus_deadline_new(TRY_MS, NULL);
    IncusStopRequest request = {
        .name = self->current->name, .flags = EB_STOP_FORCE | EB_STOP_DESTROY, .launch_id = self->current->launch_id};
    incus_stop_async(self->client, &request, self->trying, on_removed, g_object_ref(self));
}

void
incus_leftovers_add(IncusLeftovers *self, const char *name, const char *launch_id)
{
    if (g_queue_get_length(&self->queue) >= INCUS_LEFTOVERS_MAX)
        leftover_free(g_queue_pop_head(&self->queue));
    Leftover *leftover = g_new0(Leftover, 1);
    leftover->name = g_strdup(name);
    leftover->launch_id = g_strdup(launch_id);
    leftover->since_us = g_get_monotonic_time();
    g_queue_push_tail(&self->queue, leftover);
    eb_warning("incusd did not answer: instance %s is removed as soon as it does", name);
    incus_leftovers_retry(self);
}

void
incus_leftovers_retry(IncusLeftovers *self)
{
    self->round = g_queue_get_length(&self->queue);
    next_try(self);
}

void
incus_leftovers_stop(IncusLeftovers *self)
{
    drop_timer(self);
    self->round = 0;
    g_queue_clear_full(&self->queue, leftover_free);
    g_clear_pointer(&self->current, leftover_free);
    if (self->trying != NULL)
        incus_deadline_cancel(self->trying);
}

guint
incus_leftovers_get_count(IncusLeftovers *self)
{
    return g_queue_get_length(&self->queue) + (self->current != NULL ? 1 : 0);
}
