/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"

G_BEGIN_DECLS

/**
 * A canary is a key that nobody has a use for, laid into the guest. Who sends it anywhere has taken what he found there;
 * the service is told once. What is encrypted to its destination (a tunnel's TLS) cannot be looked into.
 */

/** EB_CANARY_TAIL: bytes kept of what went before, for a canary in two pieces: longer than any shape of one. */
#define EB_CANARY_TAIL 512
/** EB_CANARY_TUNNEL_BYTES: what is looked at of a tunnel, from its begin. */
#define EB_CANARY_TUNNEL_BYTES (64 * 1024)

/** EbCanaryTail: of one stream; NULL until something was looked at. */
typedef struct {
    guint length;
    char bytes[EB_CANARY_TAIL];
} EbCanaryTail;

/**
 * eb_canary_look: looks for the canary in @bytes and what went before; nothing without one, or once it was seen.
 * @tail: (inout): of this stream; g_free() it at its end
 * @where: for the service: "a request", "a tunnel"; static
 */
void eb_canary_look(EbBroker *broker, EbCanaryTail **tail, const char *bytes, gsize length, const char *where);

G_END_DECLS
