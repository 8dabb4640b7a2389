/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-proto.h"

#include <string.h>

#include "core/base/eb-shown.h"

/* magic, version, type, then length of the whole message; a field is tag and length before its bytes. */
#define MAGIC 0xeb
#define VERSION 1
#define HEAD 8
#define FIELD_HEAD 5

static guint32
get_u32(const guint8 *bytes)
{
    return (guint32)bytes[0] | (guint32)bytes[1] << 8 | (guint32)bytes[2] << 16 | (guint32)bytes[3] << 24;
}

static void
set_u32(guint8 *bytes, guint32 value)
{
    for (guint i = 0; i < 4; i++)
        bytes[i] = (guint8)(value >> (8 * i));
}

static gboolean
refuse(GError **error, const char *what)
{
    eb_set_error(error, EB_ERROR_PROTOCOL, "broker.message", "malformed broker message: %s", what);
    return FALSE;
}

gboolean
eb_broker_msg_decode(const guint8 *bytes, gsize length, EbBrokerMsg *msg, GError **error)
{
    gsize at = HEAD;

    msg->n_fields = 0;
    if (length < HEAD || length > EB_BROKER_MSG_MAX)
        return refuse(error, "length");
    if (bytes[0] != MAGIC || bytes[1] != VERSION || bytes[3] != 0)
        return refuse(error, "version");
    if (get_u32(bytes + 4) != length)
        return refuse(error, "length does not match");
    msg->type = (EbBrokerMsgType)bytes[2];
    while (at < length) {
        guint32 field_length;

        if (length - at < FIELD_HEAD || msg->n_fields == EB_BROKER_MSG_MAX_FIELDS)
            return refuse(error, "fields");
        field_length = get_u32(bytes + at + 1);
        if (field_length > length - at - FIELD_HEAD)
            return refuse(error, "field length");
        msg->fields[msg->n_fields].tag = bytes[at];
        msg->fields[msg->n_fields].length = field_length;
        msg->fields[msg->n_fields].bytes = bytes + at + FIELD_HEAD;
        msg->n_fields++;
        at += FIELD_HEAD + field_length;
    }
    return TRUE;
}

const guint8 *
eb_broker_msg_bytes(const EbBrokerMsg *msg, EbBrokerTag tag, gsize *length)
{
    for (guint i = 0; i < msg->n_fields; i++) {
        if (msg->fields[i].tag == tag) {
            *length = msg->fields[i].length;
            return msg->fields[i].bytes;
        }
    }
    *length = 0;
    return NULL;
}

char *
eb_broker_msg_string(const EbBrokerMsg *msg, EbBrokerTag tag)
{
    gsize length;
    const char *bytes = (const char *)eb_broker_msg_bytes(msg, tag, &length);

    if (bytes == NULL || length > EB_BROKER_TEXT_MAX || !g_utf8_validate(bytes, (gssize)length, NULL))
        return NULL;
    for (const char *at = bytes; at < bytes + length; at = g_utf8_next_char(at)) {
        if (!eb_is_shown(g_utf8_get_char(at)))
            return NULL;
    }
    return g_strndup(bytes, length);
}

guint64
eb_broker_msg_number(const EbBrokerMsg *msg, EbBrokerTag tag, guint64 fallback)
{
    gsize length;
    const guint8 *bytes = eb_broker_msg_bytes(msg, tag, &length);

    if (bytes == NULL || length != 8)
        return fallback;
    return (guint64)get_u32(bytes) | (guint64)get_u32(bytes + 4) << 32;
}

void
eb_broker_writer_begin(EbBrokerWriter *self, guint8 *buffer, gsize size, EbBrokerMsgType type)
{
    self->buffer = buffer;
    self->size = size;
    self->length = HEAD;
    self->overflow = size < HEAD;
    if (self->overflow)
        return;
    memset(buffer, 0, HEAD);
    buffer[0] = MAGIC;
    buffer[1] = VERSION;
    buffer[2] = (guint8)type;
}

void
eb_broker_writer_bytes(EbBrokerWriter *self, EbBrokerTag tag, const void *bytes, gsize length)
{
    if (self->overflow || length > G_MAXUINT32 || self->size - self->length < FIELD_HEAD ||
        self->size - self->length - FIELD_HEAD < length) {
        self->overflow = TRUE;
        return;
    }
    self->buffer[self->length] = (guint8)tag;
    set_u32(self->buffer + self->length + 1, (guint32)length);
    if (length > 0)
        memcpy(self->buffer + self->length + FIELD_HEAD, bytes, length);
    self->length += FIELD_HEAD + length;
}

void
eb_broker_writer_string(EbBrokerWriter *self, EbBrokerTag tag, const char *text)
{
    if (text != NULL)
        eb_broker_writer_bytes(self, tag, text, MIN(strlen(text), EB_BROKER_TEXT_MAX));
}

void
eb_broker_writer_number(EbBrokerWriter *self, EbBrokerTag tag, guint64 value)
{
    guint8 bytes[8];

    set_u32(bytes, (guint32)value);
    set_u32(bytes + 4, (guint32)(value >> 32));
    eb_broker_writer_bytes(self, tag, bytes, sizeof bytes);
}

gsize
eb_broker_writer_end(EbBrokerWriter *self)
{
    if (self->overflow || self->length > EB_BROKER_MSG_MAX)
        return 0;
    set_u32(self->buffer + 4, (guint32)self->length);
    return self->length;
}
