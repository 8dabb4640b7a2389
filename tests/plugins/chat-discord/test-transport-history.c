/* SPDX-License-Identifier: MIT */
/* What the service reads back, and the files that people attach. */
#include "transport-fixture.h"

#include <string.h>

/* --- reading back --- */

static void
test_read_back(Fixture *fixture, gconstpointer data)
{
    g_autofree char *before = fixture_say(fixture, NULL, "before");
    g_autoptr(GError) error = NULL;
    char *ids[130];

    for (guint i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autofree char *text = g_strdup_printf("number %u", i);
        ids[i] = fixture_say(fixture, NULL, text);
    }
    g_autoptr(JsonObject) bot =
        fixture_call(fixture, "say", "{\"user\":\"%s\",\"content\":\"beep\"}", DISCORD_STANDIN_OTHER_BOT);
    g_autofree char *ours = fixture_text(fixture, NULL, NULL, "ours");
    g_autoptr(GPtrArray) all = fixture_read_back(fixture, NULL, before, 1000, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(all->len, ==, G_N_ELEMENTS(ids));
    for (guint i = 0; i < all->len; i++) {
        const EbChatMessage *message = all->pdata[i];
        g_assert_cmpstr(message->id, ==, ids[i]);
        g_assert_true(message->replayed);
        g_assert_null(message->thread);
    }
    g_autoptr(GPtrArray) some = fixture_read_back(fixture, NULL, before, 7, &error);
    g_assert_cmpuint(some->len, ==, 7);
    g_assert_cmpstr(((const EbChatMessage *)some->pdata[6])->id, ==, ids[6]);
    /* Without a place to begin: the newest, the oldest of them first. */
    g_autoptr(GPtrArray) newest = fixture_read_back(fixture, NULL, NULL, 4, &error);
    g_assert_cmpuint(newest->len, ==, 4);
    g_assert_cmpstr(((const EbChatMessage *)newest->pdata[0])->id, ==, ids[126]);
    g_assert_cmpstr(((const EbChatMessage *)newest->pdata[3])->id, ==, ids[129]);
    g_autoptr(GPtrArray) more = fixture_read_back(fixture, NULL, NULL, 120, &error);
    g_assert_cmpuint(more->len, ==, 120);
    g_assert_cmpstr(((const EbChatMessage *)more->pdata[0])->id, ==, ids[10]);
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        g_free(ids[i]);
}

static void
test_read_back_thread(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "long");
    g_autofree char *said = fixture_say(fixture, thread, "go on");
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) shut =
        fixture_call(fixture, "change-thread", "{\"channel\":\"%s\",\"archived\":true}", thread);
    g_autoptr(GPtrArray) found = fixture_read_back(fixture, thread, thread, 100, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(found->len, ==, 1);
    g_assert_cmpstr(((const EbChatMessage *)found->pdata[0])->thread, ==, thread);
    g_assert_cmpstr(((const EbChatMessage *)found->pdata[0])->id, ==, said);
    /* After a restart nobody has told of it: archived threads are not in any list. */
    fixture_stop(fixture);
    fixture_make_transport(fixture);
    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    g_autoptr(GPtrArray) again = fixture_read_back(fixture, thread, thread, 100, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(again->len, ==, 1);
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", thread);
    g_assert_null(fixture_read_back(fixture, thread, thread, 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.10003", NULL);
}

/* A thread the service remembers, of a channel that is served no more. */
static void
test_elsewhere(Fixture *fixture, gconstpointer data)
{
    g_autoptr(JsonObject) opened =
        fixture_call(fixture, "thread", "{\"channel\":\"%s\",\"name\":\"old\"}", DISCORD_STANDIN_OTHER_CHANNEL);
    g_autofree char *thread = g_strdup(eb_json_get_string(opened, "id"));
    g_autoptr(JsonObject) shut =
        fixture_call(fixture, "change-thread", "{\"channel\":\"%s\",\"archived\":true}", thread);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_TEXT, "not here");

    fixture_stop(fixture);
    fixture_make_transport(fixture);
    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    g_assert_null(fixture_read_back(fixture, thread, thread, 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.thread-elsewhere", thread);
    g_clear_error(&error);
    g_assert_null(fixture_read_back(fixture, thread, thread, 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.thread-elsewhere", thread);
    g_clear_error(&error);
    g_assert_null(fixture_post(fixture, post, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.thread-elsewhere", thread);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"channel\":\"%s\",\"author\":\"bot\"}", thread), ==, 0);
}

/* --- files --- */

static const EbChatAttachment *
attach_file(Fixture *fixture, const char *file)
{
    fixture_forget_told(fixture);
    g_autoptr(JsonObject) said = fixture_call(fixture, "say", "{\"content\":\"\",\"attachments\":[%s]}", file);
    fixture_wait_told(fixture, "^message");
    const EbChatMessage *message = fixture->messages->pdata[0];
    g_assert_cmpuint(message->attachments->len, ==, 1);
    return message->attachments->pdata[0];
}

static void
test_fetch(Fixture *fixture, gconstpointer data)
{
    const EbChatAttachment *file = attach_file(fixture, "{\"name\":\"a.txt\",\"text\":\"hello file\"}");
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = fixture_fetch(fixture, file, 100, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(g_bytes_get_size(bytes), ==, 10);
    g_assert_cmpmem(g_bytes_get_data(bytes, NULL), 10, "hello file", 10);
    g_assert_null(fixture_fetch(fixture, file, 9, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.file-size", NULL);
    g_clear_error(&error);
    /* Links expire; the message knows the new one. */
    g_autoptr(JsonObject) expired = fixture_call(fixture, "expire-files", "{}");
    g_autoptr(GBytes) later = fixture_fetch(fixture, file, 100, &error);
    g_assert_no_error(error);
    g_assert_true(g_bytes_equal(bytes, later));
    g_autoptr(JsonObject) expired_again = fixture_call(fixture, "expire-files", "{}");
    const EbChatMessage *message = fixture->messages->pdata[0];
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", message->id);
    g_assert_null(fixture_fetch(fixture, file, 100, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.file-gone", NULL);
}

static void
test_fetch_elsewhere(Fixture *fixture, gconstpointer data)
{
    const EbChatAttachment *file =
        attach_file(fixture, "{\"name\":\"a.txt\",\"text\":\"x\",\"url\":\"http://169.254.169.254/latest/meta-data\"}");
    g_autoptr(GError) error = NULL;
    EbChatAttachment forged = {.id = (char *)"1", .name = (char *)"a", .url = (char *)"file:///etc/passwd"};

    g_assert_null(fixture_fetch(fixture, file, 100, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "discord.attachment-url", NULL);
    g_clear_error(&error);
    g_assert_null(fixture_fetch(fixture, &forged, 100, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "discord.attachment", NULL);
}

/* Names come as the person gave them, whatever Discord makes of them in its links. */
static void
test_names(Fixture *fixture, gconstpointer data)
{
    static const char *const names[] = {"\ud55c\uad6d\uc5b4.txt", "\U0001f600.png", "\u05d0\u05d1 \u202egnp.exe", "..",
                                        "a/b.txt"};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *json = g_strdup_printf("{\"name\":\"%s\",\"text\":\"x\"}", names[i]);
        const EbChatAttachment *file = attach_file(fixture, json);
        g_test_message("%s came as %s", names[i], file->name);
        g_assert_true(g_utf8_validate(file->name, -1, NULL));
        g_assert_cmpstr(file->name, !=, "");
        if (i < 2)
            g_assert_cmpstr(file->name, ==, names[i]);
    }
}

#define ADD(path, func) g_test_add("/discord/history/" path, Fixture, NULL, fixture_set_up, func, fixture_close)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("read-back", test_read_back);
    ADD("read-back-thread", test_read_back_thread);
    ADD("elsewhere", test_elsewhere);
    ADD("fetch", test_fetch);
    ADD("fetch-elsewhere", test_fetch_elsewhere);
    ADD("names", test_names);
    return g_test_run();
}
