/* SPDX-License-Identifier: MIT */
#include "eb-test-strict-http.h"

#include <string.h>

typedef struct {
    const char *at;
    const char *end;
    const char *why;
} Reader;

void
eb_test_strict_request_clear(EbTestStrictRequest *self)
{
    g_clear_pointer(&self->method, g_free);
    g_clear_pointer(&self->target, g_free);
    g_clear_pointer(&self->names, g_ptr_array_unref);
    g_clear_pointer(&self->values, g_ptr_array_unref);
    g_clear_pointer(&self->body, g_byte_array_unref);
}

static gboolean
is_token(const char *text)
{
    if (*text == '\0')
        return FALSE;
    for (; *text != '\0'; text++) {
        if (!g_ascii_isalnum(*text) && strchr("!#$%&'*+-.^_`|~", *text) == NULL)
            return FALSE;
    }
    return TRUE;
}

/* (transfer full) (nullable): the next line; a CR or LF that stands alone, a NUL, any other control byte is an error. */
static char *
read_line(Reader *reader)
{
    for (const char *c = reader->at; c < reader->end; c++) {
        if (*c == '\r') {
            char *line;

            if (c + 1 == reader->end)
                return NULL;
            if (c[1] != '\n') {
                reader->why = "a CR alone";
                return NULL;
            }
            line = g_strndup(reader->at, (gsize)(c - reader->at));
            reader->at = c + 2;
            return line;
        }
        if (((guchar)*c < ' ' && *c != '\t') || *c == 0x7f) {
            reader->why = *c == '\n' ? "a LF alone" : "a control byte";
            return NULL;
        }
    }
    return NULL;
}

static gboolean
read_first_line(Reader *reader, EbTestStrictRequest *request)
{
    g_autofree char *line = read_line(reader);
    g_auto(GStrv) parts = line != NULL ? g_strsplit(line, " ", 4) : NULL;

    if (line == NULL)
        return FALSE;
    if (g_strv_length(parts) != 3 || !is_token(parts[0]) || strcmp(parts[2], "HTTP/1.1") != 0 || parts[1][0] != '/') {
        reader->why = "not METHOD /target HTTP/1.1";
        return FALSE;
    }
    for (const char *c = parts[0]; *c != '\0'; c++) {
        if (!g_ascii_isupper(*c))
            reader->why = "a method that is not upper case";
    }
    for (const char *c = parts[1]; *c != '\0'; c++) {
        if ((guchar)*c <= ' ' || (guchar)*c > '~' || *c == '#')
            reader->why = "a target that holds a byte which must be escaped";
    }
    request->method = g_strdup(parts[0]);
    request->target = g_strdup(parts[1]);
    return reader->why == NULL;
}

/* FALSE: more is needed, or malformed. */
static gboolean
read_headers(Reader *reader, EbTestStrictRequest *request)
{
    while (TRUE) {
        g_autofree char *line = read_line(reader);
        char *colon;

        if (line == NULL)
            return FALSE;
        if (*line == '\0')
            return TRUE;
        colon = strchr(line, ':');
        if (colon != NULL)
            *colon = '\0';
        if (colon == NULL || !is_token(line)) {
            reader->why = "a header line that is not name: value";
            return FALSE;
        }
        g_ptr_array_add(request->names, g_ascii_strdown(line, -1));
        g_ptr_array_add(request->values, g_strdup(g_strstrip(colon + 1)));
    }
}

static void
take_body(Reader *reader, EbTestStrictRequest *request, guint64 length)
{
    g_byte_array_append(request->body, (const guint8 *)reader->at, (guint)length);
    reader->at += length;
}

static gboolean
read_chunks(Reader *reader, EbTestStrictRequest *request)
{
    while (TRUE) {
        g_autofree char *line = read_line(reader);
        g_autofree char *end = NULL;
        guint64 length;

        if (line == NULL)
            return FALSE;
        if (*line == '\0' || strlen(line) > 15 || strspn(line, "0123456789abcdefABCDEF") != strlen(line)) {
            reader->why = "a chunk's size that is not a plain number";
            return FALSE;
        }
        length = g_ascii_strtoull(line, NULL, 16);
        if ((guint64)(reader->end - reader->at) < length)
            return FALSE;
        take_body(reader, request, length);
        end = read_line(reader);
        if (end == NULL)
            return FALSE;
        if (*end != '\0') {
            reader->why = length > 0 ? "a chunk that is longer than it says" : "a trailer";
            return FALSE;
        }
        if (length == 0)
            return TRUE;
    }
}

static gboolean
read_body(Reader *reader, EbTestStrictRequest *request)
{
    guint n_lengths = eb_test_strict_count(request, "content-length");
    guint n_encodings = eb_test_strict_count(request, "transfer-encoding");
    const char *text = eb_test_strict_value(request, "content-length");
    guint64 length;

    if (n_lengths + n_encodings > 1)
        reader->why = "more than one framing";
    else if (eb_test_strict_count(request, "host") != 1)
        reader->why = "not one Host";
    else if (n_encodings == 1 && g_ascii_strcasecmp(eb_test_strict_value(request, "transfer-encoding"), "chunked") != 0)
        reader->why = "a Transfer-Encoding that is not chunked";
    else if (text != NULL && (*text == '\0' || strlen(text) > 18 || strspn(text, "0123456789") != strlen(text)))
        reader->why = "a Content-Length that is not a plain number";
    if (reader->why != NULL)
        return FALSE;
    request->chunked = n_encodings == 1;
    if (request->chunked)
        return read_chunks(reader, request);
    length = text != NULL ? g_ascii_strtoull(text, NULL, 10) : 0;
    if ((guint64)(reader->end - reader->at) < length)
        return FALSE;
    take_body(reader, request, length);
    return TRUE;
}

gssize
eb_test_strict_read(const char *bytes, gsize length, EbTestStrictRequest *request, const char **why)
{
    Reader reader = {.at = bytes, .end = bytes + length};
    gboolean complete;

    *request = (EbTestStrictRequest){
        .names = g_ptr_array_new_with_free_func(g_free),
        .values = g_ptr_array_new_with_free_func(g_free),
        .body = g_byte_array_new(),
    };
    complete = read_first_line(&reader, request) && read_headers(&reader, request) && read_body(&reader, request);
    *why = reader.why;
    if (complete)
        return reader.at - bytes;
    return reader.why != NULL ? -1 : 0;
}

guint
eb_test_strict_count(const EbTestStrictRequest *self, const char *name)
{
    guint n = 0;

    for (guint i = 0; i < self->names->len; i++)
        n += strcmp(self->names->pdata[i], name) == 0;
    return n;
}

const char *
eb_test_strict_value(const EbTestStrictRequest *self, const char *name)
{
    for (guint i = 0; i < self->names->len; i++) {
        if (strcmp(self->names->pdata[i], name) == 0)
            return self->values->pdata[i];
    }
    return NULL;
}
