/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One read at most, and the one buffer that all connections share. */
#define FLOW_BUFFER (64u * 1024)
/* Bytes read but not yet taken by the other side, all connections together; beyond it reads shrink to FLOW_SMALL,
 * which bounds the rest by the number of connections. */
#define FLOW_MAX_HELD (8u * 1024 * 1024)
#define FLOW_SMALL 4096u
/* Bytes moved for one connection before others have their turn. */
#define FLOW_TURN (1024u * 1024)

/* Pipes that bulk passes through unread, what counts as bulk, bytes of one and the least that is worth it, and how many
 * times none is asked for after one was refused; without one bytes are copied. */
#define FLOW_PIPES 16
#define FLOW_BULK (16 * 1024)
#define FLOW_PIPE (256 * 1024)
#define FLOW_PIPE_LEAST (64 * 1024)
#define FLOW_REFUSED_FOR 1000

/** flow_end: one of the two sockets of a connection. */
struct flow_end {
    int fd;
    bool readable; /* edge-triggered: stays true until a read came up short */
    bool hung_up;  /* its other side ended or failed: read on until that is seen */
    bool done;     /* nothing more will be read from it */
    bool want_out; /* registered for EPOLLOUT */
    bool splices;  /* bulk from it goes through a pipe */
    bool bulk;     /* the last read brought FLOW_BULK or more: worth a pipe */
    int8_t pipe;   /* what waits to be written to it is in there; 0 none, else its number plus one */
    uint32_t in_pipe;
    uint32_t held_size;
    uint32_t held_at;
    uint8_t *held; /* bytes waiting to be written to it */
};

/** flow_result: what became of a connection. */
enum flow_result {
    FLOW_WAIT,  /* waits for events */
    FLOW_AGAIN, /* its turn is over, there is more to do */
    FLOW_CLOSE, /* both directions ended well */
    FLOW_ABORT, /* a side failed: the other must not take it for a clean end */
};

/** flow_move: moves what can be moved from @from to @to. @want_out: called once @to must be watched for room. */
enum flow_result flow_move(struct flow_end *from, struct flow_end *to, bool (*want_out)(struct flow_end *end));

/** flow_release: frees what an end holds; the descriptor is the caller's. */
void flow_release(struct flow_end *end);
