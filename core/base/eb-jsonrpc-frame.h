/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbJsonrpcFrameKind: what one line of a JSON-RPC peer is. */
typedef enum {
    EB_JSONRPC_FRAME_EMPTY = 0, /* nothing but white space or escape sequences */
    EB_JSONRPC_FRAME_NOISE = 1, /* anything that is no frame */
    EB_JSONRPC_FRAME_REQUEST = 2,
    EB_JSONRPC_FRAME_NOTIFICATION = 3,
    EB_JSONRPC_FRAME_RESULT = 4,
    EB_JSONRPC_FRAME_ERROR = 5,
} EbJsonrpcFrameKind;

/** EbJsonrpcFrame: a decoded line; the pointers belong to @root. */
typedef struct {
    EbJsonrpcFrameKind kind;
    JsonNode *root; /* (owned) (nullable) */
    const char *method;
    JsonNode *id;      /* (nullable): any JSON scalar, null included; NULL = absent */
    JsonNode *params;  /* (nullable) */
    JsonNode *result;  /* (nullable) */
    JsonNode *error;   /* (nullable): an object when the peer is sane */
    gboolean repaired; /* bytes were replaced by U+FFFD */
    gboolean prefixed; /* text stood before it on its line; only answers are taken from such lines */
} EbJsonrpcFrame;

/**
 * eb_jsonrpc_frame_parse: pure; never fails, what cannot be understood is noise.
 *
 * A prefix of control bytes and terminal escape sequences is dropped. Behind a prefix of text only an answer is
 * recognised: a log line that quotes a request or an update must not make it happen a second time.
 */
void eb_jsonrpc_frame_parse(const char *line, gsize length, const EbJsonLimits *limits, EbJsonrpcFrame *frame);
void eb_jsonrpc_frame_clear(EbJsonrpcFrame *frame);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbJsonrpcFrame, eb_jsonrpc_frame_clear)

G_END_DECLS
