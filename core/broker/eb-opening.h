/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"
#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/** EbOpening: what happens before bytes are copied unseen: dialling, and for a WebSocket its handshake. */
typedef struct _EbOpening EbOpening;

/**
 * EbOpeningFunc: the opening is gone afterwards.
 * @fd: (transfer full): connected; -1 when there is nothing to copy
 * @answer: (nullable): what the guest is told, and with @fd what the host sent behind it
 * @refusal: (nullable): in place of @answer
 */
typedef void (*EbOpeningFunc)(gpointer user_data, int fd, const EbAddress *address, GString *answer,
                              const EbRefusal *refusal);

/**
 * eb_opening_start: for a route of kind EB_ROUTE_TUNNEL or EB_ROUTE_WEBSOCKET.
 * @slot: (out): where the caller keeps the running opening; NULL again right before @func is called, which may be before
 *   this returns
 */
void eb_opening_start(EbBroker *broker, EbBrokerConfig *config, const EbHttpRequest *request, const EbRoute *route,
                      EbOpeningFunc func, gpointer user_data, EbOpening **slot);
/** eb_opening_tick: looks at the deadlines; may call the function. */
void eb_opening_tick(EbOpening *self, gint64 now);
/** eb_opening_cancel: the function is not called any more. */
void eb_opening_cancel(EbOpening *self);

G_END_DECLS
