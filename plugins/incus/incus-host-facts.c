/* SPDX-License-Identifier: MIT */
#include "incus-probe.h"

#include <stdio.h>

static char *
read_text(EbHost *host, const char *path)
{
    return eb_host_read_file(host, path, NULL, NULL);
}

static gboolean
has_word(const char *text, const char *word)
{
    g_auto(GStrv) words = g_strsplit_set(text != NULL ? text : "", " \n\t,", 0);
    return g_strv_contains((const char *const *)words, word);
}

static void
read_lxcfs(EbHost *host, IncusHostFacts *facts)
{
    static const char *const places[] = {"/var/lib/lxcfs", "/var/lib/incus-lxcfs"};
    g_autofree char *mounts = read_text(host, "/proc/self/mountinfo");
    for (gsize i = 0; mounts != NULL && i < G_N_ELEMENTS(places); i++) {
        g_autofree char *point = g_strdup_printf(" %s ", places[i]);
        if (strstr(mounts, point) == NULL || strstr(mounts, "fuse.lxcfs") == NULL)
            continue;
        /* The mount outlives the program: only an answer says that it is alive. */
        g_autofree char *path = g_build_filename(places[i], "proc/meminfo", NULL);
        g_autofree char *meminfo = read_text(host, path);
        facts->lxcfs_mounted = TRUE;
        facts->lxcfs_answers = facts->lxcfs_answers || meminfo != NULL;
    }
}

/* Column 4 of /proc/cgroups: enabled. */
static gboolean
v1_controller(const char *cgroups, const char *name)
{
    g_auto(GStrv) lines = g_strsplit(cgroups != NULL ? cgroups : "", "\n", 0);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) columns = g_strsplit_set(*line, "\t ", 0);
        if (g_strv_length(columns) >= 4 && g_str_equal(columns[0], name))
            return g_str_equal(columns[3], "1");
    }
    return FALSE;
}

static void
read_cgroups(EbHost *host, IncusHostFacts *facts)
{
    g_autofree char *controllers = read_text(host, "/sys/fs/cgroup/cgroup.controllers");
    facts->unified = controllers != NULL;
    if (facts->unified) {
        facts->memory = has_word(controllers, "memory");
        facts->pids = has_word(controllers, "pids");
        facts->cpu = has_word(controllers, "cpu");
        return;
    }
    g_autofree char *cgroups = read_text(host, "/proc/cgroups");
    facts->memory = v1_controller(cgroups, "memory");
    facts->pids = v1_controller(cgroups, "pids");
    facts->cpu = v1_controller(cgroups, "cpu");
}

static guint64
largest_range(EbHost *host, const char *path)
{
    guint64 largest = 0;
    g_autofree char *text = read_text(host, path);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", 0);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ":", 0);
        guint64 count = 0;
        if (g_strv_length(fields) == 3 && g_str_equal(fields[0], "root") &&
            g_ascii_string_to_unsigned(fields[2], 10, 0, G_MAXUINT32, &count, NULL))
            largest = MAX(largest, count);
    }
    return largest;
}

void
incus_host_facts_read(EbHost *host, IncusHostFacts *facts)
{
    g_autofree char *apparmor = read_text(host, "/sys/module/apparmor/parameters/enabled");
    g_autofree char *release = eb_host_uname_release(host);
    facts->known = TRUE;
    facts->apparmor = apparmor != NULL && *apparmor == 'Y';
    read_lxcfs(host, facts);
    read_cgroups(host, facts);
    facts->subuid_count = MIN(largest_range(host, "/etc/subuid"), largest_range(host, "/etc/subgid"));
    if (release != NULL && sscanf(release, "%u.%u", &facts->kernel_major, &facts->kernel_minor) != 2)
        facts->kernel_major = facts->kernel_minor = 0;
}
