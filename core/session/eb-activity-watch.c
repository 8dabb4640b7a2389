/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-activity-watch.h"
#include "core/base/eb-source.h"

#define LOOK_DEADLINE_MS 10000
#define FULL_PERCENT 98

struct _EbActivityWatch {
    GObject parent_instance;
    EbAcpClient *client;
    EbContainerBackend *backend;
    char *instance;
    guint silent_ms;
    guint64 next_ms; /* silence that is mentioned next */
    guint paused;
    gint64 resumed_us; /* silence before this does not count */
    gboolean looking;
    GSource *timer;
};

G_DEFINE_FINAL_TYPE(EbActivityWatch, eb_activity_watch, G_TYPE_OBJECT)

enum { SIGNAL_SILENT, SIGNAL_STALLED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
on_looked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbActivityWatch) self = EB_ACTIVITY_WATCH(user_data);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) found = eb_container_backend_list_finish(EB_CONTAINER_BACKEND(source), result, &error);
    self->looking = FALSE;
    if (self->timer == NULL || found == NULL || found->len != 1)
        return;
    const EbInstanceInfo *info = found->pdata[0];
    if (info->memory_limit > 0 && info->memory_usage / FULL_PERCENT >= info->memory_limit / 100)
        g_signal_emit(self, signals[SIGNAL_STALLED], 0, info->memory_limit);
}

static gboolean
on_tick(gpointer data)
{
    g_autoptr(EbActivityWatch) self = g_object_ref(EB_ACTIVITY_WATCH(data));
    guint64 idle_ms = eb_acp_client_get_idle_ms(self->client);
    guint64 since_ms = (guint64)(g_get_monotonic_time() - self->resumed_us) / 1000;
    idle_ms = MIN(idle_ms, since_ms);
    if (self->paused > 0 || idle_ms < self->silent_ms) {
        if (idle_ms < self->silent_ms)
            self->next_ms = self->silent_ms;
        return G_SOURCE_CONTINUE;
    }
    if (idle_ms >= self->next_ms) {
        self->next_ms *= 2;
        g_signal_emit(self, signals[SIGNAL_SILENT], 0, (guint)(idle_ms / 1000));
    }
    if (self->timer != NULL && !self->looking) {
        self->looking = TRUE;
        eb_container_backend_list_async(self->backend, self->instance, LOOK_DEADLINE_MS, NULL, on_looked,
                                        g_object_ref(self));
    }
    return G_SOURCE_CONTINUE;
}

void
eb_activity_watch_start(EbActivityWatch *self)
{
    eb_activity_watch_stop(self);
    self->next_ms = self->silent_ms;
    self->paused = 0;
    self->resumed_us = g_get_monotonic_time();
    self->timer = g_timeout_source_new(MAX(self->silent_ms / 6, 10));
    g_source_set_callback(self->timer, on_tick, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

void
eb_activity_watch_stop(EbActivityWatch *self)
{
    eb_clear_source(&self->timer);
}

void
eb_activity_watch_pause(EbActivityWatch *self, gboolean pause)
{
    if (pause)
        self->paused++;
    else if (self->paused > 0)
        self->paused--;
    self->resumed_us = g_get_monotonic_time();
}

static void
eb_activity_watch_dispose(GObject *object)
{
    EbActivityWatch *self = EB_ACTIVITY_WATCH(object);
    eb_activity_watch_stop(self);
    g_clear_object(&self->client);
    g_clear_object(&self->backend);
    G_OBJECT_CLASS(eb_activity_watch_parent_class)->dispose(object);
}

static void
eb_activity_watch_finalize(GObject *object)
{
    g_free(EB_ACTIVITY_WATCH(object)->instance);
    G_OBJECT_CLASS(eb_activity_watch_parent_class)->finalize(object);
}

static void
eb_activity_watch_class_init(EbActivityWatchClass *klass)
{
    G_OBJECT_CLASS(klass)->dispose = eb_activity_watch_dispose;
    G_OBJECT_CLASS(klass)->finalize = eb_activity_watch_finalize;
    signals[SIGNAL_SILENT] = g_signal_new("silent", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, G_TYPE_UINT);
    signals[SIGNAL_STALLED] = g_signal_new("stalled", G_TYPE_FROM_CLASS(klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                           G_TYPE_NONE, 1, G_TYPE_UINT64);
}

static void
eb_activity_watch_init(EbActivityWatch *self)
{
}

EbActivityWatch *
eb_activity_watch_new(EbAcpClient *client, EbContainerBackend *backend, const char *instance, guint silent_ms)
{
    EbActivityWatch *self = g_object_new(EB_TYPE_ACTIVITY_WATCH, NULL);
    self->client = g_object_ref(client);
    self->backend = g_object_ref(backend);
    self->instance = g_strdup(instance);
    self->silent_ms = silent_ms;
    return self;
}
