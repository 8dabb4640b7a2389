/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-canary.h"

#include <string.h>

#include "core/broker/eb-broker-link.h"

static void
keep_tail(EbCanaryTail *tail, const char *bytes, gsize length)
{
    gsize fresh = MIN(length, EB_CANARY_TAIL);
    gsize kept = MIN(tail->length, EB_CANARY_TAIL - fresh);

    memmove(tail->bytes, tail->bytes + tail->length - kept, kept);
    memcpy(tail->bytes + kept, bytes + length - fresh, fresh);
    tail->length = (guint)(kept + fresh);
}

static gboolean
across(EbRedactSet *canary, const EbCanaryTail *tail, const char *bytes, gsize length)
{
    char joint[2 * EB_CANARY_TAIL];
    gsize fresh = MIN(length, EB_CANARY_TAIL);

    memcpy(joint, tail->bytes, tail->length);
    memcpy(joint + tail->length, bytes, fresh);
    return eb_redact_set_find(canary, joint, tail->length + fresh);
}

void
eb_canary_look(EbBroker *broker, EbCanaryTail **tail, const char *bytes, gsize length, const char *where)
{
    EbRedactSet *canary = broker->config != NULL ? broker->config->canary : NULL;

    if (canary == NULL || broker->canary_seen || length == 0)
        return;
    if (*tail == NULL)
        *tail = g_new0(EbCanaryTail, 1);
    if (eb_redact_set_find(canary, bytes, length) || across(canary, *tail, bytes, length)) {
        broker->canary_seen = TRUE;
        if (broker->link != NULL)
            eb_broker_link_send_canary(broker->link, where);
        return;
    }
    keep_tail(*tail, bytes, length);
}
