/* SPDX-License-Identifier: MIT */
/* The files that credentials lie in. Values are never looked at beyond whether there is one. */
#include "check-context.h"
#include "doctor-checks.h"

#include <string.h>
#include <sys/stat.h>

#define ETC "/etc/errand-box/"
#define MAGIC "EBSEALED"

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

static char *
sealed_path(EbConfigSection *settings)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *own = g_build_filename(state_dir, "creds.sealed", NULL);
    return dc_setting(settings, "credentials.sealed", own);
}

/* Is each of @names where it cannot be looked at from here: sealed, or kept by systemd for the service? */
static gboolean
elsewhere(EbHost *host, EbConfigSection *settings, const char *const *names)
{
    static const char *const STORES[] = {"/etc/credstore", "/etc/credstore.encrypted"};
    g_autofree char *sealed = sealed_path(settings);

    if (eb_host_exists(host, sealed))
        return TRUE;
    for (guint i = 0; names[i] != NULL; i++) {
        gboolean found = FALSE;
        for (guint k = 0; k < G_N_ELEMENTS(STORES) && !found; k++) {
            g_autofree char *name = g_strconcat("errand-box.", names[i], NULL);
            g_auto(GStrv) there = eb_host_list_dir(host, STORES[k], NULL);
            found = there != NULL && g_strv_contains((const char *const *)there, name);
        }
        if (!found)
            return FALSE;
    }
    return TRUE;
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
    if (text == NULL && elsewhere(host, settings, (const char *const *)needed))
        return eb_check_result_new(EB_CHECK_OK, "the key of every model provider is sealed or handed over by systemd");
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
        const char *const one[] = {needed[i], NULL};
        if ((value == NULL || *value == '\0') && !elsewhere(host, settings, one))
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

/* Of @path: how many credentials lie there; 0 when it cannot be read. */
static guint
count_plain(EbHost *host, const char *path)
{
    gsize length = 0;
    char *text = eb_host_read_file(host, path, &length, NULL);
    g_autoptr(GPtrArray) entries = text != NULL ? eb_env_file_parse(text, length, NULL) : NULL;
    guint count = 0;

    if (text != NULL)
        explicit_bzero(text, length);
    g_free(text);
    for (guint i = 0; entries != NULL && i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        g_autofree char *name = eb_env_file_credential_for_key(entry->key);
        count += name != NULL && *entry->value != '\0';
    }
    return count;
}

static EbCheckResult *
check_plain_beside_sealed(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *own = g_build_filename(state_dir, "creds.env", NULL);
    g_autofree char *path = dc_setting(settings, "credentials.file", own);
    g_autofree char *sealed = sealed_path(settings);

    if (!eb_host_exists(host, sealed))
        return eb_check_result_new(EB_CHECK_OK, "no sealed credentials");
    guint count = count_plain(host, path);
    if (count == 0 && strcmp(path, own) == 0) {
        g_free(path);
        path = g_strdup(ETC "creds.env");
        count = count_plain(host, path);
    }
    if (count > 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "%u in %s, in plain text, beside %s", count, path, sealed);
    return eb_check_result_new(EB_CHECK_OK, "no credential lies beside %s in plain text", sealed);
}

static EbCheckResult *
check_sealed(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *sealed = sealed_path(settings);
    g_autofree char *key = dc_setting(settings, "credentials.seal_key", ETC "seal.key");
    g_autoptr(GError) error = NULL;
    EbHostStat info;
    gsize length = 0;

    if (!eb_host_stat(host, sealed, &info, NULL))
        return eb_check_result_new(EB_CHECK_OK, "no sealed credentials");
    if (!S_ISREG(info.mode) || (info.mode & 077) != 0)
        return eb_check_result_new(EB_CHECK_FAIL,
                                   "%s is no file that is closed to others (mode %04o), so it is not used", sealed,
                                   info.mode & 07777);
    g_autofree char *bytes = eb_host_read_file(host, sealed, &length, &error);
    if (bytes == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    if (length < strlen(MAGIC) || memcmp(bytes, MAGIC, strlen(MAGIC)) != 0)
        return eb_check_result_new(EB_CHECK_FAIL, "%s is no file of sealed credentials, or is damaged", sealed);
    if (!eb_host_exists(host, key) && !eb_host_exists(host, "/etc/credstore/errand-box.seal-key") &&
        !eb_host_exists(host, "/etc/credstore.encrypted/errand-box.seal-key") &&
        !eb_host_exists(host, "/etc/credstore/errand-box.seal-passphrase") &&
        !eb_host_exists(host, "/etc/credstore.encrypted/errand-box.seal-passphrase"))
        return eb_check_result_new(EB_CHECK_FAIL, "%s is there, and nothing that opens it: %s is missing", sealed, key);
    if (eb_host_stat(host, key, &info, NULL) && (!S_ISREG(info.mode) || (info.mode & 077) != 0))
        return eb_check_result_new(EB_CHECK_FAIL, "%s, which opens %s, can be read by others (mode %04o)", key, sealed,
                                   info.mode & 07777);
    return eb_check_result_new(EB_CHECK_OK, "%s is closed, and its key is there", sealed);
}

const DcRow DC_CREDENTIAL_CHECKS[] = {
    DC_ROW(E_30, check_credentials),
    DC_ROW(E_31, check_credentials_mode),
    DC_ROW(E_80, check_plain_beside_sealed),
    DC_ROW(E_81, check_sealed),
    {NULL, NULL, NULL},
};
