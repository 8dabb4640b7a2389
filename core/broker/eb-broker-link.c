/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-link.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>

#include "core/base/eb-unix.h"
#include "core/broker/eb-meter.h"

/* Messages handled in one turn, so that a flood of updates leaves room for guests. */
#define TURN 64
/* Messages sent by one system call. */
#define BATCH 32

struct _EbBrokerLink {
    EbBroker *broker; /* (unowned) */
    EbWatch watch;    /* fd owned */
    EbBrokerStage *stage;
    GQueue queue; /* (element-type GBytes) */
    guint64 lost;
    gboolean unread; /* more messages may be there than one turn takes */
    gboolean full;   /* the service has to take something first */
    void (*closed)(gpointer user_data);
    gpointer user_data;
};

/* One message is handled at a time; secrets pass through here and are wiped right after. */
static guint8 receive_buffer[EB_BROKER_MSG_MAX];
static guint8 send_buffer[8 * 1024];

/* Watched for room only while there is none: every message that the service takes would wake this process otherwise. */
static void
link_set_full(EbBrokerLink *self, gboolean full)
{
    if (self->full != full && eb_poller_modify(self->broker->poller, &self->watch, EPOLLIN | (full ? EPOLLOUT : 0)))
        self->full = full;
}

static void
link_flush(EbBrokerLink *self)
{
    while (self->queue.length > 0) {
        struct mmsghdr messages[BATCH] = {0};
        struct iovec vectors[BATCH];
        GList *link = self->queue.head;
        int n = 0, sent;

        for (; link != NULL && n < BATCH; link = link->next, n++) {
            gsize length;

            vectors[n].iov_base = (void *)g_bytes_get_data(link->data, &length);
            vectors[n].iov_len = length;
            messages[n].msg_hdr.msg_iov = &vectors[n];
            messages[n].msg_hdr.msg_iovlen = 1;
        }
        do
            sent = sendmmsg(self->watch.fd, messages, (guint)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (sent < 0 && errno == EINTR);
        /* Full, or gone: a gone service is noticed by reading. */
        if (sent <= 0) {
            link_set_full(self, TRUE);
            return;
        }
        for (int i = 0; i < sent; i++)
            g_bytes_unref(g_queue_pop_head(&self->queue));
    }
    link_set_full(self, FALSE);
    eb_broker_resume_accept(self->broker);
}

/* Messages leave together at the end of a turn: each one sent alone would wake the service. FALSE: there was no room. */
static gboolean
link_send(EbBrokerLink *self, EbBrokerWriter *writer)
{
    gsize length = eb_broker_writer_end(writer);

    if (length == 0 || self->queue.length >= EB_BROKER_LINK_MAX)
        return FALSE;
    /* When some wait already, either the turn's end is near or the socket was full and tells when it is not. */
    if (self->queue.length == 0)
        eb_poller_requeue(self->broker->poller, &self->watch);
    g_queue_push_tail(&self->queue, g_bytes_new(writer->buffer, length));
    return TRUE;
}

static void
link_answer(EbBrokerLink *self, EbBrokerMsgType type, guint64 serial, const char *text)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, type);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, serial);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, text);
    link_send(self, &writer);
}

static void
link_take(EbBrokerLink *self, gsize length)
{
    g_autoptr(GError) error = NULL;
    EbBrokerConfig *config = NULL;
    guint64 serial = 0;
    EbBrokerMsg msg;

    if (eb_broker_msg_decode(receive_buffer, length, &msg, &error) && msg.type == EB_BROKER_MSG_GRANT) {
        eb_meter_answer(self->broker, eb_broker_msg_number(&msg, EB_BROKER_TAG_SERIAL, 0),
                        eb_broker_msg_number(&msg, EB_BROKER_TAG_TOKENS_OUT, 0),
                        (guint)eb_broker_msg_number(&msg, EB_BROKER_TAG_NUMBER, 0),
                        eb_broker_msg_number(&msg, EB_BROKER_TAG_FLAGS, 0) != 0);
        return;
    }
    if (error != NULL || !eb_broker_stage_take(self->stage, &msg, &config, &serial, &error)) {
        link_answer(self, EB_BROKER_MSG_FAILED, serial, error->message);
        return;
    }
    if (config != NULL) {
        eb_broker_set_config(self->broker, config);
        link_answer(self, EB_BROKER_MSG_APPLIED, serial, NULL);
    }
}

static void
link_ready(EbWatch *watch, guint32 events)
{
    EbBrokerLink *self = watch->data;

    if (events == 0 || (events & EPOLLOUT) != 0)
        link_flush(self);
    if ((events & ~(guint32)EPOLLOUT) == 0 && !self->unread)
        return;
    self->unread = FALSE;
    for (guint i = 0; i < TURN; i++) {
        g_autoptr(GError) error = NULL;
        gssize got = eb_unix_recv(watch->fd, receive_buffer, sizeof receive_buffer, NULL, NULL, &error);

        if (got < 0 && g_error_matches(error, EB_ERROR, EB_ERROR_BUSY))
            return;
        if (got <= 0) {
            self->closed(self->user_data);
            return;
        }
        link_take(self, (gsize)got);
        sodium_memzero(receive_buffer, (gsize)got);
    }
    self->unread = TRUE;
    eb_poller_requeue(self->broker->poller, watch);
}

EbBrokerLink *
eb_broker_link_new(EbBroker *broker, int fd, void (*closed)(gpointer user_data), gpointer user_data)
{
    EbBrokerLink *self = g_new0(EbBrokerLink, 1);

    self->broker = broker;
    self->closed = closed;
    self->user_data = user_data;
    self->stage = eb_broker_stage_new();
    g_queue_init(&self->queue);
    eb_poller_add(broker->poller, &self->watch, fd, EPOLLIN, link_ready, self);
    return self;
}

void
eb_broker_link_free(EbBrokerLink *self)
{
    if (self == NULL)
        return;
    eb_poller_close(self->broker->poller, &self->watch);
    eb_broker_stage_free(self->stage);
    g_queue_clear_full(&self->queue, (GDestroyNotify)g_bytes_unref);
    g_free(self);
}

gboolean
eb_broker_link_is_full(EbBrokerLink *self)
{
    return self->queue.length >= EB_BROKER_LINK_QUEUE;
}

void
eb_broker_link_send_audit(EbBrokerLink *self, const EbAudit *audit)
{
    char address[EB_ADDRESS_TEXT];
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_AUDIT);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_KIND, audit->kind);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, audit->host);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_PORT, audit->port);
    if (audit->address.length > 0) {
        eb_address_format(&audit->address, address);
        eb_broker_writer_string(&writer, EB_BROKER_TAG_ADDRESS, address);
    }
    eb_broker_writer_number(&writer, EB_BROKER_TAG_BYTES_UP, audit->bytes_up);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_BYTES_DOWN, audit->bytes_down);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_MS, (guint64)(g_get_monotonic_time() - audit->started) / 1000);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_DECISION, audit->decision);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_RULE, audit->rule);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, audit->provider);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_STATUS, audit->status);
    if (self->lost > 0)
        eb_broker_writer_number(&writer, EB_BROKER_TAG_LOST, self->lost);
    /* Never, by what the bound is made of; the next row with room would say how many rows are missing. */
    if (link_send(self, &writer))
        self->lost = 0;
    else
        self->lost++;
}

void
eb_broker_link_send_denied(EbBrokerLink *self, const EbRefusal *refusal)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_DENIED);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_HOST, refusal->host);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, eb_refusal_token(refusal->code));
    link_send(self, &writer);
}

void
eb_broker_link_send_provider_error(EbBrokerLink *self, const char *provider, guint status, const char *text)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_PROVIDER_ERROR);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, provider);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_STATUS, status);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, text);
    link_send(self, &writer);
}

void
eb_broker_link_send_ask(EbBrokerLink *self, guint64 id, const char *provider, const char *model, guint64 tokens_in,
                        guint64 tokens_out, gboolean whole)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_ASK);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, id);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, provider);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_MODEL, model);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_IN, tokens_in);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_OUT, tokens_out);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_FLAGS, whole ? 1 : 0);
    link_send(self, &writer);
}

void
eb_broker_link_send_more(EbBrokerLink *self, guint64 id, guint64 tokens)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_MORE);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, id);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_OUT, tokens);
    link_send(self, &writer);
}

void
eb_broker_link_send_used(EbBrokerLink *self, guint64 id, const char *provider, const EbUsage *usage)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_USED);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_SERIAL, id);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_NAME, provider);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_MODEL, usage->model);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_IN, usage->tokens_in);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_OUT, usage->tokens_out);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_CACHED, usage->tokens_cached);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_TOKENS_WRITTEN, usage->tokens_written);
    eb_broker_writer_number(&writer, EB_BROKER_TAG_FLAGS, usage->estimated ? 1 : 0);
    link_send(self, &writer);
}

void
eb_broker_link_send_canary(EbBrokerLink *self, const char *where)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_CANARY_SEEN);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, where);
    link_send(self, &writer);
}

void
eb_broker_link_send_ready(EbBrokerLink *self, const char *lacking)
{
    EbBrokerWriter writer;

    eb_broker_writer_begin(&writer, send_buffer, sizeof send_buffer, EB_BROKER_MSG_READY);
    eb_broker_writer_string(&writer, EB_BROKER_TAG_TEXT, lacking);
    link_send(self, &writer);
}

gboolean
eb_broker_link_receive_hello(int fd, guint timeout_ms, GBytes **ca, GError **error)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    EbBrokerMsg msg;
    const guint8 *bytes;
    gsize length;
    gssize got;

    if (poll(&ready, 1, (int)timeout_ms) != 1) {
        eb_set_error(error, EB_ERROR_TIMEOUT, "broker.hello", "the service did not speak first");
        return FALSE;
    }
    got = eb_unix_recv(fd, receive_buffer, sizeof receive_buffer, NULL, NULL, error);
    if (got < 0 || !eb_broker_msg_decode(receive_buffer, (gsize)got, &msg, error))
        return FALSE;
    if (msg.type != EB_BROKER_MSG_HELLO) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "broker.hello", "the first message is not the greeting");
        return FALSE;
    }
    bytes = eb_broker_msg_bytes(&msg, EB_BROKER_TAG_CA, &length);
    *ca = bytes != NULL ? g_bytes_new(bytes, length) : NULL;
    return TRUE;
}
