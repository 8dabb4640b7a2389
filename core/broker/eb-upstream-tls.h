/* SPDX-License-Identifier: MIT */
#pragma once

#include <openssl/ssl.h>

#include "core/broker/eb-broker.h"

G_BEGIN_DECLS

/* EbUpstreamTls: what every TLS connection to a provider has in common: TLS 1.2 or later, always verified. */

/**
 * eb_upstream_tls_new: reads the host's certificates, so that no file is opened later; they are taken apart with the
 * first connection, because many sessions never make one and they are two megabytes then.
 * @ca_pem: (nullable): certificates of an operator's own, trusted beside those of the host
 */
EbUpstreamTls *eb_upstream_tls_new(GBytes *ca_pem, GError **error);
void eb_upstream_tls_free(EbUpstreamTls *self);

/**
 * eb_upstream_tls_open: (transfer full) (nullable): the client's side of a connection to @target: its name is sent
 * (SNI) and is what the certificate must be for; an address must be in the certificate as an address.
 * @http2: offer HTTP/2 beside HTTP/1.1 (ALPN)
 */
SSL *eb_upstream_tls_open(EbUpstreamTls *self, const EbTarget *target, gboolean http2);

/** eb_upstream_tls_why: (nullable) (transfer none): why the peer's certificate was refused; NULL when it was not. */
const char *eb_upstream_tls_why(SSL *ssl);

G_END_DECLS
