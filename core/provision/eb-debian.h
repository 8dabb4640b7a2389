/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** Questions to apt and dpkg; nothing is installed and nothing is fetched. Blocking. */

/** eb_debian_candidate: (transfer full) (nullable): the version apt would install; EB_ERROR_NOT_FOUND when it has none. */
char *eb_debian_candidate(const char *package, GError **error);
/** eb_debian_parse_candidate: (transfer full) (nullable): that version in what `apt-cache policy` printed. */
char *eb_debian_parse_candidate(const char *output);
/** eb_debian_installed: (transfer full) (nullable): the version that is installed; NULL: none is. */
char *eb_debian_installed(const char *package);
/** eb_debian_is_at_least: is @version @least or later, in Debian's order? */
gboolean eb_debian_is_at_least(const char *version, const char *least);

G_END_DECLS
