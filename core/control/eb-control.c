/* SPDX-License-Identifier: MIT */
#include "core/control/eb-control.h"

#include <string.h>

#define MAX_CHOICES 64

char *
eb_control_path(const char *state_dir)
{
    return g_build_filename(state_dir, "run", "control.sock", NULL);
}

JsonNode *
eb_control_object(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_node_take_object(node, object);
    return node;
}

void
eb_control_set_text(JsonObject *object, const char *member, const char *text)
{
    if (text != NULL)
        json_object_set_string_member(object, member, text);
}

JsonNode *
eb_control_post_to_json(EbChatPost *post)
{
    JsonObject *object = json_object_new();
    gsize length = post->text != NULL ? strlen(post->text) : 0;

    eb_control_set_text(object, "thread", post->thread);
    json_object_set_int_member(object, "kind", post->kind);
    if (length > EB_CONTROL_MAX_TEXT) {
        /* The frame has a bound; a character is never cut in two. */
        char *end = g_utf8_find_prev_char(post->text, post->text + EB_CONTROL_MAX_TEXT);
        g_autofree char *head = g_strndup(post->text, (gsize)(end - post->text));
        g_autofree char *cut =
            g_strdup_printf("%s\n(%" G_GSIZE_FORMAT " bytes more are not shown)\n", head, length - strlen(head));
        json_object_set_string_member(object, "text", cut);
    } else {
        eb_control_set_text(object, "text", post->text);
    }
    eb_control_set_text(object, "key", post->key);
    json_object_set_boolean_member(object, "append", post->append);
    json_object_set_boolean_member(object, "final", post->final);
    if (post->data != NULL) {
        g_autoptr(JsonNode) data = eb_control_object(json_object_ref(post->data));
        gsize data_length = 0;
        g_autofree char *text = eb_json_write(data, &data_length);
        if (data_length <= EB_CONTROL_MAX_TEXT)
            json_object_set_object_member(object, "data", json_object_ref(post->data));
    }
    return eb_control_object(object);
}

EbChatPost *
eb_control_post_from_json(JsonObject *object)
{
    const char *thread = eb_json_get_string(object, "thread");
    const char *text = eb_json_get_string(object, "text");
    gint64 kind = eb_json_get_int(object, "kind", -1);
    JsonObject *data = eb_json_get_object(object, "data");

    if (kind < EB_CHAT_POST_TEXT || kind > EB_CHAT_POST_PERMISSION)
        return NULL;
    EbChatPost *post =
        eb_chat_post_new(thread != NULL ? thread : "main", (EbChatPostKind)kind, text != NULL ? text : "");
    post->key = g_strdup(eb_json_get_string(object, "key"));
    post->append = eb_json_get_bool(object, "append", FALSE);
    post->final = eb_json_get_bool(object, "final", FALSE);
    post->data = data != NULL ? json_object_ref(data) : NULL;
    return post;
}

JsonNode *
eb_control_question_to_json(EbChatQuestion *question, guint timeout_ms)
{
    JsonObject *object = json_object_new();
    JsonArray *choices = json_array_new();

    eb_control_set_text(object, "thread", question->thread);
    eb_control_set_text(object, "text", question->text);
    json_object_set_int_member(object, "timeout_ms", timeout_ms);
    for (guint i = 0; i < question->choices->len && i < MAX_CHOICES; i++) {
        const EbChatChoice *choice = question->choices->pdata[i];
        JsonObject *item = json_object_new();
        eb_control_set_text(item, "id", choice->id);
        eb_control_set_text(item, "label", choice->label);
        eb_control_set_text(item, "kind", choice->kind);
        json_array_add_object_element(choices, item);
    }
    json_object_set_array_member(object, "choices", choices);
    json_object_set_boolean_member(object, "standing", question->standing);
    if (question->data != NULL)
        json_object_set_object_member(object, "data", json_object_ref(question->data));
    return eb_control_object(object);
}

EbChatQuestion *
eb_control_question_from_json(JsonObject *object, guint *timeout_ms)
{
    const char *thread = eb_json_get_string(object, "thread");
    const char *text = eb_json_get_string(object, "text");
    JsonArray *choices = eb_json_get_array(object, "choices");
    JsonObject *data = eb_json_get_object(object, "data");
    guint n = choices != NULL ? json_array_get_length(choices) : 0;

    if (text == NULL || n == 0 || n > MAX_CHOICES)
        return NULL;
    EbChatQuestion *question = eb_chat_question_new(thread != NULL ? thread : "main", text);
    for (guint i = 0; i < n; i++) {
        JsonObject *item = eb_json_array_object(choices, i);
        const char *id = eb_json_get_string(item, "id");
        const char *label = eb_json_get_string(item, "label");
        if (id != NULL && label != NULL)
            eb_chat_question_add_choice(question, id, label, eb_json_get_string(item, "kind"));
    }
    question->data = data != NULL ? json_object_ref(data) : NULL;
    question->standing = eb_json_get_bool(object, "standing", FALSE);
    *timeout_ms = (guint)CLAMP(eb_json_get_int(object, "timeout_ms", 0), 0, G_MAXINT32);
    return question;
}
