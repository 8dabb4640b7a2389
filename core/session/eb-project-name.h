/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * eb_project_name_check: a project is one directory below project_root: [A-Za-z0-9._-]{1,64}, not beginning with a dot or
 * a dash. Anything else is EB_ERROR_INVALID "project.name" with the name escaped and cut.
 */
gboolean eb_project_name_check(const char *name, GError **error);

/** EB_SESSION_ID_LENGTH: characters of [a-z0-9] of a session id: 62 random bits. */
#define EB_SESSION_ID_LENGTH 12
/** eb_session_id_new: (transfer full): from the kernel's random numbers. */
char *eb_session_id_new(void);
gboolean eb_session_id_check(const char *id);

G_END_DECLS
