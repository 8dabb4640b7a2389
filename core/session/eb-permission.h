/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/render/eb-renderer.h"
#include "core/session/eb-question.h"
#include "core/session/eb-session.h"
#include "core/state/eb-question-store.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbPermission: one question of an agent on its way through a transport, and its row in the database: written before it is
 * shown, so that it stays answerable when the service is restarted. It is answered by an option that was offered, refused
 * when nobody answers in time, withdrawn by the agent, closed with the turn, or let go with the service.
 *
 * Nothing but the choice of a person allows anything: every other way ends in a refusal or in "cancelled".
 *
 * Signals:
 *   "decided": there is an answer; it is the agent's with eb_permission_deliver(). Never from within eb_permission_ask().
 *   "answered" (const char *outcome, const char *option (nullable), const char *by (nullable)): once, last of all; outcome
 *       is allowed, rejected, answered, timeout, cancelled, withdrawn or left.
 */
#define EB_TYPE_PERMISSION (eb_permission_get_type())
G_DECLARE_FINAL_TYPE(EbPermission, eb_permission, EB, PERMISSION, GObject)

/**
 * eb_permission_new: asked by an agent that waits.
 * @session: id of the session's record
 * @digest: eb_question_digest()
 */
EbPermission *eb_permission_new(EbAcpPermission *question, EbStore *store, EbChatTransport *transport,
                                EbRenderer *renderer, EbRedactSet *secrets, const char *session, const char *thread,
                                const char *digest);
/**
 * eb_permission_new_from_row: asked before the service was restarted; no agent waits for it, unless
 * eb_permission_take_over() brings one.
 * Returns: (transfer full) (nullable): NULL with @error when the row cannot be read
 */
EbPermission *eb_permission_new_from_row(const EbQuestionRow *row, EbStore *store, EbChatTransport *transport,
                                         GError **error);
/** eb_permission_set_answerers: (transfer none) (nullable) (element-type utf8): NULL = anyone; from now on */
void eb_permission_set_answerers(EbPermission *self, GPtrArray *answerers);
/** eb_permission_ask: @timeout_ms: of one made by _new(); another one keeps its time. */
void eb_permission_ask(EbPermission *self, guint64 timeout_ms);
/** eb_permission_take_over: the agent asks the same again: it gets the answer to this one. */
void eb_permission_take_over(EbPermission *self, EbAcpPermission *question);
/** eb_permission_deliver: of one that is decided: the agent is told, once it is written down that it was. */
void eb_permission_deliver(EbPermission *self);
/** eb_permission_close: @why: (nullable): for people. The agent is answered "cancelled". */
void eb_permission_close(EbPermission *self, const char *why);
/** eb_permission_let_go: the service ends: the agent is answered "cancelled", people may go on to answer. */
void eb_permission_let_go(EbPermission *self);

/** eb_permission_get_title: (transfer none): masked */
const char *eb_permission_get_title(EbPermission *self);
const char *eb_permission_get_id(EbPermission *self);
const char *eb_permission_get_session(EbPermission *self);
/** eb_permission_is_same: asked in @session with that digest. */
gboolean eb_permission_is_same(EbPermission *self, const char *session, const char *digest);
/** eb_permission_get_decision: (transfer none) (nullable): NULL while it is open; @by: (out) (nullable) (optional) */
const EbQuestionOption *eb_permission_get_decision(EbPermission *self, const char **by);
/** eb_permission_in_time: its time is not over. */
gboolean eb_permission_in_time(EbPermission *self);

/**
 * eb_permissions_answer: @author_id answers by text: the one of @permissions (element-type EbPermission) that is open.
 * @sent_ms: unix milliseconds at which it was said, 0 = not known: what was said before a question could be seen is no
 *     answer to it, but to one before it
 * @advice: (out) (nullable) (transfer full): what to tell people when the answer is unclear
 */
EbSessionAnswer eb_permissions_answer(GPtrArray *permissions, const char *author_id, const char *text, gint64 sent_ms,
                                      char **advice);

G_END_DECLS
