/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/render/eb-renderer.h"
#include "core/session/eb-session.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbPermission: one question of an agent on its way through a transport: asked, answered by an option that was offered,
 * refused when nobody answers in time, withdrawn by the agent, or closed with the turn.
 *
 * Signal: "answered" (const char *outcome, const char *option (nullable)): once; outcome is allowed, rejected, timeout,
 *   cancelled or withdrawn.
 */
#define EB_TYPE_PERMISSION (eb_permission_get_type())
G_DECLARE_FINAL_TYPE(EbPermission, eb_permission, EB, PERMISSION, GObject)

/** EB_PERMISSION_MAX_OPTIONS: further ones are not shown. */
#define EB_PERMISSION_MAX_OPTIONS 24

/**
 * eb_permission_new: @answerers: (nullable): author ids that may answer
 */
EbPermission *eb_permission_new(EbAcpPermission *question, EbChatTransport *transport, EbRenderer *renderer,
                                const char *thread, const char *const *answerers);
/** eb_permission_ask: "answered" comes later, never from within. */
void eb_permission_ask(EbPermission *self, guint timeout_ms);
/** eb_permission_close: the turn was cancelled or is over: the agent is answered "cancelled", the question closed. */
void eb_permission_close(EbPermission *self);
/** eb_permission_set_answerers: (transfer none) (nullable) (element-type utf8): NULL = anyone; from now on */
void eb_permission_set_answerers(EbPermission *self, GPtrArray *answerers);
/**
 * eb_permissions_answer: @author_id answers by text: the one of @permissions (element-type EbPermission) that is open.
 * @advice: (out) (nullable) (transfer full): what to tell people when the answer is unclear
 */
EbSessionAnswer eb_permissions_answer(GPtrArray *permissions, const char *author_id, const char *text, char **advice);
/** eb_permission_get_title: (transfer none): masked */
const char *eb_permission_get_title(EbPermission *self);

/**
 * eb_permission_reject_option: (transfer none) (nullable): the option that refuses this one call, for questions nobody
 * answers; NULL when the agent offers none.
 */
const EbAcpOption *eb_permission_reject_option(GPtrArray *options);

G_END_DECLS
