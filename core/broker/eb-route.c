/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-route.h"

#include <sodium.h>
#include <string.h>

#include "core/broker/eb-websocket.h"

#define PREFIX "/provider/"

/* Every header a credential is carried in by any kind of provider, and what could stand for one. */
static const char *const CREDENTIAL_HEADERS[] = {
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "x-goog-iam-authorization-token",
    "ocp-apim-subscription-key",
    "proxy-authorization",
    "cookie",
};

/* Parameters that carry one; Google's servers take each of them with a "$" before it as well. */
static const char *const CREDENTIAL_PARAMETERS[] = {"key", "access_token", "oauth_token"};

/*
 * What would have the provider answer otherwise than it is read here: the key is looked for in what comes back, so that
 * must not be compressed, in another alphabet or in parts; what an answer cost must be in it; and the method is what the
 * request was judged by.
 */
static const char *const CHANGING_HEADERS[] = {
    "accept-encoding",        "accept-charset",    "range", "if-range", "x-goog-fieldmask", "x-http-method",
    "x-http-method-override", "x-method-override",
};

static const char *const CHANGING_PARAMETERS[] = {"httpMethod", "httpHeaders"};

/* What tells an upstream about the way a request came, which is nobody's business outside. */
static const char *const TRACE_HEADERS[] = {
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip",
};

static gboolean
is_listed(const char *name, const char *const *list, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        if (g_ascii_strcasecmp(name, list[i]) == 0)
            return TRUE;
    }
    return FALSE;
}

void
eb_route_clear(EbRoute *self)
{
    g_clear_pointer(&self->path, g_free);
}

gboolean
eb_route_header_passes(const EbRoute *route, const EbHttpHeader *header)
{
    if (header->hop || is_listed(header->name, TRACE_HEADERS, G_N_ELEMENTS(TRACE_HEADERS)))
        return FALSE;
    if (route->kind != EB_ROUTE_PROVIDER)
        return TRUE;
    return !is_listed(header->name, CHANGING_HEADERS, G_N_ELEMENTS(CHANGING_HEADERS)) &&
           !is_listed(header->name, CREDENTIAL_HEADERS, G_N_ELEMENTS(CREDENTIAL_HEADERS));
}

/* --- paths --- */

/* Length of one character of a path as a server may read it: itself, or %XX for a dot or a slash. */
static gsize
decode_one(const char *text, char *c)
{
    int high, low;

    *c = text[0];
    if (text[0] != '%')
        return 1;
    high = g_ascii_xdigit_value(text[1]);
    low = high >= 0 ? g_ascii_xdigit_value(text[2]) : -1;
    if (high < 0 || low < 0)
        return 0;
    *c = (char)(high * 16 + low);
    return 3;
}

/* A dot segment, plain or escaped, would let a server see another path than we do, as would what it decodes twice. */
static gboolean
path_is_plain(const char *path, gsize length)
{
    gsize dots = 0, others = 0;

    for (gsize at = 0; at <= length;) {
        char c = '/';
        gsize step = 1;

        if (at < length) {
            step = decode_one(path + at, &c);
            if (step == 0 || at + step > length)
                return FALSE;
            if (step == 3 && (c == '\\' || c == '%' || (guchar)c < ' '))
                return FALSE;
        }
        if (c == '/') {
            if (others == 0 && (dots == 1 || dots == 2))
                return FALSE;
            dots = others = 0;
        } else if (c == ';' && others == 0 && (dots == 1 || dots == 2)) {
            return FALSE; /* servers that take ";..." for a parameter of the segment see the dots alone */
        } else if (c == '.') {
            dots++;
        } else {
            others++;
        }
        at += step;
    }
    return TRUE;
}

static gboolean
is_version(const char *segment, gsize length)
{
    return length >= 2 && segment[0] == 'v' && g_ascii_isdigit(segment[1]);
}

/* "%66" is "f" to every server (RFC 3986, 6.2.2.2): so it goes up, and what is judged by its words is judged by these. */
static char *
decode_plain(const char *path, gsize length)
{
    GString *plain = g_string_sized_new(length);

    for (gsize at = 0; at < length;) {
        char c;
        gsize step = decode_one(path + at, &c);

        if (step == 3 && (g_ascii_isalnum(c) || strchr("-._~", c) != NULL))
            g_string_append_c(plain, c);
        else
            g_string_append_len(plain, path + at, (gssize)step);
        at += step;
    }
    g_string_append(plain, path + length);
    return g_string_free(plain, FALSE);
}

/* Lists of what the provider keeps for all who use its key: other sessions, and whoever else. */
static gboolean
is_list(const EbHttpRequest *request, const char *path)
{
    static const char *const lists[] = {"files",      "batches",       "completions", "responses", "cachedContents",
                                        "containers", "vector_stores", "assistants",  "uploads",   "conversations",
                                        "evals",      "jobs",          "tunedModels", "corpora",   "skills"};
    gsize length = strcspn(path, "?;"), last;

    if (request->method != EB_HTTP_GET && request->method != EB_HTTP_HEAD)
        return FALSE;
    while (length > 0 && path[length - 1] == '/')
        length--;
    for (last = length; last > 0 && path[last - 1] != '/';)
        last--;
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++)
        if (strlen(lists[i]) == length - last && g_ascii_strncasecmp(path + last, lists[i], length - last) == 0)
            return TRUE;
    return FALSE;
}

char *
eb_route_join(const char *base_path, const char *rest)
{
    const char *query = strchr(rest, '?'), *last = strrchr(base_path, '/');
    gsize length = query != NULL ? (gsize)(query - rest) : strlen(rest);
    g_autofree char *plain = NULL;
    gsize version;

    if (!path_is_plain(rest, length))
        return NULL;
    rest = plain = decode_plain(rest, length);
    version = last != NULL ? strlen(last + 1) : 0;
    if (version > 0 && is_version(last + 1, version) && strncmp(rest + 1, last + 1, version) == 0 &&
        (rest[1 + version] == '/' || rest[1 + version] == '\0' || rest[1 + version] == '?'))
        rest += 1 + version;
    if (base_path[0] == '\0' && rest[0] != '/')
        return g_strconcat("/", rest, NULL);
    return g_strconcat(base_path, rest, NULL);
}

/* --- the nonce --- */

static const char *
bearer_token(const char *value)
{
    if (g_ascii_strncasecmp(value, "bearer ", 7) != 0)
        return NULL;
    for (value += 7; *value == ' ';)
        value++;
    return value;
}

/* Compares hashes under a key of this process: neither time nor memory tells anything of the nonce. */
static gboolean
is_nonce(EbProvider *provider, const char *value, gsize length)
{
    static guint8 salt[crypto_generichash_KEYBYTES];
    static gboolean salted;
    guint8 hash[EB_PROVIDER_HASH];

    if (!salted) {
        randombytes_buf(salt, sizeof salt);
        salted = TRUE;
    }
    if (!provider->nonce_hashed) {
        g_auto(EbSecretView) view = eb_secret_view(provider->nonce);

        crypto_generichash(provider->nonce_hash, sizeof hash, (const guint8 *)view.bytes, view.length, salt,
                           sizeof salt);
        provider->nonce_hashed = TRUE;
    }
    crypto_generichash(hash, sizeof hash, (const guint8 *)value, length, salt, sizeof salt);
    return sodium_memcmp(hash, provider->nonce_hash, sizeof hash) == 0;
}

static gboolean
header_holds_nonce(const EbHttpHeader *header, EbProvider *provider)
{
    const char *value = NULL;

    if (g_ascii_strcasecmp(header->name, "authorization") == 0)
        value = bearer_token(header->value);
    else if (g_ascii_strcasecmp(header->name, "x-api-key") == 0 ||
             g_ascii_strcasecmp(header->name, "x-goog-api-key") == 0 ||
             g_ascii_strcasecmp(header->name, "api-key") == 0)
        value = header->value;
    return value != NULL && is_nonce(provider, value, strlen(value));
}

/* Is @name what stands before the "=", however it is escaped? */
static gboolean
is_parameter(const char *parameter, gsize length, const char *name)
{
    gsize at = 0;
    gboolean first = TRUE;

    for (const char *expected = name; *expected != '\0'; first = FALSE) {
        char c;
        gsize step = at < length ? decode_one(parameter + at, &c) : 0;

        if (step == 0 || at + step > length)
            return FALSE;
        at += step;
        if (first && c == '$')
            continue;
        if (g_ascii_tolower(c) != g_ascii_tolower(*expected++))
            return FALSE;
    }
    return at == length || parameter[at] == '=';
}

static gboolean
is_one_of(const char *parameter, gsize length, const char *const *names, gsize n)
{
    for (gsize i = 0; i < n; i++)
        if (is_parameter(parameter, length, names[i]))
            return TRUE;
    return FALSE;
}

/* Takes every credential out of the query of @path, and what changes the request; TRUE when one was the nonce. */
static gboolean
take_parameters(char *path, EbProvider *provider)
{
    char *query = strchr(path, '?');
    gboolean found = FALSE;
    char *to, *from;

    if (query == NULL)
        return FALSE;
    to = from = query;
    while (*from != '\0') {
        /* With what it is separated by; some servers take ";" for that as well. */
        gsize length = 1 + strcspn(from + 1, "&;");
        const char *parameter = from + 1, *value = memchr(from, '=', length);

        if (is_one_of(parameter, length - 1, CREDENTIAL_PARAMETERS, G_N_ELEMENTS(CREDENTIAL_PARAMETERS))) {
            if (value != NULL)
                found = is_nonce(provider, value + 1, length - (gsize)(value + 1 - from)) || found;
        } else if (!is_one_of(parameter, length - 1, CHANGING_PARAMETERS, G_N_ELEMENTS(CHANGING_PARAMETERS))) {
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    *to = '\0';
    if (*query != '\0')
        *query = '?';
    return found;
}

/* --- deciding --- */

static void
route_provider(EbBrokerConfig *config, const EbHttpRequest *request, EbRoute *route)
{
    const char *name = request->path + strlen(PREFIX);
    gsize length = strcspn(name, "/?");
    const char *rest = name + length;
    EbProvider *provider = eb_broker_config_find(config, name, length);
    g_autofree char *slashed = NULL;
    g_autofree char *shown = NULL;
    gboolean known;

    route->kind = EB_ROUTE_REFUSE;
    if (provider == NULL) {
        shown = g_strndup(name, MIN(length, EB_HOST_MAX));
        eb_refusal_set(&route->refusal, EB_REFUSAL_PROVIDER_UNKNOWN, shown, NULL);
        return;
    }
    route->provider = provider;
    route->target = provider->host;
    /* Agents ask for the root first, without a key, to see whether anybody is there. */
    if ((request->method == EB_HTTP_HEAD || request->method == EB_HTTP_GET) &&
        (rest[0] == '\0' || strcmp(rest, "/") == 0)) {
        route->kind = EB_ROUTE_PROBE;
        return;
    }
    if (rest[0] != '/')
        rest = slashed = g_strconcat("/", rest, NULL);
    route->path = eb_route_join(provider->base_path, rest);
    if (route->path == NULL) {
        eb_refusal_set(&route->refusal, EB_REFUSAL_BAD_REQUEST, provider->name, "the path holds a dot segment");
        return;
    }
    known = take_parameters(route->path, provider);
    for (guint i = 0; i < request->n_headers; i++)
        known = header_holds_nonce(&request->headers[i], provider) || known;
    if (!known) {
        eb_refusal_set(&route->refusal, EB_REFUSAL_NONCE, provider->name, NULL);
        return;
    }
    if (is_list(request, route->path)) {
        eb_refusal_set(&route->refusal, EB_REFUSAL_PROVIDER_LIST, provider->name, NULL);
        return;
    }
    route->kind = EB_ROUTE_PROVIDER;
}

static void
route_own(EbBrokerConfig *config, const EbHttpRequest *request, EbRoute *route)
{
    if (g_str_has_prefix(request->path, PREFIX)) {
        route_provider(config, request, route);
        return;
    }
    route->kind = EB_ROUTE_REFUSE;
    eb_refusal_set(&route->refusal, EB_REFUSAL_NOT_FOUND, NULL, NULL);
}

/*
 * A client that does not know of its base URL: allowing the host would only send the nonce there. A rule would be for the
 * host, so a guest is not to have it offered to people by asking for another port of it.
 */
static gboolean
is_provider_host(EbBrokerConfig *config, const EbTarget *target, gboolean any_port)
{
    for (guint i = 0; i < config->providers->len; i++) {
        const EbProvider *provider = config->providers->pdata[i];

        if (strcmp(provider->host.host, target->host) == 0 &&
            ((any_port && !target->literal) || provider->host.port == target->port))
            return TRUE;
    }
    return FALSE;
}

void
eb_route_request(EbBrokerConfig *config, const EbHttpRequest *request, gboolean inner, EbRoute *route)
{
    gboolean own;
    const char *why = NULL;
    EbRefusalCode code;

    memset(route, 0, sizeof *route);
    if (request->websocket &&
        (request->form != EB_HTTP_ABSOLUTE || eb_target_is_own(&request->host, config->relay_port))) {
        eb_refusal_set(&route->refusal, EB_REFUSAL_UPGRADE, NULL, NULL);
        return;
    }
    if (request->form == EB_HTTP_ORIGIN) {
        route_own(config, request, route);
        return;
    }
    route->target = request->host;
    own = eb_target_is_own(&request->host, config->relay_port);
    if (inner && !(own && request->form == EB_HTTP_ABSOLUTE)) {
        eb_refusal_set(&route->refusal, EB_REFUSAL_METHOD, NULL, "this connection leads to the broker itself");
        return;
    }
    if (own && request->form == EB_HTTP_ABSOLUTE) {
        route_own(config, request, route);
        return;
    }
    if (own) {
        route->kind = EB_ROUTE_OWN;
        return;
    }
    code = eb_refusal_from_verdict(eb_policy_judge(config->policy, &request->host, &route->rule));
    if (code != EB_REFUSAL_NONE) {
        if (is_provider_host(config, &request->host, code == EB_REFUSAL_HOST))
            code = EB_REFUSAL_PROVIDER_HOST;
        eb_refusal_set_target(&route->refusal, code, &request->host, NULL);
        return;
    }
    if (request->form == EB_HTTP_AUTHORITY) {
        route->kind = EB_ROUTE_TUNNEL;
        return;
    }
    if (request->websocket && !eb_websocket_check_request(request, &why)) {
        eb_refusal_set_target(&route->refusal, EB_REFUSAL_BAD_REQUEST, &request->host, why);
        return;
    }
    route->kind = request->websocket ? EB_ROUTE_WEBSOCKET : EB_ROUTE_FORWARD;
    route->path = g_strdup(request->path);
}
