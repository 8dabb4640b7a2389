/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-types.h"

G_BEGIN_DECLS

/* A tool call as a value: what an agent has told about it so far, cut to the bounds of eb-acp-types.h. */

EbAcpTool *eb_acp_tool_new(const char *id);
/** eb_acp_tool_copy: (transfer full): deep, but for raw_input, which is never changed. */
EbAcpTool *eb_acp_tool_copy(const EbAcpTool *tool);
void eb_acp_tool_free(EbAcpTool *tool);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAcpTool, eb_acp_tool_free)
/**
 * eb_acp_tool_merge: lays a tool_call, tool_call_update or permission toolCall over @tool: null and absent members
 * change nothing, arrays replace. A title, once known, is not lost to an empty one.
 */
void eb_acp_tool_merge(EbAcpTool *tool, JsonObject *call);
void eb_acp_tool_set_status(EbAcpTool *tool, const char *status);
/** eb_acp_tool_is_finished: completed, failed or cancelled. */
gboolean eb_acp_tool_is_finished(const EbAcpTool *tool);
/** eb_acp_tool_weight: about the bytes it takes. */
gsize eb_acp_tool_weight(const EbAcpTool *tool);
/** eb_acp_tool_lighten: forgets output, diffs and raw input. */
void eb_acp_tool_lighten(EbAcpTool *tool);

G_END_DECLS
