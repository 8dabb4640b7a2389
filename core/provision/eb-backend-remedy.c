/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-backend-remedy.h"

#define OWN_DAEMONS "errand-box setup --stop-daemons, then errand-box setup"

char *
eb_backend_remedy(const char *backend, EbSupervisor *supervisor)
{
    EbSupervisorKind kind = supervisor != NULL ? eb_supervisor_get_kind(supervisor) : EB_SUPERVISOR_NONE;
    g_autofree char *service = NULL;

    if (g_strcmp0(backend, "incus") != 0)
        return NULL;
    switch (kind) {
    case EB_SUPERVISOR_SYSTEMD:
        return g_strdup("systemctl restart incus");
    case EB_SUPERVISOR_S6:
        service = g_build_filename(eb_supervisor_get_scan_dir(supervisor), "incusd", NULL);
        if (g_file_test(service, G_FILE_TEST_IS_DIR))
            return g_strdup_printf("s6-svc -r %s", service);
        return g_strdup(OWN_DAEMONS);
    case EB_SUPERVISOR_NONE:
        break;
    }
    return g_strdup(OWN_DAEMONS);
}
