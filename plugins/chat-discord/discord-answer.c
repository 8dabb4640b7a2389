/* SPDX-License-Identifier: MIT */
#include "discord-answer.h"

#include <math.h>
#include <string.h>

#define MAX_BUCKET 128
#define MAX_TEXT 300
/* Deepest and widest that is looked into for the field an error is about. */
#define ERROR_DEPTH 12

/* Seconds as a float, -1 for what is none; larger ones than are believed are cut. */
static gint64
seconds_to_us(double seconds)
{
    if (isnan(seconds) || seconds < 0)
        return -1;
    if (seconds >= (double)DISCORD_ANSWER_MAX_WAIT_US / G_USEC_PER_SEC)
        return DISCORD_ANSWER_MAX_WAIT_US;
    return (gint64)(seconds * G_USEC_PER_SEC + 0.5);
}

static gint64
header_seconds(SoupMessageHeaders *headers, const char *name)
{
    const char *text = headers != NULL ? soup_message_headers_get_one(headers, name) : NULL;
    char *end = NULL;
    if (text == NULL || !g_ascii_isdigit(*text))
        return -1;
    double seconds = g_ascii_strtod(text, &end);
    return *end == '\0' ? seconds_to_us(seconds) : -1;
}

static gint64
header_count(SoupMessageHeaders *headers, const char *name)
{
    const char *text = headers != NULL ? soup_message_headers_get_one(headers, name) : NULL;
    guint64 value;
    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT32, &value, NULL))
        return -1;
    return (gint64)value;
}

static DiscordScope
parse_scope(const DiscordAnswer *self, SoupMessageHeaders *headers, JsonObject *body)
{
    const char *text = headers != NULL ? soup_message_headers_get_one(headers, "X-RateLimit-Scope") : NULL;
    const char *global = headers != NULL ? soup_message_headers_get_one(headers, "X-RateLimit-Global") : NULL;
    if (self->status != 429)
        return DISCORD_SCOPE_NONE;
    if (g_strcmp0(text, "global") == 0 || (global != NULL && g_ascii_strcasecmp(global, "true") == 0) ||
        eb_json_get_bool(body, "global", FALSE))
        return DISCORD_SCOPE_GLOBAL;
    return g_strcmp0(text, "shared") == 0 ? DISCORD_SCOPE_SHARED : DISCORD_SCOPE_USER;
}

/* The first field that is wrong: {"embeds":{"0":{"title":{"_errors":[{"message":".."}]}}}} as "embeds.0.title: ..". */
static void
describe_field(JsonObject *errors, GString *path, GString *text)
{
    for (guint depth = 0; errors != NULL && depth < ERROR_DEPTH; depth++) {
        JsonArray *list = eb_json_get_array(errors, "_errors");
        const char *message = eb_json_get_string(eb_json_array_object(list, 0), "message");
        if (message != NULL) {
            g_string_append_printf(text, " (%s: %s)", path->str, message);
            return;
        }
        JsonObjectIter iter;
        const char *name;
        JsonNode *node;
        json_object_iter_init(&iter, errors);
        if (!json_object_iter_next(&iter, &name, &node))
            return;
        if (path->len > 0)
            g_string_append_c(path, '.');
        g_string_append(path, name);
        errors = eb_json_node_object(node);
    }
}

static char *
describe(JsonObject *body)
{
    const char *message = eb_json_get_string(body, "message");
    if (message == NULL)
        return NULL;
    g_autoptr(GString) text = g_string_new(message);
    g_autoptr(GString) path = g_string_new(NULL);
    describe_field(eb_json_get_object(body, "errors"), path, text);
    return eb_log_escape(text->str, (gssize)text->len, MAX_TEXT);
}

DiscordAnswer *
discord_answer_parse(guint status, SoupMessageHeaders *headers, const char *body, gsize length)
{
    static const EbJsonLimits limits = {.max_bytes = DISCORD_ANSWER_MAX, .max_depth = 64};
    DiscordAnswer *self = g_new0(DiscordAnswer, 1);
    self->status = status;
    self->empty = length == 0;
    if (length > 0)
        self->node = eb_json_parse(body, length, &limits, NULL);
    JsonObject *object = eb_json_node_object(self->node);
    const char *bucket = headers != NULL ? soup_message_headers_get_one(headers, "X-RateLimit-Bucket") : NULL;
    if (bucket != NULL && *bucket != '\0' && strlen(bucket) <= MAX_BUCKET)
        self->bucket = g_strdup(bucket);
    self->remaining = header_count(headers, "X-RateLimit-Remaining");
    self->reset_after_us = header_seconds(headers, "X-RateLimit-Reset-After");
    self->retry_after_us = header_seconds(headers, "Retry-After");
    if (status < 400)
        return self;
    self->scope = parse_scope(self, headers, object);
    self->retry_after_us = MAX(self->retry_after_us, seconds_to_us(eb_json_get_double(object, "retry_after", -1)));
    /* 40333 is what the API's own border says in JSON to a client it takes for a browser or a script. */
    self->edge = (status == 403 || status == 429) && object == NULL;
    gint64 code = eb_json_get_int(object, "code", 0);
    self->code = code > 0 && code <= G_MAXINT32 ? (guint)code : 0;
    self->text = describe(object);
    return self;
}

void
discord_answer_free(DiscordAnswer *self)
{
    if (self == NULL)
        return;
    g_clear_pointer(&self->node, json_node_unref);
    g_free(self->bucket);
    g_free(self->text);
    g_free(self);
}

GError *
discord_answer_error(const DiscordAnswer *self, const char *what)
{
    if (self->status == 401)
        return eb_error_new(EB_ERROR_UNAUTHENTICATED, "discord.unauthorized",
                            "%s: Discord does not accept the credential it was sent with", what);
    g_autofree char *reason =
        self->code != 0 ? g_strdup_printf("discord.%u", self->code) : g_strdup_printf("discord.http-%u", self->status);
    EbErrorCode code;
    switch (self->status) {
    case 403:
        code = EB_ERROR_DENIED;
        break;
    case 404:
        code = EB_ERROR_NOT_FOUND;
        break;
    default:
        code = self->status >= 400 && self->status < 500 ? EB_ERROR_INVALID : EB_ERROR_PROTOCOL;
    }
    return eb_error_new(code, reason, "%s: Discord answered %u: %s", what, self->status,
                        self->text != NULL ? self->text : "no reason given");
}
