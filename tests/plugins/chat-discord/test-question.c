/* SPDX-License-Identifier: MIT */
#include "discord-clean.h"
#include "discord-question.h"
#include "eb-test.h"

#include <string.h>

static EbChatQuestion *
question_new(const char *text)
{
    EbChatQuestion *question = eb_chat_question_new("1180000000000000001", text);

    eb_chat_question_add_choice(question, "allow", "Allow once", "allow_once");
    eb_chat_question_add_choice(question, "always", "Always allow", "allow_always");
    eb_chat_question_add_choice(question, "other", "Something else", NULL);
    eb_chat_question_add_choice(question, "no", "Reject", "reject_once");
    return question;
}

static JsonObject *
button(JsonObject *body, guint row, guint column)
{
    JsonObject *line = eb_json_array_object(eb_json_get_array(body, "components"), row);

    return eb_json_array_object(eb_json_get_array(line, "components"), column);
}

static guint
utf16_units(const char *text)
{
    glong n = 0;
    g_autofree gunichar2 *wide = g_utf8_to_utf16(text, -1, NULL, &n, NULL);

    g_assert_nonnull(wide);
    return (guint)n;
}

/* What Discord refuses: too long, empty labels, too many buttons, ids that are there twice, a body that may ping. */
static void
check_body(JsonObject *body)
{
    JsonArray *rows = eb_json_get_array(body, "components");
    JsonObject *mentions = eb_json_get_object(body, "allowed_mentions");
    g_autoptr(GHashTable) ids = g_hash_table_new(g_str_hash, g_str_equal);
    const char *content = eb_json_get_string(body, "content");

    g_assert_true(g_utf8_validate(content, -1, NULL));
    g_assert_cmpuint(utf16_units(content), <=, 2000);
    g_assert_cmpuint(json_object_get_size(mentions), ==, 3);
    g_assert_false(eb_json_get_bool(mentions, "replied_user", TRUE));
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(mentions, "parse")), ==, 0);
    g_assert_cmpuint(json_array_get_length(rows), <=, 5);
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        JsonArray *row = eb_json_get_array(eb_json_array_object(rows, i), "components");
        g_assert_cmpint(eb_json_get_int(eb_json_array_object(rows, i), "type", 0), ==, 1);
        g_assert_cmpuint(json_array_get_length(row), >=, 1);
        g_assert_cmpuint(json_array_get_length(row), <=, 5);
        for (guint k = 0; k < json_array_get_length(row); k++) {
            JsonObject *item = eb_json_array_object(row, k);
            const char *label = eb_json_get_string(item, "label");
            g_assert_cmpuint(utf16_units(label), >=, 1);
            g_assert_cmpuint(utf16_units(label), <=, 80);
            g_assert_cmpuint(strlen(eb_json_get_string(item, "custom_id")), <=, 100);
            g_assert_true(g_hash_table_add(ids, (gpointer)eb_json_get_string(item, "custom_id")));
        }
    }
}

static void
test_message(void)
{
    g_autoptr(EbChatQuestion) question = question_new("The agent asks: run `make test`");
    g_autoptr(JsonObject) body = discord_question_to_message(question, "p-1");

    check_body(body);
    g_assert_cmpstr(eb_json_get_string(body, "content"), ==,
                    "❓ The agent asks: run `make test`\n1. Allow once\n2. Always allow\n3. Something else\n4. Reject\n"
                    "Press a button, or answer with the number.");
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 0), "custom_id"), ==, "q:p-1:0");
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 3), "custom_id"), ==, "q:p-1:3");
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 1), "label"), ==, "Always allow");
    g_assert_cmpint(eb_json_get_int(button(body, 0, 0), "style", 0), ==, 3);
    g_assert_cmpint(eb_json_get_int(button(body, 0, 1), "style", 0), ==, 3);
    g_assert_cmpint(eb_json_get_int(button(body, 0, 2), "style", 0), ==, 2);
    g_assert_cmpint(eb_json_get_int(button(body, 0, 3), "style", 0), ==, 4);
}

static void
test_outcome(void)
{
    g_autoptr(EbChatQuestion) question = question_new("run `make`");
    g_autofree char *answer = discord_question_answer(question->choices->pdata[0], "1180000000000000009");
    g_autoptr(JsonObject) body = discord_question_to_outcome(question, answer);

    check_body(body);
    g_assert_cmpstr(eb_json_get_string(body, "content"), ==, "❓ run `make`\n**Allow once**, by <@1180000000000000009>");
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(body, "components")), ==, 0);
}

/* What an agent calls its choices and its tool. */
static void
test_hostile(void)
{
    g_autoptr(EbChatQuestion) question = eb_chat_question_new("1", "@everyone ```\n[x](https://evil) <@1>");
    g_autofree char *many = g_strnfill(3000, '`');
    g_autoptr(JsonObject) body = NULL;

    eb_chat_question_add_choice(question, "1", "@everyone <@&1>", NULL);
    eb_chat_question_add_choice(question, "2", "", NULL);
    eb_chat_question_add_choice(question, "3", "\n\xe2\x80\x8b \t", NULL);
    eb_chat_question_add_choice(question, "4", "two\nlines **bold** [a](http://b)", NULL);
    eb_chat_question_add_choice(question, "5", many, NULL);
    eb_chat_question_add_choice(question, "6", "\xff\xfe\x1b[31m", NULL);
    body = discord_question_to_message(question, "p");
    check_body(body);
    g_assert_null(strstr(eb_json_get_string(body, "content"), "@everyone"));
    g_assert_null(strstr(eb_json_get_string(body, "content"), "<@1"));
    g_assert_null(strstr(eb_json_get_string(body, "content"), "<@&"));
    g_assert_null(strstr(eb_json_get_string(body, "content"), "```"));
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 1), "label"), ==, "2");
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 2), "label"), ==, "3");
    g_assert_cmpstr(eb_json_get_string(button(body, 0, 3), "label"), ==, "two lines **bold** [a](http://b)");
    g_assert_nonnull(strstr(eb_json_get_string(body, "content"), "\n4. two lines \\*\\*bold\\*\\* "));
}

static void
test_sizes(void)
{
    for (guint n = 1; n <= 60; n += 1) {
        g_autoptr(EbChatQuestion) question = eb_chat_question_new("1", "x");
        g_autoptr(JsonObject) body = NULL;
        guint buttons = 0;
        for (guint i = 0; i < n; i++) {
            g_autofree char *label = g_strnfill(n * 5, 'a');
            eb_chat_question_add_choice(question, "c", label, NULL);
        }
        body = discord_question_to_message(question, "0123456789012345678901234567890123456789");
        check_body(body);
        for (guint i = 0; i < json_array_get_length(eb_json_get_array(body, "components")); i++)
            buttons += json_array_get_length(
                eb_json_get_array(eb_json_array_object(eb_json_get_array(body, "components"), i), "components"));
        g_assert_cmpuint(buttons, ==, MIN(n, DISCORD_QUESTION_MAX_BUTTONS));
        g_assert_cmpint(strstr(eb_json_get_string(body, "content"), "Press a button") != NULL, ==, n <= 25);
        if (n >= 20) /* more than fits is counted */
            g_assert_nonnull(strstr(eb_json_get_string(body, "content"), " more"));
    }
}

static JsonObject *
diff_data(const char *diff)
{
    JsonObject *data = json_object_new(), *one = json_object_new();
    JsonArray *diffs = json_array_new();

    json_object_set_string_member(one, "path", "src/*main*.c");
    json_object_set_string_member(one, "diff", diff);
    json_array_add_object_element(diffs, one);
    json_object_set_array_member(data, "diffs", diffs);
    return data;
}

static void
test_diff(void)
{
    g_autoptr(EbChatQuestion) question = question_new("edit a file");
    g_autoptr(JsonObject) body = NULL;

    question->data = diff_data("-old ``` x\n+new @everyone\n");
    body = discord_question_to_message(question, "p");
    check_body(body);
    g_assert_nonnull(strstr(eb_json_get_string(body, "content"),
                            "❓ edit a file\nsrc/\\*main\\*.c\n```diff\n-old `" DISCORD_ZWSP "`" DISCORD_ZWSP
                            "` x\n+new @" DISCORD_ZWSP "everyone\n```\n1. Allow once"));
}

static void
test_long_diffs(void)
{
    static const char *const lines[] = {"+",
                                        "+short\n",
                                        "+a line of some length, with `code` and more of it\n",
                                        "+``````````````````````````````\n",
                                        "+@everyone@everyone@everyone\n",
                                        "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x94\xac\n",
                                        "\n",
                                        "+```\n",
                                        " ```\n"};

    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++)
        for (guint n = 1; n < 3000; n = n * 3 / 2 + 1) {
            g_autoptr(EbChatQuestion) question = question_new("edit");
            g_autoptr(JsonObject) body = NULL;
            g_autoptr(GString) diff = g_string_new(NULL);
            const char *content, *more;
            for (guint k = 0; k < n; k++)
                g_string_append(diff, lines[i]);
            question->data = diff_data(diff->str);
            body = discord_question_to_message(question, "p");
            check_body(body);
            content = eb_json_get_string(body, "content");
            g_assert_true(g_str_has_suffix(content, "4. Reject\nPress a button, or answer with the number."));
            more = strstr(content, "\n… ");
            if (i == 1 && n > 1000) { /* lines shown and lines counted are all there are */
                guint shown = 0;
                for (const char *c = content; (c = strstr(c, "+short")) != NULL; c++)
                    shown++;
                g_assert_cmpuint(shown, >, 100);
                g_assert_cmpuint(shown + (guint)g_ascii_strtoull(more + strlen("\n… "), NULL, 10), ==, n);
            }
        }
}

/* The whole of a command is what somebody allows: shown, or said not to be. */
static void
test_input(void)
{
    g_autoptr(EbChatQuestion) question = question_new("The agent asks: run `a long...`");
    g_autoptr(JsonObject) body = NULL;
    g_autoptr(JsonObject) long_body = NULL;
    g_autofree char *word = g_strnfill(3000, 'x');
    JsonArray *diffs;

    question->data = diff_data("-a\n+b\n");
    diffs = eb_json_get_array(question->data, "diffs");
    json_array_add_object_element(diffs, json_object_new());
    json_array_add_object_element(diffs, json_object_new());
    json_object_set_string_member(question->data, "input", "rm -rf build &&\n  ```\nmake @everyone");
    body = discord_question_to_message(question, "p");
    check_body(body);
    g_assert_nonnull(
        strstr(eb_json_get_string(body, "content"),
               "run `a long...`\n```\nrm -rf build &&\n  `" DISCORD_ZWSP "`" DISCORD_ZWSP "`\nmake @" DISCORD_ZWSP
               "everyone\n```\nsrc/\\*main\\*.c\n```diff\n-a\n+b\n```\n… and 2 more changes\n1. Allow once"));
    json_object_set_string_member(question->data, "input", word);
    long_body = discord_question_to_message(question, "p");
    check_body(long_body);
    g_assert_nonnull(strstr(eb_json_get_string(long_body, "content"), "x…\n```\n… 1 line not shown in full"));
}

/* A standing question is one line and its buttons: no number that could be meant for the agent; it notifies whom it names. */
static void
test_standing(void)
{
    EbChatQuestion *question = eb_chat_question_new("1", "The agent asked for a.test and was refused. <@9999999>");
    g_autoptr(JsonObject) body = NULL;
    JsonArray *users;

    eb_chat_question_add_choice(question, "once", "Allow once", "allow_once");
    eb_chat_question_add_choice(question, "leave", "Leave it refused", "reject_once");
    question->standing = TRUE;
    body = discord_question_to_message(question, "host-1-abc");
    check_body(body);
    g_assert_null(strchr(eb_json_get_string(body, "content"), '\n'));
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(eb_json_get_object(body, "allowed_mentions"), "users")),
                     ==, 0);
    json_object_unref(g_steal_pointer(&body));
    question->notify = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(question->notify, g_strdup("100000000000000001"));
    g_ptr_array_add(question->notify, g_strdup("everyone"));
    body = discord_question_to_message(question, "host-2-abc");
    check_body(body);
    users = eb_json_get_array(eb_json_get_object(body, "allowed_mentions"), "users");
    g_assert_cmpuint(json_array_get_length(users), ==, 1);
    g_assert_cmpstr(eb_json_array_string(users, 0), ==, "100000000000000001");
    g_assert_nonnull(strstr(eb_json_get_string(body, "content"), "<@100000000000000001> "));
    g_assert_null(strstr(eb_json_get_string(body, "content"), "<@9999999>"));
    eb_chat_question_unref(question);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/question/message", test_message);
    g_test_add_func("/discord/question/outcome", test_outcome);
    g_test_add_func("/discord/question/hostile", test_hostile);
    g_test_add_func("/discord/question/sizes", test_sizes);
    g_test_add_func("/discord/question/diff", test_diff);
    g_test_add_func("/discord/question/long-diffs", test_long_diffs);
    g_test_add_func("/discord/question/input", test_input);
    g_test_add_func("/discord/question/standing", test_standing);
    return g_test_run();
}
