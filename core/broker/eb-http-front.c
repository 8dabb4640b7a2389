/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-http-front.h"

#include <string.h>

static const struct {
    const char *name;
    EbHttpMethod method;
} METHODS[] = {
    {"GET", EB_HTTP_GET},       {"HEAD", EB_HTTP_HEAD},   {"POST", EB_HTTP_POST},       {"PUT", EB_HTTP_PUT},
    {"DELETE", EB_HTTP_DELETE}, {"PATCH", EB_HTTP_PATCH}, {"OPTIONS", EB_HTTP_OPTIONS}, {"CONNECT", EB_HTTP_CONNECT},
};

/* --- llhttp's side --- */

static int
on_body(llhttp_t *parser, const char *bytes, size_t length)
{
    EbHttpFront *self = parser->data;

    self->body_bytes += length;
    if (self->sink != NULL)
        self->sink(self->sink_data, bytes, length);
    return 0;
}

static int
on_message_complete(llhttp_t *parser)
{
    EbHttpFront *self = parser->data;

    self->complete = TRUE;
    /* What follows is the next request and must not be read before this one is answered. */
    return HPE_PAUSED;
}

static int
on_chunk_extension(llhttp_t *parser, const char *bytes, size_t length)
{
    return -1;
}

/* Filled once, before anything is parsed; the same for every connection. */
static const llhttp_settings_t *
front_settings(void)
{
    static gsize ready;
    static llhttp_settings_t settings;

    if (g_once_init_enter(&ready)) {
        llhttp_settings_init(&settings);
        settings.on_body = on_body;
        settings.on_message_complete = on_message_complete;
        settings.on_chunk_extension_name = on_chunk_extension;
        settings.on_chunk_extension_value = on_chunk_extension;
        g_once_init_leave(&ready, 1);
    }
    return &settings;
}

void
eb_http_front_init(EbHttpFront *self)
{
    memset(self, 0, sizeof *self);
    llhttp_init(&self->parser, HTTP_REQUEST, front_settings());
    self->parser.data = self;
}

/* --- requests --- */

void
eb_http_request_clear(EbHttpRequest *self)
{
    g_clear_pointer(&self->storage, g_free);
    self->n_headers = 0;
}

gboolean
eb_http_request_has_body(const EbHttpRequest *self)
{
    return self->chunked || self->content_length > 0;
}

const char *
eb_http_request_header(const EbHttpRequest *self, const char *name)
{
    for (guint i = 0; i < self->n_headers; i++) {
        if (g_ascii_strcasecmp(self->headers[i].name, name) == 0)
            return self->headers[i].value;
    }
    return NULL;
}

static EbHttpResult
refuse(EbRefusal *refusal, EbRefusalCode code, const char *detail)
{
    eb_refusal_set(refusal, code, NULL, detail);
    return EB_HTTP_REFUSED;
}

static gboolean
is_token_char(guchar c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* --- the head, line by line --- */

/* Finds the end of the head; a line that does not end in CR LF is refused at once, not when the head is complete. */
static EbHttpResult
find_end(EbHttpFront *self, const char *bytes, gsize length, gsize *end, EbRefusal *refusal)
{
    gsize limit = MIN(length, EB_HTTP_MAX_HEAD);

    if (length > 0 && !g_ascii_isupper(bytes[0]))
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST,
                      bytes[0] == 0x16 ? "this is TLS; the broker speaks plain HTTP" : "it begins with no method");
    while (self->scanned < limit) {
        const char *feed = memchr(bytes + self->scanned, '\n', limit - self->scanned);
        gsize at;

        if (feed == NULL) {
            self->scanned = limit;
            break;
        }
        at = (gsize)(feed - bytes);
        if (at == 0 || bytes[at - 1] != '\r')
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a line does not end in CR LF");
        self->scanned = at + 1;
        if (at >= 3 && bytes[at - 2] == '\n') {
            *end = at + 1;
            return EB_HTTP_DONE;
        }
    }
    if (length > EB_HTTP_MAX_TARGET + 64 && memchr(bytes, '\n', EB_HTTP_MAX_TARGET + 64) == NULL)
        return refuse(refusal, EB_REFUSAL_TARGET_TOO_LONG, NULL);
    if (length >= EB_HTTP_MAX_HEAD)
        return refuse(refusal, EB_REFUSAL_HEAD_TOO_LARGE, NULL);
    return EB_HTTP_MORE;
}

static EbHttpResult
cut_request_line(char *line, EbHttpRequest *request, EbRefusal *refusal)
{
    char *target = strchr(line, ' ');
    char *version = target != NULL ? strchr(target + 1, ' ') : NULL;

    if (version == NULL || strchr(version + 1, ' ') != NULL)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the request line has not three parts");
    *target++ = '\0';
    *version++ = '\0';
    request->method_name = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(METHODS); i++) {
        if (strcmp(line, METHODS[i].name) == 0) {
            request->method = METHODS[i].method;
            request->method_name = METHODS[i].name;
        }
    }
    if (request->method_name == NULL)
        return refuse(refusal, EB_REFUSAL_METHOD, NULL);
    request->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
    if (strcmp(version, "HTTP/1.1") == 0)
        request->keep_alive = TRUE;
    else if (!request->http_1_0)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "only HTTP/1.1 and HTTP/1.0 are spoken");
    if (version - target > EB_HTTP_MAX_TARGET)
        return refuse(refusal, EB_REFUSAL_TARGET_TOO_LONG, NULL);
    for (const char *c = target; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || *c == '\\' || *c == '#' || *c == '"' || *c == '<' || *c == '>')
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the target holds a byte that must be escaped");
    }
    request->target = target;
    return EB_HTTP_DONE;
}

static EbHttpResult
cut_header_line(char *line, char *end, EbHttpRequest *request, EbRefusal *refusal)
{
    char *colon = memchr(line, ':', (gsize)(end - line));
    EbHttpHeader *header;
    char *value;

    if (line[0] == ' ' || line[0] == '\t')
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a header is folded over lines");
    if (colon == NULL || colon == line)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a header line has no name");
    for (char *c = line; c < colon; c++) {
        if (!is_token_char((guchar)*c))
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a header's name holds a byte that names do not have");
    }
    for (value = colon + 1; value < end && (*value == ' ' || *value == '\t');)
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (char *c = value; c < end; c++) {
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f)
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a header's value holds a control byte");
    }
    if (request->n_headers == EB_HTTP_MAX_HEADERS)
        return refuse(refusal, EB_REFUSAL_HEAD_TOO_LARGE, "it has too many header lines");
    *colon = '\0';
    *end = '\0';
    header = &request->headers[request->n_headers++];
    header->name = line;
    header->value = value;
    header->hop = FALSE;
    return EB_HTTP_DONE;
}

static EbHttpResult
cut_lines(char *head, gsize length, EbHttpRequest *request, EbRefusal *refusal)
{
    char *line = head, *stop = head + length - 2;
    EbHttpResult result = EB_HTTP_DONE;
    gboolean first = TRUE;

    if (memchr(head, '\0', length) != NULL)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "it holds a NUL byte");
    while (line < stop && result == EB_HTTP_DONE) {
        char *end = memchr(line, '\r', (gsize)(stop - line));

        if (end == NULL || end[1] != '\n')
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "a CR stands alone");
        *end = '\0';
        result = first ? cut_request_line(line, request, refusal) : cut_header_line(line, end, request, refusal);
        first = FALSE;
        line = end + 2;
    }
    return result;
}

/* --- what the headers mean --- */

static gboolean
parse_length(const char *text, guint64 *value)
{
    guint64 parsed = 0;

    if (*text == '\0' || strlen(text) > 18)
        return FALSE;
    for (; *text != '\0'; text++) {
        if (!g_ascii_isdigit(*text))
            return FALSE;
        parsed = parsed * 10 + (guint64)(*text - '0');
    }
    *value = parsed;
    return TRUE;
}

static void
mark_hop(EbHttpRequest *request, const char *connection)
{
    g_auto(GStrv) names = g_strsplit(connection, ",", EB_HTTP_MAX_HEADERS);

    for (gsize i = 0; names[i] != NULL; i++) {
        const char *name = g_strstrip(names[i]);

        if (g_ascii_strcasecmp(name, "close") == 0)
            request->keep_alive = FALSE;
        for (guint j = 0; j < request->n_headers; j++) {
            if (g_ascii_strcasecmp(request->headers[j].name, name) == 0)
                request->headers[j].hop = TRUE;
        }
    }
}

static EbHttpResult
read_framing(EbHttpRequest *request, guint *n_hosts, EbRefusal *refusal)
{
    static const char *const HOP[] = {"Connection", "Keep-Alive", "Proxy-Connection",   "TE",
                                      "Trailer",    "Upgrade",    "Transfer-Encoding",  "Content-Length",
                                      "Expect",     "Host",       "Proxy-Authorization"};
    guint n_lengths = 0;

    for (guint i = 0; i < request->n_headers; i++) {
        EbHttpHeader *header = &request->headers[i];

        for (gsize j = 0; j < G_N_ELEMENTS(HOP); j++)
            header->hop = header->hop || g_ascii_strcasecmp(header->name, HOP[j]) == 0;
        if (!header->hop)
            continue;
        if (g_ascii_strcasecmp(header->name, "Host") == 0) {
            *n_hosts += 1;
        } else if (g_ascii_strcasecmp(header->name, "Content-Length") == 0) {
            if (++n_lengths > 1 || !parse_length(header->value, &request->content_length))
                return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "Content-Length is not one plain number");
        } else if (g_ascii_strcasecmp(header->name, "Transfer-Encoding") == 0) {
            if (request->chunked || g_ascii_strcasecmp(header->value, "chunked") != 0)
                return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "Transfer-Encoding is not \"chunked\" once");
            request->chunked = TRUE;
        } else if (g_ascii_strcasecmp(header->name, "Upgrade") == 0) {
            if (request->websocket || g_ascii_strcasecmp(header->value, "websocket") != 0)
                return refuse(refusal, EB_REFUSAL_UPGRADE, NULL);
            request->websocket = TRUE;
            /* Behind a refused one may come anything but a request. */
            request->keep_alive = FALSE;
        } else if (g_ascii_strcasecmp(header->name, "Expect") == 0) {
            if (g_ascii_strcasecmp(header->value, "100-continue") != 0)
                return refuse(refusal, EB_REFUSAL_EXPECTATION, NULL);
            request->expect_continue = TRUE;
        } else if (g_ascii_strcasecmp(header->name, "Connection") == 0) {
            mark_hop(request, header->value);
        }
    }
    /* RFC 9112, 6.1: whoever passes such a message on may not know chunks. */
    if (request->chunked && request->http_1_0)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "HTTP/1.0 has no Transfer-Encoding");
    if (request->chunked && n_lengths > 0)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "it has both Content-Length and Transfer-Encoding");
    return EB_HTTP_DONE;
}

static EbHttpResult
read_target(EbHttpRequest *request, EbRefusal *refusal)
{
    const char *target = request->target, *why = NULL, *slash;
    gsize length;

    if (request->method == EB_HTTP_CONNECT) {
        request->form = EB_HTTP_AUTHORITY;
        request->path = "";
        if (eb_http_request_has_body(request))
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "CONNECT carries no body");
        if (!eb_target_parse(target, strlen(target), 0, &request->host, &why))
            return refuse(refusal, EB_REFUSAL_BAD_REQUEST, why);
        return EB_HTTP_DONE;
    }
    if (target[0] == '/') {
        request->form = EB_HTTP_ORIGIN;
        request->path = target;
        return EB_HTTP_DONE;
    }
    if (g_ascii_strncasecmp(target, "http://", 7) != 0)
        return refuse(refusal, strstr(target, "://") != NULL ? EB_REFUSAL_SCHEME : EB_REFUSAL_BAD_REQUEST,
                      strstr(target, "://") != NULL ? NULL : "the target is neither a path nor a URL");
    request->form = EB_HTTP_ABSOLUTE;
    slash = strpbrk(target + 7, "/?");
    length = slash != NULL ? (gsize)(slash - target - 7) : strlen(target + 7);
    if (!eb_target_parse(target + 7, length, 80, &request->host, &why))
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, why);
    if (slash != NULL && *slash == '?')
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the URL has a query but no path");
    request->path = slash != NULL ? slash : "/";
    return EB_HTTP_DONE;
}

/* RFC 9112 lets the target win over Host; a client that sends two different ones is up to something. */
static EbHttpResult
check_host(EbHttpRequest *request, guint n_hosts, EbRefusal *refusal)
{
    const char *value = eb_http_request_header(request, "Host"), *why = NULL;
    EbTarget target;

    if (n_hosts > 1 || (n_hosts == 0 && request->form != EB_HTTP_AUTHORITY))
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "it has not exactly one Host");
    if (n_hosts == 0)
        return EB_HTTP_DONE;
    if (!eb_target_parse(value, strlen(value), 80, &target, &why))
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "Host is not a host");
    if (request->form == EB_HTTP_ORIGIN)
        return EB_HTTP_DONE;
    if (strcmp(target.host, request->host.host) != 0)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "Host and target differ");
    /* Clients leave the port of a CONNECT out of Host, or not. */
    if (request->form == EB_HTTP_ABSOLUTE && target.port != request->host.port)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "Host and target differ");
    return EB_HTTP_DONE;
}

/* The second opinion: llhttp reads the untouched bytes and must see the same framing. */
static EbHttpResult
cross_check(EbHttpFront *self, const char *bytes, gsize length, const EbHttpRequest *request, EbRefusal *refusal)
{
    llhttp_errno_t result;
    gboolean has_body = eb_http_request_has_body(request);

    llhttp_init(&self->parser, HTTP_REQUEST, front_settings());
    self->parser.data = self;
    self->complete = FALSE;
    self->sink = NULL;
    result = llhttp_execute(&self->parser, bytes, length);
    if (result != HPE_OK && result != HPE_PAUSED && result != HPE_PAUSED_UPGRADE)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the parser refuses it");
    if (self->complete != !has_body || (result == HPE_OK) != has_body)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "its framing is ambiguous");
    if (has_body && !request->chunked && self->parser.content_length != request->content_length)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "its framing is ambiguous");
    return EB_HTTP_DONE;
}

EbHttpResult
eb_http_front_head(EbHttpFront *self, const char *bytes, gsize length, gsize *consumed, EbHttpRequest *request,
                   EbRefusal *refusal)
{
    gsize end = 0;
    guint n_hosts = 0;
    EbHttpResult result = find_end(self, bytes, length, &end, refusal);

    if (result != EB_HTTP_DONE)
        return result;
    self->scanned = 0;
    request->storage = g_malloc(end + 1);
    memcpy(request->storage, bytes, end);
    request->storage[end] = '\0';
    request->n_headers = 0;
    request->keep_alive = request->expect_continue = request->websocket = request->chunked = FALSE;
    request->content_length = 0;
    result = cut_lines(request->storage, end, request, refusal);
    if (result == EB_HTTP_DONE)
        result = read_framing(request, &n_hosts, refusal);
    if (result == EB_HTTP_DONE)
        result = read_target(request, refusal);
    if (result == EB_HTTP_DONE)
        result = check_host(request, n_hosts, refusal);
    if (result == EB_HTTP_DONE)
        result = cross_check(self, bytes, end, request, refusal);
    if (result != EB_HTTP_DONE) {
        eb_http_request_clear(request);
        return result;
    }
    self->in_body = eb_http_request_has_body(request);
    self->body_bytes = 0;
    self->chunk_bytes = 0;
    *consumed = end;
    return EB_HTTP_DONE;
}

EbHttpResult
eb_http_front_body(EbHttpFront *self, const char *bytes, gsize length, gsize *consumed,
                   void (*sink)(gpointer user_data, const char *bytes, gsize length), gpointer user_data,
                   EbRefusal *refusal)
{
    guint64 before = self->body_bytes;
    llhttp_errno_t result;

    *consumed = 0;
    if (!self->in_body)
        return EB_HTTP_DONE;
    if (length == 0)
        return EB_HTTP_MORE;
    self->sink = sink;
    self->sink_data = user_data;
    result = llhttp_execute(&self->parser, bytes, length);
    self->sink = NULL;
    if (result == HPE_OK)
        *consumed = length;
    else if (result == HPE_PAUSED && self->complete)
        *consumed = (gsize)(llhttp_get_error_pos(&self->parser) - bytes);
    else
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the body's chunks are malformed");
    self->chunk_bytes += *consumed - (self->body_bytes - before);
    if (self->chunk_bytes > EB_HTTP_MAX_CHUNK_HEADS + self->body_bytes * 8)
        return refuse(refusal, EB_REFUSAL_BAD_REQUEST, "the body is almost nothing but chunk heads");
    if (!self->complete)
        return EB_HTTP_MORE;
    self->in_body = FALSE;
    return EB_HTTP_DONE;
}
