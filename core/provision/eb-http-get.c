/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-http-get.h"

#include "core/config/eb-pins.h"
#include "core/provision/eb-deadline.h"

#include <libsoup/soup.h>
#include <string.h>

#define CHUNK 65536
#define RETRY_MS 1000

const EbHttpLimits EB_HTTP_LIMITS_FILE = {.idle_s = 30, .total_ms = 15 * 60 * 1000, .tries = 3, .wait_ms = 1000};

struct _EbHttpGet {
    SoupSession *session;      /* (owned) */
    GCancellable *cancellable; /* (owned) (nullable) */
    EbHttpLimits limits;
};

/* One exchange with all its redirects. */
typedef struct {
    EbHttpGet *get;
    EbDeadline *deadline;
    char *url; /* the one that answers now */
    guint64 max_bytes;
    EbHttpWrite write;
    gpointer user_data;
} Exchange;

/* A proxy for https alone: what is on loopback is spoken to directly. */
static GProxyResolver *
make_resolver(const char *proxy, const char *no_proxy)
{
    g_auto(GStrv) hosts = g_strsplit(no_proxy != NULL ? no_proxy : "", ",", -1);
    g_autoptr(GStrvBuilder) direct = g_strv_builder_new();

    for (char **host = hosts; *host != NULL; host++)
        if (*g_strstrip(*host) != '\0')
            g_strv_builder_add(direct, *host);
    g_auto(GStrv) ignored = g_strv_builder_end(direct);
    GProxyResolver *resolver = g_simple_proxy_resolver_new(NULL, ignored);
    g_simple_proxy_resolver_set_uri_proxy(G_SIMPLE_PROXY_RESOLVER(resolver), "https", proxy);
    return resolver;
}

static gboolean
check_proxy(const char *proxy, GError **error)
{
    g_autoptr(GUri) uri = g_uri_parse(proxy, G_URI_FLAGS_HAS_PASSWORD, NULL);

    if (uri != NULL && g_uri_get_host(uri) != NULL && *g_uri_get_host(uri) != '\0')
        return TRUE;
    /* Not named: it may hold a password. */
    eb_set_error(error, EB_ERROR_CONFIG, "pins.proxy", "the proxy is no URL (see: npm config get https-proxy)");
    return FALSE;
}

EbHttpGet *
eb_http_get_new(const EbHttpRoute *route, const EbHttpLimits *limits, GCancellable *cancellable, GError **error)
{
    const char *ca_file = route != NULL ? route->ca_file : NULL;
    const char *proxy = route != NULL ? route->proxy : NULL;
    g_autoptr(GTlsDatabase) trusted = ca_file != NULL ? g_tls_file_database_new(ca_file, error) : NULL;
    g_autoptr(GProxyResolver) resolver = NULL;

    if (ca_file != NULL && trusted == NULL) {
        eb_error_convert(error, "pins.ca-file", ca_file);
        return NULL;
    }
    if (proxy != NULL && !check_proxy(proxy, error))
        return NULL;
    EbHttpGet *self = g_new0(EbHttpGet, 1);
    self->limits = *limits;
    self->cancellable = cancellable != NULL ? g_object_ref(cancellable) : NULL;
    self->session = soup_session_new_with_options("timeout", limits->idle_s, "user-agent", "errand-box", NULL);
    /* A digest is of what is sent, and an archive that is compressed once more could grow without a bound. */
    soup_session_remove_feature_by_type(self->session, SOUP_TYPE_CONTENT_DECODER);
    if (trusted != NULL)
        soup_session_set_tls_database(self->session, trusted);
    if (proxy != NULL) {
        resolver = make_resolver(proxy, route->no_proxy);
        soup_session_set_proxy_resolver(self->session, resolver);
    }
    return self;
}

void
eb_http_get_free(EbHttpGet *self)
{
    g_object_unref(self->session);
    g_clear_object(&self->cancellable);
    g_free(self);
}

gboolean
eb_http_get_may_retry(EbHttpGet *self, const GError *problem, guint *tries)
{
    GPollFD wait;

    if (++*tries >= self->limits.tries || !eb_error_get_retry(problem, NULL))
        return FALSE;
    gint ms = (gint)(self->limits.wait_ms << (*tries - 1));
    if (self->cancellable != NULL && g_cancellable_make_pollfd(self->cancellable, &wait)) {
        g_poll(&wait, 1, ms);
        g_cancellable_release_fd(self->cancellable);
    } else {
        g_usleep((gulong)ms * 1000);
    }
    return !g_cancellable_is_cancelled(self->cancellable);
}

/* Of the transport, as an EB_ERROR that names the URL. */
static void
convert_error(Exchange *exchange, GError **error)
{
    if (*error == NULL || (*error)->domain == EB_ERROR)
        return;
    g_autoptr(GError) problem = g_steal_pointer(error);
    if (eb_deadline_is_over(exchange->deadline)) {
        eb_set_error(error, EB_ERROR_TIMEOUT, "pins.deadline", "%s: not all of it came within %u s", exchange->url,
                     exchange->get->limits.total_ms / 1000);
    } else if (g_error_matches(problem, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        eb_set_error(error, EB_ERROR_CANCELLED, "pins.cancelled", "fetching was cancelled");
    } else if (g_error_matches(problem, G_IO_ERROR, G_IO_ERROR_TIMED_OUT)) {
        eb_set_error(error, EB_ERROR_TIMEOUT, "pins.stalled", "%s: nothing came for %u s", exchange->url,
                     exchange->get->limits.idle_s);
    } else if (g_error_matches(problem, G_TLS_ERROR, G_TLS_ERROR_BAD_CERTIFICATE)) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "pins.certificate", "%s: its certificate is not trusted here: %s",
                     exchange->url, problem->message);
    } else {
        GError *converted =
            eb_error_new(EB_ERROR_UNAVAILABLE, "pins.unreachable", "%s: %s", exchange->url, problem->message);
        eb_error_set_retry(converted, RETRY_MS);
        g_propagate_error(error, converted);
    }
}

static gboolean
judge_status(Exchange *exchange, SoupMessage *message, GError **error)
{
    guint status = soup_message_get_status(message);

    if (status == SOUP_STATUS_OK)
        return TRUE;
    if (status == SOUP_STATUS_UNAUTHORIZED || status == SOUP_STATUS_FORBIDDEN)
        eb_set_error(error, EB_ERROR_UNAUTHENTICATED, "pins.login",
                     "%s: answer %u: what is pinned is fetched without a login (use a source that needs none)",
                     exchange->url, status);
    else if (status == SOUP_STATUS_NOT_FOUND || status == SOUP_STATUS_GONE)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.gone", "%s is not there (answer %u)", exchange->url, status);
    else if (status == 429 || status >= 500) {
        GError *problem =
            eb_error_new(EB_ERROR_UNAVAILABLE, "pins.unreachable", "%s: answer %u", exchange->url, status);
        eb_error_set_retry(problem, RETRY_MS);
        g_propagate_error(error, problem);
    } else
        eb_set_error(error, EB_ERROR_PROTOCOL, "pins.answer", "%s: answer %u", exchange->url, status);
    return FALSE;
}

/* Replaces the exchange's URL by where it is sent; FALSE when that may not be followed. */
static gboolean
follow(Exchange *exchange, SoupMessage *message, GError **error)
{
    const char *location = soup_message_headers_get_one(soup_message_get_response_headers(message), "Location");
    g_autofree char *next =
        location != NULL ? g_uri_resolve_relative(exchange->url, location, SOUP_HTTP_URI_FLAGS, NULL) : NULL;
    g_autofree char *wrong = next != NULL ? eb_pin_check_url(next) : g_strdup("not a URL");
    g_autofree char *shown = eb_log_escape(location != NULL ? location : "", -1, 300);

    if (wrong == NULL && g_str_has_prefix(exchange->url, "https:") && !g_str_has_prefix(next, "https:"))
        wrong = g_strdup("away from https");
    if (wrong != NULL) {
        eb_set_error(error, EB_ERROR_DENIED, "pins.redirect",
                     "%s: it is said to be at \"%s\", which is not followed: %s", exchange->url, shown, wrong);
        return FALSE;
    }
    g_free(exchange->url);
    exchange->url = g_steal_pointer(&next);
    return TRUE;
}

static gboolean
too_long(Exchange *exchange, GError **error)
{
    eb_set_error(error, EB_ERROR_QUOTA, "pins.size", "%s is longer than the %" G_GUINT64_FORMAT " bytes it may have",
                 exchange->url, exchange->max_bytes);
    return FALSE;
}

static gboolean
read_body(Exchange *exchange, SoupMessage *message, GInputStream *stream, GError **error)
{
    SoupMessageHeaders *headers = soup_message_get_response_headers(message);
    gboolean told = soup_message_headers_get_encoding(headers) == SOUP_ENCODING_CONTENT_LENGTH;
    guint64 wanted = told ? (guint64)soup_message_headers_get_content_length(headers) : 0;
    g_autofree guint8 *chunk = g_malloc(CHUNK);
    guint64 total = 0;

    if (told && wanted > exchange->max_bytes)
        return too_long(exchange, error);
    for (;;) {
        gssize n = g_input_stream_read(stream, chunk, CHUNK, eb_deadline_get_cancellable(exchange->deadline), error);
        if (n < 0)
            return FALSE;
        if (n == 0)
            break;
        total += (guint64)n;
        if (total > exchange->max_bytes)
            return too_long(exchange, error);
        if (!exchange->write(chunk, (gsize)n, exchange->user_data, error))
            return FALSE;
    }
    if (!told || total == wanted)
        return TRUE;
    GError *problem = eb_error_new(EB_ERROR_UNAVAILABLE, "pins.truncated",
                                   "%s ended after %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes", exchange->url,
                                   total, wanted);
    eb_error_set_retry(problem, RETRY_MS);
    g_propagate_error(error, problem);
    return FALSE;
}

static gboolean
run(Exchange *exchange, GError **error)
{
    for (guint i = 0; i <= EB_HTTP_GET_MAX_REDIRECTS; i++) {
        g_autoptr(SoupMessage) message = soup_message_new("GET", exchange->url);
        g_autoptr(GInputStream) stream = NULL;
        if (message == NULL) {
            eb_set_error(error, EB_ERROR_INVALID, "pins.url", "%s is no URL", exchange->url);
            return FALSE;
        }
        soup_message_add_flags(message, SOUP_MESSAGE_NO_REDIRECT | SOUP_MESSAGE_DO_NOT_USE_AUTH_CACHE);
        stream =
            soup_session_send(exchange->get->session, message, eb_deadline_get_cancellable(exchange->deadline), error);
        if (stream == NULL)
            return FALSE;
        guint status = soup_message_get_status(message);
        if (status >= 300 && status < 400 && status != SOUP_STATUS_NOT_MODIFIED) {
            if (!follow(exchange, message, error))
                return FALSE;
            continue;
        }
        return judge_status(exchange, message, error) && read_body(exchange, message, stream, error);
    }
    eb_set_error(error, EB_ERROR_DENIED, "pins.redirect", "%s: more than %d redirects", exchange->url,
                 EB_HTTP_GET_MAX_REDIRECTS);
    return FALSE;
}

gboolean
eb_http_get_stream(EbHttpGet *self, const char *url, guint64 max_bytes, EbHttpWrite write, gpointer user_data,
                   GError **error)
{
    g_autofree char *wrong = eb_pin_check_url(url);

    if (wrong != NULL) {
        g_autofree char *shown = eb_log_escape(url, -1, 300);
        eb_set_error(error, EB_ERROR_DENIED, "pins.url", "\"%s\" is not fetched: %s", shown, wrong);
        return FALSE;
    }
    Exchange exchange = {.get = self,
                         .deadline = eb_deadline_new(self->cancellable, self->limits.total_ms),
                         .url = g_strdup(url),
                         .max_bytes = max_bytes,
                         .write = write,
                         .user_data = user_data};
    GError *problem = NULL;
    gboolean done = run(&exchange, &problem);
    convert_error(&exchange, &problem);
    eb_deadline_free(exchange.deadline);
    g_free(exchange.url);
    if (problem != NULL)
        g_propagate_error(error, problem);
    return done;
}

static gboolean
append(const void *data, gsize length, gpointer user_data, GError **error)
{
    g_byte_array_append(user_data, data, (guint)length);
    return TRUE;
}

GBytes *
eb_http_get_bytes(EbHttpGet *self, const char *url, gsize max_bytes, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    if (!eb_http_get_stream(self, url, max_bytes, append, bytes, error))
        return NULL;
    return g_byte_array_free_to_bytes(g_steal_pointer(&bytes));
}
