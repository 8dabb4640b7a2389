/* SPDX-License-Identifier: MIT */
#include "discord-message.h"

#include "discord-config.h"

#include <string.h>

/* Kinds of messages people write: the others are Discord's own. */
#define TYPE_DEFAULT 0
#define TYPE_REPLY 19
/* message_reference.type of a forward */
#define REFERENCE_FORWARD 1
#define FLAG_VOICE (1 << 13)
/* First millisecond of snowflakes, 2015-01-01. */
#define EPOCH_MS G_GINT64_CONSTANT(1420070400000)
#define MAX_NAME_BYTES 256
#define MAX_URL_BYTES 4096
#define MAX_SNAPSHOTS 10
#define CUT_NOTE "\n(the rest was too long and is left out)"

gint64
discord_snowflake_ms(const char *id)
{
    return discord_is_snowflake(id) ? (gint64)(g_ascii_strtoull(id, NULL, 10) >> 22) + EPOCH_MS : 0;
}

int
discord_snowflake_compare(const char *a, const char *b)
{
    gsize length_a = strlen(a), length_b = strlen(b);

    if (length_a != length_b)
        return length_a < length_b ? -1 : 1;
    return strcmp(a, b);
}

/* (transfer full): at most @max bytes, cut between characters */
static char *
bounded(const char *text, gsize max)
{
    gsize length = strlen(text);

    if (length > max) {
        const char *end = g_utf8_find_prev_char(text, text + max + 1);
        length = end != NULL ? (gsize)(end - text) : 0;
    }
    return g_strndup(text, length);
}

static void
append_bounded(GString *text, const char *more)
{
    if (text->len >= DISCORD_MESSAGE_MAX_TEXT)
        return;
    g_autofree char *part = bounded(more, DISCORD_MESSAGE_MAX_TEXT - text->len);
    g_string_append(text, part);
    if (strlen(part) < strlen(more))
        g_string_append(text, CUT_NOTE);
}

/* --- what was said --- */

static gboolean
mentions(JsonObject *data, const char *user_id)
{
    JsonArray *list = eb_json_get_array(data, "mentions");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; user_id != NULL && i < n; i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(list, i), "id"), user_id) == 0)
            return TRUE;
    return FALSE;
}

/* Takes "<@ID>" and "<@!ID>" out of @text, with the blanks behind it. */
static void
strip_mentions(GString *text, const char *user_id)
{
    g_autofree char *plain = g_strdup_printf("<@%s>", user_id);
    g_autofree char *nick = g_strdup_printf("<@!%s>", user_id);
    const char *const forms[] = {plain, nick};

    for (guint i = 0; i < G_N_ELEMENTS(forms); i++)
        for (char *at = strstr(text->str, forms[i]); at != NULL; at = strstr(text->str, forms[i])) {
            gssize start = at - text->str;
            gsize length = strlen(forms[i]);
            length += strspn(at + length, " \t");
            g_string_erase(text, start, (gssize)length);
        }
    g_strstrip(text->str);
    g_string_set_size(text, strlen(text->str));
}

/* A forwarded message: the words are somebody else's, so they are quoted. */
static void
append_snapshot(GString *text, JsonObject *snapshot)
{
    const char *content = eb_json_get_string(snapshot, "content");

    if (content == NULL || *content == '\0')
        return;
    g_auto(GStrv) lines = g_strsplit(content, "\n", 1000);
    append_bounded(text, text->len > 0 ? "\n(forwarded message)" : "(forwarded message)");
    for (char **line = lines; *line != NULL; line++) {
        append_bounded(text, "\n> ");
        append_bounded(text, *line);
    }
}

static void
add_attachments(EbChatMessage *message, JsonObject *data, const char *channel_id, const char *message_id)
{
    JsonArray *list = eb_json_get_array(data, "attachments");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; i < n && message->attachments->len < DISCORD_MESSAGE_MAX_ATTACHMENTS; i++) {
        JsonObject *item = eb_json_array_object(list, i);
        const char *id = eb_json_get_string(item, "id");
        const char *file = eb_json_get_string(item, "filename");
        /* Discord spells file names in ASCII and keeps what the person called it, without its ending, as the title. */
        const char *title = eb_json_get_string(item, "title");
        const char *url = eb_json_get_string(item, "url");
        const char *type = eb_json_get_string(item, "content_type");
        gint64 size = eb_json_get_int(item, "size", -1);
        const char *ending = file != NULL ? strrchr(file, '.') : NULL;
        if (!discord_is_snowflake(id) || file == NULL || url == NULL || strlen(url) > MAX_URL_BYTES || size < 0)
            continue;
        g_autofree char *whole = title != NULL && *title != '\0' && !(ending != NULL && g_str_has_suffix(title, ending))
                                     ? g_strconcat(title, ending, NULL)
                                     : g_strdup(title != NULL && *title != '\0' ? title : file);
        g_autofree char *name = bounded(whole, 4 * MAX_NAME_BYTES);
        g_autofree char *kind = type != NULL ? bounded(type, MAX_NAME_BYTES) : NULL;
        g_autofree char *ref = g_strdup_printf("%s %s %s", channel_id, message_id, url);
        eb_chat_message_add_attachment(message, id, name, kind, (guint64)size, ref);
    }
}

static gboolean
has_items(JsonObject *data, const char *member)
{
    JsonArray *list = eb_json_get_array(data, member);

    return list != NULL && json_array_get_length(list) > 0;
}

/* (transfer full) (nullable): what cannot be read */
static char *
read_note(JsonObject *data)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new();

    if (has_items(data, "sticker_items") || has_items(data, "stickers"))
        g_ptr_array_add(parts, (gpointer) "a sticker");
    if (eb_json_get_object(data, "poll") != NULL)
        g_ptr_array_add(parts, (gpointer) "a poll");
    if ((eb_json_get_int(data, "flags", 0) & FLAG_VOICE) != 0)
        g_ptr_array_add(parts, (gpointer) "a voice message");
    if (parts->len == 0)
        return NULL;
    g_ptr_array_add(parts, NULL);
    return g_strjoinv(" and ", (char **)parts->pdata);
}

static void
read_content(EbChatMessage *message, JsonObject *data, DiscordPlace place, const DiscordListener *listener)
{
    const char *content = eb_json_get_string(data, "content");
    const char *channel_id = eb_json_get_string(data, "channel_id");
    JsonObject *reference = eb_json_get_object(data, "message_reference");
    gboolean forward = eb_json_get_int(reference, "type", 0) == REFERENCE_FORWARD;
    JsonArray *snapshots = forward ? eb_json_get_array(data, "message_snapshots") : NULL;
    guint n = snapshots != NULL ? json_array_get_length(snapshots) : 0;
    g_autoptr(GString) text = g_string_new(NULL);

    append_bounded(text, content != NULL ? content : "");
    message->mentions_us = mentions(data, listener->user_id);
    if (listener->strip_mentions && place == DISCORD_PLACE_CHANNEL && listener->user_id != NULL)
        strip_mentions(text, listener->user_id);
    message->note = read_note(data);
    if ((eb_json_get_int(data, "flags", 0) & FLAG_VOICE) == 0)
        add_attachments(message, data, channel_id, message->id);
    for (guint i = 0; i < MIN(n, MAX_SNAPSHOTS); i++) {
        JsonObject *snapshot = eb_json_get_object(eb_json_array_object(snapshots, i), "message");
        append_snapshot(text, snapshot);
        add_attachments(message, snapshot, channel_id, message->id);
    }
    g_free(message->text);
    message->text = g_strdup(text->str);
}

static char *
read_author_name(JsonObject *data, JsonObject *author)
{
    const char *names[] = {eb_json_get_string(eb_json_get_object(data, "member"), "nick"),
                           eb_json_get_string(author, "global_name"), eb_json_get_string(author, "username")};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (names[i] != NULL && *names[i] != '\0')
            return bounded(names[i], MAX_NAME_BYTES);
    return NULL;
}

/* --- the judgement --- */

static DiscordVerdict
judge(JsonObject *data, DiscordPlace place, const DiscordListener *listener)
{
    JsonObject *author = eb_json_get_object(data, "author");
    const char *author_id = eb_json_get_string(author, "id");
    gint64 type = eb_json_get_int(data, "type", TYPE_DEFAULT);

    if (!discord_is_snowflake(eb_json_get_string(data, "id")) ||
        !discord_is_snowflake(eb_json_get_string(data, "channel_id")) || !discord_is_snowflake(author_id))
        return DISCORD_IGNORED_BROKEN;
    if (g_strcmp0(author_id, listener->user_id) == 0)
        return DISCORD_IGNORED_OWN;
    if (place != DISCORD_PLACE_CHANNEL && place != DISCORD_PLACE_THREAD)
        return DISCORD_IGNORED_PLACE;
    if (type != TYPE_DEFAULT && type != TYPE_REPLY)
        return DISCORD_IGNORED_TYPE;
    if (eb_json_get_string(data, "webhook_id") != NULL || eb_json_get_bool(author, "system", FALSE))
        return DISCORD_IGNORED_WEBHOOK;
    if (eb_json_get_bool(author, "bot", FALSE) && place == DISCORD_PLACE_CHANNEL)
        return DISCORD_IGNORED_BOT;
    return DISCORD_HEARD;
}

EbChatMessage *
discord_message_read(JsonObject *data, DiscordPlace place, const DiscordListener *listener, DiscordVerdict *verdict)
{
    JsonObject *author = eb_json_get_object(data, "author");
    const char *id = eb_json_get_string(data, "id");
    const char *thread = place == DISCORD_PLACE_THREAD ? eb_json_get_string(data, "channel_id") : NULL;

    *verdict = judge(data, place, listener);
    if (*verdict != DISCORD_HEARD)
        return NULL;
    g_autoptr(EbChatMessage) message = eb_chat_message_new(id, thread, eb_json_get_string(author, "id"), "");
    message->sent_unix_ms = discord_snowflake_ms(id);
    g_free(message->author_name);
    message->author_name = read_author_name(data, author);
    message->author_bot = eb_json_get_bool(author, "bot", FALSE);
    read_content(message, data, place, listener);
    if (*message->text == '\0' && message->attachments->len == 0 && message->note == NULL && !message->mentions_us) {
        *verdict = DISCORD_IGNORED_EMPTY;
        return NULL;
    }
    return g_steal_pointer(&message);
}

EbChatMessage *
discord_message_read_edit(JsonObject *data, DiscordPlace place, const DiscordListener *listener,
                          DiscordVerdict *verdict)
{
    if (eb_json_get_string(data, "edited_timestamp") == NULL || eb_json_get_string(data, "content") == NULL) {
        *verdict = DISCORD_IGNORED_UNCHANGED;
        return NULL;
    }
    return discord_message_read(data, place, listener, verdict);
}

GPtrArray *
discord_message_read_deleted(JsonObject *data)
{
    GPtrArray *ids = g_ptr_array_new();
    const char *id = eb_json_get_string(data, "id");
    JsonArray *list = eb_json_get_array(data, "ids");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    if (discord_is_snowflake(id))
        g_ptr_array_add(ids, (gpointer)id);
    for (guint i = 0; i < n && ids->len < DISCORD_MESSAGE_MAX_IDS; i++) {
        id = eb_json_array_string(list, i);
        if (discord_is_snowflake(id))
            g_ptr_array_add(ids, (gpointer)id);
    }
    return ids;
}

/* --- attachments --- */

DiscordFileRef *
discord_file_ref_parse(const char *text, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "", " ", 3);

    if (g_strv_length(parts) != 3 || !discord_is_snowflake(parts[0]) || !discord_is_snowflake(parts[1])) {
        eb_set_error(error, EB_ERROR_INVALID, "discord.attachment", "the attachment has no address of Discord's");
        return NULL;
    }
    DiscordFileRef *self = g_new0(DiscordFileRef, 1);
    self->channel_id = g_strdup(parts[0]);
    self->message_id = g_strdup(parts[1]);
    self->url = g_strdup(parts[2]);
    return self;
}

static const char *
find_url(JsonObject *data, const char *id)
{
    JsonArray *list = eb_json_get_array(data, "attachments");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *item = eb_json_array_object(list, i);
        if (g_strcmp0(eb_json_get_string(item, "id"), id) == 0)
            return eb_json_get_string(item, "url");
    }
    return NULL;
}

const char *
discord_file_ref_find(JsonObject *message, const char *id)
{
    JsonArray *snapshots = eb_json_get_array(message, "message_snapshots");
    guint n = snapshots != NULL ? json_array_get_length(snapshots) : 0;
    const char *url = find_url(message, id);

    for (guint i = 0; url == NULL && i < MIN(n, MAX_SNAPSHOTS); i++)
        url = find_url(eb_json_get_object(eb_json_array_object(snapshots, i), "message"), id);
    return url;
}

void
discord_file_ref_free(DiscordFileRef *self)
{
    g_free(self->channel_id);
    g_free(self->message_id);
    g_free(self->url);
    g_free(self);
}
