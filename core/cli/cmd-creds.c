/* SPDX-License-Identifier: MIT */
/* Credentials by name. Values come in through stdin or a file, and never go out. */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-creds.h"
#include "core/cli/eb-cli-value.h"
#include "core/config/eb-config-schema.h"
#include "core/provision/eb-settings-text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* @list: (nullable): where it goes as one of several; else it is returned (transfer full). */
static JsonNode *
kept_json(JsonArray *list, const char *name, const char *store)
{
    JsonObject *object = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_object_set_string_member(object, "name", name);
    json_object_set_string_member(object, "store", store);
    json_node_take_object(node, object);
    if (list == NULL)
        return node;
    json_array_add_element(list, node);
    return NULL;
}

/* A value behind another of its name is never used, and who replaced a key waits for it in vain. */
static void
note_earlier(EbCli *cli, GPtrArray *stores, guint at, const char *name)
{
    for (guint i = 0; i < at; i++) {
        const EbExtension *store = stores->pdata[i];
        g_autoptr(GError) local = NULL;
        g_autoptr(EbCredential) earlier = eb_cli_creds_lookup(cli, store, name, &local);
        if (earlier != NULL)
            eb_cli_note(cli, "the new value of %s is not used: %s has one too, and is asked first", name,
                        *earlier->source != '\0' ? earlier->source : store->name);
        else if (!g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            eb_cli_note(cli, "the new value of %s is not used as long as %s, which is asked first, cannot be read: %s",
                        name, store->name, local->message);
        if (earlier != NULL || !g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            return;
    }
}

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
        if (eb_cli_creds_put(cli, store, name, credential, &local)) {
            note_earlier(cli, stores, i, name);
            return TRUE;
        }
        if (wanted == NULL && g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED))
            continue;
        if (expires != 0 && g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED)) {
            eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "creds.expires",
                         "the store %s does not keep when a credential ends (--store sealed does)", store->name);
            return FALSE;
        }
        if (g_strcmp0(eb_error_get_reason(local), "sdk.not-supported") == 0)
            eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "creds.read-only",
                         "what the store %s holds cannot be changed by this command", store->name);
        else
            g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (wanted == NULL && expires != 0) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "creds.expires",
                     "no store here keeps when a credential ends (errand-box creds seal)");
        return FALSE;
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "creds.store",
                 "no credential store that takes values is loaded (see [credentials] order)");
    return FALSE;
}

/* Somebody who has creds.env before them types its keys; what else was typed may be a value, and is not shown. */
static gboolean
check_name(const char *name, GError **error)
{
    g_autofree char *wrong = eb_config_check_name(name);
    g_autofree char *meant = wrong != NULL ? eb_env_file_credential_for_key(name) : NULL;

    if (wrong == NULL)
        return TRUE;
    if (meant != NULL)
        eb_set_error(error, EB_ERROR_INVALID, "creds.name", "%s is the key in creds.env: the name is %s", name, meant);
    else
        eb_set_error(error, EB_ERROR_INVALID, "creds.name", "%s (model-key, for example)", wrong);
    return FALSE;
}

static void
note_doubt(EbCli *cli, const char *name, EbSecret *secret)
{
    g_auto(EbSecretView) view = eb_secret_view(secret);
    const char *doubt = eb_cli_value_doubt(view.bytes, view.length);

    if (doubt != NULL)
        eb_cli_note(cli, "the value of %s %s", name, doubt);
}

static int
set(EbCli *cli, GPtrArray *stores, const char *name)
{
    g_autoptr(GError) error = NULL;
    const char *until = eb_cli_args_value(eb_cli_get_args(cli), "expires");
    gint64 expires = 0;
    g_autoptr(EbSecret) secret = NULL;
    const char *used = NULL;

    if (check_name(name, &error) && until != NULL)
        expires = eb_cli_creds_parse_expiry(until, g_get_real_time() / G_USEC_PER_SEC, &error);
    if (error == NULL)
        secret = eb_cli_value_read(name, eb_cli_args_value(eb_cli_get_args(cli), "file"), &error);
    if (secret != NULL)
        note_doubt(cli, name, secret);
    if (secret == NULL || !put_somewhere(cli, stores, name, secret, expires, &used, &error))
        return eb_cli_fail(cli, "the credential is not kept", error);
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, kept_json(NULL, name, used));
    else
        eb_cli_print(cli, "%s is kept in %s\n", name, used);
    return EB_EXIT_OK;
}

/* What is left of @name in stores that no command changes, and so is still used. */
static char *
find_read_only(EbCli *cli, GPtrArray *read_only, const char *name)
{
    for (guint i = 0; i < read_only->len; i++) {
        const EbExtension *store = read_only->pdata[i];
        g_autoptr(EbCredential) left = eb_cli_creds_lookup(cli, store, name, NULL);
        if (left != NULL)
            return g_strdup(*left->source != '\0' ? left->source : store->name);
    }
    return NULL;
}

static int
drop(EbCli *cli, GPtrArray *stores, const char *name)
{
    g_autoptr(GPtrArray) read_only = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "store");
    g_autofree char *left = NULL;
    const char *from = NULL;

    if (!check_name(name, &error))
        return eb_cli_fail(cli, "the credential is not removed", error);
    for (guint i = 0; i < stores->len; i++) {
        const EbExtension *store = stores->pdata[i];
        g_autoptr(GError) local = NULL;
        if (wanted != NULL && strcmp(store->name, wanted) != 0)
            continue;
        if (eb_cli_creds_remove(cli, store, name, &local))
            from = store->name;
        else if (g_error_matches(local, EB_ERROR, EB_ERROR_NOT_SUPPORTED))
            g_ptr_array_add(read_only, (gpointer)store);
        /* Not there: another one may have it. */
        else if (!g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            return eb_cli_fail(cli, "the credential is not removed", local);
    }
    left = find_read_only(cli, read_only, name);
    if (from == NULL && left == NULL)
        return eb_cli_refuse(cli, "the credential is not removed: there is no credential \"%s\" %s%s", name,
                             wanted != NULL ? "in " : "to remove", wanted != NULL ? wanted : "");
    if (from == NULL)
        return eb_cli_refuse(cli, "the credential is not removed: %s cannot be changed by this command", left);
    if (left != NULL)
        eb_cli_note(cli, "%s is still in %s, which this command cannot change", name, left);
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, kept_json(NULL, name, from));
    else
        eb_cli_print(cli, "%s is removed\n", name);
    return EB_EXIT_OK;
}

static gboolean
import_entry(EbCli *cli, GPtrArray *stores, const EbEnvEntry *entry, JsonArray *kept, GError **error)
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
    kept_json(kept, name, used);
    if (!eb_cli_get_json(cli))
        eb_cli_print(cli, "%s is kept in %s\n", name, used);
    return TRUE;
}

static int
import(EbCli *cli, GPtrArray *stores, const char *file)
{
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    char *text = eb_cli_value_read_file(file, EB_ENV_FILE_MAX_BYTES, &length, &error);
    g_autoptr(GPtrArray) entries = text != NULL ? eb_env_file_parse(text, length, &error) : NULL;
    JsonArray *kept = json_array_new();

    if (text != NULL)
        explicit_bzero(text, length);
    g_free(text);
    for (guint i = 0; entries != NULL && error == NULL && i < entries->len; i++)
        import_entry(cli, stores, entries->pdata[i], kept, &error);
    gboolean any = json_array_get_length(kept) > 0;
    eb_cli_creds_print_json(cli, "kept", kept);
    if (error != NULL)
        return eb_cli_fail(cli, any ? "creds import, of which a part is kept" : "creds import", error);
    if (!any)
        eb_cli_note(cli, "%s holds no value: nothing was kept", file);
    return EB_EXIT_OK;
}

/* An option that a form of the command does not know would be passed over in silence. */
static gboolean
check_options(EbCli *cli, const char *verb)
{
    static const struct {
        const char *option, *verbs;
    } of[] = {{"file", "set"}, {"expires", "set"}, {"old-key", "seal"}, {"store", "list set remove import"}};
    EbCliArgs *args = eb_cli_get_args(cli);

    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_auto(GStrv) verbs = g_strsplit(of[i].verbs, " ", -1);
        if (eb_cli_args_value(args, of[i].option) == NULL || g_strv_contains((const char *const *)verbs, verb))
            continue;
        eb_cli_refuse(cli, "creds %s has no --%s (errand-box creds --help)", verb, of[i].option);
        return FALSE;
    }
    if (!eb_cli_args_flag(args, "replace") || strcmp(verb, "seal") == 0)
        return TRUE;
    eb_cli_refuse(cli, "creds %s has no --replace (errand-box creds --help)", verb);
    return FALSE;
}

/* Is every store there that somebody named: in the configuration, which is told, and by --store? */
static gboolean
check_stores(EbCli *cli, GPtrArray *stores, const char *const *order)
{
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "store");
    g_autoptr(GString) have = g_string_new(NULL);
    gboolean found = wanted == NULL;

    for (guint i = 0; i < stores->len; i++) {
        const char *name = ((const EbExtension *)stores->pdata[i])->name;
        g_string_append_printf(have, "%s%s", have->len > 0 ? ", " : "", name);
        found = found || strcmp(wanted, name) == 0;
    }
    for (; *order != NULL; order++) {
        gboolean loaded = FALSE;
        for (guint i = 0; i < stores->len && !loaded; i++)
            loaded = strcmp(((const EbExtension *)stores->pdata[i])->name, *order) == 0;
        if (!loaded)
            eb_cli_note(cli, "[credentials] order names \"%s\", and no store of that name is loaded", *order);
    }
    if (!found) {
        g_autofree char *shown = eb_log_escape(wanted, -1, 60);
        eb_cli_refuse(cli, "there is no credential store \"%s\" (in [credentials] order: %s)", shown,
                      have->len > 0 ? have->str : "none");
    }
    return found;
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
    if (!check_options(cli, verb) || !check_stores(cli, stores, eb_config_get_credential_order(config)))
        return EB_EXIT_REFUSED;
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
