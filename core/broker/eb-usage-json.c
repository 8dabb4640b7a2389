/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-usage-json.h"

#include <string.h>

/* More digits than a count of tokens has are no count of tokens. */
#define MAX_NUMBER G_GUINT64_CONSTANT(1000000000000)
#define MAX_EXPONENT 12

enum {
    STATE_VALUE = 0, /* between values */
    STATE_STRING,
    STATE_ESCAPE,
    STATE_NUMBER,
    STATE_FRACTION, /* behind its point */
    STATE_EXPONENT,
    STATE_NEGATIVE, /* no count of anything */
    STATE_WORD,     /* true, false, null */
};

static const struct {
    const char *name;
    EbUsageKey key;
} KEYS[] = {
    {"usage", EB_USAGE_KEY_USAGE},
    {"usageMetadata", EB_USAGE_KEY_USAGE},
    {"response", EB_USAGE_KEY_RESPONSE},
    {"message", EB_USAGE_KEY_MESSAGE},
    {"delta", EB_USAGE_KEY_DELTA},
    {"parts", EB_USAGE_KEY_PARTS},
    {"type", EB_USAGE_KEY_LABEL},
    {"role", EB_USAGE_KEY_LABEL},
    {"id", EB_USAGE_KEY_LABEL},
    {"stop_reason", EB_USAGE_KEY_LABEL},
    {"signature", EB_USAGE_KEY_LABEL},
    {"model", EB_USAGE_KEY_MODEL},
    {"modelVersion", EB_USAGE_KEY_MODEL},
    {"background", EB_USAGE_KEY_BACKGROUND},
    {"stream", EB_USAGE_KEY_STREAM},
    {"prompt_tokens_details", EB_USAGE_KEY_DETAILS},
    {"input_tokens_details", EB_USAGE_KEY_DETAILS},
    {"generationConfig", EB_USAGE_KEY_GENERATION},
    {"generation_config", EB_USAGE_KEY_GENERATION},
    {"n", EB_USAGE_KEY_CHOICES},
    {"best_of", EB_USAGE_KEY_CHOICES},
    {"candidateCount", EB_USAGE_KEY_CHOICES},
    {"candidate_count", EB_USAGE_KEY_CHOICES},
    {"max_tokens", EB_USAGE_KEY_MAX_TOKENS},
    {"max_tokens_to_sample", EB_USAGE_KEY_MAX_TOKENS},
    {"max_completion_tokens", EB_USAGE_KEY_MAX_TOKENS},
    {"max_output_tokens", EB_USAGE_KEY_MAX_TOKENS},
    {"maxOutputTokens", EB_USAGE_KEY_MAX_TOKENS},
    {"prompt_tokens", EB_USAGE_KEY_INPUT},
    {"input_tokens", EB_USAGE_KEY_INPUT},
    {"promptTokenCount", EB_USAGE_KEY_INPUT},
    {"completion_tokens", EB_USAGE_KEY_OUTPUT},
    {"output_tokens", EB_USAGE_KEY_OUTPUT},
    {"candidatesTokenCount", EB_USAGE_KEY_OUTPUT},
    {"thoughtsTokenCount", EB_USAGE_KEY_THOUGHTS},
    {"toolUsePromptTokenCount", EB_USAGE_KEY_TOOL_INPUT},
    {"cached_tokens", EB_USAGE_KEY_CACHED},
    {"cachedContentTokenCount", EB_USAGE_KEY_CACHED},
    {"prompt_cache_hit_tokens", EB_USAGE_KEY_CACHED},
    {"cache_read_input_tokens", EB_USAGE_KEY_CACHE_READ},
    {"cache_creation_input_tokens", EB_USAGE_KEY_CACHE_WRITE},
};

void
eb_usage_json_init(EbUsageJson *self, EbUsageJsonFunc func, gpointer user_data)
{
    *self = (EbUsageJson){.func = func, .user_data = user_data};
}

void
eb_usage_json_reset(EbUsageJson *self)
{
    eb_usage_json_init(self, self->func, self->user_data);
}

static gboolean
in_object(const EbUsageJson *self)
{
    return self->depth > 0 && self->depth <= EB_USAGE_DEPTH && self->stack[self->depth - 1].object;
}

/* What is too deep has no names: it tells nothing. */
static gboolean
is_followed(const EbUsageJson *self)
{
    return self->depth > 0 && self->depth <= EB_USAGE_DEPTH;
}

EbUsageKey
eb_usage_json_above(const EbUsageJson *self, guint up)
{
    return self->depth > up && self->depth <= EB_USAGE_DEPTH ? self->stack[self->depth - 1 - up].key
                                                             : EB_USAGE_KEY_OTHER;
}

guint
eb_usage_json_level(const EbUsageJson *self)
{
    return self->depth - (self->depth > 0 && !self->stack[0].object ? 1 : 0);
}

static void
tell(EbUsageJson *self, EbUsageEventType type)
{
    const EbUsageEvent event = {type, self->key, self->number, self->text, self->length};

    if (is_followed(self))
        self->func(self, &event, self->user_data);
}

static void
open_level(EbUsageJson *self, gboolean object)
{
    if (self->depth < EB_USAGE_DEPTH) {
        self->stack[self->depth].object = object;
        self->stack[self->depth].key = self->key;
    }
    /* A text that never ends to open levels is no JSON of anybody's. */
    if (self->depth < G_MAXUINT / 2)
        self->depth++;
    self->key = EB_USAGE_KEY_OTHER;
    self->key_due = object;
}

static void
close_level(EbUsageJson *self)
{
    if (self->depth == 0)
        return;
    gboolean object = in_object(self);
    EbUsageKey key = is_followed(self) ? self->stack[self->depth - 1].key : EB_USAGE_KEY_OTHER;
    self->depth--;
    self->key = key;
    if (object)
        tell(self, EB_USAGE_CLOSED);
    self->key = EB_USAGE_KEY_OTHER;
    self->key_due = FALSE;
}

static void
end_string(EbUsageJson *self)
{
    self->text[self->kept] = '\0';
    self->state = STATE_VALUE;
    if (!self->key_due || !in_object(self)) {
        tell(self, EB_USAGE_STRING);
        return;
    }
    self->key = EB_USAGE_KEY_OTHER;
    for (gsize i = 0; i < G_N_ELEMENTS(KEYS) && !self->odd && self->kept < EB_USAGE_TEXT - 1; i++)
        if (KEYS[i].name[0] == self->text[0] && strcmp(KEYS[i].name, self->text) == 0)
            self->key = KEYS[i].key;
}

static void
keep(EbUsageJson *self, char c)
{
    if (self->kept < EB_USAGE_TEXT - 1)
        self->text[self->kept++] = c;
}

/* A name is the same however it is written: "max\u005ftokens" is max_tokens to the provider. */
static void
take_escape(EbUsageJson *self, char c)
{
    if (self->escapes > 0) {
        self->escaped = self->escaped * 16 + (guint)MAX(g_ascii_xdigit_value(c), 0);
        if (--self->escapes > 0)
            return;
        /* None of our words has a character beyond ASCII. */
        self->odd = self->odd || self->escaped == 0 || self->escaped > 0x7f;
        keep(self, self->escaped > 0 && self->escaped <= 0x7f ? (char)self->escaped : '?');
        self->state = STATE_STRING;
    } else if (c == 'u') {
        self->escapes = 4;
        self->escaped = 0;
        self->length += 3;
    } else {
        self->length++;
        keep(self, c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c);
        self->state = STATE_STRING;
    }
}

static void
take_string(EbUsageJson *self, char c)
{
    if (self->state == STATE_ESCAPE) {
        take_escape(self, c);
    } else if (c == '\\') {
        self->state = STATE_ESCAPE;
    } else if (c == '"') {
        end_string(self);
    } else {
        self->length++;
        keep(self, c);
    }
}

static void
take_value(EbUsageJson *self, char c)
{
    switch (c) {
    case '{':
    case '[':
        open_level(self, c == '{');
        break;
    case '}':
    case ']':
        close_level(self);
        break;
    case '"':
        self->state = STATE_STRING;
        self->length = self->kept = self->escapes = 0;
        self->odd = FALSE;
        break;
    case ':':
        self->key_due = FALSE;
        break;
    case ',':
        self->key = EB_USAGE_KEY_OTHER;
        self->key_due = in_object(self);
        break;
    default:
        if (g_ascii_isdigit(c)) {
            self->state = STATE_NUMBER;
            self->number = (guint64)(c - '0');
            self->exponent = 0;
        } else if (g_ascii_isalpha(c) || c == '-') {
            self->state = c == '-' ? STATE_NEGATIVE : STATE_WORD;
            self->number = c == 't';
        }
        break;
    }
}

static gboolean
is_of_number(char c)
{
    return g_ascii_isdigit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

/* 1e5 and 99999.5 are limits of about a hundred thousand to a provider. What is rounded here is rounded up. */
static void
take_number(EbUsageJson *self, char c)
{
    switch (self->state) {
    case STATE_NUMBER:
        if (g_ascii_isdigit(c))
            self->number = MIN(self->number * 10 + (guint64)(c - '0'), MAX_NUMBER);
        else
            self->state = c == '.' ? STATE_FRACTION : STATE_EXPONENT;
        if (c == '.')
            self->number = MIN(self->number + 1, MAX_NUMBER);
        break;
    case STATE_FRACTION:
        if (!g_ascii_isdigit(c))
            self->state = STATE_EXPONENT;
        break;
    case STATE_EXPONENT:
        if (c == '-')
            self->state = STATE_FRACTION; /* smaller than what there is */
        else if (g_ascii_isdigit(c))
            self->exponent = MIN(self->exponent * 10 + (guint)(c - '0'), MAX_EXPONENT);
        break;
    case STATE_NEGATIVE:
    default:
        break;
    }
}

static void
end_number(EbUsageJson *self)
{
    for (guint i = 0; i < self->exponent; i++)
        self->number = MIN(self->number * 10, MAX_NUMBER);
    tell(self, EB_USAGE_NUMBER);
}

/* FALSE: the byte is not part of the number or word and is to be looked at again. */
static gboolean
take_scalar(EbUsageJson *self, char c)
{
    guint state = self->state;

    if (state == STATE_WORD && g_ascii_isalpha(c))
        return TRUE;
    if (state != STATE_WORD && is_of_number(c)) {
        take_number(self, c);
        return TRUE;
    }
    self->state = STATE_VALUE;
    if (state == STATE_WORD)
        tell(self, self->number != 0 ? EB_USAGE_TRUE : EB_USAGE_FALSE);
    else if (state != STATE_NEGATIVE)
        end_number(self);
    return FALSE;
}

/* Bytes before the first that ends a string or begins an escape, eight at a time. */
static gsize
plain_length(const char *bytes, gsize length)
{
    const guint64 ones = G_GUINT64_CONSTANT(0x0101010101010101), highs = ones << 7;
    gsize i = 0;

    for (guint64 word; length - i >= sizeof word; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        guint64 quotes = word ^ (ones * '"'), slashes = word ^ (ones * '\\');

        if ((((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes)) & highs)
            break;
    }
    while (i < length && bytes[i] != '"' && bytes[i] != '\\')
        i++;
    return i;
}

void
eb_usage_json_run(EbUsageJson *self, const char *bytes, gsize length)
{
    for (gsize i = 0; i < length; i++) {
        /* Most of an answer is text: what cannot end it is passed over at once. */
        if (self->state == STATE_STRING && self->kept == EB_USAGE_TEXT - 1) {
            gsize plain = plain_length(bytes + i, length - i);

            self->length += plain;
            i += plain;
            if (i == length)
                return;
        }
        if (self->state == STATE_STRING || self->state == STATE_ESCAPE)
            take_string(self, bytes[i]);
        else if (self->state == STATE_VALUE || !take_scalar(self, bytes[i]))
            take_value(self, bytes[i]);
    }
}
