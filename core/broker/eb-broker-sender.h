/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-ctl.h"
#include "core/broker/eb-broker-proto.h"

G_BEGIN_DECLS

/**
 * EbBrokerSender: sends one set of rules message by message, as the socket takes them. A secret is put into a message
 * at the moment it is sent, in locked memory, and wiped right after.
 */
typedef struct {
    EbBrokerRules *rules; /* (owned) (nullable): NULL = nothing to send */
    guint64 serial;
    guint step;
    guint index;
    guint part;
} EbBrokerSender;

void eb_broker_sender_clear(EbBrokerSender *self);
/** eb_broker_sender_set: starts over with @rules (copied). */
void eb_broker_sender_set(EbBrokerSender *self, const EbBrokerRules *rules, guint64 serial);
gboolean eb_broker_sender_is_busy(EbBrokerSender *self);
/** eb_broker_sender_run: TRUE also when the socket is full for now; call again when it is writable. */
gboolean eb_broker_sender_run(EbBrokerSender *self, int fd, GError **error);
/** eb_broker_sender_hello: the first message. */
gboolean eb_broker_sender_hello(int fd, GBytes *ca_pem, GError **error);

G_END_DECLS
