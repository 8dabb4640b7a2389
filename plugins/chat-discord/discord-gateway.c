/* SPDX-License-Identifier: MIT */
#include "discord-gateway.h"

#include "discord-gateway-file.h"
#include "discord-gateway-queue.h"
#include "discord-gateway-socket.h"

/* Events told in one go before others get their turn. */
#define CHUNK_EVENTS 64
#define CHUNK_US 4000
/* Below what moves the connection, so that a heartbeat never waits for whoever handles events. */
#define CHUNK_PRIORITY (G_PRIORITY_DEFAULT + 10)
#define SAVE_AFTER_MS 5000
#define LOAD_MS 5000
#define STOP_MS 3000
#define ASK_PATIENCE_MS 30000
/* Connections that say goodbye; libsoup gives each 5 s. */
#define CLOSING_MAX 8

struct _DiscordGateway {
    GObject parent_instance;
    const DiscordSite *site;
    DiscordRest *rest; /* (owned) */
    EbSecret *token;   /* (owned) */
    guint intents;
    char *state_path; /* (nullable) */
    DiscordGatewayState *state;
    gboolean pumping;
    gboolean started;
    gboolean up; /* as told */

    SoupSession *session;         /* (owned) */
    DiscordGatewaySocket *socket; /* (nullable) (owned) */
    GPtrArray *closing;           /* (element-type DiscordGatewaySocket), at most CLOSING_MAX */
    GCancellable *cancellable;    /* (owned): of asking and loading */

    GSource *timer;              /* (owned): when the state is due */
    DiscordGatewayFilter filter; /* (nullable) */
    gpointer filter_data;
    DiscordGatewayQueue queue;
    gboolean full;
    GSource *teller; /* (owned): tells what is queued */

    GSource *save_timer; /* (nullable) */
    GSource *load_timer; /* (nullable) */
    gboolean saving;
    gboolean save_again;
    gboolean save_warned;
    GTask *stopping;      /* (nullable) */
    GSource *stop_timer;  /* (nullable) */
    GSource *stop_cancel; /* (nullable) */
};

enum { READY, DISPATCH, DOWN, FAILED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(DiscordGateway, discord_gateway, G_TYPE_OBJECT)

static void pump(DiscordGateway *self);

static DiscordGatewayClock
clock_now(void)
{
    return (DiscordGatewayClock){g_get_monotonic_time() / 1000, g_get_real_time() / 1000};
}

/* --- sources --- */

static gboolean
ready_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    g_source_set_ready_time(source, -1);
    return callback(user_data);
}

/* A source that is ready when its ready time has come, and only then. */
static GSource *
ready_source(GSourceFunc func, gpointer user_data)
{
    static GSourceFuncs funcs = {.dispatch = ready_dispatch};
    GSource *source = g_source_new(&funcs, sizeof(GSource));
    g_source_set_priority(source, G_PRIORITY_HIGH);
    g_source_set_callback(source, func, user_data, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

static GSource *
timeout_source(guint ms, GSourceFunc func, gpointer user_data)
{
    GSource *source = g_timeout_source_new(ms);
    g_source_set_callback(source, func, user_data, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

static void
clear_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

/* --- the end --- */

static void
finish_stop(DiscordGateway *self, gboolean in_time)
{
    GTask *task = g_steal_pointer(&self->stopping);
    clear_source(&self->stop_timer);
    clear_source(&self->stop_cancel);
    if (task == NULL)
        return;
    while (self->closing->len > 0) {
        discord_gateway_socket_drop(self->closing->pdata[0]);
        g_ptr_array_remove_index(self->closing, 0);
    }
    if (!g_task_return_error_if_cancelled(task)) {
        if (in_time)
            g_task_return_boolean(task, TRUE);
        else
            g_task_return_error(task, eb_error_new(EB_ERROR_TIMEOUT, NULL, "the gateway's goodbye took too long"));
    }
    g_object_unref(task);
}

static void
check_stop(DiscordGateway *self)
{
    if (self->stopping != NULL && !self->saving && self->closing->len == 0)
        finish_stop(self, TRUE);
}

static gboolean
on_stop_over(gpointer user_data)
{
    finish_stop(user_data, FALSE);
    return G_SOURCE_REMOVE;
}

static gboolean
on_stop_cancelled(GCancellable *cancellable, gpointer user_data)
{
    finish_stop(user_data, FALSE);
    return G_SOURCE_REMOVE;
}

/* --- the file --- */

static void save(DiscordGateway *self);

static void
saved(DiscordGateway *self)
{
    discord_gateway_state_saved(self->state, clock_now());
    pump(self);
    check_stop(self);
}

static void
on_saved(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordGateway) self = user_data;
    g_autoptr(GError) error = NULL;

    self->saving = FALSE;
    if (!discord_gateway_file_save_finish(result, &error)) {
        if (!self->save_warned)
            eb_warning("gateway: %s cannot be written: %s; after a restart what was missed is read back instead of "
                       "being resumed",
                       self->state_path, error->message);
        self->save_warned = TRUE;
    }
    if (self->save_again) {
        self->save_again = FALSE;
        save(self);
        return;
    }
    saved(self);
}

static void
save(DiscordGateway *self)
{
    clear_source(&self->save_timer);
    if (self->saving) {
        self->save_again = TRUE;
        return;
    }
    if (self->state_path == NULL) {
        saved(self);
        return;
    }
    g_autofree char *text = discord_gateway_state_write(self->state, clock_now());
    self->saving = TRUE;
    discord_gateway_file_save_async(self->state_path, text, NULL, on_saved, g_object_ref(self));
}

static gboolean
on_save_due(gpointer user_data)
{
    save(user_data);
    return G_SOURCE_REMOVE;
}

/* --- telling --- */

/* (transfer full) (nullable): the data of an event that somebody wants. */
static JsonNode *
decode(DiscordGateway *self, const DiscordGatewayItem *item)
{
    const char *text = item->payload != NULL ? g_bytes_get_data(item->payload, NULL) : NULL;

    if (item->tell != DISCORD_GATEWAY_TELL_EVENT && item->tell != DISCORD_GATEWAY_TELL_READY)
        return NULL;
    if (item->tell == DISCORD_GATEWAY_TELL_EVENT && self->filter != NULL &&
        !self->filter(&item->frame, text, self->filter_data))
        return NULL;
    return discord_gateway_frame_parse(text, &item->frame);
}

static void
tell(DiscordGateway *self, DiscordGatewayItem *item)
{
    g_autoptr(JsonNode) node = decode(self, item);
    JsonObject *data = eb_json_node_object(node);

    switch (item->tell) {
    case DISCORD_GATEWAY_TELL_EVENT:
        if (data != NULL)
            g_signal_emit(self, signals[DISPATCH], 0, item->frame.type, data);
        break;
    case DISCORD_GATEWAY_TELL_READY:
    case DISCORD_GATEWAY_TELL_RESUMED:
        self->up = TRUE;
        g_signal_emit(self, signals[READY], 0, item->tell == DISCORD_GATEWAY_TELL_RESUMED, data);
        break;
    case DISCORD_GATEWAY_TELL_DOWN:
        self->up = FALSE;
        g_signal_emit(self, signals[DOWN], 0, item->text);
        break;
    case DISCORD_GATEWAY_TELL_FAILED:
        self->up = FALSE;
        g_signal_emit(self, signals[FAILED], 0, item->error);
        break;
    }
    if (discord_gateway_state_handled(self->state, item->epoch, item->frame.seq) && self->save_timer == NULL &&
        self->stopping == NULL)
        self->save_timer = timeout_source(SAVE_AFTER_MS, on_save_due, self);
}

typedef struct {
    GSource source;
    DiscordGateway *gateway; /* (unowned) */
} Teller;

/* Looked at in every turn of the main loop: waking it with each event would cost more than most events do. */
static gboolean
teller_prepare(GSource *source, int *timeout)
{
    *timeout = -1;
    return !g_queue_is_empty(&((Teller *)source)->gateway->queue.items);
}

static gboolean
teller_check(GSource *source)
{
    return !g_queue_is_empty(&((Teller *)source)->gateway->queue.items);
}

static gboolean
teller_dispatch(GSource *source, GSourceFunc callback, gpointer user_data)
{
    g_autoptr(DiscordGateway) self = g_object_ref(((Teller *)source)->gateway);
    gint64 until = g_get_monotonic_time() + CHUNK_US;
    DiscordGatewayItem *item;

    for (guint i = 0; i < CHUNK_EVENTS && (item = discord_gateway_queue_pop(&self->queue)) != NULL; i++) {
        tell(self, item);
        discord_gateway_item_free(item);
        if (g_get_monotonic_time() >= until)
            break;
    }
    if (self->full && discord_gateway_queue_is_low(&self->queue)) {
        self->full = FALSE;
        discord_gateway_state_drained(self->state, clock_now());
        pump(self);
    }
    return G_SOURCE_CONTINUE;
}

static GSource *
teller_new(DiscordGateway *self)
{
    static GSourceFuncs funcs = {teller_prepare, teller_check, teller_dispatch, NULL, NULL, NULL};
    GSource *source = g_source_new(&funcs, sizeof(Teller));
    ((Teller *)source)->gateway = self;
    g_source_set_priority(source, CHUNK_PRIORITY);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

static DiscordGatewayItem *
queue_item(DiscordGateway *self, DiscordGatewayTell what)
{
    DiscordGatewayItem *item = g_new0(DiscordGatewayItem, 1);
    item->tell = what;
    item->epoch = discord_gateway_state_get_epoch(self->state);
    item->frame.seq = -1;
    return item;
}

/* --- the connection --- */

static void
on_opened(gpointer user_data)
{
    DiscordGateway *self = user_data;
    discord_gateway_state_connected(self->state, clock_now());
    pump(self);
}

static void
on_received(GBytes *payload, gpointer user_data)
{
    static const DiscordGatewayTell tells[] = {
        [DISCORD_GATEWAY_EVENT] = DISCORD_GATEWAY_TELL_EVENT,
        [DISCORD_GATEWAY_READY] = DISCORD_GATEWAY_TELL_READY,
        [DISCORD_GATEWAY_RESUMED] = DISCORD_GATEWAY_TELL_RESUMED,
    };
    DiscordGateway *self = user_data;
    DiscordGatewayClock now = clock_now();
    DiscordGatewayFrame frame;
    gsize length;
    const char *text = g_bytes_get_data(payload, &length);
    DiscordGatewayVerdict verdict = discord_gateway_state_receive(self->state, text, length, &frame, now);

    if (verdict != DISCORD_GATEWAY_NO_EVENT) {
        DiscordGatewayItem *item = queue_item(self, tells[verdict]);
        item->frame = frame;
        item->payload = g_bytes_ref(payload);
        discord_gateway_queue_push(&self->queue, item);
        if (discord_gateway_queue_is_full(&self->queue)) {
            self->full = TRUE;
            discord_gateway_state_full(self->state, now);
        }
    }
    pump(self);
}

/* (transfer none) (nullable): the connection, which is only kept until its goodbye is said. */
static DiscordGatewaySocket *
retire_socket(DiscordGateway *self)
{
    DiscordGatewaySocket *socket = g_steal_pointer(&self->socket);
    if (socket == NULL)
        return NULL;
    if (self->closing->len >= CLOSING_MAX) {
        discord_gateway_socket_drop(self->closing->pdata[0]);
        g_ptr_array_remove_index(self->closing, 0);
    }
    g_ptr_array_add(self->closing, socket);
    return socket;
}

static void
on_closed(guint code, const char *why, gpointer user_data)
{
    DiscordGateway *self = user_data;
    if (retire_socket(self) != NULL)
        discord_gateway_state_closed(self->state, code, why, clock_now());
    pump(self);
}

static void
on_gone(DiscordGatewaySocket *socket, gpointer user_data)
{
    DiscordGateway *self = user_data;
    g_ptr_array_remove(self->closing, socket);
    check_stop(self);
}

static const DiscordGatewaySocketFuncs socket_funcs = {on_opened, on_received, on_closed, on_gone};

static void
on_told(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordGateway) self = user_data;
    g_auto(DiscordGatewayInfo) info = {NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) answer = discord_rest_send_finish(DISCORD_REST(source), result, &error);

    if (answer != NULL && discord_gateway_info_read(eb_json_node_object(answer), &info, &error))
        discord_gateway_state_told(self->state, &info, clock_now());
    else
        discord_gateway_state_untold(self->state, error, clock_now());
    pump(self);
}

static void
ask(DiscordGateway *self)
{
    DiscordRequest *request = discord_request_new("GET", "/gateway/bot", NULL, "/gateway/bot");
    request->repeatable = TRUE;
    request->patience_ms = ASK_PATIENCE_MS;
    discord_rest_send_async(self->rest, request, self->cancellable, on_told, g_object_ref(self));
}

static void
perform(DiscordGateway *self, DiscordGatewayAction *action)
{
    g_auto(DiscordGatewayPayload) payload = {.length = 0};
    DiscordGatewaySocket *socket;
    DiscordGatewayItem *item;

    switch (action->what) {
    case DISCORD_GATEWAY_DO_NOTHING:
        break;
    case DISCORD_GATEWAY_DO_ASK:
        ask(self);
        break;
    case DISCORD_GATEWAY_DO_CONNECT:
        g_warn_if_fail(self->socket == NULL);
        self->socket = discord_gateway_socket_open(self->session, action->text, &socket_funcs, self);
        break;
    case DISCORD_GATEWAY_DO_CLOSE:
        socket = retire_socket(self);
        if (socket != NULL)
            discord_gateway_socket_close(socket, action->code);
        break;
    case DISCORD_GATEWAY_DO_SAVE:
        save(self);
        break;
    case DISCORD_GATEWAY_DO_HEARTBEAT:
        discord_gateway_payload_heartbeat(&payload, action->seq);
        break;
    case DISCORD_GATEWAY_DO_IDENTIFY:
        discord_gateway_payload_identify(&payload, self->token, self->intents);
        break;
    case DISCORD_GATEWAY_DO_RESUME:
        discord_gateway_payload_resume(&payload, self->token, action->text, action->seq);
        break;
    case DISCORD_GATEWAY_DO_DOWN:
        item = queue_item(self, DISCORD_GATEWAY_TELL_DOWN);
        item->text = g_steal_pointer(&action->text);
        discord_gateway_queue_push(&self->queue, item);
        break;
    case DISCORD_GATEWAY_DO_LOG:
        eb_log_event(action->level, G_LOG_DOMAIN, action->text, "EB_PLUGIN", "chat-discord", NULL);
        break;
    case DISCORD_GATEWAY_DO_FAIL:
        item = queue_item(self, DISCORD_GATEWAY_TELL_FAILED);
        item->error = g_steal_pointer(&action->error);
        discord_gateway_queue_push(&self->queue, item);
        break;
    }
    if (payload.length > 0 && self->socket != NULL)
        discord_gateway_socket_send(self->socket, &payload);
}

/* Does what the state wants done. What is done may change the state again, so it is asked until it wants nothing. */
static void
pump(DiscordGateway *self)
{
    DiscordGatewayAction next;

    if (self->pumping)
        return;
    self->pumping = TRUE;
    while (discord_gateway_state_next(self->state, &next)) {
        g_auto(DiscordGatewayAction) action = next;
        perform(self, &action);
    }
    self->pumping = FALSE;
    gint64 due = discord_gateway_state_get_due(self->state);
    g_source_set_ready_time(self->timer, due < G_MAXINT64 / 1000 ? due * 1000 : -1);
}

static gboolean
on_due(gpointer user_data)
{
    g_autoptr(DiscordGateway) self = g_object_ref(user_data);
    discord_gateway_state_tick(self->state, clock_now());
    pump(self);
    return G_SOURCE_CONTINUE;
}

/* --- the object --- */

static void
discord_gateway_dispose(GObject *object)
{
    DiscordGateway *self = DISCORD_GATEWAY(object);

    g_cancellable_cancel(self->cancellable);
    if (self->socket != NULL)
        discord_gateway_socket_drop(self->socket);
    g_clear_object(&self->socket);
    for (guint i = 0; i < self->closing->len; i++)
        discord_gateway_socket_drop(self->closing->pdata[i]);
    g_ptr_array_set_size(self->closing, 0);
    clear_source(&self->timer);
    clear_source(&self->teller);
    clear_source(&self->save_timer);
    clear_source(&self->load_timer);
    clear_source(&self->stop_timer);
    clear_source(&self->stop_cancel);
    discord_gateway_queue_clear(&self->queue);
    g_clear_object(&self->session);
    g_clear_object(&self->rest);
    G_OBJECT_CLASS(discord_gateway_parent_class)->dispose(object);
}

static void
discord_gateway_finalize(GObject *object)
{
    DiscordGateway *self = DISCORD_GATEWAY(object);

    discord_gateway_state_free(self->state);
    g_ptr_array_unref(self->closing);
    g_object_unref(self->cancellable);
    eb_secret_unref(self->token);
    g_free(self->state_path);
    G_OBJECT_CLASS(discord_gateway_parent_class)->finalize(object);
}

static void
discord_gateway_class_init(DiscordGatewayClass *klass)
{
    const GType text = G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE;
    const GType object = JSON_TYPE_OBJECT | G_SIGNAL_TYPE_STATIC_SCOPE;
    const GType type = G_TYPE_FROM_CLASS(klass);

    G_OBJECT_CLASS(klass)->dispose = discord_gateway_dispose;
    G_OBJECT_CLASS(klass)->finalize = discord_gateway_finalize;
    signals[READY] =
        g_signal_new("ready", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2, G_TYPE_BOOLEAN, object);
    signals[DISPATCH] =
        g_signal_new("dispatch", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2, text, object);
    signals[DOWN] = g_signal_new("down", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1, text);
    signals[FAILED] = g_signal_new("failed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                                   G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE);
}

static void
discord_gateway_init(DiscordGateway *self)
{
    self->closing = g_ptr_array_new_with_free_func(g_object_unref);
    self->cancellable = g_cancellable_new();
    self->timer = ready_source(on_due, self);
    self->teller = teller_new(self);
}

DiscordGateway *
discord_gateway_new(const DiscordSite *site, DiscordRest *rest, EbSecret *token, guint intents, const char *state_path)
{
    DiscordGateway *self = g_object_new(DISCORD_TYPE_GATEWAY, NULL);
    self->site = site;
    self->rest = g_object_ref(rest);
    self->token = eb_secret_ref(token);
    self->intents = intents;
    self->state_path = g_strdup(state_path);
    self->state = discord_gateway_state_new(site, intents, g_random_int());
    self->session = discord_gateway_socket_session(site->mock);
    return self;
}

static void
start(DiscordGateway *self)
{
    discord_gateway_state_start(self->state, clock_now());
    pump(self);
}

static void
on_loaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(DiscordGateway) self = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = discord_gateway_file_load_finish(result, &error);
    gsize length = 0;
    const char *text = bytes != NULL ? g_bytes_get_data(bytes, &length) : NULL;

    clear_source(&self->load_timer);
    if (discord_gateway_state_get_phase(self->state) != DISCORD_GATEWAY_IDLE)
        return;
    if (bytes == NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        eb_warning("gateway: %s is not used: %s", self->state_path, error->message);
    else if (length > 0 && !discord_gateway_state_load(self->state, text, length, clock_now()))
        eb_warning("gateway: %s is not used: it is not a file of this program's", self->state_path);
    start(self);
}

static gboolean
on_load_over(gpointer user_data)
{
    DiscordGateway *self = user_data;
    g_cancellable_cancel(self->cancellable);
    g_object_unref(self->cancellable);
    self->cancellable = g_cancellable_new();
    return G_SOURCE_REMOVE;
}

void
discord_gateway_start(DiscordGateway *self)
{
    g_auto(DiscordGatewayPayload) payload = {.length = 0};

    if (self->started)
        return;
    self->started = TRUE;
    discord_gateway_payload_identify(&payload, self->token, self->intents);
    if (payload.bad) {
        DiscordGatewayItem *item = queue_item(self, DISCORD_GATEWAY_TELL_FAILED);
        item->error = eb_error_new(EB_ERROR_CONFIG, "discord.token",
                                   "the bot token cannot be one: it is too long, or has blanks or other characters in "
                                   "it: store it again with errand-box creds set %s",
                                   eb_secret_get_label(self->token));
        discord_gateway_queue_push(&self->queue, item);
        return;
    }
    if (self->state_path == NULL) {
        start(self);
        return;
    }
    self->load_timer = timeout_source(LOAD_MS, on_load_over, self);
    discord_gateway_file_load_async(self->state_path, DISCORD_GATEWAY_SAVED_MAX, self->cancellable, on_loaded,
                                    g_object_ref(self));
}

void
discord_gateway_stop_async(DiscordGateway *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, discord_gateway_stop_async);
    if (self->stopping != NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_BUSY, NULL, "the gateway is being stopped already"));
        g_object_unref(task);
        return;
    }
    self->started = TRUE;
    self->stopping = task;
    self->stop_timer = timeout_source(STOP_MS, on_stop_over, self);
    if (cancellable != NULL) {
        self->stop_cancel = g_cancellable_source_new(cancellable);
        g_source_set_callback(self->stop_cancel, G_SOURCE_FUNC(on_stop_cancelled), self, NULL);
        g_source_attach(self->stop_cancel, g_main_context_get_thread_default());
    }
    discord_gateway_queue_clear(&self->queue);
    self->up = FALSE;
    discord_gateway_state_stop(self->state, clock_now());
    pump(self);
    g_cancellable_cancel(self->cancellable);
    check_stop(self);
}

gboolean
discord_gateway_stop_finish(DiscordGateway *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}

void
discord_gateway_set_filter(DiscordGateway *self, DiscordGatewayFilter filter, gpointer user_data)
{
    self->filter = filter;
    self->filter_data = user_data;
}

gboolean
discord_gateway_is_up(DiscordGateway *self)
{
    return self->up;
}
