/* SPDX-License-Identifier: MIT */
#include "core/base/eb-jsonrpc-frame.h"

#include <string.h>

/* How many places of a line that begins with text are tried; each try costs one pass over the rest. */
#define MAX_CANDIDATES 8

/* Length of the terminal escape sequence at @text, 0 when there is none. */
static gsize
escape_length(const char *text, gsize length)
{
    gsize i = 2;

    if (length < 2 || text[0] != '\x1b')
        return 0;
    if (text[1] == '[') {
        while (i < length && (text[i] < 0x40 || text[i] > 0x7e))
            i++;
        return MIN(i + 1, length);
    }
    if (text[1] == ']') {
        while (i < length && text[i] != '\a' && text[i] != '\x1b')
            i++;
        if (i + 1 < length && text[i] == '\x1b' && text[i + 1] == '\\')
            return i + 2;
        return MIN(i + 1, length);
    }
    return 2;
}

static gsize
skip_invisible(const char *text, gsize length)
{
    gsize i = 0;

    while (i < length) {
        const gsize escape = escape_length(text + i, length - i);

        if (escape > 0)
            i += escape;
        else if ((guchar)text[i] <= 0x20 || text[i] == 0x7f)
            i++;
        else if (length - i >= 3 && memcmp(text + i, "\xef\xbb\xbf", 3) == 0)
            i += 3;
        else
            break;
    }
    return i;
}

/* (transfer full) (nullable): the object @text holds. */
static JsonNode *
parse_object(const char *text, gsize length, const EbJsonLimits *limits, gboolean *repaired)
{
    g_autofree char *valid = NULL;
    g_autoptr(JsonNode) root = NULL;

    if (limits != NULL && length > limits->max_bytes)
        return NULL;
    if (!g_utf8_validate_len(text, length, NULL)) {
        valid = g_utf8_make_valid(text, (gssize)length);
        text = valid;
        length = strlen(valid);
        *repaired = TRUE;
    }
    root = eb_json_parse(text, length, limits, NULL);
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root))
        return NULL;
    return g_steal_pointer(&root);
}

static JsonNode *
non_null(JsonObject *object, const char *member)
{
    JsonNode *node = eb_json_get_node(object, member);

    return node == NULL || JSON_NODE_HOLDS_NULL(node) ? NULL : node;
}

static EbJsonrpcFrameKind
classify(EbJsonrpcFrame *frame)
{
    JsonObject *object = eb_json_node_object(frame->root);

    frame->method = eb_json_get_string(object, "method");
    frame->id = eb_json_get_node(object, "id");
    frame->params = non_null(object, "params");
    frame->error = non_null(object, "error");
    frame->result = eb_json_get_node(object, "result");
    if (frame->id != NULL && !JSON_NODE_HOLDS_VALUE(frame->id) && !JSON_NODE_HOLDS_NULL(frame->id))
        return EB_JSONRPC_FRAME_NOISE;
    if (frame->method != NULL)
        return frame->id != NULL ? EB_JSONRPC_FRAME_REQUEST : EB_JSONRPC_FRAME_NOTIFICATION;
    if (frame->error != NULL && (frame->id != NULL || eb_json_get_node(object, "jsonrpc") != NULL))
        return EB_JSONRPC_FRAME_ERROR;
    /* An "id" alone is no answer: loggers write such objects. */
    if (frame->id != NULL && (frame->result != NULL || eb_json_get_node(object, "jsonrpc") != NULL))
        return EB_JSONRPC_FRAME_RESULT;
    return EB_JSONRPC_FRAME_NOISE;
}

static gboolean
is_candidate(const char *text, gsize length)
{
    static const char *const first[] = {"\"jsonrpc\"", "\"id\"", "\"result\"", "\"error\""};
    gsize i = 1;

    while (i < length && (text[i] == ' ' || text[i] == '\t'))
        i++;
    for (gsize k = 0; k < G_N_ELEMENTS(first); k++)
        if (length - i >= strlen(first[k]) && memcmp(text + i, first[k], strlen(first[k])) == 0)
            return TRUE;
    return FALSE;
}

/* An answer behind text that did not end its line ("Loading...{"jsonrpc":…"): dropping it would leave a call waiting. */
static void
find_answer(const char *text, gsize length, const EbJsonLimits *limits, EbJsonrpcFrame *frame)
{
    const char *end = text + length;
    const char *at = text;

    for (guint tries = 0; tries < MAX_CANDIDATES && at < end;) {
        at = memchr(at + 1, '{', (gsize)(end - at - 1));
        if (at == NULL)
            return;
        if (!is_candidate(at, (gsize)(end - at)))
            continue;
        tries++;
        frame->root = parse_object(at, (gsize)(end - at), limits, &frame->repaired);
        if (frame->root == NULL)
            continue;
        frame->kind = classify(frame);
        if (frame->kind == EB_JSONRPC_FRAME_RESULT || frame->kind == EB_JSONRPC_FRAME_ERROR) {
            frame->prefixed = TRUE;
            return;
        }
        eb_jsonrpc_frame_clear(frame);
        frame->kind = EB_JSONRPC_FRAME_NOISE;
        return;
    }
}

void
eb_jsonrpc_frame_parse(const char *line, gsize length, const EbJsonLimits *limits, EbJsonrpcFrame *frame)
{
    const gsize skip = skip_invisible(line, length);

    *frame = (EbJsonrpcFrame){.kind = EB_JSONRPC_FRAME_EMPTY};
    line += skip;
    length -= skip;
    while (length > 0 && (guchar)line[length - 1] <= 0x20)
        length--;
    if (length == 0)
        return;
    frame->kind = EB_JSONRPC_FRAME_NOISE;
    if (line[0] == '{')
        frame->root = parse_object(line, length, limits, &frame->repaired);
    if (frame->root != NULL)
        frame->kind = classify(frame);
    else if (line[0] != '[')
        find_answer(line, length, limits, frame);
}

void
eb_jsonrpc_frame_clear(EbJsonrpcFrame *frame)
{
    g_clear_pointer(&frame->root, json_node_unref);
    *frame = (EbJsonrpcFrame){.kind = EB_JSONRPC_FRAME_EMPTY};
}
