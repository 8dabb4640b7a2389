/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * Bounded JSON. Every byte from a guest, a chat service, an HTTP peer or a file goes through eb_json_parse():
 * json-glib recurses without a bound and dies of deep nesting, so size, depth and UTF-8 are checked first.
 * json_parser_* is banned elsewhere (tools/check-source).
 */

/** EB_JSON_MAX_DEPTH: no limit goes deeper, whatever a caller asks for. */
#define EB_JSON_MAX_DEPTH 512
/** EB_JSON_MAX_VALUES: of one text. Read, an "{}" of three bytes with its comma takes some 300: without a bound 32 MiB of
 *  text were 3 GiB of memory and seconds of the main loop. Large servers of chats and hosts have a fifth of it. */
#define EB_JSON_MAX_VALUES (512 * 1024)

/** EbJsonLimits: bounds of one parse. */
typedef struct {
    gsize max_bytes; /* longest text */
    guint max_depth; /* deepest nesting of arrays and objects, EB_JSON_MAX_DEPTH at most */
} EbJsonLimits;

/** EB_JSON_LIMITS_DEFAULT: 32 MiB (the ACP SDK's line limit), depth 64. */
EB_API extern const EbJsonLimits EB_JSON_LIMITS_DEFAULT;
/** EB_JSON_LIMITS_SMALL: 1 MiB, depth 32: control messages, API answers. */
EB_API extern const EbJsonLimits EB_JSON_LIMITS_SMALL;

/**
 * eb_json_parse:
 * @text: bytes, need not be NUL-terminated
 * @length: bytes
 * @limits: (nullable): NULL = EB_JSON_LIMITS_DEFAULT
 *
 * Strict RFC 8259. An escaped NUL or half a surrogate pair, which programs do send when they cut text, becomes
 * U+FFFD; raw bytes that are not UTF-8 are refused.
 *
 * Returns: (transfer full) (nullable): the root node; NULL with EB_ERROR_INVALID (reason "json.size", "json.depth",
 * "json.values", "json.utf8" or "json.syntax") and the byte offset.
 */
EB_API JsonNode *eb_json_parse(const char *text, gsize length, const EbJsonLimits *limits, GError **error);

/** eb_json_scan: the check alone, no allocation: TRUE when size, depth, UTF-8 and grammar are fine. */
EB_API gboolean eb_json_scan(const char *text, gsize length, const EbJsonLimits *limits, GError **error);

/** eb_json_write: (transfer full): compact text without newline. */
EB_API char *eb_json_write(JsonNode *node, gsize *length);

/*
 * Readers that never raise a critical: a missing member, a null and a wrong type all give the fallback.
 * @object may be NULL. Returned strings, objects and arrays belong to @object (transfer none).
 */
EB_API const char *eb_json_get_string(JsonObject *object, const char *member);
EB_API gint64 eb_json_get_int(JsonObject *object, const char *member, gint64 fallback);
EB_API double eb_json_get_double(JsonObject *object, const char *member, double fallback);
EB_API gboolean eb_json_get_bool(JsonObject *object, const char *member, gboolean fallback);
EB_API JsonObject *eb_json_get_object(JsonObject *object, const char *member);
EB_API JsonArray *eb_json_get_array(JsonObject *object, const char *member);
/** eb_json_get_node: (nullable) (transfer none): NULL when absent. */
EB_API JsonNode *eb_json_get_node(JsonObject *object, const char *member);
/** eb_json_node_object: (nullable) (transfer none): the object in @node (nullable), or NULL. */
EB_API JsonObject *eb_json_node_object(JsonNode *node);
/** eb_json_array_object: (nullable) (transfer none): the object at @index, or NULL. */
EB_API JsonObject *eb_json_array_object(JsonArray *array, guint index);
/** eb_json_array_string: (nullable) (transfer none): the string at @index, or NULL. */
EB_API const char *eb_json_array_string(JsonArray *array, guint index);

G_END_DECLS
