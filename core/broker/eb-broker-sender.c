/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-sender.h"

#include <sodium.h>
#include <string.h>

#include "core/base/eb-unix.h"

/* Hosts in one message. */
#define HOSTS_A_MESSAGE 100

enum {
    STEP_BEGIN,
    STEP_ALLOW,
    STEP_PROVIDER,
    STEP_COMMIT,
    STEP_DONE,
};

/* Locked memory with guard pages, made once; every message is put together here. */
static guint8 *
message_buffer(void)
{
    static guint8 *buffer;

    if (buffer == NULL && sodium_init() >= 0)
        buffer = sodium_malloc(EB_BROKER_MSG_MAX);
    if (buffer == NULL)
        g_error("out of locked memory");
    return buffer;
}

void
eb_broker_sender_clear(EbBrokerSender *self)
{
    g_clear_pointer(&self->rules, eb_broker_rules_free);
    self->step = STEP_DONE;
}

void
eb_broker_sender_set(EbBrokerSender *self, const EbBrokerRules *rules, guint64 serial)
{
    EbBrokerRules *copy = eb_broker_rules_copy(rules);

    eb_broker_sender_clear(self);
    self->rules = copy;
    self->serial = serial;
    self->step = STEP_BEGIN;
    self->index = self->part = 0;
}

gboolean
eb_broker_sender_is_busy(EbBrokerSender *self)
{
    return self->rules != NULL && self->step != STEP_DONE;
}

static void
write_begin(EbBrokerSender *self, EbBrokerWriter *writer)
{
    const EbBrokerRules *rules = self->rules;
    g_autoptr(GByteArray) ports = g_byte_array_new();

    for (guint i = 0; i < rules->n_ports; i++) {
        const guint8 bytes[2] = {(guint8)(rules->ports[i] & 0xff), (guint8)(rules->ports[i] >> 8)};

        g_byte_array_append(ports, bytes, sizeof bytes);
    }
    eb_broker_writer_begin(writer, message_buffer(), EB_BROKER_MSG_MAX, EB_BROKER_MSG_BEGIN);
    eb_broker_writer_number(writer, EB_BROKER_TAG_SERIAL, self->serial);
    eb_broker_writer_string(writer, EB_BROKER_TAG_SESSION, rules->session);
    eb_broker_writer_number(writer, EB_BROKER_TAG_FLAGS,
                            (rules->proxy ? EB_BROKER_FLAG_PROXY : 0) |
                                (rules->allow_internal ? EB_BROKER_FLAG_ALLOW_INTERNAL : 0) |
                                (rules->budget ? EB_BROKER_FLAG_BUDGET : 0));
    eb_broker_writer_number(writer, EB_BROKER_TAG_RESERVE, rules->reserve);
    eb_broker_writer_number(writer, EB_BROKER_TAG_OVERSHOOT, rules->overshoot);
    eb_broker_writer_number(writer, EB_BROKER_TAG_RELAY_PORT, rules->relay_port);
    eb_broker_writer_bytes(writer, EB_BROKER_TAG_PORTS, ports->data, ports->len);
    if (rules->canary != NULL) {
        g_auto(EbSecretView) view = eb_secret_view(rules->canary);

        eb_broker_writer_bytes(writer, EB_BROKER_TAG_CANARY, view.bytes, view.length);
    }
}

static void
write_provider(EbBrokerSender *self, EbBrokerWriter *writer)
{
    const EbBrokerProvider *provider = self->rules->providers->pdata[self->index];
    EbBrokerMsgType type = self->part == 0   ? EB_BROKER_MSG_PROVIDER
                           : self->part == 1 ? EB_BROKER_MSG_KEY
                                             : EB_BROKER_MSG_NONCE;

    eb_broker_writer_begin(writer, message_buffer(), EB_BROKER_MSG_MAX, type);
    eb_broker_writer_string(writer, EB_BROKER_TAG_NAME, provider->name);
    if (self->part == 0) {
        eb_broker_writer_string(writer, EB_BROKER_TAG_KIND, provider->kind);
        eb_broker_writer_string(writer, EB_BROKER_TAG_URL, provider->base_url);
    } else {
        g_auto(EbSecretView) view = eb_secret_view(self->part == 1 ? provider->key : provider->nonce);

        eb_broker_writer_bytes(writer, EB_BROKER_TAG_SECRET, view.bytes, view.length);
    }
}

/* FALSE when this step has nothing to send. */
static gboolean
write_step(EbBrokerSender *self, EbBrokerWriter *writer)
{
    const EbBrokerRules *rules = self->rules;

    switch (self->step) {
    case STEP_BEGIN:
        write_begin(self, writer);
        return TRUE;
    case STEP_ALLOW:
        if (rules->allow == NULL || rules->allow[self->index] == NULL)
            return FALSE;
        eb_broker_writer_begin(writer, message_buffer(), EB_BROKER_MSG_MAX, EB_BROKER_MSG_ALLOW);
        for (guint i = 0; i < HOSTS_A_MESSAGE && rules->allow[self->index + i] != NULL; i++)
            eb_broker_writer_string(writer, EB_BROKER_TAG_HOST, rules->allow[self->index + i]);
        return TRUE;
    case STEP_PROVIDER:
        if (self->index >= rules->providers->len)
            return FALSE;
        write_provider(self, writer);
        return TRUE;
    default:
        eb_broker_writer_begin(writer, message_buffer(), EB_BROKER_MSG_MAX, EB_BROKER_MSG_COMMIT);
        eb_broker_writer_number(writer, EB_BROKER_TAG_SERIAL, self->serial);
        return TRUE;
    }
}

static void
advance(EbBrokerSender *self, gboolean sent)
{
    if (!sent || self->step == STEP_BEGIN || self->step == STEP_COMMIT) {
        self->step++;
        self->index = self->part = 0;
    } else if (self->step == STEP_ALLOW) {
        for (guint i = 0; i < HOSTS_A_MESSAGE && self->rules->allow[self->index] != NULL; i++)
            self->index++;
    } else if (++self->part == 3) {
        self->part = 0;
        self->index++;
    }
}

gboolean
eb_broker_sender_run(EbBrokerSender *self, int fd, GError **error)
{
    while (eb_broker_sender_is_busy(self)) {
        g_autoptr(GError) local = NULL;
        EbBrokerWriter writer = {0};
        gssize sent = 0;

        if (write_step(self, &writer)) {
            gsize length = eb_broker_writer_end(&writer);

            if (length == 0) {
                eb_set_error(error, EB_ERROR_INVALID, "broker.rules", "a rule is too long for the broker");
                return FALSE;
            }
            sent = eb_unix_send(fd, writer.buffer, length, NULL, 0, &local);
            sodium_memzero(writer.buffer, length);
            if (sent < 0 && g_error_matches(local, EB_ERROR, EB_ERROR_BUSY))
                return TRUE;
            if (sent < 0) {
                g_propagate_error(error, g_steal_pointer(&local));
                return FALSE;
            }
        }
        advance(self, sent > 0);
    }
    eb_broker_sender_clear(self);
    return TRUE;
}

gboolean
eb_broker_sender_hello(int fd, GBytes *ca_pem, GError **error)
{
    EbBrokerWriter writer;
    gsize length;

    eb_broker_writer_begin(&writer, message_buffer(), EB_BROKER_MSG_MAX, EB_BROKER_MSG_HELLO);
    if (ca_pem != NULL)
        eb_broker_writer_bytes(&writer, EB_BROKER_TAG_CA, g_bytes_get_data(ca_pem, NULL), g_bytes_get_size(ca_pem));
    length = eb_broker_writer_end(&writer);
    if (length == 0) {
        eb_set_error(error, EB_ERROR_INVALID, "broker.ca", "the extra certificates are more than 64 KiB");
        return FALSE;
    }
    return eb_unix_send(fd, writer.buffer, length, NULL, 0, error) >= 0;
}
