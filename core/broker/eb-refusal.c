/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-refusal.h"

#include <string.h>

#define HOW_CLIENT "the client sent something this broker does not take; another client or option may help"
#define HOW_RETRY "try again later; if it stays, tell an operator"
#define HOW_OPERATOR "an operator of errand-box must look at the provider's configuration"

/* The libraries wait as long as they are told, if it is a minute at most. */
#define RETRY_AFTER_S 10

typedef struct {
    const char *token;
    guint status;
    const char *reason;
    const char *how; /* "{host}" stands for the host without its port */
} Wording;

static const Wording WORDINGS[EB_REFUSAL_N] = {
    [EB_REFUSAL_NONE] = {"none", 200, "", ""},
    [EB_REFUSAL_BAD_REQUEST] = {"bad-request", 400, "the request is not well-formed HTTP/1.1", HOW_CLIENT},
    [EB_REFUSAL_HEAD_TOO_LARGE] = {"head-too-large", 431, "the request's head is too large", HOW_CLIENT},
    [EB_REFUSAL_TARGET_TOO_LONG] = {"target-too-long", 414, "the request's target is too long", HOW_CLIENT},
    [EB_REFUSAL_HEAD_TIMEOUT] = {"head-timeout", 408, "the request did not arrive in time", HOW_CLIENT},
    [EB_REFUSAL_METHOD] = {"method-not-allowed", 405, "this method is not forwarded", HOW_CLIENT},
    [EB_REFUSAL_UPGRADE] = {"upgrade-not-allowed", 501,
                            "only a WebSocket to an allowed host is an upgrade that is forwarded", HOW_CLIENT},
    [EB_REFUSAL_EXPECTATION] = {"expectation-failed", 417, "only the expectation 100-continue is known", HOW_CLIENT},
    [EB_REFUSAL_SCHEME] = {"scheme-not-allowed", 400, "only http targets are forwarded; https goes through CONNECT",
                           HOW_CLIENT},
    [EB_REFUSAL_NOT_FOUND] = {"not-found", 404, "the broker serves /provider/NAME/ and proxy requests alone",
                              HOW_CLIENT},
    [EB_REFUSAL_PROVIDER_UNKNOWN] = {"provider-unknown", 404, "this session has no such provider",
                                     "an operator can add a [provider.NAME] table to the configuration"},
    [EB_REFUSAL_NONCE] = {"nonce-refused", 401, "the key presented is not this session's",
                          "use the key that the session's environment gives; keys of other sessions do not work"},
    [EB_REFUSAL_HOST] =
        {"host-not-allowed", 403, "this host is not on the session's list",
         "ask in the session's thread to allow {host}, or an operator adds \"{host}\" to [egress] allow"},
    [EB_REFUSAL_PORT] = {"port-not-allowed", 403, "this port is not open to sessions",
                         "an operator can add it to [egress] ports"},
    [EB_REFUSAL_INTERNAL] = {"internal-address", 403, "this is an internal address",
                             "an operator can set [egress] allow_internal and list the address itself; a name that "
                             "resolves to an internal address is never reached"},
    [EB_REFUSAL_CLOSED] = {"egress-closed", 403, "this session reaches its model provider alone",
                           "an operator can set [egress] mode to \"proxy\" and add \"{host}\" to [egress] allow"},
    [EB_REFUSAL_PROVIDER_HOST] = {"provider-host", 403, "this is a model provider's host, which has a route of its own",
                                  "use the base URL and the key that the session's environment gives"},
    [EB_REFUSAL_PROVIDER_KEY] = {"provider-key-refused", 403, "the model provider refuses errand-box's key",
                                 "nothing in this session can mend it; an operator has been told"},
    [EB_REFUSAL_RESOLVE] = {"name-not-resolved", 502, "the host's name does not resolve", HOW_RETRY},
    [EB_REFUSAL_RESOLVE_TIMEOUT] = {"name-timeout", 504, "the host's name did not resolve in time", HOW_RETRY},
    [EB_REFUSAL_CONNECT] = {"connect-failed", 502, "the host refused the connection", HOW_RETRY},
    [EB_REFUSAL_CONNECT_TIMEOUT] = {"connect-timeout", 504, "the host did not answer in time", HOW_RETRY},
    [EB_REFUSAL_TLS] = {"certificate-refused", 502, "the provider's certificate is not trusted", HOW_OPERATOR},
    [EB_REFUSAL_FIRST_BYTE_TIMEOUT] = {"answer-timeout", 504, "no answer began in time", HOW_RETRY},
    [EB_REFUSAL_UPSTREAM] = {"upstream-failed", 502, "the connection to the host broke", HOW_RETRY},
    [EB_REFUSAL_BUSY] = {"too-many-connections", 503, "this session has too many connections open",
                         "close some, or wait a moment"},
    /* 402 is the one status that no client library tries again by itself; 429 and every 5xx they do. */
    [EB_REFUSAL_BUDGET] = {"budget-exhausted", 402, "the budget is used up",
                           "stop here; a person can raise the budget, or it is a new day"},
    /* 503 is tried again by those that leave 429 alone (docs/operations.md, "Budgets"). */
    [EB_REFUSAL_BUDGET_BUSY] = {"budget-busy", 503,
                                "what is left of the budget is set aside for requests that are under way",
                                "try again in some seconds: it is given back when they are answered"},
    [EB_REFUSAL_BUDGET_TIMEOUT] = {"budget-unknown", 503,
                                   "the service did not say in time whether the budget allows it", HOW_RETRY},
    [EB_REFUSAL_UNCOUNTED] = {"budget-uncounted", 403,
                              "what this request uses cannot be counted, and this session has a budget",
                              "use the provider's usual requests; an operator can take the caps out of [budget]"},
    [EB_REFUSAL_PROVIDER_LIST] =
        {"provider-list-refused", 403,
         "a list of what the provider keeps would show what other sessions with its key have there",
         "ask for one thing by the name that the provider gave it"},
};

void
eb_refusal_set(EbRefusal *self, EbRefusalCode code, const char *host, const char *detail)
{
    self->code = code;
    g_strlcpy(self->host, host != NULL ? host : "", sizeof self->host);
    self->detail = detail;
}

void
eb_refusal_set_target(EbRefusal *self, EbRefusalCode code, const EbTarget *target, const char *detail)
{
    g_autofree char *host = eb_target_format(target);

    eb_refusal_set(self, code, host, detail);
}

EbRefusalCode
eb_refusal_from_verdict(EbVerdict verdict)
{
    switch (verdict) {
    case EB_VERDICT_ALLOWED:
        return EB_REFUSAL_NONE;
    case EB_VERDICT_PORT:
        return EB_REFUSAL_PORT;
    case EB_VERDICT_INTERNAL:
        return EB_REFUSAL_INTERNAL;
    case EB_VERDICT_CLOSED:
        return EB_REFUSAL_CLOSED;
    case EB_VERDICT_HOST:
    default:
        return EB_REFUSAL_HOST;
    }
}

const char *
eb_refusal_token(EbRefusalCode code)
{
    return WORDINGS[code].token;
}

char *
eb_refusal_reason(EbRefusalCode code, const char *detail)
{
    const char *reason = WORDINGS[code].reason;

    return detail != NULL ? g_strdup_printf("%s: %s", reason, detail) : g_strdup(reason);
}

guint
eb_refusal_status(EbRefusalCode code)
{
    return WORDINGS[code].status;
}

gboolean
eb_refusal_is_policy(EbRefusalCode code)
{
    return code == EB_REFUSAL_HOST || code == EB_REFUSAL_PORT || code == EB_REFUSAL_INTERNAL ||
           code == EB_REFUSAL_CLOSED || code == EB_REFUSAL_PROVIDER_HOST || code == EB_REFUSAL_PROVIDER_UNKNOWN ||
           code == EB_REFUSAL_NONCE;
}

const char *
eb_http_reason_phrase(guint status)
{
    static const struct {
        guint status;
        const char *phrase;
    } PHRASES[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {529, "Overloaded"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(PHRASES); i++) {
        if (PHRASES[i].status == status)
            return PHRASES[i].phrase;
    }
    return "Status";
}

/* (transfer full): @host as rules name it: without its port and brackets. */
static char *
bare_host(const char *host)
{
    const char *colon = strrchr(host, ':');

    if (host[0] == '[')
        return g_strndup(host + 1, strcspn(host + 1, "]"));
    return colon != NULL ? g_strndup(host, (gsize)(colon - host)) : g_strdup(host);
}

char *
eb_refusal_how(const EbRefusal *self)
{
    g_autoptr(GString) how = g_string_new(WORDINGS[self->code].how);
    g_autofree char *host = bare_host(self->host);

    g_string_replace(how, "{host}", host, 0);
    return g_string_free(g_steal_pointer(&how), FALSE);
}

/*
 * Of a tunnel that was refused, Python, pip, wget, Go and Java show the status line's words, and nobody the body; the words
 * are for people, so a rule's refusal says there which host it is about. Only bytes that a status line can carry.
 */
static void
append_phrase(GString *text, const EbRefusal *self)
{
    const Wording *wording = &WORDINGS[self->code];
    gsize at;

    if (!eb_refusal_is_policy(self->code)) {
        g_string_append(text, eb_http_reason_phrase(wording->status));
        return;
    }
    g_string_append(text, "Refused by errand-box: ");
    at = text->len;
    if (self->host[0] != '\0')
        g_string_append_printf(text, "%s: ", self->host);
    g_string_append(text, wording->reason);
    for (; at < text->len; at++) {
        if ((guchar)text->str[at] < ' ' || (guchar)text->str[at] > '~')
            text->str[at] = '?';
    }
}

static JsonNode *
build_body(const EbRefusal *self, const Wording *wording)
{
    g_autoptr(JsonObject) error = json_object_new();
    g_autoptr(JsonObject) body = json_object_new();
    g_autofree char *reason = eb_refusal_reason(self->code, self->detail);
    g_autofree char *how = eb_refusal_how(self);
    g_autofree char *message = NULL;
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_object_set_string_member(body, "code", wording->token);
    json_object_set_string_member(body, "reason", reason);
    if (self->host[0] != '\0')
        json_object_set_string_member(body, "host", self->host);
    else
        json_object_set_null_member(body, "host");
    json_object_set_string_member(body, "how", how);
    /* The clients of the model providers show error.message and nothing else. */
    message =
        g_strdup_printf("errand-box refused%s%s: %s (%s)", self->host[0] != '\0' ? " " : "", self->host, reason, how);
    json_object_set_string_member(error, "type", wording->token);
    json_object_set_string_member(error, "message", message);
    json_object_set_object_member(body, "error", g_steal_pointer(&error));
    json_node_set_object(node, body);
    return node;
}

GString *
eb_refusal_response(const EbRefusal *self, gboolean keep_alive, gboolean head_only)
{
    const Wording *wording = &WORDINGS[self->code];
    g_autoptr(JsonNode) node = build_body(self, wording);
    gsize length = 0;
    g_autofree char *body = eb_json_write(node, &length);
    GString *text = g_string_sized_new(512);

    g_string_append_printf(text, "HTTP/1.1 %u ", wording->status);
    append_phrase(text, self);
    g_string_append_printf(text, "\r\nContent-Type: application/json\r\nContent-Length: %" G_GSIZE_FORMAT "\r\n",
                           length);
    if (self->code == EB_REFUSAL_BUDGET_BUSY)
        g_string_append_printf(text, "Retry-After: %d\r\n", RETRY_AFTER_S);
    g_string_append_printf(text, "X-Errand-Box-Refused: %s\r\nCache-Control: no-store\r\n", wording->token);
    g_string_append(text, keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
    if (!head_only)
        g_string_append_len(text, body, (gssize)length);
    return text;
}
