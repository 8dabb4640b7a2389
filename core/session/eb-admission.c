/* SPDX-License-Identifier: MIT */
#include "core/session/eb-admission.h"

struct _EbAdmission {
    GObject parent_instance;
    char *what;
    guint places;
    guint max_queue;
    guint64 max_wait_ms;
    GHashTable *held; /* (utf8 owner -> guint places) */
    guint n_held;
    GPtrArray *waiting; /* (element-type EbWaiter), at most max_queue, in the order of arrival */
    GSource *update;    /* tells positions from the main loop */
    char *paused;       /* (nullable): why no places are given */
};

G_DEFINE_FINAL_TYPE(EbAdmission, eb_admission, G_TYPE_OBJECT)

struct _EbTicket {
    EbAdmission *admission;
    char *owner;
};

typedef struct {
    EbAdmission *admission; /* not owned: the admission owns the waiter */
    GTask *task;
    char *owner;
    EbAdmissionPosition position;
    gpointer user_data;
    guint told;
    guint round; /* scratch of rank() */
    guint arrival;
    GSource *expiry;
    GSource *cancelled;
} EbWaiter;

static void
drop_source(GSource **source)
{
    if (*source != NULL) {
        g_source_destroy(*source);
        g_clear_pointer(source, g_source_unref);
    }
}

static void
waiter_free(gpointer data)
{
    EbWaiter *waiter = data;
    drop_source(&waiter->expiry);
    drop_source(&waiter->cancelled);
    g_object_unref(waiter->task);
    g_free(waiter->owner);
    g_free(waiter);
}

static guint
held_by(EbAdmission *self, const char *owner)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(self->held, owner));
}

static void
set_held(EbAdmission *self, const char *owner, guint count)
{
    if (count == 0)
        g_hash_table_remove(self->held, owner);
    else
        g_hash_table_replace(self->held, g_strdup(owner), GUINT_TO_POINTER(count));
}

static int
by_turn(gconstpointer a, gconstpointer b)
{
    const EbWaiter *left = *(EbWaiter *const *)a;
    const EbWaiter *right = *(EbWaiter *const *)b;
    if (left->round != right->round)
        return left->round < right->round ? -1 : 1;
    return left->arrival < right->arrival ? -1 : left->arrival > right->arrival;
}

/* (transfer container): everybody who waits, in the order of service. */
static GPtrArray *
rank(EbAdmission *self)
{
    g_autoptr(GHashTable) rounds = g_hash_table_new(g_str_hash, g_str_equal);
    GPtrArray *order = g_ptr_array_new();
    for (guint i = 0; i < self->waiting->len; i++) {
        EbWaiter *waiter = self->waiting->pdata[i];
        guint before = GPOINTER_TO_UINT(g_hash_table_lookup(rounds, waiter->owner));
        waiter->round = held_by(self, waiter->owner) + before;
        waiter->arrival = i;
        g_hash_table_replace(rounds, waiter->owner, GUINT_TO_POINTER(before + 1));
        g_ptr_array_add(order, waiter);
    }
    g_ptr_array_sort(order, by_turn);
    return order;
}

static void
grant(EbAdmission *self, GTask *task, const char *owner)
{
    EbTicket *ticket = g_new0(EbTicket, 1);
    ticket->admission = g_object_ref(self);
    ticket->owner = g_strdup(owner);
    set_held(self, owner, held_by(self, owner) + 1);
    self->n_held++;
    g_task_return_pointer(task, ticket, (GDestroyNotify)eb_ticket_free);
}

static gboolean
tell_positions(gpointer data)
{
    EbAdmission *self = EB_ADMISSION(data);
    g_clear_pointer(&self->update, g_source_unref);
    g_autoptr(EbAdmission) alive = g_object_ref(self);
    g_autoptr(GPtrArray) order = rank(self);
    for (guint i = 0; i < order->len; i++) {
        EbWaiter *waiter = order->pdata[i];
        /* A callback may end the wait of others. */
        if (!g_ptr_array_find(self->waiting, waiter, NULL) || waiter->told == i + 1)
            continue;
        waiter->told = i + 1;
        if (waiter->position != NULL)
            waiter->position(i + 1, waiter->user_data);
    }
    return G_SOURCE_REMOVE;
}

static void
schedule_positions(EbAdmission *self)
{
    if (self->update != NULL || self->waiting->len == 0)
        return;
    self->update = g_idle_source_new();
    g_source_set_callback(self->update, tell_positions, self, NULL);
    g_source_attach(self->update, g_main_context_get_thread_default());
}

/* Out of the queue before its task returns: the callback may run at once and come back here. */
static void
take_out(EbAdmission *self, EbWaiter *waiter)
{
    guint index = 0;
    if (g_ptr_array_find(self->waiting, waiter, &index))
        g_ptr_array_steal_index(self->waiting, index);
}

static void
serve(EbAdmission *self)
{
    while (self->paused == NULL && self->n_held < self->places && self->waiting->len > 0) {
        g_autoptr(GPtrArray) order = rank(self);
        EbWaiter *waiter = order->pdata[0];
        take_out(self, waiter);
        grant(self, waiter->task, waiter->owner);
        waiter_free(waiter);
    }
    schedule_positions(self);
}

static void
end_wait(EbWaiter *waiter, GError *error)
{
    g_autoptr(EbAdmission) self = g_object_ref(waiter->admission);
    take_out(self, waiter);
    g_task_return_error(waiter->task, error);
    waiter_free(waiter);
    schedule_positions(self);
}

static gboolean
on_expired(gpointer data)
{
    EbWaiter *waiter = data;
    EbAdmission *self = waiter->admission;
    end_wait(waiter,
             eb_error_new(EB_ERROR_TIMEOUT, "admission.expired",
                          "waited %" G_GUINT64_FORMAT " s for a free %s and gave up%s%s", self->max_wait_ms / 1000,
                          self->what, self->paused != NULL ? ": " : "", self->paused != NULL ? self->paused : ""));
    return G_SOURCE_REMOVE;
}

static gboolean
on_wait_cancelled(GCancellable *cancellable, gpointer data)
{
    end_wait(data, eb_error_new(EB_ERROR_CANCELLED, "admission.cancelled", "no longer waiting"));
    return G_SOURCE_REMOVE;
}

void
eb_admission_acquire_async(EbAdmission *self, const char *owner, EbAdmissionPosition position,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_ADMISSION(self));
    const char *name = owner != NULL ? owner : "";
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_admission_acquire_async);
    g_task_set_check_cancellable(task, FALSE);
    if (self->paused == NULL && self->n_held < self->places && self->waiting->len == 0) {
        grant(self, task, name);
        return;
    }
    if (self->waiting->len >= self->max_queue) {
        GError *error =
            eb_error_new(EB_ERROR_QUOTA, "admission.full", "%u of %u %ss run and %u wait already: try again later",
                         self->n_held, self->places, self->what, self->waiting->len);
        eb_error_set_retry(error, 60000);
        g_task_return_error(task, error);
        return;
    }
    EbWaiter *waiter = g_new0(EbWaiter, 1);
    waiter->admission = self;
    waiter->owner = g_strdup(name);
    waiter->position = position;
    waiter->user_data = user_data;
    waiter->expiry = g_timeout_source_new((guint)MIN(self->max_wait_ms, G_MAXUINT));
    g_source_set_callback(waiter->expiry, on_expired, waiter, NULL);
    g_source_attach(waiter->expiry, g_main_context_get_thread_default());
    if (cancellable != NULL) {
        waiter->cancelled = g_cancellable_source_new(cancellable);
        g_source_set_callback(waiter->cancelled, G_SOURCE_FUNC(on_wait_cancelled), waiter, NULL);
        g_source_attach(waiter->cancelled, g_main_context_get_thread_default());
    }
    waiter->task = g_steal_pointer(&task);
    g_ptr_array_add(self->waiting, waiter);
    schedule_positions(self);
}

EbTicket *
eb_admission_acquire_finish(EbAdmission *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

void
eb_ticket_free(EbTicket *self)
{
    if (self == NULL)
        return;
    EbAdmission *admission = self->admission;
    set_held(admission, self->owner, held_by(admission, self->owner) - 1);
    admission->n_held--;
    serve(admission);
    g_free(self->owner);
    g_object_unref(admission);
    g_free(self);
}

void
eb_admission_pause(EbAdmission *self, const char *why)
{
    g_return_if_fail(EB_IS_ADMISSION(self));
    g_free(self->paused);
    self->paused = g_strdup(why);
    serve(self);
}

guint
eb_admission_get_held(EbAdmission *self)
{
    return self->n_held;
}

guint
eb_admission_get_waiting(EbAdmission *self)
{
    return self->waiting->len;
}

static void
eb_admission_finalize(GObject *object)
{
    EbAdmission *self = EB_ADMISSION(object);
    drop_source(&self->update);
    g_ptr_array_unref(self->waiting);
    g_hash_table_unref(self->held);
    g_free(self->what);
    g_free(self->paused);
    G_OBJECT_CLASS(eb_admission_parent_class)->finalize(object);
}

static void
eb_admission_class_init(EbAdmissionClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_admission_finalize;
}

static void
eb_admission_init(EbAdmission *self)
{
    self->held = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->waiting = g_ptr_array_new_with_free_func(waiter_free);
}

EbAdmission *
eb_admission_new(const char *what, guint places, guint max_queue, guint64 max_wait_ms)
{
    EbAdmission *self = g_object_new(EB_TYPE_ADMISSION, NULL);
    self->what = g_strdup(what);
    self->places = MAX(places, 1);
    self->max_queue = max_queue;
    self->max_wait_ms = max_wait_ms;
    return self;
}
