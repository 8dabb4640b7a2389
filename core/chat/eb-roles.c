/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-roles.h"

static gboolean
contains(char **list, const char *id)
{
    return list != NULL && g_strv_contains((const char *const *)list, id);
}

EbRole
eb_role_of(const EbChatPolicy *policy, const char *owner, const GPtrArray *guests, const char *author_id)
{
    if (policy == NULL)
        return EB_ROLE_OPERATOR;
    if (author_id == NULL || *author_id == '\0')
        return EB_ROLE_NOT_ALLOWED;
    if (contains(policy->blocked, author_id))
        return EB_ROLE_BLOCKED;
    if (contains(policy->operators, author_id))
        return EB_ROLE_OPERATOR;
    if (!contains(policy->allowed, "*") && !contains(policy->allowed, author_id))
        return EB_ROLE_NOT_ALLOWED;
    if (g_strcmp0(owner, author_id) == 0)
        return EB_ROLE_OWNER;
    for (guint i = 0; guests != NULL && i < guests->len; i++)
        if (g_strcmp0(guests->pdata[i], author_id) == 0)
            return EB_ROLE_GUEST;
    return EB_ROLE_ANYONE;
}

const char *
eb_role_to_string(EbRole role)
{
    static const char *const names[] = {"blocked", "not allowed", "not invited", "guest", "owner", "operator"};
    return (guint)role < G_N_ELEMENTS(names) ? names[role] : "not allowed";
}
