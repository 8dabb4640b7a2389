/* SPDX-License-Identifier: MIT */
#include "discord-message.h"
#include "eb-test.h"

#include <string.h>

#define CHANNEL "1180000000000000001"
#define THREAD "1180000000000000010"
#define US "1180000000000000050"
#define ANN "1180000000000000051"
#define MESSAGE "1180000000000000100"
#define FILE_ID "1180000000000000200"
#define BY_ANN "\"author\":{\"id\":\"" ANN "\",\"username\":\"ann\"}"
#define HEAD "\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL "\"," BY_ANN
#define URL "https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1"

static const DiscordListener listener = {.user_id = US};

static EbChatMessage *
read_at(const char *text, DiscordPlace place, DiscordVerdict *verdict)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, &error);

    g_assert_no_error(error);
    return discord_message_read(eb_json_node_object(node), place, &listener, verdict);
}

static EbChatMessage *
heard(const char *text)
{
    DiscordVerdict verdict;
    EbChatMessage *message = read_at(text, DISCORD_PLACE_CHANNEL, &verdict);

    g_assert_cmpint(verdict, ==, DISCORD_HEARD);
    g_assert_nonnull(message);
    return message;
}

static void
ignored(const char *text, DiscordPlace place, DiscordVerdict expected)
{
    DiscordVerdict verdict;

    g_assert_null(read_at(text, place, &verdict));
    g_assert_cmpint(verdict, ==, expected);
}

static void
test_plain(void)
{
    g_autoptr(EbChatMessage) message = heard("{" HEAD ",\"content\":\"site: make it blue\",\"type\":0,\"mentions\":[],"
                                             "\"member\":{\"nick\":\"Annie\"}}");

    g_assert_cmpstr(message->id, ==, MESSAGE);
    g_assert_null(message->thread);
    g_assert_cmpstr(message->author_id, ==, ANN);
    g_assert_cmpstr(message->author_name, ==, "Annie");
    g_assert_false(message->author_bot);
    g_assert_false(message->mentions_us);
    g_assert_false(message->replayed);
    g_assert_cmpstr(message->text, ==, "site: make it blue");
    g_assert_null(message->note);
    g_assert_cmpuint(message->attachments->len, ==, 0);
    /* 1180000000000000100 >> 22 milliseconds after the start of 2015 */
    g_assert_cmpint(message->sent_unix_ms, ==, 1701404323339);
}

static void
test_thread(void)
{
    DiscordVerdict verdict;
    g_autoptr(EbChatMessage) message =
        read_at("{\"id\":\"" MESSAGE "\",\"channel_id\":\"" THREAD "\"," BY_ANN ",\"content\":\"go on\",\"type\":19}",
                DISCORD_PLACE_THREAD, &verdict);

    g_assert_cmpint(verdict, ==, DISCORD_HEARD);
    g_assert_cmpstr(message->thread, ==, THREAD);
    g_assert_cmpstr(message->author_name, ==, "ann");
}

static void
test_ignored(void)
{
    const char *bot = "{\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL
                      "\",\"content\":\"x\",\"author\":{\"id\":\"" ANN "\",\"bot\":true}}";
    static const int types[] = {1, 4, 6, 7, 18, 20, 21, 23, 46, -1};

    ignored("{\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL "\",\"content\":\"x\",\"author\":{\"id\":\"" US "\"}}",
            DISCORD_PLACE_CHANNEL, DISCORD_IGNORED_OWN);
    ignored(bot, DISCORD_PLACE_CHANNEL, DISCORD_IGNORED_BOT);
    ignored("{" HEAD ",\"content\":\"x\",\"webhook_id\":\"" US "\"}", DISCORD_PLACE_CHANNEL, DISCORD_IGNORED_WEBHOOK);
    ignored("{" HEAD ",\"content\":\"x\",\"webhook_id\":\"" US "\"}", DISCORD_PLACE_THREAD, DISCORD_IGNORED_WEBHOOK);
    ignored("{" HEAD ",\"content\":\"x\"}", DISCORD_PLACE_OTHER, DISCORD_IGNORED_PLACE);
    ignored("{" HEAD ",\"content\":\"x\"}", DISCORD_PLACE_UNKNOWN, DISCORD_IGNORED_PLACE);
    ignored("{" HEAD ",\"content\":\"\",\"attachments\":[],\"embeds\":[]}", DISCORD_PLACE_CHANNEL,
            DISCORD_IGNORED_EMPTY);
    ignored("{" HEAD "}", DISCORD_PLACE_CHANNEL, DISCORD_IGNORED_EMPTY);
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *text = g_strdup_printf("{" HEAD ",\"content\":\"x\",\"type\":%d}", types[i]);
        ignored(text, DISCORD_PLACE_THREAD, DISCORD_IGNORED_TYPE);
    }
    /* In a thread a bot is heard, and marked: it has to be invited like anybody. */
    DiscordVerdict verdict;
    g_autoptr(EbChatMessage) invited = read_at(bot, DISCORD_PLACE_THREAD, &verdict);
    g_assert_cmpint(verdict, ==, DISCORD_HEARD);
    g_assert_true(invited->author_bot);
}

static void
test_broken(void)
{
    static const char *const texts[] = {
        "{}",
        "{\"id\":1180000000000000100,\"channel_id\":\"" CHANNEL "\"," BY_ANN ",\"content\":\"x\"}",
        "{\"id\":\"../x\",\"channel_id\":\"" CHANNEL "\"," BY_ANN ",\"content\":\"x\"}",
        "{\"id\":\"" MESSAGE "\",\"channel_id\":null," BY_ANN ",\"content\":\"x\"}",
        "{\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL "\",\"author\":[],\"content\":\"x\"}",
        "{\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL "\",\"author\":{\"id\":\"ann\"},\"content\":\"x\"}",
    };

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        ignored(texts[i], DISCORD_PLACE_CHANNEL, DISCORD_IGNORED_BROKEN);
    /* Wrong types of what is not needed change nothing. */
    g_autoptr(EbChatMessage) message =
        heard("{" HEAD ",\"content\":\"x\",\"mentions\":{},\"attachments\":7,\"flags\":\"8192\","
              "\"message_reference\":[1],\"member\":5,\"sticker_items\":{}}");
    g_assert_cmpstr(message->text, ==, "x");
    g_assert_null(message->note);
}

static void
test_mentions(void)
{
    const DiscordListener strict = {.user_id = US, .strip_mentions = TRUE};
    const char *text = "{" HEAD ",\"content\":\" <@" US "> do <@!" US "> it for <@" ANN "> \","
                       "\"mentions\":[{\"id\":\"" US "\"},{\"id\":\"" ANN "\"}]}";
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    g_autoptr(EbChatMessage) whole = heard(text);
    DiscordVerdict verdict;

    g_assert_true(whole->mentions_us);
    g_assert_nonnull(strstr(whole->text, "<@" US ">"));
    g_autoptr(EbChatMessage) bare =
        discord_message_read(eb_json_node_object(node), DISCORD_PLACE_CHANNEL, &strict, &verdict);
    g_assert_cmpstr(bare->text, ==, "do it for <@" ANN ">");
    g_assert_true(bare->mentions_us);
    g_autoptr(EbChatMessage) inside =
        discord_message_read(eb_json_node_object(node), DISCORD_PLACE_THREAD, &strict, &verdict);
    g_assert_cmpstr(inside->text, ==, whole->text);
    /* A mention and nothing else says something, even without the right to read. */
    g_autoptr(EbChatMessage) alone = heard("{" HEAD ",\"content\":\"\",\"mentions\":[{\"id\":\"" US "\"}]}");
    g_assert_true(alone->mentions_us);
}

static void
test_attachments(void)
{
    g_autoptr(EbChatMessage) message =
        heard("{" HEAD ",\"content\":\"\",\"attachments\":["
              "{\"id\":\"" FILE_ID "\",\"filename\":\"a.txt\",\"size\":5,\"content_type\":\"text/plain\",\"url\":\"" URL
              "\"},"
              "{\"id\":\"" FILE_ID
              "\",\"filename\":\"unknown.png\",\"title\":\"\u00c5ngstr\u00f6m\",\"size\":5,\"url\":\"" URL "\"},"
              "{\"id\":\"" FILE_ID "\",\"filename\":\"b.txt\",\"title\":\"b.txt\",\"size\":5,\"url\":\"" URL "\"},"
              "{\"id\":\"" FILE_ID "\",\"filename\":\"c.txt\",\"size\":-5,\"url\":\"" URL "\"},"
              "{\"id\":\"" FILE_ID "\",\"filename\":\"d.txt\",\"size\":5},"
              "{\"id\":\"x\",\"filename\":\"e.txt\",\"size\":5,\"url\":\"" URL "\"}]}");
    const EbChatAttachment *first = message->attachments->pdata[0];
    const EbChatAttachment *second = message->attachments->pdata[1];
    const EbChatAttachment *third = message->attachments->pdata[2];

    g_assert_cmpuint(message->attachments->len, ==, 3);
    g_assert_cmpstr(first->id, ==, FILE_ID);
    g_assert_cmpstr(first->name, ==, "a.txt");
    g_assert_cmpstr(first->content_type, ==, "text/plain");
    g_assert_cmpuint(first->size_bytes, ==, 5);
    g_assert_cmpstr(second->name, ==, "\u00c5ngstr\u00f6m.png");
    g_assert_cmpstr(third->name, ==, "b.txt");
    g_autoptr(DiscordFileRef) ref = discord_file_ref_parse(first->url, NULL);
    g_assert_cmpstr(ref->channel_id, ==, CHANNEL);
    g_assert_cmpstr(ref->message_id, ==, MESSAGE);
    g_assert_cmpstr(ref->url, ==, URL);
}

static void
test_file_refs(void)
{
    static const char *const bad[] = {NULL, "", URL, "1 2 " URL, CHANNEL " x " URL, CHANNEL "  " MESSAGE};
    const char *text =
        "{\"attachments\":[{\"id\":\"1\",\"url\":\"u1\"}],\"message_snapshots\":[{\"message\":{\"attachments\":"
        "[{\"id\":\"2\",\"url\":\"u2\"}]}}]}";
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(discord_file_ref_parse(bad[i], &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "discord.attachment", NULL);
    }
    g_assert_cmpstr(discord_file_ref_find(eb_json_node_object(node), "1"), ==, "u1");
    g_assert_cmpstr(discord_file_ref_find(eb_json_node_object(node), "2"), ==, "u2");
    g_assert_null(discord_file_ref_find(eb_json_node_object(node), "3"));
    g_assert_null(discord_file_ref_find(NULL, "1"));
}

static void
test_notes(void)
{
    g_autoptr(EbChatMessage) sticker = heard("{" HEAD ",\"content\":\"\",\"sticker_items\":[{\"id\":\"1\"}]}");
    g_autoptr(EbChatMessage) poll = heard("{" HEAD ",\"content\":\"\",\"poll\":{\"question\":{}}}");
    g_autoptr(EbChatMessage) voice =
        heard("{" HEAD ",\"content\":\"\",\"flags\":8192,\"attachments\":[{\"id\":\"" FILE_ID
              "\",\"filename\":\"voice-message.ogg\",\"size\":5,\"url\":\"" URL "\"}]}");
    g_autoptr(EbChatMessage) both =
        heard("{" HEAD ",\"content\":\"look\",\"poll\":{},\"sticker_items\":[{\"id\":\"1\"}]}");

    g_assert_cmpstr(sticker->note, ==, "a sticker");
    g_assert_cmpstr(poll->note, ==, "a poll");
    g_assert_cmpstr(voice->note, ==, "a voice message");
    g_assert_cmpuint(voice->attachments->len, ==, 0);
    g_assert_cmpstr(both->note, ==, "a sticker and a poll");
    g_assert_cmpstr(both->text, ==, "look");
}

static void
test_forward(void)
{
    g_autoptr(EbChatMessage) message =
        heard("{" HEAD ",\"content\":\"\",\"message_reference\":{\"type\":1},\"message_snapshots\":[{\"message\":{"
              "\"content\":\"one\\ntwo\",\"attachments\":[{\"id\":\"" FILE_ID
              "\",\"filename\":\"a.txt\",\"size\":1,\"url\":\"" URL "\"}]}}]}");
    /* A reply is no forward, whatever comes along. */
    g_autoptr(EbChatMessage) reply = heard("{" HEAD ",\"content\":\"yes\",\"message_reference\":{\"type\":0},"
                                           "\"message_snapshots\":[{\"message\":{\"content\":\"no\"}}]}");

    g_assert_cmpstr(message->text, ==, "(forwarded message)\n> one\n> two");
    g_assert_cmpuint(message->attachments->len, ==, 1);
    g_assert_cmpstr(reply->text, ==, "yes");
}

static void
test_bounds(void)
{
    g_autoptr(GString) text = g_string_new("{" HEAD ",\"content\":\"");

    while (text->len < 2 * DISCORD_MESSAGE_MAX_TEXT)
        g_string_append(text, "\u20ac");
    g_string_append(text, "\",\"attachments\":[");
    for (guint i = 0; i < 2 * DISCORD_MESSAGE_MAX_ATTACHMENTS; i++)
        g_string_append_printf(text, "%s{\"id\":\"" FILE_ID "\",\"filename\":\"f\",\"size\":1,\"url\":\"" URL "\"}",
                               i > 0 ? "," : "");
    g_string_append(text, "]}");
    g_autoptr(EbChatMessage) message = heard(text->str);
    g_assert_cmpuint(strlen(message->text), <=, DISCORD_MESSAGE_MAX_TEXT + 64);
    g_assert_cmpuint(strlen(message->text), >, DISCORD_MESSAGE_MAX_TEXT - 4);
    g_assert_true(g_utf8_validate(message->text, -1, NULL));
    g_assert_true(g_str_has_suffix(message->text, "(the rest was too long and is left out)"));
    g_assert_cmpuint(message->attachments->len, ==, DISCORD_MESSAGE_MAX_ATTACHMENTS);
}

static void
check_edit(const char *fields, DiscordVerdict expected, const char *content)
{
    g_autofree char *text = g_strdup_printf("{" HEAD "%s}", fields);
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    DiscordVerdict verdict;
    g_autoptr(EbChatMessage) message =
        discord_message_read_edit(eb_json_node_object(node), DISCORD_PLACE_CHANNEL, &listener, &verdict);

    g_assert_cmpint(verdict, ==, expected);
    g_assert_cmpstr(message != NULL ? message->text : NULL, ==, content);
}

/* A link that got its preview is no change of what somebody said. */
static void
test_edits(void)
{
    check_edit(",\"content\":\"new\",\"edited_timestamp\":\"2026-08-01T10:00:00Z\"", DISCORD_HEARD, "new");
    check_edit(",\"content\":\"old\",\"edited_timestamp\":null,\"embeds\":[{}]", DISCORD_IGNORED_UNCHANGED, NULL);
    check_edit(",\"content\":\"old\",\"embeds\":[{}]", DISCORD_IGNORED_UNCHANGED, NULL);
    check_edit(",\"edited_timestamp\":\"2026-08-01T10:00:00Z\"", DISCORD_IGNORED_UNCHANGED, NULL);
}

static guint
count_deleted(const char *text, const char *first)
{
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    g_autoptr(GPtrArray) ids = discord_message_read_deleted(eb_json_node_object(node));

    if (ids->len > 0)
        g_assert_cmpstr(ids->pdata[0], ==, first);
    return ids->len;
}

static void
test_deleted(void)
{
    g_autoptr(GString) many = g_string_new("{\"ids\":[");

    for (guint i = 0; i < 2 * DISCORD_MESSAGE_MAX_IDS; i++)
        g_string_append_printf(many, "%s\"1180000000000%06u\"", i > 0 ? "," : "", i);
    g_string_append(many, "]}");
    g_assert_cmpuint(count_deleted("{\"id\":\"" MESSAGE "\",\"channel_id\":\"" CHANNEL "\"}", MESSAGE), ==, 1);
    g_assert_cmpuint(count_deleted("{\"ids\":[\"" MESSAGE "\",7,\"x\",\"" ANN "\"]}", MESSAGE), ==, 2);
    g_assert_cmpuint(count_deleted("{\"id\":7,\"ids\":{}}", NULL), ==, 0);
    g_assert_cmpuint(count_deleted(many->str, "1180000000000000000"), ==, DISCORD_MESSAGE_MAX_IDS);
}

static void
test_snowflakes(void)
{
    g_assert_cmpint(discord_snowflake_compare("999999999999999999", "1000000000000000000"), <, 0);
    g_assert_cmpint(discord_snowflake_compare("1000000000000000001", "1000000000000000000"), >, 0);
    g_assert_cmpint(discord_snowflake_compare(MESSAGE, MESSAGE), ==, 0);
    g_assert_cmpint(discord_snowflake_ms("175928847299117063"), ==, 1462015105796);
    g_assert_cmpint(discord_snowflake_ms("x"), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/message/plain", test_plain);
    g_test_add_func("/discord/message/thread", test_thread);
    g_test_add_func("/discord/message/ignored", test_ignored);
    g_test_add_func("/discord/message/broken", test_broken);
    g_test_add_func("/discord/message/mentions", test_mentions);
    g_test_add_func("/discord/message/attachments", test_attachments);
    g_test_add_func("/discord/message/file-refs", test_file_refs);
    g_test_add_func("/discord/message/notes", test_notes);
    g_test_add_func("/discord/message/forward", test_forward);
    g_test_add_func("/discord/message/bounds", test_bounds);
    g_test_add_func("/discord/message/edits", test_edits);
    g_test_add_func("/discord/message/deleted", test_deleted);
    g_test_add_func("/discord/message/snowflakes", test_snowflakes);
    return g_test_run();
}
