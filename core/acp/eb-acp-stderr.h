/* SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * EbAcpStderr: reads an agent's stderr: each line escaped and cut for the log, the last ones kept for error messages.
 *
 * Bounds: 4 KiB a line (the rest is skipped), EB_ACP_STDERR_TAIL characters kept.
 */
typedef struct _EbAcpStderr EbAcpStderr;

#define EB_ACP_STDERR_TAIL 2000

/** EbAcpStderrLine: @line: (nullable): escaped; NULL = the stream has ended. */
typedef void (*EbAcpStderrLine)(const char *line, gpointer user_data);

/** eb_acp_stderr_new: (transfer full): reading begins at once; @callback is not called after eb_acp_stderr_free(). */
EbAcpStderr *eb_acp_stderr_new(GInputStream *stream, EbAcpStderrLine callback, gpointer user_data);
void eb_acp_stderr_free(EbAcpStderr *self);
/** eb_acp_stderr_get_tail: (transfer none): the last lines, oldest first. */
const char *eb_acp_stderr_get_tail(EbAcpStderr *self);
gboolean eb_acp_stderr_has_ended(EbAcpStderr *self);

G_END_DECLS
