/* SPDX-License-Identifier: MIT */
/* Whose answers count when the operator's lists change under sessions that are older; and answers to other questions. */
#include "core/session/eb-session-manager-private.h"
#include "core/session/eb-session-private.h"
#include "eb-session-fixture.h"

#include <string.h>

#define LASTING (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_BUSY)

static const char *const everybody[] = {"*", NULL};
static const char *const others[] = {"guest", "operator", NULL};
static const char *const owner[] = {"author-1", NULL};
static const char *const operators[] = {"operator", NULL};
static const char *const nobody[] = {NULL};

static const EbChatPolicy open_policy = {.allowed = (char **)(gpointer)everybody,
                                         .blocked = (char **)(gpointer)nobody,
                                         .operators = (char **)(gpointer)operators};
static const EbChatPolicy owner_blocked = {.allowed = (char **)(gpointer)everybody,
                                           .blocked = (char **)(gpointer)owner,
                                           .operators = (char **)(gpointer)operators};
static const EbChatPolicy owner_not_allowed = {.allowed = (char **)(gpointer)others,
                                               .blocked = (char **)(gpointer)nobody,
                                               .operators = (char **)(gpointer)operators};
static const EbChatPolicy operator_blocked = {.allowed = (char **)(gpointer)everybody,
                                              .blocked = (char **)(gpointer)operators,
                                              .operators = (char **)(gpointer)operators};
/* A transport that has lists, but leaves that of the operators out. */
static const EbChatPolicy no_operators = {.allowed = (char **)(gpointer)everybody};

static gboolean
is_asking(gpointer user_data)
{
    return eb_fake_chat_open_asks(((EbSessionFixture *)user_data)->chat) == 1;
}

static EbSessionFixture *
asking(const EbChatPolicy *policy)
{
    EbSessionFixture *f = eb_session_fixture_new(NULL, NULL, LASTING);
    f->chat->answer = g_strdup("");
    eb_session_fixture_open(f);
    eb_session_manager_set_policy(f->manager, "fake", policy);
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    eb_test_run_until(is_asking, f);
    return f;
}

static void
assert_cannot_answer(EbSessionFixture *f, const char *who)
{
    g_assert_false(eb_fake_chat_press(f->chat, 0, "yes", who));
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "t", who, "1", 0), ==, EB_SESSION_ANSWER_NONE);
}

static void
test_lists_change(void)
{
    EbSessionFixture *f = asking(&open_policy);
    EbSession *session = eb_session_fixture_live(f, "t");
    g_assert_true(eb_session_set_guest(session, "guest", TRUE));
    eb_session_manager_set_policy(f->manager, "fake", &owner_blocked);
    assert_cannot_answer(f, "author-1");
    eb_session_manager_set_policy(f->manager, "fake", &owner_not_allowed);
    assert_cannot_answer(f, "author-1");
    eb_session_manager_set_policy(f->manager, "fake", &operator_blocked);
    assert_cannot_answer(f, "operator");
    eb_session_manager_set_policy(f->manager, "fake", &no_operators);
    assert_cannot_answer(f, "stranger");
    g_assert_true(eb_fake_chat_press(f->chat, 0, "no", "guest"));
    eb_session_fixture_wait_turns(f, 1);
    eb_session_fixture_free(f);
}

/* Lists change with a restart: the question of before it is answered by who may now. */
static void
test_lists_change_over_restart(void)
{
    g_autoptr(EbSessionFixture) f = asking(&open_policy);
    g_assert_true(eb_session_set_guest(eb_session_fixture_live(f, "t"), "guest", TRUE));
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    eb_session_manager_set_policy(f->manager, "fake", &owner_blocked);
    eb_test_run_until(is_asking, f);
    assert_cannot_answer(f, "author-1");
    assert_cannot_answer(f, "stranger");
    /* Inviting somebody makes the list anew. */
    EbSessionRecord *record = eb_session_manager_find_record(f->manager, "fake", "t", FALSE);
    g_assert_true(eb_session_manager_set_guest(f->manager, record, "other", TRUE));
    assert_cannot_answer(f, "author-1");
    g_assert_true(eb_fake_chat_press(f->chat, 0, "no", "other"));
}

/* Two people answer a question, the agent asks the next between the two answers. */
static void
test_answer_to_another_question(void)
{
    g_autoptr(EbSessionFixture) f = asking(&open_policy);
    EbSession *session = eb_session_fixture_live(f, "t");
    gint64 before_ms = g_get_real_time() / 1000 - 2000;
    g_assert_cmpint(eb_session_answer(session, "author-1", "1", before_ms), ==, EB_SESSION_ANSWER_UNCLEAR);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 1);
    eb_session_fixture_wait_said(f, EB_CHAT_POST_NOTICE, "was said before this question was there");
    /* What is no answer is what it always was. */
    g_assert_cmpint(eb_session_answer(session, "author-1", "say it", before_ms), ==, EB_SESSION_ANSWER_NONE);
    g_assert_cmpint(eb_session_answer(session, "author-1", "2", g_get_real_time() / 1000), ==, EB_SESSION_ANSWER_TAKEN);
    eb_session_fixture_wait_turns(f, 1);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/answerers/lists-change", test_lists_change);
    g_test_add_func("/answerers/lists-change-over-restart", test_lists_change_over_restart);
    g_test_add_func("/answerers/answer-to-another-question", test_answer_to_another_question);
    return g_test_run();
}
