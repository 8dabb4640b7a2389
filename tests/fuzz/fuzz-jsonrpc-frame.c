/* SPDX-License-Identifier: MIT */
#include "core/base/eb-jsonrpc-frame.h"

#include "core/base/eb-jsonrpc.h"

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    const EbJsonLimits limits = {.max_bytes = 64 * 1024, .max_depth = 16};
    g_auto(EbJsonrpcFrame) frame = {0};

    eb_jsonrpc_frame_parse((const char *)data, size, &limits, &frame);
    switch (frame.kind) {
    case EB_JSONRPC_FRAME_REQUEST:
    case EB_JSONRPC_FRAME_NOTIFICATION:
        if (frame.method == NULL || frame.prefixed)
            g_error("a call without a method, or out of a line of text");
        break;
    case EB_JSONRPC_FRAME_ERROR:
        if (frame.error == NULL)
            g_error("an error without one");
        break;
    case EB_JSONRPC_FRAME_RESULT:
    case EB_JSONRPC_FRAME_NOISE:
    case EB_JSONRPC_FRAME_EMPTY:
        break;
    }
    if (frame.id != NULL && (JSON_NODE_HOLDS_VALUE(frame.id) || JSON_NODE_HOLDS_NULL(frame.id))) {
        g_autofree char *text = eb_jsonrpc_id_text(frame.id);

        if (!g_utf8_validate(text, -1, NULL))
            g_error("an id that is no text");
    }
    return 0;
}
