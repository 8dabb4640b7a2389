/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-host-rules.h"
#include "core/session/eb-session-manager.h"
#include "core/session/eb-session.h"

G_BEGIN_DECLS

/** EB_HOST_MAX_WAITING: refusals of one session that wait for their line; further ones are only counted. */
#define EB_HOST_MAX_WAITING 20
/** EB_HOST_ASK_MS: how long a question about a host stays open. */
#define EB_HOST_ASK_MS (7 * 24 * 3600 * 1000u)

/**
 * EbHostDesk: tells people of the hosts that brokers refuse, one line a host and session, asks those who may whether to
 * allow it, and does what they say. What was told and asked outlives the service and the session's sleep.
 */
typedef struct _EbHostDesk EbHostDesk;

/** eb_host_desk_new: @manager: (transfer none): not held; it owns the desk */
EbHostDesk *eb_host_desk_new(EbSessionManager *manager);
/** eb_host_desk_free: open questions stay with people, for the next run. */
void eb_host_desk_free(EbHostDesk *self);
/** eb_host_desk_load: @rules: (element-type EbSessionRule): of every session: hosts go to their records. */
void eb_host_desk_load(EbHostDesk *self, const GPtrArray *rules);
/** eb_host_desk_take_up: questions of an earlier run that were asked through transport @name. */
void eb_host_desk_take_up(EbHostDesk *self, const char *name, EbChatTransport *transport);
/** eb_host_desk_begun: @session begins: it has what is allowed once. */
void eb_host_desk_begun(EbHostDesk *self, EbSession *session);
/** eb_host_desk_refused: of the session's broker. */
void eb_host_desk_refused(EbHostDesk *self, EbSession *session, const char *host, guint port, const char *code);
/** eb_host_desk_turn_ended: what was allowed once is over. */
void eb_host_desk_turn_ended(EbHostDesk *self, EbSession *session);
/** eb_host_desk_share: who may do what in the session of @record changed. */
void eb_host_desk_share(EbHostDesk *self, const EbSessionRecord *record);
/** eb_host_desk_forget: session @id is gone, or ended for good. @why: (nullable): for people, on open questions */
void eb_host_desk_forget(EbHostDesk *self, const char *id, const char *why);

/**
 * eb_host_desk_allow: @host: as eb_host_check() gives it
 * @once: for this turn alone, see EB_HOST_ONCE_S
 * @by: (nullable): id of a person; NULL = an operator at a terminal
 * What is allowed for the session is written down before it holds. @callback: (nullable)
 */
void eb_host_desk_allow_async(EbHostDesk *self, EbSessionRecord *record, const char *host, gboolean once,
                              const char *by, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_host_desk_allow_finish(GAsyncResult *result, GError **error);
/** eb_host_desk_ask: the operators are asked, and notified. EB_ERROR_DENIED "host.nobody" */
gboolean eb_host_desk_ask(EbHostDesk *self, EbSessionRecord *record, const char *host, GError **error);
/** eb_host_desk_deny: takes it back; what is connected stays so. EB_ERROR_NOT_FOUND "host.not-allowed". */
gboolean eb_host_desk_deny(EbHostDesk *self, EbSessionRecord *record, const char *host, GError **error);
/** eb_host_desk_may_allow: @author_id may allow hosts in the session of @record. */
gboolean eb_host_desk_may_allow(EbHostDesk *self, const EbSessionRecord *record, const char *author_id);
/** eb_host_desk_list: (transfer full): [{host, by, created, until}]: what is allowed for this session. */
JsonArray *eb_host_desk_list(EbHostDesk *self, const EbSessionRecord *record);

G_END_DECLS
