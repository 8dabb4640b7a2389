/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-websocket.h"

#include <string.h>

#define MAX_HEADERS 64
/* RFC 6455, section 1.3. */
#define MAGIC "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static const char *
only_header(const EbHttpRequest *request, const char *name)
{
    const char *found = NULL;

    for (guint i = 0; i < request->n_headers; i++) {
        if (g_ascii_strcasecmp(request->headers[i].name, name) != 0)
            continue;
        if (found != NULL)
            return NULL;
        found = request->headers[i].value;
    }
    return found;
}

/* Is @token one of the comma-separated ones in @list? */
static gboolean
list_holds(const char *list, const char *token, gboolean any_case)
{
    gsize length = strlen(token);

    for (const char *at = list; at != NULL && *at != '\0';) {
        gsize item, step;

        at += strspn(at, " \t,");
        step = item = strcspn(at, ",");
        while (item > 0 && (at[item - 1] == ' ' || at[item - 1] == '\t'))
            item--;
        if (item == length && (any_case ? g_ascii_strncasecmp(at, token, length) : strncmp(at, token, length)) == 0)
            return TRUE;
        at += step;
    }
    return FALSE;
}

/* Base64 of 16 bytes, in its one canonical form. */
static gboolean
is_key(const char *text)
{
    gsize length = 0;
    g_autofree guchar *bytes = NULL;
    g_autofree char *again = NULL;

    if (strlen(text) != 24)
        return FALSE;
    bytes = g_base64_decode(text, &length);
    again = g_base64_encode(bytes, length);
    return length == 16 && strcmp(again, text) == 0;
}

gboolean
eb_websocket_check_request(const EbHttpRequest *request, const char **why)
{
    const char *key = only_header(request, "Sec-WebSocket-Key");
    const char *version = only_header(request, "Sec-WebSocket-Version");

    if (request->method != EB_HTTP_GET || request->http_1_0 || eb_http_request_has_body(request))
        *why = "a WebSocket begins with a GET of HTTP/1.1 without a body";
    else if (!list_holds(only_header(request, "Connection"), "upgrade", TRUE))
        *why = "a WebSocket needs \"Connection: Upgrade\"";
    else if (version == NULL || strcmp(version, "13") != 0)
        *why = "the version of a WebSocket is 13";
    else if (key == NULL || !is_key(key))
        *why = "the key of a WebSocket is 16 bytes in base64, once";
    else
        return TRUE;
    return FALSE;
}

char *
eb_websocket_accept(const char *key)
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA1);
    guint8 digest[20];
    gsize length = sizeof digest;

    g_checksum_update(checksum, (const guchar *)key, -1);
    g_checksum_update(checksum, (const guchar *)MAGIC, -1);
    g_checksum_get_digest(checksum, digest, &length);
    return g_base64_encode(digest, length);
}

GString *
eb_websocket_request(const EbHttpRequest *request, const EbRoute *route)
{
    gboolean v6 = route->target.literal && route->target.address.length == 16;
    GString *text = g_string_sized_new(1024);

    g_string_append_printf(text, "GET %s HTTP/1.1\r\nHost: %s%s%s", route->path, v6 ? "[" : "", route->target.host,
                           v6 ? "]" : "");
    if (route->target.port != 80)
        g_string_append_printf(text, ":%u", route->target.port);
    g_string_append(text, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
    for (guint i = 0; i < request->n_headers; i++) {
        if (eb_route_header_passes(route, &request->headers[i]))
            g_string_append_printf(text, "%s: %s\r\n", request->headers[i].name, request->headers[i].value);
    }
    g_string_append(text, "\r\n");
    return text;
}

/* --- the answer --- */

typedef struct {
    const char *accept;
    const char *asked;
    guint n_accept;
    guint n_upgrade;
    gboolean connection;
    gboolean good;
} Answer;

static gboolean
is_token(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (!g_ascii_isalnum(*c) && strchr("!#$%&'*+-.^_`|~", *c) == NULL)
            return FALSE;
    }
    return *text != '\0';
}

static gboolean
is_value(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f)
            return FALSE;
    }
    return TRUE;
}

/* FALSE: not well-formed, or what a switch must not carry. */
static gboolean
take_header(Answer *self, char *line, GString *head)
{
    static const char *const DROPPED[] = {"Connection",        "Content-Length",     "Keep-Alive", "Proxy-Connection",
                                          "Transfer-Encoding", "Proxy-Authenticate", "Trailer",    "Alt-Svc"};
    char *value = strchr(line, ':');

    if (value == NULL)
        return FALSE;
    *value++ = '\0';
    value = g_strstrip(value);
    if (!is_token(line) || !is_value(value))
        return FALSE;
    if (g_ascii_strcasecmp(line, "Upgrade") == 0) {
        self->n_upgrade++;
        return g_ascii_strcasecmp(value, "websocket") == 0;
    }
    if (g_ascii_strcasecmp(line, "Connection") == 0)
        self->connection = self->connection || list_holds(value, "upgrade", TRUE);
    if (g_ascii_strcasecmp(line, "Sec-WebSocket-Accept") == 0) {
        self->n_accept++;
        self->good = strcmp(value, self->accept) == 0;
    }
    /* A subprotocol is one of those asked for, or none. */
    if (g_ascii_strcasecmp(line, "Sec-WebSocket-Protocol") == 0 && !list_holds(self->asked, value, FALSE))
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(DROPPED); i++) {
        if (g_ascii_strcasecmp(line, DROPPED[i]) == 0)
            return TRUE;
    }
    g_string_append_printf(head, "%s: %s\r\n", line, value);
    return TRUE;
}

static gboolean
take_status(const char *line, guint *status)
{
    if (strncmp(line, "HTTP/1.1 ", 9) != 0 || strlen(line) < 12 || !g_ascii_isdigit(line[9]) ||
        !g_ascii_isdigit(line[10]) || !g_ascii_isdigit(line[11]) || (line[12] != ' ' && line[12] != '\0'))
        return FALSE;
    *status = (guint)((line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0'));
    return *status >= 101 && *status <= 599;
}

EbWebsocketResult
eb_websocket_answer(const char *bytes, gsize length, const char *accept, const char *asked, GString *head,
                    gsize *consumed, guint *status)
{
    gsize limit = MIN(length, EB_WEBSOCKET_MAX_ANSWER);
    const char *end = memmem(bytes, limit, "\r\n\r\n", 4);
    Answer answer = {.accept = accept, .asked = asked};
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (end == NULL)
        return length >= EB_WEBSOCKET_MAX_ANSWER ? EB_WEBSOCKET_BAD : EB_WEBSOCKET_MORE;
    *consumed = (gsize)(end - bytes) + 4;
    if (memchr(bytes, '\0', *consumed) != NULL)
        return EB_WEBSOCKET_BAD;
    text = g_strndup(bytes, *consumed - 4);
    lines = g_strsplit(text, "\r\n", MAX_HEADERS + 2);
    /* An empty text has no lines at all. */
    if (lines[0] == NULL || g_strv_length(lines) > MAX_HEADERS + 1 || !take_status(lines[0], status))
        return EB_WEBSOCKET_BAD;
    if (*status != 101) {
        /* What it says beside the status has a framing of its own, which nobody here reads. */
        g_string_append_printf(head, "HTTP/1.1 %u %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", *status,
                               eb_http_reason_phrase(*status));
        return *status >= 200 ? EB_WEBSOCKET_DECLINED : EB_WEBSOCKET_BAD;
    }
    g_string_append(head, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
    for (gsize i = 1; lines[i] != NULL; i++) {
        if (!take_header(&answer, lines[i], head))
            return EB_WEBSOCKET_BAD;
    }
    g_string_append(head, "\r\n");
    return answer.n_upgrade == 1 && answer.connection && answer.n_accept == 1 && answer.good ? EB_WEBSOCKET_SWITCHED
                                                                                             : EB_WEBSOCKET_BAD;
}
