/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbJsonrpc: a JSON-RPC 2.0 peer over a pair of streams, one object a line. Used for agents (which break rules) and
 * for the control socket.
 *
 * Reading is lenient where real agents are sloppy and nothing is lost by it: noise between frames, CRLF, empty lines, a
 * last line without LF, terminal escape sequences before a frame, invalid UTF-8 inside a frame (replaced by U+FFFD), text without LF before an answer that is waited for. Objects alone are frames; arrays and bare
 * values are noise. Ids keep their type; both sides have an id space of their own. Ours start at 1.
 *
 * Bounds (EbJsonrpcLimits): line, nesting, calls waiting for an answer, requests of the peer not yet answered, bytes
 * queued for writing. Everything happens in the thread-default main context of creation. A pending call holds a
 * reference; without one the last unref ends reading and writing and drops what is queued. The process must ignore
 * SIGPIPE. For a socket, keep the connection and close it after "closed": closing one stream of it sends nothing.
 *
 * Signals:
 *   "request" (const char *method, JsonNode *params (nullable), JsonNode *id): answer with eb_jsonrpc_reply() or
 *       eb_jsonrpc_reply_error(), now or later (keep a copy of @id); TRUE from a handler = will be answered, FALSE
 *       everywhere = -32601 is sent.
 *   "notification" (const char *method, JsonNode *params (nullable)).
 *   "noise" (const char *escaped_line): what is no frame, an answer nobody waits for, or a repair; at most 512 bytes.
 *   "closed" (GError *error (nullable)): once: NULL = end of file or eb_jsonrpc_close(); every pending call has failed
 *       before. Reasons: "jsonrpc.line-too-long", "jsonrpc.write-queue", "jsonrpc.read", "jsonrpc.write". Replies can
 *       still be sent after an end of file, for a peer that closed only its writing side.
 */
#define EB_TYPE_JSONRPC (eb_jsonrpc_get_type())
G_DECLARE_FINAL_TYPE(EbJsonrpc, eb_jsonrpc, EB, JSONRPC, GObject)

/* The codes of JSON-RPC 2.0 and of ACP that are sent or told apart here. */
#define EB_JSONRPC_INVALID_REQUEST (-32600)
#define EB_JSONRPC_METHOD_NOT_FOUND (-32601)
#define EB_JSONRPC_INVALID_PARAMS (-32602)
#define EB_JSONRPC_INTERNAL (-32603)
#define EB_JSONRPC_SERVER (-32000)

typedef struct {
    gsize max_line; /* bytes; a longer line ends the peer */
    guint max_depth;
    guint max_calls;       /* ours, unanswered: further ones are EB_ERROR_BUSY */
    guint max_requests;    /* theirs, unanswered: further ones get -32000 */
    gsize max_write_queue; /* bytes; beyond it the peer is closed */
} EbJsonrpcLimits;
extern const EbJsonrpcLimits EB_JSONRPC_LIMITS_AGENT;   /* 32 MiB, 64, 64, 64, 64 MiB */
extern const EbJsonrpcLimits EB_JSONRPC_LIMITS_CONTROL; /* 1 MiB, 32, 64, 64, 8 MiB */

/** eb_jsonrpc_new: (transfer full): takes references on the streams; @limits are copied. */
EbJsonrpc *eb_jsonrpc_new(GInputStream *input, GOutputStream *output, const EbJsonrpcLimits *limits);
/** eb_jsonrpc_start: begins reading (signals should be connected before). */
void eb_jsonrpc_start(EbJsonrpc *self);

/**
 * eb_jsonrpc_set_cancel_method: (ACP: "$/cancel_request"): a call given up by its cancellable or deadline is told to
 * the peer with this notification, {"requestId": id}. NULL (the default): nothing is sent.
 */
void eb_jsonrpc_set_cancel_method(EbJsonrpc *self, const char *method);

/**
 * eb_jsonrpc_call_async:
 * @params: (transfer full) (nullable)
 * @deadline_ms: 0 = none; beyond it EB_ERROR_TIMEOUT "jsonrpc.timeout", and a later answer is noise
 */
void eb_jsonrpc_call_async(EbJsonrpc *self, const char *method, JsonNode *params, guint deadline_ms,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/**
 * eb_jsonrpc_call_finish:
 * @error_object: (out) (optional) (transfer full) (nullable): code, message and data of an error answer
 *
 * An error answer is EB_ERROR_FAILED with reason "jsonrpc.error"; a closed peer EB_ERROR_UNAVAILABLE "jsonrpc.closed".
 *
 * Returns: (transfer full) (nullable): the result, a null node when the peer sent none; NULL with @error set.
 */
JsonNode *eb_jsonrpc_call_finish(EbJsonrpc *self, GAsyncResult *result, JsonObject **error_object, GError **error);

/** eb_jsonrpc_notify: @params: (transfer full) (nullable) */
void eb_jsonrpc_notify(EbJsonrpc *self, const char *method, JsonNode *params);
/** eb_jsonrpc_reply: @id: (transfer none); @result: (transfer full) (nullable): NULL = {} */
void eb_jsonrpc_reply(EbJsonrpc *self, JsonNode *id, JsonNode *result);
/** eb_jsonrpc_reply_error: @id: (transfer none) */
void eb_jsonrpc_reply_error(EbJsonrpc *self, JsonNode *id, gint64 code, const char *message);

/**
 * eb_jsonrpc_close: closes our side of writing once what is queued has been written; @now: also stops reading, fails
 * everything pending and emits "closed" before it returns.
 */
void eb_jsonrpc_close(EbJsonrpc *self, gboolean now);
gboolean eb_jsonrpc_is_closed(EbJsonrpc *self);
/** eb_jsonrpc_get_idle_ms: milliseconds since the last byte from the peer, or since the start. */
guint64 eb_jsonrpc_get_idle_ms(EbJsonrpc *self);

/** eb_jsonrpc_id_text: (transfer full): an id as JSON text, so that 1 and "1" differ: a key for tables. */
char *eb_jsonrpc_id_text(JsonNode *id);

G_END_DECLS
