/* SPDX-License-Identifier: MIT */
#include "discord-gateway-frame.h"

#include <string.h>

static const EbJsonLimits limits = {DISCORD_GATEWAY_MAX_FRAME, DISCORD_GATEWAY_MAX_DEPTH};

/* A place in text that eb_json_scan() has found to be JSON, so that only ends are looked for, not faults. */
typedef struct {
    const char *at;
    const char *end;
} Cursor;

typedef struct {
    const char *start;
    gsize length;
} Span;

static gboolean
is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void
skip_space(Cursor *cursor)
{
    while (cursor->at < cursor->end && is_space(*cursor->at))
        cursor->at++;
}

/* From one quote to behind the other; the span is what is between. */
static Span
skip_string(Cursor *cursor)
{
    Span span = {++cursor->at, 0};
    for (;;) {
        const char *quote = memchr(cursor->at, '"', (gsize)(cursor->end - cursor->at));
        const char *escape = quote != NULL ? memchr(cursor->at, '\\', (gsize)(quote - cursor->at)) : NULL;
        if (quote == NULL) {
            cursor->at = cursor->end;
            break;
        }
        if (escape == NULL) {
            cursor->at = quote + 1;
            break;
        }
        cursor->at = MIN(escape + 2, cursor->end);
    }
    span.length = (gsize)(cursor->at - span.start) - (cursor->at > span.start ? 1 : 0);
    return span;
}

static Span
skip_value(Cursor *cursor)
{
    Span span = {cursor->at, 0};
    guint depth = 0;
    while (cursor->at < cursor->end) {
        char byte = *cursor->at;
        if (byte == '"') {
            skip_string(cursor);
        } else if (byte == '{' || byte == '[') {
            depth++;
            cursor->at++;
            continue;
        } else if (byte == '}' || byte == ']') {
            if (depth == 0)
                break;
            depth--;
            cursor->at++;
        } else if (depth > 0) {
            cursor->at++;
            continue;
        } else if (byte == ',' || is_space(byte)) {
            break;
        } else {
            cursor->at++;
            continue;
        }
        if (depth == 0)
            break;
    }
    span.length = (gsize)(cursor->at - span.start);
    return span;
}

static gboolean
enter_object(Cursor *cursor)
{
    skip_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != '{')
        return FALSE;
    cursor->at++;
    return TRUE;
}

static gboolean
next_member(Cursor *cursor, Span *key, Span *value)
{
    skip_space(cursor);
    if (cursor->at < cursor->end && *cursor->at == ',') {
        cursor->at++;
        skip_space(cursor);
    }
    if (cursor->at == cursor->end || *cursor->at != '"')
        return FALSE;
    *key = skip_string(cursor);
    skip_space(cursor);
    if (cursor->at < cursor->end)
        cursor->at++; /* the colon */
    skip_space(cursor);
    *value = skip_value(cursor);
    return TRUE;
}

static gboolean
span_is(Span span, const char *text)
{
    return span.length == strlen(text) && memcmp(span.start, text, span.length) == 0;
}

/* A number without sign, fraction or exponent, up to @max; -1 for anything else. */
static gint64
span_number(Span span, gint64 max)
{
    gint64 number = 0;
    if (span.length == 0 || span.length > 16)
        return -1;
    for (gsize i = 0; i < span.length; i++) {
        if (!g_ascii_isdigit(span.start[i]))
            return -1;
        number = number * 10 + (span.start[i] - '0');
    }
    return number <= max ? number : -1;
}

/* The text of a string's span, which includes the quotes here. */
static gboolean
span_text(Span span, char *buffer, gsize size)
{
    if (span.length < 2 || span.length - 2 >= size || span.start[0] != '"' ||
        memchr(span.start, '\\', span.length) != NULL)
        return FALSE;
    memcpy(buffer, span.start + 1, span.length - 2);
    buffer[span.length - 2] = '\0';
    return TRUE;
}

gboolean
discord_gateway_frame_read(const char *text, gsize length, DiscordGatewayFrame *frame, GError **error)
{
    Cursor cursor = {text, text + length};
    Span key, value;

    *frame = (DiscordGatewayFrame){.op = -1, .seq = -1};
    if (!eb_json_scan(text, length, &limits, error))
        return FALSE;
    if (!enter_object(&cursor)) {
        eb_set_error(error, EB_ERROR_INVALID, "json.syntax", "the payload is no JSON object");
        return FALSE;
    }
    while (next_member(&cursor, &key, &value)) {
        if (span_is(key, "op")) {
            frame->op = (gint)span_number(value, G_MAXINT);
        } else if (span_is(key, "s")) {
            frame->seq = span_number(value, DISCORD_GATEWAY_MAX_SEQ);
        } else if (span_is(key, "t")) {
            if (!span_text(value, frame->type, sizeof frame->type))
                frame->type[0] = '\0';
        } else if (span_is(key, "d")) {
            frame->data_at = (gsize)(value.start - text);
            frame->data_length = value.length;
        }
    }
    return TRUE;
}

JsonNode *
discord_gateway_frame_parse(const char *text, const DiscordGatewayFrame *frame)
{
    if (frame->data_length == 0)
        return NULL;
    return eb_json_parse(text + frame->data_at, frame->data_length, &limits, NULL);
}

/* @prefix: NULL, or the member that the object at @cursor is. */
static void
peek(Cursor cursor, const char *prefix, DiscordPeek *peeks, gsize n_peeks)
{
    gsize prefix_length = prefix != NULL ? strlen(prefix) : 0;
    Span key, value;

    if (!enter_object(&cursor))
        return;
    while (next_member(&cursor, &key, &value)) {
        gboolean entered = FALSE;
        for (gsize i = 0; i < n_peeks; i++) {
            const char *member = peeks[i].member;
            if (prefix != NULL && (strncmp(member, prefix, prefix_length) != 0 || member[prefix_length] != '.'))
                continue;
            member += prefix != NULL ? prefix_length + 1 : 0;
            if (strncmp(member, key.start, key.length) != 0)
                continue;
            if (member[key.length] == '\0' && !span_text(value, peeks[i].text, sizeof peeks[i].text)) {
                peeks[i].text[0] = '\0';
            } else if (member[key.length] == '.' && prefix == NULL && !entered) {
                g_autofree char *name = g_strndup(key.start, key.length);
                entered = TRUE;
                peek((Cursor){value.start, value.start + value.length}, name, peeks, n_peeks);
            }
        }
    }
}

void
discord_gateway_frame_peek(const char *text, const DiscordGatewayFrame *frame, DiscordPeek *peeks, gsize n_peeks)
{
    for (gsize i = 0; i < n_peeks; i++)
        peeks[i].text[0] = '\0';
    peek((Cursor){text + frame->data_at, text + frame->data_at + frame->data_length}, NULL, peeks, n_peeks);
}
