/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-upstream-tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

/* Bytes of a bundle of certificates; Debian's has 220 KiB. */
#define MAX_BUNDLE (8u << 20)
/* Certificates taken from one bundle. */
#define MAX_CERTIFICATES 4096

struct _EbUpstreamTls {
    SSL_CTX *context; /* (owned) */
    GBytes *bundle;   /* (owned) (nullable): not yet taken apart */
    GBytes *ca_pem;   /* (owned) (nullable): the same */
};

static GBytes *
read_bundle(void)
{
    static const char *const BUNDLES[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"};

    for (gsize i = 0; i < G_N_ELEMENTS(BUNDLES); i++) {
        char *text = NULL;
        gsize length = 0;

        if (g_file_get_contents(BUNDLES[i], &text, &length, NULL) && length <= MAX_BUNDLE)
            return g_bytes_new_take(text, length);
        g_free(text);
    }
    return NULL;
}

/* How many of @pem went into the store; a certificate that is there twice, or that OpenSSL cannot read, is no error. */
static guint
add_certificates(X509_STORE *store, GBytes *pem)
{
    BIO *bio = BIO_new_mem_buf(g_bytes_get_data(pem, NULL), (int)g_bytes_get_size(pem));
    guint n = 0;

    for (guint i = 0; bio != NULL && i < MAX_CERTIFICATES; i++) {
        X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);

        if (certificate == NULL)
            break;
        n += X509_STORE_add_cert(store, certificate) == 1 ? 1 : 0;
        X509_free(certificate);
    }
    BIO_free(bio);
    ERR_clear_error();
    return n;
}

static gboolean
set_up_context(SSL_CTX *context)
{
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
        return FALSE;
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CLEANSE_PLAINTEXT);
    /* One read takes a whole record. Record buffers are given back by connections that rest, not after each record: to
     * wipe and to make them costs as much as to decrypt a short one. */
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return TRUE;
}

EbUpstreamTls *
eb_upstream_tls_new(GBytes *ca_pem, GError **error)
{
    EbUpstreamTls *self = g_new0(EbUpstreamTls, 1);

    self->context = SSL_CTX_new(TLS_client_method());
    if (self->context == NULL || !set_up_context(self->context)) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "broker.no-tls", "OpenSSL cannot be set up on this host");
        eb_upstream_tls_free(self);
        return NULL;
    }
    self->bundle = read_bundle();
    self->ca_pem = ca_pem != NULL ? g_bytes_ref(ca_pem) : NULL;
    return self;
}

void
eb_upstream_tls_free(EbUpstreamTls *self)
{
    if (self == NULL)
        return;
    SSL_CTX_free(self->context);
    g_clear_pointer(&self->bundle, g_bytes_unref);
    g_clear_pointer(&self->ca_pem, g_bytes_unref);
    g_free(self);
}

static void
take_bundles_apart(EbUpstreamTls *self)
{
    X509_STORE *store = SSL_CTX_get_cert_store(self->context);

    if (self->bundle != NULL)
        add_certificates(store, self->bundle);
    if (self->ca_pem != NULL && add_certificates(store, self->ca_pem) == 0)
        g_warning("the extra certificates of the configuration hold none that can be read");
    g_clear_pointer(&self->bundle, g_bytes_unref);
    g_clear_pointer(&self->ca_pem, g_bytes_unref);
}

static gboolean
set_peer(SSL *ssl, const EbTarget *target)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);

    if (target->literal)
        return X509_VERIFY_PARAM_set1_ip(param, target->address.bytes, target->address.length) == 1;
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return X509_VERIFY_PARAM_set1_host(param, target->host, 0) == 1 && SSL_set_tlsext_host_name(ssl, target->host) == 1;
}

SSL *
eb_upstream_tls_open(EbUpstreamTls *self, const EbTarget *target, gboolean http2)
{
    static const guchar BOTH[] = "\x02h2\x08http/1.1", ONE[] = "\x08http/1.1";
    SSL *ssl;

    if (self->bundle != NULL || self->ca_pem != NULL)
        take_bundles_apart(self);
    ssl = SSL_new(self->context);
    if (ssl == NULL)
        return NULL;
    SSL_set_connect_state(ssl);
    /* This function alone returns 0 for success. */
    if (!set_peer(ssl, target) ||
        SSL_set_alpn_protos(ssl, http2 ? BOTH : ONE, (guint)(http2 ? sizeof BOTH : sizeof ONE) - 1) != 0) {
        SSL_free(ssl);
        return NULL;
    }
    return ssl;
}

const char *
eb_upstream_tls_why(SSL *ssl)
{
    long result = SSL_get_verify_result(ssl);

    return result != X509_V_OK ? X509_verify_cert_error_string(result) : NULL;
}
