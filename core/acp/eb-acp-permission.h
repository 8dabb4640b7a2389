/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"

G_BEGIN_DECLS

/** EbAcpPermissionAnswered: @option_id: (nullable): NULL = cancelled. Called once, also from the last unref. */
typedef void (*EbAcpPermissionAnswered)(EbAcpPermission *permission, const char *option_id, gpointer user_data);

/**
 * eb_acp_permission_new: (transfer full):
 * @tool: (transfer full)
 * @options: (transfer full) (element-type EbAcpOption)
 * @raw: (transfer none): the request's params
 */
EbAcpPermission *eb_acp_permission_new(EbAcpTool *tool, GPtrArray *options, JsonObject *raw,
                                       EbAcpPermissionAnswered answered, gpointer user_data);
/** eb_acp_permission_withdraw: the agent took it back: answers cancelled, then emits "withdrawn". */
void eb_acp_permission_withdraw(EbAcpPermission *self);
/** eb_acp_permission_detach: the client is gone: nothing can be answered any more; emits "withdrawn" when open. */
void eb_acp_permission_detach(EbAcpPermission *self);

G_END_DECLS
