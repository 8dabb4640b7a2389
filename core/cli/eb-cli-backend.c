/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-backend.h"

#include "core/base/eb-account.h"
#include "core/cli/eb-cli-call.h"

#include <glib-unix.h>
#include <signal.h>

#define START_DEADLINE_MS 15000
#define N_SIGNALS 3

void
eb_cli_backend_free(EbCliBackend *self)
{
    if (self == NULL)
        return;
    g_free(self->alias);
    g_free(self);
}

static gboolean
start(EbCli *cli, EbPluginRegistry *registry, GCancellable *cancellable, GError **error)
{
    g_auto(EbCliWait) wait = {0};

    eb_plugin_registry_tell_failures(registry);
    eb_plugin_registry_start_async(registry, START_DEADLINE_MS, cancellable, eb_cli_wait_ready, &wait);
    return eb_plugin_registry_start_finish(registry, eb_cli_wait_result(cli, &wait), error);
}

/* Finds it before it is started: one that then fails has the reason in its record. @record: (out) */
static EbCliBackend *
load(EbCli *cli, const EbPluginRecord **record, GError **error)
{
    EbConfig *config = eb_cli_get_config(cli, error);

    if (config == NULL)
        return NULL;
    const char *name = eb_config_get_session(config)->backend;
    g_autofree char *point = g_strdup_printf("container-backend:%s", name);
    const char *const only[] = {point, NULL};
    g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(config, name);
    g_autoptr(EbCliBackend) self = g_new0(EbCliBackend, 1);
    self->alias = eb_config_section_get_string(section, "image", "errand-box/guest", error);
    self->paths = self->alias != NULL ? eb_cli_get_paths(cli, error) : NULL;
    self->registry = self->paths != NULL ? eb_cli_get_registry(cli, only, NULL, NULL, error) : NULL;
    if (self->registry == NULL)
        return NULL;
    GObject *found = eb_plugin_registry_find(self->registry, EB_EXTENSION_CONTAINER_BACKEND, name, record);
    if (found == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "image.backend", "no plugin provides the container backend %s", name);
        return NULL;
    }
    self->backend = EB_CONTAINER_BACKEND(found);
    return g_steal_pointer(&self);
}

EbCliBackend *
eb_cli_backend_open(EbCli *cli, GCancellable *cancellable, GError **error)
{
    const EbPluginRecord *record = NULL;
    g_autoptr(EbCliBackend) self = load(cli, &record, error);

    if (self == NULL || !start(cli, self->registry, cancellable, error))
        return NULL;
    if (record->state == EB_PLUGIN_STATE_RUNNING)
        return g_steal_pointer(&self);
    if (record->error == NULL)
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "image.backend", "the container backend %s did not start",
                     record->name);
    else if (error != NULL)
        *error = g_error_copy(record->error);
    return NULL;
}

EbCliBackend *
eb_cli_backend_open_as_account(EbCli *cli, GError **error)
{
    const EbPluginRecord *record = NULL;
    g_autoptr(EbCliBackend) self = load(cli, &record, error);
    g_autoptr(EbAccount) account =
        self != NULL ? eb_account_find(eb_config_get_account(eb_cli_get_config(cli, NULL)), error) : NULL;

    if (account == NULL || !eb_account_check_caller(account, error) || !eb_account_become(account, error) ||
        !eb_account_protect_process(error) || !start(cli, self->registry, NULL, error))
        return NULL;
    return g_steal_pointer(&self);
}

/* --- interrupts --- */

struct _EbCliInterrupt {
    GCancellable *cancellable;
    GSource *signals[N_SIGNALS];
};

static gboolean
on_interrupt(gpointer user_data)
{
    EbCliInterrupt *self = user_data;

    g_printerr("interrupted: taking back what was begun\n");
    g_cancellable_cancel(self->cancellable);
    return G_SOURCE_CONTINUE;
}

EbCliInterrupt *
eb_cli_interrupt_new(GCancellable *cancellable)
{
    static const int signals[N_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    EbCliInterrupt *self = g_new0(EbCliInterrupt, 1);

    self->cancellable = g_object_ref(cancellable);
    for (guint i = 0; i < N_SIGNALS; i++) {
        self->signals[i] = g_unix_signal_source_new(signals[i]);
        g_source_set_callback(self->signals[i], on_interrupt, self, NULL);
        g_source_attach(self->signals[i], NULL);
    }
    return self;
}

void
eb_cli_interrupt_free(EbCliInterrupt *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < N_SIGNALS; i++) {
        g_source_destroy(self->signals[i]);
        g_source_unref(self->signals[i]);
    }
    g_object_unref(self->cancellable);
    g_free(self);
}

void
eb_cli_print_progress(const char *stage, guint seconds, gboolean done, gpointer user_data)
{
    if (done)
        g_printerr("  done  %s (%u s)\n", stage, seconds);
    else if (seconds > 0)
        g_printerr("        %s ... %u s\n", stage, seconds);
    else
        g_printerr("        %s\n", stage);
}
