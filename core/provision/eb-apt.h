/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-apt-plan.h"

G_BEGIN_DECLS

/* Asks apt and lets it act; it checks what it fetches against Debian's own keys. Blocks: for setup alone. */

/** EB_APT_LOG: what apt-get printed last, for an operator. */
#define EB_APT_LOG "/var/log/errand-box-setup-apt.log"

/** eb_apt_is_here: this host has apt and dpkg. */
gboolean eb_apt_is_here(void);

/**
 * eb_apt_simulate: (transfer full) (nullable): what apt would do; nothing is changed.
 * @verb: "install" (never removing anything, without recommendations) or "purge"
 * @names: (array zero-terminated=1)
 *
 * EB_ERROR_NOT_FOUND "apt.unknown": it knows no such package, perhaps for want of package lists.
 */
EbAptPlan *eb_apt_simulate(const char *verb, const char *const *names, GError **error);
/** eb_apt_knows: a version of @name can be installed. */
gboolean eb_apt_knows(const char *name);
/** eb_apt_update: fetches the package lists. EB_ERROR_UNAVAILABLE "apt.network" when it cannot. */
gboolean eb_apt_update(GError **error);
/** eb_apt_act: does what eb_apt_simulate() said; finishes first what an interrupted dpkg left. */
gboolean eb_apt_act(const char *verb, const char *const *names, GError **error);
/** eb_apt_make_backports: (transfer full) (nullable): eb_apt_backports_source() for this machine. */
char *eb_apt_make_backports(GError **error);
/** eb_apt_list_installed: (transfer full): names of the packages that are installed, as keys. */
GHashTable *eb_apt_list_installed(void);

G_END_DECLS
