/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_CHAT_SAY_MAX_PARTS: posts one answer may become; what is beyond them is left out, and the last says so. */
#define EB_CHAT_SAY_MAX_PARTS 10

/**
 * eb_chat_say_async: says something of the service itself, shaped for @transport: made safe, split to its limits.
 * @thread: (nullable): NULL = the channel
 * @text: Markdown; masked by the caller
 * @reply_to: (nullable): of the first part, with EB_CHAT_POST_ANSWER of all
 * @file: (nullable) (transfer none): goes with the last part, where the transport shows files
 *
 * Done when every part was shown, or one of them can never be.
 */
void eb_chat_say_async(EbChatTransport *transport, const char *thread, EbChatPostKind kind, const char *text,
                       const char *reply_to, EbChatFile *file, GCancellable *cancellable, GAsyncReadyCallback callback,
                       gpointer user_data);
gboolean eb_chat_say_finish(GAsyncResult *result, GError **error);

G_END_DECLS
