/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbJsonrpc: a JSON-RPC 2.0 peer over a pair of streams, one object a line. Used for agents (which break rules) and
 * for the control socket.
 *
 * Ids keep their type. Objects alone are frames; anything else is reported as noise. Bounds: line, calls waiting for
 * an answer, requests of the peer not yet answered, bytes queued for writing.
 *
 * Signals:
 *   "request" (const char *method, JsonNode *params (nullable), JsonNode *id): answer with eb_jsonrpc_reply() or
 *       eb_jsonrpc_reply_error(); TRUE from a handler = will be answered, FALSE everywhere = -32601 is sent.
 *   "notification" (const char *method, JsonNode *params (nullable)).
 *   "noise" (const char *escaped_line).
 *   "closed" (GError *error (nullable)).
 */
#define EB_TYPE_JSONRPC (eb_jsonrpc_get_type())
G_DECLARE_FINAL_TYPE(EbJsonrpc, eb_jsonrpc, EB, JSONRPC, GObject)

typedef struct {
    gsize max_line; /* bytes; a longer line ends the peer */
    guint max_depth;
    guint max_calls;       /* ours, unanswered */
    guint max_requests;    /* theirs, unanswered: further ones get -32000 */
    gsize max_write_queue; /* bytes; beyond it the peer is closed */
} EbJsonrpcLimits;
extern const EbJsonrpcLimits EB_JSONRPC_LIMITS_AGENT;   /* 32 MiB, 64, 64, 64, 64 MiB */
extern const EbJsonrpcLimits EB_JSONRPC_LIMITS_CONTROL; /* 1 MiB, 32, 64, 64, 8 MiB */

EbJsonrpc *eb_jsonrpc_new(GInputStream *input, GOutputStream *output, const EbJsonrpcLimits *limits);
/** eb_jsonrpc_start: begins reading (signals should be connected before). */
void eb_jsonrpc_start(EbJsonrpc *self);
/** eb_jsonrpc_call_async: @params: (transfer full) (nullable); @deadline_ms: 0 = none */
void eb_jsonrpc_call_async(EbJsonrpc *self, const char *method, JsonNode *params, guint deadline_ms,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_jsonrpc_call_finish: (transfer full) (nullable): the result. An error answer is EB_ERROR_FAILED with reason
 *  "jsonrpc.error"; its code and data are in @error_object (out) (optional) (transfer full) (nullable). */
JsonNode *eb_jsonrpc_call_finish(EbJsonrpc *self, GAsyncResult *result, JsonObject **error_object, GError **error);
void eb_jsonrpc_notify(EbJsonrpc *self, const char *method, JsonNode *params);
void eb_jsonrpc_reply(EbJsonrpc *self, JsonNode *id, JsonNode *result);
void eb_jsonrpc_reply_error(EbJsonrpc *self, JsonNode *id, gint64 code, const char *message);
/** eb_jsonrpc_close: closes our side of writing; @now: also stops reading and fails everything pending. */
void eb_jsonrpc_close(EbJsonrpc *self, gboolean now);
guint64 eb_jsonrpc_get_idle_ms(EbJsonrpc *self);

G_END_DECLS
