/* SPDX-License-Identifier: MIT */

#include "ds-validate.h"

#include <string.h>

#define MAX_CONTENT 2000
#define MAX_NONCE 25
#define MAX_MENTIONS 100
#define FLAGS_SETTABLE (4 | 4096 | 8192 | 32768)
#define FLAG_EPHEMERAL 64

void
ds_error_at(JsonObject *tree, const char *path, const char *code, const char *message)
{
    g_auto(GStrv) names = g_strsplit(path, ".", -1);
    JsonArray *errors;

    for (guint i = 0; names[i] != NULL; i++) {
        JsonObject *next = eb_json_get_object(tree, names[i]);

        if (next == NULL) {
            next = json_object_new();
            json_object_set_object_member(tree, names[i], next);
        }
        tree = next;
    }
    errors = eb_json_get_array(tree, "_errors");
    if (errors == NULL) {
        errors = json_array_new();
        json_object_set_array_member(tree, "_errors", errors);
    }
    json_array_add_object_element(errors, ds_object("s:code", code, "s:message", message, NULL));
}

static gboolean
is_null(JsonNode *node)
{
    return node == NULL || JSON_NODE_HOLDS_NULL(node);
}

static gboolean
is_type(JsonNode *node, GType type)
{
    return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

void
ds_validate_length(JsonObject *object, const char *member, const char *path, glong min, glong max, gboolean required,
                   JsonObject *tree)
{
    JsonNode *node = eb_json_get_node(object, member);
    g_autofree char *words = g_strdup_printf("Must be between %ld and %ld in length.", min, max);
    const char *text;

    if (is_null(node)) {
        if (required)
            ds_error_at(tree, path, "BASE_TYPE_REQUIRED", "This field is required");
        return;
    }
    if (!is_type(node, G_TYPE_STRING)) {
        ds_error_at(tree, path, "STRING_TYPE_CONVERT", "Could not interpret \"value\" as string.");
        return;
    }
    text = json_node_get_string(node);
    if (g_utf8_strlen(text, -1) > max)
        ds_error_at(tree, path, min > 0 ? "BASE_TYPE_BAD_LENGTH" : "BASE_TYPE_MAX_LENGTH", words);
    else if (g_utf8_strlen(text, -1) < min)
        ds_error_at(tree, path, min > 0 && required ? "BASE_TYPE_BAD_LENGTH" : "BASE_TYPE_MIN_LENGTH", words);
}

static gboolean
vanishes(gunichar c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || (c >= 0x80 && c < 0xa0) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

char *
ds_clean_content(const char *text)
{
    GString *kept = g_string_new(NULL);
    const char *start;
    const char *end;
    char *result;

    for (const char *at = text; *at != '\0'; at = g_utf8_next_char(at)) {
        const gunichar c = g_utf8_get_char(at);

        if (!vanishes(c))
            g_string_append_unichar(kept, c);
    }
    start = kept->str;
    while (*start != '\0' && g_unichar_isspace(g_utf8_get_char(start)))
        start = g_utf8_next_char(start);
    end = kept->str + kept->len;
    while (end > start) {
        const char *before = g_utf8_prev_char(end);

        if (!g_unichar_isspace(g_utf8_get_char(before)))
            break;
        end = before;
    }
    result = g_strndup(start, (gsize)(end - start));
    g_string_free(kept, TRUE);
    return result;
}

gboolean
ds_is_emoji(const char *text)
{
    static const struct {
        gunichar first;
        gunichar last;
    } ranges[] = {{0xa9, 0xa9},     {0xae, 0xae},     {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122},
                  {0x2139, 0x2139}, {0x2194, 0x21aa}, {0x231a, 0x23ff}, {0x24c2, 0x24c2}, {0x25aa, 0x27bf},
                  {0x2934, 0x2935}, {0x2b05, 0x2b55}, {0x3030, 0x303d}, {0x3297, 0x3299}, {0x1f000, 0x1faff}};
    const gunichar first = g_utf8_validate(text, -1, NULL) ? g_utf8_get_char(text) : 0;

    if (g_utf8_strlen(text, -1) > 12)
        return FALSE;
    if (first < 0x80) /* a keycap */
        return first != 0 && strchr("0123456789#*", (int)first) != NULL && strstr(text, "\xe2\x83\xa3") != NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(ranges); i++) {
        if (first >= ranges[i].first && first <= ranges[i].last)
            return TRUE;
    }
    return FALSE;
}

/* --- the parts of a message's body --- */

static void
check_known(DsRequest *request, JsonObject *body, DsBodyKind kind)
{
    static const char *const known[] = {"content",       "nonce",       "tts",         "embeds", "allowed_mentions",
                                        "components",    "sticker_ids", "attachments", "flags",  "message_reference",
                                        "enforce_nonce", "poll",        NULL};
    g_autoptr(GList) names = json_object_get_members(body);

    for (GList *name = names; name != NULL; name = name->next) {
        if (!g_strv_contains(known, name->data))
            ds_world_violation(request->world, "unknown-field", "%s %s: %s", request->method, request->path,
                               (const char *)name->data);
    }
    if (is_null(eb_json_get_node(body, "allowed_mentions")))
        ds_world_violation(request->world, "allowed-mentions", "%s %s: a body without allowed_mentions",
                           request->method, request->path);
    if (kind != DS_BODY_CREATE && json_object_has_member(body, "nonce"))
        ds_world_violation(request->world, "nonce", "%s %s takes no nonce", request->method, request->path);
}

static void
check_content(DsRequest *request, JsonObject *body, JsonObject *tree)
{
    JsonNode *content = eb_json_get_node(body, "content");
    JsonNode *nonce = eb_json_get_node(body, "nonce");
    g_autofree char *clean = NULL;

    if (!is_null(content) && !is_type(content, G_TYPE_STRING))
        ds_error_at(tree, "content", "BASE_TYPE_STRING", "Could not interpret \"value\" as string.");
    else if (!is_null(content) && g_utf8_strlen(json_node_get_string(content), -1) > MAX_CONTENT)
        ds_error_at(tree, "content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.");
    if (!is_null(nonce) && is_type(nonce, G_TYPE_STRING) && g_utf8_strlen(json_node_get_string(nonce), -1) > MAX_NONCE)
        ds_error_at(tree, "nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.");
    else if (!is_null(nonce) && !is_type(nonce, G_TYPE_STRING) && !is_type(nonce, G_TYPE_INT64))
        ds_error_at(tree, "nonce", "UNION_TYPE_CHOICES", "Could not interpret nonce.");
    for (const char *const *flag = (const char *const[]){"tts", "enforce_nonce", NULL}; *flag != NULL; flag++) {
        JsonNode *node = eb_json_get_node(body, *flag);

        if (!is_null(node) && !is_type(node, G_TYPE_BOOLEAN))
            ds_error_at(tree, *flag, "BASE_TYPE_BOOLEAN", "Could not interpret \"value\" as boolean.");
    }
}

static void
check_ids(DsRequest *request, JsonObject *allowed, const char *kind, JsonObject *tree)
{
    JsonArray *ids = eb_json_get_array(allowed, kind);
    g_autofree char *path = g_strdup_printf("allowed_mentions.%s", kind);
    const guint n = ids != NULL ? json_array_get_length(ids) : 0;

    if (n > MAX_MENTIONS)
        ds_error_at(tree, path, "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.");
    if (n > 0 && ds_has(eb_json_get_array(allowed, "parse"), kind))
        ds_error_at(tree, "allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE",
                    "parse and a list of the same kind are mutually exclusive.");
    for (guint i = 0; i < n; i++) {
        gboolean number = FALSE;
        g_autofree char *id = ds_id_node(json_array_get_element(ids, i), &number);

        if (!ds_is_snowflake(id))
            ds_error_at(tree, path, "NUMBER_TYPE_COERCE", "Value is not snowflake.");
        if (number)
            ds_world_violation(request->world, "id-as-number", "%s %s: %s", request->method, request->path, path);
    }
}

static void
check_mentions(DsRequest *request, JsonObject *body, JsonObject *tree)
{
    JsonNode *node = eb_json_get_node(body, "allowed_mentions");
    JsonObject *allowed = eb_json_get_object(body, "allowed_mentions");
    JsonArray *parse = eb_json_get_array(allowed, "parse");

    if (is_null(node))
        return;
    if (allowed == NULL) {
        ds_error_at(tree, "allowed_mentions", "MODEL_TYPE_CONVERT", "Only dictionaries may be used.");
        return;
    }
    for (guint i = 0; parse != NULL && i < json_array_get_length(parse); i++) {
        const char *kind = eb_json_array_string(parse, i);

        if (g_strcmp0(kind, "users") != 0 && g_strcmp0(kind, "roles") != 0 && g_strcmp0(kind, "everyone") != 0)
            ds_error_at(tree, "allowed_mentions.parse", "BASE_TYPE_CHOICES",
                        "Value must be one of users, roles, everyone.");
    }
    check_ids(request, allowed, "users", tree);
    check_ids(request, allowed, "roles", tree);
}

static gboolean
has_upload(DsRequest *request, const char *id)
{
    g_autofree char *field = g_strdup_printf("files[%s]", id);

    for (guint i = 0; request->uploads != NULL && i < request->uploads->len; i++) {
        if (strcmp(((DsUpload *)g_ptr_array_index(request->uploads, i))->field, field) == 0)
            return TRUE;
    }
    return FALSE;
}

static void
check_attachments(DsRequest *request, JsonObject *body, DsBodyKind kind, JsonObject *tree)
{
    JsonArray *list = eb_json_get_array(body, "attachments");
    const guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *entry = eb_json_array_object(list, i);
        g_autofree char *id = ds_id(entry, "id");
        g_autofree char *path = g_strdup_printf("attachments.%u", i);
        g_autofree char *described = g_strdup_printf("%s.description", path);

        if (id == NULL)
            ds_error_at(tree, path, "BASE_TYPE_REQUIRED", "This field is required");
        else if (kind != DS_BODY_EDIT && !has_upload(request, id))
            ds_error_at(tree, path, "ATTACHMENT_NOT_FOUND", "There is no file for this attachment.");
        ds_validate_length(entry, "description", described, 0, 1024, FALSE, tree);
    }
    if (request->uploads != NULL && request->uploads->len > 0 && n == 0)
        ds_world_violation(request->world, "attachments", "%s %s: files without attachments", request->method,
                           request->path);
}

static void
check_reference(DsRequest *request, JsonObject *body, JsonObject *tree)
{
    JsonObject *reference = eb_json_get_object(body, "message_reference");
    gboolean number = FALSE;
    g_autofree char *id = ds_id_node(eb_json_get_node(reference, "message_id"), &number);
    DsChannel *channel = request->args[0] != NULL ? ds_world_channel(request->world, request->args[0]) : NULL;
    DsMessage *message;

    if (reference == NULL)
        return;
    if (!ds_is_snowflake(id)) {
        ds_error_at(tree, "message_reference.message_id", "NUMBER_TYPE_COERCE", "Value is not snowflake.");
        return;
    }
    if (number)
        ds_world_violation(request->world, "id-as-number", "%s %s: message_reference", request->method, request->path);
    message = channel != NULL ? ds_channel_message(channel, id) : NULL;
    if (message == NULL && eb_json_get_bool(reference, "fail_if_not_exists", TRUE))
        ds_error_at(tree, "message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message");
    else if (message != NULL && eb_json_get_int(message->json, "type", 0) != 0 &&
             eb_json_get_int(message->json, "type", 0) != 19 && eb_json_get_int(message->json, "type", 0) != 20)
        ds_error_at(tree, "message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE",
                    "Cannot reply to a system message");
}

JsonObject *
ds_validate_message(DsRequest *request, JsonObject *body, DsBodyKind kind)
{
    JsonObject *tree = json_object_new();
    JsonNode *components = eb_json_get_node(body, "components");
    JsonNode *embeds = eb_json_get_node(body, "embeds");
    const gint64 flags = eb_json_get_int(body, "flags", 0);
    const gint64 settable = kind == DS_BODY_INTERACTION ? FLAGS_SETTABLE | FLAG_EPHEMERAL : FLAGS_SETTABLE;

    check_known(request, body, kind);
    check_content(request, body, tree);
    check_mentions(request, body, tree);
    check_attachments(request, body, kind, tree);
    check_reference(request, body, tree);
    if (!is_null(components) && !JSON_NODE_HOLDS_ARRAY(components))
        ds_error_at(tree, "components", "BASE_TYPE_LIST", "Only lists may be used.");
    else if (!is_null(components))
        ds_validate_components(json_node_get_array(components), tree);
    if (!is_null(embeds) && !JSON_NODE_HOLDS_ARRAY(embeds))
        ds_error_at(tree, "embeds", "BASE_TYPE_LIST", "Only lists may be used.");
    else if (!is_null(embeds))
        ds_validate_embeds(json_node_get_array(embeds), tree);
    if ((flags & ~settable) != 0)
        ds_world_violation(request->world, "flags", "%s %s: flags %" G_GINT64_FORMAT " cannot be set", request->method,
                           request->path, flags);
    return tree;
}
