/* SPDX-License-Identifier: MIT */
#include "incus-reply.h"

#include "incus-error.h"

/* incusd is trusted with root, but not with our memory: answers are bounded like anybody's. */
static const EbJsonLimits limits = {.max_bytes = 16 * 1024 * 1024, .max_depth = 32};

/* Status codes of operations in the API: 400 and above have ended badly, 401 is "cancelled". */
#define STATUS_SUCCESS 200
#define STATUS_FIRST_BAD 400

void
incus_reply_free(IncusReply *self)
{
    if (self == NULL)
        return;
    g_clear_pointer(&self->root, json_node_unref);
    g_free(self->operation);
    g_free(self);
}

static gboolean
is_operation_id(const char *id)
{
    return id != NULL && g_uuid_string_is_valid(id);
}

IncusReply *
incus_reply_parse(const char *body, gsize length, guint http_status, GError **error)
{
    /* A long poll's header comes at once; a daemon that dies before the answer leaves an empty body. */
    if (length == 0) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "incus.lost", "incusd went away before it answered");
        if (error != NULL && *error != NULL)
            eb_error_set_retry(*error, 1000);
        return NULL;
    }
    g_autoptr(JsonNode) root = eb_json_parse(body, length, &limits, NULL);
    JsonObject *object = eb_json_node_object(root);
    const char *type = eb_json_get_string(object, "type");
    if (type == NULL) {
        if (http_status >= 400) {
            g_autofree char *text = g_strdup_printf("HTTP status %u without an API answer", http_status);
            g_propagate_error(error, incus_error_new((int)http_status, text));
        } else {
            eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "incusd sent something that is no API answer");
        }
        return NULL;
    }
    if (g_str_equal(type, "error")) {
        gint64 code = eb_json_get_int(object, "error_code", http_status);
        g_propagate_error(error, incus_error_new((int)CLAMP(code, 0, 999), eb_json_get_string(object, "error")));
        return NULL;
    }
    g_autoptr(IncusReply) self = g_new0(IncusReply, 1);
    self->metadata = eb_json_get_node(object, "metadata");
    if (g_str_equal(type, "async")) {
        JsonObject *operation = eb_json_node_object(self->metadata);
        const char *id = eb_json_get_string(operation, "id");
        if (!is_operation_id(id)) {
            eb_set_error(error, EB_ERROR_PROTOCOL, "incus.protocol", "incusd started an operation without an id");
            return NULL;
        }
        self->operation = g_strdup(id);
        self->operation_metadata = eb_json_get_object(operation, "metadata");
    }
    self->root = g_steal_pointer(&root);
    return g_steal_pointer(&self);
}

JsonObject *
incus_reply_object(IncusReply *self)
{
    return eb_json_node_object(self->metadata);
}

gboolean
incus_reply_outcome(IncusReply *self, GError **error)
{
    JsonObject *operation = incus_reply_object(self);
    gint64 code = eb_json_get_int(operation, "status_code", STATUS_SUCCESS);
    const char *status = eb_json_get_string(operation, "status");
    const char *text = eb_json_get_string(operation, "err");
    gboolean failed =
        code >= STATUS_FIRST_BAD || g_strcmp0(status, "Failure") == 0 || g_strcmp0(status, "Cancelled") == 0;
    if (!failed)
        return TRUE;
    if (text == NULL || *text == '\0')
        text = status;
    g_propagate_error(error, incus_error_new(code >= STATUS_FIRST_BAD ? (int)CLAMP(code, 400, 999) : 500, text));
    return FALSE;
}
