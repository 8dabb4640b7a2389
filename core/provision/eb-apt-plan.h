/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/* What apt says, read without asking it again: no I/O here. */

/** EbAptPlan: what a simulated apt-get would do. Names without architecture, in apt's order. */
typedef struct {
    GPtrArray *installs; /* (element-type utf8): packages that are not there now */
    GPtrArray *upgrades; /* (element-type utf8): that are there in another version */
    GPtrArray *removes;  /* (element-type utf8): purged ones too */
} EbAptPlan;
void eb_apt_plan_free(EbAptPlan *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAptPlan, eb_apt_plan_free)

/** EB_APT_PLAN_MAX: packages of one plan that are looked at; a whole desktop has some 2000. */
#define EB_APT_PLAN_MAX 5000

/** eb_apt_plan_parse: (transfer full): from the output of `apt-get -s`; lines it does not know are passed over. */
EbAptPlan *eb_apt_plan_parse(const char *text);

/** eb_apt_is_kernel_package: builds, loads or is a part of the kernel: an operator is asked before it is installed. */
gboolean eb_apt_is_kernel_package(const char *name);

/** eb_apt_plan_kernel: (transfer full) (nullable): its kernel packages among installs and upgrades, with blanks. */
char *eb_apt_plan_kernel(const EbAptPlan *self);

/** eb_apt_has_candidate: `apt-cache policy NAME` names a version that can be installed. */
gboolean eb_apt_has_candidate(const char *policy);

/**
 * eb_apt_backports_source: (transfer full) (nullable): the text of a deb822 source for the backports of the release, from
 * the mirror that apt takes the release itself from.
 * @targets: output of `apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages'`
 * @codename: of the release: "bookworm"
 * @keyring: (nullable): file of the keys that sign it
 *
 * EB_ERROR_NOT_FOUND "apt.mirror": no source for the release; EB_ERROR_EXISTS "apt.backports": there already.
 */
char *eb_apt_backports_source(const char *targets, const char *codename, const char *keyring, GError **error);

/** eb_apt_release_codename: (transfer full) (nullable): VERSION_CODENAME in the text of an os-release(5) file. */
char *eb_apt_release_codename(const char *text);

/**
 * eb_apt_new_lines: (transfer full): the lines of @after that @before lacks, each cut at @delimiter (0: whole), joined by
 * newlines; "" when there is none.
 */
char *eb_apt_new_lines(const char *before, const char *after, char delimiter);

G_END_DECLS
