/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/eb-tree-remove.h"
#include "core/provision/eb-setup-units.h"

/* The service is enabled and started, where a supervisor is there to do it. */

/* A start with a hundred sessions to sweep; a drain; s6-supervise's own end. */
#define START_MS 120000
#define STOP_MS 150000
#define GONE_MS 5000
#define TREE_MS 10000
/* An unaccepted host: every gap, and at the end the line that accepts them. */
#define MAX_LINE 4000

/* --- looking --- */

/* (transfer full): where s6 finds @unit */
static char *
link_path(EbSupervisor *supervisor, const char *unit)
{
    return g_build_filename(eb_supervisor_get_scan_dir(supervisor), unit, NULL);
}

/* Is @unit started with the host? With s6: does the scan directory lead to ours? FALSE with @error: something else is
 * in its place. */
static gboolean
check_enabled(EbSetup *self, EbSupervisor *supervisor, const char *unit, gboolean *enabled, GError **error)
{
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    if (eb_supervisor_get_kind(supervisor) == EB_SUPERVISOR_SYSTEMD) {
        if (!eb_supervisor_query(supervisor, unit, &status, error))
            return FALSE;
        *enabled = status.enabled;
        return TRUE;
    }
    g_autofree char *path = link_path(supervisor, unit);
    g_autofree char *dir = eb_setup_units_service_dir(self, unit);
    g_autofree char *target = g_file_read_link(path, NULL);
    *enabled = g_strcmp0(target, dir) == 0;
    if (*enabled || (target == NULL && access(path, F_OK) < 0))
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "provision.unit", "%s is in the way: it is not the link to %s", path, dir);
    return FALSE;
}

static gboolean
check_start(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;
    EbSupervisor *supervisor = eb_setup_units_supervisor(self, &failure);
    const char *const *names = supervisor != NULL ? eb_setup_units_names(self) : NULL;
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    if (supervisor == NULL)
        return TRUE;
    for (guint i = 0; names[i] != NULL; i++) {
        gboolean enabled = FALSE;
        if (!check_enabled(self, supervisor, names[i], &enabled, error))
            return FALSE;
        if (!enabled)
            eb_findings_change(findings, "start %s with the host", names[i]);
    }
    if (!eb_setup_units_query(self, supervisor, &status, error))
        return FALSE;
    if (self->start_problem != NULL)
        eb_findings_degraded(findings, "%s does not run yet: %s (errand-box up)", EB_SETUP_UNIT_SERVICE,
                             self->start_problem);
    else if (status.state != EB_UNIT_READY)
        eb_findings_change(findings, "start %s", EB_SETUP_UNIT_SERVICE);
    else if (self->units_changed)
        eb_findings_change(findings, "restart %s: its unit changed", EB_SETUP_UNIT_SERVICE);
    else
        eb_findings_note(findings, "%s runs under %s", EB_SETUP_UNIT_SERVICE,
                         eb_supervisor_kind_to_string(eb_supervisor_get_kind(supervisor)));
    return TRUE;
}

/* --- starting --- */

static gboolean
enable(EbSetup *self, EbSupervisor *supervisor, const char *unit, GError **error)
{
    g_autofree char *path = NULL;
    g_autofree char *dir = eb_setup_units_service_dir(self, unit);

    if (eb_supervisor_get_kind(supervisor) == EB_SUPERVISOR_SYSTEMD)
        return eb_setup_record(self, &eb_setup_step_start, "unit", unit, NULL, "enabled", error) &&
               eb_supervisor_set_enabled(supervisor, unit, TRUE, error);
    path = link_path(supervisor, unit);
    if (!eb_setup_record(self, &eb_setup_step_start, "link", path, NULL, dir, error))
        return FALSE;
    if (symlink(dir, path) < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.unit", "%s: %s", path, g_strerror(errno));
        return FALSE;
    }
    return TRUE;
}

/* The host is prepared all the same: what is missing is for the service itself to say, and for `up` to try again. */
static void
note_start_problem(EbSetup *self, EbSupervisor *supervisor, const char *unit, const GError *failure)
{
    g_autofree char *log = eb_supervisor_read_log(supervisor, unit);
    const char *found = log != NULL ? g_strrstr(log, "errand-box: ") : NULL;

    g_free(self->start_problem);
    self->start_problem = found != NULL ? eb_log_escape(found + strlen("errand-box: "),
                                                        (gssize)strcspn(found + strlen("errand-box: "), "\n"), MAX_LINE)
                                        : g_strdup(failure->message);
}

static gboolean
apply_start(EbSetup *self, EbFindings *findings, GError **error)
{
    EbSupervisor *supervisor = eb_setup_units_supervisor(self, error);
    const char *const *names = eb_setup_units_names(self);
    g_autoptr(GError) failure = NULL;

    if (supervisor == NULL)
        return FALSE;
    for (guint i = 0; names[i] != NULL; i++) {
        gboolean enabled = FALSE;
        if (!check_enabled(self, supervisor, names[i], &enabled, error) ||
            (!enabled && !enable(self, supervisor, names[i], error)))
            return FALSE;
    }
    eb_setup_say(self, "starting %s", EB_SETUP_UNIT_SERVICE);
    for (guint i = 0; names[i] != NULL && failure == NULL; i++)
        if (!(self->units_changed ? eb_supervisor_restart : eb_supervisor_start)(supervisor, names[i], START_MS,
                                                                                 &failure))
            note_start_problem(self, supervisor, names[i], failure);
    self->units_changed = FALSE;
    return TRUE;
}

/* --- taking back --- */

/* What s6-supervise keeps in a service directory, and its log: made by neither of us, and of no use to anybody. */
static gboolean
remove_s6_leftovers(const char *dir, GError **error)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    gboolean ok;

    if (fd < 0)
        return TRUE;
    ok = eb_tree_remove_at(fd, "supervise", TREE_MS, NULL, error) &&
         eb_tree_remove_at(fd, "event", TREE_MS, NULL, error);
    close(fd);
    return ok;
}

/* s6-log's own files: "current", "previous", "lock", "state", and "@<time>.s" or ".u". */
static void
remove_logs(const char *dir)
{
    g_autoptr(GDir) files = g_dir_open(dir, 0, NULL);
    const char *name;

    while (files != NULL && (name = g_dir_read_name(files)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        if (strcmp(name, "current") == 0 || strcmp(name, "previous") == 0 || strcmp(name, "lock") == 0 ||
            strcmp(name, "state") == 0 ||
            (name[0] == '@' && (g_str_has_suffix(name, ".s") || g_str_has_suffix(name, ".u"))))
            g_unlink(path);
    }
}

static gboolean
wait_unsupervised(const char *dir, GError **error)
{
    g_autofree char *lock = g_build_filename(dir, "supervise", "control", NULL);

    for (guint tenths = 0; tenths < GONE_MS / 100; tenths++) {
        int fd = open(lock, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return TRUE; /* nobody reads it any more */
        close(fd);
        g_usleep(100 * 1000);
    }
    eb_set_error(error, EB_ERROR_TIMEOUT, "provision.unit", "s6 still supervises %s", dir);
    return FALSE;
}

static EbUndone
undo_link(EbSetup *self, EbSupervisor *supervisor, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *target = g_file_read_link(entry->name, NULL);
    g_autofree char *unit = g_path_get_basename(entry->name);
    g_autofree char *log = g_build_filename(entry->made, "log", NULL);
    g_autofree char *logs = eb_setup_units_log_dir(self, unit);

    if (target != NULL && g_strcmp0(target, entry->made) != 0) {
        eb_findings_note(findings, "left %s: it leads to %s now", entry->name, target);
        return EB_UNDO_KEPT;
    }
    if (target != NULL)
        eb_findings_change(findings, self->options.plan ? "stop %s and take it from s6" : "stopped %s, taken from s6",
                           unit);
    if (self->options.plan)
        return EB_UNDO_DONE;
    if (target != NULL && supervisor != NULL && !eb_supervisor_stop(supervisor, unit, STOP_MS, error))
        return EB_UNDO_FAILED;
    if (target != NULL && g_unlink(entry->name) < 0 && errno != ENOENT) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.unit", "%s: %s", entry->name, g_strerror(errno));
        return EB_UNDO_FAILED;
    }
    if (supervisor != NULL && (!eb_supervisor_reload(supervisor, error) || !wait_unsupervised(entry->made, error) ||
                               !wait_unsupervised(log, error)))
        return EB_UNDO_FAILED;
    if (!remove_s6_leftovers(entry->made, error) || !remove_s6_leftovers(log, error))
        return EB_UNDO_FAILED;
    remove_logs(logs);
    return EB_UNDO_DONE;
}

static EbUndone
undo_unit(EbSetup *self, EbSupervisor *supervisor, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    if (supervisor == NULL || !eb_supervisor_has_unit(supervisor, entry->name))
        return EB_UNDO_DONE;
    eb_findings_change(findings, self->options.plan ? "stop and disable %s" : "stopped and disabled %s", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    return eb_supervisor_stop(supervisor, entry->name, STOP_MS, error) &&
                   eb_supervisor_set_enabled(supervisor, entry->name, FALSE, error)
               ? EB_UNDO_DONE
               : EB_UNDO_FAILED;
}

static EbUndone
undo_start(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    EbSupervisor *supervisor = eb_setup_units_supervisor(self, NULL);

    if (strcmp(entry->kind, "link") == 0 && entry->made != NULL)
        return undo_link(self, supervisor, entry, findings, error);
    if (strcmp(entry->kind, "unit") == 0)
        return undo_unit(self, supervisor, entry, findings, error);
    return eb_setup_undo_place(self, entry, findings, error);
}

const EbSetupStep eb_setup_step_start = {
    .id = "start",
    .title = "the service runs",
    .undo_hint = "errand-box down, and errand-box setup --undo",
    .check = check_start,
    .apply = apply_start,
    .undo = undo_start,
};
