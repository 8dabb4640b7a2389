/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-setup-invite.h"

#include "core/config/eb-config-schema.h"

/* View Channel, Send Messages, Send Messages in Threads, Create Public Threads, Attach Files, Add Reactions, Manage
   Threads, Read Message History. */
#define PERMISSIONS "326417615936"

char *
eb_setup_invite_url(const char *token)
{
    g_autofree char *id = eb_config_bot_of_token(token);

    if (id == NULL)
        return NULL;
    return g_strdup_printf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands"
                           "&permissions=" PERMISSIONS,
                           id);
}
