/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * DiscordStandin: Discord on a loopback port, in this process: REST v10, gateway v10 and files. It lives in the default
 * main context. What it refuses, and every call of its control interface, stands in README.md.
 */
typedef struct _DiscordStandin DiscordStandin;

/* Who and what is there from the start. */
#define DISCORD_STANDIN_GUILD "100000000000000001"
#define DISCORD_STANDIN_APPLICATION "100000000000000002"
#define DISCORD_STANDIN_CHANNEL "100000000000000010"
#define DISCORD_STANDIN_OTHER_CHANNEL "100000000000000011"
#define DISCORD_STANDIN_BOT_ROLE "100000000000000020"
#define DISCORD_STANDIN_ALICE "100000000000000101"
#define DISCORD_STANDIN_BOB "100000000000000102"
#define DISCORD_STANDIN_CAROL "100000000000000103"
#define DISCORD_STANDIN_OTHER_BOT "100000000000000104"

/** discord_standin_new: @port: 0 = any */
DiscordStandin *discord_standin_new(const char *token, guint16 port, GError **error);
/** discord_standin_record: appends all that bots send from now on to the file at @path. */
gboolean discord_standin_record(DiscordStandin *self, const char *path, GError **error);
void discord_standin_free(DiscordStandin *self);
/** discord_standin_get_origin: (transfer none): http://127.0.0.1:PORT */
const char *discord_standin_get_origin(DiscordStandin *self);
/** discord_standin_get_api: (transfer none): base of the REST API: what ERRAND_DISCORD_MOCK_URL is. */
const char *discord_standin_get_api(DiscordStandin *self);
/** discord_standin_get_control: (transfer none): the control interface; reachable also when connections are refused. */
const char *discord_standin_get_control(DiscordStandin *self);
/**
 * discord_standin_call: a call of the control interface without HTTP; ends the program when it is refused.
 * @json: (nullable): its arguments
 *
 * Returns: (transfer full)
 */
JsonObject *discord_standin_call(DiscordStandin *self, const char *verb, const char *json);
/** discord_standin_count: how many items a list has, e.g. "messages", {"text":"done"}. */
guint discord_standin_count(DiscordStandin *self, const char *list, const char *json);
/** discord_standin_stat: a figure of "stats". */
gint64 discord_standin_stat(DiscordStandin *self, const char *name);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordStandin, discord_standin_free)

G_END_DECLS
