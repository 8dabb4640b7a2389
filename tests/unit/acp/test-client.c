/* SPDX-License-Identifier: MIT */
#include "client-fixture.h"

#include <signal.h>
#include <string.h>

#define assert_event(fixture, prefix)                                                                                  \
    G_STMT_START                                                                                                       \
    {                                                                                                                  \
        if (client_find(fixture, prefix) < 0)                                                                          \
            g_test_message("not told: %s", prefix);                                                                    \
        g_assert_cmpint(client_find(fixture, prefix), >=, 0);                                                          \
    }                                                                                                                  \
    G_STMT_END

static void
assert_turn(EbAcpTurn *turn, const char *stop_reason, const char *error)
{
    g_assert_nonnull(turn);
    g_assert_cmpstr(turn->stop_reason, ==, stop_reason);
    if (error == NULL)
        g_assert_cmpstr(turn->error, ==, NULL);
    else
        g_assert_nonnull(strstr(turn->error, error));
}

static void
test_plain(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, &error);

    g_assert_cmpstr(id, ==, "session/ß#1");
    g_assert_no_error(error);
    assert_turn(turn, "end_turn", NULL);
    g_assert_false(turn->empty);
    g_assert_cmpint(eb_json_get_int(turn->usage, "totalTokens", 0), ==, 5);
    assert_event(fixture, "text one\xe2\x80\xa8two");
    assert_event(fixture, "text \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbd end");
    assert_event(fixture, "noise ExperimentalWarning");
    g_assert_false(eb_acp_client_in_turn(fixture->client));
}

static void
test_initialize(ClientFixture *fixture, gconstpointer mode)
{
    g_autoptr(GError) error = NULL;
    const EbAcpAgentInfo *info = client_initialize(fixture, &error);

    g_assert_no_error(error);
    g_assert_cmpstr(info->name, ==, "test-agent");
    g_assert_true(info->load && info->resume && info->list && info->image);
    g_assert_false(info->close || info->steer || info->embedded_context);
    g_assert_nonnull(info->auth_methods);
}

static void
test_version(ClientFixture *fixture, gconstpointer mode)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(client_initialize(fixture, &error));
    g_assert_cmpstr(eb_error_get_reason(error), ==, "acp.version");
}

/* A call that nobody answers ends at its deadline, by its name. */
static void
test_deadlines(ClientFixture *fixture, gconstpointer mode)
{
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;

    if (strcmp(mode, "never-opens") == 0) {
        g_assert_nonnull(client_initialize(fixture, NULL));
        eb_acp_client_open_async(fixture->client, EB_ACP_OPEN_NEW, NULL, "/", 50, NULL, eb_test_result_ready, &result);
        g_assert_null(eb_acp_client_open_finish(fixture->client, eb_test_result_wait(&result), NULL, &error));
        eb_test_assert_error(error, EB_ERROR_TIMEOUT, "acp.timeout", "session/new");
        client_wait_event(fixture, "stderr given up: 2");
    } else {
        eb_acp_client_initialize_async(fixture->client, 50, NULL, eb_test_result_ready, &result);
        g_assert_null(eb_acp_client_initialize_finish(fixture->client, eb_test_result_wait(&result), &error));
        eb_test_assert_error(error, EB_ERROR_TIMEOUT, "acp.timeout", "initialize");
    }
}

static void
test_cancelled_call(ClientFixture *fixture, gconstpointer mode)
{
    g_auto(EbTestResult) result = {0};
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;

    eb_acp_client_initialize_async(fixture->client, 0, cancellable, eb_test_result_ready, &result);
    g_cancellable_cancel(cancellable);
    g_assert_null(eb_acp_client_initialize_finish(fixture->client, eb_test_result_wait(&result), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    client_wait_event(fixture, "stderr given up: 1");
}

static void
test_dies_at_once(ClientFixture *fixture, gconstpointer mode)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *tail = NULL;

    g_assert_null(client_initialize(fixture, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "acp.agent-gone", "no provider is configured");
    tail = eb_acp_client_get_stderr_tail(fixture->client);
    g_assert_cmpstr(tail, ==, "no provider is configured");
}

static void
test_noise(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);

    g_assert_nonnull(id);
    assert_event(fixture, "noise Loaded cached credentials.");
    assert_event(fixture, "noise [1]");
    assert_event(fixture, "noise {broken");
    assert_event(fixture, "noise Starting up... {");
}

static void
test_banner(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);

    assert_event(fixture, "noise welcome to the shell");
}

/* 200 MB without a newline: an end, and not the end of memory. */
static void
test_flood_line(ClientFixture *fixture, gconstpointer mode)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(client_initialize(fixture, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "acp.agent-gone", "line of more than");
    client_wait_event(fixture, "closed jsonrpc.line-too-long");
}

static void
test_auth(ClientFixture *fixture, gconstpointer mode)
{
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(client_initialize(fixture, NULL));
    eb_acp_client_open_async(fixture->client, EB_ACP_OPEN_NEW, NULL, "/", 9000, NULL, eb_test_result_ready, &result);
    g_assert_null(eb_acp_client_open_finish(fixture->client, eb_test_result_wait(&result), NULL, &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "acp.auth-required", "run login first");
}

static void
test_early(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);

    assert_event(fixture, "commands available_commands_update");
    assert_event(fixture, "noise update agent_message_chunk for another session child");
    g_assert_cmpint(client_find(fixture, "text"), ==, -1);
}

static void
open_session(ClientFixture *fixture, EbAcpOpen how, const char *id, char **opened, guint *replayed, GError **error)
{
    g_auto(EbTestResult) result = {0};

    eb_acp_client_open_async(fixture->client, how, id, "/", 30000, NULL, eb_test_result_ready, &result);
    *opened = eb_acp_client_open_finish(fixture->client, eb_test_result_wait(&result), replayed, error);
}

static void
test_load(ClientFixture *fixture, gconstpointer mode)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *none = NULL;
    g_autofree char *id = NULL;
    g_autofree char *twice = NULL;
    guint replayed = 0;

    g_assert_nonnull(client_initialize(fixture, NULL));
    open_session(fixture, EB_ACP_OPEN_LOAD, "unknown", &none, NULL, &error);
    g_assert_null(none);
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "acp.not-found", "no such session");
    g_clear_error(&error);
    open_session(fixture, EB_ACP_OPEN_LOAD, "session/ß#1", &id, &replayed, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(replayed, ==, 3);
    assert_event(fixture, "user replay earlier");
    assert_event(fixture, "text replay answer");
    assert_event(fixture, "tool replay old|Old|edit|completed");
    open_session(fixture, EB_ACP_OPEN_NEW, NULL, &twice, NULL, &error);
    eb_test_assert_error(error, EB_ERROR_BUSY, "acp.state", NULL);
}

static void
test_kinds(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "other brand_new_kind");
    assert_event(fixture, "notice careful");
    assert_event(fixture, "notice T: D");
    assert_event(fixture, "plan plan");
    assert_event(fixture, "mode go");
    assert_event(fixture, "info Title");
    assert_event(fixture, "noise update agent_message_chunk for another session somebody else");
    g_assert_cmpint(client_find(fixture, "other _kage/turn"), ==, -1);
    g_assert_cmpstr(eb_json_get_string(eb_acp_client_get_modes(fixture->client), "currentModeId"), ==, "go");
    client_wait_event(fixture, "text late late words");
    assert_event(fixture, "info late late");
    g_assert_cmpint(client_find(fixture, "text not ours"), ==, -1);
}

static void
test_tools(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "tool a|tool call|other|in_progress|0");
    assert_event(fixture, "tool a|Write x|edit|in_progress|0");
    assert_event(fixture, "tool a|Write x|edit|in_progress|1");
    assert_event(fixture, "permission Write x 3");
    assert_event(fixture, "tool a|Write x|edit|completed|1|written");
    assert_event(fixture, "tool b|Shell|execute|pending");
    assert_event(fixture, "tool b|Shell|execute|failed");
    assert_event(fixture, "tool |no id at all");
    assert_event(fixture, "tool c|T|other|in_progress|0|one two");
    assert_event(fixture, "text {\"outcome\": {\"optionId\": \"yes\", \"outcome\": \"selected\"}}");
}

static void
test_ids(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL); /* each of four ids came back with its own type, else it would wait */
}

static void
test_not_offered(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "text -32601,-32601,-32601,-32601");
}

static void
test_ask_nothing(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = NULL;

    fixture->choose = "x";
    turn = client_prompt(fixture, NULL);
    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "notice the agent asked about `Run`");
    assert_event(fixture, "text {\"outcome\": {\"outcome\": \"cancelled\"}}");
    assert_event(fixture, "permission tool call 1");
    assert_event(fixture, "text {\"outcome\": {\"optionId\": \"x\", \"outcome\": \"selected\"}}");
}

static void
test_ask_child(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "permission Child 3");
    g_assert_cmpint(client_find(fixture, "tool "), ==, -1);
}

/* Nobody keeps the question: its last reference answers. */
static void
test_ask_dropped(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;

    fixture->choose = NULL;
    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "permission Run 3");
    g_ptr_array_set_size(fixture->asked, 0);
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "text {\"outcome\": {\"outcome\": \"cancelled\"}}");
}

static void
count(EbAcpPermission *permission, gpointer user_data)
{
    g_assert_false(eb_acp_permission_is_open(permission));
    (*(guint *)user_data)++;
}

static void
test_withdraw(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;
    guint withdrawn = 0;

    fixture->choose = NULL;
    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "permission");
    g_signal_connect(g_ptr_array_index(fixture->asked, 0), "withdrawn", G_CALLBACK(count), &withdrawn);
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "end_turn", NULL);
    g_assert_cmpuint(withdrawn, ==, 1);
    assert_event(fixture, "text {\"outcome\": {\"outcome\": \"cancelled\"}}");
}

/* Everything that is open is answered, tools are closed, the agent's own idea of the end does not count. */
static void
test_cancel(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;
    guint withdrawn = 0;

    fixture->choose = NULL;
    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "permission Run");
    g_signal_connect(g_ptr_array_index(fixture->asked, 0), "withdrawn", G_CALLBACK(count), &withdrawn);
    eb_acp_client_cancel(fixture->client, 20000);
    g_assert_cmpuint(withdrawn, ==, 1);
    assert_event(fixture, "tool open|Sleep|other|cancelled");
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "cancelled", NULL);
    g_assert_cmpint(client_find(fixture, "permission Late"), ==, -1); /* answered without asking */
    g_assert_cmpuint(fixture->asked->len, ==, 1);
    client_wait_event(fixture, "noise {\"jsonrpc\"");
    eb_acp_client_cancel(fixture->client, 1000); /* nothing to cancel */
    g_assert_false(eb_acp_client_in_turn(fixture->client));
}

static void
test_cancel_error(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;

    client_prompt_start(fixture, &result);
    eb_acp_client_cancel(fixture->client, 20000);
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "cancelled", NULL);
    g_assert_true(turn->empty);
}

static void
test_cancel_early(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;

    client_prompt_start(fixture, &result);
    eb_acp_client_cancel(fixture->client, 20000);
    eb_acp_client_cancel(fixture->client, 20000);
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "cancelled", NULL);
    assert_event(fixture, "text held 1");
}

static void
test_ignores_cancel(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(EbAcpTurn) turn = NULL;
    g_autoptr(EbAcpTurn) second = NULL;
    g_autoptr(GError) error = NULL;

    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "text working");
    eb_acp_client_cancel(fixture->client, 100);
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "cancelled", "did not stop within 0.1 s");
    /* The agent still works on it: no second prompt may be lost in it. */
    g_assert_true(eb_acp_client_in_turn(fixture->client));
    g_assert_null(client_prompt(fixture, &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "acp.busy", NULL);
}

static void
test_errors(ClientFixture *fixture, gconstpointer mode)
{
    static const struct {
        const char *text;
        gint64 code;
        const char *stop;
    } expected[] = {
        {"no: [\"a\",\"b\"]", 401, "error"},
        {"Internal error: 429 slow down", -32603, "error"},
        {"Internal error: plain data", -32603, "error"},
        {"terminated", 500, "error"},
        {"Authentication required", -32000, "error"},
        {"no reason given", 7, "error"},
        {"just text", 0, "error"},
        {"the agent ended the turn with \"error\"", 0, "error"},
        {"without a reason", 0, "error"},
        {"without a reason", 0, "error"},
    };
    g_autofree char *id = client_open(fixture);

    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

        assert_turn(turn, expected[i].stop, expected[i].text);
        g_assert_cmpint(turn->error_code, ==, expected[i].code);
        g_assert_true(turn->empty);
    }
}

static void
test_dies(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) after = NULL;
    g_autofree char *tail = NULL;

    g_assert_null(client_prompt(fixture, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "acp.agent-gone", "panic: out of luck");
    assert_event(fixture, "text last words");
    client_wait_event(fixture, "closed normally");
    tail = eb_acp_client_get_stderr_tail(fixture->client);
    g_assert_cmpstr(tail, ==, "first line\npanic: out of luck");
    g_assert_null(client_prompt(fixture, &after));
    eb_test_assert_error(after, EB_ERROR_UNAVAILABLE, "acp.agent-gone", NULL);
}

static void
test_closes_stdout(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(GError) error = NULL;

    g_assert_null(client_prompt(fixture, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "acp.agent-gone", "session/prompt");
    assert_event(fixture, "text last words");
}

/* The agent is gone and its child holds the pipes: the caller knows, and everything ends. */
static void
test_leaves_child(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;

    client_prompt_start(fixture, &result);
    eb_test_run_until_true(&fixture->exited);
    eb_acp_client_agent_ended(fixture->client, "exited with status 1");
    g_assert_null(eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "acp.agent-gone", "exited with status 1");
    client_wait_event(fixture, "closed");
}

static void
test_close(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;

    fixture->choose = NULL;
    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "permission");
    eb_acp_client_close(fixture->client);
    g_assert_false(eb_acp_permission_is_open(g_ptr_array_index(fixture->asked, 0)));
    eb_test_run_until_true(&fixture->exited);
    g_clear_pointer(&error, g_error_free);
    eb_test_result_wait(&result);
    {
        g_autoptr(EbAcpTurn) turn = eb_acp_client_prompt_finish(fixture->client, result.result, &error);

        g_assert_true(turn != NULL || error != NULL);
    }
}

/* An agent that lingers after the end of its input: nothing waits for it. */
static void
test_ignores_eof(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);

    eb_acp_client_close(fixture->client);
    eb_test_run_for(50);
    g_assert_false(fixture->closed);
}

static void
test_big(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    g_assert_cmpuint(fixture->largest, ==, 3000000);
}

static void
test_nothing(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    g_assert_true(turn->empty);
}

static void
test_steer(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_auto(EbTestResult) steered = {0};
    g_autoptr(JsonArray) blocks = json_array_new();
    g_autoptr(EbAcpTurn) turn = NULL;
    g_autoptr(GError) error = NULL;

    client_prompt_start(fixture, &result);
    client_wait_event(fixture, "text go");
    eb_acp_client_steer_async(fixture->client, blocks, 9000, NULL, eb_test_result_ready, &steered);
    g_assert_true(eb_acp_client_steer_finish(fixture->client, eb_test_result_wait(&steered), &error));
    turn = eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), NULL);
    assert_turn(turn, "end_turn", NULL);
    assert_event(fixture, "text steered");
}

static gboolean
set_model(ClientFixture *fixture, const char *model, GError **error)
{
    g_auto(EbTestResult) result = {0};

    eb_acp_client_set_model_async(fixture->client, model, 9000, NULL, eb_test_result_ready, &result);
    return eb_acp_client_set_model_finish(fixture->client, eb_test_result_wait(&result), error);
}

static void
test_config(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(GError) error = NULL;

    g_assert_false(set_model(fixture, "three", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "acp.no-such-value", "p/one, p/two");
    g_clear_error(&error);
    g_assert_true(set_model(fixture, "p/one", &error)); /* as it is: nothing to send */
    g_assert_true(set_model(fixture, "two", &error));
    g_assert_no_error(error);
    g_assert_cmpstr(
        eb_json_get_string(eb_json_array_object(eb_acp_client_get_config_options(fixture->client), 0), "currentValue"),
        ==, "p/two");
}

static void
test_models(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(set_model(fixture, "b", &error));
    g_assert_no_error(error);
    g_assert_cmpstr(eb_json_get_string(eb_acp_client_get_models(fixture->client), "currentModelId"), ==, "b");
    eb_acp_client_set_mode_async(fixture->client, "go", 9000, NULL, eb_test_result_ready, &result);
    g_assert_true(eb_acp_client_set_mode_finish(fixture->client, eb_test_result_wait(&result), &error));
    g_assert_cmpstr(eb_json_get_string(eb_acp_client_get_modes(fixture->client), "currentModeId"), ==, "go");
}

static void
test_no_models(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_autoptr(GError) error = NULL;

    g_assert_false(set_model(fixture, "b", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "acp.not-offered", NULL);
}

static void
test_given_up(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    g_auto(EbTestResult) result = {0};
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(JsonArray) blocks = json_array_new();
    g_autoptr(GError) error = NULL;

    eb_acp_client_prompt_async(fixture->client, blocks, cancellable, eb_test_result_ready, &result);
    g_cancellable_cancel(cancellable);
    g_assert_null(eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    g_assert_true(eb_acp_client_in_turn(fixture->client));
}

/* Peak resident memory of this process in KiB. */
static gint64
peak_rss(void)
{
    g_autofree char *status = NULL;
    const char *line;

    g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
    line = strstr(status, "VmHWM:");
    g_assert_nonnull(line);
    return g_ascii_strtoll(line + strlen("VmHWM:"), NULL, 10);
}

/* 350 updates of up to 280 KB each and 6000 calls with diffs: 170 MB through a client that stays small. */
static void
test_growing(ClientFixture *fixture, gconstpointer mode)
{
    g_autofree char *id = client_open(fixture);
    const gint64 before = peak_rss();
    g_autoptr(EbAcpTurn) turn = client_prompt(fixture, NULL);

    assert_turn(turn, "end_turn", NULL);
    g_assert_cmpuint(fixture->n_updates, >, 6300);
    g_assert_cmpuint(fixture->largest, <=, 64 * 1024);
#if !defined(__SANITIZE_ADDRESS__)
    g_test_message("peak grew by %" G_GINT64_FORMAT " KiB", peak_rss() - before);
    g_assert_cmpint(peak_rss() - before, <, 64 * 1024);
#else
    (void)before;
#endif
}

#define ADD(mode, function)                                                                                            \
    g_test_add("/acp/client/" mode, ClientFixture, mode, client_set_up, function, client_tear_down)
#define ADD_AS(path, mode, function)                                                                                   \
    g_test_add("/acp/client/" path, ClientFixture, mode, client_set_up, function, client_tear_down)

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    eb_test_init(&argc, &argv);
    ADD("growing", test_growing); /* first: it looks at the peak of the process */
    ADD("plain", test_plain);
    ADD_AS("initialize", "plain", test_initialize);
    ADD("version-2", test_version);
    ADD("version-text", test_version);
    ADD("never-initialize", test_deadlines);
    ADD("never-opens", test_deadlines);
    ADD_AS("cancelled-call", "never-initialize", test_cancelled_call);
    ADD("dies-at-once", test_dies_at_once);
    ADD("noise", test_noise);
    ADD("banner", test_banner);
    ADD("flood-line", test_flood_line);
    ADD("auth", test_auth);
    ADD("early", test_early);
    ADD("load", test_load);
    ADD("kinds", test_kinds);
    ADD("tools", test_tools);
    ADD("ids", test_ids);
    ADD("not-offered", test_not_offered);
    ADD("ask-nothing", test_ask_nothing);
    ADD("ask-child", test_ask_child);
    ADD_AS("ask-dropped", "ask", test_ask_dropped);
    ADD("withdraw", test_withdraw);
    ADD("cancel", test_cancel);
    ADD("cancel-error", test_cancel_error);
    ADD("cancel-early", test_cancel_early);
    ADD("ignores-cancel", test_ignores_cancel);
    ADD("errors", test_errors);
    ADD("dies", test_dies);
    ADD("closes-stdout", test_closes_stdout);
    ADD("leaves-child", test_leaves_child);
    ADD_AS("close", "ask", test_close);
    ADD("ignores-eof", test_ignores_eof);
    ADD("big", test_big);
    ADD("nothing", test_nothing);
    ADD("steer", test_steer);
    ADD("config", test_config);
    ADD("models", test_models);
    ADD_AS("no-models", "plain", test_no_models);
    ADD_AS("given-up", "cancelled-call", test_given_up);
    return g_test_run();
}
