/* SPDX-License-Identifier: MIT */
#include "core/session/eb-project-name.h"

#include <string.h>
#include <sys/random.h>

#define MAX_NAME 64

gboolean
eb_project_name_check(const char *name, GError **error)
{
    gsize length = name != NULL ? strlen(name) : 0;
    gboolean ok = length >= 1 && length <= MAX_NAME && name[0] != '.' && name[0] != '-';
    for (gsize i = 0; ok && i < length; i++)
        ok = g_ascii_isalnum(name[i]) || name[i] == '.' || name[i] == '_' || name[i] == '-';
    if (ok)
        return TRUE;
    g_autofree char *shown = eb_log_escape(name != NULL ? name : "", -1, 80);
    eb_set_error(error, EB_ERROR_INVALID, "project.name",
                 "\"%s\" is no project name (1 to %d of A-Z a-z 0-9 . _ -, not beginning with a dot or a dash)", shown,
                 MAX_NAME);
    return FALSE;
}

char *
eb_session_id_new(void)
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    char *id = g_malloc0(EB_SESSION_ID_LENGTH + 1);
    gsize n = 0;
    while (n < EB_SESSION_ID_LENGTH) {
        guchar bytes[32];
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
            continue;
        /* 252 is the largest multiple of 36 in a byte: the rest would make some characters likelier. */
        for (gsize i = 0; i < sizeof bytes && n < EB_SESSION_ID_LENGTH; i++)
            if (bytes[i] < 252)
                id[n++] = alphabet[bytes[i] % 36];
    }
    return id;
}

gboolean
eb_session_id_check(const char *id)
{
    if (id == NULL || strlen(id) != EB_SESSION_ID_LENGTH)
        return FALSE;
    for (const char *at = id; *at != '\0'; at++)
        if (!g_ascii_islower(*at) && !g_ascii_isdigit(*at))
            return FALSE;
    return TRUE;
}
