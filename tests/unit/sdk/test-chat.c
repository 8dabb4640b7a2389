/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

static void
test_values(void)
{
    g_autoptr(EbChatMessage) message = eb_chat_message_new("1", NULL, "u", NULL);
    g_autoptr(EbChatPost) post = eb_chat_post_new("t", EB_CHAT_POST_DIFF, "x");
    g_autoptr(EbChatQuestion) question = eb_chat_question_new("t", "ok?");
    const EbChatChoice *choice;
    EbChatAttachment *attachment = g_new0(EbChatAttachment, 1);

    attachment->id = g_strdup("a");
    g_ptr_array_add(message->attachments, attachment);
    message->extra = json_object_new();
    g_assert_null(message->thread);
    g_assert_cmpstr(message->text, ==, "");
    eb_chat_message_unref(eb_chat_message_ref(message));
    eb_chat_post_unref(eb_chat_post_ref(post));
    eb_chat_question_unref(eb_chat_question_ref(question));
    eb_chat_question_add_choice(question, "yes", NULL, "allow_once");
    eb_chat_question_add_choice(question, "no", "No", NULL);
    choice = g_ptr_array_index(question->choices, 0);
    g_assert_cmpstr(choice->label, ==, "yes");
    choice = g_ptr_array_index(question->choices, 1);
    g_assert_cmpstr(choice->label, ==, "No");
    eb_chat_message_unref(NULL);
    eb_chat_post_unref(NULL);
    eb_chat_question_unref(NULL);
}

static void
test_kinds(void)
{
    static const char *const names[] = {"text",  "thought", "tool",  "diff",  "notice", "error",
                                        "usage", "plan",    "guest", "ready", "end",    "permission"};

    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_cmpstr(eb_chat_post_kind_to_string((EbChatPostKind)i), ==, names[i]);
    g_assert_cmpstr(eb_chat_post_kind_to_string((EbChatPostKind)99), ==, "unknown");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/chat/values", test_values);
    g_test_add_func("/sdk/chat/kinds", test_kinds);
    return g_test_run();
}
