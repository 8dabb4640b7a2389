/* SPDX-License-Identifier: MIT */
#include "eb-session-fixture.h"

#include "core/session/eb-router.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static EbSessionFixture *broker_fixture; /* the broker's functions get no data of ours */

/* --- a broker that is a file and an object --- */

static void
broker_start(EbPaths *paths, const char *run_dir, const EbBrokerRules *rules, guint deadline_ms,
             GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, NULL, callback, user_data);
    if (broker_fixture->fail_broker) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_FAILED, "the broker does not start");
        return;
    }
    g_autofree char *socket = g_build_filename(run_dir, "model.sock", NULL);
    g_assert_true(g_file_set_contents(socket, "", 0, NULL));
    g_assert_cmpuint(rules->providers->len, ==, 1);
    GObject *broker =
        g_object_new(broker_fixture->broker_type != 0 ? broker_fixture->broker_type : G_TYPE_OBJECT, NULL);
    g_object_set_data_full(broker, "socket", g_steal_pointer(&socket), g_free);
    g_task_return_pointer(task, broker, g_object_unref);
}

static GObject *
broker_start_finish(GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
broker_stop(GObject *broker, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(broker, NULL, callback, user_data);
    g_unlink(g_object_get_data(broker, "socket"));
    g_task_return_boolean(task, TRUE);
}

static gboolean
broker_stop_finish(GObject *broker, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
broker_update(GObject *broker, const EbBrokerRules *rules, GCancellable *cancellable, GAsyncReadyCallback callback,
              gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(broker, NULL, callback, user_data);
    broker_fixture->broker_updates++;
    g_clear_pointer(&broker_fixture->told, eb_broker_rules_free);
    broker_fixture->told = eb_broker_rules_copy(rules);
    g_task_return_boolean(task, TRUE);
}

static gboolean
broker_update_finish(GObject *broker, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static const EbBrokerOps broker_ops = {broker_start,       broker_start_finish, broker_stop,
                                       broker_stop_finish, broker_update,       broker_update_finish};

/* --- credentials and hooks --- */

static void
lookup(const char *name, GTask *task, gpointer user_data)
{
    g_autoptr(GTask) owned = task;
    EbSessionFixture *self = user_data;
    if (self->no_key || g_strcmp0(self->no_key_of, name) == 0) {
        g_task_return_error(owned, eb_error_new(EB_ERROR_UNAUTHENTICATED, "credential.missing",
                                                "credential %s is nowhere (looked in env-file /nowhere)", name));
        return;
    }
    g_autofree char *value = g_strdup(self->key != NULL ? self->key : "sk-test-0123456789abcdef");
    g_task_return_pointer(owned, eb_secret_new_take(name, value, strlen(value), NULL), (GDestroyNotify)eb_secret_unref);
}

static gboolean
step_hook(EbLaunchState state, gpointer data, GError **error)
{
    EbSessionFixture *self = data;
    if (self->kill_state == (int)state)
        kill(getpid(), SIGKILL);
    if (self->fail_state == (int)state) {
        eb_set_error(error, EB_ERROR_FAILED, "test.step", "provoked at %s", eb_launch_state_to_string(state));
        return FALSE;
    }
    return TRUE;
}

/* --- the fixture --- */

static void
on_turn_ended(EbSessionManager *manager, const char *session, const char *thread, const char *stop_reason,
              const GError *error, gpointer user_data)
{
    EbSessionFixture *self = user_data;
    self->turns_ended++;
    g_free(self->stop_reason);
    self->stop_reason = g_strdup(stop_reason);
    g_clear_error(&self->turn_error);
    self->turn_error = error != NULL ? g_error_copy(error) : NULL;
}

static void
on_session_ended(EbSessionManager *manager, const char *session, const char *thread, const char *reason,
                 const GError *error, gpointer user_data)
{
    EbSessionFixture *self = user_data;
    self->sessions_ended++;
    g_free(self->end_reason);
    self->end_reason = g_strdup(reason);
    g_clear_error(&self->end_error);
    self->end_error = error != NULL ? g_error_copy(error) : NULL;
}

static void
on_outcome(EbSessionManager *manager, const char *transport, const char *thread, const char *message, int outcome,
           gpointer user_data)
{
    EbSessionFixture *self = user_data;
    const char *slash = strrchr(message, '/');
    if (g_strcmp0(transport, "fake") != 0)
        return;
    g_ptr_array_add(self->outcomes, g_strdup_printf("%s %s", slash != NULL ? slash + 1 : message,
                                                    eb_prompt_outcome_to_string((EbPromptOutcome)outcome)));
}

char *
eb_session_fixture_outcomes(EbSessionFixture *self, const char *message)
{
    g_autoptr(GString) all = g_string_new(NULL);
    g_autofree char *prefix = g_strconcat(message, " ", NULL);
    for (guint i = 0; i < self->outcomes->len; i++)
        if (g_str_has_prefix(self->outcomes->pdata[i], prefix))
            g_string_append_printf(all, "%s%s", all->len > 0 ? " " : "",
                                   (const char *)self->outcomes->pdata[i] + strlen(prefix));
    return g_string_free(g_steal_pointer(&all), FALSE);
}

EbSession *
eb_session_fixture_live(EbSessionFixture *self, const char *thread)
{
    EbSession *session =
        eb_session_manager_find_live(self->manager, "fake", thread != NULL ? thread : EB_ROUTER_MAIN_THREAD);
    g_assert_nonnull(session);
    return session;
}

EbSessionFixture *
eb_session_fixture_new(const char *dir, const char *settings, EbChatCaps caps)
{
    EbSessionFixture *self = g_new0(EbSessionFixture, 1);
    self->outcomes = g_ptr_array_new_with_free_func(g_free);
    self->fail_state = self->kill_state = -1;
    self->dir = dir != NULL ? g_strdup(dir) : eb_test_temp_dir("session");
    g_autofree char *projects = g_build_filename(self->dir, "projects", NULL);
    g_autofree char *guests = g_build_filename(self->dir, "guests", NULL);
    g_autofree char *state = g_build_filename(self->dir, "state", NULL);
    g_autofree char *path = g_build_filename(self->dir, "config.toml", NULL);
    g_mkdir_with_parents(projects, 0755);
    g_mkdir_with_parents(state, 0755);
    if (geteuid() == 0)
        g_assert_cmpint(chown(state, 65534, 65534), ==, 0);
    g_autofree char *text = g_strdup_printf(
        "[service]\naccount = \"nobody\"\nstate_dir = \"%s\"\nproject_root = \"%s\"\n"
        "[session]\nagent = \"test\"\nmemory = \"2GiB\"\nabort = \"1s\"\ngrace = \"2s\"\n%s\n"
        "[provider.main]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\nkey = \"cred:model-key\"\n"
        "[agent.test]\ncommand = [\"test-agent\"]\ndialects = [\"openai\"]\neof = \"1s\"\nterm = \"1s\"\n"
        "start_timeout = \"20s\"\n[agent.test.dialect.openai]\nOPENAI_BASE_URL = \"${base_url}/v1\"\n"
        "OPENAI_API_KEY = \"${nonce}\"\n"
        "[agent.missing]\ncommand = [\"test-agent\", \"missing\"]\ndialects = [\"openai\"]\n"
        "[agent.no-launcher]\ncommand = [\"test-agent\", \"no-launcher\"]\ndialects = [\"openai\"]\n"
        "[agent.no-workspace]\ncommand = [\"test-agent\", \"no-workspace\"]\ndialects = [\"openai\"]\n"
        "[agent.crash]\ncommand = [\"test-agent\", \"crash-start\"]\ndialects = [\"openai\"]\n"
        "[agent.hang]\ncommand = [\"test-agent\", \"hang-start\"]\ndialects = [\"openai\"]\n"
        "start_timeout = \"1s\"\n"
        "[agent.forgetful]\ncommand = [\"test-agent\", \"no-load\"]\ndialects = [\"openai\"]\n"
        "[agent.rich]\ncommand = [\"test-agent\", \"rich\"]\ndialects = [\"openai\"]\n"
        "[agent.stubborn]\ncommand = [\"test-agent\", \"stubborn\"]\ndialects = [\"openai\"]\n"
        "[agent.legacy]\ncommand = [\"test-agent\", \"legacy\"]\ndialects = [\"openai\"]\n"
        "[agent.banner]\ncommand = [\"test-agent\", \"banner\"]\ndialects = [\"openai\"]\n"
        "[agent.endless]\ncommand = [\"test-agent\", \"endless\"]\ndialects = [\"openai\"]\n"
        "start_timeout = \"20s\"\n"
        "[agent.behind]\ncommand = [\"test-agent\"]\ndialects = [\"openai\"]\nsettle = \"1s\"\n"
        "[agent.big]\ncommand = [\"test-agent\"]\ndialects = [\"openai\"]\nmin_memory = \"4GiB\"\n"
        "[agent.foreign]\ncommand = [\"test-agent\"]\ndialects = [\"gemini\"]\n",
        state, projects, settings != NULL ? settings : "");
    eb_test_write_file(path, text);
    g_autoptr(GError) error = NULL;
    self->config = eb_config_load(path, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    self->backend = eb_fake_backend_new(guests, EB_TEST_AGENT);
    self->chat = eb_fake_chat_new(caps);
    return self;
}

gboolean
eb_session_fixture_try_open(EbSessionFixture *self, GError **error)
{
    broker_fixture = self;
    EbSessionParts *parts = eb_session_parts_new();
    parts->config = g_object_ref(self->config);
    parts->backend = EB_CONTAINER_BACKEND(g_object_ref(self->backend));
    parts->broker = &broker_ops;
    parts->launch = g_bytes_new_static("launch", 6);
    parts->relay = g_bytes_new_static("relay", 5);
    parts->lookup = lookup;
    parts->lookup_data = self;
    parts->image = g_strdup("guest");
    parts->step_hook = step_hook;
    parts->step_hook_data = self;
    g_autofree char *root = g_build_filename(self->dir, "state", NULL);
    g_auto(EbTestResult) done = {0};
    eb_session_manager_open_with_async(parts, root, NULL, eb_test_result_ready, &done);
    self->manager = eb_session_manager_open_finish(eb_test_result_wait(&done), error);
    if (self->manager == NULL)
        return FALSE;
    g_signal_connect(self->manager, "turn-ended", G_CALLBACK(on_turn_ended), self);
    g_signal_connect(self->manager, "prompt-outcome", G_CALLBACK(on_outcome), self);
    g_signal_connect(self->manager, "session-ended", G_CALLBACK(on_session_ended), self);
    eb_session_manager_attach_transport(self->manager, "fake", EB_CHAT_TRANSPORT(self->chat));
    return TRUE;
}

void
eb_session_fixture_open(EbSessionFixture *self)
{
    g_autoptr(GError) error = NULL;
    eb_session_fixture_try_open(self, &error);
    g_assert_no_error(error);
}

void
eb_session_fixture_close(EbSessionFixture *self)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_close_async(self->manager, NULL, eb_test_result_ready, &done);
    eb_session_manager_close_finish(self->manager, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    eb_test_result_clear(&done);
    eb_test_drain();
    g_signal_handlers_disconnect_by_data(self->manager, self);
    g_assert_finalize_object(self->manager);
    self->manager = NULL;
}

void
eb_session_fixture_free(EbSessionFixture *self)
{
    if (self->manager != NULL)
        eb_session_fixture_close(self);
    g_ptr_array_unref(self->outcomes);
    g_object_unref(self->config);
    g_object_unref(self->backend);
    g_object_unref(self->chat);
    g_clear_error(&self->turn_error);
    g_clear_error(&self->end_error);
    g_clear_pointer(&self->told, eb_broker_rules_free);
    g_free(self->stop_reason);
    g_free(self->end_reason);
    g_free(self->dir);
    g_free(self);
}

typedef struct {
    EbSessionFixture *self;
    guint turns, sessions;
} Wait;

static gboolean
wait_over(gpointer user_data)
{
    Wait *wait = user_data;
    return wait->self->turns_ended >= wait->turns || wait->self->sessions_ended >= wait->sessions;
}

void
eb_session_fixture_wait_turns(EbSessionFixture *self, guint turns)
{
    Wait wait = {self, turns, G_MAXUINT};
    eb_test_run_until(wait_over, &wait);
}

void
eb_session_fixture_wait_ended(EbSessionFixture *self, guint sessions)
{
    Wait wait = {self, G_MAXUINT, sessions};
    eb_test_run_until(wait_over, &wait);
}

typedef struct {
    EbSessionFixture *fixture;
    EbChatPostKind kind;
    const char *text;
} Said;

static gboolean
is_said(gpointer user_data)
{
    Said *said = user_data;
    g_autofree char *text = eb_fake_chat_said(said->fixture->chat, said->kind);
    return strstr(text, said->text) != NULL;
}

void
eb_session_fixture_wait_said(EbSessionFixture *self, EbChatPostKind kind, const char *text)
{
    Said said = {self, kind, text};
    eb_test_run_until(is_said, &said);
}

void
eb_session_fixture_turn(EbSessionFixture *self, const char *thread, const char *text, const char *extra)
{
    Wait wait = {self, self->turns_ended + 1, self->sessions_ended + 1};
    eb_fake_chat_say(self->chat, thread, text, extra);
    eb_test_run_until(wait_over, &wait);
}

guint
eb_session_fixture_count_dirs(EbSessionFixture *self)
{
    g_autofree char *path = g_build_filename(self->dir, "state", "sessions", NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint count = 0;
    while (dir != NULL && g_dir_read_name(dir) != NULL)
        count++;
    return count;
}

void
eb_session_fixture_assert_nothing(EbSessionFixture *self)
{
    g_assert_cmpuint(eb_fake_backend_count(self->backend), ==, 0);
    g_assert_cmpuint(eb_session_fixture_count_dirs(self), ==, 0);
    g_autoptr(JsonNode) list = eb_session_manager_list_json(self->manager);
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(json_node_get_object(list), "sessions")), ==, 0);
    g_autofree char *projects = g_build_filename(self->dir, "projects", NULL);
    g_autoptr(GDir) dir = g_dir_open(projects, 0, NULL);
    g_assert_null(g_dir_read_name(dir));
    g_autofree char *locks = g_build_filename(self->dir, "state", "locks", NULL);
    g_autoptr(GDir) lock_dir = g_dir_open(locks, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(lock_dir)) != NULL)
        g_assert_false(g_str_has_prefix(name, "project-"));
}
