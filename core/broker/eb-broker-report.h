/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-proto.h"

G_BEGIN_DECLS

/* What a broker reports, as the service keeps it. Every field may be missing or nonsense: the broker meets guests. */

/** eb_broker_report_audit: (transfer full): the row of the signal "audit". */
JsonObject *eb_broker_report_audit(const EbBrokerMsg *msg, const char *session);
/** eb_broker_report_target: (transfer full) (nullable): the host of a DENIED; @port: (out): 0 for a provider. */
char *eb_broker_report_target(const EbBrokerMsg *msg, guint *port);
/** eb_broker_report_call: (transfer full): the name of the system call of a CALL_REFUSED, or its number. */
char *eb_broker_report_call(const EbBrokerMsg *msg);
/**
 * eb_broker_report_death: (transfer full): how a broker ended, for people.
 * @status: as waitpid(2) gives it; @call: (nullable): what it said that its sandbox refused, if that is what ended it
 */
char *eb_broker_report_death(int status, const char *call);
/** eb_broker_report_emit: what a broker reports and nothing of its own life depends on, as a signal of @ctl. */
void eb_broker_report_emit(GObject *ctl, const EbBrokerMsg *msg, const char *session);
/** eb_broker_report_send_grant: to the broker behind @fd; what it does not take is not sent. */
void eb_broker_report_send_grant(int fd, guint64 id, guint64 tokens, guint scope, gboolean later);

G_END_DECLS
