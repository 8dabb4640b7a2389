/* SPDX-License-Identifier: MIT */
#include "core/base/eb-sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/eb-unix.h"

/*
 * Landlock as the kernel defines it. The headers of the oldest supported release know its first version alone, the
 * kernel says at run time what it can.
 */
#define LL_CREATE_RULESET_VERSION (1u << 0)
#define LL_RULE_PATH_BENEATH 1
#define LL_FS_READ_FILE (1ull << 2)
#define LL_FS_READ_DIR (1ull << 3)
#define LL_FS_V1 ((1ull << 13) - 1)
#define LL_FS_REFER (1ull << 13)           /* version 2 */
#define LL_FS_TRUNCATE (1ull << 14)        /* version 3 */
#define LL_FS_IOCTL_DEV (1ull << 15)       /* version 5 */
#define LL_NET_BIND_TCP (1ull << 0)        /* version 4 */
#define LL_SCOPE_ABSTRACT_UNIX (1ull << 0) /* version 6 */
#define LL_SCOPE_SIGNAL (1ull << 1)        /* version 6 */

struct ll_ruleset_attr {
    guint64 handled_access_fs;
    guint64 handled_access_net;
    guint64 scoped;
};

struct ll_path_beneath_attr {
    guint64 allowed_access;
    gint32 parent_fd;
} __attribute__((packed));

gboolean
eb_sandbox_harden(GError **error)
{
    const struct rlimit none = {0, 0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
        setrlimit(RLIMIT_CORE, &none) != 0) {
        eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.harden", "cannot harden this process: %s", g_strerror(errno));
        return FALSE;
    }
    return TRUE;
}

gboolean
eb_sandbox_limit(__rlimit_resource_t resource, guint64 value, GError **error)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) == 0) {
        if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max)
            limit.rlim_max = value;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(resource, &limit) == 0)
            return TRUE;
    }
    eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.limit", "cannot set resource limit %d: %s", (int)resource,
                 g_strerror(errno));
    return FALSE;
}

gboolean
eb_sandbox_drop_capabilities(GError **error)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capset, &head, none) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.capabilities", "cannot give up capabilities: %s",
                 g_strerror(errno));
    return FALSE;
}

guint
eb_sandbox_landlock_abi(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LL_CREATE_RULESET_VERSION);

    return version > 0 ? (guint)version : 0;
}

static void
allow_path(int ruleset, const char *path)
{
    eb_autofd int fd = open(path, O_PATH | O_CLOEXEC);
    struct ll_path_beneath_attr rule = {.allowed_access = LL_FS_READ_FILE, .parent_fd = fd};
    struct stat info;

    if (fd < 0 || fstat(fd, &info) != 0)
        return;
    if (S_ISDIR(info.st_mode))
        rule.allowed_access |= LL_FS_READ_DIR;
    syscall(SYS_landlock_add_rule, ruleset, LL_RULE_PATH_BENEATH, &rule, 0u);
}

gboolean
eb_sandbox_restrict_files(const char *const *readable, GError **error)
{
    guint abi = eb_sandbox_landlock_abi();
    struct ll_ruleset_attr attr = {.handled_access_fs = LL_FS_V1};
    gsize size = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof(guint64) : sizeof(guint64);
    eb_autofd int ruleset = -1;

    if (abi == 0) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "sandbox.no-landlock", "this kernel has no Landlock");
        return FALSE;
    }
    attr.handled_access_fs |= (abi >= 2 ? LL_FS_REFER : 0) | (abi >= 3 ? LL_FS_TRUNCATE : 0);
    attr.handled_access_fs |= abi >= 5 ? LL_FS_IOCTL_DEV : 0;
    attr.handled_access_net = abi >= 4 ? LL_NET_BIND_TCP : 0;
    attr.scoped = abi >= 6 ? LL_SCOPE_ABSTRACT_UNIX | LL_SCOPE_SIGNAL : 0;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0u);
    if (ruleset >= 0) {
        for (gsize i = 0; readable[i] != NULL; i++)
            allow_path(ruleset, readable[i]);
        if (syscall(SYS_landlock_restrict_self, ruleset, 0u) == 0)
            return TRUE;
    }
    eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.landlock", "cannot restrict the file system: %s",
                 g_strerror(errno));
    return FALSE;
}

static int
add_call(scmp_filter_ctx filter, const EbSandboxCall *call)
{
    guint32 action = call->fail_errno == 0                 ? SCMP_ACT_ALLOW
                     : call->fail_errno == EB_SANDBOX_KILL ? SCMP_ACT_KILL_PROCESS
                                                           : SCMP_ACT_ERRNO((guint32)call->fail_errno);
    struct scmp_arg_cmp comparison = {.arg = call->argument};

    switch (call->match) {
    case EB_SANDBOX_EQUAL:
    case EB_SANDBOX_OTHER:
        comparison.op = call->match == EB_SANDBOX_EQUAL ? SCMP_CMP_EQ : SCMP_CMP_NE;
        comparison.datum_a = call->value;
        return seccomp_rule_add_array(filter, action, call->number, 1, &comparison);
    case EB_SANDBOX_MASKED:
        comparison.op = SCMP_CMP_MASKED_EQ;
        comparison.datum_a = call->mask;
        comparison.datum_b = call->value;
        return seccomp_rule_add_array(filter, action, call->number, 1, &comparison);
    case EB_SANDBOX_ANY:
    default:
        return seccomp_rule_add_array(filter, action, call->number, 0, NULL);
    }
}

gboolean
eb_sandbox_filter(const EbSandboxCall *calls, gsize n_calls, gboolean trap, GError **error)
{
    scmp_filter_ctx filter = seccomp_init(trap ? SCMP_ACT_TRAP : SCMP_ACT_KILL_PROCESS);
    int result = filter == NULL ? -ENOMEM : 0;

    /* The library's own choice would end the thread alone. */
    if (result == 0)
        result = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (gsize i = 0; result == 0 && i < n_calls; i++)
        result = add_call(filter, &calls[i]);
    if (result == 0)
        result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (result == 0)
        result = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (result == 0)
        result = seccomp_load(filter);
    if (filter != NULL)
        seccomp_release(filter);
    if (result == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_DEGRADED, "sandbox.seccomp", "cannot load the system call filter: %s",
                 g_strerror(-result));
    return FALSE;
}
