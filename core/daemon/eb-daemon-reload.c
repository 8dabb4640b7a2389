/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"
#include "core/daemon/eb-daemon-reload.h"

#include "core/base/eb-worker.h"

typedef struct {
    char *config_file, *data_dir;
} Files;

static void
files_free(gpointer data)
{
    Files *files = data;

    g_free(files->config_file);
    g_free(files->data_dir);
    g_free(files);
}

static void
load(GTask *task)
{
    const Files *files = g_task_get_task_data(task);
    GError *error = NULL;
    EbConfig *config = eb_config_load(files->config_file, files->data_dir, &error);

    if (config != NULL)
        g_task_return_pointer(task, config, g_object_unref);
    else
        g_task_return_error(task, error);
}

static void
on_loaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbWorker) worker = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfig) config = g_task_propagate_pointer(G_TASK(result), &error);

    if (config != NULL && eb_session_manager_take_budget(EB_SESSION_MANAGER(source), config, &error))
        eb_info("caps and prices are those of the configuration now");
    else
        eb_warning("caps and prices stay as they were: %s", error->message);
}

void
eb_daemon_reload_budget(EbSessionManager *manager, const char *config_file, const char *data_dir)
{
    EbWorker *worker = eb_worker_new("eb-reload", 1);
    GTask *task = g_task_new(manager, NULL, on_loaded, worker);
    Files *files = g_new0(Files, 1);

    files->config_file = g_strdup(config_file);
    files->data_dir = g_strdup(data_dir);
    g_task_set_source_tag(task, eb_daemon_reload_budget);
    g_task_set_task_data(task, files, files_free);
    eb_worker_run(worker, task, load);
}
