/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-id-ranges.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

/* --- id ranges --- */

static gboolean
check_ranges(EbSetup *self, EbFindings *findings, GError **error)
{
    static const char *const FILES[] = {"/etc/subuid", "/etc/subgid"};
    uid_t uid = 0;
    gid_t gid = 0;
    gboolean known = eb_setup_account_ids(self, &uid, &gid);

    for (guint i = 0; i < G_N_ELEMENTS(FILES); i++) {
        g_autofree char *text = NULL;
        guint one = i == 0 ? (guint)uid : (guint)gid;

        g_file_get_contents(FILES[i], &text, NULL, NULL);
        if (eb_id_ranges_largest(text, "root") < EB_ID_RANGES_MIN)
            eb_findings_change(findings, "add " EB_ID_RANGES_ROOT " to %s", FILES[i]);
        if (!known)
            eb_findings_change(findings, "add root:<id of %s>:1 to %s", self->account, FILES[i]);
        else if (!eb_id_ranges_contains(text, "root", one))
            eb_findings_change(findings, "add root:%u:1 to %s", one, FILES[i]);
    }
    return TRUE;
}

static gboolean
append_range(EbSetup *self, const char *file, const char *line, GError **error)
{
    g_autofree char *old = NULL;
    g_autofree char *text = NULL;
    g_autofree char *name = g_strconcat(file, " ", line, NULL);
    gboolean there = g_file_test(file, G_FILE_TEST_EXISTS);
    gboolean ok;
    int fd;

    if (!eb_setup_record(self, &eb_setup_step_ranges, "range", name, there ? "file" : NULL, line, error))
        return FALSE;
    fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    g_file_get_contents(file, &old, NULL, NULL);
    text = g_strdup_printf("%s%s\n", old != NULL && *old != '\0' && !g_str_has_suffix(old, "\n") ? "\n" : "", line);
    /* One write in append mode: an interrupt leaves all of it or nothing. */
    ok = fd >= 0 && write(fd, text, strlen(text)) == (gssize)strlen(text) && fsync(fd) == 0;
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.ranges", "%s: %s", file, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static gboolean
apply_ranges(EbSetup *self, EbFindings *findings, GError **error)
{
    static const char *const FILES[] = {"/etc/subuid", "/etc/subgid"};
    uid_t uid = 0;
    gid_t gid = 0;

    eb_setup_account_ids(self, &uid, &gid);
    for (guint i = 0; i < G_N_ELEMENTS(FILES); i++) {
        g_autofree char *text = NULL;
        guint one = i == 0 ? (guint)uid : (guint)gid;
        g_autofree char *line = g_strdup_printf("root:%u:1", one);

        g_file_get_contents(FILES[i], &text, NULL, NULL);
        if (eb_id_ranges_largest(text, "root") < EB_ID_RANGES_MIN) {
            if (!eb_setup_want_restart(self, error) || !append_range(self, FILES[i], EB_ID_RANGES_ROOT, error))
                return FALSE;
        }
        if (!eb_id_ranges_contains(text, "root", one) && !append_range(self, FILES[i], line, error))
            return FALSE;
    }
    return TRUE;
}

/* Some process of this machine lives in ids that @line gives away: 0 when none does. */
static pid_t
find_user_of_range(const char *line)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    const char *name;

    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL) {
        g_autofree char *path = g_strdup_printf("/proc/%s/uid_map", name);
        g_autofree char *map = NULL;
        if (g_ascii_isdigit(name[0]) && g_file_get_contents(path, &map, NULL, NULL) && eb_id_map_overlaps(map, line))
            return (pid_t)g_ascii_strtoll(name, NULL, 10);
    }
    return 0;
}

/* The file without one line, or no file when there was none and nothing else is in it. */
static gboolean
write_ranges(const char *file, const char *rest, gboolean keep, const struct stat *info, GError **error)
{
    if (*rest == '\0' && !keep) {
        if (unlink(file) == 0)
            return TRUE;
    } else if (!g_file_set_contents_full(file, rest, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error)) {
        eb_error_convert(error, "provision.ranges", NULL);
        return FALSE;
    } else if (chown(file, info->st_uid, info->st_gid) == 0 && chmod(file, info->st_mode & 07777) == 0) {
        return TRUE;
    }
    eb_set_error(error, EB_ERROR_FAILED, "provision.ranges", "%s: %s", file, g_strerror(errno));
    return FALSE;
}

EbUndone
eb_setup_remove_range(EbSetup *self, const char *file, const char *line, gboolean keep_file, EbFindings *findings,
                      GError **error)
{
    g_autofree char *text = NULL;
    g_autofree char *rest = NULL;
    pid_t user = 0;
    struct stat info;

    if (lstat(file, &info) < 0 || !S_ISREG(info.st_mode) || !g_file_get_contents(file, &text, NULL, NULL))
        return EB_UNDO_DONE;
    rest = eb_id_ranges_without(text, line);
    if (rest == NULL)
        return EB_UNDO_DONE;
    if (!self->options.plan)
        user = find_user_of_range(line);
    if (user > 0) {
        eb_findings_note(findings, "left %s in %s: process %d uses it", line, file, (int)user);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s %s from %s", self->options.plan ? "remove" : "removed", line, file);
    return self->options.plan || write_ranges(file, rest, keep_file, &info, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

static EbUndone
undo_range(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *file = g_strndup(entry->name, strcspn(entry->name, " "));

    if (entry->made == NULL)
        return EB_UNDO_DONE;
    return eb_setup_remove_range(self, file, entry->made, entry->before != NULL, findings, error);
}

const EbSetupStep eb_setup_step_ranges = {
    .id = "ranges",
    .title = "id ranges of guests",
    .undo_hint = "the lines named go, unless other containers use them",
    .check = check_ranges,
    .apply = apply_ranges,
    .undo = undo_range,
};

/* --- kernel settings --- */

/* One guest's user can use up the host-wide counts otherwise, for every other guest and for root's own ids too. */
static const struct {
    const char *name;
    const char *path;
    guint64 wanted;
} SETTINGS[] = {
    {"fs.inotify.max_user_instances", "/proc/sys/fs/inotify/max_user_instances", 8192},
    {"fs.inotify.max_user_watches", "/proc/sys/fs/inotify/max_user_watches", 524288},
    {"kernel.keys.maxkeys", "/proc/sys/kernel/keys/maxkeys", 2000},
    {"kernel.keys.maxbytes", "/proc/sys/kernel/keys/maxbytes", 2000000},
    {"vm.max_map_count", "/proc/sys/vm/max_map_count", 262144},
    {"fs.aio-max-nr", "/proc/sys/fs/aio-max-nr", 524288},
    {"fs.protected_symlinks", "/proc/sys/fs/protected_symlinks", 1},
    {"fs.protected_hardlinks", "/proc/sys/fs/protected_hardlinks", 1},
    {"kernel.dmesg_restrict", "/proc/sys/kernel/dmesg_restrict", 1},
};
#define SETTINGS_FILE "/etc/sysctl.d/60-errand-box.conf"

static gboolean
read_setting(const char *path, guint64 *value)
{
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return FALSE;
    *value = g_ascii_strtoull(text, NULL, 10);
    return TRUE;
}

static gboolean
write_setting(const char *path, const char *value, GError **error)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    gboolean ok = fd >= 0 && write(fd, value, strlen(value)) >= 0;

    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.kernel", "%s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static gboolean
check_kernel(EbSetup *self, EbFindings *findings, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        guint64 value;
        if (!read_setting(SETTINGS[i].path, &value))
            continue; /* this kernel lacks it */
        if (value < SETTINGS[i].wanted && access(SETTINGS[i].path, W_OK) == 0)
            eb_findings_change(
                findings, "raise %s from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ", now and in " SETTINGS_FILE,
                SETTINGS[i].name, value, SETTINGS[i].wanted);
        else if (value < SETTINGS[i].wanted)
            eb_findings_degraded(findings, "%s is %" G_GUINT64_FORMAT " and cannot be changed from here",
                                 SETTINGS[i].name, value);
    }
    return TRUE;
}

gboolean
eb_setup_keeps_setting(guint64 now, guint64 wanted, gboolean ours)
{
    return now < wanted || (now == wanted && ours);
}

static gboolean
apply_kernel(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GString) text = g_string_new("# written by errand-box setup\n");

    for (guint i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        guint64 value;
        g_autofree char *wanted = g_strdup_printf("%" G_GUINT64_FORMAT, SETTINGS[i].wanted);
        g_autofree char *before = NULL;

        if (!read_setting(SETTINGS[i].path, &value))
            continue;
        if (eb_setup_keeps_setting(value, SETTINGS[i].wanted,
                                   eb_setup_ledger_find(self->ledger, "sysctl", SETTINGS[i].path) != NULL))
            g_string_append_printf(text, "%s = %s\n", SETTINGS[i].name, wanted);
        if (value >= SETTINGS[i].wanted)
            continue;
        before = g_strdup_printf("%" G_GUINT64_FORMAT, value);
        if (!eb_setup_record(self, &eb_setup_step_kernel, "sysctl", SETTINGS[i].path, before, wanted, error) ||
            !write_setting(SETTINGS[i].path, wanted, error))
            return FALSE;
    }
    return eb_setup_place_file(self, &eb_setup_step_kernel, SETTINGS_FILE, text->str, 0644, 0, error);
}

static EbUndone
undo_kernel(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *wanted = NULL;
    guint64 value;

    if (strcmp(entry->kind, "sysctl") != 0)
        return eb_setup_undo_place(self, entry, findings, error);
    if (!read_setting(entry->name, &value) || entry->before == NULL || entry->made == NULL)
        return EB_UNDO_DONE;
    wanted = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    if (strcmp(wanted, entry->before) == 0)
        return EB_UNDO_DONE;
    if (strcmp(wanted, entry->made) != 0) {
        eb_findings_note(findings, "left %s at %s: it was changed since", entry->name, wanted);
        return EB_UNDO_DONE;
    }
    eb_findings_change(findings, "set %s back to %s", entry->name, entry->before);
    return self->options.plan || write_setting(entry->name, entry->before, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

const EbSetupStep eb_setup_step_kernel = {
    .id = "kernel",
    .title = "kernel settings",
    .undo_hint = SETTINGS_FILE " goes, and the old values are set",
    .check = check_kernel,
    .apply = apply_kernel,
    .undo = undo_kernel,
};
