/* SPDX-License-Identifier: MIT */
/* The files that credentials lie in. Values are never looked at beyond whether there is one. */
#include "check-context.h"
#include "check-credentials.h"
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

/* Is there a file that systemd can hand over to the service under this name? */
static gboolean
by_systemd(EbHost *host, const char *name)
{
    static const char *const STORES[] = {"/etc/credstore", "/etc/credstore.encrypted"};
    g_autofree char *file = g_strconcat("errand-box.", name, NULL);
    gboolean found = FALSE;

    for (guint i = 0; i < G_N_ELEMENTS(STORES) && !found; i++) {
        g_auto(GStrv) there = eb_host_list_dir(host, STORES[i], NULL);
        found = there != NULL && g_strv_contains((const char *const *)there, file);
    }
    return found;
}

/* (transfer full): how far @credential is protected where it lies */
static char *
describe_place(JsonObject *credential)
{
    const char *store = eb_json_get_string(credential, "store"), *where = eb_json_get_string(credential, "where");
    const char *how = g_strcmp0(store, "sealed") == 0     ? "encrypted in "
                      : g_strcmp0(store, "env-file") == 0 ? "in plain text in "
                                                          : "in ";

    if (where == NULL)
        where = store != NULL ? store : "a store";
    /* A store names itself before its place. */
    if (store != NULL && g_str_has_prefix(where, store) && where[strlen(store)] == ' ')
        where += strlen(store) + 1;
    return g_strdup_printf("%s%s", how, where);
}

static void
add_part(GString *text, const char *part)
{
    g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", part);
}

/* (transfer full) (nullable): a store that no session can read either, which ends each of their searches. */
static EbCheckResult *
judge_broken(const DcCredentials *credentials)
{
    /* What the service may read all the same: as its own account, or with a key that systemd hands to it alone. */
    static const char *const OURS[] = {"credentials.unreadable", "sealed.no-key", "", NULL};
    JsonArray *problems = eb_json_get_array(eb_json_node_object(credentials->list), "problems");

    for (guint i = 0; problems != NULL && i < json_array_get_length(problems); i++) {
        JsonObject *one = eb_json_array_object(problems, i);
        const char *store = eb_json_get_string(one, "store"), *why = eb_json_get_string(one, "error");
        const char *reason = eb_json_get_string(one, "reason");
        if (store == NULL || why == NULL || reason == NULL || g_strv_contains(OURS, reason))
            continue;
        EbCheckResult *result = eb_check_result_new(EB_CHECK_FAIL, "%s: %s", store, why);
        eb_check_result_set_remedy(result, "do what it says, then `errand-box creds list`");
        return result;
    }
    return NULL;
}

/* What the stores themselves said. */
static EbCheckResult *
judge_listed(const DcCredentials *credentials, const char *const *needed)
{
    g_autoptr(GString) there = g_string_new(NULL);
    g_autoptr(GString) missing = g_string_new(NULL);
    const char *first = NULL;

    for (guint i = 0; needed[i] != NULL; i++) {
        JsonObject *found = dc_credentials_find(credentials, needed[i]);
        g_autofree char *place = found != NULL ? describe_place(found) : NULL;
        g_autofree char *part = place != NULL ? g_strdup_printf("%s is %s", needed[i], place) : g_strdup(needed[i]);
        if (found != NULL && dc_credential_is_over(credentials, found)) {
            g_free(part);
            part = g_strdup_printf("%s, which expired", needed[i]);
            found = NULL;
        }
        if (found == NULL && first == NULL)
            first = needed[i];
        add_part(found != NULL ? there : missing, part);
    }
    if (first == NULL)
        return eb_check_result_new(EB_CHECK_OK, "%s", there->str);
    EbCheckResult *broken = judge_broken(credentials);
    if (broken != NULL)
        return broken;
    if (credentials->problem != NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "in no store that can be read here: %s (%s)", missing->str,
                                   credentials->problem);
    EbCheckResult *result = eb_check_result_new(EB_CHECK_FAIL, "in no store: %s", missing->str);
    eb_check_result_set_remedy(result, "`errand-box creds set %s`", first);
    return result;
}

/* Without the stores' own word: what can be seen from outside, which of a sealed file is nothing. */
static EbCheckResult *
judge_files(EbHost *host, EbConfigSection *settings, const char *const *needed)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *own = g_build_filename(state_dir, "creds.env", NULL);
    g_autofree char *path = dc_setting(settings, "credentials.file", own);
    g_autofree char *sealed = sealed_path(settings);
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    char *text = eb_host_read_file(host, path, &length, &error);
    g_autoptr(GPtrArray) entries = NULL;

    if (text == NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    if (text != NULL) {
        g_clear_error(&error);
        entries = eb_env_file_parse(text, length, &error);
        explicit_bzero(text, length);
        g_free(text);
        if (entries == NULL)
            return eb_check_result_new(EB_CHECK_FAIL, "%s: %s", path, error->message);
    }
    for (guint i = 0; needed[i] != NULL; i++) {
        g_autofree char *key = credential_key(needed[i]);
        const char *value = entries != NULL ? eb_env_file_lookup(entries, key) : NULL;
        if ((value != NULL && *value != '\0') || by_systemd(host, needed[i]))
            continue;
        if (eb_host_exists(host, sealed))
            return eb_check_result_new(EB_CHECK_SKIPPED, "%s may be in %s, which is not opened here", needed[i],
                                       sealed);
        EbCheckResult *result =
            entries == NULL ? eb_check_result_new(EB_CHECK_FAIL, "%s does not exist; needed: %s", path, needed[i])
                            : eb_check_result_new(EB_CHECK_FAIL, "%s has no %s, which the configuration names cred:%s",
                                                  path, key, needed[i]);
        return result;
    }
    return eb_check_result_new(EB_CHECK_OK,
                               "the key of every model provider lies in %s in plain text, or is handed over "
                               "by systemd",
                               path);
}

static EbCheckResult *
check_credentials(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_auto(GStrv) needed = eb_config_section_get_strings(settings, "credentials.needed", NULL);
    g_auto(DcCredentials) credentials = {0};

    if (needed == NULL || needed[0] == NULL)
        return eb_check_result_new(EB_CHECK_FAIL, "no model provider is configured, so no agent can work");
    dc_credentials_read(settings, &credentials);
    return credentials.list != NULL ? judge_listed(&credentials, (const char *const *)needed)
                                    : judge_files(host, settings, (const char *const *)needed);
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
