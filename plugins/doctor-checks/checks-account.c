/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check-context.h"
#include "doctor-checks.h"

/* Isolated guests take 65536 ids each; below eight guests' worth a host is not worth calling ready. */
#define MIN_RANGE (65536 * 8)

static EbCheckResult *
check_account(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *name = dc_account(settings);
    guint uid, gid;

    if (!dc_account_ids(host, settings, &uid, &gid))
        return eb_check_result_new(EB_CHECK_FAIL, "there is no account %s", name);
    if (uid == 0)
        return eb_check_result_new(EB_CHECK_FAIL, "the account %s is root", name);
    return eb_check_result_new(EB_CHECK_OK, "%s, uid %u", name, uid);
}

/* Is @account named as a member of @group in group(5)? FALSE also when there is no such group: *@exists tells. */
static gboolean
is_member(EbHost *host, const char *group, const char *account, gboolean *exists)
{
    g_autofree char *text = eb_host_read_file(host, "/etc/group", NULL, NULL);
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);

    *exists = FALSE;
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ":", 4);
        g_auto(GStrv) members = NULL;
        if (g_strv_length(fields) != 4 || strcmp(fields[0], group) != 0)
            continue;
        *exists = TRUE;
        members = g_strsplit(fields[3], ",", -1);
        return g_strv_contains((const char *const *)members, account);
    }
    return FALSE;
}

static EbCheckResult *
check_groups(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *account = dc_account(settings);
    g_autofree char *socket = dc_setting(settings, "backend.socket", NULL);
    gboolean exists;

    if (is_member(host, "incus-admin", account, &exists)) {
        EbCheckResult *result =
            eb_check_result_new(EB_CHECK_FAIL, "%s is in incus-admin, which is as good as root", account);
        eb_check_result_set_remedy(result, "gpasswd -d %s incus-admin, and restart the service", account);
        return result;
    }
    if (socket != NULL)
        return eb_check_result_new(EB_CHECK_OK, "%s is not in incus-admin, and another socket is configured", account);
    if (is_member(host, "incus", account, &exists))
        return eb_check_result_new(EB_CHECK_OK, "%s is in the group incus", account);
    if (!exists)
        return eb_check_result_new(EB_CHECK_SKIPPED, "there is no group incus");
    return eb_check_result_new(EB_CHECK_FAIL, "%s is not in the group incus", account);
}

/* Ranges of @owner in a subuid(5) file: the largest, and whether @id is in one. */
static guint64
read_ranges(const char *text, const char *owner, guint64 id, gboolean *has_id)
{
    g_auto(GStrv) lines = g_strsplit(text != NULL ? text : "", "\n", -1);
    guint64 largest = 0;

    *has_id = FALSE;
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], ":", 4);
        guint64 start, count;
        if (g_strv_length(fields) != 3 || strcmp(fields[0], owner) != 0 ||
            !g_ascii_string_to_unsigned(fields[1], 10, 0, G_MAXUINT32, &start, NULL) ||
            !g_ascii_string_to_unsigned(g_strchomp(fields[2]), 10, 1, G_MAXUINT32, &count, NULL))
            continue;
        largest = MAX(largest, count);
        if (id >= start && id - start < count)
            *has_id = TRUE;
    }
    return largest;
}

static const char *const RANGE_FILES[] = {"/etc/subuid", "/etc/subgid"};

static EbCheckResult *
check_ranges(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    for (guint i = 0; i < G_N_ELEMENTS(RANGE_FILES); i++) {
        g_autofree char *text = eb_host_read_file(host, RANGE_FILES[i], NULL, NULL);
        gboolean has_id;
        guint64 largest = read_ranges(text, "root", 0, &has_id);
        if (largest == 0)
            return eb_check_result_new(EB_CHECK_FAIL, "%s has no range for root", RANGE_FILES[i]);
        if (largest < MIN_RANGE)
            return eb_check_result_new(EB_CHECK_FAIL,
                                       "%s gives root %" G_GUINT64_FORMAT " ids: too few for guests with ids of "
                                       "their own",
                                       RANGE_FILES[i], largest);
    }
    return eb_check_result_new(EB_CHECK_OK, "root has ranges in both files");
}

static EbCheckResult *
check_own_ids(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    guint uid, gid;

    if (!dc_account_ids(host, settings, &uid, &gid))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist");
    for (guint i = 0; i < G_N_ELEMENTS(RANGE_FILES); i++) {
        g_autofree char *text = eb_host_read_file(host, RANGE_FILES[i], NULL, NULL);
        guint id = i == 0 ? uid : gid;
        gboolean has_id;
        EbCheckResult *result;
        read_ranges(text, "root", id, &has_id);
        if (has_id)
            continue;
        result = eb_check_result_new(EB_CHECK_FAIL, "%s does not let root map id %u into a guest", RANGE_FILES[i], id);
        eb_check_result_set_remedy(result, "`errand-box setup`, or: echo root:%u:1 >>%s", id, RANGE_FILES[i]);
        return result;
    }
    return eb_check_result_new(EB_CHECK_OK, "id %u may be mapped", uid);
}

static EbCheckResult *
check_uidmap(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const PROGRAMS[] = {"/usr/bin/newuidmap", "/usr/bin/newgidmap"};

    for (guint i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        const char *argv[] = {"getcap", PROGRAMS[i], NULL};
        g_autofree char *caps = NULL;
        EbHostStat info;
        int code = 1;
        if (!eb_host_stat(host, PROGRAMS[i], &info, NULL))
            return eb_check_result_new(EB_CHECK_FAIL, "%s is not installed", PROGRAMS[i]);
        if ((info.mode & 04000) != 0)
            continue;
        caps = eb_host_run(host, argv, 2000, &code, NULL);
        if (caps == NULL || strstr(caps, "cap_set") == NULL)
            return eb_check_result_new(EB_CHECK_FAIL, "%s is neither setuid root nor has the capability it needs",
                                       PROGRAMS[i]);
    }
    return eb_check_result_new(EB_CHECK_OK, "installed");
}

/* By the kernel's table of sockets: a connection could make incus-user do something. */
static EbCheckResult *
check_users_socket(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *configured = dc_setting(settings, "backend.socket", NULL);
    g_autofree char *directory = dc_daemon_dir(settings);
    g_autofree char *socket = g_build_filename(directory, "unix.socket.user", NULL);
    g_autofree char *ending = g_strconcat(" ", socket, NULL);
    g_autofree char *text = eb_host_read_file(host, "/proc/net/unix", NULL, NULL);
    g_auto(GStrv) lines = NULL;

    if (configured != NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "another socket is configured");
    if (text == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "/proc/net/unix cannot be read");
    /* The table is the network namespace's: a listener of another mount namespace may have the same path there. */
    if (!eb_host_exists(host, socket))
        return eb_check_result_new(EB_CHECK_FAIL, "there is no %s", socket);
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++)
        if (g_str_has_suffix(lines[i], ending) && strstr(lines[i], " 00010000 ") != NULL)
            return eb_check_result_new(EB_CHECK_OK, "incus-user listens on %s", socket);
    return eb_check_result_new(EB_CHECK_FAIL, "nobody listens on %s", socket);
}

const DcRow DC_ACCOUNT_CHECKS[] = {
    DC_ROW(E_15, check_account), DC_ROW(E_16, check_groups), DC_ROW(E_18, check_ranges),
    DC_ROW(E_19, check_own_ids), DC_ROW(E_21, check_uidmap), DC_ROW(E_41, check_users_socket),
    {NULL, NULL, NULL},
};
