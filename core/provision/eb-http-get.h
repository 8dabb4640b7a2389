/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_HTTP_GET_MAX_REDIRECTS: that are followed, each to https alone. */
#define EB_HTTP_GET_MAX_REDIRECTS 5

/**
 * EbHttpGet: fetches by https, blocking, for worker threads. http is spoken to a literal loopback address alone, and
 * never after a redirect from https. Nothing is decoded, no cookie is kept, no credential is sent.
 */
typedef struct _EbHttpGet EbHttpGet;

/** EbHttpLimits: of one exchange. */
typedef struct {
    guint idle_s;   /* without a byte */
    guint total_ms; /* from the first connection to the last byte, redirects included */
    guint tries;    /* where trying again may help */
    guint wait_ms;  /* before the second try, doubled before each further one */
} EbHttpLimits;

/** EB_HTTP_LIMITS_FILE: for a whole archive: 200 MB at 256 kB/s and some. */
extern const EbHttpLimits EB_HTTP_LIMITS_FILE;

/**
 * EbHttpWrite: takes the next piece of the body.
 *
 * Returns: FALSE with @error to end the exchange
 */
typedef gboolean (*EbHttpWrite)(const void *data, gsize length, gpointer user_data, GError **error);

/** EbHttpRoute: how the net is reached, where that is not the system's own setting; all (nullable). */
typedef struct {
    const char *ca_file;  /* certificates to trust instead of the system's */
    const char *proxy;    /* URL of a proxy for https */
    const char *no_proxy; /* hosts reached without it, "a,b" */
} EbHttpRoute;

/** eb_http_get_new: to be used in the calling thread alone. @route: (nullable) */
EbHttpGet *eb_http_get_new(const EbHttpRoute *route, const EbHttpLimits *limits, GCancellable *cancellable,
                           GError **error);
void eb_http_get_free(EbHttpGet *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbHttpGet, eb_http_get_free)

/**
 * eb_http_get_may_retry: after a failed try: waits and says TRUE when another one may help.
 * @tries: (inout): made so far, 0 at first; counted here
 */
gboolean eb_http_get_may_retry(EbHttpGet *self, const GError *problem, guint *tries);

/**
 * eb_http_get_stream:
 * @max_bytes: of the body; a longer one is refused before it is read when its length is told, else at the first byte
 *   too much
 *
 * Returns: FALSE with EB_ERROR_UNAVAILABLE and a retry mark when trying again may help; _NOT_FOUND, _UNAUTHENTICATED,
 *   _INTEGRITY (a certificate that is not trusted), _QUOTA (too long), _DENIED (a redirect that is not followed), _TIMEOUT, _CANCELLED. The message names the URL.
 */
gboolean eb_http_get_stream(EbHttpGet *self, const char *url, guint64 max_bytes, EbHttpWrite write, gpointer user_data,
                            GError **error);
/** eb_http_get_bytes: (transfer full) (nullable): the same into memory. */
GBytes *eb_http_get_bytes(EbHttpGet *self, const char *url, gsize max_bytes, GError **error);

G_END_DECLS
