/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream-request.h"

#include <string.h>

typedef struct {
    char *at;
    char *end;
    gboolean full;
} Text;

static void
put(Text *text, const char *bytes, gsize length)
{
    if ((gsize)(text->end - text->at) < length) {
        text->full = TRUE;
        return;
    }
    memcpy(text->at, bytes, length);
    text->at += length;
}

static void
put_string(Text *text, const char *string)
{
    put(text, string, strlen(string));
}

static void
put_header(Text *text, const char *name, const char *value)
{
    put_string(text, name);
    put(text, ": ", 2);
    put_string(text, value);
    put(text, "\r\n", 2);
}

static void
put_key(Text *text, EbProvider *provider)
{
    g_auto(EbSecretView) view = eb_secret_view(provider->key);

    if (view.length > EB_UPSTREAM_MAX_KEY) {
        text->full = TRUE;
        return;
    }
    if (provider->kind == EB_PROVIDER_ANTHROPIC)
        put_string(text, "x-api-key: ");
    else if (provider->kind == EB_PROVIDER_GEMINI)
        put_string(text, "x-goog-api-key: ");
    else
        put_string(text, "Authorization: Bearer ");
    put(text, view.bytes, view.length);
    put(text, "\r\n", 2);
}

EbUpstreamFraming
eb_upstream_framing(const EbHttpRequest *request)
{
    if (eb_http_request_has_body(request))
        return request->chunked ? EB_UPSTREAM_CHUNKED : EB_UPSTREAM_LENGTH;
    if (request->method == EB_HTTP_POST || request->method == EB_HTTP_PUT || request->method == EB_HTTP_PATCH)
        return EB_UPSTREAM_LENGTH;
    return EB_UPSTREAM_NO_BODY;
}

void
eb_upstream_authority(const EbTarget *target, gboolean tls, char *buffer, gsize size)
{
    gboolean v6 = target->literal && target->address.length == 16;

    if (target->port == (tls ? 443 : 80))
        g_snprintf(buffer, size, v6 ? "[%s]" : "%s", target->host);
    else
        g_snprintf(buffer, size, v6 ? "[%s]:%u" : "%s:%u", target->host, target->port);
}

gsize
eb_upstream_request_head(const EbHttpRequest *request, const EbRoute *route, char *buffer, gsize size)
{
    Text text = {buffer, buffer + size, FALSE};
    EbUpstreamFraming framing = eb_upstream_framing(request);
    char number[EB_HOST_MAX + 16];

    put_string(&text, request->method_name);
    put(&text, " ", 1);
    put_string(&text, route->path);
    eb_upstream_authority(&route->target, route->provider != NULL && route->provider->tls, number, sizeof number);
    put_string(&text, " HTTP/1.1\r\nHost: ");
    put_string(&text, number);
    put(&text, "\r\n", 2);
    for (guint i = 0; i < request->n_headers; i++) {
        if (eb_route_header_passes(route, &request->headers[i]))
            put_header(&text, request->headers[i].name, request->headers[i].value);
    }
    if (route->provider != NULL) {
        put_string(&text, "Accept-Encoding: identity\r\n");
        put_key(&text, route->provider);
    }
    if (framing == EB_UPSTREAM_CHUNKED) {
        put_string(&text, "Transfer-Encoding: chunked\r\n");
    } else if (framing == EB_UPSTREAM_LENGTH) {
        g_snprintf(number, sizeof number, "Content-Length: %" G_GUINT64_FORMAT "\r\n", request->content_length);
        put_string(&text, number);
    }
    put(&text, "\r\n", 2);
    return text.full ? 0 : (gsize)(text.at - buffer);
}

gsize
eb_upstream_chunk_head(gsize length, char *buffer)
{
    return (gsize)g_snprintf(buffer, EB_UPSTREAM_CHUNK_HEAD, "%" G_GSIZE_MODIFIER "x\r\n", length);
}
