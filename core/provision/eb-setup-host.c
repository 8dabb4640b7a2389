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

/* --- packages --- */

static const struct {
    const char *program;
    const char *package;
} PROGRAMS[] = {
    {"/usr/libexec/incus/incusd", "incus-base"},
    {"newuidmap", "uidmap"},
    {"mkfs.btrfs", "btrfs-progs"},
    {"lxcfs", "lxcfs"},
    {"mmdebstrap", "mmdebstrap"},
    {"tar", "tar"},
};

static gboolean
check_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GString) packages = g_string_new(NULL);

    for (guint i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autofree char *path = eb_run_find(PROGRAMS[i].program);
        if (path == NULL)
            g_string_append_printf(packages, " %s", PROGRAMS[i].package);
    }
    if (packages->len > 0)
        eb_findings_change(findings, "packages are needed first: apt-get install%s", packages->str);
    return TRUE;
}

static gboolean
apply_packages(EbSetup *self, EbFindings *findings, GError **error)
{
    eb_set_error(error, EB_ERROR_CONFIG, "provision.packages", "%s (in a clone of the sources: make deps)",
                 (const char *)findings->changes->pdata[0]);
    return FALSE;
}

const EbSetupStep eb_setup_step_packages = {
    .id = "packages",
    .title = "programs this host needs",
    .undo_hint = "apt-get remove the packages named",
    .check = check_packages,
    .apply = apply_packages,
};

/* --- account --- */

static gboolean
check_account(EbSetup *self, EbFindings *findings, GError **error)
{
    const struct passwd *entry = getpwnam(self->account);

    if (entry == NULL) {
        eb_findings_change(findings, "make the system account %s with a group of its own, home %s/home, no shell",
                           self->account, self->state_dir);
        return TRUE;
    }
    if (entry->pw_uid == 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.account",
                     "the account %s is root: name another in [service] account", self->account);
        return FALSE;
    }
    eb_findings_note(findings, "account %s, uid %u", self->account, (guint)entry->pw_uid);
    return TRUE;
}

/* The guest's uid and gid 1000 are mapped to the account's, which is simplest when both are one number. */
static guint
free_id(void)
{
    for (guint id = 999; id >= 100; id--)
        if (getpwuid(id) == NULL && getgrgid(id) == NULL)
            return id;
    return 0;
}

static gboolean
apply_account(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *home = g_build_filename(self->state_dir, "home", NULL);
    guint id = free_id();
    g_autofree char *number = g_strdup_printf("%u", id);
    const char *group_argv[] = {"groupadd", "--system", "--gid", number, self->account, NULL};
    const char *user_argv[] = {"useradd",
                               "--system",
                               "--uid",
                               number,
                               "--gid",
                               self->account,
                               "--home-dir",
                               home,
                               "--no-create-home",
                               "--shell",
                               "/usr/sbin/nologin",
                               "--comment",
                               "errand-box sessions",
                               self->account,
                               NULL};

    if (id == 0) {
        eb_set_error(error, EB_ERROR_QUOTA, "provision.account", "no system id between 100 and 999 is free");
        return FALSE;
    }
    if (getgrnam(self->account) != NULL) {
        const struct group *group = getgrnam(self->account);
        g_free(number);
        number = g_strdup_printf("%u", (guint)group->gr_gid);
        user_argv[3] = number;
    } else if (!eb_run(group_argv, 30000, NULL, error)) {
        return FALSE;
    }
    return eb_run(user_argv, 30000, NULL, error);
}

const EbSetupStep eb_setup_step_account = {
    .id = "account",
    .title = "service account",
    .undo_hint = "userdel ACCOUNT",
    .check = check_account,
    .apply = apply_account,
};

/* --- directories --- */

/* (transfer full) (array zero-terminated=1): parents first. All belong to the account alone. */
static char **
list_directories(EbSetup *self)
{
    GPtrArray *list = g_ptr_array_new();

    g_ptr_array_add(list, g_strdup(self->state_dir));
    g_ptr_array_add(list, g_build_filename(self->state_dir, "home", NULL));
    g_ptr_array_add(list, g_build_filename(self->state_dir, "sessions", NULL));
    g_ptr_array_add(list, g_build_filename(self->state_dir, "try", NULL));
    g_ptr_array_add(list, g_strdup(self->project_root));
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(list, FALSE);
}

/* Everything above must let the account through. */
static gboolean
check_parents(EbSetup *self, const char *path, EbFindings *findings, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    struct stat info;

    for (;;) {
        char *next;
        if (stat(parent, &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & 0001) == 0) {
            uid_t uid;
            gid_t gid;
            if (!eb_setup_account_ids(self, &uid, &gid) || info.st_uid != uid) {
                eb_set_error(
                    error, EB_ERROR_CONFIG, "provision.directory",
                    "%s is closed to the account %s (mode %04o): choose another place or open it with chmod o+x",
                    parent, self->account, info.st_mode & 07777);
                return FALSE;
            }
        }
        if (strcmp(parent, "/") == 0)
            return TRUE;
        next = g_path_get_dirname(parent);
        g_free(parent);
        parent = next;
    }
}

static gboolean
check_directories(EbSetup *self, EbFindings *findings, GError **error)
{
    g_auto(GStrv) list = list_directories(self);
    uid_t uid = 0;
    gid_t gid = 0;
    gboolean known = eb_setup_account_ids(self, &uid, &gid);

    for (guint i = 0; list[i] != NULL; i++) {
        struct stat info;
        if (lstat(list[i], &info) < 0) {
            eb_findings_change(findings, "make the directory %s (0700, %s)", list[i], self->account);
            continue;
        }
        if (!S_ISDIR(info.st_mode)) {
            eb_set_error(error, EB_ERROR_CONFIG, "provision.directory", "%s is in the way: it is no directory",
                         list[i]);
            return FALSE;
        }
        if (known && info.st_uid != uid && info.st_uid != 0) {
            eb_set_error(error, EB_ERROR_CONFIG, "provision.directory",
                         "%s belongs to uid %u, not to %s: choose another", list[i], (guint)info.st_uid, self->account);
            return FALSE;
        }
        if (!known || info.st_uid != uid || info.st_gid != gid || (info.st_mode & 07777) != 0700)
            eb_findings_change(findings, "give %s to %s alone (0700)", list[i], self->account);
    }
    return check_parents(self, self->state_dir, findings, error) &&
           check_parents(self, self->project_root, findings, error);
}

static gboolean
make_directory(const char *path, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    int fd = -1;
    gboolean ok;

    if (g_mkdir_with_parents(parent, 0755) == 0 && (mkdir(path, 0700) == 0 || errno == EEXIST))
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ok = fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, 0700) == 0;
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

static gboolean
apply_directories(EbSetup *self, EbFindings *findings, GError **error)
{
    g_auto(GStrv) list = list_directories(self);
    uid_t uid;
    gid_t gid;

    if (!eb_setup_account_ids(self, &uid, &gid)) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "provision.account", "the account %s does not exist", self->account);
        return FALSE;
    }
    for (guint i = 0; list[i] != NULL; i++)
        if (!make_directory(list[i], uid, gid, error))
            return FALSE;
    return TRUE;
}

const EbSetupStep eb_setup_step_directories = {
    .id = "directories",
    .title = "state and project directories",
    .undo_hint = "rm -r the directories named (sessions and projects are in them)",
    .check = check_directories,
    .apply = apply_directories,
};

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
append_range(const char *file, const char *line, GError **error)
{
    g_autofree char *old = NULL;
    g_autofree char *text = NULL;
    int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    gboolean ok;

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
            if (!append_range(FILES[i], EB_ID_RANGES_ROOT, error))
                return FALSE;
            self->ranges_changed = TRUE;
        }
        if (!eb_id_ranges_contains(text, "root", one) && !append_range(FILES[i], line, error))
            return FALSE;
    }
    return TRUE;
}

const EbSetupStep eb_setup_step_ranges = {
    .id = "ranges",
    .title = "id ranges of guests",
    .undo_hint = "remove the lines named, unless other containers use them",
    .check = check_ranges,
    .apply = apply_ranges,
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

static gboolean
apply_kernel(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GString) text = g_string_new("# written by errand-box setup\n");

    for (guint i = 0; i < G_N_ELEMENTS(SETTINGS); i++) {
        guint64 value;
        g_autofree char *wanted = g_strdup_printf("%" G_GUINT64_FORMAT "\n", SETTINGS[i].wanted);
        int fd;

        g_string_append_printf(text, "%s = %s", SETTINGS[i].name, wanted);
        if (!read_setting(SETTINGS[i].path, &value) || value >= SETTINGS[i].wanted)
            continue;
        fd = open(SETTINGS[i].path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, wanted, strlen(wanted)) < 0) {
            eb_set_error(error, EB_ERROR_FAILED, "provision.kernel", "%s: %s", SETTINGS[i].path, g_strerror(errno));
            if (fd >= 0)
                close(fd);
            return FALSE;
        }
        close(fd);
    }
    g_mkdir_with_parents("/etc/sysctl.d", 0755);
    if (g_file_set_contents_full(SETTINGS_FILE, text->str, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, error))
        return TRUE;
    eb_error_convert(error, "provision.kernel", NULL);
    return FALSE;
}

const EbSetupStep eb_setup_step_kernel = {
    .id = "kernel",
    .title = "kernel settings",
    .undo_hint = "rm " SETTINGS_FILE " and set the old values",
    .check = check_kernel,
    .apply = apply_kernel,
};
