/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "core/broker/eb-canary.h"

/* After a pipe was refused, so many are not asked for. */
#define REFUSED_FOR 1000
/* Bytes one direction moves before the others have their turn. */
#define TURN (1024 * 1024)

typedef struct {
    int ends[2]; /* (owned) */
    gsize filled;
} Pipe;

struct _EbPipePool {
    guint n_made;
    guint n_idle;
    guint refused;                /* so many more times without asking again */
    Pipe *idle[EB_PIPE_POOL_MAX]; /* (owned) */
};

typedef struct _Tunnel Tunnel;

typedef struct {
    EbWatch *from;
    EbWatch *to;
    gboolean readable;
    gboolean writable;
    gboolean ending; /* the sender said that it is done; read until it shows */
    gboolean ended;
    gboolean shut;
    gboolean bulk; /* the last read filled the buffer: worth a pipe */
    Pipe *pipe;    /* (owned) (nullable) */
    char *pending; /* (owned) (nullable): what the receiver did not take */
    gsize n_pending;
    gsize pending_at;
    guint64 bytes;
} Direction;

struct _Tunnel {
    EbBroker *broker; /* (unowned) */
    EbTicked ticked;
    EbWatch client;   /* fd owned */
    EbWatch upstream; /* fd owned */
    gboolean watches_client_out;
    Direction up;
    Direction down;
    gint64 active_at;
    EbAudit audit;
    EbCanaryTail *canary; /* (owned) (nullable) */
};

/* --- pipes --- */

EbPipePool *
eb_pipe_pool_new(void)
{
    return g_new0(EbPipePool, 1);
}

static void
pipe_free(Pipe *pipe)
{
    eb_fd_clear(&pipe->ends[0]);
    eb_fd_clear(&pipe->ends[1]);
    g_free(pipe);
}

void
eb_pipe_pool_free(EbPipePool *self)
{
    for (guint i = 0; i < self->n_idle; i++)
        pipe_free(self->idle[i]);
    g_free(self);
}

static Pipe *
pool_take(EbPipePool *self)
{
    Pipe *pipe;

    if (self->n_idle > 0)
        return self->idle[--self->n_idle];
    if (self->n_made >= EB_PIPE_POOL_MAX)
        return NULL;
    if (self->refused > 0) {
        self->refused--;
        return NULL;
    }
    pipe = g_new0(Pipe, 1);
    if (pipe2(pipe->ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        g_free(pipe);
        return NULL;
    }
    /* Refused when the account's pipes hold too many pages already; what is left then is so small that copying is less. */
    if (fcntl(pipe->ends[1], F_SETPIPE_SZ, EB_PIPE_SIZE) < 0) {
        self->refused = REFUSED_FOR;
        pipe_free(pipe);
        return NULL;
    }
    self->n_made++;
    return pipe;
}

static void
pool_give(EbPipePool *self, Pipe *pipe)
{
    if (pipe->filled == 0 && self->n_idle < EB_PIPE_POOL_MAX) {
        self->idle[self->n_idle++] = pipe;
        return;
    }
    /* Bytes of a broken tunnel are in it. */
    self->n_made--;
    pipe_free(pipe);
}

/* --- one direction --- */

/* The receiver takes nothing now. A unix socket tells of room whenever its other end has read: it is watched for that
 * only once room was missed. TCP tells of it when somebody waits. */
static void
missed_room(Tunnel *self, Direction *direction)
{
    direction->writable = FALSE;
    if (direction->to == &self->client && !self->watches_client_out)
        self->watches_client_out =
            eb_poller_modify(self->broker->poller, &self->client, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

typedef enum {
    STEP_AGAIN,  /* moved something */
    STEP_WAIT,   /* nothing to do until an event */
    STEP_BROKEN, /* the tunnel is over */
} Step;

static void
release_pipe(Tunnel *self, Direction *direction)
{
    if (direction->pipe != NULL)
        pool_give(self->broker->pipes, g_steal_pointer(&direction->pipe));
}

static void
drop_pending(Tunnel *self, Direction *direction)
{
    if (direction->pending == NULL)
        return;
    self->broker->stalled -= direction->n_pending;
    g_clear_pointer(&direction->pending, g_free);
    direction->n_pending = direction->pending_at = 0;
}

static Step
keep_pending(Tunnel *self, Direction *direction, const char *bytes, gsize length)
{
    missed_room(self, direction);
    if (self->broker->stalled + length > EB_BROKER_MAX_STALLED)
        return STEP_BROKEN;
    self->broker->stalled += length;
    direction->pending = g_memdup2(bytes, length);
    direction->n_pending = length;
    direction->pending_at = 0;
    return STEP_WAIT;
}

static Step
flush_pending(Tunnel *self, Direction *direction)
{
    ssize_t sent = send(direction->to->fd, direction->pending + direction->pending_at,
                        direction->n_pending - direction->pending_at, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (sent < 0) {
        if (errno == EINTR)
            return STEP_AGAIN;
        if (errno != EAGAIN)
            return STEP_BROKEN;
        missed_room(self, direction);
        return STEP_WAIT;
    }
    direction->pending_at += (gsize)sent;
    direction->bytes += (guint64)sent;
    if (direction->pending_at == direction->n_pending)
        drop_pending(self, direction);
    return STEP_AGAIN;
}

static Step
flush_pipe(Tunnel *self, Direction *direction)
{
    ssize_t moved = splice(direction->pipe->ends[0], NULL, direction->to->fd, NULL, direction->pipe->filled,
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (moved < 0) {
        if (errno == EINTR)
            return STEP_AGAIN;
        if (errno != EAGAIN)
            return STEP_BROKEN;
        missed_room(self, direction);
        return STEP_WAIT;
    }
    if (moved == 0)
        return STEP_BROKEN;
    direction->pipe->filled -= (gsize)moved;
    direction->bytes += (guint64)moved;
    return STEP_AGAIN;
}

static Step
fill_pipe(Direction *direction)
{
    ssize_t moved = splice(direction->from->fd, NULL, direction->pipe->ends[1], NULL, EB_PIPE_SIZE,
                           SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

    if (moved > 0) {
        direction->pipe->filled = (gsize)moved;
        return STEP_AGAIN;
    }
    if (moved == 0) {
        direction->ended = TRUE;
        return STEP_AGAIN;
    }
    if (errno == EINTR)
        return STEP_AGAIN;
    if (errno != EAGAIN)
        return STEP_BROKEN;
    direction->readable = direction->bulk = FALSE;
    return STEP_AGAIN;
}

static Step
copy_some(Tunnel *self, Direction *direction)
{
    char *buffer = self->broker->scratch;
    ssize_t got = recv(direction->from->fd, buffer, EB_BROKER_SCRATCH, MSG_DONTWAIT), sent;

    if (got < 0) {
        if (errno == EINTR)
            return STEP_AGAIN;
        if (errno != EAGAIN)
            return STEP_BROKEN;
        direction->readable = FALSE;
        return STEP_AGAIN;
    }
    if (got == 0) {
        direction->ended = TRUE;
        return STEP_AGAIN;
    }
    /* A short read emptied the socket; only the end of the stream could be left behind it. */
    if (got < EB_BROKER_SCRATCH && !direction->ending)
        direction->readable = FALSE;
    direction->bulk = got >= 32 * 1024;
    if (direction == &self->up && direction->bytes < EB_CANARY_TUNNEL_BYTES)
        eb_canary_look(self->broker, &self->canary, buffer, (gsize)got, "a tunnel");
    sent = send(direction->to->fd, buffer, (gsize)got, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return STEP_BROKEN;
    sent = MAX(sent, 0);
    direction->bytes += (guint64)sent;
    if (sent < got)
        return keep_pending(self, direction, buffer + sent, (gsize)(got - sent));
    return STEP_AGAIN;
}

static Step
direction_step(Tunnel *self, Direction *direction)
{
    if (direction->shut)
        return STEP_WAIT;
    if (direction->pending != NULL)
        return direction->writable ? flush_pending(self, direction) : STEP_WAIT;
    if (direction->pipe != NULL && direction->pipe->filled > 0)
        return direction->writable ? flush_pipe(self, direction) : STEP_WAIT;
    if (direction->ended) {
        direction->shut = TRUE;
        release_pipe(self, direction);
        /* With both ways at their end the descriptors are closed next. */
        if (!self->up.shut || !self->down.shut)
            shutdown(direction->to->fd, SHUT_WR);
        return STEP_WAIT;
    }
    if (!direction->readable) {
        release_pipe(self, direction);
        return STEP_WAIT;
    }
    /* Bytes towards a unix socket are worth a pipe, those from one are not. */
    if (direction == &self->down && direction->bulk && direction->pipe == NULL)
        direction->pipe = pool_take(self->broker->pipes);
    return direction->pipe != NULL ? fill_pipe(direction) : copy_some(self, direction);
}

static Step
direction_run(Tunnel *self, Direction *direction)
{
    guint64 end = direction->bytes + TURN;
    Step step;

    do {
        step = direction_step(self, direction);
    } while (step == STEP_AGAIN && direction->bytes < end);
    return step;
}

/* --- the tunnel --- */

static void
tunnel_end(Tunnel *self)
{
    EbBroker *broker = self->broker;

    self->audit.bytes_up = self->up.bytes;
    self->audit.bytes_down = self->down.bytes;
    drop_pending(self, &self->up);
    drop_pending(self, &self->down);
    release_pipe(self, &self->up);
    release_pipe(self, &self->down);
    eb_poller_close(broker->poller, &self->client);
    eb_poller_close(broker->poller, &self->upstream);
    eb_broker_tick_remove(broker, &self->ticked);
    eb_audit_end(broker, &self->audit);
    g_free(self->canary);
    g_free(self);
    broker->n_connections--;
    eb_broker_resume_accept(broker);
}

static void
tunnel_run(Tunnel *self)
{
    Step up = direction_run(self, &self->up), down = STEP_BROKEN;

    if (up != STEP_BROKEN)
        down = direction_run(self, &self->down);
    if (up == STEP_BROKEN || down == STEP_BROKEN || (self->up.shut && self->down.shut)) {
        tunnel_end(self);
        return;
    }
    if (up == STEP_AGAIN || down == STEP_AGAIN)
        eb_poller_requeue(self->broker->poller, &self->client);
}

static void
note_events(Direction *sends, Direction *receives, guint32 events)
{
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        sends->readable = TRUE;
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0)
        sends->ending = TRUE;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
        receives->writable = TRUE;
}

static void
client_ready(EbWatch *watch, guint32 events)
{
    Tunnel *self = watch->data;

    self->active_at = g_get_monotonic_time();
    note_events(&self->up, &self->down, events);
    tunnel_run(self);
}

static void
upstream_ready(EbWatch *watch, guint32 events)
{
    Tunnel *self = watch->data;

    self->active_at = g_get_monotonic_time();
    note_events(&self->down, &self->up, events);
    tunnel_run(self);
}

static void
tunnel_tick(gpointer owner, gint64 now)
{
    Tunnel *self = owner;

    if (now - self->active_at < EB_BROKER_IDLE_WAIT && now - self->audit.started < EB_BROKER_TUNNEL_WAIT)
        return;
    self->audit.decision = "time-limit";
    tunnel_end(self);
}

void
eb_tunnel_start(EbBroker *broker, EbWatch *client, int upstream, const char *early, gsize n_early, EbAudit *audit)
{
    Tunnel *self = g_new0(Tunnel, 1);
    gboolean watched;

    self->broker = broker;
    self->audit = *audit;
    *audit = (EbAudit){0};
    self->active_at = g_get_monotonic_time();
    self->up = (Direction){.from = &self->client, .to = &self->upstream, .writable = TRUE};
    self->down = (Direction){.from = &self->upstream, .to = &self->client, .writable = TRUE};
    self->upstream.fd = upstream;
    eb_broker_tick_add(broker, &self->ticked, tunnel_tick, self);
    watched = eb_poller_hand_over(broker->poller, client, &self->client, EPOLLIN | EPOLLRDHUP, client_ready, self);
    watched = eb_poller_add(broker->poller, &self->upstream, upstream, EPOLLIN | EPOLLOUT | EPOLLRDHUP, upstream_ready,
                            self) &&
              watched;
    if (!watched || (n_early > 0 && keep_pending(self, &self->up, early, n_early) == STEP_BROKEN)) {
        tunnel_end(self);
        return;
    }
    /* Adding an edge-triggered watch tells what is possible now, so the first events bring everything else. */
    if (n_early > 0)
        self->up.writable = TRUE;
}
