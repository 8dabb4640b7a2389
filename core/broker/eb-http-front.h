/* SPDX-License-Identifier: MIT */
#pragma once

#include <llhttp.h>

#include "core/broker/eb-refusal.h"

G_BEGIN_DECLS

/** EB_HTTP_MAX_HEAD: bytes of a request's head. */
#define EB_HTTP_MAX_HEAD (32 * 1024)
/** EB_HTTP_MAX_TARGET: bytes of a request's target. */
#define EB_HTTP_MAX_TARGET (8 * 1024)
/** EB_HTTP_MAX_HEADERS: header lines of one request. */
#define EB_HTTP_MAX_HEADERS 128
/** EB_HTTP_MAX_CHUNK_HEADS: bytes of chunk heads and trailers beyond eight for each byte of body. */
#define EB_HTTP_MAX_CHUNK_HEADS (64 * 1024)

typedef enum {
    EB_HTTP_GET,
    EB_HTTP_HEAD,
    EB_HTTP_POST,
    EB_HTTP_PUT,
    EB_HTTP_DELETE,
    EB_HTTP_PATCH,
    EB_HTTP_OPTIONS,
    EB_HTTP_CONNECT,
} EbHttpMethod;

typedef enum {
    EB_HTTP_ORIGIN,    /* /path */
    EB_HTTP_ABSOLUTE,  /* http://host/path */
    EB_HTTP_AUTHORITY, /* host:port, with CONNECT */
} EbHttpForm;

/** EbHttpHeader: one header line; both point into the request's own copy of the head. */
typedef struct {
    const char *name;
    const char *value;
    guint hop; /* TRUE: named by Connection, or hop-by-hop by itself */
} EbHttpHeader;

/** EbHttpRequest: a request's head as typed fields; nothing later looks at raw bytes. */
typedef struct {
    char *storage; /* (owned): the head, cut into strings */
    EbHttpMethod method;
    const char *method_name;
    EbHttpForm form;
    const char *target; /* as sent */
    const char *path;   /* origin form of target with its query; "*" never; empty with CONNECT */
    EbTarget host;      /* absolute and authority form: where to */
    gboolean keep_alive;
    gboolean http_1_0;
    gboolean expect_continue;
    gboolean websocket; /* asks for the one Upgrade that is forwarded */
    gboolean chunked;
    guint64 content_length; /* 0 when chunked or none */
    guint n_headers;
    EbHttpHeader headers[EB_HTTP_MAX_HEADERS];
} EbHttpRequest;

void eb_http_request_clear(EbHttpRequest *self);
/** eb_http_request_has_body: FALSE for a length of 0. */
gboolean eb_http_request_has_body(const EbHttpRequest *self);
/** eb_http_request_header: (nullable) (transfer none): first value of @name, any case. */
const char *eb_http_request_header(const EbHttpRequest *self, const char *name);

typedef enum {
    EB_HTTP_MORE,    /* more bytes are needed */
    EB_HTTP_DONE,    /* head or body is complete */
    EB_HTTP_REFUSED, /* the refusal says why; the connection cannot go on */
} EbHttpResult;

/**
 * EbHttpFront: the guest-facing parser of one connection. Every head is checked line by line first, so that nothing
 * two parsers could read differently gets past, then read by llhttp; both must agree. No I/O.
 */
typedef struct {
    llhttp_t parser;
    gsize scanned; /* bytes of the head looked at by earlier calls */
    gboolean in_body;
    gboolean complete;
    gboolean failed;
    guint64 body_bytes;
    guint64 chunk_bytes; /* framing bytes of a chunked body */
    /* where body bytes of the running call go */
    void (*sink)(gpointer user_data, const char *bytes, gsize length);
    gpointer sink_data;
} EbHttpFront;

void eb_http_front_init(EbHttpFront *self);

/**
 * eb_http_front_head:
 * @bytes: everything received since the last request ended; the same start again on every call
 * @consumed: (out): with EB_HTTP_DONE, bytes of the head
 * @request: (out): filled with EB_HTTP_DONE; clear it
 */
EbHttpResult eb_http_front_head(EbHttpFront *self, const char *bytes, gsize length, gsize *consumed,
                                EbHttpRequest *request, EbRefusal *refusal);

/**
 * eb_http_front_body: feeds body bytes; @sink gets what is left of them without framing.
 * @consumed: (out): how many of @bytes belong to this request
 */
EbHttpResult eb_http_front_body(EbHttpFront *self, const char *bytes, gsize length, gsize *consumed,
                                void (*sink)(gpointer user_data, const char *bytes, gsize length), gpointer user_data,
                                EbRefusal *refusal);

G_END_DECLS
