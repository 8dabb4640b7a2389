/* SPDX-License-Identifier: MIT */

#include "ds-request.h"

#include <string.h>

#define MAX_REQUEST ((gsize)25 * 1024 * 1024)
#define MAX_FILE ((gsize)10 * 1024 * 1024)
#define MAX_FILES 10

static void
upload_free(DsUpload *self)
{
    g_free(self->field);
    g_free(self->name);
    g_free(self->type);
    g_bytes_unref(self->bytes);
    g_free(self);
}

static gboolean
take_json(DsRequest *self, GBytes *bytes)
{
    gsize length = 0;
    const char *text = g_bytes_get_data(bytes, &length);
    g_autoptr(JsonNode) node = eb_json_parse(text != NULL ? text : "", length, NULL, NULL);

    if (node != NULL && JSON_NODE_HOLDS_OBJECT(node)) {
        self->body = json_object_ref(json_node_get_object(node));
    } else if (node != NULL && JSON_NODE_HOLDS_ARRAY(node)) {
        self->list = json_array_ref(json_node_get_array(node));
    } else {
        ds_refuse_code(self, 50109);
        return FALSE;
    }
    return TRUE;
}

static gboolean
take_part(DsRequest *self, SoupMessageHeaders *headers, GBytes *bytes)
{
    g_autofree char *disposition = NULL;
    g_autoptr(GHashTable) params = NULL;
    const char *field;
    const char *name;
    DsUpload *upload;

    if (!soup_message_headers_get_content_disposition(headers, &disposition, &params) ||
        strcmp(disposition, "form-data") != 0)
        return TRUE;
    field = g_hash_table_lookup(params, "name");
    name = g_hash_table_lookup(params, "filename");
    if (g_strcmp0(field, "payload_json") == 0)
        return take_json(self, bytes);
    if (field == NULL || name == NULL) {
        ds_world_violation(self->world, "multipart", "a part without name or filename");
        return TRUE;
    }
    if (!g_str_has_prefix(field, "files["))
        ds_world_violation(self->world, "multipart", "a part is called %s", field);
    upload = g_new0(DsUpload, 1);
    upload->field = g_strdup(field);
    upload->name = g_strdup(name);
    upload->type = g_strdup(soup_message_headers_get_content_type(headers, NULL));
    upload->bytes = g_bytes_ref(bytes);
    g_ptr_array_add(self->uploads, upload);
    return TRUE;
}

static gboolean
take_multipart(DsRequest *self, GBytes *body)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(self->message);
    g_autoptr(SoupMultipart) multipart = soup_multipart_new_from_message(headers, body);

    if (multipart == NULL) {
        ds_refuse_code(self, 50035);
        return FALSE;
    }
    self->uploads = g_ptr_array_new_with_free_func((GDestroyNotify)upload_free);
    for (int i = 0; i < soup_multipart_get_length(multipart); i++) {
        SoupMessageHeaders *part = NULL;
        GBytes *bytes = NULL; /* of the multipart's */

        if (soup_multipart_get_part(multipart, i, &part, &bytes) && !take_part(self, part, bytes))
            return FALSE;
    }
    if (self->body == NULL)
        self->body = json_object_new();
    if (self->uploads->len > MAX_FILES) {
        ds_refuse_code(self, 50035);
        return FALSE;
    }
    for (guint i = 0; i < self->uploads->len; i++) {
        DsUpload *upload = g_ptr_array_index(self->uploads, i);

        if (g_bytes_get_size(upload->bytes) > MAX_FILE) {
            ds_refuse_code(self, 40005);
            return FALSE;
        }
    }
    return TRUE;
}

gboolean
ds_body_read(DsRequest *self)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(self->message);
    SoupMessageBody *message_body = soup_server_message_get_request_body(self->message);
    g_autoptr(GBytes) body = soup_message_body_flatten(message_body);
    const char *type = soup_message_headers_get_content_type(headers, NULL);

    if (g_bytes_get_size(body) > MAX_REQUEST) {
        ds_refuse_code(self, 40005);
        return FALSE;
    }
    if (g_bytes_get_size(body) == 0)
        return TRUE;
    if (g_strcmp0(type, "application/json") == 0)
        return take_json(self, body);
    if (g_strcmp0(type, "multipart/form-data") == 0)
        return take_multipart(self, body);
    ds_refuse(self, 400, 50035,
              "Expected \"Content-Type\" header to be one of {'application/json', 'multipart/form-data'}.");
    return FALSE;
}
