/* SPDX-License-Identifier: MIT */
#include "guest/relay-flow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static uint8_t shared[FLOW_BUFFER];
static size_t held_total;

/* --- pipes: made when first needed, lent while bulk is on its way --- */

static struct {
    int ends[2];
    bool made;
    bool lent;
} pipes[FLOW_PIPES];

/* Asked for no more for a while after one was refused. */
static unsigned n_refused;

/* Once the pipes of an account hold too many pages the kernel makes tiny ones: less than copying. */
static bool
pipe_make(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return false;
    if (fcntl(ends[1], F_SETPIPE_SZ, FLOW_PIPE) >= 0 || fcntl(ends[1], F_GETPIPE_SZ) >= FLOW_PIPE_LEAST)
        return true;
    close(ends[0]);
    close(ends[1]);
    return false;
}

static bool
pipe_take(struct flow_end *end)
{
    for (int i = 0; i < FLOW_PIPES; i++) {
        if (pipes[i].lent)
            continue;
        if (!pipes[i].made) {
            if (n_refused > 0) {
                n_refused--;
                return false;
            }
            if (!pipe_make(pipes[i].ends)) {
                n_refused = FLOW_REFUSED_FOR;
                return false;
            }
        }
        pipes[i].made = pipes[i].lent = true;
        end->pipe = (int8_t)(i + 1);
        end->in_pipe = 0;
        return true;
    }
    return false;
}

static void
pipe_give(struct flow_end *end)
{
    int i = end->pipe - 1;

    if (end->pipe == 0)
        return;
    pipes[i].lent = false;
    if (end->in_pipe > 0) {
        /* Bytes of a connection that broke are in it. */
        close(pipes[i].ends[0]);
        close(pipes[i].ends[1]);
        pipes[i].made = false;
    }
    end->pipe = 0;
    end->in_pipe = 0;
}

void
flow_release(struct flow_end *end)
{
    pipe_give(end);
    held_total -= end->held_size;
    free(end->held);
    end->held = NULL;
    end->held_size = 0;
    end->held_at = 0;
}

static bool
hold(struct flow_end *end, const uint8_t *data, size_t size)
{
    end->held = malloc(size);
    if (end->held == NULL)
        return false;
    memcpy(end->held, data, size);
    end->held_size = (uint32_t)size;
    end->held_at = 0;
    held_total += size;
    return true;
}

/* Bytes taken, 0 when there is no room now, -1 when nothing can be written any more. */
static ssize_t
put(int fd, const uint8_t *data, size_t size)
{
    ssize_t sent;

    do
        sent = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
        return 0;
    return sent;
}

/* Nobody takes what @from says any more. Not an end of the connection: an answer given early, before the whole
 * request was read, may still be on its way back. */
static enum flow_result
give_up(struct flow_end *from, struct flow_end *to)
{
    flow_release(to);
    from->done = true;
    shutdown(from->fd, SHUT_RD);
    return to->done ? FLOW_CLOSE : FLOW_WAIT;
}

/* TRUE when nothing is held any more. */
static bool
flush_held(struct flow_end *to, bool *broken)
{
    ssize_t sent = put(to->fd, to->held + to->held_at, to->held_size - to->held_at);

    *broken = sent < 0;
    if (sent < 0)
        return false;
    to->held_at += (uint32_t)sent;
    if (to->held_at < to->held_size)
        return false;
    flow_release(to);
    return true;
}

static enum flow_result
end_direction(struct flow_end *from, struct flow_end *to)
{
    from->done = true;
    shutdown(to->fd, SHUT_WR);
    return to->done ? FLOW_CLOSE : FLOW_WAIT;
}

/* Bytes that went through the pipe into @to; FLOW_AGAIN when it is empty. */
static enum flow_result
drain_pipe(struct flow_end *to, size_t *moved)
{
    while (to->in_pipe > 0) {
        ssize_t sent =
            splice(pipes[to->pipe - 1].ends[0], NULL, to->fd, NULL, to->in_pipe, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS))
            return FLOW_WAIT;
        if (sent <= 0)
            return FLOW_ABORT;
        to->in_pipe -= (uint32_t)sent;
        *moved += (size_t)sent;
    }
    return FLOW_AGAIN;
}

/* FLOW_AGAIN while there may be more; FLOW_CLOSE at the end of what @from says. */
static enum flow_result
fill_pipe(struct flow_end *from, struct flow_end *to)
{
    ssize_t got;

    do
        got = splice(from->fd, NULL, pipes[to->pipe - 1].ends[1], NULL, FLOW_PIPE, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno != EAGAIN)
        return FLOW_ABORT;
    if (got == 0)
        return FLOW_CLOSE;
    if (got < 0) {
        from->readable = false;
        pipe_give(to);
        return FLOW_WAIT;
    }
    to->in_pipe = (uint32_t)got;
    from->bulk = got >= FLOW_BULK;
    return FLOW_AGAIN;
}

static enum flow_result
move_bulk(struct flow_end *from, struct flow_end *to, bool (*want_out)(struct flow_end *end))
{
    size_t moved = 0;

    while (moved < FLOW_TURN) {
        enum flow_result result = drain_pipe(to, &moved);
        if (result == FLOW_ABORT)
            return give_up(from, to);
        if (result == FLOW_WAIT)
            return want_out(to) ? FLOW_WAIT : FLOW_ABORT;
        if (!from->readable) {
            pipe_give(to);
            return FLOW_WAIT;
        }
        result = fill_pipe(from, to);
        if (result == FLOW_CLOSE) {
            pipe_give(to);
            return end_direction(from, to);
        }
        if (result != FLOW_AGAIN)
            return result;
    }
    return FLOW_AGAIN;
}

enum flow_result
flow_move(struct flow_end *from, struct flow_end *to, bool (*want_out)(struct flow_end *end))
{
    size_t moved = 0;
    bool broken = false;

    if (to->held != NULL && !flush_held(to, &broken))
        return broken ? give_up(from, to) : FLOW_WAIT;
    if (to->pipe != 0)
        return move_bulk(from, to, want_out);
    while (from->readable && !from->done) {
        size_t want = held_total < FLOW_MAX_HELD ? FLOW_BUFFER : FLOW_SMALL;
        if (from->bulk && from->splices && pipe_take(to))
            return move_bulk(from, to, want_out);
        ssize_t got = recv(from->fd, shared, want, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return FLOW_ABORT;
        if (got == 0)
            return end_direction(from, to);
        from->bulk = got >= FLOW_BULK;
        /* A short read has emptied the socket; the next bytes come with an event of their own. After a hang-up no
         * further event comes. */
        if (got < 0 || ((size_t)got < want && !from->hung_up))
            from->readable = false;
        if (got < 0)
            break;
        ssize_t sent = put(to->fd, shared, (size_t)got);
        if (sent < 0)
            return give_up(from, to);
        if (sent < got) {
            if (!hold(to, shared + sent, (size_t)(got - sent)) || !want_out(to))
                return FLOW_ABORT;
            return FLOW_WAIT;
        }
        moved += (size_t)got;
        if (moved >= FLOW_TURN && from->readable)
            return FLOW_AGAIN;
    }
    return FLOW_WAIT;
}
