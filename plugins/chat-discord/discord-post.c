/* SPDX-License-Identifier: MIT */
#include "discord-post.h"

#include "discord-config.h"
#include "discord-text.h"

#include <string.h>

#define FLAG_SUPPRESS_EMBEDS (1 << 2)
#define SIGN_WARNING "\u26a0\ufe0f "
#define SIGN_THOUGHT "\U0001f4ad "

static const char *
sign_of(EbChatPostKind kind)
{
    switch (kind) {
    case EB_CHAT_POST_ERROR:
        return SIGN_WARNING;
    case EB_CHAT_POST_THOUGHT:
        return SIGN_THOUGHT;
    case EB_CHAT_POST_TEXT:
    case EB_CHAT_POST_TOOL:
    case EB_CHAT_POST_DIFF:
    case EB_CHAT_POST_NOTICE:
    case EB_CHAT_POST_USAGE:
    case EB_CHAT_POST_PLAN:
    case EB_CHAT_POST_GUEST:
    case EB_CHAT_POST_READY:
    case EB_CHAT_POST_END:
    case EB_CHAT_POST_PERMISSION:
    case EB_CHAT_POST_BUSY:
    case EB_CHAT_POST_ANSWER:
    case EB_CHAT_POST_FILE:
        break;
    }
    return "";
}

/* Discord trims both ends; what is left of blanks alone is refused as empty. */
static gboolean
is_blank(const char *text)
{
    for (; *text != '\0'; text = g_utf8_next_char(text))
        if (!g_unichar_isspace(g_utf8_get_char(text)))
            return FALSE;
    return TRUE;
}

/* (transfer full) */
static char *
cut(const char *text)
{
    glong length = g_utf8_strlen(text, -1);

    if (length <= DISCORD_POST_MAX_TEXT)
        return g_strdup(text);
    /* The number in the note has its own length: room for any of them. */
    const glong keep = DISCORD_POST_MAX_TEXT - 60;
    g_autofree char *head = g_utf8_substring(text, 0, keep);
    return g_strdup_printf("%s\n(%ld more characters did not fit)", head, length - keep);
}

char *
discord_post_text(const EbChatPost *post, gboolean first)
{
    g_autofree char *valid = g_utf8_make_valid(post->text != NULL ? post->text : "", -1);
    g_autoptr(GPtrArray) people = discord_list_people(post->notify, post->notify_also);

    if (post->kind == EB_CHAT_POST_NOTICE || post->kind == EB_CHAT_POST_ANSWER) {
        char *shown = discord_text_show_people(valid);
        g_free(valid);
        valid = shown;
    }
    if (is_blank(valid))
        return NULL;
    g_autofree char *mention = first ? discord_mention(people) : g_strdup("");
    const char *sign = g_str_has_prefix(valid, sign_of(post->kind)) ? "" : sign_of(post->kind);
    g_autofree char *whole = g_strconcat(sign, mention, valid, NULL);
    if (g_utf8_strlen(whole, -1) <= DISCORD_POST_MAX_TEXT)
        return g_steal_pointer(&whole);
    return cut(valid);
}

GPtrArray *
discord_list_people(const char *first, GPtrArray *more)
{
    GPtrArray *people = g_ptr_array_new();

    if (discord_is_snowflake(first))
        g_ptr_array_add(people, (gpointer)first);
    for (guint i = 0; more != NULL && i < more->len && people->len < DISCORD_POST_MAX_NOTIFY; i++) {
        const char *id = more->pdata[i];
        if (discord_is_snowflake(id) && !g_ptr_array_find_with_equal_func(people, id, g_str_equal, NULL))
            g_ptr_array_add(people, (gpointer)id);
    }
    return people;
}

char *
discord_mention(GPtrArray *people)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < people->len; i++)
        g_string_append_printf(text, "<@%s> ", (const char *)people->pdata[i]);
    return g_string_free(text, FALSE);
}

void
discord_silence_mentions(JsonObject *body, GPtrArray *notify)
{
    JsonObject *allowed = json_object_new();
    JsonArray *users = json_array_new();

    json_object_set_array_member(allowed, "parse", json_array_new());
    for (guint i = 0; notify != NULL && i < notify->len; i++)
        json_array_add_string_element(users, notify->pdata[i]);
    json_object_set_array_member(allowed, "users", users);
    json_object_set_boolean_member(allowed, "replied_user", FALSE);
    json_object_set_object_member(body, "allowed_mentions", allowed);
}

JsonObject *
discord_post_body(const EbChatPost *post, const char *text, gboolean first)
{
    JsonObject *body = json_object_new();
    g_autoptr(GPtrArray) people = discord_list_people(post->notify, post->notify_also);

    if (text != NULL)
        json_object_set_string_member(body, "content", text);
    json_object_set_int_member(body, "flags", FLAG_SUPPRESS_EMBEDS);
    discord_silence_mentions(body, first ? people : NULL);
    if (first && discord_is_snowflake(post->reply_to)) {
        JsonObject *reference = json_object_new();
        json_object_set_string_member(reference, "message_id", post->reply_to);
        /* Its author may have deleted it meanwhile: the answer matters all the same. */
        json_object_set_boolean_member(reference, "fail_if_not_exists", FALSE);
        json_object_set_object_member(body, "message_reference", reference);
    }
    return body;
}

gboolean
discord_post_check_files(const EbChatPost *post, GError **error)
{
    guint n = post->files != NULL ? post->files->len : 0;

    if (n > DISCORD_POST_MAX_FILES) {
        eb_set_error(error, EB_ERROR_QUOTA, "discord.files", "%u files are more than one message can carry (%d)", n,
                     DISCORD_POST_MAX_FILES);
        return FALSE;
    }
    for (guint i = 0; i < n; i++) {
        const EbChatFile *file = post->files->pdata[i];
        if (g_bytes_get_size(file->bytes) <= DISCORD_POST_MAX_FILE_BYTES)
            continue;
        g_autofree char *name = eb_log_escape(file->name, -1, 100);
        eb_set_error(error, EB_ERROR_QUOTA, "discord.files", "%s is larger than Discord takes (10 MiB)", name);
        return FALSE;
    }
    return TRUE;
}
