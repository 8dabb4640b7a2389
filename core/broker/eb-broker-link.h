/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"
#include "core/broker/eb-usage-scan.h"

G_BEGIN_DECLS

/** EB_BROKER_LINK_QUEUE: messages waiting for the service; while there are more, nothing new of the guest's is taken. */
#define EB_BROKER_LINK_QUEUE 1024
/** EB_BROKER_LINK_MAX: and what can still be said of all that is open then: a row, a usage, a failure each. */
#define EB_BROKER_LINK_MAX (EB_BROKER_LINK_QUEUE + 3 * EB_BROKER_MAX_CONNECTIONS)

/** EbBrokerLink: the broker's end of the pair to the service. */

/** eb_broker_link_new: @fd: (transfer full); @closed: called once when the service is gone. */
EbBrokerLink *eb_broker_link_new(EbBroker *broker, int fd, void (*closed)(gpointer user_data), gpointer user_data);
void eb_broker_link_free(EbBrokerLink *self);
gboolean eb_broker_link_is_full(EbBrokerLink *self);
void eb_broker_link_send_audit(EbBrokerLink *self, const EbAudit *audit);
void eb_broker_link_send_denied(EbBrokerLink *self, const EbRefusal *refusal);
void eb_broker_link_send_provider_error(EbBrokerLink *self, const char *provider, guint status, const char *text);
/** eb_broker_link_send_ready: @lacking: (nullable): what the sandbox lacks on this host */
/** eb_broker_link_send_ask: @whole: all of it or nothing. */
void eb_broker_link_send_ask(EbBrokerLink *self, guint64 id, const char *provider, const char *model, guint64 tokens_in,
                             guint64 tokens_out, gboolean whole);
void eb_broker_link_send_more(EbBrokerLink *self, guint64 id, guint64 tokens);
void eb_broker_link_send_used(EbBrokerLink *self, guint64 id, const char *provider, const EbUsage *usage);
/** eb_broker_link_send_canary: @where: static */
void eb_broker_link_send_canary(EbBrokerLink *self, const char *where);
void eb_broker_link_send_ready(EbBrokerLink *self, const char *lacking);

/**
 * eb_broker_link_receive_hello: waits at most @timeout_ms for the first message, before there is a loop.
 * @listener: (out): descriptor of the listening socket; @ca: (out) (nullable) (transfer full): extra certificates
 */
gboolean eb_broker_link_receive_hello(int fd, guint timeout_ms, GBytes **ca, GError **error);

G_END_DECLS
