/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/eb-tree-remove.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

/* The service's account and what belongs to it. */

/* What a year of sessions leaves is removed in minutes. */
#define REMOVE_MS (30 * 60 * 1000)

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
    } else if (!eb_setup_record(self, &eb_setup_step_account, "group", self->account, NULL, number, error) ||
               !eb_run(group_argv, 30000, NULL, error)) {
        return FALSE;
    }
    return eb_setup_record(self, &eb_setup_step_account, "user", self->account, NULL, number, error) &&
           eb_run(user_argv, 30000, NULL, error);
}

/* (transfer full) (nullable): why the account has to stay */
static char *
why_account_stays(EbSetup *self, const struct passwd *entry, const char *made)
{
    const char *const places[] = {self->state_dir, self->project_root};
    g_autofree char *uid = g_strdup_printf("%u", (guint)entry->pw_uid);
    pid_t pid = eb_setup_find_process_of(entry->pw_uid);
    struct stat info;

    if (g_strcmp0(uid, made) != 0)
        return g_strdup_printf("its uid is %s, and setup made it with %s", uid, made != NULL ? made : "another");
    for (guint i = 0; i < G_N_ELEMENTS(places); i++)
        if (lstat(places[i], &info) == 0 && info.st_uid == entry->pw_uid && !eb_setup_will_remove(self, places[i]))
            return g_strdup_printf("%s is there and belongs to it", places[i]);
    /* A plan is made while the daemons run. */
    if (pid > 0 && !self->options.plan)
        return g_strdup_printf("process %d runs as it", (int)pid);
    return NULL;
}

static EbUndone
undo_user(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    const struct passwd *user = getpwnam(entry->name);
    const char *argv[] = {"userdel", entry->name, NULL};
    g_autofree char *why = NULL;

    if (user == NULL)
        return EB_UNDO_DONE;
    why = why_account_stays(self, user, entry->made);
    if (why != NULL) {
        eb_findings_note(findings, "left the account %s: %s", entry->name, why);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s the account %s", self->options.plan ? "remove" : "removed", entry->name);
    return self->options.plan || eb_run(argv, 30000, NULL, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

/* userdel takes the group of the same name along, unless the account was never made. */
static EbUndone
undo_group(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    const struct group *group = getgrnam(entry->name);
    const struct passwd *user;
    const char *argv[] = {"groupdel", entry->name, NULL};

    if (group == NULL)
        return EB_UNDO_DONE;
    user = getpwnam(entry->name);
    if (user != NULL && user->pw_gid == group->gr_gid) {
        if (self->options.plan && eb_setup_ledger_find(self->ledger, "user", entry->name) != NULL)
            return EB_UNDO_DONE;
        eb_findings_note(findings, "left the group %s: the account %s is in it", entry->name, entry->name);
        return EB_UNDO_KEPT;
    }
    if (group->gr_mem[0] != NULL) {
        eb_findings_note(findings, "left the group %s: %s is in it", entry->name, group->gr_mem[0]);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s the group %s", self->options.plan ? "remove" : "removed", entry->name);
    return self->options.plan || eb_run(argv, 30000, NULL, error) ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

static EbUndone
undo_account(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    return strcmp(entry->kind, "user") == 0 ? undo_user(self, entry, findings, error)
                                            : undo_group(self, entry, findings, error);
}

const EbSetupStep eb_setup_step_account = {
    .id = "account",
    .title = "service account",
    .undo_hint = "the account and its group go, when nothing of it is left",
    .check = check_account,
    .apply = apply_account,
    .undo = undo_account,
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
make_directory(EbSetup *self, const char *path, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    struct stat info;
    int dir, fd = -1;
    gboolean ok;

    if (!eb_setup_place_directory(self, &eb_setup_step_directories, parent, error))
        return FALSE;
    if (lstat(path, &info) < 0) {
        if (!eb_setup_record(self, &eb_setup_step_directories, "tree", path, NULL, NULL, error))
            return FALSE;
    } else if ((info.st_uid != uid || info.st_gid != gid || (info.st_mode & 07777) != 0700) &&
               eb_setup_ledger_find(self->ledger, "tree", path) == NULL) {
        g_autofree char *before =
            g_strdup_printf("%u:%u:%04o", (guint)info.st_uid, (guint)info.st_gid, info.st_mode & 07777);
        if (!eb_setup_record(self, &eb_setup_step_directories, "owner", path, before, NULL, error))
            return FALSE;
    }
    dir = eb_setup_open_parent(path, error);
    if (dir < 0)
        return FALSE;
    if (mkdirat(dir, name, 0700) == 0 || errno == EEXIST)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ok = fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, 0700) == 0;
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s: %s", path, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    close(dir);
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
        if (!make_directory(self, list[i], uid, gid, error))
            return FALSE;
    return TRUE;
}

/* Entries of a directory, which is not opened through a link; 0 when there is none. */
static guint
count_entries(const char *directory, const char *name)
{
    g_autofree char *path = name != NULL ? g_build_filename(directory, name, NULL) : g_strdup(directory);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    guint n = 0;

    while (stream != NULL) {
        const struct dirent *entry = readdir(stream);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            n++;
    }
    if (stream != NULL)
        closedir(stream);
    return n;
}

/* (transfer full) (nullable): what people would miss */
static char *
describe_data(EbSetup *self)
{
    guint projects = count_entries(self->project_root, NULL);
    guint sessions = count_entries(self->state_dir, "sessions");
    guint tries = count_entries(self->state_dir, "try");

    if (projects + sessions + tries == 0)
        return eb_setup_credentials_stay(self);
    return g_strdup_printf("%u projects, %u sessions and %u tries are in it", projects, sessions, tries);
}

gboolean
eb_setup_will_remove(EbSetup *self, const char *path)
{
    g_autofree char *data = NULL;

    if (!self->options.plan || eb_setup_ledger_find(self->ledger, "tree", path) == NULL)
        return FALSE;
    data = describe_data(self);
    return data == NULL || self->options.remove_data;
}

static EbUndone
undo_tree(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *name = g_path_get_basename(entry->name);
    g_autofree char *data = self->options.remove_data ? NULL : describe_data(self);
    struct stat info;
    guint64 left = 0;
    gboolean ok;
    int dir;

    if (lstat(entry->name, &info) < 0)
        return EB_UNDO_DONE;
    if (data != NULL) {
        /* One line for all of them: it stands at the outermost. */
        if (strcmp(entry->name, self->state_dir) == 0)
            eb_findings_note(findings, "left %s: %s (to remove them too: errand-box setup --undo --yes-data)",
                             entry->name, data);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s %s and all in it", self->options.plan ? "remove" : "removed", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    dir = eb_setup_open_parent(entry->name, error);
    if (dir < 0)
        return EB_UNDO_FAILED;
    ok = eb_tree_remove_at(dir, name, REMOVE_MS, &left, error);
    close(dir);
    if (ok && left > 0)
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory",
                     "%s: %" G_GUINT64_FORMAT " entries cannot be removed", entry->name, left);
    return ok && left == 0 ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

static EbUndone
undo_owner(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    guint uid, gid, mode;
    struct stat info;
    uid_t own_uid = 0;
    gid_t own_gid = 0;
    g_autofree char *name = g_path_get_basename(entry->name);
    gboolean ok;
    int dir, fd;

    if (lstat(entry->name, &info) < 0 || entry->before == NULL ||
        sscanf(entry->before, "%u:%u:%o", &uid, &gid, &mode) != 3)
        return EB_UNDO_DONE;
    if (!eb_setup_account_ids(self, &own_uid, &own_gid) || info.st_uid != own_uid || (info.st_mode & 07777) != 0700) {
        eb_findings_note(findings, "left %s: its owner was changed since", entry->name);
        return EB_UNDO_DONE;
    }
    eb_findings_change(findings, "give %s back (uid %u, mode %04o)", entry->name, uid, mode);
    if (self->options.plan)
        return EB_UNDO_DONE;
    dir = eb_setup_open_parent(entry->name, error);
    if (dir < 0)
        return EB_UNDO_FAILED;
    fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ok = fd >= 0 && fchown(fd, uid, gid) == 0 && fchmod(fd, mode & 07777) == 0;
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.directory", "%s: %s", entry->name, g_strerror(errno));
    if (fd >= 0)
        close(fd);
    close(dir);
    return ok ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

static EbUndone
undo_directories(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    if (strcmp(entry->kind, "tree") == 0)
        return undo_tree(self, entry, findings, error);
    if (strcmp(entry->kind, "owner") == 0)
        return undo_owner(self, entry, findings, error);
    return eb_setup_undo_place(self, entry, findings, error);
}

const EbSetupStep eb_setup_step_directories = {
    .id = "directories",
    .title = "state and project directories",
    .undo_hint = "they go; sessions and projects in them only with --yes-data",
    .check = check_directories,
    .apply = apply_directories,
    .undo = undo_directories,
};

/* --- who runs --- */

pid_t
eb_setup_find_process_of(uid_t uid)
{
    g_autoptr(GDir) proc = g_dir_open("/proc", 0, NULL);
    const char *name;

    while (proc != NULL && (name = g_dir_read_name(proc)) != NULL) {
        g_autofree char *path = g_strdup_printf("/proc/%s", name);
        struct stat info;
        if (g_ascii_isdigit(name[0]) && stat(path, &info) == 0 && info.st_uid == uid)
            return (pid_t)g_ascii_strtoll(name, NULL, 10);
    }
    return 0;
}
