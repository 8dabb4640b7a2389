/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-usage-scan.h"

#include <string.h>

#define DATA "data:"
#define DATA_LENGTH (sizeof DATA - 1)

/* Of self->line beyond the bytes of DATA that matched. */
enum {
    LINE_DATA = 100, /* JSON */
    LINE_OTHER,      /* another field, or a comment */
};

/* Where providers write usage: in the answer itself, in the answer an event is about, or in the message it begins. */
static gboolean
is_usage(const EbUsageJson *json, guint up)
{
    guint level = eb_usage_json_level(json);

    if (eb_usage_json_above(json, up) != EB_USAGE_KEY_USAGE || level < up + 2)
        return FALSE;
    EbUsageKey around = eb_usage_json_above(json, up + 1);
    return level == up + 2 || (level == up + 3 && (around == EB_USAGE_KEY_RESPONSE || around == EB_USAGE_KEY_MESSAGE));
}

/* Counts grow while an answer streams. */
static void
grow(guint64 *count, guint64 number)
{
    *count = MAX(*count, number);
}

static void
take_number(EbUsageScan *self, const EbUsageJson *json, const EbUsageEvent *event)
{
    if (event->key == EB_USAGE_KEY_MAX_TOKENS || event->key == EB_USAGE_KEY_CHOICES) {
        if (eb_usage_json_level(json) == 1 ||
            (eb_usage_json_level(json) == 2 && eb_usage_json_above(json, 0) == EB_USAGE_KEY_GENERATION))
            grow(event->key == EB_USAGE_KEY_CHOICES ? &self->choices : &self->max_tokens, event->number);
        return;
    }
    if (event->key == EB_USAGE_KEY_CACHED && eb_usage_json_above(json, 0) == EB_USAGE_KEY_DETAILS) {
        if (is_usage(json, 1))
            grow(&self->cached, event->number);
        return;
    }
    if (!is_usage(json, 0))
        return;
    guint64 *const counts[] = {
        [EB_USAGE_KEY_INPUT] = &self->input,
        [EB_USAGE_KEY_OUTPUT] = &self->output,
        [EB_USAGE_KEY_THOUGHTS] = &self->thoughts,
        [EB_USAGE_KEY_TOOL_INPUT] = &self->tool_input,
        [EB_USAGE_KEY_CACHED] = &self->cached,
        [EB_USAGE_KEY_CACHE_READ] = &self->cache_read,
        [EB_USAGE_KEY_CACHE_WRITE] = &self->cache_write,
    };
    if (event->key < G_N_ELEMENTS(counts) && counts[event->key] != NULL) {
        grow(counts[event->key], event->number);
        self->seen = TRUE;
        self->seen_in = self->seen_in || (event->key != EB_USAGE_KEY_OUTPUT && event->key != EB_USAGE_KEY_THOUGHTS);
    }
}

/* What a model says comes in the delta of an event, or in the parts of one. */
static gboolean
is_said(const EbUsageJson *json, const EbUsageEvent *event)
{
    if (event->key == EB_USAGE_KEY_LABEL)
        return FALSE;
    if (event->key == EB_USAGE_KEY_DELTA)
        return TRUE;
    for (guint up = 0; up < MIN(json->depth, EB_USAGE_DEPTH); up++) {
        EbUsageKey key = eb_usage_json_above(json, up);
        if (key == EB_USAGE_KEY_DELTA || key == EB_USAGE_KEY_PARTS)
            return TRUE;
    }
    return FALSE;
}

static void
take_model(EbUsageScan *self, guint level, const EbUsageEvent *event)
{
    const char *name = event->length < EB_USAGE_TEXT ? event->text : "";

    self->mixed = self->mixed || (level == 1 && self->model[0] != '\0' && strcmp(self->model, name) != 0);
    g_strlcpy(self->model, name, sizeof self->model);
}

static void
take_string(EbUsageScan *self, const EbUsageJson *json, const EbUsageEvent *event)
{
    guint level = eb_usage_json_level(json);

    if (event->key == EB_USAGE_KEY_MODEL &&
        (level == 1 || (level == 2 && (eb_usage_json_above(json, 0) == EB_USAGE_KEY_RESPONSE ||
                                       eb_usage_json_above(json, 0) == EB_USAGE_KEY_MESSAGE))))
        take_model(self, level, event);
    else if (is_said(json, event))
        self->fresh += event->length;
}

/* Of two that contradict each other, who knows which one a provider takes: neither is one. */
static void
take_flag(EbUsageScan *self, const EbUsageJson *json, const EbUsageEvent *event)
{
    gboolean yes = event->type == EB_USAGE_TRUE;

    if (event->key == EB_USAGE_KEY_BACKGROUND && eb_usage_json_level(json) <= 2)
        self->background = self->background || event->type != EB_USAGE_FALSE;
    else if (event->key == EB_USAGE_KEY_STREAM && eb_usage_json_level(json) == 1)
        self->stream = ++self->n_stream == 1 && yes;
}

static void
on_event(const EbUsageJson *json, const EbUsageEvent *event, gpointer user_data)
{
    EbUsageScan *self = user_data;

    if (event->type != EB_USAGE_CLOSED)
        take_flag(self, json, event);
    switch (event->type) {
    case EB_USAGE_NUMBER:
        take_number(self, json, event);
        break;
    case EB_USAGE_STRING:
        take_string(self, json, event);
        break;
    case EB_USAGE_TRUE:
    case EB_USAGE_FALSE:
        break;
    case EB_USAGE_CLOSED:
    default:
        /* The usage a message begins with knows its input alone. */
        if (event->key == EB_USAGE_KEY_USAGE && self->seen && eb_usage_json_above(json, 0) != EB_USAGE_KEY_MESSAGE &&
            eb_usage_json_level(json) <= 2) {
            self->complete = TRUE;
            self->fresh = 0;
        }
        break;
    }
}

void
eb_usage_scan_init(EbUsageScan *self, gboolean events)
{
    memset(self, 0, sizeof *self);
    eb_usage_json_init(&self->json, on_event, self);
    self->events = events;
}

static void
end_line(EbUsageScan *self)
{
    /* An empty line ends an event: its JSON, whole or not, has nothing to do with the next. */
    if (self->line == 0)
        eb_usage_json_reset(&self->json);
    else if (self->line == LINE_DATA)
        eb_usage_json_run(&self->json, "\n", 1);
    self->line = 0;
}

static void
run_events(EbUsageScan *self, const char *bytes, gsize length)
{
    gsize i = 0;

    while (i < length) {
        const char *end = memchr(bytes + i, '\n', length - i);
        gsize stop = end != NULL ? (gsize)(end - bytes) : length;
        while (i < stop && self->line < DATA_LENGTH) {
            if (bytes[i] == '\r' && self->line == 0)
                i++;
            else if (bytes[i] == DATA[self->line])
                self->line++, i++;
            else
                self->line = LINE_OTHER;
        }
        if (self->line == DATA_LENGTH)
            self->line = LINE_DATA;
        if (self->line == LINE_DATA)
            eb_usage_json_run(&self->json, bytes + i, stop - i);
        i = stop;
        if (end != NULL) {
            end_line(self);
            i++;
        }
    }
}

void
eb_usage_scan_run(EbUsageScan *self, const char *bytes, gsize length)
{
    /* The struct may have been copied since. */
    self->json.user_data = self;
    self->bytes += length;
    if (self->events)
        run_events(self, bytes, length);
    else
        eb_usage_json_run(&self->json, bytes, length);
}

void
eb_usage_scan_get(const EbUsageScan *self, guint64 guess_in, EbUsage *usage)
{
    guint64 beside = self->cache_read + self->cache_write;

    *usage = (EbUsage){
        .tokens_in = self->seen_in ? self->input + self->tool_input + beside : guess_in,
        .tokens_out =
            self->output + self->thoughts + (self->fresh + EB_USAGE_BYTES_A_TOKEN - 1) / EB_USAGE_BYTES_A_TOKEN,
        .tokens_cached = self->cached + self->cache_read,
        .tokens_written = self->cache_write,
        .estimated = !self->complete || self->fresh > 0,
    };
    /* Nothing but its size is known of a whole answer that nobody counted. */
    if (!self->events && !self->complete)
        usage->tokens_out = MAX(usage->tokens_out, self->bytes / EB_USAGE_BYTES_A_TOKEN);
    usage->tokens_cached = MIN(usage->tokens_cached, usage->tokens_in);
    usage->tokens_written = MIN(usage->tokens_written, usage->tokens_in - usage->tokens_cached);
    memcpy(usage->model, self->model, sizeof usage->model);
}
