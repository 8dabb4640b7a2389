/* SPDX-License-Identifier: MIT */
/* The watchdog beside a service that is a process of its own, with its lock and its control socket, and a backend that
 * answers as the test wants. Times are those of the rules, divided by a hundred. */
#include "tests/component/watchdog/watchdog-fixture.h"

#include "core/control/eb-control-client.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"
#include "core/watchdog/eb-watchdog-backend.h"
#include "core/watchdog/eb-watchdog-service.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- tests --- */

static void
test_well(WdFixture *self, gconstpointer data)
{
    struct stat info;

    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_shown(self, "up", "ok");
    wd_wait_told(self, "watchdog.report ok incus\n");
    eb_test_run_for(500);
    /* All is well: said once. */
    g_autofree char *reports = wd_read_reports(self);
    g_assert_cmpstr(reports, ==, "watchdog.report ok incus\n");
    g_autoptr(JsonNode) node = wd_read_shown(self);
    JsonObject *object = eb_json_node_object(node);
    g_assert_cmpint(eb_json_get_int(object, "schema", 0), ==, 1);
    g_assert_cmpint(eb_json_get_int(object, "pid", 0), ==, getpid());
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(object, "service"), "pid", 0), ==, wd_service_pid(self));
    g_assert_true(json_node_is_null(eb_json_get_node(object, "last_error")));
    g_assert_cmpint(lstat(self->shown, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 0777, ==, 0600);
    g_assert_cmpuint(self->backend->stops, ==, 0);
    /* A second one is refused and names the first. */
    g_autoptr(GError) error = NULL;
    g_autoptr(EbWatchdog) second =
        eb_watchdog_new(self->config, EB_CONTAINER_BACKEND(self->backend), &self->limits, NULL);
    g_assert_false(eb_watchdog_take_lock(second, &error));
    g_autofree char *own = g_strdup_printf("process %d ", (int)getpid());
    eb_test_assert_error(error, EB_ERROR_LOCKED, "lock.held", own);
}

static void
test_wedged(WdFixture *self, gconstpointer data)
{
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_told(self, "watchdog.report ok incus\n");
    self->backend->mood = WD_SILENT;
    wd_wait_told(self, "watchdog.report wedged incus\nwatchdog.report wedged incus\n");
    wd_wait_shown(self, "up", "wedged");
    g_autoptr(JsonNode) node = wd_read_shown(self);
    JsonObject *backend = eb_json_get_object(eb_json_node_object(node), "backend");
    g_assert_nonnull(strstr(eb_json_get_string(backend, "detail"), "turn it off and on"));
    self->backend->mood = WD_GONE;
    wd_wait_told(self, "watchdog.report down incus\n");
    self->backend->mood = WD_REFUSES; /* which is an answer */
    wd_wait_told(self, "watchdog.report ok incus\n");
    wd_wait_shown(self, "up", "ok");
    g_assert_cmpuint(self->backend->stops, ==, 0);
}

/* A plugin that keeps neither deadline nor promise: one call of it is open, not one for each look. */
static void
test_never_returns(WdFixture *self, gconstpointer data)
{
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_shown(self, "up", "ok");
    self->backend->mood = WD_NEVER_RETURNS;
    guint before = self->backend->lists;
    wd_wait_shown(self, NULL, "wedged");
    eb_test_run_for(900);
    g_assert_cmpuint(self->backend->lists, <=, before + 2);
    g_assert_cmpuint(self->backend->kept->len, ==, 1);
    /* It comes back after all. */
    self->backend->mood = WD_ANSWERS;
    GTask *kept = self->backend->kept->pdata[0];
    g_task_return_error(kept, eb_error_new(EB_ERROR_CANCELLED, "test.late", "late"));
    wd_wait_shown(self, NULL, "ok");
}

/* Of an older version: told once more than it wants, and left alone with it. */
static void
test_old_service(WdFixture *self, gconstpointer data)
{
    wd_start_service(self, "old");
    wd_start_watchdog(self);
    wd_wait_told(self, "watchdog.report ok incus\n");
    wd_wait_shown(self, "up", "ok");
    eb_test_run_for(500);
    g_autofree char *reports = wd_read_reports(self);
    g_assert_cmpstr(reports, ==, "watchdog.report ok incus\n");
}

static void
fill_with_guests(WdFixture *self)
{
    wd_add_guest(self->backend, "dead-1", self->home, "deadrunaaaaa");
    for (guint i = 2; i < 10; i++) {
        g_autofree char *name = g_strdup_printf("dead-%u", i);
        wd_add_guest(self->backend, name, self->home, "deadrunbbbbb");
    }
    wd_add_guest(self->backend, "of-a-live-try", self->home, "liverunaaaaa");
    wd_add_guest(self->backend, "of-others", "zzzzzzzzzzzz", "deadrunaaaaa");
    wd_add_guest(self->backend, "of-nobody", NULL, NULL);
    wd_add_guest(self->backend, "without-run", self->home, NULL);
    wd_add_guest(self->backend, "with-a-path", self->home, "../../run");
}

static gboolean
only_others_are_left(gpointer user_data)
{
    WdFixture *self = user_data;
    return self->backend->guests->len == 5;
}

static void
test_dead_service(WdFixture *self, gconstpointer data)
{
    g_autoptr(EbDirLock) live = eb_dir_lock_take(self->locks, "run-liverunaaaaa.lock", NULL);
    g_autofree char *killed = g_build_filename(self->locks, "run-deadrunaaaaa.lock", NULL);

    eb_test_write_file(killed, "12345\n");
    fill_with_guests(self);
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_shown(self, "up", "ok");
    eb_test_run_for(400);
    /* While the service lives its guests, and those of its dead predecessors, are its own business. */
    g_assert_cmpuint(self->backend->stops, ==, 0);
    g_subprocess_force_exit(self->service);
    eb_test_run_until(only_others_are_left, self);
    g_assert_true(wd_has_guest(self->backend, "of-a-live-try"));
    g_assert_true(wd_has_guest(self->backend, "of-others"));
    g_assert_true(wd_has_guest(self->backend, "of-nobody"));
    g_assert_true(wd_has_guest(self->backend, "without-run"));
    g_assert_true(wd_has_guest(self->backend, "with-a-path"));
    g_assert_cmpuint(self->backend->most_at_once, >, 1);
    g_assert_cmpuint(self->backend->most_at_once, <=, 4);
    wd_wait_shown(self, "dead", "ok");
    /* What its killed run had asked for may come to be later. */
    wd_add_guest(self->backend, "late", self->home, "deadrunaaaaa");
    eb_test_run_until(only_others_are_left, self);
    g_autoptr(JsonNode) node = wd_read_shown(self);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(node), "guests_ended", 0), >=, 9);
    /* The service comes back: from then on nothing is ended. */
    wd_start_service(self, "new");
    wd_wait_shown(self, "up", "ok");
    guint stops = self->backend->stops;
    wd_add_guest(self->backend, "later", self->home, "deadrunaaaaa");
    eb_test_run_for(800);
    g_assert_cmpuint(self->backend->stops, ==, stops);
}

/* Both ill at once: the guests of the dead service end as soon as the backend answers. */
static void
test_dead_service_and_backend(WdFixture *self, gconstpointer data)
{
    wd_add_guest(self->backend, "dead", self->home, "deadrunaaaaa");
    self->backend->mood = WD_GONE;
    wd_start_watchdog(self);
    wd_wait_shown(self, "stopped", "down");
    eb_test_run_for(500);
    g_autoptr(JsonNode) node = wd_read_shown(self);
    g_assert_nonnull(eb_json_get_string(eb_json_node_object(node), "last_error"));
    self->backend->mood = WD_ANSWERS;
    wd_wait_shown(self, "stopped", "ok");
    g_assert_cmpuint(self->backend->stops, <=, 1);
    while (wd_has_guest(self->backend, "dead"))
        g_main_context_iteration(NULL, TRUE);
}

static void
test_hangs(WdFixture *self, gconstpointer data)
{
    self->limits.supervised = TRUE;
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_shown(self, "up", "ok");
    g_subprocess_send_signal(self->service, SIGSTOP);
    eb_test_run_until(wd_has_service_ended, self);
    g_assert_true(g_subprocess_get_if_signaled(self->service));
    g_assert_cmpint(g_subprocess_get_term_sig(self->service), ==, SIGKILL);
    /* What a supervisor does. */
    wd_start_service(self, "new");
    wd_wait_shown(self, "up", "ok");
    g_autoptr(JsonNode) node = wd_read_shown(self);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(node), "restarts", 0), ==, 1);
}

/* Seen only when it hung already: known by its socket all the same. */
static void
test_hung_before(WdFixture *self, gconstpointer data)
{
    self->limits.supervised = TRUE;
    wd_start_service(self, "new");
    g_subprocess_send_signal(self->service, SIGSTOP);
    wd_start_watchdog(self);
    eb_test_run_until(wd_has_service_ended, self);
    g_assert_cmpint(g_subprocess_get_term_sig(self->service), ==, SIGKILL);
}

/* It holds its lock and never listens: known by the lock alone. */
static void
test_hangs_in_start(WdFixture *self, gconstpointer data)
{
    self->limits.supervised = TRUE;
    self->limits.start = 600;
    wd_start_service(self, "mute");
    wd_start_watchdog(self);
    wd_wait_shown(self, "starting", "ok");
    eb_test_run_until(wd_has_service_ended, self);
    g_assert_cmpint(g_subprocess_get_term_sig(self->service), ==, SIGKILL);
}

/* Nobody would start it again: it is said, and it lives. */
static void
test_hangs_alone(WdFixture *self, gconstpointer data)
{
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_shown(self, "up", "ok");
    g_subprocess_send_signal(self->service, SIGSTOP);
    wd_wait_shown(self, "hangs", "ok");
    g_autoptr(JsonNode) node = wd_read_shown(self);
    const char *detail = eb_json_get_string(eb_json_get_object(eb_json_node_object(node), "service"), "detail");
    g_assert_nonnull(strstr(detail, "its process was stopped by a signal"));
    g_assert_nonnull(strstr(detail, "errand-box up"));
    eb_test_run_for(900);
    g_assert_false(wd_has_service_ended(self));
    g_subprocess_send_signal(self->service, SIGCONT);
    wd_wait_shown(self, "up", "ok");
}

/* A hung service whose queue of connections is full: a look is silence, and nobody waits in connect(2). */
static void
test_full_queue(WdFixture *self, gconstpointer data)
{
    g_autofree char *path = eb_control_path(self->state);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fds[64];
    guint n = 0;
    g_auto(EbTestResult) done = {0};
    EbWatchdogLook look;

    wd_start_service(self, "new");
    g_subprocess_send_signal(self->service, SIGSTOP);
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    for (; n < G_N_ELEMENTS(fds); n++) {
        fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (connect(fds[n], (struct sockaddr *)&address, sizeof address) < 0)
            break;
    }
    g_assert_cmpuint(n, <, G_N_ELEMENTS(fds));
    g_autoptr(EbWatchdogService) service = eb_watchdog_service_new(self->state);
    eb_watchdog_service_look_async(service, 200, eb_test_result_ready, &done);
    eb_watchdog_service_look_finish(service, eb_test_result_wait(&done), &look);
    g_assert_cmpint(look.answer, ==, EB_WATCHDOG_ANSWER_SILENT);
    g_assert_cmpint(look.lock, ==, EB_WATCHDOG_LOCK_HELD);
    g_assert_cmpint(look.pid, ==, wd_service_pid(self));
    for (guint i = 0; i <= n; i++)
        close(fds[i]);
}

/* More clients than it takes: closed at once by a service that lives. */
static void
test_crowded(WdFixture *self, gconstpointer data)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_object_unref);
    g_auto(EbTestResult) done = {0};
    EbWatchdogLook look;

    wd_start_service(self, "new");
    for (guint i = 0; i < EB_CONTROL_MAX_CLIENTS; i++) {
        EbControlClient *client = eb_control_client_new(self->state, NULL);
        g_auto(EbTestResult) answered = {0};
        g_assert_nonnull(client);
        eb_control_client_call_async(client, "status", NULL, 10000, eb_test_result_ready, &answered);
        g_autoptr(JsonNode) node = eb_control_client_call_finish(client, eb_test_result_wait(&answered), NULL);
        g_assert_nonnull(node);
        g_ptr_array_add(clients, client);
    }
    g_autoptr(EbWatchdogService) service = eb_watchdog_service_new(self->state);
    eb_watchdog_service_look_async(service, 5000, eb_test_result_ready, &done);
    eb_watchdog_service_look_finish(service, eb_test_result_wait(&done), &look);
    g_assert_cmpint(look.answer, ==, EB_WATCHDOG_ANSWER_GIVEN);
    g_assert_cmpint(look.pid, ==, wd_service_pid(self));
}

static void
look_and_expect(EbWatchdogService *service, EbWatchdogLock lock)
{
    g_auto(EbTestResult) done = {0};
    EbWatchdogLook look;

    eb_watchdog_service_look_async(service, 200, eb_test_result_ready, &done);
    eb_watchdog_service_look_finish(service, eb_test_result_wait(&done), &look);
    g_assert_cmpint(look.answer, ==, EB_WATCHDOG_ANSWER_NONE);
    g_assert_cmpint(look.lock, ==, lock);
    g_assert_cmpint(look.ended_us, >=, look.begun_us);
}

static void
test_lock(WdFixture *self, gconstpointer data)
{
    g_autoptr(EbWatchdogService) service = eb_watchdog_service_new(self->state);
    g_autofree char *path = g_build_filename(self->state, EB_STATE_LOCK_FILE, NULL);

    look_and_expect(service, EB_WATCHDOG_LOCK_ABSENT);
    EbDirLock *lock = eb_dir_lock_take(self->state, EB_STATE_LOCK_FILE, NULL);
    look_and_expect(service, EB_WATCHDOG_LOCK_OTHER);
    eb_dir_lock_set_id(lock, "thisinstance");
    look_and_expect(service, EB_WATCHDOG_LOCK_HELD);
    eb_dir_lock_release(lock);
    look_and_expect(service, EB_WATCHDOG_LOCK_ABSENT);
    eb_test_write_file(path, "1\n");
    look_and_expect(service, EB_WATCHDOG_LOCK_FREE);
    /* A number that stands in a file is nobody to end. */
    g_autofree char *number = g_strdup_printf("%d\n", (int)getppid());
    g_autoptr(GError) error = NULL;
    eb_test_write_file(path, number);
    look_and_expect(service, EB_WATCHDOG_LOCK_FREE);
    g_assert_false(eb_watchdog_service_end(service, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "watchdog.process", NULL);
    g_assert_cmpint(g_unlink(path), ==, 0);
    /* A link is not followed, wherever it leads. */
    g_assert_cmpint(symlink("/dev/null", path), ==, 0);
    look_and_expect(service, EB_WATCHDOG_LOCK_UNKNOWN);
}

/* What it sees cannot be written: said once, and it goes on. */
static guint write_warnings;

static GLogWriterOutput
count_warnings(GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    for (gsize i = 0; i < n_fields; i++)
        if (g_str_equal(fields[i].key, "MESSAGE") && strstr(fields[i].value, "cannot be written") != NULL)
            write_warnings++;
    return g_log_writer_default(level, fields, n_fields, user_data);
}

static gboolean
is_stopped(gpointer user_data)
{
    EbWatchdogView view;

    eb_watchdog_get_view(((WdFixture *)user_data)->watchdog, &view);
    return view.rules->service == EB_WATCHDOG_SERVICE_STOPPED || view.rules->service == EB_WATCHDOG_SERVICE_DEAD;
}

static void
test_cannot_write(WdFixture *self, gconstpointer data)
{
    g_autofree char *run = g_path_get_dirname(self->shown);

    write_warnings = 0;
    /* In its way is a directory that is not empty. */
    g_autofree char *inside = g_build_filename(self->shown, "file", NULL);
    eb_test_write_file(inside, "");
    g_assert_cmpint(chmod(run, 0700), ==, 0);
    wd_start_service(self, "new");
    wd_start_watchdog(self);
    wd_wait_told(self, "watchdog.report ok incus\n");
    self->backend->mood = WD_SILENT;
    wd_wait_told(self, "watchdog.report wedged incus\n");
    self->backend->mood = WD_ANSWERS;
    wd_wait_told(self, "watchdog.report ok incus\n");
    g_subprocess_force_exit(self->service);
    eb_test_run_until(is_stopped, self);
    g_assert_cmpuint(write_warnings, ==, 1);
    g_assert_cmpint(g_unlink(inside), ==, 0);
    g_assert_cmpint(g_rmdir(self->shown), ==, 0);
    wd_start_service(self, "new");
    wd_wait_shown(self, "up", "ok");
    g_assert_cmpuint(write_warnings, ==, 1);
}

static void
test_once(WdFixture *self, gconstpointer data)
{
    g_auto(EbTestResult) first = {0};
    g_auto(EbTestResult) second = {0};
    EbWatchdogView view;

    self->limits.misses = 1;
    self->limits.hang = 0;
    g_autoptr(EbWatchdog) watchdog =
        eb_watchdog_new(self->config, EB_CONTAINER_BACKEND(self->backend), &self->limits, NULL);
    eb_watchdog_look_async(watchdog, eb_test_result_ready, &first);
    g_assert_false(eb_watchdog_look_finish(watchdog, eb_test_result_wait(&first), &view));
    g_assert_cmpint(view.rules->service, ==, EB_WATCHDOG_SERVICE_STOPPED);
    g_assert_cmpint(view.rules->backend, ==, EB_WATCHDOG_BACKEND_OK);
    wd_start_service(self, "new");
    g_autoptr(EbWatchdog) again =
        eb_watchdog_new(self->config, EB_CONTAINER_BACKEND(self->backend), &self->limits, NULL);
    eb_watchdog_look_async(again, eb_test_result_ready, &second);
    g_assert_true(eb_watchdog_look_finish(again, eb_test_result_wait(&second), &view));
    g_assert_cmpint(view.rules->service, ==, EB_WATCHDOG_SERVICE_UP);
    /* It looks, and no more. */
    g_autofree char *reports = wd_read_reports(self);
    g_assert_cmpstr(reports, ==, "");
    g_assert_false(g_file_test(self->shown, G_FILE_TEST_EXISTS));
}

static void
test_judge(void)
{
    static const struct {
        EbErrorCode code;
        EbWatchdogAnswer answer;
    } rows[] = {
        {EB_ERROR_TIMEOUT, EB_WATCHDOG_ANSWER_SILENT},      {EB_ERROR_CANCELLED, EB_WATCHDOG_ANSWER_SILENT},
        {EB_ERROR_UNAVAILABLE, EB_WATCHDOG_ANSWER_NONE},    {EB_ERROR_DENIED, EB_WATCHDOG_ANSWER_GIVEN},
        {EB_ERROR_NOT_FOUND, EB_WATCHDOG_ANSWER_GIVEN},     {EB_ERROR_FAILED, EB_WATCHDOG_ANSWER_GIVEN},
        {EB_ERROR_NOT_SUPPORTED, EB_WATCHDOG_ANSWER_GIVEN},
    };

    g_assert_cmpint(eb_watchdog_backend_judge(NULL), ==, EB_WATCHDOG_ANSWER_GIVEN);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = eb_error_new(rows[i].code, NULL, "why");
        g_assert_cmpint(eb_watchdog_backend_judge(error), ==, rows[i].answer);
    }
}

#define ADD(path, func) g_test_add("/watchdog/" path, WdFixture, NULL, wd_set_up, func, wd_tear_down)

int
main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--service") == 0)
        wd_be_the_service(argv[2], argv[3]);
    eb_test_init(&argc, &argv);
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
    g_log_set_writer_func(count_warnings, NULL, NULL);
    signal(SIGPIPE, SIG_IGN);
    ADD("well", test_well);
    ADD("backend-wedged", test_wedged);
    ADD("backend-never-returns", test_never_returns);
    ADD("old-service", test_old_service);
    ADD("dead-service", test_dead_service);
    ADD("dead-service-and-backend", test_dead_service_and_backend);
    ADD("hangs", test_hangs);
    ADD("hung-before", test_hung_before);
    ADD("hangs-in-start", test_hangs_in_start);
    ADD("hangs-alone", test_hangs_alone);
    ADD("full-queue", test_full_queue);
    ADD("crowded", test_crowded);
    ADD("lock", test_lock);
    ADD("cannot-write", test_cannot_write);
    ADD("once", test_once);
    g_test_add_func("/watchdog/judge", test_judge);
    return g_test_run();
}
