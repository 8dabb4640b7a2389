/* SPDX-License-Identifier: MIT */
/* Ends of guests that do not want to end: bounded, and nothing is left of them on the host. */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "incus-test.h"

/* What ending may take beyond the grace; a run under a sanitizer is slower by more than that. */
#ifdef __SANITIZE_ADDRESS__
#define SLACK_MS 60000
#else
#define SLACK_MS 5000
#endif
#define GRACE_MS 500
/* The next start: seconds on the slowest pool, where a process that lives on blocked it for half a minute. */
#define START_MS (SLACK_MS + 10000)

/* What the host sees of a guest. */
typedef struct {
    int pidfd;    /* of its init */
    char *cgroup; /* directory */
    char *name;
} Seen;

static void
seen_clear(Seen *self)
{
    close(self->pidfd);
    g_free(self->cgroup);
    g_free(self->name);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Seen, seen_clear)

static Seen
look(const char *name)
{
    g_autofree char *path = g_strdup_printf("/1.0/instances/%s/state?project=%s", name, incus_test.incusd->project);
    g_autofree char *text = eb_test_incusd_cli(incus_test.incusd, "query", path, NULL);
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    gint64 pid = eb_json_get_int(eb_json_node_object(node), "pid", 0);
    g_autofree char *cgroup_file = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/cgroup", pid);
    g_autofree char *cgroup = NULL;
    Seen seen = {.name = g_strdup(name)};

    g_assert_cmpint(pid, >, 1);
    seen.pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    g_assert_cmpint(seen.pidfd, >=, 0);
    g_assert_true(g_file_get_contents(cgroup_file, &cgroup, NULL, NULL));
    const char *unified = strstr(cgroup, "0::/");
    g_assert_nonnull(unified);
    g_autofree char *below = g_strndup(unified + 3, strcspn(unified + 3, "\n"));
    seen.cgroup = g_strconcat("/sys/fs/cgroup", below, NULL);
    return seen;
}

static gboolean
names_it(const char *file, const char *name)
{
    g_autofree char *text = NULL;
    return g_file_get_contents(file, &text, NULL, NULL) && strstr(text, name) != NULL;
}

static void
assert_nothing_left(const Seen *seen)
{
    struct pollfd ended = {.fd = seen->pidfd, .events = POLLIN};

    g_assert_false(incus_test_exists(incus_test.backend, seen->name));
    g_assert_cmpint(poll(&ended, 1, 0), ==, 1);
    g_assert_false(g_file_test(seen->cgroup, G_FILE_TEST_EXISTS));
    g_assert_false(names_it("/proc/self/mountinfo", seen->name));
    /* The daemon may have a mount namespace of its own. */
    g_autofree char *pid_file = g_build_filename(incus_test.incusd->dir, "incusd.pid", NULL);
    g_autofree char *pid = NULL;
    if (g_file_get_contents(pid_file, &pid, NULL, NULL)) {
        g_autofree char *mounts = g_strdup_printf("/proc/%d/mountinfo", atoi(pid));
        g_assert_false(names_it(mounts, seen->name));
    }
}

static void
stop_within(const char *name, EbStopFlags flags, guint grace_ms)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_container_backend_stop_async(incus_test.backend, name, flags, grace_ms, grace_ms + SLACK_MS, NULL,
                                    eb_test_result_ready, &done);
    gboolean stopped = eb_container_backend_stop_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_true(stopped);
}

static void
start_within(const EbContainerSpec *spec)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_container_backend_launch_async(incus_test.backend, spec, START_MS, NULL, eb_test_result_ready, &done);
    gboolean started = eb_container_backend_launch_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_true(started);
}

/* Processes of the guest's root that ignore all they may ignore, one of them in a session of its own. */
static void
be_stubborn(const char *name)
{
    g_auto(IncusRun) run = incus_test_shell(
        incus_test.backend, name, 0, NULL,
        "trap '' TERM HUP INT QUIT PWR; (while :; do sleep 1000; done) </dev/null >/dev/null 2>&1 & echo there");
    g_assert_cmpstr(run.out->str, ==, "there\n");
}

/* An init that does not know SIGPWR, and processes that ignore everything: asked, then forced, in bounded time. */
static void
test_stubborn(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("stubborn");
    g_autoptr(EbContainerSpec) next = incus_test_spec("stubborn-next");

    incus_test_launch(incus_test.backend, spec);
    be_stubborn(spec->name);
    g_auto(Seen) seen = look(spec->name);
    stop_within(spec->name, EB_STOP_GRACEFUL | EB_STOP_DESTROY, GRACE_MS);
    assert_nothing_left(&seen);
    start_within(next);
    incus_test_destroy(incus_test.backend, next->name);
}

/* Frozen, it cannot even be asked: this is how a guest looks whose service died in the middle of a snapshot. */
static void
test_frozen(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("frozen");
    g_autoptr(EbContainerSpec) next = incus_test_spec("frozen-next");

    incus_test_launch(incus_test.backend, spec);
    be_stubborn(spec->name);
    g_auto(Seen) seen = look(spec->name);
    g_autofree char *paused =
        eb_test_incusd_cli(incus_test.incusd, "pause", spec->name, "--project", incus_test.incusd->project, NULL);
    stop_within(spec->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0);
    assert_nothing_left(&seen);
    start_within(next);
    incus_test_destroy(incus_test.backend, next->name);
}

/* Its init is killed from outside, as by the kernel when memory is short: what is left goes the same way. */
static void
test_init_killed(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("killed");
    g_autoptr(EbContainerSpec) next = incus_test_spec("killed-next");

    incus_test_launch(incus_test.backend, spec);
    be_stubborn(spec->name);
    g_auto(Seen) seen = look(spec->name);
    g_assert_cmpint(syscall(SYS_pidfd_send_signal, seen.pidfd, SIGKILL, NULL, 0), ==, 0);
    stop_within(spec->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0);
    assert_nothing_left(&seen);
    start_within(next);
    incus_test_destroy(incus_test.backend, next->name);
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    g_test_add_func("/incus/remains/stubborn", test_stubborn);
    g_test_add_func("/incus/remains/frozen", test_frozen);
    g_test_add_func("/incus/remains/init-killed", test_init_killed);
    return incus_test_run();
}
