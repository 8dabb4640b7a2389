/* SPDX-License-Identifier: MIT */
/* What a guest cannot do: every line here is something a hostile guest would try. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "incus-test.h"

#define MIB (1024 * 1024)

static EbContainerSpec *guest;
static char *work; /* host directory, mounted read-write */
static char *run;  /* host directory, mounted read-only */

static char *
shell(guint32 uid, const char *command)
{
    g_auto(IncusRun) done = incus_test_shell(incus_test.backend, guest->name, uid, NULL, command);
    g_assert_no_error(done.error);
    g_string_append(done.out, done.err->str);
    return g_strchomp(g_strdup(done.out->str));
}

#define assert_says(uid, command, expected)                                                                            \
    G_STMT_START                                                                                                       \
    {                                                                                                                  \
        g_autofree char *said = shell(uid, command);                                                                   \
        g_assert_cmpstr(said, ==, expected);                                                                           \
    }                                                                                                                  \
    G_STMT_END

static void
test_no_network(void)
{
    assert_says(0, "ls /sys/class/net", "lo");
    assert_says(0, "grep -c : /proc/net/dev", "1");
    assert_says(1000, "attack vsock", "EAFNOSUPPORT");
    assert_says(0, "attack vsock", "EAFNOSUPPORT");
    assert_says(1000, "attack inet", "ok"); /* loopback has to work */
}

static void
test_no_guest_api(void)
{
    assert_says(0, "ls -d /dev/incus /dev/lxd 2>/dev/null | wc -l", "0");
}

static void
test_mounts(void)
{
    struct stat st;
    assert_says(1000, "cat /workspace/from-host", "host");
    assert_says(1000, "echo guest > /workspace/from-guest && stat -c %u:%g /workspace/from-guest", "1000:1000");
    g_autofree char *path = g_build_filename(work, "from-guest", NULL);
    g_assert_cmpint(lstat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_uid, ==, incus_test.incusd->uid);
    assert_says(0, "touch /workspace/from-root && stat -c %u /workspace/from-root", "0");
    g_autofree char *root_path = g_build_filename(work, "from-root", NULL);
    g_assert_cmpint(lstat(root_path, &st), ==, 0);
    g_assert_cmpuint(st.st_uid, >=, 1000000);

    assert_says(1000, "cat /opt/errand/run/thing", "broker");
    assert_says(1000, "echo x > /opt/errand/run/thing",
                "sh: can't create /opt/errand/run/thing: Read-only file system");
    assert_says(0, "touch /opt/errand/run/new 2>/dev/null; rm -f /opt/errand/run/thing 2>/dev/null; ls /opt/errand/run",
                "thing");
    assert_says(0, "attack remount /opt/errand/run", "EPERM");
}

static void
test_privileges(void)
{
    assert_says(0, "attack mknod", "EPERM");
    assert_says(1000, "grep Seccomp: /proc/self/status", "Seccomp:\t2");
    assert_says(1000, "attack io_uring", "ENOSYS");
    assert_says(1000, "attack keyctl", "ENOSYS");
    assert_says(1000, "attack add_key", "ENOSYS");
    /* an id range of its own, with the agent's uid alone outside it */
    g_autofree char *map = shell(0, "awk '{print $1, $2, $3}' /proc/self/uid_map");
    g_autofree char *agent = g_strdup_printf("1000 %u 1", (guint)incus_test.incusd->uid);
    g_assert_nonnull(strstr(map, agent));
    g_assert_null(strstr(map, " 0 "));
}

static void
test_id_ranges_differ(void)
{
    g_autoptr(EbContainerSpec) other = incus_test_spec("other");
    incus_test_launch(incus_test.backend, other);
    g_auto(IncusRun) theirs =
        incus_test_shell(incus_test.backend, other->name, 0, NULL, "awk 'NR==1{print $2}' /proc/self/uid_map");
    g_autofree char *ours = shell(0, "awk 'NR==1{print $2}' /proc/self/uid_map");
    g_assert_cmpstr(g_strchomp(theirs.out->str), !=, ours);
    incus_test_destroy(incus_test.backend, other->name);
}

static gboolean
needs_quota(void)
{
    if (g_str_equal(incus_test.incusd->driver, "btrfs"))
        return TRUE;
    g_test_skip("the pool is a plain directory: no quota here (E-05)");
    return FALSE;
}

static void
test_disk_quota(void)
{
    if (!needs_quota())
        return;
    assert_says(1000, "attack subvolume /home/agent", "EPERM");
    assert_says(1000, "attack subvolume2 /home/agent", "EPERM");
    assert_says(0, "attack subvolume /root", "EPERM");
    assert_says(0, "attack snapshot /root", "EPERM");
    g_autofree char *fitted = shell(1000, "mkdir -p /home/agent/f && attack fill /home/agent/f 700");
    g_assert_cmpint(atoi(fitted), <, 520);
    g_assert_cmpint(atoi(fitted), >, 300);
    assert_says(1000, "rm -rf /home/agent/f; echo gone", "gone");
}

static void
test_memory_limit(void)
{
    g_auto(IncusRun) fits = incus_test_shell(incus_test.backend, guest->name, 1000, NULL, "attack memory 64");
    g_assert_cmpint(fits.code, ==, 0);
    g_auto(IncusRun) hog = incus_test_shell(incus_test.backend, guest->name, 1000, NULL, "attack memory 2048");
    g_assert_cmpint(hog.code, ==, 137);
    /* the guest lives on */
    assert_says(1000, "echo alive", "alive");
    /* what lxcfs tells, where it runs */
    g_autofree char *total = shell(0, "awk '/MemTotal/{print $2}' /proc/meminfo");
    if (g_file_test("/var/lib/lxcfs/proc/meminfo", G_FILE_TEST_EXISTS))
        g_assert_cmpint(atoi(total), ==, 256 * 1024);
}

static void
test_process_limit(void)
{
    static const char *const argv[] = {"attack", "forks", "1000", NULL};
    char line[32] = "";
    g_autoptr(GError) error = NULL;
    EbExec *exec = incus_test_exec(incus_test.backend, guest->name, 1000, argv);
    gsize got = 0;
    while (got < sizeof line - 1 && strchr(line, '\n') == NULL) {
        gssize n = g_pollable_input_stream_read_nonblocking(G_POLLABLE_INPUT_STREAM(eb_exec_get_stdout(exec)),
                                                            line + got, 1, NULL, &error);
        if (n > 0)
            got += (gsize)n;
        else if (n == 0)
            break;
        else
            g_main_context_iteration(NULL, TRUE);
        g_clear_error(&error);
    }
    g_assert_cmpint(atoi(line), >, 100);
    g_assert_cmpint(atoi(line), <, 200);
    /* At the limit nothing can be started in it any more, but it can be ended: by force, all of it. */
    incus_test_destroy(incus_test.backend, guest->name);
    g_assert_cmpint(incus_test_wait(exec, &error), !=, 0);
    g_object_unref(exec);
    incus_test_launch(incus_test.backend, guest);
}

static void
test_inotify_limit(void)
{
    assert_says(1000, "attack inotify 200", "64");
}

static void
test_volumes(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("volume");
    g_autofree char *volume = g_strconcat(spec->name, "-ws", NULL);
    eb_container_spec_add_volume(spec, "ws", volume, 64 * MIB, "/workspace");
    eb_container_spec_set_label(spec, "session-volumes", volume);
    spec->ephemeral = FALSE;
    incus_test_launch(incus_test.backend, spec);
    g_auto(IncusRun) owner = incus_test_shell(incus_test.backend, spec->name, 1000, NULL,
                                              "stat -c '%u %a' /workspace; echo x >/workspace/x");
    g_assert_cmpstr(owner.out->str, ==, "1000 700\n");
    g_assert_cmpstr(owner.err->str, ==, "");
    if (needs_quota()) {
        g_auto(IncusRun) subvolume =
            incus_test_shell(incus_test.backend, spec->name, 1000, NULL, "attack subvolume /workspace");
        g_assert_cmpstr(subvolume.out->str, ==, "EPERM\n");
        g_auto(IncusRun) fill =
            incus_test_shell(incus_test.backend, spec->name, 1000, NULL, "attack fill /workspace 100");
        g_assert_cmpint(atoi(fill.out->str), <=, 64);
        g_assert_cmpint(atoi(fill.out->str), >, 20);
        /* a full volume must not keep the guest from being ended */
    }
    g_autofree char *listed =
        eb_test_incusd_cli(incus_test.incusd, "storage", "volume", "list", incus_test.incusd->pool, "--project",
                           incus_test.incusd->project, "-f", "csv", "-c", "n", NULL);
    g_assert_nonnull(strstr(listed, volume));
    incus_test_destroy(incus_test.backend, spec->name);
    g_autofree char *after = eb_test_incusd_cli(incus_test.incusd, "storage", "volume", "list", incus_test.incusd->pool,
                                                "--project", incus_test.incusd->project, "-f", "csv", "-c", "n", NULL);
    g_assert_null(strstr(after, volume));
}

/* The default profile of an unrestricted project may have a network device: it must not reach a guest. */
static void
test_profile_device(void)
{
    g_autofree char *added = eb_test_incusd_cli(incus_test.incusd, "profile", "device", "add", "default", "eth0", "nic",
                                                "nictype=p2p", "--project", "default", NULL);
    g_autoptr(EbContainerBackend) backend = incus_test_backend(incus_test.incusd->socket, "default");
    g_autoptr(EbContainerSpec) spec = incus_test_spec("profile");
    incus_test_launch(backend, spec);
    g_auto(IncusRun) interfaces = incus_test_shell(backend, spec->name, 0, NULL, "ls /sys/class/net");
    g_assert_cmpstr(interfaces.out->str, ==, "lo\n");
    incus_test_destroy(backend, spec->name);
    g_autofree char *removed = eb_test_incusd_cli(incus_test.incusd, "profile", "device", "remove", "default", "eth0",
                                                  "--project", "default", NULL);
}

static void
test_hot_plug(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbContainerSpec) spec = incus_test_spec("plug");
    spec->agent_uid = spec->agent_gid = incus_test.incusd->uid;
    incus_test_launch(incus_test.backend, spec);
    eb_container_spec_add_directory(spec, "work", work, "/workspace", FALSE);
    spec->memory_bytes = 300 * MIB;
    eb_container_backend_update_async(incus_test.backend, spec->name, spec, EB_TEST_DEADLINE_MS, NULL,
                                      eb_test_result_ready, &done);
    g_assert_true(eb_container_backend_update_finish(incus_test.backend, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
    g_auto(IncusRun) seen = incus_test_shell(incus_test.backend, spec->name, 1000, NULL, "cat /workspace/from-host");
    g_assert_cmpstr(seen.out->str, ==, "host\n");
    incus_test_destroy(incus_test.backend, spec->name);
}

static char *
session_directory(const char *name, const char *file, const char *content)
{
    char *path = g_strdup_printf("%s/%d-%s", incus_test.incusd->sessions, (int)getpid(), name);
    g_autofree char *file_path = g_build_filename(path, file, NULL);
    eb_test_write_file(file_path, content);
    g_assert_cmpint(chown(path, incus_test.incusd->uid, incus_test.incusd->uid), ==, 0);
    g_assert_cmpint(chown(file_path, incus_test.incusd->uid, incus_test.incusd->uid), ==, 0);
    return path;
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    work = session_directory("work", "from-host", "host\n");
    run = session_directory("run", "thing", "broker\n");
    guest = incus_test_spec("confine");
    guest->agent_uid = guest->agent_gid = incus_test.incusd->uid;
    eb_container_spec_add_directory(guest, "work", work, "/workspace", FALSE);
    eb_container_spec_add_directory(guest, "run", run, "/opt/errand/run", TRUE);
    incus_test_launch(incus_test.backend, guest);
    g_test_add_func("/incus/confine/no-network", test_no_network);
    g_test_add_func("/incus/confine/no-guest-api", test_no_guest_api);
    g_test_add_func("/incus/confine/mounts", test_mounts);
    g_test_add_func("/incus/confine/privileges", test_privileges);
    g_test_add_func("/incus/confine/id-ranges-differ", test_id_ranges_differ);
    g_test_add_func("/incus/confine/disk-quota", test_disk_quota);
    g_test_add_func("/incus/confine/memory-limit", test_memory_limit);
    g_test_add_func("/incus/confine/process-limit", test_process_limit);
    g_test_add_func("/incus/confine/inotify-limit", test_inotify_limit);
    g_test_add_func("/incus/confine/volumes", test_volumes);
    g_test_add_func("/incus/confine/profile-device", test_profile_device);
    g_test_add_func("/incus/confine/hot-plug", test_hot_plug);
    int code = g_test_run();
    incus_test_destroy(incus_test.backend, guest->name);
    eb_container_spec_free(guest);
    eb_test_remove_tree(work);
    eb_test_remove_tree(run);
    g_free(work);
    g_free(run);
    g_clear_object(&incus_test.backend);
    g_clear_pointer(&incus_test.incusd, eb_test_incusd_release);
    return code;
}
