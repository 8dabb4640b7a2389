/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

static const struct {
    const char *program;
    const char *package;
} PROGRAMS[] = {
    {"/usr/libexec/incus/incusd", "incus-base"},
    {"newuidmap", "uidmap"},
    {"mkfs.btrfs", "btrfs-progs"},
    {"lxcfs", "lxcfs"},
    {"mmdebstrap", "mmdebstrap"},
    {"tar", "tar"},
};

static gboolean
check_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GString) packages = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autofree char *path = eb_run_find(PROGRAMS[i].program);
        if (path == NULL)
            g_string_append_printf(packages, " %s", PROGRAMS[i].package);
    }
    if (packages->len > 0)
        eb_findings_change(findings, "packages are needed first: apt-get install%s", packages->str);
    return TRUE;
}

static gboolean
apply_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    eb_set_error(error, EB_ERROR_CONFIG, "provision.packages", "%s (in a clone of the sources: make deps)",
                 (const char *)findings->changes->pdata[0]);
    return FALSE;
}

const EbSetupStep eb_setup_step_packages = {
    .id = "packages",
    .title = "programs this host needs",
    .undo_hint = "apt-get remove the packages named",
    .check = check_packages,
    .apply = apply_packages,
};
