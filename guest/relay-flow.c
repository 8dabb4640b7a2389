/* SPDX-License-Identifier: MIT */
#include "guest/relay-flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static uint8_t shared[FLOW_BUFFER];
static size_t held_total;

void
flow_release(struct flow_end *end)
{
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

enum flow_result
flow_move(struct flow_end *from, struct flow_end *to, bool (*want_out)(struct flow_end *end))
{
    size_t moved = 0;
    bool broken = false;

    if (to->held != NULL && !flush_held(to, &broken))
        return broken ? give_up(from, to) : FLOW_WAIT;
    while (from->readable && !from->done) {
        size_t want = held_total < FLOW_MAX_HELD ? FLOW_BUFFER : FLOW_SMALL;
        ssize_t got = recv(from->fd, shared, want, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno != EAGAIN)
            return FLOW_ABORT;
        if (got == 0)
            return end_direction(from, to);
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
