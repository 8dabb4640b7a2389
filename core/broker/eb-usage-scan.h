/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-usage-json.h"

G_BEGIN_DECLS

/**
 * EB_USAGE_BYTES_A_TOKEN: bytes of text taken for one token where nobody counted. English has four and a half, code three
 * and a half, and no common tokenizer gives less than three for a language of any size.
 */
#define EB_USAGE_BYTES_A_TOKEN 3

/** EbUsage: what one answer cost, as its provider says, or as it looks. */
typedef struct {
    guint64 tokens_in; /* all of them, cached ones included */
    guint64 tokens_out;
    guint64 tokens_cached;  /* of tokens_in: read from the provider's cache */
    guint64 tokens_written; /* of tokens_in: written to it */
    gboolean estimated;     /* some of it is our guess */
    char model[EB_USAGE_TEXT];
} EbUsage;

/**
 * EbUsageScan: finds the usage fields of openai (chat completions, responses), anthropic and gemini answers as they pass,
 * whole or streamed, without holding any of it. Which of them it is shows by the names; a name counts where the provider
 * writes it and nowhere else, so that nothing a model says is taken for usage.
 */
typedef struct {
    EbUsageJson json;
    gboolean events; /* text/event-stream: only what follows "data:" is JSON */
    guint line;      /* bytes of "data:" matched; more = within or past it */
    guint64 input, output, thoughts, tool_input, cached, cache_read, cache_write;
    gboolean seen;       /* usage */
    gboolean seen_in;    /* usage of the input */
    gboolean complete;   /* usage of the output */
    gboolean background; /* it goes on where we do not see it */
    gboolean stream;     /* of a request: it asks for a stream, and says so once */
    guint n_stream;      /* times that it says whether it does */
    gboolean mixed;      /* of a request: it names more than one model */
    guint64 choices;     /* of a request: answers that it asks for, 0 = it does not say */
    guint64 bytes;       /* of all */
    guint64 fresh;       /* bytes of text since the last usage */
    guint64 max_tokens;  /* of a request: what it states, 0 = nothing */
    char model[EB_USAGE_TEXT];
} EbUsageScan;

/** eb_usage_scan_init: @events: TRUE for text/event-stream; FALSE also for a request's body */
void eb_usage_scan_init(EbUsageScan *self, gboolean events);
void eb_usage_scan_run(EbUsageScan *self, const char *bytes, gsize length);
/**
 * eb_usage_scan_get: what is known by now; may be asked while it streams.
 * @guess_in: tokens of the request, for when nobody tells
 */
void eb_usage_scan_get(const EbUsageScan *self, guint64 guess_in, EbUsage *usage);

G_END_DECLS
