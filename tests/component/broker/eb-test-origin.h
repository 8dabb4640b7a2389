/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbTestOrigin: an HTTP/1.1 server on loopback with a thread for each connection, which keeps what it received byte for
 * byte. Its answer depends on the path, a leading /v1 aside:
 *
 *   /echo       the request's head as body, and its x-api-key as a header
 *   /count      the length of the request's body
 *   /sse        one event for each eb_test_origin_step(), then the end at eb_test_origin_step_end()
 *   /talk       events of a model that talks until the peer is gone
 *   /usage      a model's whole answer, of 40 and 2 tokens
 *   /hang       no answer, until the peer is gone
 *   /bytes/N    N bytes of a pattern
 *   /status/N   that status
 *   /redirect   302 to another host
 *   /coded      an answer that is said to be compressed
 *   /cut        a body shorter than its length
 *   anything else   "hello"
 */
typedef struct _EbTestOrigin EbTestOrigin;

/** eb_test_origin_new: @certificate: (nullable): PEM file with key: speaks TLS */
EbTestOrigin *eb_test_origin_new(const char *certificate);
void eb_test_origin_free(EbTestOrigin *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTestOrigin, eb_test_origin_free)

guint16 eb_test_origin_get_port(EbTestOrigin *self);
/** eb_test_origin_get_count: requests received so far */
guint eb_test_origin_get_count(EbTestOrigin *self);
/** eb_test_origin_get_whole: requests received so far with all of their body */
guint eb_test_origin_get_whole(EbTestOrigin *self);
/** eb_test_origin_get_heads: (transfer full): the heads of all requests, one after the other */
char *eb_test_origin_get_heads(EbTestOrigin *self);
/** eb_test_origin_wait_count: waits (blocking) until @count requests are there. */
void eb_test_origin_wait_count(EbTestOrigin *self, guint count);
/** eb_test_origin_wait_gone: waits (blocking) until @count peers of /hang or /sse went away before the end. */
void eb_test_origin_wait_gone(EbTestOrigin *self, guint count);
void eb_test_origin_step(EbTestOrigin *self);
void eb_test_origin_step_end(EbTestOrigin *self);

G_END_DECLS
