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

/* The key that a creds.env has for credential @name. */
static char *
credential_key(const char *name)
{
    char *upper;

    if (strcmp(name, "model-key") == 0)
        return g_strdup("ERRAND_PROVIDER_CREDENTIAL");
    if (strcmp(name, "chat-token") == 0)
        return g_strdup("ERRAND_CHAT_TOKEN");
    if (strcmp(name, "github-token") == 0)
        return g_strdup("ERRAND_GITHUB_TOKEN");
    upper = g_ascii_strup(name, -1);
    return g_strconcat("ERRAND_CRED_", g_strdelimit(upper, "-", '_'), NULL);
}

static EbCheckResult *
check_credentials(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *own = g_build_filename(state_dir, "creds.env", NULL);
    g_autofree char *path = dc_setting(settings, "credentials.file", own);
    g_auto(GStrv) needed = eb_config_section_get_strings(settings, "credentials.needed", NULL);
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    char *text;
    g_autoptr(GPtrArray) entries = NULL;

    if (needed == NULL || needed[0] == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "no model provider is configured, so no agent can work");
    text = eb_host_read_file(host, path, &length, &error);
    if (text == NULL)
        return g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)
                   ? eb_check_result_new(EB_CHECK_FAIL, "%s does not exist; needed: %s", path, needed[0])
                   : eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    entries = eb_env_file_parse(text, length, &error);
    explicit_bzero(text, length);
    g_free(text);
    if (entries == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "%s: %s", path, error->message);
    for (guint i = 0; needed[i] != NULL; i++) {
        g_autofree char *key = credential_key(needed[i]);
        const char *value = eb_env_file_lookup(entries, key);
        if (value == NULL || *value == '\0')
            return eb_check_result_new(EB_CHECK_FAIL, "%s has no %s, which the configuration names cred:%s", path, key,
                                       needed[i]);
    }
    return eb_check_result_new(EB_CHECK_OK, "the key of every model provider is stored");
}

static EbCheckResult *
check_credentials_mode(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    const char *places[] = {state_dir, "/etc/errand-box"};

    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(places[i], "creds.env", NULL);
        EbHostStat info;
        EbCheckResult *result;
        if (!eb_host_stat(host, path, &info, NULL) || (S_ISREG(info.mode) && (info.mode & 077) == 0))
            continue;
        result =
            eb_check_result_new(EB_CHECK_FAIL, "%s can be read by other accounts (mode %04o)", path, info.mode & 07777);
        eb_check_result_set_remedy(result, "chmod 600 %s, and replace the credentials in it: others may have read them",
                                   path);
        return result;
    }
    return eb_check_result_new(EB_CHECK_OK, "no credential file that others can read");
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
    DC_ROW(E_27, check_broker),           DC_ROW(E_28, check_guest_programs),
    DC_ROW(E_29, check_configuration),    DC_ROW(E_30, check_credentials),
    DC_ROW(E_31, check_credentials_mode), DC_ROW(E_32, check_state_dir),
    DC_ROW(E_33, check_project_root),     {NULL, NULL, NULL},
};
