/* SPDX-License-Identifier: MIT */
#include "tests/component/watchdog/watchdog-fixture.h"

#include "core/control/eb-control-server.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-manager.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* --- a backend --- */

static void wd_backend_iface(EbContainerBackendInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(WdBackend, wd_backend, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CONTAINER_BACKEND, wd_backend_iface))

static EbInstanceInfo *
guest_copy(const EbInstanceInfo *guest)
{
    EbInstanceInfo *copy = eb_instance_info_new(guest->name);
    GHashTableIter iter;
    gpointer key, value;

    g_hash_table_iter_init(&iter, guest->labels);
    while (g_hash_table_iter_next(&iter, &key, &value))
        g_hash_table_replace(copy->labels, g_strdup(key), g_strdup(value));
    return copy;
}

static gboolean
on_deadline(gpointer user_data)
{
    g_autoptr(GTask) task = user_data;

    g_task_return_error(task, eb_error_new(EB_ERROR_TIMEOUT, "test.timeout", "no answer in time"));
    return G_SOURCE_REMOVE;
}

static void
list_async(EbContainerBackend *backend, const char *name, guint deadline_ms, GCancellable *cancellable,
           GAsyncReadyCallback callback, gpointer user_data)
{
    WdBackend *self = WD_BACKEND(backend);
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);
    GPtrArray *found;

    self->lists++;
    switch (self->mood) {
    case WD_SILENT:
        g_timeout_add(deadline_ms, on_deadline, g_steal_pointer(&task));
        return;
    case WD_NEVER_RETURNS:
        g_ptr_array_add(self->kept, g_steal_pointer(&task));
        return;
    case WD_GONE:
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAVAILABLE, "test.gone", "nobody is there"));
        return;
    case WD_REFUSES:
        g_task_return_error(task, eb_error_new(EB_ERROR_DENIED, "test.denied", "not for you"));
        return;
    case WD_ANSWERS:
        break;
    }
    found = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
    for (guint i = 0; i < self->guests->len; i++)
        g_ptr_array_add(found, guest_copy(self->guests->pdata[i]));
    g_task_return_pointer(task, found, (GDestroyNotify)g_ptr_array_unref);
}

static GPtrArray *
list_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

typedef struct {
    WdBackend *backend;
    GTask *task;
    char *name;
} Stop;

static gboolean
on_stopped(gpointer user_data)
{
    Stop *stop = user_data;
    GPtrArray *guests = stop->backend->guests;

    for (guint i = guests->len; i > 0; i--)
        if (g_str_equal(((EbInstanceInfo *)guests->pdata[i - 1])->name, stop->name))
            g_ptr_array_remove_index(guests, i - 1);
    stop->backend->at_once--;
    g_task_return_boolean(stop->task, TRUE);
    g_object_unref(stop->task);
    g_free(stop->name);
    g_free(stop);
    return G_SOURCE_REMOVE;
}

static void
stop_async(EbContainerBackend *backend, const char *name, EbStopFlags flags, guint grace_ms, guint deadline_ms,
           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    WdBackend *self = WD_BACKEND(backend);
    Stop *stop = g_new0(Stop, 1);

    g_assert_cmpuint(flags, ==, EB_STOP_FORCE | EB_STOP_DESTROY);
    self->stops++;
    self->at_once++;
    self->most_at_once = MAX(self->most_at_once, self->at_once);
    *stop = (Stop){self, g_task_new(self, NULL, callback, user_data), g_strdup(name)};
    g_timeout_add(20, on_stopped, stop);
}

static gboolean
stop_finish(EbContainerBackend *backend, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
wd_backend_iface(EbContainerBackendInterface *iface)
{
    iface->list_async = list_async;
    iface->list_finish = list_finish;
    iface->stop_async = stop_async;
    iface->stop_finish = stop_finish;
}

static void
wd_backend_finalize(GObject *object)
{
    WdBackend *self = WD_BACKEND(object);

    g_ptr_array_unref(self->guests);
    g_ptr_array_unref(self->kept);
    G_OBJECT_CLASS(wd_backend_parent_class)->finalize(object);
}

static void
wd_backend_class_init(WdBackendClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = wd_backend_finalize;
}

static void
wd_backend_init(WdBackend *self)
{
    self->guests = g_ptr_array_new_with_free_func((GDestroyNotify)eb_instance_info_free);
    self->kept = g_ptr_array_new_with_free_func(g_object_unref);
}

void
wd_add_guest(WdBackend *self, const char *name, const char *home, const char *run)
{
    EbInstanceInfo *guest = eb_instance_info_new(name);

    if (home != NULL)
        g_hash_table_replace(guest->labels, g_strdup("home"), g_strdup(home));
    if (run != NULL)
        g_hash_table_replace(guest->labels, g_strdup("run"), g_strdup(run));
    g_ptr_array_add(self->guests, guest);
}

gboolean
wd_has_guest(WdBackend *self, const char *name)
{
    for (guint i = 0; i < self->guests->len; i++)
        if (g_str_equal(((EbInstanceInfo *)self->guests->pdata[i])->name, name))
            return TRUE;
    return FALSE;
}

/* --- a service: this program again --- */

static gboolean takes_reports;

static gboolean
on_request(EbControlServer *server, EbJsonrpc *peer, const char *method, JsonObject *params, JsonNode *id,
           const char *reports)
{
    if (g_str_equal(method, "status")) {
        eb_jsonrpc_reply(peer, id, NULL);
        return TRUE;
    }
    g_autofree char *before = NULL;
    g_autofree char *line = NULL;
    g_autofree char *all = NULL;
    g_file_get_contents(reports, &before, NULL, NULL);
    line =
        g_strdup_printf("%s %s %s", method, eb_json_get_string(params, "state"), eb_json_get_string(params, "target"));
    all = g_strdup_printf("%s%s\n", before != NULL ? before : "", line);
    g_assert_true(g_file_set_contents(reports, all, -1, NULL));
    if (takes_reports && g_str_equal(method, "watchdog.report"))
        eb_jsonrpc_reply(peer, id, NULL);
    return takes_reports;
}

G_NORETURN void
wd_be_the_service(const char *state_dir, const char *what)
{
    g_autofree char *path = eb_control_path(state_dir);
    g_autofree char *reports = g_build_filename(state_dir, "reports", NULL);
    g_autoptr(EbDirLock) lock = NULL;
    gboolean mute = g_str_equal(what, "mute");
    EbControlServer *server = mute ? NULL : eb_control_server_new(path, NULL);

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Whoever looks at the lock holds it for a moment. */
    for (guint tries = 0; tries < 100 && lock == NULL; tries++, g_usleep(lock == NULL ? 10000 : 0))
        lock = eb_dir_lock_take(state_dir, EB_STATE_LOCK_FILE, NULL);
    if (lock != NULL)
        eb_dir_lock_set_id(lock, "thisinstance");
    g_assert_true(lock != NULL && (mute || server != NULL));
    takes_reports = !g_str_equal(what, "old");
    if (server != NULL)
        g_signal_connect(server, "request", G_CALLBACK(on_request), reports);
    g_print("ready\n");
    while (TRUE)
        g_main_context_iteration(NULL, TRUE);
}

/* --- the test --- */

void
wd_set_up(WdFixture *self, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = NULL;
    g_autofree char *text = NULL;

    self->dir = eb_test_temp_dir("wd");
    self->state = g_build_filename(self->dir, "s", NULL);
    self->locks = g_build_filename(self->state, "locks", NULL);
    self->shown = g_build_filename(self->state, "run", EB_WATCHDOG_FILE, NULL);
    self->home = g_strdup("abcdefghijkl");
    g_assert_cmpint(g_mkdir(self->state, 0700), ==, 0);
    g_assert_cmpint(g_mkdir(self->locks, 0700), ==, 0);
    g_autofree char *home_id = g_build_filename(self->locks, EB_SESSION_HOME_ID_FILE, NULL);
    eb_test_write_file(home_id, self->home);
    file = g_build_filename(self->dir, "eb.toml", NULL);
    text = g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/p\"\n", self->state, self->dir);
    eb_test_write_file(file, text);
    self->config = eb_config_load(file, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    self->backend = g_object_new(WD_TYPE_BACKEND, NULL);
    self->limits = (EbWatchdogLimits){.look = 50,
                                      .deadline = 200,
                                      .again = 20,
                                      .misses = 2,
                                      .steady = 600,
                                      .flap_window = 6000,
                                      .hang = 600,
                                      .start = 6000,
                                      .dead = 150,
                                      .sweep = 600,
                                      .sweep_retry = 100,
                                      .end = 1200,
                                      .end_window = 36000,
                                      .report = 150,
                                      .late = 60000};
}

static void
on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    eb_watchdog_run_finish(EB_WATCHDOG(source), result, NULL);
    *(gboolean *)user_data = TRUE;
}

void
wd_start_watchdog(WdFixture *self)
{
    g_autoptr(GError) error = NULL;

    self->watchdog =
        eb_watchdog_new(self->config, EB_CONTAINER_BACKEND(self->backend), &self->limits, "turn it off and on");
    eb_watchdog_take_lock(self->watchdog, &error);
    g_assert_no_error(error);
    eb_watchdog_run_async(self->watchdog, on_ended, &self->ended);
}

void
wd_start_service(WdFixture *self, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    char word[6] = "";

    g_clear_object(&self->service);
    self->service =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error, program, "--service", self->state, what, NULL);
    g_assert_no_error(error);
    g_input_stream_read_all(g_subprocess_get_stdout_pipe(self->service), word, 5, NULL, NULL, NULL);
    g_assert_cmpstr(word, ==, "ready");
}

gint64
wd_service_pid(WdFixture *self)
{
    const char *pid = g_subprocess_get_identifier(self->service);
    return pid != NULL ? g_ascii_strtoll(pid, NULL, 10) : 0;
}

void
wd_tear_down(WdFixture *self, gconstpointer data)
{
    if (self->watchdog != NULL) {
        eb_watchdog_stop(self->watchdog);
        eb_test_run_until_true(&self->ended);
        g_clear_object(&self->watchdog);
    }
    if (self->service != NULL) {
        g_subprocess_force_exit(self->service);
        g_subprocess_wait(self->service, NULL, NULL);
        g_clear_object(&self->service);
    }
    /* A call that never returned holds the backend, which holds the call. */
    for (guint i = 0; i < self->backend->kept->len; i++) {
        GTask *call = self->backend->kept->pdata[i];
        if (!g_task_get_completed(call))
            g_task_return_error(call, eb_error_new(EB_ERROR_CANCELLED, "test.end", "the test ends"));
    }
    g_ptr_array_set_size(self->backend->kept, 0);
    /* What is under way comes back to nobody. */
    eb_test_run_for(300);
    g_assert_false(g_file_test(self->shown, G_FILE_TEST_IS_REGULAR));
    g_object_unref(self->backend);
    g_object_unref(self->config);
    g_free(self->dir);
    g_free(self->state);
    g_free(self->locks);
    g_free(self->home);
    g_free(self->shown);
}

typedef struct {
    WdFixture *fixture;
    const char *service, *backend; /* (nullable) */
    gint64 pid;                    /* of the service; 0 = any */
} Wanted;

JsonNode *
wd_read_shown(WdFixture *self)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    return g_file_get_contents(self->shown, &text, &length, NULL) ? eb_json_parse(text, length, NULL, NULL) : NULL;
}

/* As `status` sees it: by the file. */
static gboolean
is_shown(gpointer user_data)
{
    Wanted *wanted = user_data;
    g_autoptr(JsonNode) node = wd_read_shown(wanted->fixture);
    JsonObject *object = eb_json_node_object(node);
    const char *service = eb_json_get_string(eb_json_get_object(object, "service"), "state");
    const char *backend = eb_json_get_string(eb_json_get_object(object, "backend"), "state");

    return (wanted->pid == 0 || eb_json_get_int(eb_json_get_object(object, "service"), "pid", 0) == wanted->pid) &&
           (wanted->service == NULL || g_strcmp0(service, wanted->service) == 0) &&
           (wanted->backend == NULL || g_strcmp0(backend, wanted->backend) == 0);
}

void
wd_wait_shown(WdFixture *self, const char *service, const char *backend)
{
    /* What was shown of a predecessor does not count. */
    gboolean up = g_strcmp0(service, "up") == 0;
    Wanted wanted = {self, service, backend, up ? wd_service_pid(self) : 0};

    g_test_message("waiting for %s, %s", service, backend);
    eb_test_run_until(is_shown, &wanted);
}

char *
wd_read_reports(WdFixture *self)
{
    g_autofree char *path = g_build_filename(self->state, "reports", NULL);
    char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? text : g_strdup("");
}

typedef struct {
    WdFixture *fixture;
    const char *end; /* of the reports */
} Told;

static gboolean
is_told(gpointer user_data)
{
    Told *told = user_data;
    g_autofree char *reports = wd_read_reports(told->fixture);

    return g_str_has_suffix(reports, told->end);
}

void
wd_wait_told(WdFixture *self, const char *end)
{
    Told told = {self, end};

    eb_test_run_until(is_told, &told);
}

gboolean
wd_has_service_ended(gpointer user_data)
{
    return g_subprocess_get_identifier(((WdFixture *)user_data)->service) == NULL;
}
