/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/types.h>

#include "check-context.h"
#include "doctor-checks.h"

/* f_type of a unified cgroup hierarchy. */
#define CGROUP2_MAGIC 0x63677270

static EbCheckResult *
check_kernel_version(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *release = eb_host_uname_release(host);
    DcVersion kernel;

    if (!dc_kernel(host, &kernel))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the kernel's version is not known");
    if (dc_version_less(&kernel, 5, 6, 0))
        return eb_check_result_new(EB_CHECK_FAIL, "kernel %s has no openat2, so no disk of a restricted project works",
                                   release);
    if (dc_version_less(&kernel, 5, 12, 0))
        return eb_check_result_new(EB_CHECK_DEGRADED, "kernel %s has no idmapped mounts", release);
    return eb_check_result_new(EB_CHECK_OK, "kernel %s", release);
}

static EbCheckResult *
check_user_namespaces(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 clone = 1, max = 1;

    dc_read_number(host, "/proc/sys/kernel/unprivileged_userns_clone", &clone);
    dc_read_number(host, "/proc/sys/user/max_user_namespaces", &max);
    if (!eb_host_exists(host, "/proc/self/ns/user"))
        return eb_check_result_new(EB_CHECK_FAIL, "this kernel has no user namespaces");
    if (max == 0)
        return eb_check_result_new(EB_CHECK_FAIL, "user.max_user_namespaces is 0");
    if (clone == 0)
        return eb_check_result_new(EB_CHECK_FAIL, "kernel.unprivileged_userns_clone is 0");
    return eb_check_result_new(EB_CHECK_OK, "allowed");
}

static EbCheckResult *
check_seccomp(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *actions = eb_host_read_file(host, "/proc/sys/kernel/seccomp/actions_avail", NULL, NULL);

    if (actions == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "this kernel has no seccomp filters");
    if (strstr(actions, "errno") == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "seccomp cannot answer with an error here: %s", g_strchomp(actions));
    return eb_check_result_new(EB_CHECK_OK, "filters work");
}

/* Controllers of a version 1 or hybrid host: /proc/cgroups, fourth column 1 = enabled. */
static gboolean
controller_v1(const char *table, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(table != NULL ? table : "", "\n", -1);

    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], "\t", 5);
        if (g_strv_length(fields) >= 4 && strcmp(fields[0], name) == 0)
            return fields[3][0] == '1';
    }
    return FALSE;
}

static gboolean
controller_v2(const char *list, const char *name)
{
    g_auto(GStrv) words = g_strsplit_set(list, " \n", -1);

    return g_strv_contains((const char *const *)words, name);
}

static EbCheckResult *
check_controllers(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const NAMES[] = {"memory", "pids", "cpu"};
    g_autofree char *unified = eb_host_read_file(host, "/sys/fs/cgroup/cgroup.controllers", NULL, NULL);
    g_autofree char *table = eb_host_read_file(host, "/proc/cgroups", NULL, NULL);
    g_autoptr(GString) missing = g_string_new(NULL);

    if (unified == NULL && table == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "there are no cgroups");
    for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++)
        if (unified != NULL ? !controller_v2(unified, NAMES[i]) : !controller_v1(table, NAMES[i]))
            g_string_append_printf(missing, " %s", NAMES[i]);
    if (missing->len > 0)
        return eb_check_result_new(EB_CHECK_FAIL, "missing:%s", missing->str);
    return eb_check_result_new(EB_CHECK_OK, "memory, pids and cpu");
}

/* Incus 7 dropped version 1 and then ignores every limit in silence; 6.0 enforces them there. */
static EbCheckResult *
check_hierarchy(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    EbHostSpace space;
    g_autoptr(JsonObject) server = NULL;
    const char *text;
    DcVersion version;

    if (!eb_host_space(host, "/sys/fs/cgroup", &space, NULL))
        return eb_check_result_new(EB_CHECK_SKIPPED, "/sys/fs/cgroup cannot be looked at");
    if (space.type == CGROUP2_MAGIC)
        return eb_check_result_new(EB_CHECK_OK, "unified");
    server = dc_get(host, settings, "/1.0", NULL, &skip);
    if (server == NULL)
        return skip;
    text = eb_json_get_string(eb_json_get_object(server, "environment"), "server_version");
    if (!dc_parse_version(text, &version))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the version of incusd is not known");
    if (version.major >= 7)
        return eb_check_result_new(EB_CHECK_FAIL, "version 1 cgroups: Incus %s ignores every limit there", text);
    return eb_check_result_new(EB_CHECK_OK, "version 1 or mixed: Incus %s enforces limits there too", text);
}

static EbCheckResult *
check_apparmor(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *enabled = eb_host_read_file(host, "/sys/module/apparmor/parameters/enabled", NULL, NULL);

    if (enabled != NULL && enabled[0] == 'Y')
        return eb_check_result_new(EB_CHECK_OK, "on");
    return eb_check_result_new(EB_CHECK_DEGRADED, "%s",
                               enabled == NULL ? "this kernel has no AppArmor" : "AppArmor is off");
}

static EbCheckResult *
check_apparmor_userns(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 value = 0;

    dc_read_number(host, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", &value);
    if (value == 0)
        return eb_check_result_new(EB_CHECK_OK, "not restricted");
    return eb_check_result_new(EB_CHECK_DEGRADED, "kernel.apparmor_restrict_unprivileged_userns is 1");
}

static EbCheckResult *
check_inotify(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 instances = 0, watches = 0;

    if (!dc_read_number(host, "/proc/sys/fs/inotify/max_user_instances", &instances))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the limit cannot be read");
    dc_read_number(host, "/proc/sys/fs/inotify/max_user_watches", &watches);
    if (instances < 1024)
        return eb_check_result_new(EB_CHECK_FAIL,
                                   "fs.inotify.max_user_instances is %" G_GUINT64_FORMAT
                                   ": one guest can use up all of them for the whole host",
                                   instances);
    if (watches < 524288)
        return eb_check_result_new(EB_CHECK_DEGRADED, "fs.inotify.max_user_watches is %" G_GUINT64_FORMAT, watches);
    return eb_check_result_new(EB_CHECK_OK, "%" G_GUINT64_FORMAT " instances, %" G_GUINT64_FORMAT " watches", instances,
                               watches);
}

static EbCheckResult *
check_keys(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 keys = 0, bytes = 0;

    if (!dc_read_number(host, "/proc/sys/kernel/keys/maxkeys", &keys) ||
        !dc_read_number(host, "/proc/sys/kernel/keys/maxbytes", &bytes))
        return eb_check_result_new(EB_CHECK_SKIPPED, "this kernel has no key quota");
    if (keys < 2000 || bytes < 2000000)
        return eb_check_result_new(EB_CHECK_DEGRADED,
                                   "kernel.keys.maxkeys is %" G_GUINT64_FORMAT ", maxbytes %" G_GUINT64_FORMAT, keys,
                                   bytes);
    return eb_check_result_new(EB_CHECK_OK, "%" G_GUINT64_FORMAT " keys", keys);
}

static EbCheckResult *
check_dmesg(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 value = 0;

    if (!dc_read_number(host, "/proc/sys/kernel/dmesg_restrict", &value))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the setting cannot be read");
    if (value == 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "kernel.dmesg_restrict is 0");
    return eb_check_result_new(EB_CHECK_OK, "the kernel's log is for root");
}

static EbCheckResult *
check_protected_links(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 symlinks = 0, hardlinks = 0;

    if (!dc_read_number(host, "/proc/sys/fs/protected_symlinks", &symlinks) ||
        !dc_read_number(host, "/proc/sys/fs/protected_hardlinks", &hardlinks))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the settings cannot be read");
    if (symlinks == 0 || hardlinks == 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "fs.protected_symlinks is %d, fs.protected_hardlinks is %d",
                                   (int)symlinks, (int)hardlinks);
    return eb_check_result_new(EB_CHECK_OK, "both on");
}

/* The soft limit of locked memory, from the table of /proc/self/limits. */
static EbCheckResult *
check_memlock(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *limits = eb_host_read_file(host, "/proc/self/limits", NULL, NULL);
    const char *line = limits != NULL ? strstr(limits, "Max locked memory") : NULL;
    g_autofree char *field = NULL;

    if (line == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the limit cannot be read");
    line += strlen("Max locked memory");
    line += strspn(line, " ");
    field = g_strndup(line, strcspn(line, " \n"));
    /* Each secret takes three pages; 1 MiB holds some eighty. */
    if (strcmp(field, "unlimited") != 0 && g_ascii_strtoull(field, NULL, 10) < 1024 * 1024)
        return eb_check_result_new(EB_CHECK_DEGRADED, "%s bytes may be locked", field);
    return eb_check_result_new(EB_CHECK_OK, "%s", field);
}

static EbCheckResult *
check_max_pids(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint64 pid_max = 0, threads = 0;

    if (!dc_read_number(host, "/proc/sys/kernel/pid_max", &pid_max) ||
        !dc_read_number(host, "/proc/sys/kernel/threads-max", &threads))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the limits cannot be read");
    /* Four guests with 512 each, and as much again for the host. */
    if (MIN(pid_max, threads) < 8192)
        return eb_check_result_new(EB_CHECK_DEGRADED,
                                   "room for %" G_GUINT64_FORMAT " processes and threads on the whole host",
                                   MIN(pid_max, threads));
    return eb_check_result_new(EB_CHECK_OK, "%" G_GUINT64_FORMAT, MIN(pid_max, threads));
}

static gboolean
has_word(const char *line, const char *const *words)
{
    g_auto(GStrv) given = g_strsplit_set(line, " \n", -1);
    for (guint i = 0; given[i] != NULL; i++)
        if (g_strv_contains(words, given[i]))
            return TRUE;
    return FALSE;
}

/* What an instance's seccomp rules cannot close (plugins/incus/README.md): so the host has to be looked at. */
static EbCheckResult *
check_vsock(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const OFF[] = {"ia32_emulation=0", "ia32_emulation=off", "ia32_emulation=n",
                                      "ia32_emulation=false", NULL};
    static const char *const VSOCK[] = {"AF_VSOCK", NULL};
    g_autofree char *protocols = eb_host_read_file(host, "/proc/net/protocols", NULL, NULL);
    g_autofree char *command_line = eb_host_read_file(host, "/proc/cmdline", NULL, NULL);

    if (protocols == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "/proc/net/protocols cannot be read");
    if (!has_word(protocols, VSOCK))
        return eb_check_result_new(EB_CHECK_OK, "no AF_VSOCK");
    if (!eb_host_exists(host, "/proc/sys/abi/vsyscall32"))
        return eb_check_result_new(EB_CHECK_OK, "AF_VSOCK is there, 32-bit system calls are not");
    if (command_line != NULL && has_word(command_line, OFF))
        return eb_check_result_new(EB_CHECK_OK, "AF_VSOCK is there, 32-bit system calls are switched off");
    return eb_check_result_new(EB_CHECK_DEGRADED, "this kernel has AF_VSOCK and takes 32-bit system calls");
}

/* The broker refuses to start without its system call filter, and starts without Landlock: it has no other way to do that. */
static EbCheckResult *
check_broker_sandbox(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const TRAP[] = {"trap", NULL}, *const KILL[] = {"kill_process", NULL};
    g_autofree char *landlock = dc_setting(settings, "kernel.landlock", NULL);
    g_autofree char *actions = eb_host_read_file(host, "/proc/sys/kernel/seccomp/actions_avail", NULL, NULL);
    guint64 version = landlock != NULL ? g_ascii_strtoull(landlock, NULL, 10) : 0;

    if (landlock == NULL || actions == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s",
                                   actions == NULL ? "/proc/sys/kernel/seccomp/actions_avail cannot be read"
                                                   : "the kernel was not asked for Landlock");
    if (!has_word(actions, TRAP) || !has_word(actions, KILL))
        return eb_check_result_new(EB_CHECK_FAIL, "seccomp of this kernel can do \"%s\": brokers do not start",
                                   g_strchomp(actions));
    if (version == 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "no Landlock: brokers are not kept from files");
    /* 4: networks; 6: abstract sockets and signals */
    return eb_check_result_new(EB_CHECK_OK, "Landlock %" G_GUINT64_FORMAT "%s, and seccomp", version,
                               version < 4   ? " (files alone)"
                               : version < 6 ? " (files and networks)"
                                             : "");
}

const DcRow DC_KERNEL_CHECKS[] = {
    DC_ROW(E_01, check_kernel_version),
    DC_ROW(E_02, check_user_namespaces),
    DC_ROW(E_03, check_seccomp),
    DC_ROW(E_04, check_controllers),
    DC_ROW(E_39, check_hierarchy),
    DC_ROW(E_17, check_apparmor),
    DC_ROW(E_49, check_apparmor_userns),
    DC_ROW(E_09, check_inotify),
    DC_ROW(E_34, check_keys),
    DC_ROW(E_35, check_dmesg),
    DC_ROW(E_36, check_protected_links),
    DC_ROW(E_37, check_memlock),
    DC_ROW(E_45, check_max_pids),
    DC_ROW(E_66, check_vsock),
    DC_ROW(E_86, check_broker_sandbox),
    {NULL, NULL, NULL},
};
