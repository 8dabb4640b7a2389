/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-report.h"

#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/base/eb-spawn.h"
#include "core/base/eb-unix.h"

/* Bytes of a model's name; what is longer is none. */
#define MAX_MODEL 96

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

char *
eb_broker_report_call(const EbBrokerMsg *msg)
{
    guint64 number = MIN(eb_broker_msg_number(msg, EB_BROKER_TAG_NUMBER, 0), (guint64)G_MAXINT32);
    char *found = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);
    char *name = found != NULL ? g_strdup(found) : g_strdup_printf("number %" G_GUINT64_FORMAT, number);

    free(found);
    return name;
}

char *
eb_broker_report_death(int status, const char *call)
{
    g_autofree char *how = eb_child_describe_status(status);

    if (!WIFSIGNALED(status))
        return g_steal_pointer(&how);
    if (WTERMSIG(status) != SIGSYS)
        return g_strdup_printf("was %s", how);
    if (call != NULL)
        return g_strdup_printf("was %s: system call %s is not allowed", how, call);
    return g_strdup_printf("was %s: a system call of those that end it at once, such as execve, ptrace or mount", how);
}

/* (transfer full): an ASK, MORE or USED */
static JsonObject *
read_budget(const EbBrokerMsg *msg)
{
    static const struct {
        const char *member;
        EbBrokerTag tag;
    } numbers[] = {{"tokens_in", EB_BROKER_TAG_TOKENS_IN},
                   {"tokens_out", EB_BROKER_TAG_TOKENS_OUT},
                   {"tokens_cached", EB_BROKER_TAG_TOKENS_CACHED},
                   {"tokens_written", EB_BROKER_TAG_TOKENS_WRITTEN}};
    JsonObject *told = json_object_new();
    g_autofree char *model = eb_broker_msg_string(msg, EB_BROKER_TAG_MODEL);

    set_number(told, "id", msg, EB_BROKER_TAG_SERIAL);
    set_string(told, "provider", msg, EB_BROKER_TAG_NAME);
    if (model != NULL && strlen(model) < MAX_MODEL)
        json_object_set_string_member(told, "model", model);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        json_object_set_int_member(
            told, numbers[i].member,
            (gint64)MIN(eb_broker_msg_number(msg, numbers[i].tag, 0), (guint64)EB_BROKER_MAX_TOKENS));
    json_object_set_boolean_member(told, "flag", eb_broker_msg_number(msg, EB_BROKER_TAG_FLAGS, 0) != 0);
    return told;
}

static void
emit_provider_error(GObject *ctl, const EbBrokerMsg *msg)
{
    g_autofree char *name = eb_broker_msg_string(msg, EB_BROKER_TAG_NAME);
    g_autofree char *text = eb_broker_msg_string(msg, EB_BROKER_TAG_TEXT);

    if (name != NULL && text != NULL)
        g_signal_emit_by_name(ctl, "provider-error", name,
                              (guint)MIN(eb_broker_msg_number(msg, EB_BROKER_TAG_STATUS, 0), 999u), text);
}

static void
emit_canary(GObject *ctl, const EbBrokerMsg *msg)
{
    g_autofree char *where = eb_broker_msg_string(msg, EB_BROKER_TAG_TEXT);

    if (where != NULL)
        g_signal_emit_by_name(ctl, "canary", where);
}

void
eb_broker_report_emit(GObject *ctl, const EbBrokerMsg *msg, const char *session)
{
    g_autoptr(JsonObject) told = NULL;

    switch ((int)msg->type) {
    case EB_BROKER_MSG_AUDIT:
        told = eb_broker_report_audit(msg, session);
        g_signal_emit_by_name(ctl, "audit", told);
        break;
    case EB_BROKER_MSG_PROVIDER_ERROR:
        emit_provider_error(ctl, msg);
        break;
    case EB_BROKER_MSG_CANARY_SEEN:
        emit_canary(ctl, msg);
        break;
    case EB_BROKER_MSG_ASK:
    case EB_BROKER_MSG_MORE:
    case EB_BROKER_MSG_USED:
        told = read_budget(msg);
        g_signal_emit_by_name(ctl, "budget", (guint)msg->type, told);
        break;
    default:
        break;
    }
}

void
eb_broker_report_send_grant(int fd, guint64 id, guint64 tokens, guint scope, gboolean later)
{
    guint8 buffer[128];
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, buffer, sizeof buffer, EB_BROKER_MSG_GRANT);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, id);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_OUT, tokens);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_NUMBER, scope);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_FLAGS, later ? 1 : 0);
    eb_unix_send(fd, writer.buffer, eb_broker_writer_end(&writer), NULL, 0, NULL);
}
