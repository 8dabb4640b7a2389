/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker.h"
#include "core/broker/eb-http-answer.h"
#include "core/broker/eb-usage-ask.h"

G_BEGIN_DECLS

/** EB_METER_WAIT: microseconds the service may take to say whether a request may go up. */
#define EB_METER_WAIT (10 * G_USEC_PER_SEC)
/** EB_METER_PEEK: bytes of a request's body that are looked at for its model and its limits before its head goes up. */
#define EB_METER_PEEK (128 * 1024)

/**
 * EbMeter: counts one request to a provider. Where the session has a budget, the service grants tokens before the request
 * goes up, and more of them as its answer goes on; what it has no more of cuts the answer off. What was used is reported
 * when it is over, however it ends.
 */
typedef enum {
    EB_METER_GO,      /* send it up */
    EB_METER_ASKED,   /* EbMeterAnswered will be called */
    EB_METER_REFUSED, /* the refusal says why */
} EbMeterVerdict;

/** EbMeterAnswered: @refusal: (nullable): NULL = send it up. Not called from within eb_meter_start(). */
typedef void (*EbMeterAnswered)(gpointer user_data, const EbRefusal *refusal);

/**
 * eb_meter_start:
 * @meter: (out) (nullable): NULL when there is nothing to count
 * @body, @length: what is here of the request's body; framing and what follows it may be in it
 */
EbMeterVerdict eb_meter_start(EbBroker *broker, EbBrokerConfig *config, EbProvider *provider,
                              const EbHttpRequest *request, const char *path, const char *body, gsize length,
                              EbMeterAnswered answered, gpointer user_data, EbMeter **meter, EbRefusal *refusal);
/**
 * eb_meter_take_body: the next bytes of a request's body, framing taken off, before they go up; also those that
 * eb_meter_start() has looked at. @last: nothing follows: when this does not say GO, they do not go up, so that the
 * provider has no whole request before it is granted as what it turned out to be.
 */
EbMeterVerdict eb_meter_take_body(EbMeter *self, const char *bytes, gsize length, gboolean last,
                                  EbMeterAnswered answered, gpointer user_data, EbRefusal *refusal);
/** eb_meter_begin_answer: @events: it is text/event-stream */
void eb_meter_begin_answer(EbMeter *self, guint status, gboolean events);
/** eb_meter_take: bytes of the answer. FALSE: what was granted is used up: cut it off. */
gboolean eb_meter_take(EbMeter *self, const char *bytes, gsize length);
/** eb_meter_knows: a body of @length bytes was looked at as a whole before it was granted, or nothing needs to be. */
gboolean eb_meter_knows(const EbMeter *self, gsize length);
/** eb_meter_note_unanswered: the request went up as a whole, and nobody waited for its answer, which costs all the same. */
void eb_meter_note_unanswered(EbMeter *self);
/** eb_meter_note_cut: the answer was not passed on to its end. */
void eb_meter_note_cut(EbMeter *self);
/** eb_meter_is_late: TRUE when the service has not answered in time. */
gboolean eb_meter_is_late(EbMeter *self, gint64 now);
/** eb_meter_end: (transfer full): reports what was used. */
void eb_meter_end(EbMeter *self);

/**
 * eb_meter_answer: the service's answer to request @id; one that is over is passed over.
 * @why: of a refusal; @later: it would do when others gave back what is set aside for them
 */
void eb_meter_answer(EbBroker *broker, guint64 id, guint64 granted, guint why, gboolean later);

/** EB_METER_OBSERVER: gives the answers of providers to the meters of their connections. */
extern const EbAnswerObserver EB_METER_OBSERVER;

G_END_DECLS
