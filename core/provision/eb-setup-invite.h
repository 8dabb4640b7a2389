/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * eb_setup_invite_url: (transfer full) (nullable): where an operator invites the bot of @token to a server, with the
 * permissions it needs. The first part of a Discord token is the id of its bot, which is no secret and, for every bot
 * made since 2016, the id of its application; NULL for a token that has no such part. Pure.
 */
char *eb_setup_invite_url(const char *token);

G_END_DECLS
