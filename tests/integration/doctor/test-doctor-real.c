/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/provision/eb-provision-client.h"
#include "doctor-checks.h"
#include "doctor-real.h"

/* Checks of the catalogue on this machine and a real incusd: each is made to speak up, and to be content again. */

/* --- the daemon itself --- */

static pid_t
daemon_pid(void)
{
    g_autofree char *path = g_build_filename(incusd->dir, "incusd.pid", NULL);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return (pid_t)g_ascii_strtoll(text, NULL, 10);
}

/* Each thread stops by itself, a moment after the signal was sent. */
static gboolean
all_stopped(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *stat_path = g_build_filename(path, name, "stat", NULL);
        g_autofree char *text = NULL;
        if (g_file_get_contents(stat_path, &text, NULL, NULL) && strstr(text, ") T ") == NULL)
            return FALSE;
    }
    return TRUE;
}

/* The program as people run it: (transfer full): its JSON */
static JsonNode *
run_program(int *code)
{
    g_autofree char *dir = eb_test_temp_dir("program");
    g_autofree char *config = g_build_filename(dir, "test.toml", NULL);
    g_autofree char *daemon_dir = g_build_filename(incusd->dir, "d", NULL);
    g_autofree char *program = g_build_filename(g_getenv("EB_TEST_BUILD_ROOT"), "errand-box", NULL);
    g_autofree char *text = g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s/home/projects\"\n"
                                            "[plugin.incus]\nsocket = \"%s\"\nproject = \"%s\"\npool = \"%s\"\n",
                                            state_dir, state_dir, incusd->socket, incusd->project, incusd->pool);
    char *argv[] = {program, (char *)"--json", (char *)"doctor", NULL};
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "INCUS_DIR", daemon_dir, TRUE);
    g_autofree char *out = NULL;
    g_autoptr(GError) error = NULL;
    JsonNode *node;

    eb_test_write_file(config, text);
    g_assert_cmpint(chmod(config, 0600), ==, 0);
    env = g_environ_setenv(env, "ERRAND_BOX_CONFIG", config, TRUE);
    g_spawn_sync(NULL, argv, env, G_SPAWN_DEFAULT, NULL, NULL, &out, NULL, code, &error);
    g_assert_no_error(error);
    node = eb_json_parse(out, strlen(out), NULL, &error);
    g_assert_no_error(error);
    return node;
}

static const char *
status_of(JsonNode *report, const char *id)
{
    JsonArray *list = eb_json_get_array(eb_json_node_object(report), "checks");

    for (guint i = 0; i < json_array_get_length(list); i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(list, i), "id"), id) == 0)
            return eb_json_get_string(eb_json_array_object(list, i), "status");
    g_error("no check %s", id);
}

/* E-13: stopped, it takes connections and answers none; nothing else is blamed for it. */
static void
test_wedged(void)
{
    pid_t pid = daemon_pid();
    g_autoptr(JsonNode) wedged = NULL;
    g_autoptr(JsonNode) well = NULL;
    int code = 0;

    expect("E-13", EB_CHECK_OK, NULL, NULL);
    g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
    for (guint i = 0; i < 500 && !all_stopped(pid); i++)
        g_usleep(10000);
    expect("E-13", EB_CHECK_FAIL, "does not answer within", NULL);
    expect("E-11", EB_CHECK_OK, NULL, NULL);
    expect("E-05", EB_CHECK_SKIPPED, "cannot be asked", NULL);
    wedged = run_program(&code);
    g_assert_cmpint(kill(pid, SIGCONT), ==, 0);
    g_assert_cmpint(WEXITSTATUS(code), ==, 1);
    g_assert_cmpstr(status_of(wedged, "E-13"), ==, "fail");
    g_assert_cmpstr(status_of(wedged, "E-01"), ==, "ok");
    g_assert_cmpstr(status_of(wedged, "E-24"), ==, "skipped");
    g_assert_cmpstr(status_of(wedged, "E-75"), ==, "ok");
    expect("E-13", EB_CHECK_OK, NULL, NULL);
    well = run_program(&code);
    g_assert_cmpstr(status_of(well, "E-13"), ==, "ok");
    g_assert_cmpstr(status_of(well, "E-24"), ==, "ok");
}

/* E-11: killed, it leaves its socket behind. */
static void
test_dead(void)
{
    g_autoptr(EbHost) host = eb_host_new_real();

    expect("E-11", EB_CHECK_OK, NULL, NULL);
    eb_test_incusd_kill(incusd);
    /* Its last threads hold the socket for a moment longer. */
    for (guint i = 0; i < 500 && eb_host_connect_unix(host, incusd->socket, 1000, NULL); i++)
        g_usleep(20000);
    expect("E-11", EB_CHECK_FAIL, "is a leftover", NULL);
    eb_test_incusd_restart(incusd);
    expect("E-11", EB_CHECK_OK, NULL, NULL);
    expect("E-14", EB_CHECK_OK, "Incus", NULL);
    expect("E-11", EB_CHECK_FAIL, "does not exist", "backend.socket", "/nonexistent/unix.socket", NULL);
}

static void
become_account(gpointer data)
{
    eb_test_incusd_become_account(incusd);
}

static void
all_at_once(void)
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(EbHost) host = NULL;
        g_autoptr(EbConfigSection) settings = eb_config_section_new("doctor");
        g_autoptr(EbDoctorReport) report = NULL;

        eb_test_incusd_become_account(incusd);
        host = eb_host_new_real();
        eb_config_section_set(settings, "backend.socket", g_variant_new_string(incusd->user_socket), "test", 1);
        eb_config_section_set(settings, "backend.project", g_variant_new_string(incusd->project), "test", 1);
        eb_config_section_set(settings, "backend.pool", g_variant_new_string(incusd->pool), "test", 1);
        for (guint i = 0; i < checks->len; i++) {
            EbExtension *extension = g_new0(EbExtension, 1);
            extension->plugin = "doctor-checks";
            extension->object = checks->pdata[i];
            g_ptr_array_add(list, extension);
        }
        report = eb_doctor_run(list, host, settings, NULL, NULL, NULL, NULL);
        for (guint i = 0; i < report->rows->len; i++) {
            const EbDoctorRow *row = report->rows->pdata[i];
            if (strstr(row->result->observed, "cannot be asked") != NULL)
                g_printerr("# %s: %s\n", row->info->id, row->result->observed);
        }
        judge("E-13", eb_doctor_report_find(report, "E-13")->result, EB_CHECK_OK, NULL);
        judge("E-24", eb_doctor_report_find(report, "E-24")->result, EB_CHECK_OK, NULL);
        judge("E-07", eb_doctor_report_find(report, "E-07")->result, EB_CHECK_OK, NULL);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
}

/* E-12: the daemon's own socket is for administrators; the account has the users' one. */
static void
test_rights(void)
{
    expect_in_child(become_account, NULL, "E-12", EB_CHECK_FAIL, "may not use", NULL);
    if (incusd->user_socket == NULL)
        return;
    /* Nobody of this account was here before: all at once, as the doctor does it. The first connection makes incus-user
       set the account up, and a second one at that moment would spoil its certificate for good. */
    all_at_once();
    expect_in_child(become_account, NULL, "E-12", EB_CHECK_OK, NULL, "backend.socket", incusd->user_socket, NULL);
    /* What a session needs to know can be seen that way too. */
    expect_in_child(become_account, NULL, "E-24", EB_CHECK_OK, NULL, "backend.socket", incusd->user_socket, NULL);
    expect_in_child(become_account, NULL, "E-06", EB_CHECK_OK, NULL, "backend.socket", incusd->user_socket, NULL);
    expect_in_child(become_account, NULL, "E-25", EB_CHECK_OK, NULL, "backend.socket", incusd->user_socket, NULL);
}

/* --- pools --- */

static char *
pool_path(const char *pool)
{
    return g_build_filename(incusd->dir, "d", "storage-pools", pool, NULL);
}

/* E-05, E-07: a plain directory has no quota. */
static void
test_dir_pool(void)
{
    g_free(eb_test_incusd_cli(incusd, "storage", "create", "plain", "dir", NULL));
    expect("E-07", EB_CHECK_OK, NULL, "backend.pool", "plain", NULL);
    expect("E-05", EB_CHECK_DEGRADED, "Cost: disk limits are not enforced", "backend.pool", "plain", NULL);
    if (strcmp(incusd->driver, "btrfs") == 0)
        expect("E-05", EB_CHECK_OK, "btrfs", NULL);
    g_free(eb_test_incusd_cli(incusd, "storage", "delete", "plain", NULL));
    expect("E-07", EB_CHECK_FAIL, "there is no storage pool plain", "backend.pool", "plain", NULL);
}

/* Bytes that no compression takes away. */
static void
fill(const char *path, gsize bytes)
{
    int from = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    g_autofree char *block = g_malloc(1 << 20);

    g_assert_cmpint(from, >=, 0);
    g_assert_cmpint(to, >=, 0);
    g_assert_cmpint(read(from, block, 1 << 20), ==, 1 << 20);
    for (gsize done = 0; done < bytes && write(to, block, 1 << 20) > 0; done += 1 << 20)
        ;
    fsync(to);
    close(from);
    close(to);
}

/* E-06: a small pool that is filled, and freed again. E-52: a pool that promises more than there is. */
static void
test_full_pool(void)
{
    g_autofree char *path = pool_path("small");
    g_autofree char *file = g_build_filename(path, "filler", NULL);

    if (strcmp(incusd->driver, "btrfs") != 0) {
        g_test_skip("no btrfs here");
        return;
    }
    g_free(eb_test_incusd_cli(incusd, "storage", "create", "small", "btrfs", "size=300MiB", NULL));
    expect("E-06", EB_CHECK_OK, NULL, "backend.pool", "small", NULL);
    expect("E-53", EB_CHECK_OK, "/dev/loop-control", "backend.pool", "small", NULL);
    fill(file, 400 << 20);
    expect("E-06", EB_CHECK_DEGRADED, "small is", "backend.pool", "small", NULL);
    g_assert_cmpint(unlink(file), ==, 0);
    {
        int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        syncfs(dir);
        close(dir);
    }
    expect("E-06", EB_CHECK_OK, NULL, "backend.pool", "small", NULL);
    g_free(eb_test_incusd_cli(incusd, "storage", "delete", "small", NULL));

    expect("E-52", EB_CHECK_OK, "room for all", NULL);
    g_free(eb_test_incusd_cli(incusd, "storage", "create", "huge", "btrfs", "size=8TiB", NULL));
    expect("E-52", EB_CHECK_DEGRADED, "huge may grow by", "backend.pool", "huge", NULL);
    g_free(eb_test_incusd_cli(incusd, "storage", "delete", "huge", NULL));
}

static void
small_state_dir(gpointer data)
{
    if (mount("none", data, "tmpfs", 0, "size=1m,mode=0700") != 0)
        g_error("tmpfs: %s", g_strerror(errno));
}

/* E-40: a file system of one megabyte; E-79: one that a program serves. */
static void
test_state_space(void)
{
    expect("E-40", EB_CHECK_OK, NULL, NULL);
    expect_in_child(small_state_dir, state_dir, "E-40", EB_CHECK_FAIL, "free at", "state_dir", state_dir, NULL);
    expect("E-79", EB_CHECK_OK, NULL, "state_dir", state_dir, "project_root", state_dir, NULL);
    if (g_file_test("/var/lib/lxcfs/proc", G_FILE_TEST_IS_DIR))
        expect("E-79", EB_CHECK_DEGRADED, "FUSE", "state_dir", state_dir, "project_root", "/var/lib/lxcfs", NULL);
}

/* --- id ranges: what the files say in a view of its own --- */

static void
subuid_is(gpointer data)
{
    put_over("/etc/subuid", data);
}

static void
test_ranges(void)
{
    g_autofree char *own = g_strdup_printf("root:1000000:1000000000\nroot:%u:1\n", (guint)incusd->uid);

    expect("E-18", EB_CHECK_OK, NULL, NULL);
    expect_in_child(subuid_is, (gpointer) "alice:100000:65536\n", "E-18", EB_CHECK_FAIL,
                    "/etc/subuid has no range for root", NULL);
    expect_in_child(subuid_is, (gpointer) "root:1000000:65536\n", "E-18", EB_CHECK_FAIL, "too few", NULL);
    expect("E-19", EB_CHECK_OK, NULL, NULL);
    expect_in_child(subuid_is, (gpointer) "root:1000000:1000000000\n", "E-19", EB_CHECK_FAIL,
                    "does not let root map id", NULL);
    expect_in_child(subuid_is, own, "E-44", EB_CHECK_OK, NULL, NULL);
    expect_in_child(subuid_is, (gpointer) "root:1000000:1000000000\nalice:1500000:65536\n", "E-44", EB_CHECK_DEGRADED,
                    "alice", NULL);
    expect("E-15", EB_CHECK_OK, NULL, NULL);
    expect("E-15", EB_CHECK_FAIL, "there is no account", "account", "eb-nobody-of-this-name", NULL);
}

/* --- this machine --- */

static void
no_lxcfs(gpointer data)
{
    while (umount2("/var/lib/lxcfs", MNT_DETACH) == 0)
        ;
}

static void
into_chroot(gpointer data)
{
    g_autofree char *proc = g_build_filename(data, "proc", NULL);

    g_assert_cmpint(mkdir(proc, 0755), ==, 0);
    g_assert_cmpint(mount("proc", proc, "proc", 0, NULL), ==, 0);
    g_assert_cmpint(chroot(data), ==, 0);
    g_assert_cmpint(chdir("/"), ==, 0);
}

static void
test_machine(void)
{
    g_autofree char *apparmor = NULL;
    g_autofree char *root = eb_test_temp_dir("root");
    gboolean has =
        g_file_get_contents("/sys/module/apparmor/parameters/enabled", &apparmor, NULL, NULL) && apparmor[0] == 'Y';

    if (g_file_test("/var/lib/lxcfs/proc/meminfo", G_FILE_TEST_EXISTS))
        expect("E-08", EB_CHECK_OK, "/var/lib/lxcfs", NULL);
    expect_in_child(no_lxcfs, NULL, "E-08", EB_CHECK_DEGRADED, "Cost: guests are told the memory and CPUs of the host",
                    NULL);
    /* This one is as the machine is. */
    expect("E-17", has ? EB_CHECK_OK : EB_CHECK_DEGRADED, has ? NULL : "Cost: one layer less", NULL);
    expect("E-63", EB_CHECK_OK, NULL, NULL);
    expect("E-56", EB_CHECK_OK, NULL, NULL);
    expect_in_child(into_chroot, root, "E-56", EB_CHECK_FAIL, "this is a chroot", NULL);
    expect("E-59", EB_CHECK_OK, "no cluster", NULL);
}

/* E-32: directories as they must not be. */
static void
test_directories(void)
{
    expect("E-32", EB_CHECK_OK, NULL, "state_dir", state_dir, NULL);
    g_assert_cmpint(chmod(state_dir, 0755), ==, 0);
    expect("E-32", EB_CHECK_FAIL, "open to other accounts", "state_dir", state_dir, NULL);
    g_assert_cmpint(chmod(state_dir, 0700), ==, 0);
    g_assert_cmpint(chown(state_dir, 0, 0), ==, 0);
    expect("E-32", EB_CHECK_FAIL, "not to the account", "state_dir", state_dir, NULL);
    g_assert_cmpint(chown(state_dir, incusd->uid, incusd->uid), ==, 0);
    expect("E-32", EB_CHECK_OK, NULL, "state_dir", state_dir, NULL);
}

/* --- the project --- */

static void
set_key(const char *key, const char *value)
{
    g_free(eb_test_incusd_cli(incusd, "project", "set", incusd->project, key, value, NULL));
}

static void
test_project(void)
{
    g_autofree char *home = g_strdup_printf("%s,/home", incusd->sessions);

    expect("E-23", EB_CHECK_OK, NULL, NULL);
    expect("E-23", EB_CHECK_FAIL, "there is no project nowhere", "backend.project", "nowhere", NULL);
    expect("E-24", EB_CHECK_OK, NULL, NULL);
    set_key("restricted.devices.nic", "managed");
    expect("E-24", EB_CHECK_FAIL, "restricted.devices.nic", NULL);
    set_key("restricted.devices.nic", "block");
    set_key("restricted.containers.lowlevel", "allow");
    expect("E-24", EB_CHECK_FAIL, "lowlevel", NULL);
    set_key("restricted.containers.lowlevel", "block");
    expect("E-24", EB_CHECK_OK, NULL, NULL);
    set_key("restricted.devices.disk.paths", home);
    expect("E-61", EB_CHECK_FAIL, "lets /home of the host into a guest", NULL);
    set_key("restricted.devices.disk.paths", incusd->sessions);
    expect("E-61", EB_CHECK_OK, NULL, NULL);
    expect("E-65", EB_CHECK_OK, "a root disk", NULL);
    g_free(eb_test_incusd_cli(incusd, "profile", "device", "add", "default", "kmsg", "unix-char", "path=/dev/kmsg",
                              "--project", "default", NULL));
    expect("E-65", EB_CHECK_FAIL, "unix-char", "backend.project", "default", NULL);
    g_free(eb_test_incusd_cli(incusd, "profile", "device", "remove", "default", "kmsg", "--project", "default", NULL));
}

/* E-25, E-26: the image. */
static void
test_image(void)
{
    expect("E-25", EB_CHECK_OK, NULL, NULL);
    expect("E-26", EB_CHECK_OK, NULL, NULL);
    expect("E-26", EB_CHECK_DEGRADED, "another recipe", "image.recipe", "newer", NULL);
    expect("E-25", EB_CHECK_FAIL, "has no image", "backend.image", "errand-box/no-such", NULL);
}

/* --- E-61: what the check reads is what the daemon does --- */

typedef struct {
    const char *key, *open; /* what an administrator would have to set for it */
    const char *device;     /* as JSON */
} Way;

/* Ways from a guest to a socket or file of the host that nobody intends. */
static const Way WAYS[] = {
    {"restricted.devices.proxy", "allow",
     "{\"type\":\"proxy\",\"listen\":\"unix:/x\",\"connect\":\"unix:/run/host.sock\",\"bind\":\"instance\"}"},
    {"restricted.devices.unix-char", "allow", "{\"type\":\"unix-char\",\"path\":\"/dev/kmsg\"}"},
    {"restricted.devices.disk.paths", "/run", "{\"type\":\"disk\",\"source\":\"/run\",\"path\":\"/x\"}"},
    {"restricted.devices.nic", "allow", "{\"type\":\"nic\",\"nictype\":\"p2p\"}"},
};

/* Does incusd take a guest with @device from @socket? @refusal: (out): why not */
static gboolean
try_device(const char *socket, const char *device, char **refusal)
{
    g_autoptr(EbProvisionClient) client = eb_provision_client_new(socket);
    g_autofree char *path = g_strdup_printf("/1.0/instances?project=%s", incusd->project);
    g_autofree char *body =
        g_strdup_printf("{\"name\":\"e61\",\"type\":\"container\",\"source\":{\"type\":\"image\",\"alias\":\"%s\"},"
                        "\"devices\":{\"reach\":%s}}",
                        incusd->image, device);
    g_autoptr(GError) error = NULL;
    JsonNode *node = eb_json_parse(body, strlen(body), NULL, &error);
    g_autoptr(JsonNode) answer = NULL;

    g_assert_no_error(error);
    answer = eb_provision_client_call(client, "POST", path, node, 20000, &error);
    *refusal = answer == NULL ? g_strdup(error->message) : NULL;
    return answer != NULL;
}

/* In a process of the account, over the socket the service uses. */
static gboolean
account_may(const char *device, char **refusal)
{
    int ends[2], status = 0;
    char text[2000] = "";
    ssize_t n;
    pid_t pid;

    g_assert_cmpint(pipe2(ends, O_CLOEXEC), ==, 0);
    pid = fork();
    if (pid == 0) {
        g_autofree char *why = NULL;
        gboolean taken;
        eb_test_incusd_become_account(incusd);
        taken = try_device(incusd->user_socket, device, &why);
        if (why != NULL)
            (void)!write(ends[1], why, MIN(strlen(why), sizeof text - 1));
        _exit(taken ? 0 : 1);
    }
    close(ends[1]);
    n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    text[MAX(n, 0)] = '\0';
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    *refusal = g_strdup(text);
    return WEXITSTATUS(status) == 0;
}

static void
test_reach(void)
{
    if (incusd->user_socket == NULL) {
        g_test_skip("no incus-user here");
        return;
    }
    for (guint i = 0; i < G_N_ELEMENTS(WAYS); i++) {
        const Way *way = &WAYS[i];
        const char *check = strcmp(way->key, "restricted.devices.nic") == 0 ? "E-24" : "E-61";
        gboolean is_path = g_str_has_suffix(way->key, "paths");
        g_autofree char *refusal = NULL;
        g_autofree char *later = NULL;

        /* Closed: the check says so, and the daemon refuses what it is asked by the account. */
        expect(check, EB_CHECK_OK, NULL, NULL);
        g_assert_false(account_may(way->device, &refusal));
        g_test_message("%s: %s", way->key, refusal);
        if (strstr(refusal, "orbidden") == NULL && strstr(refusal, "not allowed") == NULL &&
            strstr(refusal, "not found") == NULL)
            g_error("refused for another reason: %s", refusal);
        /* Open: the check fires, and the daemon takes it. */
        set_key(way->key, is_path ? "/run" : way->open);
        expect(check, EB_CHECK_FAIL, is_path ? "/run" : way->key, NULL);
        if (!account_may(way->device, &later))
            g_error("%s is open and the device is refused: %s", way->key, later);
        g_free(eb_test_incusd_cli(incusd, "delete", "e61", "--project", incusd->project, NULL));
        set_key(way->key, is_path ? incusd->sessions : "block");
        expect(check, EB_CHECK_OK, NULL, NULL);
    }
}

/* --- guests --- */

/* A guest in the open project, which has no rules of ours. */
static void
make_guest(const char *name, const char *key, const char *value)
{
    g_free(eb_test_incusd_cli(incusd, "init", "test/guest", name, "--storage", incusd->pool, "-c", key, "-c", value,
                              "--project", "default", NULL));
}

#define IN_DEFAULT "backend.project", "default", NULL

static void
set_guest(const char *name, const char *setting)
{
    g_free(eb_test_incusd_cli(incusd, "config", "set", name, setting, "--project", "default", NULL));
}

static void
test_guests(void)
{
    static const char DENY[] = "security.syscalls.deny=ioctl errno 1 [1,0x5000940e,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                               "ioctl errno 1 [1,0x50009418,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                               "ioctl errno 1 [1,0x50009401,SCMP_CMP_MASKED_EQ,0xffffffff]\n"
                               "ioctl errno 1 [1,0x50009417,SCMP_CMP_MASKED_EQ,0xffffffff]";
    g_autofree char *source = g_strdup_printf("source=%s/s1/run", incusd->sessions);
    g_autofree char *run = g_build_filename(incusd->sessions, "s1", "run", NULL);

    g_assert_cmpint(g_mkdir_with_parents(run, 0755), ==, 0);
    make_guest("plain", "security.idmap.isolated=true", "limits.memory=128MiB");
    /* As incusd makes guests when nobody says otherwise. */
    expect("E-78", EB_CHECK_DEGRADED, "plain has the socket of the guest API", IN_DEFAULT);
    if (strcmp(incusd->driver, "btrfs") == 0)
        expect("E-51", EB_CHECK_DEGRADED, "plain may make subvolumes", IN_DEFAULT);
    set_guest("plain", "security.guestapi=false");
    set_guest("plain", DENY);
    expect("E-78", EB_CHECK_OK, "1 guests", IN_DEFAULT);
    expect("E-51", EB_CHECK_OK, NULL, IN_DEFAULT);
    /* E-68, E-47, E-60: running */
    g_free(eb_test_incusd_cli(incusd, "start", "plain", "--project", "default", NULL));
    expect("E-68", EB_CHECK_DEGRADED, "plain would be started", IN_DEFAULT);
    expect("E-47", EB_CHECK_OK, "1 guests run", IN_DEFAULT);
    expect("E-60", EB_CHECK_OK, "1 guests", IN_DEFAULT);
    expect_in_child(subuid_is, (gpointer) "root:5000000:655360\n", "E-60", EB_CHECK_FAIL, "plain has ids from",
                    IN_DEFAULT);
    set_guest("plain", "boot.autostart=false");
    expect("E-68", EB_CHECK_OK, NULL, IN_DEFAULT);
    expect("E-67", EB_CHECK_OK, "1 guests run", IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "stop", "--force", "plain", "--project", "default", NULL));
    /* E-55, E-58 */
    expect("E-55", EB_CHECK_OK, NULL, IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "config", "device", "add", "plain", "run", "disk", source, "path=/run/errand",
                              "--project", "default", NULL));
    expect("E-55", EB_CHECK_FAIL, "where its broker listens", IN_DEFAULT);
    expect("E-58", EB_CHECK_FAIL, "/run/errand", IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "config", "device", "set", "plain", "run", "readonly=true", "path=/opt/run",
                              "--project", "default", NULL));
    expect("E-55", EB_CHECK_OK, NULL, IN_DEFAULT);
    expect("E-58", EB_CHECK_OK, NULL, IN_DEFAULT);
    /* E-62 */
    expect("E-62", EB_CHECK_OK, "1 guests", IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "config", "device", "add", "plain", "eth0", "nic", "nictype=p2p", "--project",
                              "default", NULL));
    expect("E-62", EB_CHECK_FAIL, "plain has a network device", IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "config", "device", "remove", "plain", "eth0", "--project", "default", NULL));
    set_guest("plain", "security.syscalls.deny_default=false");
    expect("E-62", EB_CHECK_FAIL, "plain runs without seccomp", IN_DEFAULT);
    set_guest("plain", "security.syscalls.deny_default=true");
    expect("E-62", EB_CHECK_OK, NULL, IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "delete", "plain", "--project", "default", NULL));
}

/* E-64: templates come with an image; here they are put into the guest's own copy of its description. */
static void
test_templates(void)
{
    static const char TEMPLATES[] = "{\"architecture\":\"x86_64\",\"creation_date\":1,\"templates\":{\"/etc/x\":"
                                    "{\"when\":[\"create\"],\"create_only\":false,\"template\":\"x.tpl\"}}}";
    g_autoptr(EbProvisionClient) client = eb_provision_client_new(incusd->socket);
    g_autoptr(JsonNode) answer = NULL;
    g_autoptr(GError) error = NULL;

    make_guest("drawn", "security.guestapi=false", "boot.autostart=false");
    g_free(eb_test_incusd_cli(incusd, "start", "drawn", "--project", "default", NULL));
    expect("E-64", EB_CHECK_OK, "1 ", IN_DEFAULT);
    answer = eb_provision_client_call(client, "PUT", "/1.0/instances/drawn/metadata",
                                      eb_json_parse(TEMPLATES, strlen(TEMPLATES), NULL, NULL), 10000, &error);
    g_assert_no_error(error);
    expect("E-64", EB_CHECK_FAIL, "drawn was made from an image with templates", IN_DEFAULT);
    g_free(eb_test_incusd_cli(incusd, "delete", "--force", "drawn", "--project", "default", NULL));
}

/* E-67: a process that calls itself the monitor of a guest that is not there, and ends. */
static void
test_monitors(void)
{
    g_autofree char *name = g_strdup_printf("[lxc monitor] %s/d/containers ghost", incusd->dir);
    char *argv[] = {name, (char *)"100", NULL};
    int ready[2];
    char end;
    pid_t pid;

    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    pid = fork();
    if (pid == 0) {
        execv("/bin/sleep", argv);
        _exit(127);
    }
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &end, 1), ==, 0); /* closed by its exec */
    close(ready[0]);
    /* The command line is NAME NUL 100 NUL: as a monitor's it begins with the name. */
    expect("E-67", EB_CHECK_DEGRADED, "a monitor of guest ghost runs", IN_DEFAULT);
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    expect("E-67", EB_CHECK_OK, NULL, IN_DEFAULT);
}

/* E-50: a setting that lxcfs 5 does not understand. */
static void
test_lxcfs_instances(void)
{
    g_autofree char *version = NULL;
    const char *argv[] = {"dpkg-query", "-W", "-f", "${Version}", "lxcfs", NULL};

    expect("E-50", EB_CHECK_OK, "one lxcfs", NULL);
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &version,
                 NULL, NULL, NULL);
    if (version == NULL || *version == '\0')
        return;
    g_free(eb_test_incusd_cli(incusd, "config", "set", "instances.lxcfs.per_instance=true", NULL));
    if (version[0] < '6')
        expect("E-50", EB_CHECK_DEGRADED, "which lxcfs 5", NULL);
    else
        expect("E-50", EB_CHECK_OK, "one a guest", NULL);
    g_free(eb_test_incusd_cli(incusd, "config", "unset", "instances.lxcfs.per_instance", NULL));
}

static void
make_state_dir(void)
{
    static const char *const PARTS[] = {"", "sessions", "try"};

    state_dir = eb_test_temp_dir("state");
    for (guint i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *path = g_build_filename(state_dir, PARTS[i], NULL);
        g_assert_cmpint(g_mkdir_with_parents(path, 0700), ==, 0);
        g_assert_cmpint(chown(path, incusd->uid, incusd->uid), ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_autofree char *reason = NULL;
    int result;

    eb_test_init(&argc, &argv);
    incusd = eb_test_incusd_acquire("doctor", &reason);
    if (incusd == NULL) {
        g_print("1..0 # SKIP %s\n", reason);
        return 77;
    }
    checks = dc_list();
    make_state_dir();
    g_test_add_func("/doctor-real/wedged", test_wedged);
    g_test_add_func("/doctor-real/dead", test_dead);
    g_test_add_func("/doctor-real/rights", test_rights);
    g_test_add_func("/doctor-real/dir-pool", test_dir_pool);
    g_test_add_func("/doctor-real/full-pool", test_full_pool);
    g_test_add_func("/doctor-real/state-space", test_state_space);
    g_test_add_func("/doctor-real/ranges", test_ranges);
    g_test_add_func("/doctor-real/machine", test_machine);
    g_test_add_func("/doctor-real/directories", test_directories);
    g_test_add_func("/doctor-real/project", test_project);
    g_test_add_func("/doctor-real/image", test_image);
    g_test_add_func("/doctor-real/reach", test_reach);
    g_test_add_func("/doctor-real/guests", test_guests);
    g_test_add_func("/doctor-real/templates", test_templates);
    g_test_add_func("/doctor-real/monitors", test_monitors);
    g_test_add_func("/doctor-real/lxcfs-instances", test_lxcfs_instances);
    result = g_test_run();
    g_ptr_array_unref(checks);
    g_free(state_dir);
    eb_test_incusd_release(incusd);
    return result;
}
