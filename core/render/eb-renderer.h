/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/base/eb-redactor.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbRenderer: turns what an agent reports into posts of one thread, masked. It keeps what it has shown already: a tool
 * call is posted again only when something a person sees has changed, a diff once, when the change is done.
 */
typedef struct _EbRenderer EbRenderer;

/** eb_renderer_new: @secrets: (transfer none) */
EbRenderer *eb_renderer_new(const char *thread, EbRedactSet *secrets);
void eb_renderer_free(EbRenderer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbRenderer, eb_renderer_free)

/** eb_renderer_update: appends the posts for @update to @posts (element-type EbChatPost), (transfer full) each. */
void eb_renderer_update(EbRenderer *self, EbAcpUpdate *update, GPtrArray *posts);
/** eb_renderer_end_span: what is held back of a text is shown: the agent does something else, or the turn ended. */
void eb_renderer_end_span(EbRenderer *self, GPtrArray *posts);
/** eb_renderer_tool_line: (transfer full): one line for a person: kind and title, flattened and masked. */
char *eb_renderer_tool_line(EbRenderer *self, const EbAcpTool *tool);
/** eb_renderer_tool_data: (transfer full): id, title, kind, status, locations[], and output of a call
 *  that is over; masked. */
JsonObject *eb_renderer_tool_data(EbRenderer *self, const EbAcpTool *tool);
/** eb_renderer_diff_post: (transfer full) (nullable): NULL when nothing changes. */
EbChatPost *eb_renderer_diff_post(EbRenderer *self, const EbAcpDiff *diff);

G_END_DECLS
