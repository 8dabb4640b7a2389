/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-enter.h"

#include "core/base/eb-account.h"
#include "core/cli/eb-cli-call.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static gboolean
keep_credentials(EbCli *cli, EbConfig *config, EbCredentials *credentials, GError **error)
{
    g_auto(GStrv) names = eb_config_list_credentials(config);
    g_auto(EbCliWait) wait = {0};

    eb_credentials_keep_async(credentials, (const char *const *)names, NULL, eb_cli_wait_ready, &wait);
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

/* (transfer full) (nullable): of the service, which this process is or can become */
static EbAccount *
find_account(EbConfig *config, GError **error)
{
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), error);

    if (account == NULL || !eb_account_check_caller(account, error) ||
        !check_state_dir(eb_config_get_state_dir(config), account, error))
        return NULL;
    return g_steal_pointer(&account);
}

EbCredentials *
eb_cli_enter(EbCli *cli, EbConfig *config, EbPluginRegistry *registry, GError **error)
{
    g_autoptr(EbAccount) account = find_account(config, error);
    g_autoptr(EbCredentials) credentials = NULL;

    if (account == NULL)
        return NULL;
    credentials = eb_credentials_new(registry, eb_config_get_credential_order(config));
    if (!keep_credentials(cli, config, credentials, error) || !eb_account_become(account, error) ||
        !eb_account_protect_process(error))
        return NULL;
    return g_steal_pointer(&credentials);
}

gboolean
eb_cli_enter_account(EbConfig *config, GError **error)
{
    g_autoptr(EbAccount) account = find_account(config, error);

    return account != NULL && eb_account_become(account, error) && eb_account_protect_process(error);
}
