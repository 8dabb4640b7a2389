/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-tool.h"

G_BEGIN_DECLS

/**
 * EbAcpTools: the tool calls of one session, as upserts in any order: tool_call, tool_call_update and a permission's
 * toolCall may each come first, twice or late.
 *
 * Bounds: EB_ACP_MAX_TOOLS calls (the oldest finished is forgotten first, else the oldest) and EB_ACP_MAX_TOOL_BYTES
 * in all (beyond it the oldest calls lose output, diffs and raw input, the one being changed last).
 */
typedef struct _EbAcpTools EbAcpTools;

#define EB_ACP_MAX_TOOLS 4096
#define EB_ACP_MAX_TOOL_BYTES ((gsize)16 * 1024 * 1024)

EbAcpTools *eb_acp_tools_new(void);
void eb_acp_tools_free(EbAcpTools *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAcpTools, eb_acp_tools_free)

/** eb_acp_tools_begin_turn: an id that is announced again in a later turn is a new call. */
void eb_acp_tools_begin_turn(EbAcpTools *self);
/**
 * eb_acp_tools_upsert:
 * @call: a tool_call, tool_call_update or permission toolCall
 * @announced: it is a tool_call
 *
 * Returns: (transfer full): a snapshot. A call without an id is told but not kept.
 */
EbAcpTool *eb_acp_tools_upsert(EbAcpTools *self, JsonObject *call, gboolean announced);
/** eb_acp_tools_cancel_open: marks what is not finished as cancelled. Returns: (transfer full) (element-type EbAcpTool):
 *  snapshots of the calls changed. */
GPtrArray *eb_acp_tools_cancel_open(EbAcpTools *self);
guint eb_acp_tools_get_count(EbAcpTools *self);
gsize eb_acp_tools_get_bytes(EbAcpTools *self);

G_END_DECLS
