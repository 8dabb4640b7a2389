/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-meter.h"

#include <string.h>

#include "core/broker/eb-broker-link.h"
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
    gboolean asking;   /* for more */
    gboolean denied;   /* there is no more */
    guint64 granted;   /* tokens */
    guint64 overshoot; /* tokens beyond what was granted before it is cut off */
    guint64 guess_in;
    guint status;
    gboolean streaming;
    gboolean background;
    char model[EB_USAGE_TEXT];
    EbUsageScan scan;
};

static gboolean
ends_with(const char *path, gsize length, const char *end)
{
    gsize n = strlen(end);

    return length >= n && memcmp(path + length - n, end, n) == 0;
}

EbMeterPath
eb_meter_judge_path(EbHttpMethod method, const char *path)
{
    static const char *const COUNTED[] = {"/chat/completions",  "/completions",       "/responses",
                                          "/embeddings",        "/messages",          "/complete",
                                          "/responses/compact", ":generateContent",   ":streamGenerateContent",
                                          ":embedContent",      ":batchEmbedContents"};
    static const char *const FREE[] = {"/count_tokens", ":countTokens", "/moderations", "/input_tokens"};
    gsize length = strcspn(path, "?");

    if (method == EB_HTTP_GET || method == EB_HTTP_HEAD || method == EB_HTTP_OPTIONS || method == EB_HTTP_DELETE)
        return EB_METER_FREE;
    while (length > 0 && path[length - 1] == '/')
        length--;
    for (gsize i = 0; i < G_N_ELEMENTS(FREE); i++)
        if (ends_with(path, length, FREE[i]))
            return EB_METER_FREE;
    for (gsize i = 0; i < G_N_ELEMENTS(COUNTED); i++)
        if (ends_with(path, length, COUNTED[i]))
            return EB_METER_COUNTED;
    return EB_METER_UNCOUNTED;
}

/* --- asking --- */

/* gemini has its model and its way to answer in the path: .../models/NAME:streamGenerateContent */
static void
read_path(EbMeter *self, const char *path)
{
    const char *model = strstr(path, "/models/");
    gsize length;

    self->streaming = self->streaming || strstr(path, ":streamGenerateContent") != NULL;
    if (model == NULL || self->model[0] != '\0')
        return;
    model += strlen("/models/");
    length = strcspn(model, ":/?");
    if (length < sizeof self->model)
        g_strlcpy(self->model, model, length + 1);
}

static void
read_request(EbMeter *self, const EbHttpRequest *request, const char *path, const char *body, gsize length,
             guint64 *most)
{
    EbUsageScan scan;
    guint64 bytes = request->chunked ? length : request->content_length;

    eb_usage_scan_init(&scan, FALSE);
    eb_usage_scan_run(&scan, body, MIN(length, EB_METER_PEEK));
    g_strlcpy(self->model, scan.model, sizeof self->model);
    self->background = scan.background;
    self->streaming = scan.stream;
    read_path(self, path);
    self->guess_in = bytes / EB_USAGE_BYTES_A_TOKEN;
    *most = scan.max_tokens;
}

static const char *
cap_text(guint why)
{
    static const char *const TEXTS[] = {"what this turn may use is used up", "what this session may use is used up",
                                        "what this person may use today is used up",
                                        "what all sessions may use today is used up"};

    return TEXTS[why < G_N_ELEMENTS(TEXTS) ? why : 1];
}

/* What a request without a limit of its own is given to begin with; one that streams asks for more on its way. */
static guint64
first_reserve(const EbMeter *self, guint64 most, guint64 reserve)
{
    if (most == 0)
        return reserve;
    return self->streaming ? MIN(most, reserve) : most;
}

EbMeterVerdict
eb_meter_start(EbBroker *broker, EbBrokerConfig *config, EbProvider *provider, const EbHttpRequest *request,
               const char *path, const char *body, gsize length, EbMeterAnswered answered, gpointer user_data,
               EbMeter **meter, EbRefusal *refusal)
{
    EbMeterPath kind = eb_meter_judge_path(request->method, path);
    guint64 most = 0;

    *meter = NULL;
    if (kind == EB_METER_UNCOUNTED && config->budget) {
        eb_refusal_set(refusal, EB_REFUSAL_UNCOUNTED, provider->name, NULL);
        return EB_METER_REFUSED;
    }
    if (kind != EB_METER_COUNTED)
        return EB_METER_GO;
    EbMeter *self = g_new0(EbMeter, 1);
    self->broker = broker;
    self->id = ++broker->last_meter;
    self->provider = g_strdup(provider->name);
    self->budget = config->budget;
    self->overshoot = config->overshoot;
    eb_usage_scan_init(&self->scan, FALSE);
    read_request(self, request, path, body, length, &most);
    if (self->budget && self->background) {
        eb_refusal_set(refusal, EB_REFUSAL_UNCOUNTED, provider->name, "an answer in the background is not seen");
        g_free(self->provider);
        g_free(self);
        return EB_METER_REFUSED;
    }
    g_hash_table_insert(broker->meters, &self->id, self);
    *meter = self;
    if (!self->budget)
        return EB_METER_GO;
    self->answered = answered;
    self->user_data = user_data;
    self->asked_at = g_get_monotonic_time();
    if (broker->link != NULL)
        eb_broker_link_send_ask(broker->link, self->id, self->provider, self->model, self->guess_in,
                                first_reserve(self, most, config->reserve), most > 0 && !self->streaming);
    return EB_METER_ASKED;
}

gboolean
eb_meter_is_late(EbMeter *self, gint64 now)
{
    return self->answered != NULL && now - self->asked_at >= EB_METER_WAIT;
}

void
eb_meter_answer(EbBroker *broker, guint64 id, guint64 granted, guint why)
{
    EbMeter *self = g_hash_table_lookup(broker->meters, &id);
    EbRefusal refusal;

    if (self == NULL)
        return;
    self->granted += granted;
    self->asking = FALSE;
    self->denied = granted == 0;
    if (self->answered == NULL)
        return;
    EbMeterAnswered answered = g_steal_pointer(&self->answered);
    eb_refusal_set(&refusal, EB_REFUSAL_BUDGET, self->provider, cap_text(why));
    answered(self->user_data, granted == 0 ? &refusal : NULL);
}

/* --- the answer --- */

void
eb_meter_begin_answer(EbMeter *self, guint status, gboolean events)
{
    self->status = status;
    eb_usage_scan_init(&self->scan, events);
}

gboolean
eb_meter_take(EbMeter *self, const char *bytes, gsize length)
{
    EbUsage usage;

    eb_usage_scan_run(&self->scan, bytes, length);
    if (!self->budget || self->status / 100 != 2)
        return TRUE;
    eb_usage_scan_get(&self->scan, self->guess_in, &usage);
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

    eb_usage_scan_get(&self->scan, self->guess_in, &usage);
    if (usage.model[0] == '\0')
        g_strlcpy(usage.model, self->model, sizeof usage.model);
    /* What was refused up there, or never answered, was not charged. */
    if (self->status / 100 != 2)
        usage.tokens_in = usage.tokens_out = usage.tokens_cached = usage.tokens_written = 0;
    /* It goes on where nobody counts it. */
    else if (self->scan.background)
        usage.tokens_out = MAX(usage.tokens_in + usage.tokens_out, self->granted) - usage.tokens_in;
    eb_broker_link_send_used(self->broker->link, self->id, self->provider, &usage);
}

void
eb_meter_end(EbMeter *self)
{
    if (self->broker->link != NULL && (self->budget || self->status / 100 == 2))
        report(self);
    g_hash_table_remove(self->broker->meters, &self->id);
    g_free(self->provider);
    g_free(self);
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
}

const EbAnswerObserver EB_METER_OBSERVER = {observe_begin, observe_bytes, observe_end};
