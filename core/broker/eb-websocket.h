/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/**
 * The opening handshake of RFC 6455, from the middle: the one Upgrade that is forwarded. What follows a good answer is
 * copied unseen, like a tunnel; so both halves are checked strictly, and the guest gets a head of our own making.
 */

/** EB_WEBSOCKET_MAX_ANSWER: bytes of the answer's head. */
#define EB_WEBSOCKET_MAX_ANSWER (16 * 1024)

/** eb_websocket_check_request: section 4.2.1. @why: (out) (transfer none): what is wrong, lower case */
gboolean eb_websocket_check_request(const EbHttpRequest *request, const char **why);

/** eb_websocket_accept: (transfer full): what answers the key @key, section 4.2.2, 5.4 */
char *eb_websocket_accept(const char *key);

/** eb_websocket_request: (transfer full): the head to send upstream for a checked request. */
GString *eb_websocket_request(const EbHttpRequest *request, const EbRoute *route);

typedef enum {
    EB_WEBSOCKET_MORE,     /* more bytes are needed */
    EB_WEBSOCKET_SWITCHED, /* it speaks WebSocket from here on */
    EB_WEBSOCKET_DECLINED, /* a well-formed answer with another status */
    EB_WEBSOCKET_BAD,      /* neither; nothing of it may reach the guest */
} EbWebsocketResult;

/**
 * eb_websocket_answer:
 * @bytes: everything the host sent, from the start
 * @accept: what eb_websocket_accept() said of the request's key
 * @asked: (nullable): the request's Sec-WebSocket-Protocol
 * @head: empty; with SWITCHED and DECLINED filled with the head for the guest
 * @consumed: (out): with SWITCHED, bytes of the host's head; what follows belongs to the guest
 * @status: (out): with SWITCHED and DECLINED
 */
EbWebsocketResult eb_websocket_answer(const char *bytes, gsize length, const char *accept, const char *asked,
                                      GString *head, gsize *consumed, guint *status);

G_END_DECLS
