/* SPDX-License-Identifier: MIT */
#include "discord-post.h"
#include "eb-test.h"

#include <string.h>

#define ANN "1180000000000000051"
#define MESSAGE "1180000000000000100"

static EbChatPost *
post_new(EbChatPostKind kind, const char *text)
{
    return eb_chat_post_new("1180000000000000010", kind, text);
}

static void
check_text(EbChatPostKind kind, const char *text, const char *expected)
{
    g_autoptr(EbChatPost) post = post_new(kind, text);
    g_autofree char *shown = discord_post_text(post, TRUE);

    g_assert_cmpstr(shown, ==, expected);
}

static void
test_signs(void)
{
    check_text(EB_CHAT_POST_TEXT, "done", "done");
    check_text(EB_CHAT_POST_NOTICE, "waiting", "waiting");
    check_text(EB_CHAT_POST_ERROR, "no guest", "\u26a0\ufe0f no guest");
    check_text(EB_CHAT_POST_ERROR, "\u26a0\ufe0f no guest", "\u26a0\ufe0f no guest");
    check_text(EB_CHAT_POST_THOUGHT, "hm", "\U0001f4ad hm");
    check_text(EB_CHAT_POST_TOOL, "\U0001f527 `run` `make`", "\U0001f527 `run` `make`");
    check_text(EB_CHAT_POST_TEXT,
               "a\xff"
               "b",
               "a\ufffd"
               "b");
}

/* Names in what errand-box says; an agent's text keeps its broken mentions, whatever kind of post carries it. */
static void
test_people(void)
{
    static const char broken[] = "owner: <@\u200b123456789012345678>, <@\u200b&123456789012345678> @\u200beveryone";
    static const char shown[] = "owner: <@123456789012345678>, <@\u200b&123456789012345678> @\u200beveryone";
    check_text(EB_CHAT_POST_ANSWER, broken, shown);
    check_text(EB_CHAT_POST_NOTICE, broken, shown);
    check_text(EB_CHAT_POST_TEXT, broken, broken);
    check_text(EB_CHAT_POST_TOOL, broken, broken);
    check_text(EB_CHAT_POST_ANSWER, "<@\u200b1> <@\u200b", "<@\u200b1> <@\u200b");
    check_text(EB_CHAT_POST_ANSWER, "<@\u200b123456789012345678", "<@\u200b123456789012345678");
}

/* Discord refuses what is nothing but blanks. */
static void
test_nothing(void)
{
    check_text(EB_CHAT_POST_TEXT, "", NULL);
    check_text(EB_CHAT_POST_TEXT, NULL, NULL);
    check_text(EB_CHAT_POST_ERROR, " \n\t", NULL);
    check_text(EB_CHAT_POST_TEXT, "\u00a0\u2003", NULL);
}

static char *
repeat(const char *what, guint n)
{
    GString *text = g_string_new(NULL);

    while (n-- > 0)
        g_string_append(text, what);
    return g_string_free(text, FALSE);
}

static void
test_cut(void)
{
    g_autofree char *fits = repeat("\U0001f600", DISCORD_POST_MAX_TEXT);
    g_autofree char *longer = repeat("\U0001f600", DISCORD_POST_MAX_TEXT + 1);
    g_autofree char *longest = repeat("x", 1000000);
    g_autoptr(EbChatPost) good = post_new(EB_CHAT_POST_TEXT, fits);
    g_autoptr(EbChatPost) over = post_new(EB_CHAT_POST_TEXT, longer);
    g_autoptr(EbChatPost) far_over = post_new(EB_CHAT_POST_TEXT, longest);
    g_autofree char *good_text = discord_post_text(good, TRUE);
    g_autofree char *over_text = discord_post_text(over, TRUE);
    g_autofree char *far_text = discord_post_text(far_over, TRUE);

    g_assert_cmpstr(good_text, ==, fits);
    g_assert_cmpint(g_utf8_strlen(over_text, -1), <=, DISCORD_POST_MAX_TEXT);
    g_assert_true(g_utf8_validate(over_text, -1, NULL));
    g_assert_true(g_str_has_suffix(over_text, "\n(61 more characters did not fit)"));
    g_assert_cmpint(g_utf8_strlen(far_text, -1), <=, DISCORD_POST_MAX_TEXT);
    g_assert_true(g_str_has_suffix(far_text, "\n(998060 more characters did not fit)"));
    /* What stands in front gives way to the text. */
    g_autoptr(EbChatPost) error = post_new(EB_CHAT_POST_ERROR, fits);
    g_autofree char *error_text = discord_post_text(error, TRUE);
    g_assert_cmpstr(error_text, ==, fits);
}

static void
check_mentions(JsonObject *body, const char *user)
{
    JsonObject *allowed = eb_json_get_object(body, "allowed_mentions");
    JsonArray *users = eb_json_get_array(allowed, "users");

    g_assert_nonnull(allowed);
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(allowed, "parse")), ==, 0);
    g_assert_false(json_object_has_member(allowed, "roles"));
    g_assert_false(eb_json_get_bool(allowed, "replied_user", TRUE));
    g_assert_cmpuint(json_array_get_length(users), ==, user != NULL ? 1 : 0);
    g_assert_cmpstr(eb_json_array_string(users, 0), ==, user);
}

static void
test_notify(void)
{
    g_autoptr(EbChatPost) post = post_new(EB_CHAT_POST_END, "@everyone done");

    post->notify = g_strdup(ANN);
    g_autofree char *first = discord_post_text(post, TRUE);
    g_autofree char *later = discord_post_text(post, FALSE);
    g_autoptr(JsonObject) body = discord_post_body(post, first, TRUE);
    g_autoptr(JsonObject) edit = discord_post_body(post, later, FALSE);
    g_assert_cmpstr(first, ==, "<@" ANN "> @everyone done");
    g_assert_cmpstr(later, ==, "@everyone done");
    check_mentions(body, ANN);
    check_mentions(edit, NULL);
    /* Anything that is no id notifies nobody. */
    g_free(post->notify);
    post->notify = g_strdup("everyone");
    g_autofree char *plain = discord_post_text(post, TRUE);
    g_autoptr(JsonObject) quiet = discord_post_body(post, plain, TRUE);
    g_assert_cmpstr(plain, ==, "@everyone done");
    check_mentions(quiet, NULL);
}

static void
test_body(void)
{
    g_autoptr(EbChatPost) post = post_new(EB_CHAT_POST_NOTICE, "x");

    post->reply_to = g_strdup(MESSAGE);
    g_autoptr(JsonObject) body = discord_post_body(post, "x", TRUE);
    g_autoptr(JsonObject) edit = discord_post_body(post, "x", FALSE);
    JsonObject *reference = eb_json_get_object(body, "message_reference");
    g_assert_cmpstr(eb_json_get_string(body, "content"), ==, "x");
    g_assert_cmpint(eb_json_get_int(body, "flags", 0), ==, 4);
    g_assert_cmpstr(eb_json_get_string(reference, "message_id"), ==, MESSAGE);
    g_assert_false(eb_json_get_bool(reference, "fail_if_not_exists", TRUE));
    check_mentions(body, NULL);
    g_assert_false(json_object_has_member(edit, "message_reference"));
    check_mentions(edit, NULL);
    g_free(post->reply_to);
    post->reply_to = g_strdup("m1");
    g_autoptr(JsonObject) foreign = discord_post_body(post, NULL, TRUE);
    g_assert_false(json_object_has_member(foreign, "message_reference"));
    g_assert_false(json_object_has_member(foreign, "content"));
}

static void
add_file(EbChatPost *post, const char *name, gsize size)
{
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_malloc0(size), size);

    if (post->files == NULL)
        post->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(post->files, eb_chat_file_new(name, NULL, bytes));
}

static void
test_files(void)
{
    g_autoptr(EbChatPost) post = post_new(EB_CHAT_POST_FILE, "");
    g_autoptr(EbChatPost) large = post_new(EB_CHAT_POST_FILE, "");
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) size_error = NULL;

    g_assert_true(discord_post_check_files(post, &error));
    for (guint i = 0; i < DISCORD_POST_MAX_FILES; i++)
        add_file(post, "a", 1);
    g_assert_true(discord_post_check_files(post, &error));
    g_assert_no_error(error);
    add_file(post, "a", 1);
    g_assert_false(discord_post_check_files(post, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.files", "11 files");
    add_file(large, "fits", DISCORD_POST_MAX_FILE_BYTES);
    add_file(large, "big\nfile", DISCORD_POST_MAX_FILE_BYTES + 1);
    g_assert_false(discord_post_check_files(large, &size_error));
    eb_test_assert_error(size_error, EB_ERROR_QUOTA, "discord.files", "big\\x0afile is larger");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/post/signs", test_signs);
    g_test_add_func("/discord/post/people", test_people);
    g_test_add_func("/discord/post/nothing", test_nothing);
    g_test_add_func("/discord/post/cut", test_cut);
    g_test_add_func("/discord/post/notify", test_notify);
    g_test_add_func("/discord/post/body", test_body);
    g_test_add_func("/discord/post/files", test_files);
    return g_test_run();
}
