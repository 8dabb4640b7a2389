/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-opening.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/broker/eb-broker-dial.h"
#include "core/broker/eb-websocket.h"

typedef struct {
    GString *request; /* (owned): the head to send */
    gsize sent;
    char *accept;       /* (owned) */
    char *asked;        /* (owned) (nullable) */
    GByteArray *answer; /* (owned): at most EB_WEBSOCKET_MAX_ANSWER and one read */
} Handshake;

struct _EbOpening {
    EbBroker *broker; /* (unowned) */
    EbOpeningFunc func;
    gpointer user_data;
    EbOpening **slot; /* (unowned) */
    EbDial *dial;     /* (owned) (nullable) */
    EbWatch upstream; /* fd owned; while the handshake runs */
    EbAddress address;
    EbTarget target;
    Handshake *handshake; /* (owned) (nullable): of a WebSocket */
    gint64 deadline;
};

static void
handshake_free(Handshake *self)
{
    if (self == NULL)
        return;
    g_string_free(self->request, TRUE);
    g_free(self->accept);
    g_free(self->asked);
    g_byte_array_unref(self->answer);
    g_free(self);
}

static void
opening_free(EbOpening *self)
{
    handshake_free(self->handshake);
    g_free(self);
}

static void
opening_end(EbOpening *self, int fd, GString *answer, const EbRefusal *refusal)
{
    EbOpeningFunc func = self->func;
    gpointer user_data = self->user_data;
    EbAddress address = self->address;

    *self->slot = NULL;
    opening_free(self);
    func(user_data, fd, &address, answer, refusal);
    if (answer != NULL)
        g_string_free(answer, TRUE);
}

static void
opening_refuse(EbOpening *self, EbRefusalCode code, const char *detail)
{
    EbRefusal refusal;

    eb_refusal_set_target(&refusal, code, &self->target, detail);
    eb_poller_close(self->broker->poller, &self->upstream);
    opening_end(self, -1, NULL, &refusal);
}

/* TRUE while it goes on. */
static gboolean
handshake_send(EbOpening *self)
{
    Handshake *handshake = self->handshake;

    while (handshake->sent < handshake->request->len) {
        ssize_t sent = send(self->upstream.fd, handshake->request->str + handshake->sent,
                            handshake->request->len - handshake->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EAGAIN)
            return TRUE;
        if (sent <= 0) {
            opening_refuse(self, EB_REFUSAL_UPSTREAM, NULL);
            return FALSE;
        }
        handshake->sent += (gsize)sent;
    }
    return TRUE;
}

static void
handshake_read(EbOpening *self)
{
    Handshake *handshake = self->handshake;

    while (TRUE) {
        g_autoptr(GString) head = g_string_new(NULL);
        ssize_t got = recv(self->upstream.fd, self->broker->scratch, EB_WEBSOCKET_MAX_ANSWER, MSG_DONTWAIT);
        EbWebsocketResult result;
        gsize consumed = 0;
        guint status = 0;
        int fd = -1;

        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0) {
            opening_refuse(self, EB_REFUSAL_UPSTREAM, NULL);
            return;
        }
        g_byte_array_append(handshake->answer, (const guint8 *)self->broker->scratch, (guint)got);
        result = eb_websocket_answer((const char *)handshake->answer->data, handshake->answer->len, handshake->accept,
                                     handshake->asked, head, &consumed, &status);
        if (result == EB_WEBSOCKET_MORE)
            continue;
        if (result == EB_WEBSOCKET_BAD) {
            opening_refuse(self, EB_REFUSAL_UPSTREAM, "its answer is no WebSocket handshake");
            return;
        }
        if (result == EB_WEBSOCKET_SWITCHED) {
            g_string_append_len(head, (const char *)handshake->answer->data + consumed,
                                (gssize)(handshake->answer->len - consumed));
            fd = self->upstream.fd;
            eb_poller_remove(self->broker->poller, &self->upstream);
        } else {
            eb_poller_close(self->broker->poller, &self->upstream);
        }
        opening_end(self, fd, g_steal_pointer(&head), NULL);
        return;
    }
}

static void
handshake_ready(EbWatch *watch, guint32 events)
{
    EbOpening *self = watch->data;

    if (handshake_send(self))
        handshake_read(self);
}

static void
opening_on_dialed(gpointer user_data, int fd, const EbAddress *address, const EbRefusal *refusal)
{
    EbOpening *self = user_data;

    if (fd < 0) {
        opening_end(self, -1, NULL, refusal);
        return;
    }
    self->address = *address;
    if (self->handshake == NULL) {
        opening_end(self, fd, g_string_new("HTTP/1.1 200 Connection established\r\n\r\n"), NULL);
        return;
    }
    self->deadline = g_get_monotonic_time() + EB_BROKER_HANDSHAKE_WAIT;
    /* The first event says that there is room, so sending begins there. */
    if (!eb_poller_add(self->broker->poller, &self->upstream, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, handshake_ready,
                       self))
        opening_refuse(self, EB_REFUSAL_UPSTREAM, NULL);
}

void
eb_opening_start(EbBroker *broker, EbBrokerConfig *config, const EbHttpRequest *request, const EbRoute *route,
                 EbOpeningFunc func, gpointer user_data, EbOpening **slot)
{
    EbOpening *self = g_new0(EbOpening, 1);

    self->broker = broker;
    self->func = func;
    self->user_data = user_data;
    self->slot = slot;
    self->upstream.fd = -1;
    self->target = route->target;
    if (route->kind == EB_ROUTE_WEBSOCKET) {
        self->handshake = g_new0(Handshake, 1);
        self->handshake->request = eb_websocket_request(request, route);
        self->handshake->accept = eb_websocket_accept(eb_http_request_header(request, "Sec-WebSocket-Key"));
        self->handshake->asked = g_strdup(eb_http_request_header(request, "Sec-WebSocket-Protocol"));
        self->handshake->answer = g_byte_array_new();
    }
    *slot = self;
    eb_dial_start(broker, config, &route->target, opening_on_dialed, self, &self->dial);
}

void
eb_opening_tick(EbOpening *self, gint64 now)
{
    if (self->dial != NULL)
        eb_dial_tick(self->dial, now);
    else if (now >= self->deadline)
        opening_refuse(self, EB_REFUSAL_FIRST_BYTE_TIMEOUT, NULL);
}

void
eb_opening_cancel(EbOpening *self)
{
    if (self->dial != NULL)
        eb_dial_cancel(g_steal_pointer(&self->dial));
    eb_poller_close(self->broker->poller, &self->upstream);
    opening_free(self);
}
