/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/provision/eb-setup.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define START_MS 15000

typedef struct {
    EbCli *cli;
    gint64 start;
} Screen;

/* What the setup's callbacks get. */
typedef struct {
    EbCli *cli;
    GCancellable *cancellable;
} Caller;

static const char *
color_of(EbSetupResult result)
{
    switch (result) {
    case EB_SETUP_OK:
        return "\033[2m";
    case EB_SETUP_CHANGED:
    case EB_SETUP_PLANNED:
        return "\033[32m";
    case EB_SETUP_DEGRADED:
        return "\033[33m";
    case EB_SETUP_FAILED:
        return "\033[31m";
    }
    return "";
}

static void
print_row(EbCli *cli, const EbSetupRow *row)
{
    gboolean color = eb_cli_get_color(cli);
    g_auto(GStrv) lines = g_strsplit(row->detail, "\n", -1);

    if (row->result == EB_SETUP_FAILED)
        return; /* the error says it, on stderr */
    eb_cli_print_own(cli, color ? color_of(row->result) : "");
    eb_cli_print(cli, "%-9s", eb_setup_result_to_string(row->result));
    eb_cli_print_own(cli, color ? "\033[0m" : "");
    eb_cli_print(cli, " %s", row->title);
    if (row->ms >= 1000)
        eb_cli_print(cli, " (%.1f s)", row->ms / 1000.0);
    eb_cli_print(cli, lines[0] != NULL && lines[1] == NULL && row->result == EB_SETUP_OK ? ": " : "\n");
    for (guint i = 0; lines[i] != NULL; i++)
        if (lines[1] == NULL && row->result == EB_SETUP_OK)
            eb_cli_print(cli, "%s\n", lines[i]);
        else if (*lines[i] != '\0')
            eb_cli_print(cli, "          %s\n", lines[i]);
    if (row->result == EB_SETUP_PLANNED && row->undo != NULL)
        eb_cli_print(cli, "          undo: %s\n", row->undo);
}

static void
on_progress(const char *text, const EbSetupRow *row, gpointer user_data)
{
    Screen *screen = user_data;

    if (row == NULL)
        g_printerr("[%3d s] %s\n", (int)((g_get_monotonic_time() - screen->start) / G_USEC_PER_SEC), text);
    else if (!eb_cli_get_json(screen->cli))
        print_row(screen->cli, row);
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    gboolean *done = user_data;

    eb_plugin_registry_start_finish(EB_PLUGIN_REGISTRY(source), result, NULL); /* each record has its own error */
    *done = TRUE;
}

/* The plugin of the configured backend alone, opened when the daemon it talks to is there. */
static EbContainerBackend *
open_backend(gpointer user_data, GError **error)
{
    static const char *const ONLY[] = {"container-backend", NULL};
    EbCli *cli = ((Caller *)user_data)->cli;
    EbConfig *config = eb_cli_get_config(cli, error);
    EbPluginRegistry *registry = config != NULL ? eb_cli_get_registry(cli, ONLY, NULL, NULL, error) : NULL;
    const char *name = config != NULL ? eb_config_get_session(config)->backend : NULL;
    const EbPluginRecord *record = NULL;
    GObject *backend;

    if (registry == NULL)
        return NULL;
    backend = eb_plugin_registry_find(registry, EB_EXTENSION_CONTAINER_BACKEND, name, &record);
    if (backend == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.backend", "no plugin provides the container backend %s", name);
        return NULL;
    }
    if (record->state == EB_PLUGIN_STATE_LOADED) {
        gboolean done = FALSE;
        eb_plugin_registry_tell_failures(registry);
        eb_plugin_registry_start_async(registry, START_MS, NULL, on_started, &done);
        eb_cli_wait(cli, &done);
    }
    if (record->state == EB_PLUGIN_STATE_RUNNING)
        return EB_CONTAINER_BACKEND(backend);
    g_propagate_error(error, record->error != NULL ? g_error_copy(record->error)
                                                   : eb_error_new(EB_ERROR_UNAVAILABLE, "provision.backend",
                                                                  "the container backend %s did not start", name));
    return NULL;
}

static gboolean
on_interrupt(gpointer user_data)
{
    g_printerr("interrupted: taking back what was begun\n");
    g_cancellable_cancel(user_data);
    return G_SOURCE_CONTINUE;
}

/* Only while the image is made is there something to take back; all other steps may be cut off anywhere, and there a
 * signal has its usual effect. */
static void
wait_done(const gboolean *done, gpointer user_data)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    Caller *caller = user_data;
    GSource *sources[G_N_ELEMENTS(SIGNALS)];

    for (guint i = 0; i < G_N_ELEMENTS(SIGNALS); i++) {
        sources[i] = g_unix_signal_source_new(SIGNALS[i]);
        g_source_set_callback(sources[i], on_interrupt, caller->cancellable, NULL);
        g_source_attach(sources[i], NULL);
    }
    eb_cli_wait(caller->cli, done);
    for (guint i = 0; i < G_N_ELEMENTS(SIGNALS); i++) {
        g_source_destroy(sources[i]);
        g_source_unref(sources[i]);
    }
}

/* Everything but a plain yes is a no. */
static gboolean
confirm(const char *question, gpointer user_data)
{
    char answer[16] = "";

    g_printerr("%s. Install them? [y/N] ", question);
    return fgets(answer, sizeof answer, stdin) != NULL &&
           (g_ascii_strcasecmp(g_strstrip(answer), "y") == 0 || g_ascii_strcasecmp(answer, "yes") == 0);
}

/* An option that would be passed over is one whose absence somebody relies on. */
static gboolean
check_options(EbCliArgs *args, GError **error)
{
    static const char *const PAIRS[][2] = {
        {"undo", "creds"},
        {"undo", "env"},
        {"undo", "yes-kernel-modules"},
        {"stop-daemons", "creds"},
        {"stop-daemons", "env"},
        {"stop-daemons", "plan"},
        {"stop-daemons", "undo"},
        {"stop-daemons", "yes-data"},
        {"stop-daemons", "yes-kernel-modules"},
    };

    for (guint i = 0; i < G_N_ELEMENTS(PAIRS); i++)
        if (eb_cli_args_value(args, PAIRS[i][0]) != NULL && eb_cli_args_value(args, PAIRS[i][1]) != NULL) {
            eb_set_error(error, EB_ERROR_CONFIG, "cli.usage", "--%s and --%s do not go together", PAIRS[i][0],
                         PAIRS[i][1]);
            return FALSE;
        }
    if (eb_cli_args_flag(args, "yes-data") && !eb_cli_args_flag(args, "undo")) {
        eb_set_error(error, EB_ERROR_CONFIG, "cli.usage", "--yes-data is for --undo alone");
        return FALSE;
    }
    return TRUE;
}

int
eb_cmd_setup(EbCli *cli, int argc, char **argv)
{
    EbCliArgs *args = eb_cli_get_args(cli);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSetup) setup = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Caller caller = {.cli = cli, .cancellable = cancellable};
    Screen screen = {.cli = cli, .start = g_get_monotonic_time()};
    EbSetupOptions options = {.config_file = eb_cli_get_config_file(cli),
                              .creds_file = eb_cli_args_value(args, "creds"),
                              .env_file = eb_cli_args_value(args, "env"),
                              .plan = eb_cli_args_flag(args, "plan"),
                              .remove_data = eb_cli_args_flag(args, "yes-data"),
                              .kernel_modules = eb_cli_args_flag(args, "yes-kernel-modules"),
                              .open_backend = open_backend,
                              .confirm = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 ? confirm : NULL,
                              .wait = wait_done,
                              .backend_data = &caller,
                              .cancellable = cancellable};
    gboolean ok;

    if (!check_options(args, &error))
        return eb_cli_fail(cli, "setup", error);
    options.config = eb_cli_get_config(cli, &error);
    options.paths = options.config != NULL ? eb_cli_get_paths(cli, &error) : NULL;
    if (options.paths == NULL)
        return eb_cli_fail(cli, "setup", error);
    setup = eb_setup_new(&options);
    eb_setup_set_progress(setup, on_progress, &screen);
    if (eb_cli_args_flag(args, "stop-daemons")) {
        ok = eb_setup_stop_daemons(setup, &error);
        if (eb_cli_get_json(cli))
            eb_cli_print_json(cli, eb_setup_to_json(setup));
        return ok ? EB_EXIT_OK : eb_cli_fail(cli, "stopping the daemons", error);
    }
    ok = eb_cli_args_flag(args, "undo") ? eb_setup_undo(setup, &error) : eb_setup_run(setup, &error);
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, eb_setup_to_json(setup));
    else if (ok && eb_cli_args_flag(args, "undo") && eb_setup_get_rows(setup)->len == 0)
        eb_cli_print(cli, "nothing to take back: there is no record of a setup\n");
    return ok ? EB_EXIT_OK : eb_cli_fail(cli, "setup", error);
}
