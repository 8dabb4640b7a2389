/* SPDX-License-Identifier: MIT */
/* What becomes of what people say: steered, queued, changed, taken back, said again; one final outcome for each. */
#include "core/session/eb-session-private.h"
#include "eb-session-fixture.h"

#include <string.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)
#define LASTING (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_BUSY)

static void
assert_outcomes(EbSessionFixture *f, const char *message, const char *expected)
{
    g_autofree char *outcomes = eb_session_fixture_outcomes(f, message);
    g_assert_cmpstr(outcomes, ==, expected);
}

static void
wait_said(EbSessionFixture *f, const char *text)
{
    eb_session_fixture_wait_said(f, EB_CHAT_POST_TEXT, text);
}

static void
open_gate(EbSessionFixture *f, const char *name)
{
    g_autofree char *gate = g_build_filename(f->dir, "agent-sessions", name, NULL);
    eb_test_write_file(gate, "");
}

/* Says it as the router will: into the turn when the agent takes it. */
static void
say(EbSessionFixture *f, const char *id, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_session_say(eb_session_fixture_live(f, NULL), eb_prompt_new(id, "author-2", text), &error));
    g_assert_no_error(error);
}

static void
test_final_outcomes(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    eb_session_fixture_turn(f, NULL, "refusal", NULL);
    eb_session_fixture_turn(f, NULL, "fail", NULL);
    eb_session_fixture_turn(f, NULL, "nothing", NULL);
    EbChatPost *end = eb_fake_chat_last(f->chat, EB_CHAT_POST_END);
    g_assert_cmpstr(eb_json_get_string(end->data, "state"), ==, "no output");
    eb_fake_chat_say(f->chat, NULL, "wait", NULL);
    wait_said(f, "waiting");
    g_assert_true(eb_session_interrupt(eb_session_fixture_live(f, NULL)));
    eb_session_fixture_wait_turns(f, 5);
    eb_session_fixture_turn(f, NULL, "crash", NULL);
    eb_session_fixture_wait_ended(f, 1);
    assert_outcomes(f, "message-1", "waiting working done");
    assert_outcomes(f, "message-2", "waiting working failed");
    assert_outcomes(f, "message-3", "waiting working failed");
    assert_outcomes(f, "message-4", "waiting working done");
    assert_outcomes(f, "message-5", "waiting working interrupted");
    assert_outcomes(f, "message-6", "waiting working failed");
}

static void
test_never_started(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", "{\"agent\":\"crash\"}");
    assert_outcomes(f, "message-1", "waiting refused");
    /* The one who has the project keeps it. */
    eb_session_fixture_turn(f, "a", "say x", "{\"project\":\"web\"}");
    eb_session_fixture_turn(f, "b", "say x", "{\"project\":\"web\"}");
    assert_outcomes(f, "message-3", "waiting refused");
}

static void
test_queue(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "gate open", NULL);
    while (f->outcomes->len < 2)
        g_main_context_iteration(NULL, TRUE);
    EbSession *session = eb_session_fixture_live(f, NULL);
    g_autoptr(GError) error = NULL;
    for (guint i = 0; i < EB_SESSION_MAX_PROMPTS; i++) {
        g_autofree char *id = g_strdup_printf("q-%u", i);
        g_assert_true(eb_session_prompt(session, eb_prompt_new(id, "author-2", "say queued"), &error));
    }
    g_assert_false(eb_session_prompt(session, eb_prompt_new("q-16", "author-2", "say no"), &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "prompt.queue", "16 messages");
    g_clear_error(&error);
    assert_outcomes(f, "q-16", "");
    g_autofree char *long_text = g_strnfill(EB_PROMPT_MAX_BYTES + 1, 'x');
    g_assert_false(eb_session_prompt(session, eb_prompt_new("long", "author-2", long_text), &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "prompt.size", NULL);
    g_clear_error(&error);
    g_assert_false(eb_session_prompt(session, eb_prompt_new("none", "author-2", ""), &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "prompt.size", NULL);
    g_autoptr(GPtrArray) waiting = eb_session_list_prompts(session);
    g_assert_cmpuint(waiting->len, ==, EB_SESSION_MAX_PROMPTS);
    g_assert_cmpstr(((EbPrompt *)waiting->pdata[0])->message_id, ==, "q-0");
    g_assert_true(eb_session_replace_prompt(session, "q-0", "say changed"));
    g_assert_false(eb_session_replace_prompt(session, "q-0", long_text));
    g_assert_false(eb_session_replace_prompt(session, "message-1", "say too late"));
    for (guint i = 1; i < EB_SESSION_MAX_PROMPTS; i++) {
        g_autofree char *id = g_strdup_printf("q-%u", i);
        g_assert_true(eb_session_withdraw(session, id));
        g_assert_false(eb_session_withdraw(session, id));
        assert_outcomes(f, id, "waiting interrupted");
    }
    open_gate(f, "open");
    eb_session_fixture_wait_turns(f, 2);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "changed"));
    g_assert_null(strstr(said, "queued"));
    assert_outcomes(f, "q-0", "waiting working done");
}

/* Of two that wait for a place the first is taken back: the second gets its place. */
static void
test_withdraw_while_waiting_for_place(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, "[limits]\nmax_concurrent_turns = 1\n", STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "b", "say first", NULL);
    eb_fake_chat_say(f->chat, "a", "gate open", NULL);
    while (eb_admission_get_held(f->manager->parts->turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    EbSession *session = eb_session_fixture_live(f, "b");
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_session_prompt(session, eb_prompt_new("one", "author-1", "say one"), &error));
    g_assert_true(eb_session_prompt(session, eb_prompt_new("two", "author-1", "say two"), &error));
    while (eb_admission_get_waiting(f->manager->parts->turns) == 0)
        g_main_context_iteration(NULL, TRUE);
    g_autoptr(GPtrArray) waiting = eb_session_list_prompts(session);
    g_assert_cmpuint(waiting->len, ==, 2);
    g_assert_true(eb_session_withdraw(session, "one"));
    g_assert_cmpuint(eb_admission_get_waiting(f->manager->parts->turns), ==, 1);
    open_gate(f, "open");
    eb_session_fixture_wait_turns(f, 3);
    assert_outcomes(f, "one", "waiting interrupted");
    assert_outcomes(f, "two", "waiting working done");
    g_assert_cmpuint(eb_admission_get_held(f->manager->parts->turns), ==, 0);
}

static void
test_steer(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "steerable", "{\"agent\":\"rich\"}");
    wait_said(f, "ready;");
    g_assert_true(eb_session_can_steer(eb_session_fixture_live(f, NULL)));
    say(f, "s-1", "mind the gap");
    wait_said(f, "heard mind the gap;");
    assert_outcomes(f, "s-1", "working");
    say(f, "s-2", "finish");
    eb_session_fixture_wait_turns(f, 1);
    g_assert_cmpuint(f->turns_ended, ==, 1);
    assert_outcomes(f, "s-1", "working done");
    assert_outcomes(f, "s-2", "working done");
    g_assert_false(eb_session_can_steer(eb_session_fixture_live(f, NULL)));
    g_autoptr(GError) error = NULL;
    g_assert_false(eb_session_steer(eb_session_fixture_live(f, NULL), eb_prompt_new("s-3", "author-1", "x"), &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "session.no-turn", "no turn is running");
    /* Without a turn it is one. */
    say(f, "s-4", "say alone");
    eb_session_fixture_wait_turns(f, 2);
    assert_outcomes(f, "s-4", "waiting working done");
}

/* An agent that refuses what is steered: it is the next prompt, not lost. */
static void
test_steer_refused(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "steerable", "{\"agent\":\"stubborn\"}");
    wait_said(f, "ready;");
    say(f, "s-1", "say later");
    wait_said(f, "no;");
    while (f->outcomes->len < 4)
        g_main_context_iteration(NULL, TRUE);
    assert_outcomes(f, "s-1", "working waiting");
    g_assert_true(eb_session_interrupt(eb_session_fixture_live(f, NULL)));
    eb_session_fixture_wait_turns(f, 2);
    wait_said(f, "later");
    assert_outcomes(f, "s-1", "working waiting working done");
    /* One that cannot at all says so. */
    eb_fake_chat_say(f->chat, "other", "wait", NULL);
    wait_said(f, "waiting");
    g_autoptr(GError) error = NULL;
    EbSession *session = eb_session_fixture_live(f, "other");
    g_assert_false(eb_session_steer(session, eb_prompt_new("s-5", "author-1", "x"), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "session.steer", "in the middle of a turn");
    g_assert_true(eb_session_say(session, eb_prompt_new("s-6", "author-1", "say queued"), NULL));
    assert_outcomes(f, "s-6", "waiting");
}

/* The turn ends just as something is steered into it: the agent goes on with that, and the turn lasts until it has. */
static void
test_steer_at_the_end(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "steerable", "{\"agent\":\"rich\"}");
    wait_said(f, "ready;");
    say(f, "s-1", "late");
    eb_session_fixture_wait_turns(f, 1);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "ready;heard late;taken up;");
    g_assert_true(eb_fake_chat_last(f->chat, EB_CHAT_POST_END) == f->chat->posts->pdata[f->chat->posts->len - 1]);
    assert_outcomes(f, "s-1", "working done");
    eb_session_fixture_turn(f, NULL, "say next", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
}

/* What was steered in last is never answered: the turn ends all the same, also when it is interrupted or all is gone. */
static void
test_steer_unanswered(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    static const char *const words[] = {"ignored", "ignored", "gone"};
    static const char *const outcomes[] = {"working done", "working interrupted", "working failed"};
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        eb_fake_chat_forget(f->chat);
        eb_fake_chat_say(f->chat, NULL, "steerable", i == 0 ? "{\"agent\":\"rich\"}" : NULL);
        wait_said(f, "ready;");
        EbSession *session = eb_session_fixture_live(f, NULL);
        g_autofree char *id = g_strdup_printf("s-%u", i);
        say(f, id, words[i]);
        /* The third ends at once. */
        while (i < 2 && session->held_turn == NULL)
            g_main_context_iteration(NULL, TRUE);
        if (i == 1) {
            g_assert_false(eb_session_steer(session, eb_prompt_new("x", "author-1", "x"), NULL));
            g_assert_true(eb_session_interrupt(session));
        }
        eb_session_fixture_wait_turns(f, i + 1);
        assert_outcomes(f, id, outcomes[i]);
    }
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "crashed");
    g_assert_cmpuint(f->turns_ended, ==, 3);
    g_assert_cmpuint(eb_admission_get_held(f->manager->parts->turns), ==, 0);
}

static void
test_steer_is_bounded(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "steerable", "{\"agent\":\"rich\"}");
    wait_said(f, "ready;");
    for (guint i = 0; i < EB_SESSION_MAX_STEERED; i++) {
        g_autofree char *id = g_strdup_printf("s-%u", i);
        say(f, id, "word");
    }
    g_assert_false(eb_session_can_steer(eb_session_fixture_live(f, NULL)));
    say(f, "last", "say queued");
    assert_outcomes(f, "last", "waiting");
    g_assert_true(eb_session_interrupt(eb_session_fixture_live(f, NULL)));
    eb_session_fixture_wait_turns(f, 2);
    /* Whatever the agent had of them by then: each has one final outcome. */
    for (guint i = 0; i < EB_SESSION_MAX_STEERED; i++) {
        g_autofree char *id = g_strdup_printf("s-%u", i);
        g_autofree char *outcomes = eb_session_fixture_outcomes(f, id);
        g_assert_true(g_str_equal(outcomes, "working interrupted") || g_str_equal(outcomes, "interrupted"));
    }
    assert_outcomes(f, "last", "waiting working done");
}

static void
test_retry_and_compact(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    g_autoptr(GError) error = NULL;
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say again", "{\"agent\":\"rich\"}");
    EbSession *session = eb_session_fixture_live(f, NULL);
    g_assert_true(eb_session_retry(session, "r-1", "author-2", &error));
    g_assert_false(eb_session_retry(session, "r-2", "author-2", &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "session.busy", "a turn is running");
    g_clear_error(&error);
    g_assert_false(eb_session_compact(session, &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "session.busy", NULL);
    g_clear_error(&error);
    eb_session_fixture_wait_turns(f, 2);
    assert_outcomes(f, "r-1", "waiting working done");
    EbChatPost *end = eb_fake_chat_last(f->chat, EB_CHAT_POST_END);
    g_assert_cmpstr(end->notify, ==, "author-2");
    g_assert_true(eb_session_compact(session, &error));
    eb_session_fixture_wait_turns(f, 3);
    wait_said(f, "compacted");
    /* Without such a command, and without anything said. */
    eb_session_fixture_turn(f, "plain", "say x", NULL);
    g_assert_false(eb_session_compact(eb_session_fixture_live(f, "plain"), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "session.compact", NULL);
    g_clear_error(&error);
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, "plain", "gate open", NULL);
    while (eb_session_manager_find_live(f->manager, "fake", "plain") == NULL)
        g_main_context_iteration(NULL, TRUE);
    g_assert_false(eb_session_compact(eb_session_fixture_live(f, "plain"), &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "session.starting", NULL);
    g_clear_error(&error);
    g_assert_false(eb_session_retry(eb_session_fixture_live(f, "plain"), "r-3", "author-1", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "session.no-prompt", NULL);
}

static void
test_models(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    g_autoptr(GError) error = NULL;
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say x", "{\"agent\":\"rich\"}");
    EbSession *session = eb_session_fixture_live(f, NULL);
    g_autoptr(JsonArray) models = eb_session_list_models(session);
    g_assert_cmpuint(json_array_get_length(models), ==, 3);
    JsonObject *second = eb_json_array_object(models, 1);
    g_assert_cmpstr(eb_json_get_string(second, "id"), ==, "provider/large");
    g_assert_cmpstr(eb_json_get_string(second, "name"), ==, "Large");
    g_assert_false(eb_json_get_bool(second, "current", TRUE));
    g_auto(EbTestResult) set = {0};
    eb_session_set_model_async(session, "large", NULL, eb_test_result_ready, &set);
    g_autofree char *model = eb_session_set_model_finish(session, eb_test_result_wait(&set), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(model, ==, "provider/large");
    g_assert_cmpstr(eb_session_get_record(session)->model, ==, "provider/large");
    eb_test_result_clear(&set);
    eb_session_set_model_async(session, "Broken", NULL, eb_test_result_ready, &set);
    g_assert_null(eb_session_set_model_finish(session, eb_test_result_wait(&set), &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "acp.agent-error", "on fire");
    g_clear_error(&error);
    g_assert_cmpstr(eb_session_get_record(session)->model, ==, "provider/large");
    eb_test_result_clear(&set);
    eb_session_set_model_async(session, "unheard-of", NULL, eb_test_result_ready, &set);
    g_assert_null(eb_session_set_model_finish(session, eb_test_result_wait(&set), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "acp.no-such-value", NULL);
    g_clear_error(&error);
    eb_fake_chat_say(f->chat, NULL, "wait", NULL);
    wait_said(f, "waiting");
    eb_test_result_clear(&set);
    eb_session_set_model_async(session, "small", NULL, eb_test_result_ready, &set);
    g_assert_null(eb_session_set_model_finish(session, eb_test_result_wait(&set), &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "session.busy", NULL);
    g_clear_error(&error);
    eb_session_fixture_turn(f, "old", "say x", "{\"agent\":\"legacy\"}");
    EbSession *old = eb_session_fixture_live(f, "old");
    eb_test_result_clear(&set);
    eb_session_set_model_async(old, "provider/large", NULL, eb_test_result_ready, &set);
    g_autofree char *taken = eb_session_set_model_finish(old, eb_test_result_wait(&set), &error);
    g_assert_no_error(error);
    g_assert_cmpstr(taken, ==, "provider/large");
    g_autoptr(JsonArray) none = NULL;
    eb_session_fixture_turn(f, "none", "say x", NULL);
    none = eb_session_list_models(eb_session_fixture_live(f, "none"));
    g_assert_cmpuint(json_array_get_length(none), ==, 0);
}

static void
test_status_and_end(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED | EB_CHAT_CAP_BUSY);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "usage 0.25", "{\"agent\":\"rich\",\"project\":\"web\"}");
    eb_session_fixture_turn(f, NULL, "usage 0.75", NULL);
    EbChatPost *end = eb_fake_chat_last(f->chat, EB_CHAT_POST_END);
    g_assert_cmpstr(eb_json_get_string(end->data, "who"), ==, "author-1");
    g_assert_cmpstr(end->notify, ==, "author-1");
    JsonObject *tokens = eb_json_get_object(end->data, "tokens");
    g_assert_cmpint(eb_json_get_int(tokens, "input", -1), ==, 1000);
    g_assert_cmpint(eb_json_get_int(tokens, "output", -1), ==, 200);
    g_assert_cmpint(eb_json_get_int(tokens, "cached", -1), ==, 600);
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(end->data, "context"), "size", -1), ==, 128000);
    g_assert_cmpfloat_with_epsilon(json_object_get_double_member(end->data, "cost"), 0.5, 1e-9);
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(end->data, "ms"), "wait", -1), >=, 0);
    g_assert_cmpstr(end->text, !=, "");
    g_assert_cmpuint(eb_fake_chat_count(f->chat, EB_CHAT_POST_BUSY), ==, 4);
    g_autoptr(JsonObject) status = eb_session_status(eb_session_fixture_live(f, NULL));
    g_assert_cmpstr(eb_json_get_string(status, "project"), ==, "web");
    g_assert_cmpstr(eb_json_get_string(status, "state"), ==, "ready");
    g_assert_cmpstr(eb_json_get_string(status, "agent_name"), ==, "scripted");
    g_assert_true(eb_json_get_bool(status, "steer", FALSE));
    g_assert_cmpint(eb_json_get_int(status, "turns", -1), ==, 2);
    g_assert_cmpint(eb_json_get_int(status, "waiting", -1), ==, 0);
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(status, "context"), "used", -1), ==, 1200);
    g_assert_false(json_object_has_member(status, "turn_ms"));
}

/* Extra blocks go to agents that take images alone. */
static void
test_blocks(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    static const char *const agents[] = {"rich", "test"};
    for (guint i = 0; i < 2; i++) {
        g_autofree char *extra = g_strdup_printf("{\"agent\":\"%s\"}", agents[i]);
        eb_session_fixture_turn(f, agents[i], "say hello", extra);
        EbPrompt *prompt = eb_prompt_new(NULL, "author-1", "blocks");
        prompt->blocks = json_array_new();
        JsonObject *image = json_object_new();
        json_object_set_string_member(image, "type", "image");
        json_object_set_string_member(image, "mimeType", "image/png");
        json_object_set_string_member(image, "data", "iVBORw0KGgo=");
        json_array_add_object_element(prompt->blocks, image);
        eb_fake_chat_forget(f->chat);
        g_assert_true(eb_session_prompt(eb_session_fixture_live(f, agents[i]), prompt, NULL));
        eb_session_fixture_wait_turns(f, 2 * i + 2);
        g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
        g_assert_cmpstr(said, ==, i == 0 ? "text image" : "text");
    }
}

static EbPrompt *
prompt_with_file(const char *id, const char *text, const char *name)
{
    EbPrompt *prompt = eb_prompt_new(id, "author-1", text);
    prompt->message = eb_chat_message_new(id, "t", "author-1", text);
    eb_chat_message_add_attachment(prompt->message, "a-1", name, "image/png", 70, "https://example.invalid/x");
    return prompt;
}

/* Files are taken when the turn begins: pictures go to agents that see them, all are told of. */
static void
test_attachments(void)
{
    static const guint8 picture[] = "\x89PNG\r\n\x1a\n is enough here";
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED | EB_CHAT_CAP_FETCH);
    f->chat->file = g_bytes_new_static(picture, sizeof picture - 1);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say hello", "{\"agent\":\"rich\",\"project\":\"web\"}");
    EbSession *session = eb_session_fixture_live(f, NULL);
    eb_fake_chat_forget(f->chat);
    g_assert_true(eb_session_prompt(session, prompt_with_file("p-1", "blocks", "shot.png"), NULL));
    eb_session_fixture_wait_turns(f, 2);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "text image");
    g_assert_nonnull(strstr(eb_session_get_record(session)->last_prompt, "shot.png"));
    g_autofree char *saved = g_build_filename(f->dir, "projects", "web", "attachments", "shot.png", NULL);
    g_assert_true(g_file_test(saved, G_FILE_TEST_IS_REGULAR));
    assert_outcomes(f, "p-1", "waiting working done");
    /* A message that is a file alone. */
    g_assert_true(eb_session_prompt(session, prompt_with_file("p-2", "", "shot.png"), NULL));
    eb_session_fixture_wait_turns(f, 3);
    assert_outcomes(f, "p-2", "waiting working done");
    /* Into the turn that runs. */
    eb_fake_chat_say(f->chat, NULL, "steerable", NULL);
    wait_said(f, "ready;");
    g_assert_true(eb_session_say(session, prompt_with_file("p-3", "look", "late.png"), NULL));
    wait_said(f, "heard look");
    say(f, "p-4", "finish");
    eb_session_fixture_wait_turns(f, 4);
    assert_outcomes(f, "p-3", "working done");
}

/* Interrupted while files are taken: no agent is given the prompt, and the place is free again. */
static void
test_interrupt_while_taking(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED | EB_CHAT_CAP_FETCH);
    f->chat->hold_fetch = TRUE;
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say hello", NULL);
    EbSession *session = eb_session_fixture_live(f, NULL);
    g_assert_true(eb_session_prompt(session, prompt_with_file("p-1", "say x", "a.png"), NULL));
    g_assert_true(eb_session_prompt(session, eb_prompt_new("p-2", "author-1", "say second"), NULL));
    while (f->chat->fetching == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(eb_session_interrupt(session));
    eb_session_fixture_wait_turns(f, 3);
    assert_outcomes(f, "p-1", "waiting interrupted");
    assert_outcomes(f, "p-2", "waiting working done");
    g_assert_cmpuint(eb_admission_get_held(f->manager->parts->turns), ==, 0);
    /* The same by the end of the session. */
    g_assert_true(eb_session_prompt(session, prompt_with_file("p-3", "say x", "a.png"), NULL));
    while (f->chat->fetching == 0)
        g_main_context_iteration(NULL, TRUE);
    eb_session_end(session, EB_SESSION_END_STOPPED, NULL);
    eb_session_fixture_wait_ended(f, 1);
    assert_outcomes(f, "p-3", "waiting interrupted");
}

/* The service ends in the middle of a turn: that is told, and is final; what waited comes back from the journal. */
static void
test_shutdown(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, LASTING);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, "t", "wait", NULL);
    while (f->outcomes->len < 2)
        g_main_context_iteration(NULL, TRUE);
    eb_fake_chat_say(f->chat, "t", "say kept", NULL);
    while (f->outcomes->len < 3)
        g_main_context_iteration(NULL, TRUE);
    eb_session_fixture_close(f);
    assert_outcomes(f, "message-1", "waiting working interrupted");
    assert_outcomes(f, "message-2", "waiting");
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "in the middle of this turn"));
    guint turns = f->turns_ended;
    eb_session_fixture_open(f);
    eb_session_fixture_wait_turns(f, turns + 1);
    wait_said(f, "kept");
    assert_outcomes(f, "message-2", "waiting waiting working done");
}

static void
test_archived(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, LASTING);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "t", "say x", NULL);
    eb_fake_chat_forget(f->chat);
    eb_session_end(eb_session_fixture_live(f, "t"), EB_SESSION_END_ARCHIVED, NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "archived");
    g_assert_cmpuint(f->chat->posts->len, ==, 0);
    eb_session_fixture_turn(f, "t", "history", NULL);
    wait_said(f, "before: 1");
}

/* A session that is stuck in a tool keeps nobody else waiting. */
static void
test_stuck_session_blocks_nobody(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, "a", "deaf", NULL);
    wait_said(f, "not listening");
    eb_session_fixture_turn(f, "b", "say here", NULL);
    wait_said(f, "here");
    eb_session_fixture_turn(f, "b", "history", NULL);
    g_assert_cmpuint(f->turns_ended, ==, 2);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/prompts/final-outcomes", test_final_outcomes);
    g_test_add_func("/prompts/never-started", test_never_started);
    g_test_add_func("/prompts/queue", test_queue);
    g_test_add_func("/prompts/withdraw-while-waiting-for-place", test_withdraw_while_waiting_for_place);
    g_test_add_func("/prompts/steer", test_steer);
    g_test_add_func("/prompts/steer-refused", test_steer_refused);
    g_test_add_func("/prompts/steer-at-the-end", test_steer_at_the_end);
    g_test_add_func("/prompts/steer-unanswered", test_steer_unanswered);
    g_test_add_func("/prompts/steer-is-bounded", test_steer_is_bounded);
    g_test_add_func("/prompts/retry-and-compact", test_retry_and_compact);
    g_test_add_func("/prompts/models", test_models);
    g_test_add_func("/prompts/status-and-end", test_status_and_end);
    g_test_add_func("/prompts/blocks", test_blocks);
    g_test_add_func("/prompts/attachments", test_attachments);
    g_test_add_func("/prompts/interrupt-while-taking", test_interrupt_while_taking);
    g_test_add_func("/prompts/shutdown", test_shutdown);
    g_test_add_func("/prompts/archived", test_archived);
    g_test_add_func("/prompts/stuck-session-blocks-nobody", test_stuck_session_blocks_nobody);
    return g_test_run();
}
