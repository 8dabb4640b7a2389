/* SPDX-License-Identifier: MIT */
/* Whole sessions: from a message to an agent's turn and back, with real agent processes. */
#include "eb-session-fixture.h"

#include <string.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

static void
test_turn(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say hello from the guest", "{\"project\":\"web\"}");
    g_assert_no_error(f->turn_error);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "hello from the guest ");
    EbChatPost *guest = eb_fake_chat_last(f->chat, EB_CHAT_POST_GUEST);
    g_assert_cmpstr(eb_json_get_string(guest->data, "state"), ==, "started");
    g_assert_cmpstr(eb_json_get_string(guest->data, "origin"), ==, "cold");
    EbChatPost *ready = eb_fake_chat_last(f->chat, EB_CHAT_POST_READY);
    g_assert_cmpstr(eb_json_get_string(ready->data, "agent"), ==, "scripted");
    EbChatPost *end = eb_fake_chat_last(f->chat, EB_CHAT_POST_END);
    g_assert_cmpstr(eb_json_get_string(end->data, "stop_reason"), ==, "end_turn");
    g_assert_nonnull(eb_json_get_object(end->data, "ms"));
    g_assert_true(end == f->chat->posts->pdata[f->chat->posts->len - 1]);
    /* A second message goes to the same guest. */
    eb_session_fixture_turn(f, NULL, "history", NULL);
    g_autofree char *again = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(again, "before: 1"));
    g_assert_cmpuint(f->backend->launched, ==, 1);
    g_autoptr(JsonNode) list = eb_session_manager_list_json(f->manager);
    JsonObject *one = eb_json_array_object(eb_json_get_array(json_node_get_object(list), "sessions"), 0);
    g_assert_cmpstr(eb_json_get_string(one, "state"), ==, "ready");
    g_assert_cmpstr(eb_json_get_string(one, "project"), ==, "web");
    g_assert_cmpint(eb_json_get_int(one, "turns", 0), ==, 2);
}

static void
test_tool_and_diff(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "tool", NULL);
    g_assert_cmpuint(eb_fake_chat_count(f->chat, EB_CHAT_POST_TOOL), ==, 2);
    EbChatPost *diff = eb_fake_chat_last(f->chat, EB_CHAT_POST_DIFF);
    g_assert_cmpstr(eb_json_get_string(diff->data, "diff"), ==, "@@ -1,1 +1,2 @@\n one\n+two\n");
    g_assert_cmpint(eb_json_get_int(diff->data, "added", 0), ==, 1);
}

static void
test_nonce_is_masked(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "nonce", NULL);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "it is [nonce] indeed");
    eb_session_fixture_turn(f, NULL, "env", NULL);
    g_autofree char *env = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(env, "HTTPS_PROXY HTTP_PROXY LANG LOGNAME NO_PROXY OPENAI_API_KEY OPENAI_BASE_URL PATH"));
    g_assert_nonnull(strstr(env, "http_proxy https_proxy no_proxy"));
}

static void
ask(const char *answer, const char *settings, const char *said, const char *outcome)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, settings, STRUCTURED);
    eb_session_fixture_open(f);
    f->chat->answer = g_strdup(answer);
    eb_session_fixture_turn(f, NULL, "ask", NULL);
    g_autofree char *text = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(text, ==, said);
    g_assert_cmpuint(f->chat->asked, ==, 1);
    EbChatPost *post = eb_fake_chat_last(f->chat, EB_CHAT_POST_PERMISSION);
    g_assert_cmpstr(eb_json_get_string(post->data, "outcome"), ==, outcome);
    g_assert_nonnull(strstr(eb_json_get_string(post->data, "title"), "rm -rf build"));
}

static void
test_permissions(void)
{
    ask("yes", NULL, "outcome yes", "allowed");
    ask("no", NULL, "outcome no", "rejected");
    ask("", "question = \"1s\"", "outcome no", "timeout");
    ask("invented", NULL, "outcome no", "timeout");
}

static gboolean
is_asking(gpointer user_data)
{
    return eb_fake_chat_open_asks(((EbSessionFixture *)user_data)->chat) > 0;
}

static void
test_cancel_while_asked(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    f->chat->answer = g_strdup("");
    eb_fake_chat_say(f->chat, NULL, "ask", NULL);
    eb_test_run_until(is_asking, f);
    g_signal_emit_by_name(f->chat, "interrupt", NULL, 1);
    eb_session_fixture_wait_turns(f, 1);
    g_assert_cmpstr(f->stop_reason, ==, "cancelled");
    g_assert_no_error(f->turn_error);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, 0);
    g_assert_cmpstr(eb_fake_chat_ask(f->chat, 0)->outcome, ==, "closed: the turn was interrupted");
    EbChatPost *post = eb_fake_chat_last(f->chat, EB_CHAT_POST_PERMISSION);
    g_assert_cmpstr(eb_json_get_string(post->data, "outcome"), ==, "cancelled");
    eb_session_fixture_turn(f, NULL, "say still here", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
}

static gboolean
has_text(gpointer user_data)
{
    return eb_fake_chat_count(((EbSessionFixture *)user_data)->chat, EB_CHAT_POST_TEXT) > 0;
}

static void
test_cancel(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "wait", NULL);
    eb_test_run_until(has_text, f);
    eb_fake_chat_say(f->chat, NULL, "say second", NULL);
    g_signal_emit_by_name(f->chat, "interrupt", NULL, 1);
    eb_session_fixture_wait_turns(f, 2);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "second"));
    g_signal_emit_by_name(f->chat, "interrupt", NULL, 1);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "stopped");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
}

static void
test_deaf_agent(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "deaf", NULL);
    eb_test_run_until(has_text, f);
    g_signal_emit_by_name(f->chat, "interrupt", NULL, 1);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "unresponsive");
    g_assert_cmpstr(f->stop_reason, ==, "cancelled");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
}

static void
test_crash(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "crash", NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "crashed");
    eb_test_assert_error(f->end_error, EB_ERROR_FAILED, "agent.exited", "code 3: panic: the scripted end");
    g_assert_cmpuint(f->turns_ended, ==, 1);
    g_assert_cmpstr(f->stop_reason, ==, "error");
    g_assert_cmpuint(eb_fake_chat_count(f->chat, EB_CHAT_POST_ERROR), ==, 1);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    /* The next message continues it. */
    eb_session_fixture_turn(f, NULL, "history", NULL);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "before: 1"));
}

static void
test_guests_vanish(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "wait", NULL);
    eb_test_run_until(has_text, f);
    g_signal_emit_by_name(f->backend, "instance-event", EB_INSTANCE_EVENT_BACKEND_LOST, NULL);
    eb_fake_backend_vanish(f->backend);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_nonnull(f->end_error);
    g_assert_cmpuint(f->turns_ended, ==, 1);
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "container backend went away"));
}

static void
test_restart_continues(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say remember me", "{\"project\":\"web\"}");
    eb_session_fixture_close(f);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    eb_session_fixture_open(f);
    eb_fake_chat_forget(f->chat);
    eb_session_fixture_turn(f, NULL, "history", NULL);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "before: 1");
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_cmpstr(notices, ==, "");
    /* A new one on request. */
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    eb_fake_chat_forget(f->chat);
    eb_session_fixture_turn(f, NULL, "history", "{\"resume\":false}");
    g_autofree char *fresh = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(fresh, ==, "before: 0");
}

static void
test_history_lost(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say remember me", NULL);
    eb_session_fixture_close(f);
    g_autofree char *store = g_build_filename(f->dir, "agent-sessions", NULL);
    eb_test_remove_tree(store);
    eb_session_fixture_open(f);
    eb_fake_chat_forget(f->chat);
    eb_session_fixture_turn(f, NULL, "history", NULL);
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "could not continue its earlier conversation"));
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "before: 0");
    eb_session_fixture_turn(f, "other", "say x", "{\"agent\":\"forgetful\"}");
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    eb_fake_chat_forget(f->chat);
    eb_session_fixture_turn(f, "other", "history", NULL);
    g_autofree char *told = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(told, "cannot continue an earlier conversation"));
}

static void
test_resume_unknown(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", "{\"resume\":true}");
    eb_test_assert_error(f->end_error, EB_ERROR_NOT_FOUND, "session.unknown", NULL);
    eb_session_fixture_assert_nothing(f);
}

/* One is told to wait for a session, one for a turn: everything is as full as it gets. */
static gboolean
all_places_told(gpointer user_data)
{
    EbSessionFixture *f = user_data;
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    return strstr(notices, "waiting for a free session, position 1") != NULL &&
           strstr(notices, "waiting for a free turn, position 1") != NULL;
}

static void
test_queue_and_places(void)
{
    g_autoptr(EbSessionFixture) f =
        eb_session_fixture_new(NULL, "[limits]\nmax_live_sessions = 2\nmax_concurrent_turns = 1\n", STRUCTURED);
    eb_session_fixture_open(f);
    for (guint i = 0; i < 3; i++) {
        g_autofree char *thread = g_strdup_printf("t%u", i);
        eb_fake_chat_say(f->chat, thread, "gate open", NULL);
    }
    eb_test_run_until(all_places_told, f);
    g_assert_cmpuint(f->turns_ended, ==, 0);
    g_autofree char *gate = g_build_filename(f->backend->dir, "..", "agent-sessions", "open", NULL);
    eb_test_write_file(gate, "");
    eb_session_fixture_wait_turns(f, 2);
    g_autoptr(JsonNode) status = eb_session_manager_status_json(f->manager);
    g_assert_cmpint(eb_json_get_int(json_node_get_object(status), "waiting_sessions", -1), ==, 1);
    g_signal_emit_by_name(f->chat, "interrupt", "t0", 2);
    eb_session_fixture_wait_turns(f, 3);
    g_assert_cmpuint(f->backend->launched, ==, 3);
}

static void
test_one_project_once(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "a", "say x", "{\"project\":\"web\"}");
    eb_session_fixture_turn(f, "b", "say x", "{\"project\":\"web\"}");
    eb_session_fixture_wait_ended(f, 1);
    eb_test_assert_error(f->end_error, EB_ERROR_BUSY, "project.busy", "web has a live session already");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 1);
    g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 1);
}

static void
test_two_managers(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    EbSessionManager *first = g_steal_pointer(&f->manager);
    g_autoptr(GError) error = NULL;
    g_assert_false(eb_session_fixture_try_open(f, &error));
    g_autofree char *pid = g_strdup_printf("process %d", (int)getpid());
    eb_test_assert_error(error, EB_ERROR_LOCKED, "lock.held", pid);
    f->manager = first;
}

static void
test_stop_and_remove(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    g_autoptr(JsonNode) list = eb_session_manager_list_json(f->manager);
    g_autofree char *id = g_strdup(
        eb_json_get_string(eb_json_array_object(eb_json_get_array(json_node_get_object(list), "sessions"), 0), "id"));
    g_auto(EbTestResult) logged = {0};
    eb_session_manager_log_async(f->manager, id, NULL, eb_test_result_ready, &logged);
    g_autoptr(GPtrArray) events = eb_session_manager_log_finish(f->manager, eb_test_result_wait(&logged), NULL);
    g_assert_cmpuint(events->len, >, 0);
    g_auto(EbTestResult) stopped = {0}, egress = {0}, nothing = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_egress_async(f->manager, id, NULL, eb_test_result_ready, &egress);
    g_autoptr(GPtrArray) rows = eb_session_manager_log_finish(f->manager, eb_test_result_wait(&egress), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(rows->len, ==, 1); /* the verdict on the chain, in which there is nothing yet */
    /* Of an id with a slip in it nothing is called whole; it may be one of a try. */
    eb_session_manager_egress_async(f->manager, "nosuch", NULL, eb_test_result_ready, &nothing);
    g_assert_null(eb_session_manager_log_finish(f->manager, eb_test_result_wait(&nothing), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "session.unknown", "nosuch");
    g_clear_error(&error);
    g_autofree char *prefix = g_strndup(id, 8);
    eb_session_manager_stop_session_async(f->manager, prefix, TRUE, NULL, eb_test_result_ready, &stopped);
    g_assert_true(eb_session_manager_stop_session_finish(f->manager, eb_test_result_wait(&stopped), &error));
    g_assert_no_error(error);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    g_assert_cmpuint(f->backend->cleanups, ==, 1);
    g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 0);
    g_assert_null(eb_session_manager_show_json(f->manager, id, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "session.unknown", id);
}

static void
test_threads_and_plain_chat(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY);
    f->chat->limits.max_text_units = 100;
    eb_session_fixture_open(f);
    g_autoptr(GString) text = g_string_new("say");
    for (guint i = 0; i < 60; i++)
        g_string_append(text, " word");
    eb_session_fixture_turn(f, NULL, text->str, NULL);
    g_assert_cmpuint(f->chat->threads, ==, 1);
    g_assert_cmpuint(eb_fake_chat_count(f->chat, EB_CHAT_POST_TEXT), >=, 3);
    for (guint i = 0; i < f->chat->posts->len; i++) {
        EbChatPost *post = f->chat->posts->pdata[i];
        g_assert_cmpstr(post->thread, ==, "thread-1");
        g_assert_cmpuint(strlen(post->text), <=, 100);
        g_assert_false(post->append);
    }
    /* The same message again is no second errand. */
    guint turns = f->turns_ended;
    f->chat->messages--;
    eb_fake_chat_say(f->chat, "thread-1", text->str, NULL);
    eb_session_fixture_turn(f, "thread-1", "history", NULL);
    g_assert_cmpuint(f->turns_ended, ==, turns + 1);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "before: 1"));
}

/* A prompt nobody has begun when the service ends is done after its restart; one that had begun is not begun again. */
static void
test_waiting_prompt_survives(void)
{
    g_autoptr(EbSessionFixture) f =
        eb_session_fixture_new(NULL, "[limits]\nmax_concurrent_turns = 1\n", EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "b", "say first", NULL);
    eb_fake_chat_say(f->chat, "a", "wait", NULL);
    while (f->backend->launched < 2 || eb_session_manager_find_live(f->manager, "fake", "a") == NULL ||
           eb_session_get_state(eb_session_manager_find_live(f->manager, "fake", "a")) != EB_SESSION_WORKING)
        g_main_context_iteration(NULL, TRUE);
    eb_fake_chat_say(f->chat, "b", "say later", NULL);
    while (eb_admission_get_waiting(f->manager->parts->turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    eb_session_fixture_close(f);
    eb_fake_chat_forget(f->chat);
    guint turns = f->turns_ended;
    eb_session_fixture_open(f);
    eb_session_fixture_wait_turns(f, turns + 1);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "later"));
    g_assert_cmpuint(f->backend->launched, ==, 3);
}

static void
test_idle(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, "idle = \"10s\"\n", STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "idle");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    g_assert_cmpuint(eb_fake_chat_count(f->chat, EB_CHAT_POST_ERROR), ==, 0);
    eb_session_fixture_turn(f, NULL, "history", NULL);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "before: 1"));
}

/* Stopped right after a turn: what its agent writes behind the answer is kept when its profile says that it does so. */
static void
test_settles(void)
{
    static const char *const agents[] = {"test", "behind"};
    for (guint i = 0; i < G_N_ELEMENTS(agents); i++) {
        g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
        g_autofree char *note = g_build_filename(f->dir, "agent-sessions", "note", NULL);
        g_autofree char *args = g_strdup_printf("{\"agent\":\"%s\"}", agents[i]);
        eb_session_fixture_open(f);
        eb_session_fixture_turn(f, NULL, "behind note", args);
        eb_session_end(eb_session_fixture_live(f, NULL), EB_SESSION_END_STOPPED, NULL);
        eb_session_fixture_wait_ended(f, 1);
        g_assert_cmpint(g_file_test(note, G_FILE_TEST_EXISTS), ==, i == 1);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/session/turn", test_turn);
    g_test_add_func("/session/tool-and-diff", test_tool_and_diff);
    g_test_add_func("/session/nonce-is-masked", test_nonce_is_masked);
    g_test_add_func("/session/permissions", test_permissions);
    g_test_add_func("/session/cancel-while-asked", test_cancel_while_asked);
    g_test_add_func("/session/cancel", test_cancel);
    g_test_add_func("/session/deaf-agent", test_deaf_agent);
    g_test_add_func("/session/settles", test_settles);
    g_test_add_func("/session/crash", test_crash);
    g_test_add_func("/session/guests-vanish", test_guests_vanish);
    g_test_add_func("/session/restart-continues", test_restart_continues);
    g_test_add_func("/session/history-lost", test_history_lost);
    g_test_add_func("/session/resume-unknown", test_resume_unknown);
    g_test_add_func("/session/queue-and-places", test_queue_and_places);
    g_test_add_func("/session/one-project-once", test_one_project_once);
    g_test_add_func("/session/two-managers", test_two_managers);
    g_test_add_func("/session/stop-and-remove", test_stop_and_remove);
    g_test_add_func("/session/threads-and-plain-chat", test_threads_and_plain_chat);
    g_test_add_func("/session/waiting-prompt-survives", test_waiting_prompt_survives);
    g_test_add_func("/session/idle", test_idle);
    return g_test_run();
}
