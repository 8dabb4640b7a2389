/* SPDX-License-Identifier: MIT */
#include "discord-multipart.h"

#include <string.h>

#define MAX_NAME 200
#define DEFAULT_TYPE "application/octet-stream"

char *
discord_multipart_name(const char *name)
{
    g_autofree char *valid = g_utf8_make_valid(name, -1);
    g_autoptr(GString) result = g_string_new(NULL);
    for (const char *at = valid; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        gsize length = (gsize)(g_utf8_next_char(at) - at);
        if (result->len + length > MAX_NAME)
            break;
        /* Format characters are what turns "exe.txt" around on a screen. */
        GUnicodeType type = g_unichar_type(c);
        if (type == G_UNICODE_CONTROL || type == G_UNICODE_FORMAT || type == G_UNICODE_LINE_SEPARATOR ||
            type == G_UNICODE_PARAGRAPH_SEPARATOR || c == '"' || c == '\\' || c == '/')
            g_string_append_c(result, '_');
        else
            g_string_append_len(result, at, (gssize)length);
    }
    if (result->len == 0 || g_str_equal(result->str, ".") || g_str_equal(result->str, ".."))
        g_string_assign(result, "file");
    return g_string_free(g_steal_pointer(&result), FALSE);
}

/* type/subtype and parameters in plain characters; anything else could end the header. */
static const char *
safe_type(const char *type)
{
    if (type == NULL || *type == '\0' || strlen(type) > MAX_NAME)
        return DEFAULT_TYPE;
    for (const char *at = type; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && strchr("!#$&^_.+-/;= ", *at) == NULL)
            return DEFAULT_TYPE;
    return strchr(type, '/') != NULL ? type : DEFAULT_TYPE;
}

/* (transfer full): the payload with a list of the files, which the service asks for. */
static JsonNode *
complete_payload(JsonNode *payload, GPtrArray *files)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autoptr(JsonObject) object = json_object_new();
    JsonObject *given = eb_json_node_object(payload);
    if (given != NULL) {
        JsonObjectIter iter;
        const char *name;
        JsonNode *value;
        json_object_iter_init(&iter, given);
        while (json_object_iter_next(&iter, &name, &value))
            json_object_set_member(object, name, json_node_copy(value));
    }
    if (!json_object_has_member(object, "attachments")) {
        JsonArray *list = json_array_new();
        for (guint i = 0; i < files->len; i++) {
            EbChatFile *file = g_ptr_array_index(files, i);
            g_autofree char *name = discord_multipart_name(file->name);
            JsonObject *entry = json_object_new();
            json_object_set_int_member(entry, "id", i);
            json_object_set_string_member(entry, "filename", name);
            json_array_add_object_element(list, entry);
        }
        json_object_set_array_member(object, "attachments", list);
    }
    json_node_set_object(node, object);
    return g_steal_pointer(&node);
}

static void
append_bytes(GByteArray *body, const char *text, gsize length)
{
    g_byte_array_append(body, (const guint8 *)text, (guint)length);
}

GBytes *
discord_multipart_build(JsonNode *payload, GPtrArray *files, const char *boundary, GError **error)
{
    gsize total = 0;
    for (guint i = 0; i < files->len; i++)
        total += g_bytes_get_size(((EbChatFile *)g_ptr_array_index(files, i))->bytes);
    if (files->len > DISCORD_MULTIPART_MAX_FILES || total > DISCORD_MULTIPART_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_QUOTA, "discord.upload-size",
                     "%u files of %" G_GSIZE_FORMAT " bytes together are more than one message can carry (%d files, "
                     "%d bytes)",
                     files->len, total, DISCORD_MULTIPART_MAX_FILES, DISCORD_MULTIPART_MAX_BYTES);
        return NULL;
    }
    g_autoptr(JsonNode) node = complete_payload(payload, files);
    gsize length;
    g_autofree char *json = eb_json_write(node, &length);
    g_autoptr(GByteArray) body = g_byte_array_sized_new((guint)(total + length + 1024));
    g_autofree char *head = g_strdup_printf("--%s\r\nContent-Disposition: form-data; name=\"payload_json\"\r\n"
                                            "Content-Type: application/json\r\n\r\n",
                                            boundary);
    append_bytes(body, head, strlen(head));
    append_bytes(body, json, length);
    for (guint i = 0; i < files->len; i++) {
        EbChatFile *file = g_ptr_array_index(files, i);
        g_autofree char *name = discord_multipart_name(file->name);
        g_autofree char *part = g_strdup_printf("\r\n--%s\r\nContent-Disposition: form-data; name=\"files[%u]\"; "
                                                "filename=\"%s\"\r\nContent-Type: %s\r\n\r\n",
                                                boundary, i, name, safe_type(file->content_type));
        gsize size;
        const char *data = g_bytes_get_data(file->bytes, &size);
        append_bytes(body, part, strlen(part));
        append_bytes(body, data, size);
    }
    g_autofree char *end = g_strdup_printf("\r\n--%s--\r\n", boundary);
    append_bytes(body, end, strlen(end));
    return g_byte_array_free_to_bytes(g_steal_pointer(&body));
}
