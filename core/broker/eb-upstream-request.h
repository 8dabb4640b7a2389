/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-route.h"

G_BEGIN_DECLS

/** EB_UPSTREAM_MAX_KEY: bytes of a provider's key that fit into a header; real ones have fewer than 300. */
#define EB_UPSTREAM_MAX_KEY (8 * 1024)
/** EB_UPSTREAM_HEAD_SIZE: room for any request head: the guest's, the provider's base path and host, and the key. */
#define EB_UPSTREAM_HEAD_SIZE (EB_HTTP_MAX_HEAD + EB_UPSTREAM_MAX_KEY + 16 * 1024)

/** EbUpstreamFraming: how a request's body is framed on its way up. */
typedef enum {
    EB_UPSTREAM_NO_BODY,
    EB_UPSTREAM_LENGTH,
    EB_UPSTREAM_CHUNKED,
} EbUpstreamFraming;

/** eb_upstream_framing: from the parsed request alone; a POST without a body still says how long it is (LENGTH, 0). */
EbUpstreamFraming eb_upstream_framing(const EbHttpRequest *request);

/**
 * eb_upstream_authority: "host" or "host:port", an IPv6 address in brackets; the port is left out where the scheme
 * implies it. @buffer: EB_HOST_MAX + 16 bytes.
 */
void eb_upstream_authority(const EbTarget *target, gboolean tls, char *buffer, gsize size);

/**
 * eb_upstream_request_head: the bytes of an HTTP/1.1 request's head, put together from typed fields: request line, one
 * Host, the headers that pass, one key, one framing, the empty line. No I/O.
 * @buffer: holds the key afterwards: locked memory, to be wiped by the caller
 *
 * Returns: its length; 0 when it does not fit into @size.
 */
gsize eb_upstream_request_head(const EbHttpRequest *request, const EbRoute *route, char *buffer, gsize size);

/** EB_UPSTREAM_CHUNK_HEAD: room for a chunk's head. */
#define EB_UPSTREAM_CHUNK_HEAD 20
/** eb_upstream_chunk_head: the size line of a chunk of @length bytes. Returns: its length */
gsize eb_upstream_chunk_head(gsize length, char *buffer);

G_END_DECLS
