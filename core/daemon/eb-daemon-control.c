/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"

#include "core/daemon/eb-daemon-maint.h"
#include "core/daemon/eb-daemon-private.h"

#include <string.h>
#include <unistd.h>

struct _EbDaemonControl {
    EbSessionManager *manager;      /* not owned */
    EbPluginRegistry *registry;     /* not owned */
    EbDaemonTransports *transports; /* not owned */
    EbDaemonHealth *health;         /* not owned */
    EbControlServer *server;
    EbControlTransport *transport;
    gint64 started; /* monotonic, microseconds */
};

/* An answer that comes later. */
typedef struct {
    EbJsonrpc *peer;
    JsonNode *id;
} Reply;

static Reply *
reply_new(EbJsonrpc *peer, JsonNode *id)
{
    Reply *reply = g_new0(Reply, 1);

    reply->peer = g_object_ref(peer);
    reply->id = json_node_copy(id);
    return reply;
}

static void
reply_free(Reply *reply)
{
    g_object_unref(reply->peer);
    json_node_unref(reply->id);
    g_free(reply);
}

static void
answer(EbJsonrpc *peer, JsonNode *id, JsonNode *result, const GError *error)
{
    if (error == NULL)
        eb_jsonrpc_reply(peer, id, result);
    else
        eb_jsonrpc_reply_error(peer, id, error->domain == EB_ERROR ? error->code : EB_ERROR_FAILED, error->message);
}

static JsonNode *
status_json(EbDaemonControl *self)
{
    JsonNode *node = eb_session_manager_status_json(self->manager);
    JsonObject *object = eb_json_node_object(node);

    if (object != NULL) {
        json_object_set_string_member(object, "version", EB_VERSION);
        json_object_set_int_member(object, "pid", getpid());
        json_object_set_int_member(object, "uptime_s", (g_get_monotonic_time() - self->started) / G_USEC_PER_SEC);
        json_object_set_int_member(object, "clients", eb_control_server_get_n_clients(self->server));
        json_object_set_array_member(object, "transports", eb_daemon_transports_json(self->transports));
        json_object_set_object_member(object, "health", eb_daemon_health_to_json(self->health));
    }
    return node;
}

static void
stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;

    eb_session_manager_stop_session_finish(EB_SESSION_MANAGER(source), result, &error);
    answer(reply->peer, reply->id, NULL, error);
    reply_free(reply);
}

static void
allowed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;

    eb_session_manager_allow_host_finish(EB_SESSION_MANAGER(source), result, &error);
    answer(reply->peer, reply->id, NULL, error);
    reply_free(reply);
}

static void
deny(EbDaemonControl *self, EbJsonrpc *peer, const char *session, const char *host, JsonNode *id)
{
    g_autoptr(GError) error = NULL;

    eb_session_manager_deny_host(self->manager, session, host, &error);
    answer(peer, id, NULL, error);
}

static void
logged(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) events = eb_session_manager_log_finish(EB_SESSION_MANAGER(source), result, &error);
    JsonObject *object = json_object_new();
    JsonArray *list = json_array_new();
    gsize total = 0;
    guint first = events != NULL ? events->len : 0;

    /* The newest that fit into one frame. */
    while (first > 0) {
        gsize length = 0;
        g_autofree char *text = eb_json_write(events->pdata[first - 1], &length);
        total += length + 1;
        if (total > EB_JSONRPC_LIMITS_CONTROL.max_line - 4096)
            break;
        first--;
    }
    for (guint i = first; events != NULL && i < events->len; i++)
        json_array_add_element(list, json_node_copy(events->pdata[i]));
    json_object_set_int_member(object, "left_out", first);
    json_object_set_array_member(object, "events", list);
    g_autoptr(JsonNode) node = eb_control_object(object);
    answer(reply->peer, reply->id, error == NULL ? json_node_ref(node) : NULL, error);
    reply_free(reply);
}

static void
prompt(EbDaemonControl *self, EbJsonrpc *peer, JsonObject *params, JsonNode *id)
{
    g_autoptr(GError) error = NULL;
    const char *session = eb_json_get_string(params, "session");
    g_autoptr(JsonNode) known = session != NULL ? eb_session_manager_show_json(self->manager, session, &error) : NULL;
    const char *thread = eb_json_get_string(eb_json_node_object(known), "thread");

    if (session != NULL && error == NULL && thread == NULL)
        eb_set_error(&error, EB_ERROR_NOT_FOUND, "control.session", "session \"%s\" has no thread to go on with",
                     session);
    /* Answered first: what the prompt brings about may come at once. */
    if (error != NULL) {
        answer(peer, id, NULL, error);
    } else if (eb_control_transport_prompt(self->transport, peer, thread, params, &error)) {
        answer(peer, id, NULL, NULL);
    } else {
        answer(peer, id, NULL, error);
    }
}

static void
interrupt(EbDaemonControl *self, EbJsonrpc *peer, JsonObject *params, JsonNode *id)
{
    g_autoptr(GError) error = NULL;
    guint count = (guint)CLAMP(eb_json_get_int(params, "count", 1), 1, 3);

    if (!eb_control_transport_interrupt(self->transport, peer, eb_json_get_string(params, "thread"), count))
        eb_set_error(&error, EB_ERROR_NOT_FOUND, "control.thread", "nothing of this client is running");
    answer(peer, id, NULL, error);
}

/* Methods about one session. FALSE: not one of these. */
static gboolean
session_request(EbDaemonControl *self, EbJsonrpc *peer, const char *method, JsonObject *params, JsonNode *id)
{
    g_autoptr(GError) error = NULL;
    const char *session = eb_json_get_string(params, "id"), *host = eb_json_get_string(params, "host");
    gboolean remove = strcmp(method, "sessions.remove") == 0;

    if (strcmp(method, "sessions.show") == 0) {
        JsonNode *node = eb_session_manager_show_json(self->manager, session, &error);
        if (node == NULL && error == NULL)
            eb_set_error(&error, EB_ERROR_NOT_FOUND, "control.session", "there is no session \"%s\"", session);
        answer(peer, id, node, error);
    } else if (strcmp(method, "sessions.logs") == 0) {
        eb_session_manager_log_async(self->manager, session, NULL, logged, reply_new(peer, id));
    } else if (strcmp(method, "sessions.egress") == 0) {
        eb_session_manager_egress_async(self->manager, session, NULL, logged, reply_new(peer, id));
    } else if (host != NULL && strcmp(method, "sessions.allow") == 0) {
        eb_session_manager_allow_host_async(self->manager, session, host, allowed, reply_new(peer, id));
    } else if (host != NULL && strcmp(method, "sessions.deny") == 0) {
        deny(self, peer, session, host, id);
    } else if (remove || strcmp(method, "sessions.stop") == 0) {
        eb_session_manager_stop_session_async(self->manager, session, remove, NULL, stopped, reply_new(peer, id));
    } else {
        return FALSE;
    }
    return TRUE;
}

static void
health_checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;
    JsonObject *health = eb_daemon_health_check_finish(EB_DAEMON_HEALTH(source), result, &error);

    answer(reply->peer, reply->id, health != NULL ? eb_control_object(health) : NULL, error);
    reply_free(reply);
}

static void
facts_gathered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reply *reply = user_data;
    g_autoptr(GError) error = NULL;
    JsonObject *facts = eb_session_manager_facts_finish(EB_SESSION_MANAGER(source), result, &error);

    answer(reply->peer, reply->id, facts != NULL ? eb_control_object(facts) : NULL, error);
    reply_free(reply);
}

static void
take_report(EbDaemonControl *self, EbJsonrpc *peer, JsonObject *params, JsonNode *id)
{
    g_autoptr(GError) error = NULL;

    eb_daemon_health_report(self->health, params, &error);
    answer(peer, id, NULL, error);
}

static gboolean
request(EbControlServer *server, EbJsonrpc *peer, const char *method, JsonObject *params, JsonNode *id,
        gpointer user_data)
{
    EbDaemonControl *self = user_data;
    const char *session = eb_json_get_string(params, "id");

    if (strcmp(method, "status") == 0)
        eb_jsonrpc_reply(peer, id, status_json(self));
    else if (strcmp(method, "plugins.list") == 0)
        eb_jsonrpc_reply(peer, id, eb_daemon_plugins_json(self->registry));
    else if (strcmp(method, "sessions.list") == 0)
        eb_jsonrpc_reply(peer, id, eb_session_manager_list_json(self->manager));
    else if (strcmp(method, "health.check") == 0)
        eb_daemon_health_check_async(self->health, NULL, health_checked, reply_new(peer, id));
    else if (strcmp(method, "doctor.facts") == 0)
        eb_session_manager_facts_async(self->manager, NULL, facts_gathered, reply_new(peer, id));
    else if (strcmp(method, "watchdog.report") == 0)
        take_report(self, peer, params, id);
    else if (strcmp(method, "prompt") == 0)
        prompt(self, peer, params, id);
    else if (strcmp(method, "interrupt") == 0)
        interrupt(self, peer, params, id);
    else if (eb_daemon_maint_request(self->manager, peer, method, params, id))
        return TRUE;
    else if (session == NULL && g_str_has_prefix(method, "sessions."))
        eb_jsonrpc_reply_error(peer, id, EB_JSONRPC_INVALID_PARAMS, "id is missing");
    else
        return session != NULL && session_request(self, peer, method, params, id);
    return TRUE;
}

static void
gone(EbControlServer *server, EbJsonrpc *peer, gpointer user_data)
{
    EbDaemonControl *self = user_data;
    eb_control_transport_forget(self->transport, peer);
}

static void
turn_ended(EbSessionManager *manager, const char *session, const char *thread, const char *stop_reason, GError *error,
           gpointer user_data)
{
    EbDaemonControl *self = user_data;
    eb_control_transport_ended(self->transport, thread, session, stop_reason, error);
}

/* Only ends with an error are news: a start that failed, a session that broke in its turn. */
static void
session_ended(EbSessionManager *manager, const char *session, const char *thread, const char *reason, GError *error,
              gpointer user_data)
{
    EbDaemonControl *self = user_data;
    if (error != NULL)
        eb_control_transport_ended(self->transport, thread, session, NULL, error);
}

EbDaemonControl *
eb_daemon_control_new(EbConfig *config, EbSessionManager *manager, EbPluginRegistry *registry,
                      EbDaemonTransports *transports, EbDaemonHealth *health, GError **error)
{
    g_autofree char *path = eb_control_path(eb_config_get_state_dir(config));
    EbControlServer *server = eb_control_server_new(path, error);
    EbDaemonControl *self;

    if (server == NULL)
        return NULL;
    self = g_new0(EbDaemonControl, 1);
    self->server = server;
    self->manager = manager;
    self->registry = registry;
    self->transports = transports;
    self->health = health;
    self->transport = eb_control_transport_new();
    self->started = g_get_monotonic_time();
    g_signal_connect(server, "request", G_CALLBACK(request), self);
    g_signal_connect(server, "gone", G_CALLBACK(gone), self);
    g_signal_connect(manager, "turn-ended", G_CALLBACK(turn_ended), self);
    g_signal_connect(manager, "session-ended", G_CALLBACK(session_ended), self);
    eb_session_manager_attach_transport(manager, "control", EB_CHAT_TRANSPORT(self->transport));
    return self;
}

void
eb_daemon_control_free(EbDaemonControl *self)
{
    g_signal_handlers_disconnect_by_data(self->manager, self);
    eb_control_server_close(self->server);
    g_signal_handlers_disconnect_by_data(self->server, self);
    g_object_unref(self->server);
    g_object_unref(self->transport);
    g_free(self);
}
