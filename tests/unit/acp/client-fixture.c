/* SPDX-License-Identifier: MIT */
#include "client-fixture.h"

#include <signal.h>
#include <string.h>

static void add_event(ClientFixture *fixture, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
add_event(ClientFixture *fixture, const char *format, ...)
{
    va_list list;
    char *text;

    va_start(list, format);
    text = g_strdup_vprintf(format, list);
    va_end(list);
    g_assert_true(g_utf8_validate(text, -1, NULL));
    if (fixture->events->len < 2000)
        g_ptr_array_add(fixture->events, text);
    else
        g_free(text);
}

static void
on_update(EbAcpClient *client, EbAcpUpdate *update, gpointer user_data)
{
    static const char *const names[] = {"text", "thought", "user", "tool",  "plan",   "commands",
                                        "mode", "config",  "info", "usage", "notice", "other"};
    ClientFixture *fixture = user_data;
    const EbAcpTool *tool = update->tool;

    fixture->n_updates++;
    g_assert_nonnull(update->raw);
    if (tool != NULL) {
        fixture->largest = MAX(fixture->largest, tool->output != NULL ? strlen(tool->output) : 0);
        add_event(fixture, "tool%s %s|%s|%s|%s|%u|%.60s",
                  update->late     ? " late"
                  : update->replay ? " replay"
                                   : "",
                  tool->id, tool->title, tool->kind, tool->status, tool->diffs->len,
                  tool->output != NULL && strlen(tool->output) < 60 ? tool->output : "-");
        return;
    }
    if (update->text != NULL)
        fixture->largest = MAX(fixture->largest, strlen(update->text));
    add_event(fixture, "%s%s %s", names[update->kind],
              update->late     ? " late"
              : update->replay ? " replay"
                               : "",
              update->text == NULL          ? update->name
              : strlen(update->text) < 1000 ? update->text
                                            : "(long)");
}

static void
on_permission(EbAcpClient *client, EbAcpPermission *permission, gpointer user_data)
{
    ClientFixture *fixture = user_data;
    GPtrArray *options = eb_acp_permission_get_options(permission);
    g_autoptr(GError) error = NULL;

    add_event(fixture, "permission %s %u", eb_acp_permission_get_tool(permission)->title, options->len);
    if (fixture->choose == NULL) {
        g_ptr_array_add(fixture->asked, g_object_ref(permission));
        return;
    }
    /* Never an option that was not offered. */
    g_assert_false(eb_acp_permission_answer(permission, "made up", &error));
    g_assert_error(error, EB_ERROR, EB_ERROR_INVALID);
    g_assert_true(eb_acp_permission_is_open(permission));
    eb_acp_permission_answer(permission, fixture->choose, NULL);
    g_assert_false(eb_acp_permission_is_open(permission));
    g_assert_false(eb_acp_permission_answer(permission, fixture->choose, NULL));
}

static void
on_line(EbAcpClient *client, const char *line, gpointer user_data)
{
    add_event(user_data, "noise %s", line);
}

static void
on_stderr(EbAcpClient *client, const char *line, gpointer user_data)
{
    add_event(user_data, "stderr %s", line);
}

static void
on_closed(EbAcpClient *client, const GError *error, gpointer user_data)
{
    ClientFixture *fixture = user_data;

    g_assert_false(fixture->closed);
    fixture->closed = TRUE;
    add_event(fixture, "closed %s", error != NULL ? eb_error_get_reason(error) : "normally");
}

static void
on_exited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    ClientFixture *fixture = user_data;

    g_subprocess_wait_finish(G_SUBPROCESS(source), result, NULL);
    fixture->exited = TRUE;
}

void
client_set_up(ClientFixture *fixture, gconstpointer mode)
{
    const char *const argv[] = {g_getenv("EB_TEST_PYTHON"), g_getenv("EB_TEST_AGENT"), mode, NULL};
    g_autoptr(GError) error = NULL;

    fixture->process = g_subprocess_newv(
        argv, G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE, &error);
    g_assert_no_error(error);
    fixture->events = g_ptr_array_new_with_free_func(g_free);
    fixture->asked = g_ptr_array_new_with_free_func(g_object_unref);
    fixture->choose = "yes";
    g_subprocess_wait_async(fixture->process, NULL, on_exited, fixture);
    fixture->client =
        eb_acp_client_new(g_subprocess_get_stdin_pipe(fixture->process), g_subprocess_get_stdout_pipe(fixture->process),
                          g_subprocess_get_stderr_pipe(fixture->process));
    g_signal_connect(fixture->client, "update", G_CALLBACK(on_update), fixture);
    g_signal_connect(fixture->client, "permission", G_CALLBACK(on_permission), fixture);
    g_signal_connect(fixture->client, "noise", G_CALLBACK(on_line), fixture);
    g_signal_connect(fixture->client, "stderr", G_CALLBACK(on_stderr), fixture);
    g_signal_connect(fixture->client, "closed", G_CALLBACK(on_closed), fixture);
}

void
client_tear_down(ClientFixture *fixture, gconstpointer mode)
{
    g_ptr_array_unref(fixture->asked);
    g_subprocess_force_exit(fixture->process);
    eb_test_run_until_true(&fixture->exited);
    eb_acp_client_agent_ended(fixture->client, "was ended by the test");
    eb_test_run_until_true(&fixture->closed);
    g_assert_finalize_object(fixture->client);
    g_clear_object(&fixture->process);
    eb_test_drain();
    g_ptr_array_unref(fixture->events);
}

const EbAcpAgentInfo *
client_initialize(ClientFixture *fixture, GError **error)
{
    g_auto(EbTestResult) result = {0};

    eb_acp_client_initialize_async(fixture->client, 30000, NULL, eb_test_result_ready, &result);
    return eb_acp_client_initialize_finish(fixture->client, eb_test_result_wait(&result), error);
}

char *
client_open(ClientFixture *fixture)
{
    g_auto(EbTestResult) result = {0};
    g_autoptr(GError) error = NULL;
    char *id;

    g_assert_nonnull(client_initialize(fixture, &error));
    g_assert_no_error(error);
    eb_acp_client_open_async(fixture->client, EB_ACP_OPEN_NEW, NULL, "/", 30000, NULL, eb_test_result_ready, &result);
    id = eb_acp_client_open_finish(fixture->client, eb_test_result_wait(&result), NULL, &error);
    g_assert_no_error(error);
    return id;
}

void
client_prompt_start(ClientFixture *fixture, EbTestResult *result)
{
    g_autoptr(JsonArray) blocks = json_array_new();
    JsonObject *block = json_object_new();

    json_object_set_string_member(block, "type", "text");
    json_object_set_string_member(block, "text", "go");
    json_array_add_object_element(blocks, block);
    eb_acp_client_prompt_async(fixture->client, blocks, NULL, eb_test_result_ready, result);
}

EbAcpTurn *
client_prompt(ClientFixture *fixture, GError **error)
{
    g_auto(EbTestResult) result = {0};

    client_prompt_start(fixture, &result);
    return eb_acp_client_prompt_finish(fixture->client, eb_test_result_wait(&result), error);
}

int
client_find(ClientFixture *fixture, const char *prefix)
{
    for (guint i = 0; i < fixture->events->len; i++)
        if (g_str_has_prefix(g_ptr_array_index(fixture->events, i), prefix))
            return (int)i;
    return -1;
}

typedef struct {
    ClientFixture *fixture;
    const char *prefix;
} Wait;

static gboolean
has_event(gpointer user_data)
{
    Wait *wait = user_data;

    return client_find(wait->fixture, wait->prefix) >= 0;
}

void
client_wait_event(ClientFixture *fixture, const char *prefix)
{
    Wait wait = {fixture, prefix};

    eb_test_run_until(has_event, &wait);
}
