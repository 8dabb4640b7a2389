/* SPDX-License-Identifier: MIT */
#include "core/base/eb-account.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

void
eb_account_free(EbAccount *self)
{
    g_free(self->name);
    g_free(self->home);
    g_free(self);
}

EbAccount *
eb_account_find(const char *name, GError **error)
{
    struct passwd entry, *found = NULL;
    g_autofree char *buffer = g_malloc(65536);
    int failed = getpwnam_r(name, &entry, buffer, 65536, &found);

    if (found == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "account.missing", "there is no account \"%s\"%s%s (errand-box setup)",
                     name, failed != 0 ? ": " : "", failed != 0 ? g_strerror(failed) : "");
        return NULL;
    }
    if (entry.pw_uid == 0 || entry.pw_gid == 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "account.root", "account \"%s\" has the ids of root", name);
        return NULL;
    }
    EbAccount *self = g_new0(EbAccount, 1);
    self->name = g_strdup(name);
    self->uid = entry.pw_uid;
    self->gid = entry.pw_gid;
    self->home = g_strdup(entry.pw_dir);
    return self;
}

gboolean
eb_account_check_caller(const EbAccount *self, GError **error)
{
    if (geteuid() == 0 || (geteuid() == self->uid && getuid() == self->uid))
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "account.caller",
                 "this runs as account \"%s\" or as root, not as uid %u (sudo errand-box ...)", self->name,
                 (guint)geteuid());
    return FALSE;
}

static gboolean
fail(GError **error, const char *what)
{
    eb_set_error(error, EB_ERROR_DENIED, "account.become", "%s: %s", what, g_strerror(errno));
    return FALSE;
}

/* The groups are set while we are root, the ids last; glibc changes every thread of the process. */
static gboolean
drop_root(const EbAccount *self, GError **error)
{
    if (initgroups(self->name, self->gid) != 0)
        return fail(error, "initgroups");
    if (setresgid(self->gid, self->gid, self->gid) != 0)
        return fail(error, "setresgid");
    if (setresuid(self->uid, self->uid, self->uid) != 0)
        return fail(error, "setresuid");
    /* A kernel or a capability setting that lets us back must not pass unseen. */
    if (setresuid(0, 0, 0) == 0 || geteuid() != self->uid || getuid() != self->uid) {
        errno = EPERM;
        return fail(error, "root could not be given up");
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    g_setenv("HOME", self->home, TRUE);
    g_setenv("USER", self->name, TRUE);
    g_setenv("LOGNAME", self->name, TRUE);
    /* Directories of root's session are not ours to use. */
    g_unsetenv("XDG_RUNTIME_DIR");
    g_unsetenv("XDG_CONFIG_HOME");
    g_unsetenv("XDG_CACHE_HOME");
    g_unsetenv("XDG_DATA_HOME");
    g_unsetenv("XDG_STATE_HOME");
    return TRUE;
}

gboolean
eb_account_become(const EbAccount *self, GError **error)
{
    if (!eb_account_check_caller(self, error))
        return FALSE;
    if (geteuid() == 0 && !drop_root(self, error))
        return FALSE;
    umask(077);
    if (chdir("/") != 0)
        return fail(error, "chdir /");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return fail(error, "no_new_privs");
    return TRUE;
}

gboolean
eb_account_protect_process(GError **error)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) != 0)
        return fail(error, "RLIMIT_CORE");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return fail(error, "PR_SET_DUMPABLE");
    return TRUE;
}
