/* SPDX-License-Identifier: MIT */
/* Credentials by name. Values come in through stdin or a file, and never go out. */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-creds.h"
#include "core/provision/eb-settings-text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* The store named by --store, else the first that takes values; @used: (out) (optional): its name */
static gboolean
put_somewhere(EbCli *cli, GPtrArray *stores, const char *name, EbSecret *secret, gint64 expires, const char **used,
              GError **error)
{
    g_autoptr(EbCredential) credential = eb_credential_new(secret, expires, NULL);
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "store");

    for (guint i = 0; i < stores->len; i++) {
        const EbExtension *store = stores->pdata[i];
        g_autoptr(GError) local = NULL;
        if (wanted != NULL && strcmp(store->name, wanted) != 0)
            continue;
        *used = store->name;
        if (eb_cli_creds_put(cli, store, name, credential, &local))
            return TRUE;
        if (wanted == NULL && g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED))
            continue;
        if (expires != 0 && g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED)) {
            eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "creds.expires",
                         "the store %s does not keep when a credential ends (--store sealed does)", store->name);
            return FALSE;
        }
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (wanted == NULL && expires != 0) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "creds.expires",
                     "no store here keeps when a credential ends (errand-box creds seal)");
        return FALSE;
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "creds.store",
                 wanted != NULL ? "there is no credential store \"%s\" (see [credentials] order)"
                                : "no credential store that takes values is loaded%s (see [credentials] order)",
                 wanted != NULL ? wanted : "");
    return FALSE;
}

/* Somebody types the value: it is not shown. */
static EbSecret *
read_typed(const char *name, GError **error)
{
    struct termios before, quiet;
    gboolean hidden = tcgetattr(STDIN_FILENO, &before) == 0;
    char line[4096];
    EbSecret *secret = NULL;

    g_printerr("value of %s (not shown): ", name);
    if (hidden) {
        quiet = before;
        quiet.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    }
    ssize_t got = read(STDIN_FILENO, line, sizeof line);
    if (hidden)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    g_printerr("\n");
    while (got > 0 && (line[got - 1] == '\n' || line[got - 1] == '\r'))
        got--;
    if (got > 0)
        secret = eb_secret_new_take(name, line, (gsize)got, error);
    else
        eb_set_error(error, EB_ERROR_INVALID, "creds.empty", "an empty value");
    explicit_bzero(line, sizeof line);
    return secret;
}

/* Does not wait for the other end of a pipe, which may never come. */
static int
open_regular(const char *file, struct stat *info, GError **error)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    gboolean known = fd >= 0 && fstat(fd, info) == 0;

    if (known && S_ISREG(info->st_mode))
        return fd;
    eb_set_error(error, EB_ERROR_INVALID, "creds.file", "%s: %s", file,
                 known ? "not a regular file" : g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

EbSecret *
eb_cli_creds_read_value(const char *name, const char *file, GError **error)
{
    EbSecret *secret;
    struct stat info;
    int fd;

    if (file == NULL && isatty(STDIN_FILENO) == 1)
        return read_typed(name, error);
    if (file == NULL)
        return eb_secret_new_from_fd(name, STDIN_FILENO, error);
    fd = open_regular(file, &info, error);
    if (fd < 0)
        return NULL;
    secret = eb_secret_new_from_fd(name, fd, error);
    close(fd);
    return secret;
}

static int
set(EbCli *cli, GPtrArray *stores, const char *name)
{
    g_autoptr(GError) error = NULL;
    const char *until = eb_cli_args_value(eb_cli_get_args(cli), "expires");
    gint64 expires = until != NULL ? eb_cli_creds_parse_expiry(until, g_get_real_time() / G_USEC_PER_SEC, &error) : 0;
    g_autoptr(EbSecret) secret =
        error == NULL ? eb_cli_creds_read_value(name, eb_cli_args_value(eb_cli_get_args(cli), "file"), &error) : NULL;
    const char *used = NULL;

    if (secret == NULL || !put_somewhere(cli, stores, name, secret, expires, &used, &error))
        return eb_cli_fail(cli, "the credential is not kept", error);
    if (!eb_cli_get_json(cli))
        eb_cli_print(cli, "%s is kept in %s\n", name, used);
    return EB_EXIT_OK;
}

static int
drop(EbCli *cli, GPtrArray *stores, const char *name)
{
    g_autoptr(GError) error = NULL;
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "store");
    gboolean any = FALSE;

    for (guint i = 0; i < stores->len; i++) {
        const EbExtension *store = stores->pdata[i];
        g_autoptr(GError) local = NULL;
        if (wanted != NULL && strcmp(store->name, wanted) != 0)
            continue;
        if (eb_cli_creds_remove(cli, store, name, &local))
            any = TRUE;
        /* Not there, or a store that is read-only: another one may have it. */
        gboolean pass = g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED) ||
                        g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND);
        if (local != NULL && (!pass || error == NULL)) {
            g_clear_error(&error);
            error = g_steal_pointer(&local);
            if (!pass)
                return eb_cli_fail(cli, "the credential is not removed", error);
        }
    }
    if (!any)
        return eb_cli_fail(cli, error != NULL ? "the credential is not removed" : "no credential store is loaded",
                           error);
    if (!eb_cli_get_json(cli))
        eb_cli_print(cli, "%s is removed\n", name);
    return EB_EXIT_OK;
}

/* Reads @file whole into a buffer that the caller wipes. */
static char *
read_env_file(const char *file, gsize *length, GError **error)
{
    struct stat info;
    int fd = open_regular(file, &info, error);
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (info.st_size > EB_ENV_FILE_MAX_BYTES) {
        eb_set_error(error, EB_ERROR_INVALID, "creds.file", "%s: longer than %d bytes", file, EB_ENV_FILE_MAX_BYTES);
    } else {
        text = g_malloc0((gsize)info.st_size + 1);
        ssize_t got = read(fd, text, (gsize)info.st_size);
        *length = got > 0 ? (gsize)got : 0;
    }
    close(fd);
    return text;
}

static gboolean
import_entry(EbCli *cli, GPtrArray *stores, const EbEnvEntry *entry, GError **error)
{
    g_autofree char *name = eb_env_file_credential_for_key(entry->key);
    const char *used = NULL;

    if (name == NULL) {
        g_autofree char *shown = eb_settings_show_key(entry->key);
        eb_set_error(error, EB_ERROR_INVALID, "creds.key",
                     "line %u: %s is no key of a credential (ERRAND_CHAT_TOKEN, ERRAND_PROVIDER_CREDENTIAL, "
                     "ERRAND_GITHUB_TOKEN, ERRAND_CRED_NAME)",
                     entry->line, shown);
        return FALSE;
    }
    if (*entry->value == '\0')
        return TRUE;
    g_autoptr(EbSecret) secret = eb_secret_new_take(name, entry->value, strlen(entry->value), error);
    if (secret == NULL || !put_somewhere(cli, stores, name, secret, 0, &used, error))
        return FALSE;
    if (!eb_cli_get_json(cli))
        eb_cli_print(cli, "%s is kept in %s\n", name, used);
    return TRUE;
}

static int
import(EbCli *cli, GPtrArray *stores, const char *file)
{
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    char *text = read_env_file(file, &length, &error);
    g_autoptr(GPtrArray) entries = text != NULL ? eb_env_file_parse(text, length, &error) : NULL;

    if (text != NULL)
        explicit_bzero(text, length);
    g_free(text);
    for (guint i = 0; entries != NULL && error == NULL && i < entries->len; i++)
        import_entry(cli, stores, entries->pdata[i], &error);
    if (error != NULL)
        return eb_cli_fail(cli, "creds import", error);
    return EB_EXIT_OK;
}

/* Otherwise each store would say the same of its own file. */
static gboolean
may_enter(const char *state_dir, GError **error)
{
    if (state_dir == NULL || access(state_dir, X_OK) == 0 || errno != EACCES)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "state.denied", "%s: %s", state_dir, g_strerror(EACCES));
    return FALSE;
}

int
eb_cmd_creds(EbCli *cli, int argc, char **argv)
{
    static const char *const only[] = {"credential-store", NULL};
    g_autoptr(GError) error = NULL;
    EbCliArgs *args = eb_cli_get_args(cli);
    const char *verb = eb_cli_args_get_verb(args);
    const char *operand = eb_cli_args_operands(args)[0];
    EbPluginRegistry *registry = eb_cli_get_registry(cli, only, NULL, NULL, &error);

    EbConfig *config = eb_cli_get_config(cli, NULL);
    if (registry == NULL || (config != NULL && !may_enter(eb_config_get_state_dir(config), &error)))
        return eb_cli_fail(cli, "credentials cannot be reached", error);
    g_autoptr(EbCredentials) credentials = eb_credentials_new(registry, eb_config_get_credential_order(config));
    g_autoptr(GPtrArray) stores = eb_credentials_get_stores(credentials);
    if (strcmp(verb, "set") == 0)
        return set(cli, stores, operand);
    if (strcmp(verb, "remove") == 0)
        return drop(cli, stores, operand);
    if (strcmp(verb, "import") == 0)
        return import(cli, stores, operand);
    if (strcmp(verb, "seal") == 0)
        return eb_cli_creds_seal(cli, stores);
    return eb_cli_creds_list(cli, stores);
}
