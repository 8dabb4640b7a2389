/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbRole: what a person is to a session, each with the rights of those before it; the first two have none. */
typedef enum {
    EB_ROLE_BLOCKED = 0,     /* on the list of the blocked, whatever else it is */
    EB_ROLE_NOT_ALLOWED = 1, /* not on the list of those who may use the service */
    EB_ROLE_ANYONE = 2,      /* may use the service, was not invited to this session */
    EB_ROLE_GUEST = 3,       /* invited by the owner */
    EB_ROLE_OWNER = 4,       /* began it */
    EB_ROLE_OPERATOR = 5,    /* an owner's rights everywhere */
} EbRole;

/**
 * eb_role_of:
 * @policy: (nullable): NULL = a transport where everybody is an operator
 * @owner: (nullable): of the session, NULL where there is none
 * @guests: (nullable) (element-type utf8): ids
 *
 * Ids are compared byte by byte; an empty one is never allowed.
 */
EbRole eb_role_of(const EbChatPolicy *policy, const char *owner, const GPtrArray *guests, const char *author_id);
/** eb_role_to_string: "owner", ... for people */
const char *eb_role_to_string(EbRole role);

G_END_DECLS
