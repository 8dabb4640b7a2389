/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-plugin-credentials"
#include "creds-watch.h"

#include "creds-file.h"

typedef struct {
    char *path;
    CredsFileId id; /* when it was looked at last: what is touched and is the same is no news */
    GFileMonitor *monitor;
} Watched;

struct _CredsWatch {
    EbCredentialStore *store;
    Watched files[CREDS_WATCH_MAX];
    guint n_files;
    GSource *settle; /* (nullable) */
};

CredsWatch *
creds_watch_new(EbCredentialStore *store)
{
    CredsWatch *self = g_new0(CredsWatch, 1);

    self->store = store;
    return self;
}

static void
clear_settle(CredsWatch *self)
{
    if (self->settle == NULL)
        return;
    g_source_destroy(self->settle);
    g_clear_pointer(&self->settle, g_source_unref);
}

static gboolean
on_settled(gpointer user_data)
{
    CredsWatch *self = user_data;
    gboolean news = FALSE;

    clear_settle(self);
    for (guint i = 0; i < self->n_files; i++) {
        CredsFileId id = creds_file_id(self->files[i].path);
        news = news || !creds_file_id_equal(&id, &self->files[i].id);
        self->files[i].id = id;
    }
    if (news)
        g_signal_emit_by_name(self->store, "changed", NULL);
    return G_SOURCE_REMOVE;
}

static void
on_event(GFileMonitor *monitor, GFile *file, GFile *other, GFileMonitorEvent event, gpointer user_data)
{
    CredsWatch *self = user_data;

    if (self->settle != NULL)
        return;
    self->settle = g_timeout_source_new(CREDS_WATCH_SETTLE_MS);
    g_source_set_callback(self->settle, on_settled, self, NULL);
    g_source_attach(self->settle, g_main_context_get_thread_default());
}

void
creds_watch_add(CredsWatch *self, const char *path)
{
    if (path == NULL || self->n_files >= CREDS_WATCH_MAX)
        return;
    Watched *watched = &self->files[self->n_files++];
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GError) error = NULL;

    watched->path = g_strdup(path);
    watched->id = creds_file_id(path);
    watched->monitor = g_file_monitor_file(file, G_FILE_MONITOR_WATCH_MOVES, NULL, &error);
    if (watched->monitor != NULL)
        g_signal_connect(watched->monitor, "changed", G_CALLBACK(on_event), self);
    else
        eb_warning("%s is not watched, so that a change of it needs a reload: %s", path, error->message);
}

void
creds_watch_free(CredsWatch *self)
{
    if (self == NULL)
        return;
    clear_settle(self);
    for (guint i = 0; i < self->n_files; i++) {
        if (self->files[i].monitor != NULL) {
            g_signal_handlers_disconnect_by_data(self->files[i].monitor, self);
            g_file_monitor_cancel(self->files[i].monitor);
        }
        g_clear_object(&self->files[i].monitor);
        g_free(self->files[i].path);
    }
    g_free(self);
}
