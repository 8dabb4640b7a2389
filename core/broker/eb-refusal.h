/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-policy.h"

G_BEGIN_DECLS

/** EbRefusalCode: every way a guest can hear no, one wording each. */
typedef enum {
    EB_REFUSAL_NONE = 0,
    EB_REFUSAL_BAD_REQUEST,
    EB_REFUSAL_HEAD_TOO_LARGE,
    EB_REFUSAL_TARGET_TOO_LONG,
    EB_REFUSAL_HEAD_TIMEOUT,
    EB_REFUSAL_METHOD,
    EB_REFUSAL_UPGRADE,
    EB_REFUSAL_EXPECTATION,
    EB_REFUSAL_SCHEME,
    EB_REFUSAL_NOT_FOUND,
    EB_REFUSAL_PROVIDER_UNKNOWN,
    EB_REFUSAL_NONCE,
    EB_REFUSAL_HOST,
    EB_REFUSAL_PORT,
    EB_REFUSAL_INTERNAL,
    EB_REFUSAL_CLOSED,
    EB_REFUSAL_PROVIDER_HOST, /* a model provider's own host, which has a route */
    EB_REFUSAL_PROVIDER_KEY,  /* the provider refused the key: the operator's business */
    EB_REFUSAL_RESOLVE,
    EB_REFUSAL_RESOLVE_TIMEOUT,
    EB_REFUSAL_CONNECT,
    EB_REFUSAL_CONNECT_TIMEOUT,
    EB_REFUSAL_TLS,
    EB_REFUSAL_FIRST_BYTE_TIMEOUT,
    EB_REFUSAL_UPSTREAM,
    EB_REFUSAL_BUSY,
    EB_REFUSAL_BUDGET,
    EB_REFUSAL_BUDGET_BUSY, /* it fits when other requests give back what is set aside for them */
    EB_REFUSAL_BUDGET_TIMEOUT,
    EB_REFUSAL_UNCOUNTED,
    EB_REFUSAL_PROVIDER_LIST, /* a list of what the provider keeps for everybody who uses the key */
    EB_REFUSAL_N,
} EbRefusalCode;

/** EbRefusal: a code with what it is about. */
typedef struct {
    EbRefusalCode code;
    char host[EB_HOST_MAX + 16]; /* "host:port", a provider's name, or empty */
    const char *detail;          /* (transfer none) (nullable): static text, more precise than the code's own */
} EbRefusal;

void eb_refusal_set(EbRefusal *self, EbRefusalCode code, const char *host, const char *detail);
void eb_refusal_set_target(EbRefusal *self, EbRefusalCode code, const EbTarget *target, const char *detail);
/** eb_refusal_from_verdict: EB_REFUSAL_NONE for EB_VERDICT_ALLOWED. */
EbRefusalCode eb_refusal_from_verdict(EbVerdict verdict);
/** eb_refusal_token: "host-not-allowed", ...: stable, in the body and in the audit. */
const char *eb_refusal_token(EbRefusalCode code);
/** eb_refusal_reason: (transfer full): for people; @detail: (nullable): what is more precise. */
char *eb_refusal_reason(EbRefusalCode code, const char *detail);
guint eb_refusal_status(EbRefusalCode code);
/** eb_refusal_is_policy: TRUE when a rule said no: the service is told of the host. */
gboolean eb_refusal_is_policy(EbRefusalCode code);
/**
 * eb_refusal_response: (transfer full): a whole HTTP answer; @keep_alive: FALSE says that the connection closes.
 *
 * The same bytes for every way in. A tunnel's client sees the status line at most, so a refusal by a rule says there what
 * it is about; its body is JSON: code, reason, host, how, and error{type, message} for clients of model providers.
 */
GString *eb_refusal_response(const EbRefusal *self, gboolean keep_alive, gboolean head_only);
/** eb_refusal_how: (transfer full): what to do about it, with the host it is about. */
char *eb_refusal_how(const EbRefusal *self);
/** eb_http_reason_phrase: (transfer none): text for @status; never empty. */
const char *eb_http_reason_phrase(guint status);

G_END_DECLS
