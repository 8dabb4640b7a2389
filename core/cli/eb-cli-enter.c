/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-enter.h"

#include "core/base/eb-account.h"
#include "core/cli/eb-cli-call.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define REFERENCE "cred:"

/* Every "cred:NAME" of a table and of those below it. */
static void
collect(EbConfigSection *section, GHashTable *names)
{
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    for (guint i = 0; i < keys->len; i++) {
        GVariant *value = eb_config_section_get_value(section, keys->pdata[i]);
        const char *text = g_variant_is_of_type(value, G_VARIANT_TYPE_STRING) ? g_variant_get_string(value, NULL) : "";
        if (g_str_has_prefix(text, REFERENCE))
            g_hash_table_add(names, g_strdup(text + strlen(REFERENCE)));
    }
    for (guint i = 0; i < children->len; i++)
        collect(eb_config_section_get_child(section, children->pdata[i]), names);
}

static gboolean
keep_credentials(EbCli *cli, EbConfig *config, EbCredentials *credentials, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_auto(EbCliWait) wait = {0};

    collect(eb_config_get_root(config), names);
    g_autofree const char **list = (const char **)g_hash_table_get_keys_as_array(names, NULL);
    eb_credentials_keep_async(credentials, list, NULL, eb_cli_wait_ready, &wait);
    gboolean good = eb_credentials_keep_finish(credentials, eb_cli_wait_result(cli, &wait), error);
    return good;
}

static gboolean
check_state_dir(const char *path, const EbAccount *account, GError **error)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "state.missing", "%s: %s (errand-box setup)", path, g_strerror(errno));
        return FALSE;
    }
    if (!S_ISDIR(info.st_mode) || info.st_uid != account->uid || (info.st_mode & 022) != 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "state.exposed",
                     "%s is not a directory that belongs to \"%s\" alone (chown %s %s; chmod 700 %s)", path,
                     account->name, account->name, path, path);
        return FALSE;
    }
    return TRUE;
}

EbCredentials *
eb_cli_enter(EbCli *cli, EbConfig *config, EbPluginRegistry *registry, GError **error)
{
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), error);
    g_autoptr(EbCredentials) credentials = NULL;

    if (account == NULL || !eb_account_check_caller(account, error) ||
        !check_state_dir(eb_config_get_state_dir(config), account, error))
        return NULL;
    credentials = eb_credentials_new(registry, eb_config_get_credential_order(config));
    if (!keep_credentials(cli, config, credentials, error) || !eb_account_become(account, error) ||
        !eb_account_protect_process(error))
        return NULL;
    return g_steal_pointer(&credentials);
}
