/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_SESSION_RULES_MAX_HOSTS: hosts allowed for one session. */
#define EB_SESSION_RULES_MAX_HOSTS 100
/** EB_SESSION_RULES_MAX_LOADED: rows that load() gives, the newest. */
#define EB_SESSION_RULES_MAX_LOADED 100000

/** EB_SESSION_RULE_HOST: a host that this session may reach beside [egress] allow. */
#define EB_SESSION_RULE_HOST "host"
/** EB_SESSION_RULE_TOLD: a refusal that people were told of; by = the question that is open about it, as its asker writes it. */
#define EB_SESSION_RULE_TOLD "told"

/** EbSessionRule: what is kept of one session alone; it goes with the session's row. */
typedef struct {
    char *session;
    char *kind;
    char *rule;
    char *by; /* (nullable) */
    gint64 created_ms;
} EbSessionRule;
/** eb_session_rule_new: created now */
EbSessionRule *eb_session_rule_new(const char *session, const char *kind, const char *rule, const char *by);
EbSessionRule *eb_session_rule_copy(const EbSessionRule *self);
void eb_session_rule_free(EbSessionRule *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSessionRule, eb_session_rule_free)

/** eb_session_rules_list_new: (transfer full) (element-type EbSessionRule) */
GPtrArray *eb_session_rules_list_new(void);
/** eb_session_rules_find: (transfer none) (nullable) */
const EbSessionRule *eb_session_rules_find(const GPtrArray *rules, const char *rule);

/** eb_session_rules_put_async: @rule: copied; replaces one of the same session, kind and rule. @callback: (nullable) */
void eb_session_rules_put_async(EbStore *store, const EbSessionRule *rule, GAsyncReadyCallback callback,
                                gpointer user_data);
/** eb_session_rules_drop_async: absence is no error. @callback: (nullable) */
void eb_session_rules_drop_async(EbStore *store, const char *session, const char *kind, const char *rule,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_rules_finish: of put and drop. */
gboolean eb_session_rules_finish(EbStore *store, GAsyncResult *result, GError **error);
/** eb_session_rules_load_async: of every session, oldest first. */
void eb_session_rules_load_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data);
/** eb_session_rules_load_finish: (transfer full) (nullable) (element-type EbSessionRule) */
GPtrArray *eb_session_rules_load_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
