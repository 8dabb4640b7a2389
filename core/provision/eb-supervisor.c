/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-worker.h"
#include "core/provision/eb-run.h"

/* Beyond the time that a supervisor was asked to wait itself. */
#define GRACE_MS 2000
#define MAX_LOG (16 * 1024)
#define MAX_SMALL_FILE 4096

/* Where distributions and container images that use s6 keep the scan directory. */
static const char *const SCAN_DIRS[] = {"/run/service", "/run/s6/services", "/var/run/s6/services",
                                        "/service",     "/etc/service",     "/var/service"};

struct _EbSupervisor {
    GObject parent_instance;
    EbSupervisorKind kind;
    char *systemctl;  /* systemd */
    char *scan_dir;   /* s6 */
    EbWorker *worker; /* (nullable): until something is asked that does not block */
};

G_DEFINE_FINAL_TYPE(EbSupervisor, eb_supervisor, G_TYPE_OBJECT)

const char *
eb_supervisor_kind_to_string(EbSupervisorKind kind)
{
    static const char *const NAMES[] = {"none", "systemd", "s6"};

    return NAMES[kind];
}

static void
eb_supervisor_finalize(GObject *object)
{
    EbSupervisor *self = EB_SUPERVISOR(object);

    g_clear_object(&self->worker);
    g_free(self->systemctl);
    g_free(self->scan_dir);
    G_OBJECT_CLASS(eb_supervisor_parent_class)->finalize(object);
}

static void
eb_supervisor_class_init(EbSupervisorClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_supervisor_finalize;
}

static void
eb_supervisor_init(EbSupervisor *self)
{
}

/* --- finding it --- */

/* Services below a directory that others can write would be theirs to choose. */
static gboolean
is_roots_alone(const char *path)
{
    g_autofree char *real = realpath(path, NULL);
    g_autofree char *at = g_strdup(real);

    for (gboolean leaf = TRUE; at != NULL; leaf = FALSE) {
        struct stat info;
        gboolean sticky;
        if (lstat(at, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != 0)
            return FALSE;
        /* In a sticky directory (/tmp) others cannot replace what is root's. */
        sticky = !leaf && (info.st_mode & S_ISVTX) != 0;
        if ((info.st_mode & 022) != 0 && !sticky)
            return FALSE;
        if (strcmp(at, "/") == 0)
            return TRUE;
        char *parent = g_path_get_dirname(at);
        g_free(at);
        at = parent;
    }
    return FALSE;
}

/* Somebody reads the control pipe of a scan directory as long as an s6-svscan lives there. Another user than root
 * cannot look, and takes the directory's word for it. */
static gboolean
is_scanned(const char *scan_dir)
{
    g_autofree char *control = g_build_filename(scan_dir, ".s6-svscan", "control", NULL);
    int fd = open(control, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno == EACCES;
    close(fd);
    return TRUE;
}

EbSupervisor *
eb_supervisor_find(const char *scan_dir, GError **error)
{
    g_autoptr(EbSupervisor) self = g_object_new(EB_TYPE_SUPERVISOR, NULL);
    const char *named = scan_dir != NULL && *scan_dir != '\0' ? scan_dir : g_getenv(EB_SUPERVISOR_S6_VARIABLE);

    if (named != NULL && *named != '\0') {
        gboolean ours = is_roots_alone(named);
        if (!ours || !is_scanned(named)) {
            eb_set_error(error, EB_ERROR_CONFIG, "supervisor.scan-dir", "%s: %s", named,
                         ours ? "no s6-svscan runs there" : "must be a directory that root alone can write");
            return NULL;
        }
        self->kind = EB_SUPERVISOR_S6;
        self->scan_dir = g_strdup(named);
        return g_steal_pointer(&self);
    }
    /* What sd_booted(3) looks at. */
    if (g_file_test("/run/systemd/system", G_FILE_TEST_IS_DIR))
        return eb_supervisor_new_systemd("systemctl");
    for (guint i = 0; i < G_N_ELEMENTS(SCAN_DIRS); i++) {
        if (!is_roots_alone(SCAN_DIRS[i]) || !is_scanned(SCAN_DIRS[i]))
            continue;
        self->kind = EB_SUPERVISOR_S6;
        self->scan_dir = g_strdup(SCAN_DIRS[i]);
        break;
    }
    return g_steal_pointer(&self);
}

EbSupervisor *
eb_supervisor_new_systemd(const char *systemctl)
{
    EbSupervisor *self = g_object_new(EB_TYPE_SUPERVISOR, NULL);

    self->kind = EB_SUPERVISOR_SYSTEMD;
    self->systemctl = g_strdup(systemctl);
    return self;
}

EbSupervisorKind
eb_supervisor_get_kind(EbSupervisor *self)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), EB_SUPERVISOR_NONE);
    return self->kind;
}

const char *
eb_supervisor_get_scan_dir(EbSupervisor *self)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), NULL);
    return self->scan_dir;
}

/* --- what both kinds share --- */

/* A name, never a path or an option. */
static gboolean
is_unit_name(const char *unit)
{
    return unit != NULL && g_ascii_isalnum(unit[0]) && strlen(unit) < 200 &&
           strspn(unit, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") == strlen(unit);
}

static gboolean
check_unit(EbSupervisor *self, const char *unit, GError **error)
{
    if (!is_unit_name(unit)) {
        g_autofree char *shown = eb_log_escape(unit != NULL ? unit : "", -1, 80);
        eb_set_error(error, EB_ERROR_INVALID, "supervisor.unit", "\"%s\" is not the name of a service", shown);
        return FALSE;
    }
    if (self->kind == EB_SUPERVISOR_NONE) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "supervisor.none", "%s: no supervisor (systemd, s6) runs here", unit);
        return FALSE;
    }
    return TRUE;
}

static char *
systemd_name(const char *unit)
{
    return strchr(unit, '.') != NULL ? g_strdup(unit) : g_strconcat(unit, ".service", NULL);
}

/* @verb: "start", "daemon-reload", ...; @unit: (nullable) */
static gboolean
run_systemctl(EbSupervisor *self, const char *verb, const char *unit, guint deadline_ms, GError **error)
{
    g_autofree char *name = unit != NULL ? systemd_name(unit) : NULL;
    const char *argv[] = {self->systemctl, "--no-ask-password", "--quiet", verb, name, NULL};

    return eb_run(argv, deadline_ms, NULL, error);
}

static char *
s6_dir(EbSupervisor *self, const char *unit)
{
    return g_build_filename(self->scan_dir, unit, NULL);
}

static gboolean
s6_notifies(const char *dir)
{
    g_autofree char *file = g_build_filename(dir, "notification-fd", NULL);

    return g_file_test(file, G_FILE_TEST_EXISTS);
}

/* Is there an s6-supervise for @dir? */
static gboolean
s6_is_supervised(const char *dir)
{
    const char *argv[] = {"s6-svok", dir, NULL};

    return eb_run(argv, EB_SUPERVISOR_QUERY_MS, NULL, NULL);
}

/* @command: "-u" and the like; @wait: (nullable): "-wU": waits up to @deadline_ms for that */
static gboolean
run_svc(const char *dir, const char *wait, const char *command, guint deadline_ms, GError **error)
{
    g_autofree char *ms = g_strdup_printf("%u", deadline_ms);
    const char *waiting[] = {"s6-svc", wait, "-T", ms, command, dir, NULL};
    const char *plain[] = {"s6-svc", command, dir, NULL};

    return eb_run(wait != NULL ? waiting : plain, deadline_ms + GRACE_MS, NULL, error);
}

/* --- asking --- */

static gboolean
query_systemd(EbSupervisor *self, const char *unit, EbUnitStatus *status, GError **error)
{
    g_autofree char *name = systemd_name(unit);
    g_autofree char *text = NULL;
    const char *argv[] = {self->systemctl,
                          "show",
                          "--no-pager",
                          "--timestamp=unix",
                          "--property=" EB_UNIT_SYSTEMD_PROPERTIES,
                          name,
                          NULL};

    return eb_run(argv, EB_SUPERVISOR_QUERY_MS, &text, error) && eb_unit_parse_systemd(text, status, error);
}

/* (transfer full) (nullable): the first line of a small file that root wrote. */
static char *
read_first_line(const char *path)
{
    char text[MAX_SMALL_FILE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    gssize n = -1;

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == 0)
        n = read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return g_strdup(text);
}

static gboolean
query_s6(EbSupervisor *self, const char *unit, EbUnitStatus *status, GError **error)
{
    g_autofree char *dir = s6_dir(self, unit);
    g_autofree char *supervise = g_build_filename(dir, "supervise", NULL);
    g_autofree char *config = g_build_filename(dir, "env", "ERRAND_BOX_CONFIG", NULL);
    g_autofree char *text = NULL;
    const char *argv[] = {"s6-svstat", "-o", EB_UNIT_S6_FIELDS, dir, NULL};
    struct stat info;

    /* Not followed: what it leads to may be closed to whoever asks. */
    if (lstat(dir, &info) < 0)
        return TRUE;
    if (access(supervise, X_OK) < 0 && errno == EACCES) {
        eb_set_error(error, EB_ERROR_DENIED, "supervisor.denied", "only root can ask s6 about %s", unit);
        return FALSE;
    }
    if (!s6_is_supervised(dir))
        status->state = EB_UNIT_DOWN;
    else if (!eb_run(argv, EB_SUPERVISOR_QUERY_MS, &text, error) ||
             !eb_unit_parse_s6(text, s6_notifies(dir), g_get_real_time() / G_USEC_PER_SEC, status, error))
        return FALSE;
    status->config = read_first_line(config);
    return TRUE;
}

gboolean
eb_supervisor_query(EbSupervisor *self, const char *unit, EbUnitStatus *status, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self) && status != NULL, FALSE);

    *status = (EbUnitStatus){.exit_code = -1};
    if (self->kind == EB_SUPERVISOR_NONE)
        return TRUE;
    if (!check_unit(self, unit, error))
        return FALSE;
    return self->kind == EB_SUPERVISOR_SYSTEMD ? query_systemd(self, unit, status, error)
                                               : query_s6(self, unit, status, error);
}

gboolean
eb_supervisor_has_unit(EbSupervisor *self, const char *unit)
{
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    return eb_supervisor_query(self, unit, &status, NULL) && status.state != EB_UNIT_MISSING;
}

/* --- telling --- */

gboolean
eb_supervisor_reload(EbSupervisor *self, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), FALSE);
    const char *argv[] = {"s6-svscanctl", "-an", self->scan_dir, NULL};

    if (self->kind == EB_SUPERVISOR_SYSTEMD)
        return run_systemctl(self, "daemon-reload", NULL, 30000, error);
    return self->kind == EB_SUPERVISOR_NONE || eb_run(argv, EB_SUPERVISOR_QUERY_MS, NULL, error);
}

/* A directory that s6-svscan has not looked at yet gets its s6-supervise. */
static gboolean
s6_supervise(EbSupervisor *self, const char *dir, const char *unit, GError **error)
{
    if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "supervisor.missing", "s6 has no service %s in %s", unit,
                     self->scan_dir);
        return FALSE;
    }
    if (s6_is_supervised(dir))
        return TRUE;
    if (!eb_supervisor_reload(self, error))
        return FALSE;
    for (guint tenths = 0; tenths < 50; tenths++) {
        if (s6_is_supervised(dir))
            return TRUE;
        g_usleep(100 * 1000);
    }
    eb_set_error(error, EB_ERROR_TIMEOUT, "supervisor.scan", "s6-svscan does not take up %s", dir);
    return FALSE;
}

static gboolean
start_systemd(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    /* One that failed too often in a short time would not be started by hand either. */
    if (query_systemd(self, unit, &status, NULL) && status.state == EB_UNIT_FAILED)
        run_systemctl(self, "reset-failed", unit, EB_SUPERVISOR_QUERY_MS, NULL);
    return run_systemctl(self, "start", unit, deadline_ms, error);
}

/* s6-svc says "timed out" in its own words. */
static void
set_late_error(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    if (error == NULL || !query_s6(self, unit, &status, NULL) ||
        (status.state != EB_UNIT_STARTING && status.state != EB_UNIT_STOPPING && status.state != EB_UNIT_WAITING))
        return;
    g_clear_error(error);
    eb_set_error(error, EB_ERROR_TIMEOUT, "supervisor.late", "%s is %s after %u s", unit,
                 eb_unit_state_to_string(status.state), deadline_ms / 1000);
}

/* A directory that s6 has just taken up is started by that alone: to tell it so as well could start it twice. */
static gboolean
wait_first_start(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    gint64 until = g_get_monotonic_time() + (gint64)deadline_ms * 1000;

    for (;;) {
        g_auto(EbUnitStatus) status = {.exit_code = -1};
        if (!query_s6(self, unit, &status, error))
            return FALSE;
        if (status.state == EB_UNIT_READY)
            return TRUE;
        if (status.state == EB_UNIT_FAILED || status.state == EB_UNIT_DOWN) {
            eb_set_error(error, EB_ERROR_FAILED, "supervisor.ended", "%s ended while it started", unit);
            return FALSE;
        }
        if (g_get_monotonic_time() > until) {
            eb_set_error(error, EB_ERROR_TIMEOUT, "supervisor.late", "%s is %s after %u s", unit,
                         eb_unit_state_to_string(status.state), deadline_ms / 1000);
            return FALSE;
        }
        g_usleep(50 * 1000);
    }
}

static gboolean
start_s6(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_autofree char *dir = s6_dir(self, unit);
    g_autofree char *down = g_build_filename(dir, "down", NULL);
    gboolean fresh = !s6_is_supervised(dir);

    if (!s6_supervise(self, dir, unit, error))
        return FALSE;
    if (fresh && access(down, F_OK) < 0)
        return wait_first_start(self, unit, deadline_ms, error);
    if (run_svc(dir, s6_notifies(dir) ? "-wU" : "-wu", "-u", deadline_ms, error))
        return TRUE;
    set_late_error(self, unit, deadline_ms, error);
    return FALSE;
}

gboolean
eb_supervisor_start(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), FALSE);

    if (!check_unit(self, unit, error))
        return FALSE;
    return self->kind == EB_SUPERVISOR_SYSTEMD ? start_systemd(self, unit, deadline_ms, error)
                                               : start_s6(self, unit, deadline_ms, error);
}

gboolean
eb_supervisor_stop(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), FALSE);

    if (!check_unit(self, unit, error))
        return FALSE;
    if (self->kind == EB_SUPERVISOR_SYSTEMD)
        return run_systemctl(self, "stop", unit, deadline_ms, error);
    g_autofree char *dir = s6_dir(self, unit);
    if (!g_file_test(dir, G_FILE_TEST_IS_DIR) || !s6_is_supervised(dir) ||
        run_svc(dir, "-wD", "-d", deadline_ms, error))
        return TRUE;
    set_late_error(self, unit, deadline_ms, error);
    return FALSE;
}

static gboolean
restart_s6(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_autofree char *dir = s6_dir(self, unit);
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    if (!query_s6(self, unit, &status, error))
        return FALSE;
    if (status.pid == 0)
        return start_s6(self, unit, deadline_ms, error);
    if (run_svc(dir, s6_notifies(dir) ? "-wR" : "-wr", "-r", deadline_ms, error))
        return TRUE;
    set_late_error(self, unit, deadline_ms, error);
    return FALSE;
}

gboolean
eb_supervisor_restart(EbSupervisor *self, const char *unit, guint deadline_ms, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), FALSE);

    if (!check_unit(self, unit, error))
        return FALSE;
    return self->kind == EB_SUPERVISOR_SYSTEMD ? run_systemctl(self, "restart", unit, deadline_ms, error)
                                               : restart_s6(self, unit, deadline_ms, error);
}

gboolean
eb_supervisor_set_enabled(EbSupervisor *self, const char *unit, gboolean enabled, GError **error)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), FALSE);

    if (!check_unit(self, unit, error))
        return FALSE;
    return self->kind != EB_SUPERVISOR_SYSTEMD ||
           run_systemctl(self, enabled ? "enable" : "disable", unit, 30000, error);
}

/* --- its log --- */

static char *
read_tail(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    g_autofree char *text = g_malloc(MAX_LOG + 1);
    struct stat info;
    gssize n = -1;

    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        n = pread(fd, text, MAX_LOG, MAX(info.st_size - MAX_LOG, 0));
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return NULL;
    text[n] = '\0';
    return g_steal_pointer(&text);
}

/* (transfer full) (nullable) */
static char *
s6_log_file(EbSupervisor *self, const char *unit)
{
    g_autofree char *named = g_build_filename(self->scan_dir, unit, "log", "logdir", NULL);
    g_autofree char *directory = read_first_line(named);

    return directory != NULL ? g_build_filename(directory, "current", NULL) : NULL;
}

char *
eb_supervisor_where_log(EbSupervisor *self, const char *unit)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), NULL);

    if (!check_unit(self, unit, NULL))
        return NULL;
    return self->kind == EB_SUPERVISOR_S6 ? s6_log_file(self, unit) : g_strdup_printf("journalctl -u %s", unit);
}

char *
eb_supervisor_read_log(EbSupervisor *self, const char *unit)
{
    g_return_val_if_fail(EB_IS_SUPERVISOR(self), NULL);

    if (!check_unit(self, unit, NULL))
        return NULL;
    if (self->kind == EB_SUPERVISOR_S6) {
        g_autofree char *path = s6_log_file(self, unit);
        return path != NULL ? read_tail(path) : NULL;
    }
    g_autofree char *name = systemd_name(unit);
    const char *argv[] = {"journalctl", "--no-pager", "--quiet", "--output=cat", "--lines=60", "--unit", name, NULL};
    char *text = NULL;
    return eb_run(argv, EB_SUPERVISOR_QUERY_MS, &text, NULL) ? text : NULL;
}

/* --- in a thread --- */

/* Most questions that may wait at one time: whoever asks has a rhythm of seconds. */
#define MAX_QUEUE 16

typedef struct {
    EbSupervisor *supervisor; /* the task's source, which the task holds; never changes */
    char *unit;
    guint deadline_ms;
} Order;

static void
order_free(gpointer data)
{
    Order *order = data;

    g_free(order->unit);
    g_free(order);
}

static void
status_free(gpointer data)
{
    eb_unit_status_clear(data);
    g_free(data);
}

static void
run_in_thread(EbSupervisor *self, GTask *task, const char *unit, guint deadline_ms, EbWorkerFunc func)
{
    Order *order = g_new0(Order, 1);

    order->supervisor = self;
    order->unit = g_strdup(unit);
    order->deadline_ms = deadline_ms;
    g_task_set_task_data(task, order, order_free);
    if (self->worker == NULL)
        self->worker = eb_worker_new("supervisor", MAX_QUEUE);
    eb_worker_run(self->worker, task, func);
}

static void
query_job(GTask *task)
{
    const Order *order = g_task_get_task_data(task);
    EbUnitStatus *status = g_new0(EbUnitStatus, 1);
    GError *error = NULL;

    if (eb_supervisor_query(order->supervisor, order->unit, status, &error)) {
        g_task_return_pointer(task, status, status_free);
    } else {
        status_free(status);
        g_task_return_error(task, error);
    }
}

void
eb_supervisor_query_async(EbSupervisor *self, const char *unit, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
    g_return_if_fail(EB_IS_SUPERVISOR(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, eb_supervisor_query_async);
    run_in_thread(self, task, unit, 0, query_job);
}

gboolean
eb_supervisor_query_finish(EbSupervisor *self, GAsyncResult *result, EbUnitStatus *status, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    EbUnitStatus *found = g_task_propagate_pointer(G_TASK(result), error);

    if (found == NULL)
        return FALSE;
    *status = *found;
    g_free(found);
    return TRUE;
}

static void
restart_job(GTask *task)
{
    const Order *order = g_task_get_task_data(task);
    GError *error = NULL;

    if (eb_supervisor_restart(order->supervisor, order->unit, order->deadline_ms, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

void
eb_supervisor_restart_async(EbSupervisor *self, const char *unit, guint deadline_ms, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_SUPERVISOR(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, eb_supervisor_restart_async);
    run_in_thread(self, task, unit, deadline_ms, restart_job);
}

gboolean
eb_supervisor_restart_finish(EbSupervisor *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), FALSE);
    return g_task_propagate_boolean(G_TASK(result), error);
}
