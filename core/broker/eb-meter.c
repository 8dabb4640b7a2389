/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-meter.h"

#include <string.h>

#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-broker-proto.h"
#include "core/broker/eb-exchange.h"
#include "core/broker/eb-front-conn.h"

/* What is asked for at a time while an answer goes on, and how much is left when it is asked for. */
#define MORE 4096
#define MORE_AT 2048

struct _EbMeter {
    EbBroker *broker; /* (unowned) */
    guint64 id;
    char *provider;
    EbMeterAnswered answered; /* (nullable): NULL when it was called, or nothing was asked */
    gpointer user_data;
    gint64 asked_at;
    gboolean budget;   /* grants are needed */
    gboolean whole;    /* the request is of no use with less than it asked for */
    gboolean sent;     /* it went up, and nobody waited for its answer */
    gboolean cut;      /* its answer ended before its end */
    gboolean asking;   /* for more */
    gboolean denied;   /* there is no more */
    guint64 asked;     /* tokens, in all */
    guint64 granted;   /* of them */
    guint64 overshoot; /* tokens beyond what was granted before it is cut off */
    guint64 reserve;   /* tokens of an answer without a limit */
    gsize peeked;      /* bytes of the body that were looked at before it went up */
    guint status;
    char model[EB_USAGE_TEXT]; /* as it was asked for */
    EbUsageAsk ask;
    EbUsageScan scan;
};

/* --- asking --- */

static const char *
cap_text(guint why)
{
    static const char *const TEXTS[] = {"what this turn may use is used up", "what this session may use is used up",
                                        "what this person may use today is used up",
                                        "what all sessions may use today is used up"};

    return TEXTS[why < G_N_ELEMENTS(TEXTS) ? why : 1];
}

static const char *
share_text(guint why)
{
    static const char *const TEXTS[] = {"of what this turn may use", "of what this session may use",
                                        "of what this person may use today", "of what all sessions may use today"};

    return TEXTS[why < G_N_ELEMENTS(TEXTS) ? why : 1];
}

static void
meter_free(EbMeter *self)
{
    g_hash_table_remove(self->broker->meters, &self->id);
    g_free(self->provider);
    g_free(self);
}

/* Tokens that the request needs as far as it was read. */
static guint64
needs(EbMeter *self)
{
    guint64 output = eb_usage_ask_get_output(&self->ask, self->reserve, &self->whole);

    return MIN(eb_usage_ask_get_input(&self->ask) + output, EB_BROKER_MAX_TOKENS);
}

static void
wait_for_grant(EbMeter *self, EbMeterAnswered answered, gpointer user_data)
{
    self->answered = answered;
    self->user_data = user_data;
    self->asked_at = g_get_monotonic_time();
}

static void
send_ask(EbMeter *self)
{
    guint64 input = MIN(eb_usage_ask_get_input(&self->ask), EB_BROKER_MAX_TOKENS);

    self->asked = needs(self);
    g_strlcpy(self->model, self->ask.scan.model, sizeof self->model);
    if (self->broker->link != NULL)
        eb_broker_link_send_ask(self->broker->link, self->id, self->provider, self->model, input, self->asked - input,
                                self->whole);
}

EbMeterVerdict
eb_meter_start(EbBroker *broker, EbBrokerConfig *config, EbProvider *provider, const EbHttpRequest *request,
               const char *path, const char *body, gsize length, EbMeterAnswered answered, gpointer user_data,
               EbMeter **meter, EbRefusal *refusal)
{
    EbUsagePath kind = eb_usage_judge_path(request->method, eb_http_request_has_body(request), path);

    *meter = NULL;
    if (kind == EB_USAGE_PATH_UNCOUNTED && config->budget) {
        eb_refusal_set(refusal, EB_REFUSAL_UNCOUNTED, provider->name, NULL);
        return EB_METER_REFUSED;
    }
    if (kind != EB_USAGE_PATH_COUNTED)
        return EB_METER_GO;
    EbMeter *self = g_new0(EbMeter, 1);
    self->broker = broker;
    self->id = ++broker->last_meter;
    self->provider = g_strdup(provider->name);
    self->budget = config->budget;
    self->overshoot = config->overshoot;
    self->reserve = config->reserve;
    eb_usage_scan_init(&self->scan, FALSE);
    eb_usage_ask_init(&self->ask, request, path);
    g_hash_table_insert(broker->meters, &self->id, self);
    /* Chunks have heads between their bytes: they are read as they go up. */
    self->peeked = request->chunked ? 0 : (gsize)MIN(MIN(length, EB_METER_PEEK), request->content_length);
    eb_usage_ask_run(&self->ask, body, self->peeked);
    if (self->budget && eb_usage_ask_get_hidden(&self->ask) != NULL) {
        eb_refusal_set(refusal, EB_REFUSAL_UNCOUNTED, provider->name, eb_usage_ask_get_hidden(&self->ask));
        meter_free(self);
        return EB_METER_REFUSED;
    }
    *meter = self;
    if (!self->budget) {
        g_strlcpy(self->model, self->ask.scan.model, sizeof self->model);
        return EB_METER_GO;
    }
    wait_for_grant(self, answered, user_data);
    send_ask(self);
    return EB_METER_ASKED;
}

/* A request of a guest's may say at its end what it hid at its beginning. */
static EbMeterVerdict
judge_whole(EbMeter *self, EbMeterAnswered answered, gpointer user_data)
{
    guint64 needed = needs(self), lacking = needed - MIN(self->asked, needed);

    /* What was granted may be less than was asked for; that will do, but for one that needs all. */
    if (self->whole)
        lacking = needed - MIN(self->granted, needed);
    if (lacking == 0 || self->broker->link == NULL)
        return EB_METER_GO;
    self->asked += lacking;
    self->asking = TRUE;
    wait_for_grant(self, answered, user_data);
    eb_broker_link_send_more(self->broker->link, self->id, lacking);
    return EB_METER_ASKED;
}

EbMeterVerdict
eb_meter_take_body(EbMeter *self, const char *bytes, gsize length, gboolean last, EbMeterAnswered answered,
                   gpointer user_data, EbRefusal *refusal)
{
    gsize known = MIN(self->peeked, length);
    const char *hidden;

    if (!self->budget)
        return EB_METER_GO;
    self->peeked -= known;
    eb_usage_ask_run(&self->ask, bytes + known, length - known);
    hidden = eb_usage_ask_get_hidden(&self->ask);
    if (hidden == NULL && self->model[0] != '\0' && strcmp(self->model, self->ask.scan.model) != 0)
        hidden = "it names more than one model";
    if (hidden != NULL) {
        eb_refusal_set(refusal, EB_REFUSAL_UNCOUNTED, self->provider, hidden);
        return EB_METER_REFUSED;
    }
    return last ? judge_whole(self, answered, user_data) : EB_METER_GO;
}

gboolean
eb_meter_knows(const EbMeter *self, gsize length)
{
    return !self->budget || self->peeked == length;
}

gboolean
eb_meter_is_late(EbMeter *self, gint64 now)
{
    return self->answered != NULL && now - self->asked_at >= EB_METER_WAIT;
}

void
eb_meter_answer(EbBroker *broker, guint64 id, guint64 granted, guint why, gboolean later)
{
    EbMeter *self = g_hash_table_lookup(broker->meters, &id);
    EbRefusal refusal;

    if (self == NULL)
        return;
    self->granted += granted;
    self->asking = FALSE;
    self->denied = granted == 0 && !later;
    if (self->answered == NULL)
        return;
    EbMeterAnswered answered = g_steal_pointer(&self->answered);
    gboolean enough = granted > 0 && (!self->whole || self->granted >= self->asked);
    eb_refusal_set(&refusal, later ? EB_REFUSAL_BUDGET_BUSY : EB_REFUSAL_BUDGET, self->provider,
                   later ? share_text(why) : cap_text(why));
    answered(self->user_data, enough ? NULL : &refusal);
}

/* --- the answer --- */

void
eb_meter_begin_answer(EbMeter *self, guint status, gboolean events)
{
    self->status = status;
    eb_usage_scan_init(&self->scan, events);
}

void
eb_meter_note_unanswered(EbMeter *self)
{
    self->sent = self->status == 0;
}

void
eb_meter_note_cut(EbMeter *self)
{
    self->cut = TRUE;
}

gboolean
eb_meter_take(EbMeter *self, const char *bytes, gsize length)
{
    EbUsage usage;

    eb_usage_scan_run(&self->scan, bytes, length);
    if (!self->budget || self->status / 100 != 2)
        return TRUE;
    eb_usage_scan_get(&self->scan, eb_usage_ask_get_input(&self->ask), &usage);
    guint64 used = usage.tokens_in + usage.tokens_out;
    if (self->denied)
        return used <= self->granted + self->overshoot;
    if (used + MORE_AT > self->granted && !self->asking && self->broker->link != NULL) {
        self->asking = TRUE;
        eb_broker_link_send_more(self->broker->link, self->id, used + MORE - MIN(self->granted, used));
    }
    /* The service is slow: nothing is given away meanwhile. */
    return used <= self->granted + MAX(self->overshoot, MORE);
}

static void
report(EbMeter *self)
{
    EbUsage usage;

    eb_usage_scan_get(&self->scan, eb_usage_ask_get_input(&self->ask), &usage);
    if (usage.model[0] == '\0')
        g_strlcpy(usage.model, self->model, sizeof usage.model);
    guint64 least = eb_usage_ask_get_least(&self->ask, self->reserve);
    /* What was refused up there, or never got there, was not charged. */
    if (self->status / 100 != 2 && !self->sent)
        usage.tokens_in = usage.tokens_out = usage.tokens_cached = usage.tokens_written = 0;
    /* It goes on where nobody counts it. */
    else if (self->scan.background)
        usage.tokens_out = MAX(usage.tokens_in + usage.tokens_out, self->granted) - usage.tokens_in;
    /* A model thinks out of sight; whoever does not wait to hear how much is not better off for it. */
    else if (self->budget && usage.estimated && (self->sent || self->cut))
        usage.tokens_out = MAX(usage.tokens_out, least);
    eb_broker_link_send_used(self->broker->link, self->id, self->provider, &usage);
}

void
eb_meter_end(EbMeter *self)
{
    if (self->broker->link != NULL && (self->budget || self->status / 100 == 2))
        report(self);
    meter_free(self);
}

/* --- the observer --- */

static gboolean
is_event_stream(const EbHttpAnswerHead *head)
{
    for (guint i = 0; i < head->n_headers; i++)
        if (g_ascii_strcasecmp(head->headers[i].name, "content-type") == 0)
            return g_ascii_strncasecmp(head->headers[i].value, "text/event-stream", 17) == 0;
    return FALSE;
}

static gpointer
observe_begin(EbBroker *broker, EbFrontConn *conn, const EbHttpAnswerHead *head)
{
    EbMeter *meter = eb_front_conn_get_meter(conn);

    if (meter != NULL)
        eb_meter_begin_answer(meter, head->status, is_event_stream(head));
    return meter;
}

static gboolean
observe_bytes(gpointer watched, const char *bytes, gsize length)
{
    return eb_meter_take(watched, bytes, length);
}

/* The connection ends its meter itself: also when no answer came. */
static void
observe_end(gpointer watched, gboolean complete)
{
    if (!complete)
        eb_meter_note_cut(watched);
}

const EbAnswerObserver EB_METER_OBSERVER = {observe_begin, observe_bytes, observe_end};
