/* SPDX-License-Identifier: MIT */
/* Messages between the service and a broker, as either side reads them. */
#include <string.h>

#include "core/broker/eb-broker-config.h"
#include "core/broker/eb-broker-report.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

static void
read_message(EbBrokerStage *stage, const guint8 *bytes, gsize length)
{
    g_autoptr(EbBrokerConfig) config = NULL;
    g_autoptr(JsonObject) row = NULL;
    g_autofree char *host = NULL;
    EbBrokerMsg msg;
    guint64 serial;
    guint port;

    if (!eb_broker_msg_decode(bytes, length, &msg, NULL))
        return;
    row = eb_broker_report_audit(&msg, "session");
    host = eb_broker_report_target(&msg, &port);
    g_assert(port <= 65535);
    if (!eb_broker_stage_take(stage, &msg, &config, &serial, NULL))
        g_assert(config == NULL);
}

/* The input is a series of messages, each behind two bytes of its length; and one message as a whole. */
int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    g_autoptr(EbBrokerStage) stage = eb_broker_stage_new();
    g_autofree guint8 *copy = g_memdup2(bytes, length);

    read_message(stage, copy, length);
    for (gsize at = 0; at + 2 <= length;) {
        gsize size = (gsize)bytes[at] | (gsize)bytes[at + 1] << 8;

        size = MIN(size, length - at - 2);
        g_clear_pointer(&copy, g_free);
        copy = g_memdup2(bytes + at + 2, size);
        read_message(stage, copy, size);
        at += 2 + size;
    }
    return 0;
}
