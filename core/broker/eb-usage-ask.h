/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-http-front.h"
#include "core/broker/eb-usage-scan.h"

G_BEGIN_DECLS

/**
 * EB_USAGE_UNLIMITED: tokens of an answer that comes whole and has no limit: as many as the models of the three kinds give
 * in one answer (128 Ki, as their providers' documentation has it).
 */
#define EB_USAGE_UNLIMITED (128 * 1024)

/** EbUsagePath: what a provider's path is to a budget. */
typedef enum {
    EB_USAGE_PATH_COUNTED,   /* its answer says what it cost */
    EB_USAGE_PATH_FREE,      /* costs nothing: reads, and counting */
    EB_USAGE_PATH_UNCOUNTED, /* costs something that its answer does not say, or gives an answer that nobody saw */
} EbUsagePath;

/** eb_usage_judge_path: @path: may have a query; @has_body: then some servers look at no method */
EbUsagePath eb_usage_judge_path(EbHttpMethod method, gboolean has_body, const char *path);

/**
 * EbUsageAsk: what a request to a model asks for, read as its body passes, in whatever pieces: its model, its limit, and
 * whether what it uses can be counted at all. The guest wrote it, and wants it read otherwise than its provider does.
 */
typedef struct {
    EbUsageScan scan;
    guint64 length;     /* bytes of the body that its head states; 0: unknown, or none */
    gboolean has_path;  /* the path says whether it streams, as gemini's does */
    gboolean has_model; /* the path says which model it is */
    gboolean silent;    /* there are no tokens in its answer */
    const char *hidden; /* (nullable): static: why it cannot be counted */
} EbUsageAsk;

/** eb_usage_ask_init: @path: as it goes up, with its query */
void eb_usage_ask_init(EbUsageAsk *self, const EbHttpRequest *request, const char *path);
/** eb_usage_ask_run: the next bytes of the body, framing taken off */
void eb_usage_ask_run(EbUsageAsk *self, const char *bytes, gsize length);
/** eb_usage_ask_get_hidden: (nullable): static text: why it cannot be counted, as far as it was read */
const char *eb_usage_ask_get_hidden(const EbUsageAsk *self);
/** eb_usage_ask_get_input: tokens of the request, by its size */
guint64 eb_usage_ask_get_input(const EbUsageAsk *self);
/**
 * eb_usage_ask_get_output: tokens to be set aside for its answer.
 * @reserve: for one that states no limit, or asks for more on its way
 * @whole: (out): all of it is needed
 */
guint64 eb_usage_ask_get_output(const EbUsageAsk *self, guint64 reserve, gboolean *whole);
/** eb_usage_ask_get_least: tokens that an answer nobody waited for counts as, beside its input */
guint64 eb_usage_ask_get_least(const EbUsageAsk *self, guint64 reserve);

G_END_DECLS
