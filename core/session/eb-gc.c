/* SPDX-License-Identifier: MIT */
#include "core/session/eb-gc.h"

EbGcClass *
eb_gc_class_new(const char *name)
{
    EbGcClass *self = g_new0(EbGcClass, 1);

    self->name = name;
    return self;
}

void
eb_gc_class_free(EbGcClass *self)
{
    if (self == NULL)
        return;
    g_free(self->note);
    g_free(self);
}

void
eb_gc_class_note(EbGcClass *self, const char *format, ...)
{
    va_list args;

    if (self->note != NULL)
        return;
    va_start(args, format);
    self->note = g_strdup_vprintf(format, args);
    va_end(args);
}

JsonObject *
eb_gc_class_to_json(const EbGcClass *self)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "class", self->name);
    json_object_set_int_member(object, "before", self->before);
    json_object_set_int_member(object, "removed", self->removed);
    json_object_set_int_member(object, "after", self->after);
    json_object_set_int_member(object, "bytes", (gint64)MIN(self->bytes, (guint64)G_MAXINT64));
    if (self->note != NULL)
        json_object_set_string_member(object, "note", self->note);
    return object;
}

JsonNode *
eb_gc_to_json(const GPtrArray *classes, gboolean plan)
{
    JsonObject *object = json_object_new();
    JsonArray *array = json_array_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    for (guint i = 0; i < classes->len; i++)
        json_array_add_object_element(array, eb_gc_class_to_json(classes->pdata[i]));
    json_object_set_int_member(object, "schema", 1);
    json_object_set_boolean_member(object, "plan", plan);
    json_object_set_array_member(object, "classes", array);
    json_node_take_object(node, object);
    return node;
}
