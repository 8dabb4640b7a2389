/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-service.h"

#include <string.h>
#include <unistd.h>

#include "core/session/eb-session-manager.h"

/* What eb_cli_fail() begins a line with. */
#define ERROR_MARK "errand-box: "
#define MAX_LINE 600

void
eb_cli_service_clear(EbCliService *service)
{
    g_clear_object(&service->supervisor);
    eb_unit_status_clear(&service->unit);
    g_clear_error(&service->unit_problem);
    eb_lock_holder_clear(&service->holder);
    g_clear_error(&service->lock_problem);
}

gboolean
eb_cli_service_same_config(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    g_autofree char *left = g_canonicalize_filename(a, NULL);
    g_autofree char *right = g_canonicalize_filename(b, NULL);
    return strcmp(left, right) == 0;
}

gboolean
eb_cli_service_query(EbCliService *service, GError **error)
{
    eb_unit_status_clear(&service->unit);
    return eb_supervisor_query(service->supervisor, EB_CLI_SERVICE_UNIT, &service->unit, error);
}

gboolean
eb_cli_service_find(EbCli *cli, EbConfig *config, EbCliService *service, GError **error)
{
    *service = (EbCliService){.unit.exit_code = -1};
    service->supervisor = eb_supervisor_find(NULL, error);
    if (service->supervisor == NULL)
        return FALSE;
    if (eb_cli_service_query(service, &service->unit_problem))
        service->ours = service->unit.state != EB_UNIT_MISSING &&
                        eb_cli_service_same_config(service->unit.config, eb_cli_get_config_file(cli));
    if (!eb_lock_holder_find(eb_config_get_state_dir(config), EB_STATE_LOCK_FILE, &service->holder,
                             &service->lock_problem) &&
        g_error_matches(service->lock_problem, EB_ERROR, EB_ERROR_NOT_FOUND))
        g_clear_error(&service->lock_problem);
    return TRUE;
}

gboolean
eb_cli_service_is_held(const EbCliService *service)
{
    return service->holder.pid != 0 || service->lock_problem != NULL;
}

char *
eb_cli_service_exit_means(int exit_code, int exit_signal)
{
    static const char *const MEANS[] = {
        "it ended as it was asked to",
        "it failed while running",
        "it refused: its configuration, the backend, a token or a credential cannot work",
        "a guarantee cannot be enforced on this host and was not accepted",
        "another instance held the state directory",
    };

    if (exit_signal > 0)
        return g_strdup_printf("it was ended by signal %d (%s)", exit_signal, g_strsignal(exit_signal));
    if (exit_code >= 0 && exit_code < (int)G_N_ELEMENTS(MEANS))
        return g_strdup_printf("exit %d: %s", exit_code, MEANS[exit_code]);
    return exit_code < 0 ? g_strdup("it has not run yet") : g_strdup_printf("exit %d", exit_code);
}

char *
eb_cli_service_last_error(const char *log)
{
    const char *found = NULL;

    for (const char *at = log; at != NULL && (at = strstr(at, ERROR_MARK)) != NULL; at += strlen(ERROR_MARK))
        found = at + strlen(ERROR_MARK);
    if (found == NULL)
        return NULL;
    gsize length = strcspn(found, "\n");
    return eb_log_escape(found, (gssize)length, MAX_LINE);
}
