/* SPDX-License-Identifier: MIT */
#include "discord-rest.h"

#include <string.h>

#include "discord-buckets.h"
#include "discord-download.h"
#include "discord-exchange.h"
#include "discord-multipart.h"

/* Times one request is sent: once, and again after a 5xx or a broken connection. */
#define MAX_FAILURES 3
/* Times one request is limited before it is given back: each one counts against the budget of refused requests. */
#define MAX_LIMITED 10
#define BACKOFF_MS 1000
#define JITTER_MS 250
/* One exchange may take this long, and longer by what its body needs on a slow line. */
#define TIMEOUT_MS 15000
#define SLOWEST_BYTES_PER_S (64 * 1024)
/* A wait from which people are told. */
#define LIMITED_US (5 * G_USEC_PER_SEC)
#define WAKE_NEVER G_MAXINT64

/* One request, from the call to its callback. It keeps its place in the queue while it is under way, so that one that is
 * sent again is still before those that came after it. */
typedef struct {
    DiscordRest *rest; /* (unowned): the task holds it */
    DiscordRequest *request;
    GTask *task; /* (owned) */
    GList *link; /* in rest->items */
    DiscordLane *lane;
    GUri *uri;
    GBytes *body; /* (nullable) */
    char *content_type;
    char *what; /* "POST /channels/{c}/messages", for messages */
    SoupMessage *message;
    GCancellable *flight; /* (nullable): set while it is under way */
    GSource *caller;      /* (nullable): fires when the caller cancels */
    GSource *patience;    /* (nullable) */
    GError *ending;       /* (nullable): why it ends as soon as what is under way is over */
    gint64 not_before;
    gint64 told_until; /* the wait that "limited" has told of */
    guint failures;
    guint limited;
    gboolean done;
} Item;

struct _DiscordRest {
    GObject parent_instance;
    const DiscordSite *site; /* (unowned) */
    EbSecret *token;
    SoupSession *session;
    DiscordBuckets *buckets;
    GQueue items;     /* Item, in the order of the calls */
    GSource *wake;    /* pumps when its time has come */
    gint64 wake_time; /* of our clock; WAKE_NEVER = not armed */
    gint64 speed;     /* of our clock; 1 but in tests */
    GHashTable *blocked;
    GCancellable *downloads; /* cancelled by close */
    guint n_downloads;
    gboolean closed;
};

G_DEFINE_FINAL_TYPE(DiscordRest, discord_rest, G_TYPE_OBJECT)

enum { SIGNAL_UNAUTHORIZED, SIGNAL_LIMITED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void pump(DiscordRest *self);

/* --- requests --- */

DiscordRequest *
discord_request_new(const char *method, const char *route, const char *major, const char *path_format, ...)
{
    DiscordRequest *self = g_new0(DiscordRequest, 1);
    va_list args;
    va_start(args, path_format);
    self->method = method;
    self->route = route;
    self->path = g_strdup_vprintf(path_format, args);
    self->major = g_strdup(major);
    self->repeatable = !g_str_equal(method, "POST");
    va_end(args);
    return self;
}

void
discord_request_free(DiscordRequest *self)
{
    if (self == NULL)
        return;
    g_free(self->path);
    g_free(self->major);
    g_clear_pointer(&self->body, json_node_unref);
    g_clear_pointer(&self->files, g_ptr_array_unref);
    g_free(self);
}

guint
discord_error_code(const GError *error)
{
    const char *reason = error != NULL ? eb_error_get_reason(error) : NULL;
    guint64 code;
    if (reason == NULL || !g_str_has_prefix(reason, "discord.") ||
        !g_ascii_string_to_unsigned(reason + strlen("discord."), 10, 1, G_MAXINT32, &code, NULL))
        return 0;
    return (guint)code;
}

/* --- waking --- */

static gint64
time_now(DiscordRest *self)
{
    return g_get_monotonic_time() * self->speed;
}

void
discord_rest_set_speed(DiscordRest *self, guint speed)
{
    self->speed = speed;
}

static gboolean
on_wake(GSource *source, GSourceFunc callback, gpointer user_data)
{
    g_source_set_ready_time(source, -1);
    return callback(user_data);
}

static GSourceFuncs wake_funcs = {.dispatch = on_wake};

static gboolean
on_time(gpointer user_data)
{
    DiscordRest *self = user_data;
    self->wake_time = WAKE_NEVER;
    pump(self);
    return G_SOURCE_CONTINUE;
}

/* Never pumps at once: callers are in the middle of something, as are the callbacks of what ends. */
static void
wake_at(DiscordRest *self, gint64 when)
{
    if (when >= self->wake_time)
        return;
    self->wake_time = when;
    g_source_set_ready_time(self->wake, (when + self->speed - 1) / self->speed);
}

static void
wake_now(DiscordRest *self)
{
    wake_at(self, 0);
}

static void
clear_source(GSource **source)
{
    if (*source != NULL)
        g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

/* --- the end of a request --- */

static void
item_free(Item *item)
{
    clear_source(&item->caller);
    clear_source(&item->patience);
    discord_request_free(item->request);
    g_clear_pointer(&item->uri, g_uri_unref);
    g_clear_pointer(&item->body, g_bytes_unref);
    g_clear_object(&item->message);
    g_clear_object(&item->flight);
    g_clear_error(&item->ending);
    g_free(item->content_type);
    g_free(item->what);
    g_free(item);
}

/* Takes it out of the queue and calls back; nothing may look at @item afterwards. @node, @error: (transfer full) */
static void
item_finish(Item *item, JsonNode *node, GError *error)
{
    DiscordRest *self = item->rest;
    g_autoptr(GTask) task = g_steal_pointer(&item->task);
    g_queue_delete_link(&self->items, item->link);
    discord_buckets_leave(self->buckets, item->lane, time_now(self));
    item_free(item);
    wake_now(self);
    if (error != NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, node, (GDestroyNotify)json_node_unref);
}

/* Ends it now, or when what is under way has been called off. @error: (transfer full) */
static void
item_end(Item *item, GError *error)
{
    if (item->ending != NULL) {
        g_error_free(error);
        return;
    }
    if (item->flight == NULL) {
        item_finish(item, NULL, error);
        return;
    }
    item->ending = error;
    g_cancellable_cancel(item->flight);
}

static gboolean
on_caller_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Item *item = user_data;
    clear_source(&item->caller);
    item_end(item, eb_error_new(EB_ERROR_CANCELLED, "discord.cancelled", "%s was cancelled", item->what));
    return G_SOURCE_REMOVE;
}

static gboolean
on_patience_over(gpointer user_data)
{
    Item *item = user_data;
    clear_source(&item->patience);
    item_end(item, eb_error_new(EB_ERROR_TIMEOUT, "discord.patience", "%s was not done within %u ms", item->what,
                                item->request->patience_ms));
    return G_SOURCE_REMOVE;
}

static GError *
unauthorized(const char *what)
{
    return eb_error_new(EB_ERROR_UNAUTHENTICATED, "discord.unauthorized",
                        "%s: Discord does not accept the bot token any more: reset it in the developer portal, put the "
                        "new one into the credential store and restart",
                        what);
}

/* --- answers --- */

static void
set_retry(DiscordRest *self, Item *item, gint64 delay_us)
{
    item->not_before = time_now(self) + delay_us;
    wake_at(self, item->not_before);
}

static gint64
jitter_us(void)
{
    return g_random_int_range(0, JITTER_MS * 1000);
}

/* After a 5xx or a broken connection: again a little later, or given up. @why: (transfer full) */
static void
item_failed(DiscordRest *self, Item *item, gboolean not_sent, GError *why)
{
    item->failures++;
    if ((item->request->repeatable || not_sent) && item->failures <= MAX_FAILURES) {
        gint64 delay = ((gint64)BACKOFF_MS * 1000) << (item->failures - 1);
        eb_debug("%s: %s: try %u", item->what, why->message, item->failures + 1);
        g_error_free(why);
        set_retry(self, item, delay + jitter_us());
        return;
    }
    GError *error = eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable", "%s: Discord cannot be reached: %s",
                                 item->what, why->message);
    eb_error_set_retry(error, BACKOFF_MS << MAX_FAILURES);
    g_error_free(why);
    item_finish(item, NULL, error);
}

static void
item_limited(DiscordRest *self, Item *item, const DiscordAnswer *answer)
{
    item->limited++;
    if (item->limited <= MAX_LIMITED) {
        wake_now(self);
        return;
    }
    GError *error = eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable",
                                 "%s: Discord held it back %u times in a row", item->what, item->limited);
    eb_error_set_retry(error, (guint)(MAX(answer->retry_after_us, 0) / 1000));
    item_finish(item, NULL, error);
}

static void
item_answered(DiscordRest *self, Item *item, DiscordAnswer *answer)
{
    if (answer->edge || answer->status == 429) {
        item_limited(self, item, answer);
    } else if (answer->status >= 500) {
        item_failed(self, item, FALSE, discord_answer_error(answer, "the request"));
    } else if (answer->status == 401 && !item->request->plain) {
        item_finish(item, NULL, unauthorized(item->what));
        g_signal_emit(self, signals[SIGNAL_UNAUTHORIZED], 0);
    } else if (answer->status < 200 || answer->status >= 300) {
        item_finish(item, NULL, discord_answer_error(answer, item->what));
    } else if (answer->node == NULL && !answer->empty) {
        /* Somebody in between has answered, or the answer was cut: whether it was done is not known. */
        GError *why = eb_error_new(EB_ERROR_PROTOCOL, "discord.answer", "%s: the answer is no JSON", item->what);
        if (item->request->repeatable)
            item_failed(self, item, FALSE, why);
        else
            item_finish(item, NULL, why);
    } else {
        item_finish(item, answer->empty ? json_node_new(JSON_NODE_NULL) : g_steal_pointer(&answer->node), NULL);
    }
}

static void
on_exchanged(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Item *item = user_data;
    g_autoptr(DiscordRest) self = g_object_ref(item->rest);
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) body = discord_exchange_finish(SOUP_SESSION(source), result, &error);
    gint64 now = time_now(self);
    g_clear_object(&item->flight);
    if (body == NULL) {
        discord_buckets_lost(self->buckets, item->lane, now);
        if (item->ending != NULL)
            item_finish(item, NULL, g_steal_pointer(&item->ending));
        else if (g_error_matches(error, EB_ERROR, EB_ERROR_QUOTA))
            item_finish(item, NULL, g_steal_pointer(&error));
        else {
            gboolean not_sent = discord_exchange_was_not_sent(error);
            item_failed(self, item, not_sent, g_steal_pointer(&error));
        }
        wake_now(self);
        return;
    }
    gsize length;
    const char *text = g_bytes_get_data(body, &length);
    guint status = soup_message_get_status(item->message);
    g_autoptr(DiscordAnswer) answer =
        discord_answer_parse(status, soup_message_get_response_headers(item->message), text, length);
    discord_buckets_answer(self->buckets, item->lane, answer, jitter_us(), now);
    if (status >= 400)
        eb_debug("%s: answered %u, code %u, wait %" G_GINT64_FORMAT " ms", item->what, status, answer->code,
                 answer->retry_after_us / 1000);
    if (item->ending != NULL && !(status >= 200 && status < 300))
        item_finish(item, NULL, g_steal_pointer(&item->ending));
    else
        item_answered(self, item, answer);
    wake_now(self);
}

/* --- sending --- */

static void
send_item(DiscordRest *self, Item *item)
{
    g_clear_object(&item->message);
    item->message = soup_message_new_from_uri(item->request->method, item->uri);
    if (item->body != NULL)
        soup_message_set_request_body_from_bytes(item->message, item->content_type, item->body);
    if (!item->request->plain) {
        g_auto(EbSecretView) view = eb_secret_view(self->token);
        g_autofree char *header = g_strconcat("Bot ", view.bytes, NULL);
        soup_message_headers_replace(soup_message_get_request_headers(item->message), "Authorization", header);
        explicit_bzero(header, strlen(header));
    }
    gsize length = item->body != NULL ? g_bytes_get_size(item->body) : 0;
    guint timeout_ms = TIMEOUT_MS + (guint)(length * 1000 / SLOWEST_BYTES_PER_S);
    item->flight = g_cancellable_new();
    discord_exchange_async(self->session, item->message, DISCORD_ANSWER_MAX, timeout_ms, item->flight, on_exchanged,
                           item);
}

/* What a look at the queue found to be told or ended, done when the look is over: callbacks change the queue. */
typedef struct {
    Item *item;
    GError *error;
} Ended;

typedef struct {
    const char *route;
    guint seconds;
} Limited;

static void
note_wait(Item *item, gint64 until, gint64 now, GArray *limited)
{
    if (until - now < LIMITED_US || until <= item->told_until)
        return;
    item->told_until = until;
    Limited note = {item->request->route, (guint)((until - now) / G_USEC_PER_SEC)};
    g_array_append_val(limited, note);
}

/* Decides about one waiting request; returns when to look again. */
static gint64
consider(DiscordRest *self, Item *item, gint64 now, GArray *limited, GArray *ended)
{
    gint64 until = now;
    /* One that is held up holds up those behind it in its lane, and no other lane. */
    if (!g_hash_table_add(self->blocked, item->lane) || item->flight != NULL)
        return WAKE_NEVER;
    if (item->not_before > now)
        return item->not_before;
    Ended end = {item, NULL};
    switch (discord_buckets_admit(self->buckets, item->lane, now, &until)) {
    case DISCORD_VERDICT_SEND:
        send_item(self, item);
        return WAKE_NEVER;
    case DISCORD_VERDICT_BUSY:
        return WAKE_NEVER;
    case DISCORD_VERDICT_WAIT:
        note_wait(item, until, now, limited);
        return until;
    case DISCORD_VERDICT_STOPPED:
        end.error = unauthorized(item->what);
        break;
    case DISCORD_VERDICT_BUDGET:
        end.error =
            eb_error_new(EB_ERROR_QUOTA, "discord.invalid-budget",
                         "%s: nothing is sent for now: Discord refused %d requests within ten minutes, and bans "
                         "the address when that goes on",
                         item->what, DISCORD_INVALID_MAX);
        eb_error_set_retry(end.error, (guint)((until - now) / 1000));
        break;
    }
    g_array_append_val(ended, end);
    return WAKE_NEVER;
}

static void
pump(DiscordRest *self)
{
    g_autoptr(DiscordRest) hold = g_object_ref(self);
    g_autoptr(GArray) limited = g_array_new(FALSE, FALSE, sizeof(Limited));
    g_autoptr(GArray) ended = g_array_new(FALSE, FALSE, sizeof(Ended));
    gint64 now = time_now(self);
    gint64 next = WAKE_NEVER;
    g_hash_table_remove_all(self->blocked);
    for (GList *at = self->items.head; at != NULL; at = at->next) {
        gint64 again = consider(self, at->data, now, limited, ended);
        next = MIN(next, again);
    }
    wake_at(self, next);
    for (guint i = 0; i < ended->len; i++) {
        Ended *end = &g_array_index(ended, Ended, i);
        /* A callback may have closed everything. */
        if (g_queue_find(&self->items, end->item) != NULL)
            item_end(end->item, end->error);
        else
            g_error_free(end->error);
    }
    for (guint i = 0; i < limited->len; i++) {
        Limited *note = &g_array_index(limited, Limited, i);
        eb_info("Discord makes %s wait for %u s", note->route, note->seconds);
        g_signal_emit(self, signals[SIGNAL_LIMITED], 0, note->route, note->seconds);
    }
}

/* Ids in a path come from events and from people: one that is none must not lead to another call. */
static gboolean
make_uri(DiscordRest *self, Item *item, GError **error)
{
    const char *path = item->request->path;
    g_autofree char *url = g_strconcat(self->site->api_base, path, NULL);
    if (*path == '/' && strstr(path, "..") == NULL && strstr(path, "//") == NULL && strpbrk(path, "#\\ ") == NULL)
        item->uri = g_uri_parse(url, SOUP_HTTP_URI_FLAGS, NULL);
    if (item->uri == NULL)
        eb_set_error(error, EB_ERROR_INVALID, "discord.path", "%s: an id in its path is none", item->what);
    return item->uri != NULL;
}

static gboolean
make_body(Item *item, GError **error)
{
    DiscordRequest *request = item->request;
    if (request->files != NULL && request->files->len > 0) {
        g_autofree char *random = g_uuid_string_random();
        g_autofree char *boundary = g_strdup_printf("errand-box-%s", random);
        item->body = discord_multipart_build(request->body, request->files, boundary, error);
        item->content_type = g_strdup_printf("multipart/form-data; boundary=%s", boundary);
        return item->body != NULL;
    }
    if (request->body != NULL) {
        gsize length;
        char *text = eb_json_write(request->body, &length);
        item->body = g_bytes_new_take(text, length);
        item->content_type = g_strdup("application/json");
    }
    return TRUE;
}

static void
watch(Item *item, GCancellable *cancellable)
{
    if (cancellable != NULL) {
        item->caller = g_cancellable_source_new(cancellable);
        g_source_set_callback(item->caller, G_SOURCE_FUNC(on_caller_cancelled), item, NULL);
        g_source_attach(item->caller, g_main_context_get_thread_default());
    }
    if (item->request->patience_ms > 0) {
        item->patience = g_timeout_source_new(item->request->patience_ms);
        g_source_set_callback(item->patience, on_patience_over, item, NULL);
        g_source_attach(item->patience, g_main_context_get_thread_default());
    }
}

void
discord_rest_send_async(DiscordRest *self, DiscordRequest *request, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_autofree char *what = g_strdup_printf("%s %s", request->method, request->route);
    GError *error = NULL;
    Item *item = g_new0(Item, 1);
    g_task_set_source_tag(task, discord_rest_send_async);
    g_task_set_check_cancellable(task, FALSE);
    item->rest = self;
    item->request = request;
    item->what = g_steal_pointer(&what);
    if (self->closed || g_cancellable_is_cancelled(cancellable))
        error = eb_error_new(EB_ERROR_CANCELLED, "discord.cancelled", "%s was cancelled", item->what);
    else if (self->items.length >= DISCORD_REST_MAX_QUEUED)
        error = eb_error_new(EB_ERROR_QUOTA, "discord.queue-full", "%s: %d requests wait already", item->what,
                             DISCORD_REST_MAX_QUEUED);
    if (error == NULL && make_uri(self, item, &error) && make_body(item, &error)) {
        item->lane = discord_buckets_enter(self->buckets, request->method, request->route, request->major,
                                           request->plain, time_now(self));
        if (item->lane == NULL)
            error = eb_error_new(EB_ERROR_QUOTA, "discord.queue-full", "%s: too many channels are in use", item->what);
    }
    if (error != NULL) {
        item_free(item);
        g_task_return_error(task, error);
        return;
    }
    item->task = g_steal_pointer(&task);
    g_queue_push_tail(&self->items, item);
    item->link = self->items.tail;
    watch(item, cancellable);
    wake_now(self);
}

JsonNode *
discord_rest_send_finish(DiscordRest *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_rest_send_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- files --- */

static void
on_downloaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    DiscordRest *self = g_task_get_source_object(task);
    GError *error = NULL;
    GBytes *bytes = discord_download_finish(result, &error);
    self->n_downloads--;
    if (bytes != NULL)
        g_task_return_pointer(task, bytes, (GDestroyNotify)g_bytes_unref);
    else
        g_task_return_error(task, error);
}

void
discord_rest_download_async(DiscordRest *self, const char *url, gsize max_bytes, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, discord_rest_download_async);
    g_task_set_check_cancellable(task, FALSE);
    if (self->closed || self->n_downloads >= DISCORD_REST_MAX_DOWNLOADS) {
        g_task_return_error(
            task, self->closed
                      ? eb_error_new(EB_ERROR_CANCELLED, "discord.closed", "the connection to Discord is closed")
                      : eb_error_new(EB_ERROR_QUOTA, "discord.queue-full",
                                     "%d files are being fetched already: try again", DISCORD_REST_MAX_DOWNLOADS));
        return;
    }
    self->n_downloads++;
    discord_download_async(self->site, url, max_bytes, self->downloads, cancellable, on_downloaded,
                           g_steal_pointer(&task));
}

GBytes *
discord_rest_download_finish(DiscordRest *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, discord_rest_download_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- the object --- */

void
discord_rest_close(DiscordRest *self)
{
    g_autoptr(DiscordRest) hold = g_object_ref(self);
    self->closed = TRUE;
    g_cancellable_cancel(self->downloads);
    /* Callbacks may end others, so each look starts anew; what is under way ends by itself. */
    for (GList *at = self->items.head; at != NULL;) {
        Item *item = at->data;
        gboolean waits = item->flight == NULL;
        item_end(item, eb_error_new(EB_ERROR_CANCELLED, "discord.closed", "%s: the connection to Discord is closed",
                                    item->what));
        at = waits ? self->items.head : at->next;
    }
}

static void
discord_rest_finalize(GObject *object)
{
    DiscordRest *self = DISCORD_REST(object);
    clear_source(&self->wake);
    soup_session_abort(self->session);
    g_clear_object(&self->session);
    g_clear_object(&self->downloads);
    g_clear_pointer(&self->token, eb_secret_unref);
    g_clear_pointer(&self->buckets, discord_buckets_free);
    g_clear_pointer(&self->blocked, g_hash_table_unref);
    G_OBJECT_CLASS(discord_rest_parent_class)->finalize(object);
}

static void
discord_rest_class_init(DiscordRestClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_rest_finalize;
    signals[SIGNAL_UNAUTHORIZED] =
        g_signal_new("unauthorized", DISCORD_TYPE_REST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
    signals[SIGNAL_LIMITED] = g_signal_new("limited", DISCORD_TYPE_REST, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                           G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_UINT);
}

static void
discord_rest_init(DiscordRest *self)
{
    g_queue_init(&self->items);
    self->buckets = discord_buckets_new();
    self->blocked = g_hash_table_new(NULL, NULL);
    self->downloads = g_cancellable_new();
    self->session = discord_session_new(NULL);
    self->speed = 1;
    self->wake_time = WAKE_NEVER;
    self->wake = g_source_new(&wake_funcs, sizeof(GSource));
    g_source_set_callback(self->wake, on_time, self, NULL);
    g_source_attach(self->wake, g_main_context_get_thread_default());
}

const char *
discord_rest_get_token_name(DiscordRest *self)
{
    return eb_secret_get_label(self->token);
}

DiscordRest *
discord_rest_new(const DiscordSite *site, EbSecret *token)
{
    DiscordRest *self = g_object_new(DISCORD_TYPE_REST, NULL);
    self->site = site;
    self->token = eb_secret_ref(token);
    return self;
}
