/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_USER_AGENT: in the form that Discord asks for; others are taken for browsers and scripts. */
#define DISCORD_USER_AGENT "DiscordBot (https://github.com/errand-box/errand-box, " EB_VERSION ")"

/**
 * discord_session_new: (transfer full): a session that adds nothing of its own to a request: no cookies, no answers to
 * authentication, no decoding, no proxy.
 * @connectable: (nullable): where all its connections lead
 */
SoupSession *discord_session_new(GSocketConnectable *connectable);

/**
 * discord_exchange_async: sends @message, follows no redirect, reads the whole answer.
 * @max_bytes: an answer that is or says it is longer is EB_ERROR_QUOTA "discord.answer-size"
 * @timeout_ms: for all of it: EB_ERROR_TIMEOUT
 *
 * Errors of the transport stay in their own domain: who calls knows what they mean for its request.
 */
void discord_exchange_async(SoupSession *session, SoupMessage *message, gsize max_bytes, guint timeout_ms,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** discord_exchange_finish: (transfer full) (nullable): the body; status and headers are in the message. */
GBytes *discord_exchange_finish(SoupSession *session, GAsyncResult *result, GError **error);

/** discord_exchange_was_not_sent: TRUE when @error tells that nothing has reached the other side. */
gboolean discord_exchange_was_not_sent(const GError *error);

G_END_DECLS
