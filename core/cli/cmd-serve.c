/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-enter.h"
#include "core/daemon/eb-daemon.h"

typedef struct {
    gboolean done;
    GError *error;
} Run;

static void
ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *run = user_data;

    eb_daemon_run_finish(EB_DAEMON(source), result, &run->error);
    run->done = TRUE;
}

int
eb_cmd_serve(EbCli *cli, int argc, char **argv)
{
    /* Checks are third-party code for the command line; the service never opens them. */
    static const char *const only[] = {"container-backend", "chat-transport", "credential-store", NULL};
    g_autoptr(GError) error = NULL;
    EbConfig *config = eb_cli_get_config(cli, &error);
    EbPluginRegistry *registry = config != NULL ? eb_cli_get_registry(cli, only, NULL, NULL, &error) : NULL;
    g_autoptr(EbCredentials) credentials = registry != NULL ? eb_cli_enter(cli, config, registry, &error) : NULL;
    Run run = {0};

    if (credentials == NULL)
        return eb_cli_fail(cli, "the service does not start", error);
    g_autoptr(EbDaemon) daemon = eb_daemon_new(config, eb_cli_get_paths(cli, NULL), registry);
    eb_daemon_set_config_file(daemon, eb_cli_get_config_file(cli));
    eb_daemon_run_async(daemon, ended, &run);
    eb_cli_wait(cli, &run.done);
    if (run.error == NULL)
        return EB_EXIT_OK;
    int code = eb_cli_fail(cli, "the service ended", run.error);
    g_error_free(run.error);
    return code;
}
