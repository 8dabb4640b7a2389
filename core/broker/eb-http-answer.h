/* SPDX-License-Identifier: MIT */
#pragma once

#include <llhttp.h>

#include "core/broker/eb-http-front.h"

G_BEGIN_DECLS

/** EB_HTTP_MAX_ANSWER_HEAD: bytes of one answer's head; providers send 1 to 4 KiB. */
#define EB_HTTP_MAX_ANSWER_HEAD (64 * 1024)
/** EB_HTTP_MAX_ANSWER_HEADERS: header lines of one answer. */
#define EB_HTTP_MAX_ANSWER_HEADERS 256
/** EB_HTTP_MAX_INTERIM: interim answers (1xx) before the final one. */
#define EB_HTTP_MAX_INTERIM 16

typedef enum {
    EB_HTTP_BODY_NONE,
    EB_HTTP_BODY_LENGTH,
    EB_HTTP_BODY_CHUNKED,
    EB_HTTP_BODY_CLOSE, /* ends with the connection */
} EbHttpBody;

/** EbHttpAnswerHead: a final answer's head; valid until the parser is cleared or begins the next answer. */
typedef struct {
    guint status; /* 200 to 599 */
    EbHttpBody body;
    gboolean has_length;   /* a Content-Length was given, also where no body follows (HEAD, 304) */
    guint64 length;        /* with has_length */
    gboolean keep_alive;   /* another request may follow on this connection */
    guint n_headers;       /* hop-by-hop ones and those named by Connection are marked */
    EbHttpHeader *headers; /* (owned) */
} EbHttpAnswerHead;

/**
 * EbHttpAnswer: the parser of what an upstream answers, as strict as the one towards the guest: one framing, and two
 * opinions on it (ours, line by line, and llhttp's) that must agree. No I/O.
 */
typedef struct {
    llhttp_t parser;
    EbHttpAnswerHead head;
    char *storage; /* (owned) (nullable): the head, cut into strings */
    gsize scanned;
    GString *added; /* (owned) (nullable): lines that came one by one */
    guint n_interim;
    gboolean to_head_request;
    gboolean complete;
    guint64 left;        /* EB_HTTP_BODY_LENGTH */
    guint64 body_bytes;  /* EB_HTTP_BODY_CHUNKED */
    guint64 frame_bytes; /* bytes of chunk heads and trailers */
    char *to;            /* where the decoder puts the next body byte; within the running call */
} EbHttpAnswer;

/** eb_http_answer_begin: @to_head_request: the request was HEAD: whatever the head says, no body follows. */
void eb_http_answer_begin(EbHttpAnswer *self, gboolean to_head_request);
void eb_http_answer_clear(EbHttpAnswer *self);

/**
 * eb_http_answer_read_head: skips interim answers.
 * @bytes: everything received since the last call that consumed something
 * @consumed: (out): bytes that are done with, also with EB_HTTP_MORE
 */
EbHttpResult eb_http_answer_read_head(EbHttpAnswer *self, const char *bytes, gsize length, gsize *consumed);

/**
 * eb_http_answer_read_body: takes the framing off, in place.
 * @bytes: (inout): its beginning holds the body's bytes afterwards
 * @n_body: (out): how many
 * @consumed: (out): how many of @length were this answer's
 *
 * Returns: EB_HTTP_DONE at the body's end, EB_HTTP_REFUSED when the framing is broken.
 */
EbHttpResult eb_http_answer_read_body(EbHttpAnswer *self, char *bytes, gsize length, gsize *n_body, gsize *consumed);

/* --- HTTP/2: lines come one by one, framing is the library's --- */

/** eb_http_answer_add: one line, ":status" first. FALSE: one too many, or not what a line may be. */
gboolean eb_http_answer_add(EbHttpAnswer *self, const char *name, gsize name_length, const char *value,
                            gsize value_length);
/** eb_http_answer_finish: the lines are complete. @at_end: no body follows. MORE: it was an interim answer. */
EbHttpResult eb_http_answer_finish(EbHttpAnswer *self, gboolean at_end);

G_END_DECLS
