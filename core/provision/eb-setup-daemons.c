/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-daemon-process.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

#define DAEMON "/usr/libexec/incus/incusd"
#define USER_DAEMON "/usr/libexec/incus/incus-user"
#define LXCFS_PID "/run/errand-box/lxcfs.pid"
#define LXCFS_DIR "/var/lib/lxcfs"

/* A first start makes a database and looks at the hardware: 1 s, more on a busy machine. */
#define READY_S 60
#define CALL_MS 10000

static char *
pid_file(EbSetup *self, const char *name)
{
    g_autofree char *file = g_strconcat(name, ".pid", NULL);

    return g_build_filename(self->pid_dir, file, NULL);
}

/* (transfer full) (array zero-terminated=1) */
static char **
daemon_environment(EbSetup *self)
{
    GPtrArray *list = g_ptr_array_new();

    g_ptr_array_add(list, g_strdup("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"));
    g_ptr_array_add(list, g_strdup("LC_ALL=C.UTF-8"));
    g_ptr_array_add(list, g_strdup("HOME=/root"));
    /* Machine types of public clouds, fetched at every start otherwise. */
    g_ptr_array_add(list, g_strdup("INCUS_SKIP_INSTANCE_TYPES=true"));
    if (self->private)
        g_ptr_array_add(list, g_strdup_printf("INCUS_DIR=%s", self->daemon_dir));
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

static gboolean
start_daemon(EbSetup *self, const char *name, const char *const *argv, const char *pid_path, GError **error)
{
    g_auto(GStrv) environment = daemon_environment(self);
    g_autofree char *log = g_strdup_printf("%s/%s.out", self->private ? self->daemon_dir : "/var/log", name);
    g_autofree char *directory = g_path_get_dirname(pid_path);
    EbDaemonSpec spec = {.name = name,
                         .argv = argv,
                         .environment = (const char *const *)environment,
                         .log_file = log,
                         .pid_file = pid_path};

    if (g_mkdir_with_parents(directory, 0755) < 0 ||
        (self->private && g_mkdir_with_parents(self->daemon_dir, 0711) < 0)) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "%s: %s", directory, g_strerror(errno));
        return FALSE;
    }
    return eb_daemon_process_start(&spec, error);
}

/* --- lxcfs --- */

static gboolean
lxcfs_works(void)
{
    static const char *const PLACES[] = {LXCFS_DIR "/proc/meminfo", "/var/lib/incus-lxcfs/proc/meminfo"};

    for (guint i = 0; i < G_N_ELEMENTS(PLACES); i++) {
        g_autofree char *text = NULL;
        /* A mount whose server died is there and fails to read. */
        if (g_file_get_contents(PLACES[i], &text, NULL, NULL))
            return TRUE;
    }
    return FALSE;
}

static gboolean
check_lxcfs(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *program = eb_run_find("lxcfs");

    if (lxcfs_works())
        return TRUE;
    if (program == NULL || access("/dev/fuse", R_OK | W_OK) < 0)
        eb_findings_degraded(findings, "E-08: no %s, so guests are told the host's memory and CPUs",
                             program == NULL ? "lxcfs program" : "/dev/fuse");
    else
        eb_findings_change(findings, "start lxcfs%s", eb_setup_has_systemd(self) ? " (systemctl start lxcfs)" : "");
    return TRUE;
}

static gboolean
apply_lxcfs(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *systemctl[] = {"systemctl", "start", "lxcfs.service", NULL};
    g_autofree char *program = eb_run_find("lxcfs");
    const char *argv[] = {program, LXCFS_DIR, NULL};

    if (eb_setup_has_systemd(self)) {
        if (!eb_run(systemctl, 30000, NULL, error))
            return FALSE;
    } else {
        /* What a dead server left is in the way of a new mount. */
        umount2(LXCFS_DIR, MNT_DETACH);
        g_mkdir_with_parents(LXCFS_DIR, 0755);
        if (!start_daemon(self, "lxcfs", argv, LXCFS_PID, error))
            return FALSE;
    }
    for (guint tenths = 0; tenths < 50; tenths++) {
        if (lxcfs_works())
            return TRUE;
        g_usleep(100 * 1000);
    }
    eb_set_error(error, EB_ERROR_TIMEOUT, "provision.lxcfs", "lxcfs was started, but %s/proc is not there after 5 s",
                 LXCFS_DIR);
    return FALSE;
}

const EbSetupStep eb_setup_step_lxcfs = {
    .id = "lxcfs",
    .title = "lxcfs (guests see their own limits)",
    .undo_hint = "errand-box setup --stop-daemons, or systemctl stop lxcfs, with no guest running",
    .check = check_lxcfs,
    .apply = apply_lxcfs,
};

/* --- the container daemon --- */

static gboolean
answers(EbSetup *self, guint deadline_ms, GError **error)
{
    g_autoptr(JsonNode) answer = eb_provision_client_call(self->client, "GET", "/1.0", NULL, deadline_ms, error);
    const char *server;

    if (answer == NULL)
        return FALSE;
    server = eb_json_get_string(eb_json_get_object(eb_json_node_object(answer), "environment"), "server");
    if (g_strcmp0(server, "incus") == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "provision.server",
                 "the daemon in %s is %s, not Incus: errand-box works with Incus alone", self->daemon_dir,
                 server != NULL ? server : "unknown");
    return FALSE;
}

static gboolean
check_daemon(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (answers(self, CALL_MS, &failure)) {
        if (self->ranges_changed)
            eb_findings_change(findings, "restart incusd: it knows the id ranges of its start alone");
        return TRUE;
    }
    if (g_error_matches(failure, EB_ERROR, EB_ERROR_UNAVAILABLE)) {
        eb_findings_change(findings, "start incusd in %s%s", self->daemon_dir,
                           eb_setup_has_systemd(self) ? " (systemctl start incus)" : " as a daemon of its own");
        return TRUE;
    }
    /* As a plain user --plan cannot look inside. */
    if (self->options.plan && g_error_matches(failure, EB_ERROR, EB_ERROR_DENIED)) {
        eb_findings_note(findings, "incusd is there; only root can look further");
        return TRUE;
    }
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

/* Ready is more than a socket: the database is open and the pools are mounted. */
static gboolean
wait_ready(EbSetup *self, const char *pid_path, GError **error)
{
    for (guint tenths = 0; tenths < READY_S * 10; tenths++) {
        g_autoptr(GError) failure = NULL;
        g_autoptr(JsonNode) answer =
            eb_provision_client_call(self->client, "GET", "/internal/ready", NULL, CALL_MS, &failure);

        if (answer != NULL)
            return TRUE;
        if (pid_path != NULL && !eb_daemon_process_alive(pid_path)) {
            eb_set_error(error, EB_ERROR_UNAVAILABLE, "provision.daemon",
                         "incusd ended while it started: its log is %s/incusd.%s",
                         self->private ? self->daemon_dir : "/var/log/incus", self->private ? "out" : "log");
            return FALSE;
        }
        g_usleep(100 * 1000);
    }
    eb_set_error(error, EB_ERROR_TIMEOUT, "provision.daemon", "incusd is not ready after %d s", READY_S);
    return FALSE;
}

static gboolean
apply_daemon(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *systemctl[] = {"systemctl", self->ranges_changed ? "restart" : "start", "incus.socket", "incus.service",
                               NULL};
    g_autofree char *pid_path = pid_file(self, "incusd");
    g_autofree char *log =
        self->private ? g_build_filename(self->daemon_dir, "incusd.log", NULL) : g_strdup("/var/log/incus/incusd.log");
    const char *argv[] = {DAEMON, "--group", "incus-admin", "--logfile", log, NULL};
    g_autofree char *log_dir = g_path_get_dirname(log);

    self->ranges_changed = FALSE;
    if (eb_setup_has_systemd(self)) {
        if (!eb_run(systemctl, READY_S * 1000, NULL, error))
            return FALSE;
        return wait_ready(self, NULL, error);
    }
    if (eb_daemon_process_alive(pid_path)) {
        /* Running guests stay: TERM leaves them alone. */
        if (!eb_daemon_process_stop(pid_path, SIGTERM, READY_S * 1000, error))
            return FALSE;
    } else if (answers(self, CALL_MS, NULL)) {
        eb_set_error(
            error, EB_ERROR_FAILED, "provision.daemon",
            "the id ranges changed, but incusd is run by something else: restart it there, then run setup again");
        return FALSE;
    }
    if (g_mkdir_with_parents(log_dir, 0755) < 0 || g_mkdir_with_parents(self->daemon_dir, 0711) < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "%s: %s", self->daemon_dir, g_strerror(errno));
        return FALSE;
    }
    eb_setup_say(self, "starting incusd");
    return start_daemon(self, "incusd", argv, pid_path, error) && wait_ready(self, pid_path, error);
}

const EbSetupStep eb_setup_step_daemon = {
    .id = "incusd",
    .title = "incusd",
    .undo_hint = "errand-box setup --stop-daemons, or systemctl stop incus",
    .check = check_daemon,
    .apply = apply_daemon,
};

/* --- membership and the users' socket --- */

static gboolean
is_member(const char *group_name, const char *account)
{
    const struct group *group = getgrnam(group_name);

    for (guint i = 0; group != NULL && group->gr_mem[i] != NULL; i++)
        if (strcmp(group->gr_mem[i], account) == 0)
            return TRUE;
    return FALSE;
}

static gboolean
check_group(EbSetup *self, EbFindings *findings, GError **error)
{
    if (is_member("incus-admin", self->account)) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.admin",
                     "%s is in the group incus-admin, which is as good as root: gpasswd -d %s incus-admin",
                     self->account, self->account);
        return FALSE;
    }
    if (!is_member("incus", self->account))
        eb_findings_change(findings, "put %s into the group incus (its own project alone, never incus-admin)",
                           self->account);
    return TRUE;
}

static gboolean
apply_group(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *argv[] = {"usermod", "--append", "--groups", "incus", self->account, NULL};

    return eb_run(argv, 30000, NULL, error);
}

const EbSetupStep eb_setup_step_group = {
    .id = "group",
    .title = "membership in the group incus",
    .undo_hint = "gpasswd -d ACCOUNT incus",
    .check = check_group,
    .apply = apply_group,
};

/* Somebody listens on a unix socket, found without connecting: a connection as root would make a project for root. */
static gboolean
is_listening(const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autofree char *suffix = g_strconcat(" ", path, NULL);

    struct stat info;

    /* The table is the network namespace's, and may list this path for a listener in another mount namespace (a
     * container host in a container, a chroot): the file has to be here too. */
    if (lstat(path, &info) < 0 || !S_ISSOCK(info.st_mode) || !g_file_get_contents("/proc/net/unix", &text, NULL, NULL))
        return FALSE;
    lines = g_strsplit(text, "\n", -1);
    /* Flags 00010000: accepts connections. */
    for (guint i = 0; lines[i] != NULL; i++)
        if (g_str_has_suffix(lines[i], suffix) && strstr(lines[i], " 00010000 ") != NULL)
            return TRUE;
    return FALSE;
}

static gboolean
check_user_socket(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *socket = g_build_filename(self->daemon_dir, "unix.socket.user", NULL);

    if (!is_listening(socket))
        eb_findings_change(findings, "start incus-user, which lets %s into its own project by its uid", self->account);
    return TRUE;
}

static gboolean
apply_user_socket(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *systemctl[] = {"systemctl", "start", "incus-user.socket", NULL};
    g_autofree char *pid_path = pid_file(self, "incus-user");
    g_autofree char *socket = g_build_filename(self->daemon_dir, "unix.socket.user", NULL);
    const char *argv[] = {USER_DAEMON, "--group", "incus", NULL};

    if (eb_setup_has_systemd(self)) {
        if (!eb_run(systemctl, 30000, NULL, error))
            return FALSE;
    } else if (!eb_daemon_process_stop(pid_path, SIGTERM, 5000, error) ||
               !start_daemon(self, "incus-user", argv, pid_path, error)) {
        return FALSE;
    }
    for (guint tenths = 0; tenths < 150; tenths++) {
        if (is_listening(socket))
            return TRUE;
        if (!eb_setup_has_systemd(self) && !eb_daemon_process_alive(pid_path))
            break;
        g_usleep(100 * 1000);
    }
    eb_set_error(error, EB_ERROR_FAILED, "provision.user-socket", "incus-user does not listen on %s: its log is %s",
                 socket, self->private ? "incus-user.out beside it" : "/var/log/incus-user.out");
    return FALSE;
}

const EbSetupStep eb_setup_step_user_socket = {
    .id = "incus-user",
    .title = "incus-user",
    .undo_hint = "errand-box setup --stop-daemons, or systemctl stop incus-user.socket incus-user",
    .check = check_user_socket,
    .apply = apply_user_socket,
};

/* --- stopping --- */

/* Some container daemon, of this or another directory, still runs on this machine. */
static gboolean
any_daemon_left(void)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    const char *name;

    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL) {
        g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", name);
        g_autofree char *line = NULL;
        if (!g_ascii_isdigit(name[0]) || !g_file_get_contents(path, &line, NULL, NULL))
            continue;
        /* The daemon itself, and the monitor of a guest that outlived it. */
        if (strcmp(line, DAEMON) == 0 || g_str_has_prefix(line, "[lxc monitor]"))
            return TRUE;
    }
    return FALSE;
}

/* A private daemon's directory is to be removable afterwards. */
static void
unmount_below(const char *directory)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autofree char *prefix = g_strconcat(directory, "/", NULL);

    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
        return;
    lines = g_strsplit(text, "\n", -1);
    /* Later mounts first: they may stand on earlier ones. */
    for (guint i = g_strv_length(lines); i > 0; i--) {
        g_auto(GStrv) fields = g_strsplit(lines[i - 1], " ", 6);
        if (g_strv_length(fields) == 6 && g_str_has_prefix(fields[4], prefix))
            umount2(fields[4], MNT_DETACH | UMOUNT_NOFOLLOW);
    }
}

gboolean
eb_setup_stop_daemons(EbSetup *self, GError **error)
{
    g_autofree char *user_pid = pid_file(self, "incus-user");
    g_autofree char *daemon_pid = pid_file(self, "incusd");

    if (geteuid() != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "provision.root", "only root can stop the daemons");
        return FALSE;
    }
    eb_setup_say(self, "stopping incus-user and incusd");
    if (!eb_daemon_process_stop(user_pid, SIGTERM, 5000, error))
        return FALSE;
    /* PWR: guests are stopped (30 s each at most, in parallel) and pools unmounted. */
    if (!eb_daemon_process_stop(daemon_pid, SIGPWR, 60000, error))
        return FALSE;
    if (self->private)
        unmount_below(self->daemon_dir);
    if (any_daemon_left())
        return TRUE;
    eb_setup_say(self, "stopping lxcfs");
    return eb_daemon_process_stop(LXCFS_PID, SIGTERM, 5000, error);
}
