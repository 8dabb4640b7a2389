/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * The messages between the service and a broker, over a SOCK_SEQPACKET pair: one message a packet, fields of tag,
 * length and bytes. Neither side trusts the other's bytes: the broker talks to guests.
 *
 * The service sends HELLO, then BEGIN, ALLOW..., PROVIDER, KEY, NONCE..., COMMIT; rules take effect
 * with COMMIT and not before. The broker answers APPLIED or FAILED, and reports with the other types.
 */

/** EB_BROKER_MSG_MAX: bytes of one message: the longest secret, and room for its name. */
#define EB_BROKER_MSG_MAX (EB_SECRET_MAX_BYTES + 1024)
/** EB_BROKER_MSG_MAX_FIELDS: fields of one message. */
#define EB_BROKER_MSG_MAX_FIELDS 128
/** EB_BROKER_TEXT_MAX: bytes of one text field. */
#define EB_BROKER_TEXT_MAX 2048
/** EB_BROKER_MAX_PROVIDERS: providers of one session. */
#define EB_BROKER_MAX_PROVIDERS 32
/** EB_BROKER_MAX_TOKENS: of one count, which is of one request; what is more is taken for this. */
#define EB_BROKER_MAX_TOKENS G_GUINT64_CONSTANT(1000000000)
/** EB_BROKER_CONTROL_FD: where a broker finds its end of the pair. */
#define EB_BROKER_CONTROL_FD 3
/**
 * EB_BROKER_LISTENER_FD: where it finds the listener. Inherited, not sent: guest uid 1000 is the service's own account, and
 * the kernel counts descriptors in flight for the account, so one guest could keep the service from sending any.
 */
#define EB_BROKER_LISTENER_FD 4

typedef enum {
    EB_BROKER_MSG_HELLO = 1, /* CA */
    EB_BROKER_MSG_BEGIN,     /* SERIAL, SESSION, FLAGS, RELAY_PORT, PORTS */
    EB_BROKER_MSG_ALLOW,     /* HOST, repeated */
    EB_BROKER_MSG_PROVIDER,  /* NAME, KIND, URL */
    EB_BROKER_MSG_KEY,       /* NAME, SECRET */
    EB_BROKER_MSG_NONCE,     /* NAME, SECRET */
    EB_BROKER_MSG_COMMIT,    /* SERIAL */

    EB_BROKER_MSG_GRANT = 24, /* SERIAL: of the ASK, TOKENS_OUT: 0 = no, NUMBER: which cap, FLAGS: 1 = not now */

    EB_BROKER_MSG_READY = 64,     /* TEXT: what of the sandbox is missing, if anything */
    EB_BROKER_MSG_APPLIED,        /* SERIAL */
    EB_BROKER_MSG_FAILED,         /* SERIAL, TEXT */
    EB_BROKER_MSG_AUDIT,          /* one connection */
    EB_BROKER_MSG_DENIED,         /* HOST, PORT, TEXT: code */
    EB_BROKER_MSG_PROVIDER_ERROR, /* NAME, STATUS, TEXT */

    EB_BROKER_MSG_ASK = 84, /* SERIAL, NAME, MODEL, TOKENS_IN, TOKENS_OUT, FLAGS: 1 = all or nothing */
    EB_BROKER_MSG_MORE,     /* SERIAL, TOKENS_OUT */
    EB_BROKER_MSG_USED,     /* SERIAL, NAME, MODEL, TOKENS_IN, _OUT, _CACHED, _WRITTEN, FLAGS: 1 = estimated */

    EB_BROKER_MSG_CANARY_SEEN = 92, /* TEXT: where */

    EB_BROKER_MSG_CALL_REFUSED = 100, /* NUMBER: of the system call that ends this broker */
} EbBrokerMsgType;

typedef enum {
    EB_BROKER_TAG_SERIAL = 1,
    EB_BROKER_TAG_SESSION,
    EB_BROKER_TAG_FLAGS,
    EB_BROKER_TAG_RELAY_PORT,
    EB_BROKER_TAG_PORTS,
    EB_BROKER_TAG_HOST,
    EB_BROKER_TAG_NAME,
    EB_BROKER_TAG_KIND,
    EB_BROKER_TAG_URL,
    EB_BROKER_TAG_SECRET,
    EB_BROKER_TAG_TEXT,
    EB_BROKER_TAG_CA,
    EB_BROKER_TAG_PORT,
    EB_BROKER_TAG_ADDRESS,
    EB_BROKER_TAG_BYTES_UP,
    EB_BROKER_TAG_BYTES_DOWN,
    EB_BROKER_TAG_MS,
    EB_BROKER_TAG_DECISION,
    EB_BROKER_TAG_RULE,
    EB_BROKER_TAG_STATUS,
    EB_BROKER_TAG_LOST,

    EB_BROKER_TAG_MODEL = 50,
    EB_BROKER_TAG_TOKENS_IN,
    EB_BROKER_TAG_TOKENS_OUT,
    EB_BROKER_TAG_TOKENS_CACHED,
    EB_BROKER_TAG_TOKENS_WRITTEN,
    EB_BROKER_TAG_RESERVE,
    EB_BROKER_TAG_OVERSHOOT,
    EB_BROKER_TAG_NUMBER,

    EB_BROKER_TAG_CANARY = 70, /* of BEGIN */
} EbBrokerTag;

#define EB_BROKER_FLAG_PROXY (1u << 0)
#define EB_BROKER_FLAG_ALLOW_INTERNAL (1u << 1)
#define EB_BROKER_FLAG_BUDGET (1u << 8)

/** EbBrokerMsg: a decoded message; fields point into the bytes it was decoded from. */
typedef struct {
    EbBrokerMsgType type;
    guint n_fields;
    struct {
        guint8 tag;
        guint32 length;
        const guint8 *bytes;
    } fields[EB_BROKER_MSG_MAX_FIELDS];
} EbBrokerMsg;

gboolean eb_broker_msg_decode(const guint8 *bytes, gsize length, EbBrokerMsg *msg, GError **error);
/** eb_broker_msg_string: (transfer full) (nullable): NULL when absent, not UTF-8, too long, or with control or direction
 *  characters. */
char *eb_broker_msg_string(const EbBrokerMsg *msg, EbBrokerTag tag);
guint64 eb_broker_msg_number(const EbBrokerMsg *msg, EbBrokerTag tag, guint64 fallback);
/** eb_broker_msg_bytes: (transfer none) (nullable) */
const guint8 *eb_broker_msg_bytes(const EbBrokerMsg *msg, EbBrokerTag tag, gsize *length);

/** EbBrokerWriter: puts a message together in the caller's buffer, which the caller wipes when it held a secret. */
typedef struct {
    guint8 *buffer;
    gsize size;
    gsize length;
    gboolean overflow;
} EbBrokerWriter;

void eb_broker_writer_begin(EbBrokerWriter *self, guint8 *buffer, gsize size, EbBrokerMsgType type);
void eb_broker_writer_bytes(EbBrokerWriter *self, EbBrokerTag tag, const void *bytes, gsize length);
/** eb_broker_writer_string: @text: (nullable): NULL adds nothing; cut at EB_BROKER_TEXT_MAX */
void eb_broker_writer_string(EbBrokerWriter *self, EbBrokerTag tag, const char *text);
void eb_broker_writer_number(EbBrokerWriter *self, EbBrokerTag tag, guint64 value);
/** eb_broker_writer_end: bytes of the message; 0 when it did not fit. */
gsize eb_broker_writer_end(EbBrokerWriter *self);

G_END_DECLS
