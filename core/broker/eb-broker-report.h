/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-proto.h"

G_BEGIN_DECLS

/* What a broker reports, as the service keeps it. Every field may be missing or nonsense: the broker meets guests. */

/** eb_broker_report_audit: (transfer full): the row of the signal "audit". */
JsonObject *eb_broker_report_audit(const EbBrokerMsg *msg, const char *session);
/** eb_broker_report_target: (transfer full) (nullable): the host of a DENIED; @port: (out): 0 for a provider. */
char *eb_broker_report_target(const EbBrokerMsg *msg, guint *port);

G_END_DECLS
