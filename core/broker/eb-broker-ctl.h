/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbBrokerProvider: one route /provider/NAME. */
typedef struct {
    char *name;
    char *kind;      /* anthropic | openai | gemini */
    char *base_url;  /* https, or http to a loopback literal */
    EbSecret *key;   /* (owned) */
    EbSecret *nonce; /* (owned): what the guest presents instead */
} EbBrokerProvider;

/** EbBrokerRules: what one session may reach. */
typedef struct {
    char *session;  /* id for audit */
    gboolean proxy; /* FALSE: providers only */
    char **allow;   /* hosts, "*.domain" */
    guint16 *ports;
    guint n_ports;
    gboolean allow_internal;
    GBytes *ca_pem;             /* (nullable) (owned): certificates trusted beside the system's; read at start alone */
    gboolean budget;            /* provider requests need a grant: see the signal "ask" */
    guint64 reserve, overshoot; /* tokens: with budget; see EbBudgetConfig */
    guint16 relay_port;         /* the broker's own address as the guest sees it: 127.0.0.1:relay_port */
    GPtrArray *providers;       /* (element-type EbBrokerProvider) (owned) */
    EbSecret *canary;           /* (owned) (nullable): looked for in what the guest sends */
} EbBrokerRules;
EbBrokerRules *eb_broker_rules_new(const char *session);
/**
 * eb_broker_rules_check_key: can @key be sent in a header as it is? A second line in it would be a header of its own, and go
 * to the provider. @name: of the credential. EB_ERROR_CONFIG "credential.unsendable".
 */
gboolean eb_broker_rules_check_key(EbSecret *key, const char *name, GError **error);
void eb_broker_rules_add_provider(EbBrokerRules *self, const char *name, const char *kind, const char *base_url,
                                  EbSecret *key, EbSecret *nonce);
/** eb_broker_rules_copy: (transfer full): secrets are shared, not copied. */
EbBrokerRules *eb_broker_rules_copy(const EbBrokerRules *self);
void eb_broker_rules_free(EbBrokerRules *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbBrokerRules, eb_broker_rules_free)

/**
 * EbBrokerCtl: the service's side of one session's broker process: makes the listening socket, spawns
 * errand-box-broker with it, hands rules and secrets over a socketpair, restarts it under the same socket when it
 * dies, ends it.
 *
 * Signals:
 *   "audit" (JsonObject *row): one connection or request: session, kind (connect, http, provider), host, port, address,
 *       bytes_up, bytes_down, ms, decision ("allowed", "broken-off" or a refusal's code), status, rule, provider;
 *       lost: rows missing before this one, when the service did not keep up.
 *   "denied" (const char *host, guint port, const char *code): first refusal of a host.
 *   "provider-error" (const char *provider, guint status, const char *text): e.g. 401: the operator's business.
 *   "died" (gboolean restarted, const char *why): @why: "was killed by SIGKILL"; @restarted: another one takes over under the same socket, within a
 *       second; FALSE after too many deaths in a minute: connections are refused from then on.
 *   "call-refused" (const char *why): before "died": it was killed for a system call; @why is that signal's.
 *   "budget" (guint type, JsonObject *told): EB_BROKER_MSG_ASK (answer with eb_broker_ctl_grant()), _MORE (likewise) or
 *       _USED: id, provider, model, tokens_in, tokens_out, tokens_cached, tokens_written, flag.
 *   "canary" (const char *where): the canary of the rules was seen in what the guest sent.
 *   "degraded" (const char *what): the broker runs, but this host lacks a part of its sandbox.
 */
#define EB_TYPE_BROKER_CTL (eb_broker_ctl_get_type())
G_DECLARE_FINAL_TYPE(EbBrokerCtl, eb_broker_ctl, EB, BROKER_CTL, GObject)

/**
 * eb_broker_ctl_start_async:
 * @run_dir: directory that gets "model.sock" (0600); never renamed or replaced while a guest has it mounted
 * @rules: (transfer none): copied
 * Finishes when the broker has its rules and accepts connections. Nothing is left on failure.
 */
void eb_broker_ctl_start_async(EbPaths *paths, const char *run_dir, const EbBrokerRules *rules, guint deadline_ms,
                               GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_broker_ctl_start_finish: (transfer full) (nullable) */
EbBrokerCtl *eb_broker_ctl_start_finish(GAsyncResult *result, GError **error);
/** eb_broker_ctl_update_async: replaces the rules (hosts allowed for this session, a new key) without a restart. */
void eb_broker_ctl_update_async(EbBrokerCtl *self, const EbBrokerRules *rules, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_broker_ctl_update_finish(EbBrokerCtl *self, GAsyncResult *result, GError **error);
/** eb_broker_ctl_stop_async: ends the process (EOF, then kill by pidfd), removes the socket. */
void eb_broker_ctl_stop_async(EbBrokerCtl *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);
gboolean eb_broker_ctl_stop_finish(EbBrokerCtl *self, GAsyncResult *result, GError **error);
/**
 * eb_broker_ctl_grant: answers request @id of the signal "budget".
 * @tokens: 0 = no; @scope: then the cap, see EbBudgetScope; @later: not now, but when others gave back what they hold
 */
void eb_broker_ctl_grant(EbBrokerCtl *self, guint64 id, guint64 tokens, guint scope, gboolean later);
int eb_broker_ctl_get_pid(EbBrokerCtl *self);
/** eb_broker_ctl_get_lacking: (transfer none) (nullable): what "degraded" told, also when nobody listened yet. */
const char *eb_broker_ctl_get_lacking(EbBrokerCtl *self);

G_END_DECLS
