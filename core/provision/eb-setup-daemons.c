/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-tree-remove.h"
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

static const char *const LXCFS_UNITS[] = {"lxcfs", NULL};
static const char *const DAEMON_UNITS[] = {"incus", "incusd", NULL};
static const char *const USER_UNITS[] = {"incus-user.socket", "incus-user", NULL};
#define REMOVE_MS (10 * 60 * 1000)

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

/* The first of @units that the supervisor knows; NULL: none does, so it is started and stopped by a pid file. A daemon
 * of its own directory never is one of the system's units. */
static const char *
find_unit(EbSetup *self, const char *const *units)
{
    for (guint i = 0; self->supervisor != NULL && units[i] != NULL; i++)
        if (eb_supervisor_has_unit(self->supervisor, units[i]))
            return units[i];
    return NULL;
}

static gboolean
record_daemon(EbSetup *self, const EbSetupStep *step, const char *unit, GError **error)
{
    g_autofree char *made = unit != NULL ? g_strconcat("unit ", unit, NULL) : g_strdup("process");

    return eb_setup_record(self, step, "daemon", step->id, NULL, made, error);
}

/* A private daemon's directory: whichever daemon is started first has its log there. */
static gboolean
place_daemon_dir(EbSetup *self, const EbSetupStep *step, GError **error)
{
    if (g_file_test(self->daemon_dir, G_FILE_TEST_EXISTS))
        return TRUE;
    if (!eb_setup_record(self, step, "daemon-dir", self->daemon_dir, NULL, NULL, error))
        return FALSE;
    if (g_mkdir_with_parents(self->daemon_dir, 0711) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_FAILED, "provision.daemon", "%s: %s", self->daemon_dir, g_strerror(errno));
    return FALSE;
}

static gboolean
start_daemon(EbSetup *self, const EbSetupStep *step, const char *const *argv, const char *pid_path, GError **error)
{
    const char *name = step->id;
    g_auto(GStrv) environment = daemon_environment(self);
    g_autofree char *log = g_strdup_printf("%s/%s.out", self->private ? self->daemon_dir : "/var/log", name);
    g_autofree char *directory = g_path_get_dirname(pid_path);
    EbDaemonSpec spec = {.name = name,
                         .argv = argv,
                         .environment = (const char *const *)environment,
                         .log_file = log,
                         .pid_file = pid_path};

    if (self->private && !place_daemon_dir(self, step, error))
        return FALSE;
    if ((!self->private || !g_str_has_prefix(directory, self->daemon_dir)) &&
        !eb_setup_place_directory(self, step, directory, error))
        return FALSE;
    if (!self->private && !g_file_test(log, G_FILE_TEST_EXISTS) &&
        !eb_setup_record(self, step, "log", log, NULL, NULL, error))
        return FALSE;
    return record_daemon(self, step, NULL, error) && eb_daemon_process_start(&spec, error);
}

/* --- taking back --- */

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

/* A private daemon's own directory, which setup made: database, certificates, logs. */
static EbUndone
undo_daemon_dir(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(entry->name);
    g_autofree char *name = g_path_get_basename(entry->name);
    g_autofree char *pid_path = pid_file(self, "incusd");
    guint64 left = 0;
    gboolean ok;
    int dir;

    if (!g_file_test(entry->name, G_FILE_TEST_EXISTS))
        return EB_UNDO_DONE;
    if (!self->options.plan && eb_daemon_process_alive(pid_path)) {
        eb_findings_note(findings, "left %s: incusd runs there", entry->name);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s %s", self->options.plan ? "remove" : "removed", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    unmount_below(entry->name);
    dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ok = dir >= 0 && eb_tree_remove_at(dir, name, REMOVE_MS, &left, error);
    if (dir < 0 || (ok && left > 0))
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s cannot be removed", entry->name);
    if (dir >= 0)
        close(dir);
    return ok && left == 0 ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

/* (transfer full) (nullable): who still needs the daemon called @id */
static char *
find_need(EbSetup *self, const char *id)
{
    const char *account = eb_setup_find_other_member(self, "incus");

    if (strcmp(id, "incus-user") == 0)
        return self->private || account == NULL ? NULL : g_strdup_printf("%s is in the group incus", account);
    if (strcmp(id, "incusd") == 0)
        return eb_setup_find_others(self);
    if (!self->options.plan && any_daemon_left())
        return g_strdup("a container daemon or a guest is left");
    return NULL;
}

/* PWR: incusd stops its guests (30 s each at most, in parallel) and unmounts its pools. */
static gboolean
stop_daemon(EbSetup *self, const char *id, const char *made, GError **error)
{
    gboolean daemon = strcmp(id, "incusd") == 0;
    g_autofree char *pid_path = strcmp(id, "lxcfs") == 0 ? g_strdup(LXCFS_PID) : pid_file(self, id);

    if (made == NULL || !g_str_has_prefix(made, "unit "))
        return eb_daemon_process_stop(pid_path, daemon ? SIGPWR : SIGTERM, daemon ? 60000 : 5000, error);
    if (self->supervisor == NULL || !eb_supervisor_has_unit(self->supervisor, made + strlen("unit ")))
        return TRUE;
    /* Its socket would start it again. */
    if (daemon && eb_supervisor_has_unit(self->supervisor, "incus.socket") &&
        !eb_supervisor_stop(self->supervisor, "incus.socket", 30000, error))
        return FALSE;
    return eb_supervisor_stop(self->supervisor, made + strlen("unit "), 90000, error);
}

static EbUndone
undo_daemon_step(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *need = NULL;

    if (strcmp(entry->kind, "daemon-dir") == 0)
        return undo_daemon_dir(self, entry, findings, error);
    if (strcmp(entry->kind, "pending") == 0)
        return EB_UNDO_DONE;
    if (strcmp(entry->kind, "log") == 0) {
        if (!self->options.plan)
            unlink(entry->name);
        return EB_UNDO_DONE;
    }
    if (strcmp(entry->kind, "daemon") != 0)
        return eb_setup_undo_place(self, entry, findings, error);
    need = find_need(self, entry->name);
    if (need != NULL) {
        eb_findings_note(findings, "left %s running: %s", entry->name, need);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s %s", self->options.plan ? "stop" : "stopped", entry->name);
    return self->options.plan || stop_daemon(self, entry->name, entry->made, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

static const char *
by_whom(EbSetup *self, const char *const *units)
{
    if (find_unit(self, units) == NULL)
        return self->private ? " as a daemon of its own" : "";
    return eb_supervisor_get_kind(self->supervisor) == EB_SUPERVISOR_SYSTEMD ? " (its unit of systemd)"
                                                                             : " (its service of s6)";
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

/* systemd leaves a unit down, and calls that success, when its conditions are not met: in a container, for one. */
static gboolean
refuses_to_start(EbSetup *self, const char *unit)
{
    g_auto(EbUnitStatus) status = {0};

    return unit != NULL && eb_supervisor_query(self->supervisor, unit, &status, NULL) &&
           (status.state == EB_UNIT_DOWN || status.state == EB_UNIT_FAILED);
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
    else if (self->lxcfs_refused)
        eb_findings_degraded(findings,
                             "E-08: lxcfs does not start here (its unit's conditions are not met, or it "
                             "failed: systemctl status lxcfs), so guests are told the host's memory and CPUs");
    else
        eb_findings_change(findings, "start lxcfs%s", by_whom(self, LXCFS_UNITS));
    return TRUE;
}

static gboolean
apply_lxcfs(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *unit = find_unit(self, LXCFS_UNITS);
    g_autofree char *program = eb_run_find("lxcfs");
    const char *argv[] = {program, LXCFS_DIR, NULL};

    if (unit != NULL) {
        g_autoptr(GError) failure = NULL;
        if (!record_daemon(self, &eb_setup_step_lxcfs, unit, error))
            return FALSE;
        if (!eb_supervisor_start(self->supervisor, unit, 30000, &failure) || refuses_to_start(self, unit)) {
            self->lxcfs_refused = TRUE;
            return TRUE;
        }
    } else {
        /* What a dead server left is in the way of a new mount. */
        umount2(LXCFS_DIR, MNT_DETACH);
        if (!eb_setup_place_directory(self, &eb_setup_step_lxcfs, LXCFS_DIR, error) ||
            !start_daemon(self, &eb_setup_step_lxcfs, argv, LXCFS_PID, error))
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
    .undo_hint = "it is stopped, when no container daemon or guest needs it",
    .check = check_lxcfs,
    .apply = apply_lxcfs,
    .undo = undo_daemon_step,
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

/* --- restart after a change of the id ranges --- */

#define RESTART "incusd restart"

/* What tells one run of the daemon from the next: its pid; 0 when it does not answer. */
static gint64
server_pid(EbSetup *self)
{
    g_autoptr(JsonNode) answer = eb_provision_client_call(self->client, "GET", "/1.0", NULL, CALL_MS, NULL);

    return eb_json_get_int(eb_json_get_object(eb_json_node_object(answer), "environment"), "server_pid", 0);
}

gboolean
eb_setup_want_restart(EbSetup *self, GError **error)
{
    g_autofree char *pid = g_strdup_printf("%" G_GINT64_FORMAT, server_pid(self));

    return strcmp(pid, "0") == 0 || eb_setup_record(self, &eb_setup_step_daemon, "pending", RESTART, NULL, pid, error);
}

static gboolean
needs_restart(EbSetup *self)
{
    const EbLedgerEntry *entry = eb_setup_ledger_find(self->ledger, "pending", RESTART);
    g_autofree char *pid = g_strdup_printf("%" G_GINT64_FORMAT, server_pid(self));

    return entry != NULL && g_strcmp0(entry->made, pid) == 0;
}

static gboolean
forget_restart(EbSetup *self, GError **error)
{
    return !eb_setup_ledger_remove(self->ledger, "pending", RESTART) ||
           eb_setup_ledger_save(self->ledger, self->ledger_dir, error);
}

static gboolean
is_ready(EbSetup *self)
{
    g_autoptr(JsonNode) answer = eb_provision_client_call(self->client, "GET", "/internal/ready", NULL, CALL_MS, NULL);

    return answer != NULL;
}

static gboolean
check_daemon(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *pid_path = pid_file(self, "incusd");

    if (answers(self, CALL_MS, &failure)) {
        if (needs_restart(self))
            eb_findings_change(findings, "restart incusd: it knows the id ranges of its start alone");
        else if (!is_ready(self))
            eb_findings_change(findings, "wait until incusd is ready");
        return TRUE;
    }
    if (g_error_matches(failure, EB_ERROR, EB_ERROR_UNAVAILABLE)) {
        if (eb_daemon_process_alive(pid_path))
            eb_findings_change(findings, "wait until incusd is ready");
        else
            eb_findings_change(findings, "start incusd in %s%s", self->daemon_dir, by_whom(self, DAEMON_UNITS));
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

/* Through the supervisor that has it as a unit. */
static gboolean
start_unit(EbSetup *self, const char *unit, gboolean restart, GError **error)
{
    if (restart)
        return eb_supervisor_restart(self->supervisor, unit, READY_S * 1000, error);
    if (answers(self, CALL_MS, NULL))
        return TRUE;
    return record_daemon(self, &eb_setup_step_daemon, unit, error) &&
           eb_supervisor_start(self->supervisor, unit, READY_S * 1000, error);
}

/* A process of our own, known by its pid file. */
static gboolean
start_process(EbSetup *self, const char *pid_path, GError **error)
{
    g_autofree char *log =
        self->private ? g_build_filename(self->daemon_dir, "incusd.log", NULL) : g_strdup("/var/log/incus/incusd.log");
    g_autofree char *log_dir = g_path_get_dirname(log);
    const char *argv[] = {DAEMON, "--group", "incus-admin", "--logfile", log, NULL};

    if (self->private ? !place_daemon_dir(self, &eb_setup_step_daemon, error)
                      : !eb_setup_place_directory(self, &eb_setup_step_daemon, log_dir, error))
        return FALSE;
    eb_setup_say(self, "starting incusd");
    return start_daemon(self, &eb_setup_step_daemon, argv, pid_path, error);
}

static gboolean
apply_daemon(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *unit = find_unit(self, DAEMON_UNITS);
    g_autofree char *pid_path = pid_file(self, "incusd");
    gboolean restart = needs_restart(self);
    gboolean alive = eb_daemon_process_alive(pid_path);

    if (unit != NULL && !alive)
        return start_unit(self, unit, restart, error) && wait_ready(self, NULL, error) && forget_restart(self, error);
    if (!alive && answers(self, CALL_MS, NULL)) {
        if (!restart)
            return wait_ready(self, NULL, error);
        eb_set_error(
            error, EB_ERROR_FAILED, "provision.daemon",
            "the id ranges changed, but incusd is run by something else: restart it there, then run setup again");
        return FALSE;
    }
    /* Running guests stay: TERM leaves them alone. */
    if (alive && restart) {
        if (!eb_daemon_process_stop(pid_path, SIGTERM, READY_S * 1000, error))
            return FALSE;
        alive = FALSE;
    }
    return (alive || start_process(self, pid_path, error)) && wait_ready(self, pid_path, error) &&
           forget_restart(self, error);
}

const EbSetupStep eb_setup_step_daemon = {
    .id = "incusd",
    .title = "incusd",
    .undo_hint = "it is stopped, when nothing of others is in it",
    .check = check_daemon,
    .apply = apply_daemon,
    .undo = undo_daemon_step,
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

    return eb_setup_record(self, &eb_setup_step_group, "member", "incus", NULL, self->account, error) &&
           eb_run(argv, 30000, NULL, error);
}

static EbUndone
undo_membership(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    const char *argv[] = {"gpasswd", "--delete", entry->made, entry->name, NULL};

    if (entry->made == NULL || !is_member(entry->name, entry->made))
        return EB_UNDO_DONE;
    eb_findings_change(findings, "%s %s %s the group %s", self->options.plan ? "take" : "took", entry->made, "out of",
                       entry->name);
    return self->options.plan || eb_run(argv, 30000, NULL, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

const EbSetupStep eb_setup_step_group = {
    .id = "group",
    .title = "membership in the group incus",
    .undo_hint = "the account leaves the group",
    .check = check_group,
    .apply = apply_group,
    .undo = undo_membership,
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

/* @pid_path: (nullable): no longer than this process lives */
static gboolean
wait_listening(const char *socket, const char *pid_path, guint tenths)
{
    for (; tenths > 0; tenths--) {
        if (is_listening(socket))
            return TRUE;
        if (pid_path != NULL && !eb_daemon_process_alive(pid_path))
            return FALSE;
        g_usleep(100 * 1000);
    }
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
    const char *unit = find_unit(self, USER_UNITS);
    g_autofree char *pid_path = pid_file(self, "incus-user");
    g_autofree char *socket = g_build_filename(self->daemon_dir, "unix.socket.user", NULL);
    const char *argv[] = {USER_DAEMON, "--group", "incus", NULL};

    if (unit != NULL) {
        if (!record_daemon(self, &eb_setup_step_user_socket, unit, error) ||
            !eb_supervisor_start(self->supervisor, unit, 30000, error))
            return FALSE;
    } else if (wait_listening(socket, pid_path, 30)) {
        return TRUE; /* an interrupted run started it a moment ago */
    } else if (!eb_daemon_process_stop(pid_path, SIGTERM, 5000, error) ||
               !start_daemon(self, &eb_setup_step_user_socket, argv, pid_path, error)) {
        return FALSE;
    }
    if (wait_listening(socket, unit == NULL ? pid_path : NULL, 150))
        return TRUE;
    eb_set_error(error, EB_ERROR_FAILED, "provision.user-socket", "incus-user does not listen on %s: its log is %s",
                 socket, self->private ? "incus-user.out beside it" : "/var/log/incus-user.out");
    return FALSE;
}

const EbSetupStep eb_setup_step_user_socket = {
    .id = "incus-user",
    .title = "incus-user",
    .undo_hint = "it is stopped, when no other account uses it",
    .check = check_user_socket,
    .apply = apply_user_socket,
    .undo = undo_daemon_step,
};

/* --- stopping --- */

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
