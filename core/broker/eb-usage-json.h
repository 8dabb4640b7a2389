/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** EB_USAGE_DEPTH: nesting that is followed; what is deeper is passed over. */
#define EB_USAGE_DEPTH 16
/** EB_USAGE_TEXT: bytes kept of one key or text; longer ones are cut. */
#define EB_USAGE_TEXT 96

/** EbUsageKey: names of members that mean something here. */
typedef enum {
    EB_USAGE_KEY_OTHER = 0, /* any other, and elements of arrays */
    EB_USAGE_KEY_USAGE,     /* usage, usageMetadata */
    EB_USAGE_KEY_RESPONSE,
    EB_USAGE_KEY_MESSAGE,
    EB_USAGE_KEY_DELTA,
    EB_USAGE_KEY_PARTS,
    EB_USAGE_KEY_LABEL, /* type, role, id, ...: words of the protocol and not of the model */
    EB_USAGE_KEY_MODEL, /* model, modelVersion */
    EB_USAGE_KEY_STREAM,
    EB_USAGE_KEY_BACKGROUND,  /* answers that go on elsewhere */
    EB_USAGE_KEY_DETAILS,     /* prompt_tokens_details, input_tokens_details */
    EB_USAGE_KEY_GENERATION,  /* generationConfig */
    EB_USAGE_KEY_CHOICES,     /* n, best_of, candidateCount: answers to one question, each up to the limit */
    EB_USAGE_KEY_MAX_TOKENS,  /* max_tokens, max_completion_tokens, max_output_tokens, maxOutputTokens */
    EB_USAGE_KEY_INPUT,       /* prompt_tokens, input_tokens, promptTokenCount */
    EB_USAGE_KEY_OUTPUT,      /* completion_tokens, output_tokens, candidatesTokenCount */
    EB_USAGE_KEY_THOUGHTS,    /* thoughtsTokenCount */
    EB_USAGE_KEY_TOOL_INPUT,  /* toolUsePromptTokenCount */
    EB_USAGE_KEY_CACHED,      /* cached_tokens, cachedContentTokenCount, prompt_cache_hit_tokens: part of the input */
    EB_USAGE_KEY_CACHE_READ,  /* cache_read_input_tokens: beside the input */
    EB_USAGE_KEY_CACHE_WRITE, /* cache_creation_input_tokens: beside the input */
} EbUsageKey;

typedef enum {
    EB_USAGE_NUMBER, /* number is set */
    EB_USAGE_STRING, /* text, cut, and its whole length */
    EB_USAGE_TRUE,
    EB_USAGE_FALSE,  /* or null */
    EB_USAGE_CLOSED, /* an object ended: key is its own */
} EbUsageEventType;

typedef struct _EbUsageJson EbUsageJson;

/** EbUsageEvent: one value. The members above it: eb_usage_json_above(). */
typedef struct {
    EbUsageEventType type;
    EbUsageKey key;
    guint64 number;
    const char *text;
    gsize length;
} EbUsageEvent;

typedef void (*EbUsageJsonFunc)(const EbUsageJson *json, const EbUsageEvent *event, gpointer user_data);

/**
 * EbUsageJson: reads JSON as it streams by and tells its numbers and texts, in bounded memory and never going back. It
 * judges nothing: what is no JSON gives no events, or odd ones, and the next object is read as if nothing had been.
 */
struct _EbUsageJson {
    EbUsageJsonFunc func;
    gpointer user_data;
    guint depth;   /* open objects and arrays, also those not followed */
    guint state;   /* of the reader */
    guint escapes; /* digits of an escape still to come */
    guint escaped; /* what they stand for */
    EbUsageKey key;
    gboolean key_due;
    gboolean odd; /* the text has escapes that are no key's of ours */
    guint64 number;
    guint exponent; /* of number */
    gsize length;   /* of the text, whole */
    gsize kept;
    char text[EB_USAGE_TEXT];
    struct {
        gboolean object;
        EbUsageKey key;
    } stack[EB_USAGE_DEPTH];
};

void eb_usage_json_init(EbUsageJson *self, EbUsageJsonFunc func, gpointer user_data);
/** eb_usage_json_reset: what comes is a new text. */
void eb_usage_json_reset(EbUsageJson *self);
void eb_usage_json_run(EbUsageJson *self, const char *bytes, gsize length);

/**
 * eb_usage_json_above: the key of the @up-th object or array around the value of an event, 0 = the one it stands in.
 * EB_USAGE_KEY_OTHER for the outermost and beyond. Inside EB_USAGE_CLOSED 0 is what the closed object stands in.
 */
EbUsageKey eb_usage_json_above(const EbUsageJson *self, guint up);
/** eb_usage_json_level: objects around the value, an outermost array not counted. */
guint eb_usage_json_level(const EbUsageJson *self);

G_END_DECLS
