/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * ds_object: (transfer full): an object from pairs of "t:name" and value, ended by NULL. t is the value's type: s text
 * (nullable: null), i int, l gint64, d double, b gboolean, o object and a array (transfer full), O and A the same
 * (transfer none), n null (no value follows).
 */
JsonObject *ds_object(const char *first, ...) G_GNUC_NULL_TERMINATED;
/** ds_object_set: the same into an object that is there. */
void ds_object_set(JsonObject *object, const char *first, ...) G_GNUC_NULL_TERMINATED;
/** ds_strings: (transfer full): an array of texts, ended by NULL. */
JsonArray *ds_strings(const char *first, ...) G_GNUC_NULL_TERMINATED;
/** ds_copy: (transfer full): a deep copy. */
JsonObject *ds_copy(JsonObject *object);
/** ds_text: (transfer full) */
char *ds_text(JsonObject *object);
/** ds_take: (transfer full): a node that owns @object. */
JsonNode *ds_take(JsonObject *object);
JsonNode *ds_take_array(JsonArray *array);
/** ds_id: (transfer full) (nullable): an id given as text, or as the number that Discord takes too. */
char *ds_id(JsonObject *object, const char *member);
/** ds_id_node: (transfer full) (nullable) */
char *ds_id_node(JsonNode *node, gboolean *number);
/** ds_has: whether @array has @text. */
gboolean ds_has(JsonArray *array, const char *text);
/** ds_remove: without @text. */
JsonArray *ds_without(JsonArray *array, const char *text);
/** ds_is_snowflake: up to 20 digits that fit into 64 bits. */
gboolean ds_is_snowflake(const char *text);

G_END_DECLS
