/* SPDX-License-Identifier: MIT */
#include "incus-events.h"

#include "incus-websocket.h"

#define CONNECT_MS 10000
#define PAUSE_FIRST_MS 250
#define PAUSE_MAX_MS 10000
/* incusd answers our pings; incus-user keeps a connection open when incusd is long dead, so silence decides. */
#define PING_INTERVAL_S 5
#define SILENCE_LIMIT_US (20 * G_USEC_PER_SEC)
/* Up this long, a connection counts as good and the pause starts small again. */
#define GOOD_US (5 * G_USEC_PER_SEC)

struct _IncusEvents {
    GObject parent_instance;
    IncusClient *client; /* (owned) */
    IncusEventFunc func; /* (nullable): NULL after stop */
    gpointer user_data;
    SoupWebsocketConnection *connection; /* (nullable) (owned) */
    gulong handlers[3];
    IncusDeadline *connecting; /* (nullable) */
    GSource *timer;            /* (nullable): the next try, or the silence watch */
    guint pause_ms;
    gint64 connected_us;
    gboolean lost; /* BACKEND_LOST was said and BACKEND_BACK was not */
};

G_DEFINE_FINAL_TYPE(IncusEvents, incus_events, G_TYPE_OBJECT)

static void connect_now(IncusEvents *self);

static void
set_timer(IncusEvents *self, guint ms, GSourceFunc func)
{
    if (self->timer != NULL)
        g_source_destroy(self->timer);
    g_clear_pointer(&self->timer, g_source_unref);
    if (func == NULL)
        return;
    self->timer = g_timeout_source_new(ms);
    g_source_set_callback(self->timer, func, self, NULL);
    g_source_attach(self->timer, g_main_context_get_thread_default());
}

static void
drop_connection(IncusEvents *self)
{
    if (self->connection == NULL)
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(self->handlers); i++)
        g_signal_handler_disconnect(self->connection, self->handlers[i]);
    g_clear_object(&self->connection);
}

void
incus_events_stop(IncusEvents *self)
{
    self->func = NULL;
    set_timer(self, 0, NULL);
    if (self->connecting != NULL)
        incus_deadline_cancel(self->connecting);
    drop_connection(self);
}

static void
incus_events_finalize(GObject *object)
{
    IncusEvents *self = INCUS_EVENTS(object);
    incus_events_stop(self);
    g_clear_pointer(&self->connecting, incus_deadline_unref);
    g_clear_object(&self->client);
    G_OBJECT_CLASS(incus_events_parent_class)->finalize(object);
}

static void
incus_events_class_init(IncusEventsClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = incus_events_finalize;
}

static void
incus_events_init(IncusEvents *self)
{
    self->pause_ms = PAUSE_FIRST_MS;
}

IncusEvents *
incus_events_new(IncusClient *client, IncusEventFunc func, gpointer user_data)
{
    IncusEvents *self = g_object_new(INCUS_TYPE_EVENTS, NULL);
    self->client = g_object_ref(client);
    self->func = func;
    self->user_data = user_data;
    return self;
}

gboolean
incus_events_get_connected(IncusEvents *self)
{
    return self->connection != NULL;
}

gboolean
incus_event_parse(const char *text, gsize length, EbInstanceEvent *event, char **name)
{
    static const struct {
        const char *action;
        EbInstanceEvent event;
    } actions[] = {
        {"instance-started", EB_INSTANCE_EVENT_STARTED},
        {"instance-stopped", EB_INSTANCE_EVENT_STOPPED},
        {"instance-shutdown", EB_INSTANCE_EVENT_STOPPED},
        {"instance-deleted", EB_INSTANCE_EVENT_DELETED},
    };
    g_autoptr(JsonNode) root = eb_json_parse(text, length, &EB_JSON_LIMITS_SMALL, NULL);
    JsonObject *object = eb_json_node_object(root);
    JsonObject *metadata = eb_json_get_object(object, "metadata");
    const char *action = eb_json_get_string(metadata, "action");
    const char *source = eb_json_get_string(metadata, "source");
    if (g_strcmp0(eb_json_get_string(object, "type"), "lifecycle") != 0 || action == NULL || source == NULL ||
        !g_str_has_prefix(source, "/1.0/instances/"))
        return FALSE;
    g_autofree char *instance = g_strdup(source + strlen("/1.0/instances/"));
    instance[strcspn(instance, "/?")] = '\0';
    if (*instance == '\0')
        return FALSE;
    for (gsize i = 0; i < G_N_ELEMENTS(actions); i++) {
        if (!g_str_equal(action, actions[i].action))
            continue;
        *event = actions[i].event;
        *name = g_steal_pointer(&instance);
        return TRUE;
    }
    return FALSE;
}

static void
emit(IncusEvents *self, EbInstanceEvent event, const char *name)
{
    if (self->func != NULL)
        self->func(event, name, self->user_data);
}

static gboolean
on_pause_over(gpointer user_data)
{
    connect_now(user_data);
    return G_SOURCE_REMOVE;
}

static void
lost(IncusEvents *self)
{
    drop_connection(self);
    if (self->func == NULL)
        return;
    if (self->connected_us != 0 && g_get_monotonic_time() - self->connected_us > GOOD_US)
        self->pause_ms = PAUSE_FIRST_MS;
    self->connected_us = 0;
    /* Full jitter, so that many clients of one daemon do not come back at the same moment. */
    guint pause = (guint)g_random_int_range((gint32)self->pause_ms / 2, (gint32)self->pause_ms + 1);
    self->pause_ms = MIN(self->pause_ms * 2, PAUSE_MAX_MS);
    set_timer(self, pause, on_pause_over);
    if (!self->lost) {
        self->lost = TRUE;
        emit(self, EB_INSTANCE_EVENT_BACKEND_LOST, NULL);
    }
}

static void
on_message(SoupWebsocketConnection *connection, int type, GBytes *message, gpointer user_data)
{
    IncusEvents *self = user_data;
    EbInstanceEvent event;
    g_autofree char *name = NULL;
    gsize length;
    const char *text = g_bytes_get_data(message, &length);
    if (type == SOUP_WEBSOCKET_DATA_TEXT && incus_event_parse(text, length, &event, &name))
        emit(self, event, name);
}

static void
on_closed(SoupWebsocketConnection *connection, gpointer user_data)
{
    lost(user_data);
}

static void
on_error(SoupWebsocketConnection *connection, GError *error, gpointer user_data)
{
    eb_debug("event stream: %s", error->message);
}

static gboolean
on_watch(gpointer user_data)
{
    IncusEvents *self = user_data;
    IncusFlow *flow = INCUS_FLOW(soup_websocket_connection_get_io_stream(self->connection));
    if (g_get_monotonic_time() - incus_flow_get_last_read(flow) < SILENCE_LIMIT_US)
        return G_SOURCE_CONTINUE;
    g_autoptr(IncusEvents) keep = g_object_ref(self);
    lost(self);
    return G_SOURCE_REMOVE;
}

static void
on_connected(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(IncusEvents) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(SoupWebsocketConnection) connection = incus_websocket_open_finish(result, &error);
    g_clear_pointer(&self->connecting, incus_deadline_unref);
    if (self->func == NULL)
        return;
    if (connection == NULL) {
        eb_debug("event stream: %s", error->message);
        lost(self);
        return;
    }
    self->connection = g_steal_pointer(&connection);
    self->connected_us = g_get_monotonic_time();
    self->handlers[0] = g_signal_connect(self->connection, "message", G_CALLBACK(on_message), self);
    self->handlers[1] = g_signal_connect(self->connection, "closed", G_CALLBACK(on_closed), self);
    self->handlers[2] = g_signal_connect(self->connection, "error", G_CALLBACK(on_error), self);
    soup_websocket_connection_set_keepalive_interval(self->connection, PING_INTERVAL_S);
    incus_websocket_begin(self->connection);
    set_timer(self, PING_INTERVAL_S * 1000, on_watch);
    if (self->lost) {
        self->lost = FALSE;
        emit(self, EB_INSTANCE_EVENT_BACKEND_BACK, NULL);
    }
}

static void
connect_now(IncusEvents *self)
{
    if (self->func == NULL || self->connection != NULL || self->connecting != NULL)
        return;
    g_autofree char *path = incus_client_path(self->client, "type=lifecycle", "events", NULL);
    self->connecting = incus_deadline_new(CONNECT_MS, NULL);
    incus_websocket_open_async(self->client, path, self->connecting, on_connected, g_object_ref(self));
}

void
incus_events_start(IncusEvents *self)
{
    connect_now(self);
}
