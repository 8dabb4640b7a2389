/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * EbTestStrictRequest: one HTTP/1.1 request as the strictest reader of RFC 9112 sees it. Shares no code with the broker
 * or with llhttp, so that what the broker sends is read by somebody else.
 */
typedef struct {
    char *method;      /* (owned) */
    char *target;      /* (owned) */
    GPtrArray *names;  /* (element-type utf8) (owned): header names, lower case */
    GPtrArray *values; /* (element-type utf8) (owned) */
    GByteArray *body;  /* (owned) */
    gboolean chunked;
} EbTestStrictRequest;

void eb_test_strict_request_clear(EbTestStrictRequest *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbTestStrictRequest, eb_test_strict_request_clear)

/**
 * eb_test_strict_read:
 * @request: (out): what was read; clear it in every case
 * @why: (out) (transfer none): with -1, what is wrong
 *
 * Returns: bytes of the one request at the start of @bytes; 0 when it is not complete; -1 when it is malformed.
 */
gssize eb_test_strict_read(const char *bytes, gsize length, EbTestStrictRequest *request, const char **why);
/** eb_test_strict_count: header lines of @name (lower case). */
guint eb_test_strict_count(const EbTestStrictRequest *self, const char *name);
/** eb_test_strict_value: (nullable) (transfer none): the first value of @name (lower case). */
const char *eb_test_strict_value(const EbTestStrictRequest *self, const char *name);

G_END_DECLS
