/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-jsonrpc"

#include "core/base/eb-jsonrpc.h"

#include "core/base/eb-jsonrpc-frame.h"
#include "core/base/eb-line-framer.h"
#include "core/base/eb-line-writer.h"

#include <string.h>

#define READ_CHUNK ((gsize)64 * 1024)
#define NOISE_BYTES 512
/* A peer that stopped reading may still say why; this long its output is awaited. */
#define WRITE_LINGER_MS 2000

const EbJsonrpcLimits EB_JSONRPC_LIMITS_AGENT = {
    .max_line = (gsize)32 * 1024 * 1024,
    .max_depth = 64,
    .max_calls = 64,
    .max_requests = 64,
    .max_write_queue = (gsize)64 * 1024 * 1024,
};
const EbJsonrpcLimits EB_JSONRPC_LIMITS_CONTROL = {
    .max_line = (gsize)1024 * 1024,
    .max_depth = 32,
    .max_calls = 64,
    .max_requests = 64,
    .max_write_queue = (gsize)8 * 1024 * 1024,
};

struct _EbJsonrpc {
    GObject parent_instance;
    GMainContext *context;
    GInputStream *input;
    EbLineWriter *writer;
    EbJsonrpcLimits limits;
    EbLineFramer *framer;
    GHashTable *calls;    /* gint64 id -> Call; at most limits.max_calls */
    GHashTable *requests; /* set of id texts; at most limits.max_requests */
    gint64 last_id;
    char *cancel_method; /* (nullable) */
    GCancellable *reading;
    gint64 last_read;
    GSource *linger;     /* (nullable) */
    GError *write_error; /* (nullable) */
    gboolean started;
    gboolean closed;
};

G_DEFINE_FINAL_TYPE(EbJsonrpc, eb_jsonrpc, G_TYPE_OBJECT)

enum { SIGNAL_REQUEST, SIGNAL_NOTIFICATION, SIGNAL_NOISE, SIGNAL_CLOSED, N_SIGNALS };
static guint signals[N_SIGNALS];

/* One call of ours waiting for its answer. */
typedef struct {
    gint64 id;
    EbJsonrpc *peer; /* not owned: the table that holds the call is the peer's */
    GTask *task;
    GSource *deadline; /* (nullable) */
    GSource *cancel;   /* (nullable) */
    guint deadline_ms;
} Call;

/* What one read under way needs to outlive the peer. */
typedef struct {
    GWeakRef peer;
    char buffer[READ_CHUNK];
} Read;

static void read_more(EbJsonrpc *self, Read *op);

static void
clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

static void
call_free(Call *call)
{
    clear_source(&call->deadline);
    clear_source(&call->cancel);
    g_clear_object(&call->task);
    g_free(call);
}

/* (transfer full) (nullable): the call of that id, out of the table. */
static Call *
take_call(EbJsonrpc *self, gint64 id)
{
    Call *call = NULL;

    g_hash_table_steal_extended(self->calls, &id, NULL, (gpointer *)&call);
    return call;
}

static void
fail_call(Call *call, GError *error)
{
    g_task_return_error(call->task, error);
    call_free(call);
}

static void
emit_noise(EbJsonrpc *self, const char *line, gsize length)
{
    g_autofree char *escaped = NULL;

    if (!g_signal_has_handler_pending(self, signals[SIGNAL_NOISE], 0, TRUE))
        return;
    escaped = eb_log_escape(line, (gssize)MIN(length, (gsize)2 * NOISE_BYTES), NOISE_BYTES);
    g_signal_emit(self, signals[SIGNAL_NOISE], 0, escaped);
}

static void
finish(EbJsonrpc *self, const GError *error)
{
    g_autoptr(GList) pending = NULL;

    if (self->closed)
        return;
    self->closed = TRUE;
    clear_source(&self->linger);
    g_cancellable_cancel(self->reading);
    pending = g_hash_table_get_values(self->calls);
    g_hash_table_steal_all(self->calls);
    for (GList *link = pending; link != NULL; link = link->next) {
        Call *call = link->data;

        if (error != NULL)
            fail_call(call,
                      eb_error_new(EB_ERROR_UNAVAILABLE, "jsonrpc.closed", "the peer is gone: %s", error->message));
        else
            fail_call(call, eb_error_new(EB_ERROR_UNAVAILABLE, "jsonrpc.closed", "the peer ended before it answered"));
    }
    g_signal_emit(self, signals[SIGNAL_CLOSED], 0, error);
}

/* --- writing --- */

static gboolean
on_linger(gpointer user_data)
{
    EbJsonrpc *self = EB_JSONRPC(user_data);
    g_autoptr(EbJsonrpc) keep G_GNUC_UNUSED = g_object_ref(self);

    finish(self, self->write_error);
    return G_SOURCE_REMOVE;
}

static void
on_write_failed(const GError *error, gpointer user_data)
{
    EbJsonrpc *self = EB_JSONRPC(user_data);

    if (self->closed || self->write_error != NULL)
        return;
    self->write_error = eb_error_new(EB_ERROR_UNAVAILABLE, "jsonrpc.write", "writing failed: %s", error->message);
    self->linger = g_timeout_source_new(WRITE_LINGER_MS);
    g_source_set_callback(self->linger, on_linger, self, NULL);
    g_source_attach(self->linger, self->context);
}

static void
send_object(EbJsonrpc *self, JsonObject *object)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *text = NULL;
    gsize length = 0;

    json_node_set_object(node, object);
    text = eb_json_write(node, &length);
    text[length] = '\n'; /* in the place of the final NUL */
    if (eb_line_writer_push(self->writer, g_bytes_new_take(g_steal_pointer(&text), length + 1)))
        return;
    if (!self->closed) {
        g_autoptr(GError) error = eb_error_new(
            EB_ERROR_QUOTA, "jsonrpc.write-queue",
            "the peer does not read: more than %" G_GSIZE_FORMAT " bytes wait for it", self->limits.max_write_queue);

        finish(self, error);
    }
}

static JsonObject *
new_object(void)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "jsonrpc", "2.0");
    return object;
}

static void
send_call(EbJsonrpc *self, const char *method, gint64 id, JsonNode *params)
{
    g_autoptr(JsonObject) object = new_object();

    if (id > 0)
        json_object_set_int_member(object, "id", id);
    json_object_set_string_member(object, "method", method);
    if (params != NULL)
        json_object_set_member(object, "params", params);
    send_object(self, object);
}

void
eb_jsonrpc_notify(EbJsonrpc *self, const char *method, JsonNode *params)
{
    g_return_if_fail(EB_IS_JSONRPC(self));
    send_call(self, method, 0, params);
}

/* --- calls --- */

static void
give_up(Call *call, GError *error)
{
    EbJsonrpc *self = call->peer;

    if (self->cancel_method != NULL && !self->closed) {
        JsonObject *params = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);

        json_object_set_int_member(params, "requestId", call->id);
        json_node_take_object(node, params);
        eb_jsonrpc_notify(self, self->cancel_method, node);
    }
    /* Sending may have closed the peer, which has failed the call then. */
    call = take_call(self, call->id);
    if (call != NULL)
        fail_call(call, error);
    else
        g_error_free(error);
}

static gboolean
on_deadline(gpointer user_data)
{
    Call *call = user_data;
    g_autoptr(EbJsonrpc) keep G_GNUC_UNUSED = g_object_ref(call->peer);

    give_up(call, eb_error_new(EB_ERROR_TIMEOUT, "jsonrpc.timeout", "no answer within %u ms", call->deadline_ms));
    return G_SOURCE_REMOVE;
}

static gboolean
on_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Call *call = user_data;
    g_autoptr(EbJsonrpc) keep G_GNUC_UNUSED = g_object_ref(call->peer);

    give_up(call, eb_error_new(EB_ERROR_CANCELLED, NULL, "cancelled"));
    return G_SOURCE_REMOVE;
}

void
eb_jsonrpc_call_async(EbJsonrpc *self, const char *method, JsonNode *params, guint deadline_ms,
                      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    g_autoptr(JsonNode) owned = params;
    Call *call;

    g_task_set_source_tag(task, eb_jsonrpc_call_async);
    if (self->closed) {
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "jsonrpc.closed", "the peer is gone"));
        return;
    }
    if (g_hash_table_size(self->calls) >= self->limits.max_calls) {
        g_task_return_error(task, eb_error_new(EB_ERROR_BUSY, "jsonrpc.calls", "%u calls wait for an answer already",
                                               self->limits.max_calls));
        return;
    }
    call = g_new0(Call, 1);
    call->id = ++self->last_id;
    call->peer = self;
    call->task = g_steal_pointer(&task);
    call->deadline_ms = deadline_ms;
    if (deadline_ms > 0) {
        call->deadline = g_timeout_source_new(deadline_ms);
        g_source_set_callback(call->deadline, on_deadline, call, NULL);
        g_source_attach(call->deadline, self->context);
    }
    if (cancellable != NULL) {
        call->cancel = g_cancellable_source_new(cancellable);
        g_source_set_callback(call->cancel, G_SOURCE_FUNC(on_cancelled), call, NULL);
        g_source_attach(call->cancel, self->context);
    }
    g_hash_table_insert(self->calls, &call->id, call);
    send_call(self, method, call->id, g_steal_pointer(&owned));
}

JsonNode *
eb_jsonrpc_call_finish(EbJsonrpc *self, GAsyncResult *result, JsonObject **error_object, GError **error)
{
    JsonObject *answer;

    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    if (error_object != NULL) {
        answer = g_object_get_data(G_OBJECT(result), "error-object");
        *error_object = answer != NULL ? json_object_ref(answer) : NULL;
    }
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- replies --- */

char *
eb_jsonrpc_id_text(JsonNode *id)
{
    return eb_json_write(id, NULL);
}

static void
send_reply(EbJsonrpc *self, JsonNode *id, const char *member, JsonNode *value)
{
    g_autoptr(JsonObject) object = new_object();
    g_autofree char *key = eb_jsonrpc_id_text(id);

    g_hash_table_remove(self->requests, key);
    json_object_set_member(object, "id", json_node_copy(id));
    json_object_set_member(object, member, value);
    send_object(self, object);
}

void
eb_jsonrpc_reply(EbJsonrpc *self, JsonNode *id, JsonNode *result)
{
    g_return_if_fail(EB_IS_JSONRPC(self) && id != NULL);
    if (result == NULL) {
        result = json_node_new(JSON_NODE_OBJECT);
        json_node_take_object(result, json_object_new());
    }
    send_reply(self, id, "result", result);
}

void
eb_jsonrpc_reply_error(EbJsonrpc *self, JsonNode *id, gint64 code, const char *message)
{
    JsonObject *object = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    g_return_if_fail(EB_IS_JSONRPC(self) && id != NULL);
    json_object_set_int_member(object, "code", code);
    json_object_set_string_member(object, "message", message);
    json_node_take_object(node, object);
    send_reply(self, id, "error", node);
}

/* --- reading --- */

static void
handle_request(EbJsonrpc *self, const EbJsonrpcFrame *frame, const char *line, gsize length)
{
    g_autofree char *key = eb_jsonrpc_id_text(frame->id);
    gboolean handled = FALSE;

    if (g_hash_table_contains(self->requests, key)) {
        /* A second request under an id that is still open could not be told apart from the first in its answer. */
        emit_noise(self, line, length);
        return;
    }
    if (g_hash_table_size(self->requests) >= self->limits.max_requests) {
        eb_jsonrpc_reply_error(self, frame->id, EB_JSONRPC_SERVER, "too many requests wait for an answer");
        return;
    }
    g_hash_table_add(self->requests, g_steal_pointer(&key));
    g_signal_emit(self, signals[SIGNAL_REQUEST], 0, frame->method, frame->params, frame->id, &handled);
    if (!handled)
        eb_jsonrpc_reply_error(self, frame->id, EB_JSONRPC_METHOD_NOT_FOUND, "method not found");
}

/* (transfer full) (nullable): the call an answer is for. Some languages write a whole number as 3.0. */
static Call *
match_call(EbJsonrpc *self, JsonNode *id)
{
    GType type;

    if (id == NULL || !JSON_NODE_HOLDS_VALUE(id))
        return NULL;
    type = json_node_get_value_type(id);
    if (type == G_TYPE_INT64)
        return take_call(self, json_node_get_int(id));
    if (type == G_TYPE_DOUBLE) {
        const double value = json_node_get_double(id);

        if (value >= 1 && value <= (double)self->last_id && value == (double)(gint64)value)
            return take_call(self, (gint64)value);
    }
    return NULL;
}

static void
answer_error(Call *call, JsonNode *node)
{
    JsonObject *object = eb_json_node_object(node);
    const char *message = eb_json_get_string(object, "message");

    if (object == NULL) {
        object = json_object_new();
        json_object_set_member(object, "message", json_node_copy(node));
        g_object_set_data_full(G_OBJECT(call->task), "error-object", object, (GDestroyNotify)json_object_unref);
        message = eb_json_get_string(object, "message");
    } else {
        g_object_set_data_full(G_OBJECT(call->task), "error-object", json_object_ref(object),
                               (GDestroyNotify)json_object_unref);
    }
    fail_call(call,
              eb_error_new(EB_ERROR_FAILED, "jsonrpc.error", "%s", message != NULL ? message : "no reason given"));
}

static void
handle_answer(EbJsonrpc *self, const EbJsonrpcFrame *frame, const char *line, gsize length)
{
    Call *call = match_call(self, frame->id);

    if (call == NULL) {
        emit_noise(self, line, length);
        return;
    }
    if (frame->kind == EB_JSONRPC_FRAME_ERROR) {
        answer_error(call, frame->error);
        return;
    }
    g_task_return_pointer(call->task,
                          frame->result != NULL ? json_node_ref(frame->result) : json_node_new(JSON_NODE_NULL),
                          (GDestroyNotify)json_node_unref);
    call_free(call);
}

static void
handle_line(EbJsonrpc *self, const char *line, gsize length)
{
    const EbJsonLimits limits = {.max_bytes = self->limits.max_line, .max_depth = self->limits.max_depth};
    g_auto(EbJsonrpcFrame) frame = {0};

    eb_jsonrpc_frame_parse(line, length, &limits, &frame);
    if (frame.repaired || frame.prefixed)
        emit_noise(self, line, length);
    switch (frame.kind) {
    case EB_JSONRPC_FRAME_REQUEST:
        handle_request(self, &frame, line, length);
        break;
    case EB_JSONRPC_FRAME_NOTIFICATION:
        g_signal_emit(self, signals[SIGNAL_NOTIFICATION], 0, frame.method, frame.params);
        break;
    case EB_JSONRPC_FRAME_RESULT:
    case EB_JSONRPC_FRAME_ERROR:
        handle_answer(self, &frame, line, length);
        break;
    case EB_JSONRPC_FRAME_NOISE:
        emit_noise(self, line, length);
        break;
    case EB_JSONRPC_FRAME_EMPTY:
        break;
    }
}

static void
handle_lines(EbJsonrpc *self)
{
    const char *line = NULL;
    gsize length = 0;

    /* A handler may have closed the peer: nothing is told after "closed". */
    while (!self->closed) {
        switch (eb_line_framer_next(self->framer, &line, &length)) {
        case EB_LINE_NONE:
            return;
        case EB_LINE_READY:
        case EB_LINE_CUT:
            handle_line(self, line, length);
            break;
        case EB_LINE_TOO_LONG: {
            g_autoptr(GError) error =
                eb_error_new(EB_ERROR_PROTOCOL, "jsonrpc.line-too-long",
                             "the peer sent a line of more than %" G_GSIZE_FORMAT " bytes", self->limits.max_line);

            finish(self, error);
            return;
        }
        }
    }
}

static void
read_free(Read *op)
{
    g_weak_ref_clear(&op->peer);
    g_free(op);
}

static void
on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Read *op = user_data;
    g_autoptr(EbJsonrpc) self = g_weak_ref_get(&op->peer);
    g_autoptr(GError) error = NULL;
    const gssize got = g_input_stream_read_finish(G_INPUT_STREAM(source), result, &error);

    if (self == NULL || self->closed) {
        read_free(op);
        return;
    }
    if (got > 0) {
        self->last_read = g_get_monotonic_time();
        eb_line_framer_push(self->framer, op->buffer, (gsize)got);
        handle_lines(self);
    } else {
        eb_line_framer_end(self->framer);
        handle_lines(self);
        if (error != NULL)
            eb_error_convert(&error, "jsonrpc.read", "reading failed");
        finish(self, error != NULL ? error : self->write_error);
    }
    if (self->closed)
        read_free(op);
    else
        read_more(self, op);
}

static void
read_more(EbJsonrpc *self, Read *op)
{
    g_input_stream_read_async(self->input, op->buffer, READ_CHUNK, G_PRIORITY_DEFAULT, self->reading, on_read, op);
}

/* --- life --- */

EbJsonrpc *
eb_jsonrpc_new(GInputStream *input, GOutputStream *output, const EbJsonrpcLimits *limits)
{
    EbJsonrpc *self = g_object_new(EB_TYPE_JSONRPC, NULL);

    self->input = g_object_ref(input);
    self->limits = *limits;
    self->writer = eb_line_writer_new(output, limits->max_write_queue, on_write_failed, self);
    self->framer = eb_line_framer_new(limits->max_line, EB_LINE_OVERFLOW_STOP);
    return self;
}

void
eb_jsonrpc_start(EbJsonrpc *self)
{
    Read *op;

    g_return_if_fail(EB_IS_JSONRPC(self));
    if (self->started || self->closed)
        return;
    self->started = TRUE;
    self->last_read = g_get_monotonic_time();
    op = g_new0(Read, 1);
    g_weak_ref_init(&op->peer, self);
    read_more(self, op);
}

void
eb_jsonrpc_set_cancel_method(EbJsonrpc *self, const char *method)
{
    g_free(self->cancel_method);
    self->cancel_method = g_strdup(method);
}

void
eb_jsonrpc_close(EbJsonrpc *self, gboolean now)
{
    g_autoptr(EbJsonrpc) keep G_GNUC_UNUSED = g_object_ref(self);

    eb_line_writer_finish(self->writer);
    if (now)
        finish(self, NULL);
}

gboolean
eb_jsonrpc_is_closed(EbJsonrpc *self)
{
    return self->closed;
}

guint64
eb_jsonrpc_get_idle_ms(EbJsonrpc *self)
{
    return (guint64)(g_get_monotonic_time() - self->last_read) / 1000;
}

static void
eb_jsonrpc_dispose(GObject *object)
{
    EbJsonrpc *self = EB_JSONRPC(object);

    /* No call is left here: each holds a reference on the peer as its task's source object. */
    self->closed = TRUE;
    clear_source(&self->linger);
    g_cancellable_cancel(self->reading);
    g_clear_pointer(&self->writer, eb_line_writer_free);
    g_clear_object(&self->input);
    G_OBJECT_CLASS(eb_jsonrpc_parent_class)->dispose(object);
}

static void
eb_jsonrpc_finalize(GObject *object)
{
    EbJsonrpc *self = EB_JSONRPC(object);

    g_clear_pointer(&self->framer, eb_line_framer_free);
    g_clear_pointer(&self->calls, g_hash_table_unref);
    g_clear_pointer(&self->requests, g_hash_table_unref);
    g_clear_pointer(&self->cancel_method, g_free);
    g_clear_error(&self->write_error);
    g_clear_object(&self->reading);
    g_clear_pointer(&self->context, g_main_context_unref);
    G_OBJECT_CLASS(eb_jsonrpc_parent_class)->finalize(object);
}

static void
eb_jsonrpc_init(EbJsonrpc *self)
{
    self->context = g_main_context_ref_thread_default();
    self->calls = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, (GDestroyNotify)call_free);
    self->requests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->reading = g_cancellable_new();
}

static void
eb_jsonrpc_class_init(EbJsonrpcClass *klass)
{
    GObjectClass *object_class = G_OBJECT_CLASS(klass);

    object_class->dispose = eb_jsonrpc_dispose;
    object_class->finalize = eb_jsonrpc_finalize;
    signals[SIGNAL_REQUEST] =
        g_signal_new("request", EB_TYPE_JSONRPC, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL, NULL,
                     G_TYPE_BOOLEAN, 3, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE,
                     JSON_TYPE_NODE | G_SIGNAL_TYPE_STATIC_SCOPE, JSON_TYPE_NODE | G_SIGNAL_TYPE_STATIC_SCOPE);
    signals[SIGNAL_NOTIFICATION] =
        g_signal_new("notification", EB_TYPE_JSONRPC, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                     G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE, JSON_TYPE_NODE | G_SIGNAL_TYPE_STATIC_SCOPE);
    signals[SIGNAL_NOISE] = g_signal_new("noise", EB_TYPE_JSONRPC, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                         1, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE);
    signals[SIGNAL_CLOSED] = g_signal_new("closed", EB_TYPE_JSONRPC, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 1, G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE);
}
