/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-setup-invite.h"

#include <string.h>

/* View Channel, Send Messages, Send Messages in Threads, Create Public Threads, Attach Files, Add Reactions, Manage
   Threads, Read Message History. */
#define PERMISSIONS "326417615936"
/* Base64 of the longest id. */
#define MAX_PART 28

char *
eb_setup_invite_url(const char *token)
{
    const gsize length = strcspn(token, ".");
    g_autofree char *part = NULL;
    g_autofree guchar *bytes = NULL;
    g_autofree char *id = NULL;
    gsize n = 0;

    if (token[length] != '.' || length == 0 || length > MAX_PART)
        return NULL;
    part = g_strdup_printf("%.*s%.*s", (int)length, token, (int)((4 - length % 4) % 4), "===");
    bytes = g_base64_decode(part, &n);
    id = g_strndup((const char *)bytes, n);
    if (n < 15 || n > 20 || strspn(id, "0123456789") != n || *id == '0')
        return NULL;
    return g_strdup_printf("https://discord.com/oauth2/authorize?client_id=%s&scope=bot+applications.commands"
                           "&permissions=" PERMISSIONS,
                           id);
}
