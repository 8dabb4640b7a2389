/* SPDX-License-Identifier: MIT */

#include "ds-gateway.h"

#include "ds-record.h"
#include "ds-socket.h"

#include <string.h>

#define MAX_PAYLOAD 4096
#define MAX_SENDS 120
#define SENDS_WINDOW_US (60 * G_USEC_PER_SEC)
#define MAX_SESSIONS 64

enum {
    OP_DISPATCH,
    OP_HEARTBEAT,
    OP_IDENTIFY,
    OP_PRESENCE,
    OP_VOICE,
    OP_RESUME = 6,
    OP_RECONNECT,
    OP_MEMBERS,
    OP_INVALID,
    OP_HELLO,
    OP_ACK
};

struct _DsConnection {
    DsGateway *gateway; /* (unowned) */
    SoupWebsocketConnection *websocket;
    GSocket *socket; /* (nullable) */
    char *path;
    DsSession *session; /* (unowned) (nullable) */
    guint sends;
    gint64 window_us;
    gint64 beat_us;
    guint watch;
    gboolean closing;
};

/* --- sending --- */

void
ds_connection_send(DsConnection *self, const char *text)
{
    if (soup_websocket_connection_get_state(self->websocket) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_send_text(self->websocket, text);
}

static void
send_op(DsConnection *self, int op, JsonNode *data)
{
    g_autoptr(JsonObject) payload = ds_object("i:op", op, "n:s", "n:t", NULL);
    g_autofree char *text = NULL;

    if (data != NULL)
        json_object_set_member(payload, "d", data);
    else
        json_object_set_null_member(payload, "d");
    text = ds_text(payload);
    ds_connection_send(self, text);
}

static JsonNode *
boolean_node(gboolean value)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);

    json_node_set_boolean(node, value);
    return node;
}

static void
note(DsConnection *self, const char *what, int code)
{
    ds_world_log(self->gateway->world, DS_LOG_GATEWAY,
                 ds_object("s:what", what, "s:path", self->path, "i:code", code, "s:session",
                           self->session != NULL ? self->session->id : NULL, NULL));
}

static void
close_with(DsConnection *self, gushort code, const char *reason)
{
    if (self->closing)
        return;
    self->closing = TRUE;
    note(self, "closed-by-us", code);
    if (soup_websocket_connection_get_state(self->websocket) == SOUP_WEBSOCKET_STATE_OPEN)
        soup_websocket_connection_close(self->websocket, code, reason);
}

static void
fault(DsConnection *self, gushort code, const char *rule)
{
    ds_world_violation(self->gateway->world, "gateway", "%s: closed with %u", rule, code);
    close_with(self, code, rule);
}

/* --- sessions --- */

static void
session_free(DsSession *self)
{
    g_free(self->id);
    g_ptr_array_unref(self->kept);
    g_free(self);
}

static DsSession *
find_session(DsGateway *self, const char *id)
{
    for (guint i = 0; i < self->sessions->len; i++) {
        DsSession *session = g_ptr_array_index(self->sessions, i);

        if (g_strcmp0(session->id, id) == 0)
            return session;
    }
    return NULL;
}

static void
attach(DsConnection *self, DsSession *session)
{
    if (session->connection != NULL)
        session->connection->session = NULL;
    session->connection = self;
    self->session = session;
}

static DsSession *
session_new(DsGateway *gateway, gint64 intents)
{
    DsSession *session = g_new0(DsSession, 1);

    /* Those whose connection is gone and that nobody can resume make room. */
    for (guint i = gateway->sessions->len; i > 0; i--) {
        DsSession *old = g_ptr_array_index(gateway->sessions, i - 1);

        if (old->connection == NULL && (old->dead || gateway->sessions->len >= MAX_SESSIONS))
            g_ptr_array_remove_index(gateway->sessions, i - 1);
    }
    session->id = g_strdup_printf("%08x%08x%08x", g_random_int(), g_random_int(), g_random_int());
    session->intents = intents;
    session->kept = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(gateway->sessions, session);
    return session;
}

static void
send_ready(DsConnection *self)
{
    DsGateway *gateway = self->gateway;
    DsWorld *world = gateway->world;
    JsonArray *guilds = json_array_new();
    JsonObject *user = ds_copy(ds_world_user(world, DS_APPLICATION));
    g_autoptr(JsonObject) ready = NULL;
    g_autofree char *resume = gateway->resume_url != NULL
                                  ? g_strdup(gateway->resume_url)
                                  : g_strdup_printf("ws%s/resume", world->origin + strlen("http"));

    if (world->bot_in_guild)
        json_array_add_object_element(guilds, ds_object("s:id", DS_GUILD, "b:unavailable", TRUE, NULL));
    ds_object_set(user, "b:verified", TRUE, "n:email", "b:mfa_enabled", FALSE, NULL);
    ready =
        ds_object("i:v", 10, "o:user", user, "a:guilds", guilds, "s:session_id", self->session->id,
                  "s:resume_gateway_url", resume, "s:session_type", "normal", "a:private_channels", json_array_new(),
                  "a:presences", json_array_new(), "a:relationships", json_array_new(), "a:geo_ordered_rtc_regions",
                  json_array_new(), "o:user_settings", json_object_new(), "a:guild_join_requests", json_array_new(),
                  "o:application", ds_object("s:id", DS_APPLICATION, "l:flags", world->application_flags, NULL),
                  "a:_trace", json_array_new(), NULL);
    ds_session_send(gateway, self->session, "READY", ready);
    ds_world_count(world, "ready");
    if (world->bot_in_guild) {
        g_autoptr(JsonObject) guild = ds_gateway_guild_json(world, TRUE);

        if (self->session->intents & DS_INTENT_GUILDS)
            ds_session_send(gateway, self->session, "GUILD_CREATE", guild);
    }
}

/* What a test wants to happen instead: TRUE when it did. */
static gboolean
answered_otherwise(DsConnection *self, const char *mode)
{
    if (mode == NULL)
        return FALSE;
    if (strcmp(mode, "invalid-true") == 0 || strcmp(mode, "invalid-false") == 0)
        send_op(self, OP_INVALID, boolean_node(strcmp(mode, "invalid-true") == 0));
    else
        close_with(self, (gushort)g_ascii_strtoull(mode, NULL, 10), "as the test wants");
    return TRUE;
}

static gboolean
check_identify(DsConnection *self, JsonObject *data)
{
    DsGateway *gateway = self->gateway;
    DsWorld *world = gateway->world;
    JsonObject *properties = eb_json_get_object(data, "properties");
    const char *token = eb_json_get_string(data, "token");
    const gint64 intents = eb_json_get_int(data, "intents", -1);
    JsonArray *shard = eb_json_get_array(data, "shard");

    if (g_strcmp0(token, world->token) != 0 || world->token_revoked) {
        close_with(self, 4004, "Authentication failed.");
    } else if (eb_json_get_string(properties, "os") == NULL || eb_json_get_string(properties, "browser") == NULL ||
               eb_json_get_string(properties, "device") == NULL) {
        fault(self, 4002, "IDENTIFY without properties");
    } else if (intents < 0 || (intents & ~(gint64)DS_INTENTS_KNOWN) != 0) {
        fault(self, 4013, "invalid intents");
    } else if ((intents & ((1 << 1) | (1 << 8))) != 0 ||
               ((intents & DS_INTENT_CONTENT) != 0 && (world->application_flags & DS_FLAG_CONTENT) == 0)) {
        close_with(self, 4014, "Disallowed intent(s).");
    } else if (shard != NULL && (json_array_get_length(shard) != 2 ||
                                 json_array_get_int_element(shard, 0) >= json_array_get_int_element(shard, 1))) {
        fault(self, 4010, "invalid shard");
    } else if (shard == NULL && gateway->shards > 1) {
        close_with(self, 4011, "Sharding required.");
    } else {
        return TRUE;
    }
    return FALSE;
}

static void
identify(DsConnection *self, JsonObject *data)
{
    DsGateway *gateway = self->gateway;
    const gint64 now = g_get_monotonic_time();
    gboolean too_soon;

    if (self->session != NULL) {
        fault(self, 4005, "already authenticated");
        return;
    }
    ds_world_count(gateway->world, "identifies");
    note(self, "identify", (int)eb_json_get_int(data, "intents", 0));
    if (!check_identify(self, data))
        return;
    if (gateway->remaining == 0) {
        gateway->world->token_revoked = TRUE;
        fault(self, 4004, "IDENTIFY beyond the daily limit: the token is reset");
        return;
    }
    too_soon = gateway->last_identify_us != 0 &&
               now - gateway->last_identify_us < (gint64)gateway->identify_interval_ms * 1000;
    gateway->remaining--;
    gateway->last_identify_us = now;
    if (too_soon) {
        ds_world_count(gateway->world, "identified_too_soon");
        send_op(self, OP_INVALID, boolean_node(FALSE));
        return;
    }
    if (gateway->no_ready || answered_otherwise(self, gateway->identify))
        return;
    attach(self, session_new(gateway, eb_json_get_int(data, "intents", 0)));
    send_ready(self);
}

static void
resume(DsConnection *self, JsonObject *data)
{
    DsGateway *gateway = self->gateway;
    DsSession *session = find_session(gateway, eb_json_get_string(data, "session_id"));
    const gint64 seq = eb_json_get_int(data, "seq", -1);
    g_autoptr(JsonObject) empty = json_object_new();

    if (self->session != NULL) {
        fault(self, 4005, "already authenticated");
        return;
    }
    ds_world_count(gateway->world, "resumes");
    note(self, "resume", (int)seq);
    if (g_strcmp0(eb_json_get_string(data, "token"), gateway->world->token) != 0 || gateway->world->token_revoked) {
        close_with(self, 4004, "Authentication failed.");
        return;
    }
    if (!g_str_has_prefix(self->path, "/resume"))
        ds_world_count(gateway->world, "resumed_elsewhere"); /* allowed, but not for long */
    if (answered_otherwise(self, gateway->resume))
        return;
    if (session == NULL || session->dead ||
        (session->connection == NULL &&
         g_get_monotonic_time() - session->lost_us > (gint64)gateway->resume_window_ms * 1000)) {
        send_op(self, OP_INVALID, boolean_node(FALSE));
        return;
    }
    if (seq < 0 || (guint64)seq > session->seq || (guint64)seq + 1 < session->first_kept) {
        fault(self, 4007, "invalid seq");
        return;
    }
    attach(self, session);
    for (guint64 at = (guint64)seq + 1; at <= session->seq; at++)
        ds_connection_send(self, g_ptr_array_index(session->kept, at - session->first_kept));
    ds_session_send(gateway, session, "RESUMED", empty);
    ds_world_count(gateway->world, "resumed");
}

/* --- what comes in --- */

static void
heartbeat(DsConnection *self, JsonNode *data)
{
    ds_world_count(self->gateway->world, "heartbeats");
    if (data != NULL && !JSON_NODE_HOLDS_NULL(data) &&
        (!JSON_NODE_HOLDS_VALUE(data) || json_node_get_value_type(data) != G_TYPE_INT64)) {
        fault(self, 4002, "a heartbeat that is no number");
        return;
    }
    if (self->session != NULL && data != NULL && !JSON_NODE_HOLDS_NULL(data) &&
        (guint64)json_node_get_int(data) > self->session->seq) {
        fault(self, 4007, "a heartbeat with a sequence that never was");
        return;
    }
    self->beat_us = g_get_monotonic_time();
    if (!self->gateway->no_ack)
        send_op(self, OP_ACK, NULL);
}

static gboolean
count_send(DsConnection *self)
{
    const gint64 now = g_get_monotonic_time();

    if (now - self->window_us > SENDS_WINDOW_US) {
        self->window_us = now;
        self->sends = 0;
    }
    if (++self->sends <= MAX_SENDS)
        return TRUE;
    fault(self, 4008, "over 120 sends in 60 s");
    return FALSE;
}

static void
on_message(SoupWebsocketConnection *websocket, gint type, GBytes *bytes, gpointer user_data)
{
    DsConnection *self = user_data;
    gsize length = 0;
    const char *text = g_bytes_get_data(bytes, &length);
    g_autoptr(JsonNode) node = NULL;
    JsonObject *payload;

    ds_record_frame(self->gateway->world, text, length);
    if (self->closing || self->gateway->world->silent || !count_send(self))
        return;
    node = length <= MAX_PAYLOAD ? eb_json_parse(text, length, NULL, NULL) : NULL;
    payload = eb_json_node_object(node);
    if (payload == NULL) {
        fault(self, 4002, length > MAX_PAYLOAD ? "over 4096 bytes" : "not JSON");
        return;
    }
    switch (eb_json_get_int(payload, "op", -1)) {
    case OP_HEARTBEAT:
        heartbeat(self, eb_json_get_node(payload, "d"));
        break;
    case OP_IDENTIFY:
        identify(self, eb_json_get_object(payload, "d"));
        break;
    case OP_RESUME:
        resume(self, eb_json_get_object(payload, "d"));
        break;
    case OP_PRESENCE:
    case OP_VOICE:
    case OP_MEMBERS:
        if (self->session == NULL)
            fault(self, 4003, "not authenticated");
        break;
    default:
        fault(self, 4001, "unknown opcode");
    }
}

static void
on_closed(SoupWebsocketConnection *websocket, gpointer user_data)
{
    DsConnection *self = user_data;
    const gushort code = soup_websocket_connection_get_close_code(websocket);

    if (!self->closing)
        note(self, "closed", code);
    if (self->session != NULL) {
        self->session->connection = NULL;
        self->session->lost_us = g_get_monotonic_time();
        if (!self->closing && (code == 1000 || code == 1001))
            self->session->dead = TRUE;
    }
    ds_world_changed(self->gateway->world);
    g_ptr_array_remove(self->gateway->connections, self);
}

static void
connection_free(DsConnection *self)
{
    g_signal_handlers_disconnect_by_data(self->websocket, self);
    if (self->watch != 0)
        g_source_remove(self->watch);
    if (self->session != NULL)
        self->session->connection = NULL;
    g_clear_object(&self->websocket);
    g_clear_object(&self->socket);
    g_free(self->path);
    g_free(self);
}

static gboolean
on_watch(gpointer user_data)
{
    DsConnection *self = user_data;

    if (g_get_monotonic_time() - self->beat_us < (gint64)self->gateway->heartbeat_ms * 2500)
        return G_SOURCE_CONTINUE;
    self->watch = 0;
    ds_world_count(self->gateway->world, "heartbeat_timeouts");
    close_with(self, 4009, "Session timed out.");
    return G_SOURCE_REMOVE;
}

void
ds_gateway_accept(DsGateway *self, SoupServerMessage *message, const char *path, SoupWebsocketConnection *websocket)
{
    DsConnection *connection = g_new0(DsConnection, 1);
    GSocketAddress *remote = soup_server_message_get_remote_address(message);
    GSocket *socket = remote != NULL ? g_object_get_data(G_OBJECT(remote), DS_SOCKET_KEY) : NULL;
    const char *query = g_uri_get_query(soup_server_message_get_uri(message));
    g_autoptr(GHashTable) params = query != NULL ? soup_form_decode(query) : g_hash_table_new(g_str_hash, g_str_equal);

    connection->gateway = self;
    connection->websocket = g_object_ref(websocket);
    connection->socket = socket != NULL ? g_object_ref(socket) : NULL;
    connection->path = g_strdup(path);
    connection->window_us = g_get_monotonic_time();
    connection->beat_us = connection->window_us;
    g_ptr_array_add(self->connections, connection);
    g_signal_connect(websocket, "message", G_CALLBACK(on_message), connection);
    g_signal_connect(websocket, "closed", G_CALLBACK(on_closed), connection);
    ds_world_count(self->world, "connections");
    note(connection, "connect", 0);
    if (g_strcmp0(g_hash_table_lookup(params, "v"), "10") != 0) {
        fault(connection, 4012, "not version 10");
        return;
    }
    if (g_strcmp0(g_hash_table_lookup(params, "encoding"), "json") != 0) {
        fault(connection, 4002, "encoding is not json");
        return;
    }
    connection->watch = g_timeout_add(MAX(self->heartbeat_ms / 4, 20), on_watch, connection);
    if (!self->no_hello && !self->world->silent)
        send_op(connection, OP_HELLO, ds_take(ds_object("i:heartbeat_interval", (int)self->heartbeat_ms, NULL)));
}

/* --- the whole --- */

static void
event_fault_free(DsEventFault *self)
{
    g_free(self->type);
    g_free(self->kind);
    g_free(self);
}

DsGateway *
ds_gateway_new(DsWorld *world)
{
    DsGateway *self = g_new0(DsGateway, 1);

    self->world = world;
    self->sessions = g_ptr_array_new_with_free_func((GDestroyNotify)session_free);
    self->connections = g_ptr_array_new_with_free_func((GDestroyNotify)connection_free);
    self->held = g_ptr_array_new_with_free_func((GDestroyNotify)ds_event_free);
    self->faults = g_ptr_array_new_with_free_func((GDestroyNotify)event_fault_free);
    self->heartbeat_ms = 41250;
    self->shards = 1;
    self->total = 1000;
    self->remaining = 1000;
    self->reset_after_ms = 14400000;
    self->identify_interval_ms = 5000;
    self->resume_window_ms = 90000;
    return self;
}

void
ds_gateway_free(DsGateway *self)
{
    g_ptr_array_unref(self->connections);
    g_ptr_array_unref(self->sessions);
    g_ptr_array_unref(self->held);
    g_clear_pointer(&self->paused, g_ptr_array_unref);
    g_ptr_array_unref(self->faults);
    g_free(self->url);
    g_free(self->resume_url);
    g_free(self->resume);
    g_free(self->identify);
    g_free(self);
}

char *
ds_gateway_get_url(DsGateway *self)
{
    return self->url != NULL ? g_strdup(self->url)
                             : g_strdup_printf("ws%s/gateway", self->world->origin + strlen("http"));
}

guint
ds_gateway_get_shards(DsGateway *self)
{
    return self->shards;
}

JsonObject *
ds_gateway_start_limit(DsGateway *self)
{
    return ds_object("i:total", (int)self->total, "i:remaining", (int)self->remaining, "i:reset_after",
                     (int)self->reset_after_ms, "i:max_concurrency", 1, NULL);
}

guint
ds_gateway_drop(DsGateway *self, guint code)
{
    g_autoptr(GPtrArray) now = g_ptr_array_new(); /* a copy would own them too */

    g_ptr_array_extend(now, self->connections, NULL, NULL);
    for (guint i = 0; i < now->len; i++) {
        DsConnection *connection = g_ptr_array_index(now, i);

        if (code >= 1000)
            close_with(connection, (gushort)code, "dropped");
        else if (connection->socket == NULL)
            continue;
        else if (code == 1)
            g_socket_shutdown(connection->socket, TRUE, TRUE, NULL);
        else
            ds_socket_reset(connection->socket);
    }
    return now->len;
}

void
ds_gateway_send_op(DsGateway *self, int op, JsonNode *data)
{
    for (guint i = 0; i < self->connections->len; i++) {
        DsConnection *connection = g_ptr_array_index(self->connections, i);

        send_op(connection, op, data != NULL ? json_node_copy(data) : NULL);
    }
    g_clear_pointer(&data, json_node_unref);
}

void
ds_gateway_forget(DsGateway *self)
{
    for (guint i = 0; i < self->sessions->len; i++)
        ((DsSession *)g_ptr_array_index(self->sessions, i))->dead = TRUE;
}

guint
ds_gateway_count(DsGateway *self, gboolean ready)
{
    guint n = 0;

    for (guint i = 0; i < self->connections->len; i++) {
        if (!ready || ((DsConnection *)g_ptr_array_index(self->connections, i))->session != NULL)
            n++;
    }
    return n;
}
