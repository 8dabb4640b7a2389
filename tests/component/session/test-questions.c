/* SPDX-License-Identifier: MIT */
/* Questions of agents: by whom, once, over a restart, and never allowed by anything but a person. */
#include "core/session/eb-session-manager-private.h"
#include "core/session/eb-session-private.h"
#include "core/state/eb-question-store.h"
#include "eb-session-fixture.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LASTING (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_BUSY)

typedef struct {
    EbSessionFixture *f;
    const char *text;
    guint count;
} Wanted;

static gboolean
is_asking(gpointer user_data)
{
    Wanted *wanted = user_data;
    return eb_fake_chat_open_asks(wanted->f->chat) == wanted->count;
}

static void
wait_asks(EbSessionFixture *f, guint count)
{
    Wanted wanted = {f, NULL, count};
    eb_test_run_until(is_asking, &wanted);
}

static void
wait_said(EbSessionFixture *f, const char *text)
{
    eb_session_fixture_wait_said(f, EB_CHAT_POST_TEXT, text);
}

static gboolean
is_noticed(gpointer user_data)
{
    Wanted *wanted = user_data;
    g_autofree char *text = eb_fake_chat_said(wanted->f->chat, EB_CHAT_POST_NOTICE);
    return strstr(text, wanted->text) != NULL;
}

static void
assert_never_said(EbSessionFixture *f, const char *text)
{
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_null(strstr(said, text));
}

static const char *const everybody[] = {"*", NULL};
static const char *const operators[] = {"operator", NULL};
static const EbChatPolicy policy = {.allowed = (char **)(gpointer)everybody, .operators = (char **)(gpointer)operators};

/* state, answer and who gave it, of the only question there is. */
static char *
row_of(EbSessionFixture *f)
{
    g_autofree char *path = g_build_filename(f->dir, "state", EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_prepare_v2(db, "SELECT state, answer, answered_by, message FROM question", -1, &row, NULL),
                    ==, SQLITE_OK);
    g_autoptr(GString) all = g_string_new(NULL);
    while (sqlite3_step(row) == SQLITE_ROW)
        g_string_append_printf(all, "%s%s %s %s %s", all->len > 0 ? "|" : "", (const char *)sqlite3_column_text(row, 0),
                               sqlite3_column_text(row, 1) != NULL ? (const char *)sqlite3_column_text(row, 1) : "-",
                               sqlite3_column_text(row, 2) != NULL ? (const char *)sqlite3_column_text(row, 2) : "-",
                               sqlite3_column_text(row, 3) != NULL ? (const char *)sqlite3_column_text(row, 3) : "-");
    sqlite3_finalize(row);
    sqlite3_close(db);
    return g_string_free(g_steal_pointer(&all), FALSE);
}

static gboolean
is_row(gpointer user_data)
{
    Wanted *wanted = user_data;
    g_autofree char *row = row_of(wanted->f);
    return g_str_equal(row, wanted->text);
}

/* Rows are written in the background. */
static void
assert_row(EbSessionFixture *f, const char *expected)
{
    Wanted wanted = {f, expected, 0};
    eb_test_run_until(is_row, &wanted);
}

static void
run_sql(EbSessionFixture *f, const char *sql)
{
    g_autofree char *path = g_build_filename(f->dir, "state", EB_STATE_DATABASE_FILE, NULL);
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

static EbSessionFixture *
new_fixture(const char *settings)
{
    EbSessionFixture *f = eb_session_fixture_new(NULL, settings, LASTING);
    f->chat->answer = g_strdup("");
    eb_session_fixture_open(f);
    return f;
}

/* An agent asks in thread "t". */
static EbSessionFixture *
asking(const char *prompt, const char *settings)
{
    EbSessionFixture *f = new_fixture(settings);
    eb_fake_chat_say(f->chat, "t", prompt, NULL);
    wait_asks(f, 1);
    return f;
}

/* --- in one run --- */

static void
test_once_by_whoever_may(void)
{
    g_autoptr(EbSessionFixture) f = new_fixture(NULL);
    eb_session_manager_set_policy(f->manager, "fake", &policy);
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    wait_asks(f, 1);
    EbSession *session = eb_session_fixture_live(f, "t");
    g_assert_false(eb_fake_chat_press(f->chat, 0, "yes", "stranger"));
    g_assert_cmpint(eb_session_answer(session, "stranger", "1", 0), ==, EB_SESSION_ANSWER_NONE);
    g_assert_cmpint(eb_session_answer(session, NULL, "1", 0), ==, EB_SESSION_ANSWER_NONE);
    /* Who is invited meanwhile may, and no longer when that is taken back. */
    g_assert_true(eb_session_set_guest(session, "guest", TRUE));
    g_assert_false(eb_session_set_guest(session, "guest", TRUE));
    g_assert_true(eb_session_set_guest(session, "guest", FALSE));
    g_assert_false(eb_fake_chat_press(f->chat, 0, "yes", "guest"));
    g_assert_true(eb_session_set_guest(session, "guest", TRUE));
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "guest"));
    g_assert_false(eb_fake_chat_press(f->chat, 0, "no", "operator"));
    eb_session_fixture_wait_turns(f, 1);
    wait_said(f, "outcome yes");
    assert_row(f, "applied yes guest ask-1");
    EbChatPost *post = eb_fake_chat_last(f->chat, EB_CHAT_POST_PERMISSION);
    g_assert_cmpstr(eb_json_get_string(post->data, "by"), ==, "guest");
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    EbSessionRecord *record = eb_session_manager_find_record(f->manager, "fake", "t", FALSE);
    g_assert_true(eb_session_record_has_guest(record, "guest"));
}

/* Two answers at once: one counts. */
static void
test_double_answer(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    EbSession *session = eb_session_fixture_live(f, "t");
    g_assert_true(eb_fake_chat_press(f->chat, 0, "no", "author-1"));
    eb_test_drain();
    g_assert_cmpint(eb_session_answer(session, "author-1", "1", 0), ==, EB_SESSION_ANSWER_NONE);
    eb_session_fixture_wait_turns(f, 1);
    wait_said(f, "outcome no");
    assert_never_said(f, "outcome yes");
    assert_row(f, "applied no author-1 ask-1");
}

static void
test_by_text(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    EbSession *session = eb_session_fixture_live(f, "t");
    g_assert_cmpint(eb_session_answer(session, "author-1", "what is this?", 0), ==, EB_SESSION_ANSWER_NONE);
    g_assert_cmpint(eb_session_answer(session, "author-1", "3", 0), ==, EB_SESSION_ANSWER_UNCLEAR);
    g_assert_cmpint(eb_session_answer(session, "author-1", "0", 0), ==, EB_SESSION_ANSWER_UNCLEAR);
    Wanted advice = {f, "a number from 1 to 2", 0};
    eb_test_run_until(is_noticed, &advice);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 1);
    g_assert_cmpint(eb_session_answer(session, "author-1", " reject ", 0), ==, EB_SESSION_ANSWER_TAKEN);
    g_assert_cmpint(eb_session_answer(session, "author-1", "1", 0), ==, EB_SESSION_ANSWER_NONE);
    eb_session_fixture_wait_turns(f, 1);
    wait_said(f, "outcome no");
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "answered: Reject");
    eb_fake_chat_say(f->chat, "t", "ask2 more", NULL);
    wait_asks(f, 1);
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "t", "author-1", "1.", 0), ==,
                    EB_SESSION_ANSWER_TAKEN);
    eb_session_fixture_wait_turns(f, 2);
    wait_said(f, "outcome yes");
}

/* With two open nobody guesses which is meant. */
static void
test_two_open(void)
{
    g_autoptr(EbSessionFixture) f = new_fixture(NULL);
    eb_fake_chat_say(f->chat, "t", "askboth", NULL);
    wait_asks(f, 2);
    EbSession *session = eb_session_fixture_live(f, "t");
    g_assert_cmpint(eb_session_answer(session, "author-1", "1", 0), ==, EB_SESSION_ANSWER_UNCLEAR);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 2);
    g_assert_true(eb_fake_chat_press(f->chat, 1, "no", "author-1"));
    eb_test_drain();
    g_assert_cmpint(eb_session_answer(session, "author-1", "1", 0), ==, EB_SESSION_ANSWER_TAKEN);
    eb_session_fixture_wait_turns(f, 1);
    wait_said(f, "77 yes;");
    wait_said(f, "78 no;");
}

/* While a person thinks, others' turns run; the answer then waits for its place. */
static void
test_place_while_people_think(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", "[limits]\nmax_concurrent_turns = 1\n");
    EbAdmission *turns = f->manager->parts->turns;
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
    EbChatPost *busy = eb_fake_chat_last(f->chat, EB_CHAT_POST_BUSY);
    g_assert_false(eb_json_get_bool(busy->data, "busy", TRUE));
    eb_session_fixture_turn(f, "other", "say meanwhile", NULL);
    wait_said(f, "meanwhile");
    eb_fake_chat_say(f->chat, "other", "gate open", NULL);
    while (eb_admission_get_held(turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    while (eb_admission_get_waiting(turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    assert_row(f, "answered yes author-1 ask-1");
    assert_never_said(f, "outcome yes");
    g_autofree char *gate = g_build_filename(f->dir, "agent-sessions", "open", NULL);
    eb_test_write_file(gate, "");
    eb_session_fixture_wait_turns(f, 3);
    wait_said(f, "outcome yes");
    assert_row(f, "applied yes author-1 ask-1");
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
}

/* Interrupted while the answer waits for its place: nothing is allowed, and the place is not lost. */
static void
test_interrupt_while_answer_waits(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", "[limits]\nmax_concurrent_turns = 1\n");
    EbAdmission *turns = f->manager->parts->turns;
    eb_fake_chat_say(f->chat, "other", "gate open", NULL);
    while (eb_admission_get_held(turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    while (eb_admission_get_waiting(turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(eb_session_interrupt(eb_session_fixture_live(f, "t")));
    eb_session_fixture_wait_turns(f, 1);
    g_assert_cmpstr(f->stop_reason, ==, "cancelled");
    wait_said(f, "outcome cancelled");
    assert_never_said(f, "outcome yes");
    assert_row(f, "closed yes author-1 ask-1");
    g_autofree char *gate = g_build_filename(f->dir, "agent-sessions", "open", NULL);
    eb_test_write_file(gate, "");
    eb_session_fixture_wait_turns(f, 2);
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
    g_assert_cmpuint(eb_admission_get_waiting(turns), ==, 0);
}

/* The agent takes its question back and works on: it has its place again. */
static void
test_taken_back(void)
{
    g_autoptr(EbSessionFixture) f = asking("takeback open", "[limits]\nmax_concurrent_turns = 1\n");
    EbAdmission *turns = f->manager->parts->turns;
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
    g_autofree char *shown = g_build_filename(f->dir, "agent-sessions", "shown", NULL);
    eb_test_write_file(shown, "");
    while (eb_admission_get_held(turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 0);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "taken back by the agent");
    assert_row(f, "closed - - ask-1");
    g_assert_cmpuint(f->turns_ended, ==, 0);
    g_autofree char *gate = g_build_filename(f->dir, "agent-sessions", "open", NULL);
    eb_test_write_file(gate, "");
    eb_session_fixture_wait_turns(f, 1);
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
}

/* The agent ends its turn without waiting: the question is closed, and the next one finds everything in order. */
static void
test_not_waited_for(void)
{
    g_autoptr(EbSessionFixture) f = asking("askandgo", "[limits]\nmax_concurrent_turns = 1\n");
    EbAdmission *turns = f->manager->parts->turns;
    g_autofree char *shown = g_build_filename(f->dir, "agent-sessions", "shown", NULL);
    eb_test_write_file(shown, "");
    eb_session_fixture_wait_turns(f, 1);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "closed: the turn is over");
    g_assert_cmpuint(eb_admission_get_held(turns), ==, 0);
    g_assert_cmpuint(eb_admission_get_waiting(turns), ==, 0);
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    wait_asks(f, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 1, "yes", "author-1"));
    eb_session_fixture_wait_turns(f, 2);
    wait_said(f, "outcome yes");
}

static void
test_never_allowed_by_itself(void)
{
    /* time */
    EbSessionFixture *f = asking("ask2 make", "question = \"1s\"");
    eb_session_fixture_wait_turns(f, 1);
    wait_said(f, "outcome no");
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "expired: refused");
    g_assert_false(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    assert_row(f, "expired - - ask-1");
    eb_session_fixture_free(f);
    /* a chat that cannot ask */
    f = new_fixture(NULL);
    f->chat->deaf = TRUE;
    eb_session_fixture_turn(f, "t", "ask2 make", NULL);
    wait_said(f, "outcome no");
    eb_session_fixture_free(f);
    /* an answer nobody offered */
    f = new_fixture(NULL);
    g_free(f->chat->answer);
    f->chat->answer = g_strdup("invented");
    eb_session_fixture_turn(f, "t", "ask2 make", NULL);
    wait_said(f, "outcome no");
    eb_session_fixture_free(f);
    /* an answer by nobody, where not everybody may */
    f = new_fixture(NULL);
    eb_session_manager_set_policy(f->manager, "fake", &policy);
    g_free(f->chat->answer);
    f->chat->answer = g_strdup("yes");
    eb_session_fixture_turn(f, "t", "ask2 make", NULL);
    wait_said(f, "outcome no");
    eb_session_fixture_free(f);
    /* the session stopped */
    f = asking("ask2 make", NULL);
    eb_session_end(eb_session_fixture_live(f, "t"), EB_SESSION_END_STOPPED, NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "closed: the session was ended");
    assert_never_said(f, "outcome yes");
    assert_row(f, "closed - - ask-1");
    eb_session_fixture_free(f);
    /* its guest vanished */
    f = asking("ask2 make", NULL);
    eb_fake_backend_vanish(f->backend);
    eb_session_fixture_wait_ended(f, 1);
    assert_never_said(f, "outcome yes");
    assert_row(f, "closed - - ask-1");
    eb_session_fixture_free(f);
}

/* --- over a restart --- */

static void
restart(EbSessionFixture *f)
{
    eb_session_fixture_close(f);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 0);
    eb_session_fixture_open(f);
}

static void
test_restart_allow(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    guint turns = f->turns_ended;
    restart(f);
    wait_asks(f, 1);
    g_assert_cmpuint(f->chat->taken_up, ==, 1);
    g_assert_cmpuint(f->chat->asked, ==, 1);
    g_assert_true(eb_fake_chat_ask(f->chat, 0)->live);
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "the question stays open"));
    assert_row(f, "open - - ask-1");
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    eb_session_fixture_wait_turns(f, turns + 2);
    wait_said(f, "outcome yes");
    g_assert_cmpuint(f->chat->asked, ==, 1);
    assert_row(f, "applied yes author-1 ask-1");
    /* Once: the same again is asked anew. */
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    wait_asks(f, 1);
    g_assert_cmpuint(f->chat->asked, ==, 2);
}

static void
test_restart_reject(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    restart(f);
    wait_asks(f, 1);
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "t", "author-1", "5", 0), ==,
                    EB_SESSION_ANSWER_UNCLEAR);
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "elsewhere", "author-1", "2", 0), ==,
                    EB_SESSION_ANSWER_NONE);
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "t", "author-1", "2", 0), ==,
                    EB_SESSION_ANSWER_TAKEN);
    wait_said(f, "understood: refused");
    g_assert_cmpuint(f->chat->asked, ==, 1);
    assert_row(f, "answered no author-1 ask-1");
}

static void
test_restart_different(void)
{
    g_autoptr(EbSessionFixture) f = asking("askdiff make", NULL);
    restart(f);
    wait_asks(f, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    /* It asks for something else: a person decides. */
    while (f->chat->asked < 2)
        g_main_context_iteration(NULL, TRUE);
    assert_never_said(f, "outcome yes");
    g_assert_true(eb_fake_chat_press(f->chat, 1, "no", "author-1"));
    wait_said(f, "outcome no");
    assert_row(f, "answered yes author-1 ask-1|applied no author-1 ask-2");
}

/* The agent is back and asks the same before anybody answered: it is the same question, not a second one. */
static void
test_restart_asked_again(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    restart(f);
    wait_asks(f, 1);
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    while (eb_session_manager_find_live(f->manager, "fake", "t") == NULL ||
           !eb_session_has_question(eb_session_fixture_live(f, "t"), eb_fake_chat_ask(f->chat, 0)->question))
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(f->chat->asked, ==, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    wait_said(f, "outcome yes");
    assert_row(f, "applied yes author-1 ask-1");
}

static void
test_restart_expired(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", "question = \"5s\"");
    guint launched = f->backend->launched;
    eb_session_fixture_close(f);
    run_sql(f, "UPDATE question SET expires = (strftime('%s', 'now') - 10) * 1000");
    eb_session_fixture_open(f);
    while (eb_fake_chat_ask(f->chat, 0)->live)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "expired: refused");
    assert_row(f, "expired - - ask-1");
    g_assert_cmpuint(f->backend->launched, ==, launched);
    assert_never_said(f, "outcome yes");
    /* One whose time comes later than the restart. */
    eb_fake_chat_say(f->chat, "t", "ask2 more", NULL);
    wait_asks(f, 1);
    eb_session_fixture_close(f);
    run_sql(f, "UPDATE question SET expires = (strftime('%s', 'now') + 2) * 1000 WHERE state = 'open'");
    eb_session_fixture_open(f);
    wait_asks(f, 1);
    while (eb_fake_chat_ask(f->chat, 1)->live)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 1)->outcome, ==, "expired: refused");
    assert_row(f, "expired - - ask-1|expired - - ask-2");
    g_assert_cmpint(eb_session_manager_answer(f->manager, "fake", "t", "author-1", "1", 0), ==, EB_SESSION_ANSWER_NONE);
}

/* A person answered and the service ended before the agent had it: it is told, and gets it once. */
static void
test_restart_answered(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    eb_session_fixture_close(f);
    run_sql(f, "UPDATE question SET state = 'answered', answer = 'yes', answered_by = 'author-1'");
    eb_session_fixture_open(f);
    wait_said(f, "outcome yes");
    g_assert_cmpuint(f->chat->taken_up, ==, 0);
    g_assert_cmpuint(f->chat->asked, ==, 1);
    eb_session_fixture_wait_turns(f, f->turns_ended);
    assert_row(f, "applied yes author-1 ask-1");
}

/* The same, but too late: the agent hears of it and a person is asked again. */
static void
test_restart_answered_late(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    eb_session_fixture_close(f);
    run_sql(f, "UPDATE question SET state = 'answered', answer = 'yes', answered_by = 'author-1', "
               "expires = (strftime('%s', 'now') - 10) * 1000");
    eb_session_fixture_open(f);
    while (f->chat->asked < 2)
        g_main_context_iteration(NULL, TRUE);
    assert_never_said(f, "outcome yes");
    assert_row(f, "expired yes author-1 ask-1|open - - ask-2");
}

/* What was given to an agent is never given again; what cannot be read allows nothing. */
static void
test_restart_hostile_rows(void)
{
    static const char *const rows[] = {
        "state = 'applied', answer = 'yes'",
        "state = 'answered', answer = 'invented'",
        "state = 'answered', answer = NULL",
        "state = 'answered', answer = 'yes', body = '{'",
        "state = 'answered', answer = 'yes', body = '{\"thread\":\"t\",\"title\":\"x\",\"options\":[]}'",
        "state = 'allowed', answer = 'yes'",
        "session = 'somebody-else', state = 'answered', answer = 'yes'",
        "digest = '', state = 'answered', answer = 'yes'",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
        eb_session_fixture_close(f);
        g_autofree char *sql = g_strconcat("UPDATE question SET ", rows[i], NULL);
        run_sql(f, sql);
        eb_session_fixture_open(f);
        if (strstr(rows[i], "digest") == NULL)
            eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
        while (f->chat->asked < 2)
            g_main_context_iteration(NULL, TRUE);
        g_test_message("%s", rows[i]);
        assert_never_said(f, "outcome yes");
    }
}

/* Ended by a person meanwhile: nobody can answer any more. */
static void
test_restart_stopped(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    restart(f);
    wait_asks(f, 1);
    EbSessionRecord *record = eb_session_manager_find_record(f->manager, "fake", "t", FALSE);
    g_auto(EbTestResult) stopped = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_stop_session_async(f->manager, record->id, FALSE, NULL, eb_test_result_ready, &stopped);
    g_assert_true(eb_session_manager_stop_session_finish(f->manager, eb_test_result_wait(&stopped), &error));
    wait_asks(f, 0);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "closed: the session was ended");
    assert_row(f, "closed - - ask-1");
}

/* Who may answer a question from before: as in the session, changed for one that is not live. */
static void
test_restart_people(void)
{
    g_autoptr(EbSessionFixture) f = asking("ask2 make", NULL);
    restart(f);
    eb_session_manager_set_policy(f->manager, "fake", &policy);
    wait_asks(f, 1);
    g_assert_false(eb_fake_chat_press(f->chat, 0, "yes", "stranger"));
    EbSessionRecord *record = eb_session_manager_find_record(f->manager, "fake", "t", FALSE);
    g_assert_true(eb_session_manager_set_guest(f->manager, record, "friend", TRUE));
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "friend"));
    wait_said(f, "outcome yes");
    assert_row(f, "applied yes friend ask-1");
}

/* kill -9 in a process of its own, with the question open; or just when it was answered. */
static void
run_until_killed(const char *dir, gboolean answered)
{
    pid_t child = fork();
    g_assert_cmpint(child, >=, 0);
    if (child == 0) {
        execl("/proc/self/exe", "test-questions", answered ? "--killed-answered" : "--killed", dir, NULL);
        _exit(99);
    }
    int status = 0;
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int
be_killed(const char *dir, gboolean answered)
{
    EbSessionFixture *f = eb_session_fixture_new(dir, NULL, LASTING);
    f->chat->answer = g_strdup("");
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
    wait_asks(f, 1);
    /* "asked" is written in the background. */
    g_autofree char *row = row_of(f);
    while (strstr(row, "ask-1") == NULL) {
        g_main_context_iteration(NULL, FALSE);
        g_free(row);
        row = row_of(f);
    }
    if (answered)
        g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    while (answered && g_str_has_prefix(row, "open")) {
        g_main_context_iteration(NULL, FALSE);
        g_free(row);
        row = row_of(f);
    }
    kill(getpid(), SIGKILL);
    return 99;
}

static void
test_killed(void)
{
    g_autofree char *dir = eb_test_temp_dir("session");
    run_until_killed(dir, FALSE);
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(dir, NULL, LASTING);
    f->chat->answer = g_strdup("");
    eb_fake_chat_show_before(f->chat, "ask-1");
    assert_row(f, "open - - ask-1");
    eb_session_fixture_open(f);
    wait_asks(f, 1);
    g_assert_cmpuint(f->chat->taken_up, ==, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "yes", "author-1"));
    wait_said(f, "outcome yes");
    assert_row(f, "applied yes author-1 ask-1");
}

/* Answered, and killed around the moment the agent got it: it may have been lost, it is never given twice. */
static void
test_killed_when_answered(void)
{
    g_autofree char *dir = eb_test_temp_dir("session");
    run_until_killed(dir, TRUE);
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(dir, NULL, LASTING);
    f->chat->answer = g_strdup("");
    eb_fake_chat_show_before(f->chat, "ask-1");
    g_autofree char *row = row_of(f);
    eb_session_fixture_open(f);
    if (g_str_has_prefix(row, "answered")) {
        wait_said(f, "outcome yes");
        g_assert_cmpuint(f->chat->asked, ==, 0);
    } else {
        g_assert_cmpstr(row, ==, "applied yes author-1 ask-1");
        eb_fake_chat_say(f->chat, "t", "ask2 make", NULL);
        wait_asks(f, 1);
        assert_never_said(f, "outcome yes");
    }
}

/* A transport that does not last closes what it asked. */
static void
test_not_lasting(void)
{
    g_autoptr(EbSessionFixture) f =
        eb_session_fixture_new(NULL, NULL, EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED);
    f->chat->answer = g_strdup("");
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "ask2 make", NULL);
    wait_asks(f, 1);
    eb_session_fixture_close(f);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "closed: the agent is gone");
    assert_row(f, "closed - - ask-1");
    assert_never_said(f, "outcome yes");
}

int
main(int argc, char **argv)
{
    if (argc == 3 && g_str_has_prefix(argv[1], "--killed")) {
        char *arguments[] = {argv[0], NULL};
        char **rest = arguments;
        int count = 1;
        eb_test_init(&count, &rest);
        return be_killed(argv[2], g_str_equal(argv[1], "--killed-answered"));
    }
    eb_test_init(&argc, &argv);
    g_test_add_func("/questions/once-by-whoever-may", test_once_by_whoever_may);
    g_test_add_func("/questions/double-answer", test_double_answer);
    g_test_add_func("/questions/by-text", test_by_text);
    g_test_add_func("/questions/two-open", test_two_open);
    g_test_add_func("/questions/place-while-people-think", test_place_while_people_think);
    g_test_add_func("/questions/interrupt-while-answer-waits", test_interrupt_while_answer_waits);
    g_test_add_func("/questions/taken-back", test_taken_back);
    g_test_add_func("/questions/not-waited-for", test_not_waited_for);
    g_test_add_func("/questions/never-allowed-by-itself", test_never_allowed_by_itself);
    g_test_add_func("/questions/restart-allow", test_restart_allow);
    g_test_add_func("/questions/restart-reject", test_restart_reject);
    g_test_add_func("/questions/restart-different", test_restart_different);
    g_test_add_func("/questions/restart-asked-again", test_restart_asked_again);
    g_test_add_func("/questions/restart-expired", test_restart_expired);
    g_test_add_func("/questions/restart-answered", test_restart_answered);
    g_test_add_func("/questions/restart-answered-late", test_restart_answered_late);
    g_test_add_func("/questions/restart-hostile-rows", test_restart_hostile_rows);
    g_test_add_func("/questions/restart-stopped", test_restart_stopped);
    g_test_add_func("/questions/restart-people", test_restart_people);
    g_test_add_func("/questions/killed", test_killed);
    g_test_add_func("/questions/killed-when-answered", test_killed_when_answered);
    g_test_add_func("/questions/not-lasting", test_not_lasting);
    return g_test_run();
}
