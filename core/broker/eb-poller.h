/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/epoll.h>

#include <glib.h>

G_BEGIN_DECLS

/**
 * EbPoller: one epoll descriptor as a single GSource. GLib polls every descriptor it knows on each turn, so a source
 * for each tunnel would make every turn as slow as there are tunnels.
 *
 * Watches are edge-triggered: a function is told once that something became possible and tries until it is not, or
 * asks by eb_poller_requeue() to be called again after the others had their turn.
 */
typedef struct _EbPoller EbPoller;
typedef struct _EbWatch EbWatch;

/** EbWatchFunc: @events: EPOLLIN, EPOLLOUT, ... as new; 0 after a requeue. May remove any watch. */
typedef void (*EbWatchFunc)(EbWatch *watch, guint32 events);

struct _EbWatch {
    int fd; /* (unowned) */
    EbWatchFunc func;
    gpointer data;
    gboolean added;
    gboolean queued;
    GList link; /* in the queue */
};

EbPoller *eb_poller_new(GMainContext *context, GError **error);
void eb_poller_free(EbPoller *self);
/**
 * eb_poller_wait_for_context: waits in @context's place, whose source @self is: one system call a turn, not three.
 * For one poller of a process, and a context that has nothing else to poll; with other descriptors GLib waits as ever.
 */
void eb_poller_wait_for_context(EbPoller *self, GMainContext *context);

/** eb_poller_add: @watch: (transfer none): must be removed before it is freed and before @fd is closed. */
gboolean eb_poller_add(EbPoller *self, EbWatch *watch, int fd, guint32 events, EbWatchFunc func, gpointer data);
/** eb_poller_hand_over: @from's descriptor goes on as @to's, in one step; @from has none any more. As after adding, the
 *  first events say what is possible now. */
gboolean eb_poller_hand_over(EbPoller *self, EbWatch *from, EbWatch *to, guint32 events, EbWatchFunc func,
                             gpointer data);
gboolean eb_poller_modify(EbPoller *self, EbWatch *watch, guint32 events);
void eb_poller_remove(EbPoller *self, EbWatch *watch);
/** eb_poller_close: as remove, and closes the descriptor, which spares a system call. */
void eb_poller_close(EbPoller *self, EbWatch *watch);
/** eb_poller_requeue: calls @watch again in the next turn, after what is ready now. */
void eb_poller_requeue(EbPoller *self, EbWatch *watch);

G_END_DECLS
