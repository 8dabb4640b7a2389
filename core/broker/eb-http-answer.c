/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-http-answer.h"

#include <string.h>

/* --- llhttp's side --- */

static int
on_headers_complete(llhttp_t *parser)
{
    EbHttpAnswer *self = parser->data;

    /* It would wait for the body that the length of a 304 speaks of. */
    return self->to_head_request || self->head.status == 204 || self->head.status == 304 ? 1 : 0;
}

static int
on_body(llhttp_t *parser, const char *bytes, size_t length)
{
    EbHttpAnswer *self = parser->data;

    /* Within what we take for the head the other parser sees a body. */
    if (self->to == NULL)
        return -1;
    /* The decoder writes behind what it reads, never ahead. */
    if (self->to != bytes)
        memmove(self->to, bytes, length);
    self->to += length;
    return 0;
}

static int
on_message_complete(llhttp_t *parser)
{
    EbHttpAnswer *self = parser->data;

    self->complete = TRUE;
    return HPE_PAUSED;
}

static const llhttp_settings_t *
answer_settings(void)
{
    static gsize ready;
    static llhttp_settings_t settings;

    if (g_once_init_enter(&ready)) {
        llhttp_settings_init(&settings);
        settings.on_headers_complete = on_headers_complete;
        settings.on_body = on_body;
        settings.on_message_complete = on_message_complete;
        g_once_init_leave(&ready, 1);
    }
    return &settings;
}

/* --- the head --- */

void
eb_http_answer_begin(EbHttpAnswer *self, gboolean to_head_request)
{
    memset(self, 0, sizeof *self);
    self->to_head_request = to_head_request;
}

void
eb_http_answer_clear(EbHttpAnswer *self)
{
    g_clear_pointer(&self->storage, g_free);
    g_clear_pointer(&self->head.headers, g_free);
    if (self->added != NULL)
        g_string_free(g_steal_pointer(&self->added), TRUE);
    self->head.n_headers = 0;
}

/* "HTTP/1.1 200 OK", the text may be missing. */
static gboolean
cut_status_line(EbHttpAnswer *self, const char *line)
{
    EbHttpAnswerHead *head = &self->head;

    if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
        return FALSE;
    head->keep_alive = line[7] == '1';
    line += 9;
    if (!g_ascii_isdigit(line[0]) || !g_ascii_isdigit(line[1]) || !g_ascii_isdigit(line[2]) ||
        (line[3] != ' ' && line[3] != '\0'))
        return FALSE;
    for (const char *c = line; *c != '\0'; c++) {
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f)
            return FALSE;
    }
    head->status = (guint)((line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0'));
    /* 101 would be a protocol that nobody asked for. */
    return head->status >= 100 && head->status <= 599 && head->status != 101;
}

static gboolean
is_name_char(char c)
{
    return g_ascii_isalnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static gboolean
cut_header_line(EbHttpAnswer *self, char *line, char *end)
{
    EbHttpAnswerHead *head = &self->head;
    char *value, *at = line;

    while (at < end && is_name_char(*at))
        at++;
    /* Also refuses folded lines and blanks before the colon. */
    if (at == line || at == end || *at != ':' || head->n_headers == EB_HTTP_MAX_ANSWER_HEADERS)
        return FALSE;
    *at = '\0';
    for (value = at + 1; value < end && (*value == ' ' || *value == '\t');)
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (const char *c = value; c < end; c++) {
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f)
            return FALSE;
    }
    *end = '\0';
    head->headers[head->n_headers++] = (EbHttpHeader){line, value, FALSE};
    return TRUE;
}

static guint
count_lines(const char *bytes, gsize length)
{
    const char *end = bytes + length;
    guint n = 0;

    while (bytes < end && (bytes = memchr(bytes, '\n', (gsize)(end - bytes))) != NULL) {
        n++;
        bytes++;
    }
    return n;
}

static gboolean
cut_lines(EbHttpAnswer *self, const char *bytes, gsize length)
{
    char *line, *stop;
    gboolean first = TRUE, good = TRUE;
    guint n_lines = count_lines(bytes, length);

    if (n_lines > EB_HTTP_MAX_ANSWER_HEADERS + 2 || memchr(bytes, '\0', length) != NULL)
        return FALSE;
    eb_http_answer_clear(self);
    self->storage = g_malloc(length + 1);
    memcpy(self->storage, bytes, length);
    self->storage[length] = '\0';
    self->head.headers = g_new(EbHttpHeader, n_lines);
    stop = self->storage + length - 2;
    for (line = self->storage; line < stop && good; first = FALSE) {
        char *end = memchr(line, '\r', (gsize)(stop - line) + 1);

        if (end == NULL || end[1] != '\n')
            return FALSE;
        *end = '\0';
        good = first ? cut_status_line(self, line) : cut_header_line(self, line, end);
        line = end + 2;
    }
    return good && !first;
}

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
mark_named(EbHttpAnswerHead *head, const char *connection)
{
    while (*connection != '\0') {
        gsize length = strcspn(connection, ",");
        const char *end = connection + length, *next = *end == ',' ? end + 1 : end;

        while (connection < end && (*connection == ' ' || *connection == '\t'))
            connection++;
        while (end > connection && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        length = (gsize)(end - connection);
        if (length == 5 && g_ascii_strncasecmp(connection, "close", 5) == 0)
            head->keep_alive = FALSE;
        for (guint i = 0; i < head->n_headers && length > 0; i++) {
            if (strlen(head->headers[i].name) == length &&
                g_ascii_strncasecmp(head->headers[i].name, connection, length) == 0)
                head->headers[i].hop = TRUE;
        }
        connection = next;
    }
}

static gboolean
read_framing(EbHttpAnswer *self)
{
    static const char *const HOP[] = {"Connection", "Keep-Alive",        "Proxy-Connection",    "Proxy-Authenticate",
                                      "TE",         "Trailer",           "Proxy-Authorization", "Upgrade",
                                      "Alt-Svc",    "Transfer-Encoding", "Content-Length"};
    EbHttpAnswerHead *head = &self->head;
    gboolean http_1_0 = !head->keep_alive, chunked = FALSE;

    head->has_length = FALSE;
    for (guint i = 0; i < head->n_headers; i++) {
        EbHttpHeader *header = &head->headers[i];

        for (gsize j = 0; j < G_N_ELEMENTS(HOP) && !header->hop; j++)
            header->hop = g_ascii_strcasecmp(header->name, HOP[j]) == 0;
        if (!header->hop)
            continue;
        if (g_ascii_strcasecmp(header->name, "Content-Length") == 0) {
            if (head->has_length || !parse_length(header->value, &head->length))
                return FALSE;
            head->has_length = TRUE;
        } else if (g_ascii_strcasecmp(header->name, "Transfer-Encoding") == 0) {
            if (chunked || http_1_0 || g_ascii_strcasecmp(header->value, "chunked") != 0)
                return FALSE;
            chunked = TRUE;
        } else if (g_ascii_strcasecmp(header->name, "Connection") == 0) {
            mark_named(head, header->value);
        }
    }
    if (chunked && head->has_length)
        return FALSE;
    if (self->to_head_request || head->status == 204 || head->status == 304 || head->status < 200)
        head->body = EB_HTTP_BODY_NONE;
    else if (chunked)
        head->body = EB_HTTP_BODY_CHUNKED;
    else if (head->has_length)
        head->body = head->length > 0 ? EB_HTTP_BODY_LENGTH : EB_HTTP_BODY_NONE;
    else
        head->body = EB_HTTP_BODY_CLOSE;
    if (head->body == EB_HTTP_BODY_CLOSE)
        head->keep_alive = FALSE;
    return TRUE;
}

/* The second opinion reads the untouched bytes. */
static gboolean
parser_agrees(EbHttpAnswer *self, const char *bytes, gsize length)
{
    const EbHttpAnswerHead *head = &self->head;
    llhttp_errno_t result;

    llhttp_init(&self->parser, HTTP_RESPONSE, answer_settings());
    self->parser.data = self;
    self->complete = FALSE;
    self->to = NULL;
    result = llhttp_execute(&self->parser, bytes, length);
    if (result != HPE_OK && result != HPE_PAUSED)
        return FALSE;
    if (self->complete != (head->body == EB_HTTP_BODY_NONE) || (result == HPE_PAUSED) != self->complete)
        return FALSE;
    return head->body != EB_HTTP_BODY_LENGTH || self->parser.content_length == head->length;
}

EbHttpResult
eb_http_answer_read_head(EbHttpAnswer *self, const char *bytes, gsize length, gsize *consumed)
{
    *consumed = 0;
    while (TRUE) {
        const char *at = bytes + *consumed, *end;
        gsize left = length - *consumed, size;

        end = left > self->scanned ? memmem(at + self->scanned, left - self->scanned, "\r\n\r\n", 4) : NULL;
        if (end == NULL) {
            self->scanned = left > 3 ? left - 3 : 0;
            return left > EB_HTTP_MAX_ANSWER_HEAD ? EB_HTTP_REFUSED : EB_HTTP_MORE;
        }
        size = (gsize)(end - at) + 4;
        self->scanned = 0;
        if (size > EB_HTTP_MAX_ANSWER_HEAD || !cut_lines(self, at, size) || !read_framing(self) ||
            !parser_agrees(self, at, size))
            return EB_HTTP_REFUSED;
        *consumed += size;
        if (self->head.status >= 200)
            break;
        if (++self->n_interim > EB_HTTP_MAX_INTERIM)
            return EB_HTTP_REFUSED;
    }
    self->left = self->head.length;
    self->body_bytes = self->frame_bytes = 0;
    return EB_HTTP_DONE;
}

/* --- the body --- */

static EbHttpResult
read_chunks(EbHttpAnswer *self, char *bytes, gsize length, gsize *n_body, gsize *consumed)
{
    llhttp_errno_t result;

    self->to = bytes;
    result = llhttp_execute(&self->parser, bytes, length);
    if (result == HPE_OK)
        *consumed = length;
    else if (result == HPE_PAUSED && self->complete)
        *consumed = (gsize)(llhttp_get_error_pos(&self->parser) - bytes);
    else
        return EB_HTTP_REFUSED;
    *n_body = (gsize)(self->to - bytes);
    self->body_bytes += *n_body;
    self->frame_bytes += *consumed - *n_body;
    if (self->frame_bytes > EB_HTTP_MAX_CHUNK_HEADS + self->body_bytes * 8)
        return EB_HTTP_REFUSED;
    return self->complete ? EB_HTTP_DONE : EB_HTTP_MORE;
}

EbHttpResult
eb_http_answer_read_body(EbHttpAnswer *self, char *bytes, gsize length, gsize *n_body, gsize *consumed)
{
    *n_body = *consumed = 0;
    switch (self->head.body) {
    case EB_HTTP_BODY_NONE:
        return EB_HTTP_DONE;
    case EB_HTTP_BODY_CHUNKED:
        return length > 0 ? read_chunks(self, bytes, length, n_body, consumed) : EB_HTTP_MORE;
    case EB_HTTP_BODY_LENGTH:
        *n_body = *consumed = (gsize)MIN(self->left, length);
        self->left -= *n_body;
        return self->left == 0 ? EB_HTTP_DONE : EB_HTTP_MORE;
    case EB_HTTP_BODY_CLOSE:
    default:
        *n_body = *consumed = length;
        return EB_HTTP_MORE;
    }
}

/* --- HTTP/2 --- */

/* They are put down as HTTP/1.1 would have them, so that one parser judges both. */
gboolean
eb_http_answer_add(EbHttpAnswer *self, const char *name, gsize name_length, const char *value, gsize value_length)
{
    gboolean is_status = name_length == 7 && memcmp(name, ":status", 7) == 0;

    if (self->added == NULL)
        self->added = g_string_sized_new(512);
    if (self->added->len + name_length + value_length + 4 > EB_HTTP_MAX_ANSWER_HEAD ||
        memchr(value, '\r', value_length) != NULL || memchr(value, '\n', value_length) != NULL ||
        is_status != (self->added->len == 0))
        return FALSE;
    if (is_status) {
        g_string_append(self->added, "HTTP/1.1 ");
    } else {
        g_string_append_len(self->added, name, (gssize)name_length);
        g_string_append(self->added, ": ");
    }
    g_string_append_len(self->added, value, (gssize)value_length);
    g_string_append(self->added, "\r\n");
    return TRUE;
}

EbHttpResult
eb_http_answer_finish(EbHttpAnswer *self, gboolean at_end)
{
    g_autoptr(GString) added = g_steal_pointer(&self->added);
    EbHttpAnswerHead *head = &self->head;

    if (added == NULL)
        return EB_HTTP_REFUSED;
    g_string_append(added, "\r\n");
    if (!cut_lines(self, added->str, added->len) || !read_framing(self) || head->body == EB_HTTP_BODY_CHUNKED)
        return EB_HTTP_REFUSED;
    if (head->status < 200)
        return !at_end && ++self->n_interim <= EB_HTTP_MAX_INTERIM ? EB_HTTP_MORE : EB_HTTP_REFUSED;
    if (at_end && head->body == EB_HTTP_BODY_CLOSE) {
        head->has_length = TRUE;
        head->length = 0;
    }
    if (at_end)
        head->body = EB_HTTP_BODY_NONE;
    return EB_HTTP_DONE;
}
