/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/stat.h>

#include "check-context.h"
#include "doctor-checks.h"

static EbCheckResult *
check_program(EbHost *host, const char *path, const char *what)
{
    EbHostStat info;

    if (!eb_host_stat(host, path, &info, NULL))
        return eb_check_result_new(EB_CHECK_FAIL, "%s: %s is not there", what, path);
    if (!S_ISREG(info.mode) || (info.mode & 0111) == 0)
        return eb_check_result_new(EB_CHECK_FAIL, "%s: %s is no program", what, path);
    return NULL;
}

static EbCheckResult *
check_broker(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *path = dc_setting(settings, "paths.broker", NULL);
    EbCheckResult *finding;

    if (path == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "where it should be is not known");
    finding = check_program(host, path, "the broker");
    return finding != NULL ? finding : eb_check_result_new(EB_CHECK_OK, "%s", path);
}

static EbCheckResult *
check_guest_programs(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const NAMES[] = {"launch", "relay", "init"};
    g_autofree char *directory = dc_setting(settings, "paths.guest", NULL);

    if (directory == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "where they should be is not known");
    for (guint i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        g_autofree char *path = g_build_filename(directory, NAMES[i], NULL);
        EbCheckResult *finding = check_program(host, path, NAMES[i]);
        if (finding != NULL)
            return finding;
    }
    return eb_check_result_new(EB_CHECK_OK, "%s", directory);
}

static EbCheckResult *
check_configuration(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *problem = dc_setting(settings, "config.problem", NULL);

    if (problem == NULL)
        return eb_check_result_new(EB_CHECK_OK, "read without a problem");
    g_strdelimit(problem, "\n", ' ');
    return eb_check_result_new(EB_CHECK_FAIL, "%s", problem);
}

/* @path must be a directory of the account's, closed to all others. */
static EbCheckResult *
judge_directory(EbHost *host, const char *path, guint uid)
{
    g_autoptr(GError) error = NULL;
    EbHostStat info;

    if (!eb_host_stat(host, path, &info, &error))
        return g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)
                   ? eb_check_result_new(EB_CHECK_FAIL, "%s does not exist", path)
                   : eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    if (!S_ISDIR(info.mode))
        return eb_check_result_new(EB_CHECK_FAIL, "%s is no directory", path);
    if (info.uid != uid)
        return eb_check_result_new(EB_CHECK_FAIL, "%s belongs to uid %u, not to the account", path, info.uid);
    if ((info.mode & 077) != 0)
        return eb_check_result_new(EB_CHECK_FAIL,
                                   "%s is open to other accounts (mode %04o): they could run what a guest left there",
                                   path, info.mode & 07777);
    return NULL;
}

static EbCheckResult *
check_state_dir(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const char *const PARTS[] = {"", "sessions", "try"};
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    guint uid, gid;

    if (!dc_account_ids(host, settings, &uid, &gid))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist");
    for (guint i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *path = *PARTS[i] != '\0' ? g_build_filename(state_dir, PARTS[i], NULL) : g_strdup(state_dir);
        EbCheckResult *finding = judge_directory(host, path, uid);
        if (finding != NULL)
            return finding;
    }
    return eb_check_result_new(EB_CHECK_OK, "%s", state_dir);
}

static EbCheckResult *
check_project_root(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *fallback = g_build_filename(state_dir, "home/projects", NULL);
    g_autofree char *path = dc_setting(settings, "project_root", fallback);
    EbCheckResult *finding;
    guint uid, gid;

    if (!dc_account_ids(host, settings, &uid, &gid))
        return eb_check_result_new(EB_CHECK_SKIPPED, "the account does not exist");
    finding = judge_directory(host, path, uid);
    return finding != NULL ? finding : eb_check_result_new(EB_CHECK_OK, "%s", path);
}

const DcRow DC_FILE_CHECKS[] = {
    DC_ROW(E_27, check_broker),    DC_ROW(E_28, check_guest_programs), DC_ROW(E_29, check_configuration),
    DC_ROW(E_32, check_state_dir), DC_ROW(E_33, check_project_root),   {NULL, NULL, NULL},
};
