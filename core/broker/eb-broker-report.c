/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-report.h"

#include <string.h>

static void
set_string(JsonObject *row, const char *member, const EbBrokerMsg *msg, EbBrokerTag tag)
{
    g_autofree char *text = eb_broker_msg_string(msg, tag);

    if (text != NULL)
        json_object_set_string_member(row, member, text);
    else
        json_object_set_null_member(row, member);
}

static void
set_number(JsonObject *row, const char *member, const EbBrokerMsg *msg, EbBrokerTag tag)
{
    json_object_set_int_member(row, member, (gint64)MIN(eb_broker_msg_number(msg, tag, 0), (guint64)G_MAXINT64));
}

JsonObject *
eb_broker_report_audit(const EbBrokerMsg *msg, const char *session)
{
    JsonObject *row = json_object_new();

    json_object_set_string_member(row, "session", session);
    set_string(row, "kind", msg, EB_BROKER_TAG_KIND);
    set_string(row, "host", msg, EB_BROKER_TAG_HOST);
    set_number(row, "port", msg, EB_BROKER_TAG_PORT);
    set_string(row, "address", msg, EB_BROKER_TAG_ADDRESS);
    set_number(row, "bytes_up", msg, EB_BROKER_TAG_BYTES_UP);
    set_number(row, "bytes_down", msg, EB_BROKER_TAG_BYTES_DOWN);
    set_number(row, "ms", msg, EB_BROKER_TAG_MS);
    set_string(row, "decision", msg, EB_BROKER_TAG_DECISION);
    set_number(row, "status", msg, EB_BROKER_TAG_STATUS);
    set_string(row, "rule", msg, EB_BROKER_TAG_RULE);
    set_string(row, "provider", msg, EB_BROKER_TAG_NAME);
    set_number(row, "lost", msg, EB_BROKER_TAG_LOST);
    return row;
}

char *
eb_broker_report_target(const EbBrokerMsg *msg, guint *port)
{
    g_autofree char *target = eb_broker_msg_string(msg, EB_BROKER_TAG_HOST);
    char *colon = target != NULL ? strrchr(target, ':') : NULL;
    gsize length;

    *port = 0;
    if (colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") == strlen(colon + 1)) {
        *port = (guint)MIN(g_ascii_strtoull(colon + 1, NULL, 10), 65535u);
        *colon = '\0';
    }
    length = target != NULL ? strlen(target) : 0;
    /* Rules name an IPv6 address without its brackets. */
    if (length > 2 && target[0] == '[' && target[length - 1] == ']')
        return g_strndup(target + 1, length - 2);
    return g_steal_pointer(&target);
}
