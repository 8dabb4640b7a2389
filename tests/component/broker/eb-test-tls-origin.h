/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * eb_test_write_certificate: writes key and self-signed certificate to @path.
 * @alt_name: as OpenSSL writes it: "DNS:h.test", "IP:127.0.0.1"; @days: negative: ended that many days ago
 *
 * Returns: (transfer full): the certificate as PEM
 */
GBytes *eb_test_write_certificate(const char *path, const char *alt_name, int days);

/**
 * EbTestH2Origin: an HTTP/2 server on loopback, a thread for each connection. Its answer depends on the path:
 *
 *   /hello      "hello" and the request's x-api-key
 *   /count      the length of the request's body
 *   /bytes/N    N bytes
 *   /steps      one event at once, one for each eb_test_h2_origin_step(), ended by the fourth
 *   /reset      a head and some bytes, then RST_STREAM
 *   /refuse     REFUSED_STREAM the first time, "hello" later
 *   /goaway     "hello", then GOAWAY
 *   /none       204
 *   /hints      103, then "hello"
 *   /hang       no answer until the stream is reset
 */
typedef struct _EbTestH2Origin EbTestH2Origin;

/** eb_test_h2_origin_new: @certificate: PEM file with key */
EbTestH2Origin *eb_test_h2_origin_new(const char *certificate);
void eb_test_h2_origin_free(EbTestH2Origin *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTestH2Origin, eb_test_h2_origin_free)
guint16 eb_test_h2_origin_get_port(EbTestH2Origin *self);
guint eb_test_h2_origin_get_connections(EbTestH2Origin *self);
guint eb_test_h2_origin_get_requests(EbTestH2Origin *self);
void eb_test_h2_origin_step(EbTestH2Origin *self);
/** eb_test_h2_origin_wait_resets: waits (blocking) until the peer reset @n streams. */
void eb_test_h2_origin_wait_resets(EbTestH2Origin *self, guint n);

G_END_DECLS
