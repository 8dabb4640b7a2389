/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-poller.h"

#include <errno.h>
#include <unistd.h>

#include "core/base/eb-unix.h"

/* Events taken in one turn: enough to spare system calls, few enough that the rest of the loop gets its turn. */
#define BATCH 64
/* Batches in one turn. */
#define ROUNDS 4

struct _EbPoller {
    GSource source;
    int fd; /* (owned) */
    gpointer tag;
    GQueue queue;
    int waker;    /* (unowned): the context's own descriptor, once it is in the set; -1 before */
    int n_events; /* of the running batch, or of the next one that was fetched already */
    struct epoll_event events[BATCH];
};

/* The one that waits in its context's place; NULL: none does. */
static EbPoller *waiting;

static gboolean
poller_prepare(GSource *source, int *timeout)
{
    EbPoller *self = (EbPoller *)source;

    *timeout = -1;
    return self->queue.length > 0 || self->n_events > 0;
}

static gboolean
poller_check(GSource *source)
{
    EbPoller *self = (EbPoller *)source;

    return self->queue.length > 0 || self->n_events > 0 || g_source_query_unix_fd(source, self->tag) != 0;
}

static gboolean
fetch(EbPoller *self, int timeout)
{
    int got = epoll_wait(self->fd, self->events, BATCH, timeout);

    self->n_events = MAX(got, 0);
    return got >= 0;
}

static void
run_queue(EbPoller *self)
{
    /* Only those that were waiting before; whoever requeues itself now waits for the next turn. */
    for (guint left = self->queue.length; left > 0 && self->queue.length > 0; left--) {
        EbWatch *watch = g_queue_peek_head(&self->queue);

        g_queue_unlink(&self->queue, &watch->link);
        watch->queued = FALSE;
        watch->func(watch, 0);
    }
}

static gboolean
poller_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    EbPoller *self = (EbPoller *)source;

    /* What one batch sets off is often there when it is through, and costs less here than by way of the main loop. */
    for (guint round = 0; round < ROUNDS; round++) {
        run_queue(self);
        if (self->n_events == 0)
            fetch(self, 0);
        if (self->n_events == 0)
            break;
        for (int i = 0; i < self->n_events; i++) {
            EbWatch *watch = self->events[i].data.ptr;

            if (watch != NULL)
                watch->func(watch, self->events[i].events);
        }
        self->n_events = 0;
    }
    return G_SOURCE_CONTINUE;
}

/* --- waiting in the context's place --- */

static GPollFD *
find_fd(GPollFD *fds, guint n_fds, int fd)
{
    for (guint i = 0; i < n_fds; i++) {
        if (fds[i].fd == fd)
            return &fds[i];
    }
    return NULL;
}

/* The context has our descriptor and the one it wakes itself by; a third one nobody here asked for is left to GLib. */
static gboolean
watch_waker(EbPoller *self, GPollFD *fds, guint n_fds)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    int other;

    if (n_fds != 2 || find_fd(fds, n_fds, self->fd) == NULL)
        return FALSE;
    other = fds[0].fd == self->fd ? fds[1].fd : fds[0].fd;
    if (self->waker < 0 && epoll_ctl(self->fd, EPOLL_CTL_ADD, other, &event) == 0)
        self->waker = other;
    return self->waker == other;
}

static int
wait_for_context(GPollFD *fds, guint n_fds, int timeout)
{
    EbPoller *self = waiting;
    int n_ready = 0;

    if (self == NULL || self->n_events > 0 || !watch_waker(self, fds, n_fds))
        return g_poll(fds, n_fds, timeout);
    if (!fetch(self, timeout))
        return -1;
    for (int i = 0; i < self->n_events; i++) {
        gboolean is_waker = self->events[i].data.ptr == NULL;
        GPollFD *ready = find_fd(fds, n_fds, is_waker ? self->waker : self->fd);

        n_ready += ready->revents == 0 ? 1 : 0;
        ready->revents = G_IO_IN;
    }
    return n_ready;
}

void
eb_poller_wait_for_context(EbPoller *self, GMainContext *context)
{
    waiting = self;
    g_main_context_set_poll_func(context, wait_for_context);
}

static GSourceFuncs poller_funcs = {
    .prepare = poller_prepare,
    .check = poller_check,
    .dispatch = poller_dispatch,
};

EbPoller *
eb_poller_new(GMainContext *context, GError **error)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    EbPoller *self;

    if (fd < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "broker.epoll", "cannot make an epoll descriptor: %s", g_strerror(errno));
        return NULL;
    }
    self = (EbPoller *)g_source_new(&poller_funcs, sizeof(EbPoller));
    self->fd = fd;
    self->waker = -1;
    g_queue_init(&self->queue);
    self->tag = g_source_add_unix_fd(&self->source, fd, G_IO_IN);
    /* It never recurses. But of a source that may not, GLib takes the descriptors out while it runs and puts them back
     * after, and wakes itself each time: two writes, a read and a poll(2) a turn. */
    g_source_set_can_recurse(&self->source, TRUE);
    g_source_set_static_name(&self->source, "eb-poller");
    g_source_attach(&self->source, context);
    return self;
}

void
eb_poller_free(EbPoller *self)
{
    if (self == NULL)
        return;
    if (waiting == self)
        waiting = NULL;
    g_source_destroy(&self->source);
    eb_fd_clear(&self->fd);
    g_source_unref(&self->source);
}

static void
watch_init(EbWatch *watch, int fd, EbWatchFunc func, gpointer data)
{
    watch->fd = fd;
    watch->func = func;
    watch->data = data;
    watch->queued = FALSE;
    watch->link.data = watch;
    watch->link.prev = watch->link.next = NULL;
}

gboolean
eb_poller_add(EbPoller *self, EbWatch *watch, int fd, guint32 events, EbWatchFunc func, gpointer data)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = watch};

    watch_init(watch, fd, func, data);
    watch->added = epoll_ctl(self->fd, EPOLL_CTL_ADD, fd, &event) == 0;
    return watch->added;
}

static void
forget(EbPoller *self, EbWatch *watch)
{
    if (watch->queued)
        g_queue_unlink(&self->queue, &watch->link);
    watch->queued = FALSE;
    watch->added = FALSE;
    /* The running batch may still hold an event of it, and its memory goes now. */
    for (int i = 0; i < self->n_events; i++) {
        if (self->events[i].data.ptr == watch)
            self->events[i].data.ptr = NULL;
    }
}

gboolean
eb_poller_hand_over(EbPoller *self, EbWatch *from, EbWatch *to, guint32 events, EbWatchFunc func, gpointer data)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = to};
    int fd = from->fd;
    gboolean was_added = from->added;

    forget(self, from);
    from->fd = -1;
    if (!was_added)
        return eb_poller_add(self, to, fd, events, func, data);
    watch_init(to, fd, func, data);
    to->added = epoll_ctl(self->fd, EPOLL_CTL_MOD, fd, &event) == 0;
    return to->added;
}

gboolean
eb_poller_modify(EbPoller *self, EbWatch *watch, guint32 events)
{
    struct epoll_event event = {.events = events | EPOLLET, .data.ptr = watch};

    return epoll_ctl(self->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0;
}

void
eb_poller_remove(EbPoller *self, EbWatch *watch)
{
    if (watch->added)
        epoll_ctl(self->fd, EPOLL_CTL_DEL, watch->fd, NULL);
    forget(self, watch);
}

void
eb_poller_close(EbPoller *self, EbWatch *watch)
{
    forget(self, watch);
    /* No descriptor here is ever duplicated, so closing takes it out of the epoll set. */
    eb_fd_clear(&watch->fd);
}

void
eb_poller_requeue(EbPoller *self, EbWatch *watch)
{
    if (watch->queued || !watch->added)
        return;
    watch->queued = TRUE;
    g_queue_push_tail_link(&self->queue, &watch->link);
}
