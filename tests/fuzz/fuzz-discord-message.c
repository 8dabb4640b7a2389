/* SPDX-License-Identifier: MIT */
#include "discord-config.h"
#include "discord-message.h"

#include <string.h>

#define CHANNEL "1180000000000000001"
#define US "1180000000000000050"

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
check(EbChatMessage *message, DiscordPlace place, DiscordVerdict verdict)
{
    if ((message != NULL) != (verdict == DISCORD_HEARD))
        g_error("a verdict that says something else than the message");
    if (message == NULL)
        return;
    if (place != DISCORD_PLACE_CHANNEL && place != DISCORD_PLACE_THREAD)
        g_error("heard where nobody listens");
    if (!discord_is_snowflake(message->id) || !discord_is_snowflake(message->author_id) ||
        (message->thread != NULL) != (place == DISCORD_PLACE_THREAD))
        g_error("a message without its ids");
    if (strcmp(message->author_id, US) == 0)
        g_error("heard itself");
    if (strlen(message->text) > DISCORD_MESSAGE_MAX_TEXT + 100 || !g_utf8_validate(message->text, -1, NULL))
        g_error("a text beyond its bound");
    if (message->attachments->len > DISCORD_MESSAGE_MAX_ATTACHMENTS)
        g_error("a list beyond its bound");
    for (guint i = 0; i < message->attachments->len; i++) {
        const EbChatAttachment *attachment = message->attachments->pdata[i];
        g_autoptr(DiscordFileRef) ref = discord_file_ref_parse(attachment->url, NULL);
        if (ref == NULL || strcmp(ref->message_id, message->id) != 0 || attachment->name == NULL)
            g_error("an attachment without its address");
    }
}

/* One JSON object a line, each taken as everything that the gateway may send. */
static void
run_line(DiscordThreads *threads, const char *line, gsize length)
{
    static const DiscordListener plain = {.user_id = US};
    static const DiscordListener strict = {.user_id = US, .strip_mentions = TRUE};
    g_autoptr(JsonNode) node = eb_json_parse(line, length, NULL, NULL);
    JsonObject *object = eb_json_node_object(node);
    const char *state = object != NULL ? discord_threads_note(threads, object) : NULL;
    DiscordVerdict verdict;

    if (object == NULL)
        return;
    if (state != NULL && strcmp(state, "open") != 0 && strcmp(state, "archived") != 0)
        g_error("a state nobody knows");
    discord_threads_note_all(threads, eb_json_get_array(object, "threads"));
    for (int place = DISCORD_PLACE_UNKNOWN; place <= DISCORD_PLACE_OTHER; place++) {
        g_autoptr(EbChatMessage) message = discord_message_read(object, (DiscordPlace)place, &plain, &verdict);
        check(message, (DiscordPlace)place, verdict);
        g_autoptr(EbChatMessage) edit = discord_message_read_edit(object, (DiscordPlace)place, &strict, &verdict);
        check(edit, (DiscordPlace)place, verdict);
    }
    g_autoptr(GPtrArray) ids = discord_message_read_deleted(object);
    if (ids->len > DISCORD_MESSAGE_MAX_IDS)
        g_error("a deletion beyond its bound");
    discord_file_ref_find(object, CHANNEL);
    discord_threads_remove(threads, eb_json_get_string(object, "id"));
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);
    const char *at = (const char *)data;
    const char *end = at + size;

    while (at < end) {
        const char *lf = memchr(at, '\n', (gsize)(end - at));
        const gsize length = (gsize)((lf != NULL ? lf : end) - at);

        run_line(threads, at, length);
        at += length + 1;
    }
    return 0;
}
