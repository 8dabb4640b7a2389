/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-usage-ask.h"

#include <string.h>

static gboolean
ends_with(const char *path, gsize length, const char *end)
{
    gsize n = strlen(end);

    return length >= n && memcmp(path + length - n, end, n) == 0;
}

static gboolean
ends_with_any(const char *path, gsize length, const char *const *ends)
{
    for (gsize i = 0; ends[i] != NULL; i++)
        if (ends_with(path, length, ends[i]))
            return TRUE;
    return FALSE;
}

/* Without query and slashes behind. */
static gsize
path_length(const char *path)
{
    gsize length = strcspn(path, "?");

    while (length > 0 && path[length - 1] == '/')
        length--;
    return length;
}

/* --- paths --- */

/* Where answers are kept that nobody saw: made in the background, or given to a connection that was cut. */
static gboolean
reads_answers(const char *path, gsize length)
{
    static const char *const kept[] = {"/responses", "/chat/completions", "/conversations", "/threads", "/batches"};
    g_autofree char *whole = g_strndup(path, length);

    for (gsize i = 0; i < G_N_ELEMENTS(kept); i++) {
        const char *at = strstr(whole, kept[i]);
        if (at != NULL && (at[strlen(kept[i])] == '\0' || at[strlen(kept[i])] == '/'))
            return TRUE;
    }
    return FALSE;
}

EbUsagePath
eb_usage_judge_path(EbHttpMethod method, gboolean has_body, const char *path)
{
    static const char *const counted[] = {"/chat/completions",  "/completions",        "/responses",
                                          "/embeddings",        "/messages",           "/complete",
                                          "/responses/compact", ":generateContent",    ":streamGenerateContent",
                                          ":embedContent",      ":batchEmbedContents", NULL};
    static const char *const free_of_charge[] = {"/count_tokens", ":countTokens", "/moderations", "/input_tokens",
                                                 NULL};
    gsize length = path_length(path);
    gboolean is_counted = ends_with_any(path, length, counted);

    if (ends_with_any(path, length, free_of_charge))
        return EB_USAGE_PATH_FREE;
    if (is_counted && has_body)
        return EB_USAGE_PATH_COUNTED;
    if (method == EB_HTTP_GET)
        return reads_answers(path, length) ? EB_USAGE_PATH_UNCOUNTED : EB_USAGE_PATH_FREE;
    if (method == EB_HTTP_HEAD || method == EB_HTTP_OPTIONS || method == EB_HTTP_DELETE)
        return EB_USAGE_PATH_FREE;
    return is_counted ? EB_USAGE_PATH_COUNTED : EB_USAGE_PATH_UNCOUNTED;
}

/* --- what hides it --- */

/* Name of a parameter, without the "$" that Google's servers take as well. */
static gboolean
is_named(const char *parameter, gsize length, const char *name)
{
    if (length > 0 && parameter[0] == '$') {
        parameter++;
        length--;
    }
    return length == strlen(name) && g_ascii_strncasecmp(parameter, name, length) == 0;
}

/* A part of an answer, or one in another format, may leave out what it cost. */
static gboolean
query_hides(const char *path)
{
    const char *query = strchr(path, '?');

    for (const char *at = query != NULL ? query + 1 : ""; *at != '\0';) {
        gsize length = strcspn(at, "&;");
        g_autofree char *plain = g_uri_unescape_segment(at, at + length, NULL);
        const char *value = plain != NULL ? strchr(plain, '=') : NULL;
        gsize name = plain == NULL ? 0 : value != NULL ? (gsize)(value - plain) : strlen(plain);

        if (plain == NULL || is_named(plain, name, "fields"))
            return TRUE;
        if (is_named(plain, name, "alt") &&
            (value == NULL || (strncmp(value, "=sse", 4) != 0 && strncmp(value, "=json", 5) != 0)))
            return TRUE;
        at += length + (at[length] != '\0' ? 1 : 0);
    }
    return FALSE;
}

static const char *
headers_hide(const EbHttpRequest *request)
{
    for (guint i = 0; i < request->n_headers; i++) {
        const EbHttpHeader *header = &request->headers[i];

        if (g_ascii_strcasecmp(header->name, "content-encoding") == 0 &&
            g_ascii_strcasecmp(header->value, "identity") != 0)
            return "a compressed request is not read";
        if (g_ascii_strcasecmp(header->name, "content-type") == 0 && strstr(header->value, "form") != NULL)
            return "a request that is no JSON is not read";
    }
    return NULL;
}

/* --- reading --- */

void
eb_usage_ask_init(EbUsageAsk *self, const EbHttpRequest *request, const char *path)
{
    static const char *const silent[] = {"/embeddings", ":embedContent", ":batchEmbedContents", NULL};
    const char *model = strstr(path, "/models/");
    gsize length = path_length(path);
    gboolean streams = ends_with(path, length, ":streamGenerateContent");

    *self = (EbUsageAsk){.length = request->content_length};
    eb_usage_scan_init(&self->scan, FALSE);
    /* gemini has its model and its way to answer in the path: .../models/NAME:streamGenerateContent */
    self->has_path = streams || ends_with(path, length, ":generateContent");
    self->scan.stream = streams;
    self->silent = ends_with_any(path, length, silent);
    self->hidden = headers_hide(request);
    if (self->hidden == NULL && query_hides(path))
        self->hidden = "a part of an answer does not say what it cost";
    if (model == NULL || model > path + length)
        return;
    model += strlen("/models/");
    length = strcspn(model, ":/?");
    self->has_model = length > 0 && length < sizeof self->scan.model;
    if (self->has_model)
        g_strlcpy(self->scan.model, model, length + 1);
}

void
eb_usage_ask_run(EbUsageAsk *self, const char *bytes, gsize length)
{
    gboolean streams = self->scan.stream;
    char model[EB_USAGE_TEXT];

    /* Text of two bytes a character, which some servers take for JSON and we do not. */
    if (self->hidden == NULL && memchr(bytes, '\0', length) != NULL)
        self->hidden = "a request that is no JSON in UTF-8 is not read";
    memcpy(model, self->scan.model, sizeof model);
    eb_usage_scan_run(&self->scan, bytes, length);
    if (self->has_path)
        self->scan.stream = streams;
    if (self->has_model) {
        memcpy(self->scan.model, model, sizeof model);
        self->scan.mixed = FALSE;
    }
}

const char *
eb_usage_ask_get_hidden(const EbUsageAsk *self)
{
    if (self->hidden != NULL)
        return self->hidden;
    if (self->scan.background)
        return "an answer in the background is not seen";
    return self->scan.mixed ? "it names more than one model" : NULL;
}

guint64
eb_usage_ask_get_input(const EbUsageAsk *self)
{
    return MAX(self->length, self->scan.bytes) / EB_USAGE_BYTES_A_TOKEN;
}

/* 0: it states none. */
static guint64
get_limit(const EbUsageAsk *self)
{
    return self->scan.max_tokens * CLAMP(self->scan.choices, 1, 1000000);
}

guint64
eb_usage_ask_get_output(const EbUsageAsk *self, guint64 reserve, gboolean *whole)
{
    guint64 most = get_limit(self);

    *whole = FALSE;
    if (self->silent)
        return 0;
    if (self->scan.stream)
        return most > 0 ? MIN(most, reserve) : reserve;
    if (most == 0)
        return MAX(reserve, EB_USAGE_UNLIMITED);
    *whole = TRUE;
    return most;
}

guint64
eb_usage_ask_get_least(const EbUsageAsk *self, guint64 reserve)
{
    gboolean whole;
    guint64 output = eb_usage_ask_get_output(self, reserve, &whole);

    return whole ? output : MIN(output, reserve);
}
