/* SPDX-License-Identifier: MIT */
#include "creds-watch.h"
#include "env-file-store.h"
#include "sealed-store.h"
#include "systemd-store.h"

#define ETC "/etc/errand-box/"

#define EB_TYPE_CREDENTIALS_PLUGIN (eb_credentials_plugin_get_type())
G_DECLARE_FINAL_TYPE(EbCredentialsPlugin, eb_credentials_plugin, EB, CREDENTIALS_PLUGIN, GObject)

/** CredsSettings: the table [plugin.credentials]. */
typedef struct {
    char *file;            /* (nullable) */
    char *sealed_file;     /* (nullable) */
    char *passphrase_file; /* (nullable) */
    char *key_file;        /* (nullable) */
} CredsSettings;

struct _EbCredentialsPlugin {
    GObject parent_instance;
    EbCredentialStore *env_file, *sealed; /* (owned) */
    GPtrArray *env_paths, *sealed_paths;  /* (element-type utf8) what is watched once started */
    CredsWatch *env_watch, *sealed_watch; /* (nullable) */
};

static void eb_credentials_plugin_iface_init(EbPluginInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsPlugin, eb_credentials_plugin, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_PLUGIN, eb_credentials_plugin_iface_init))

static void
stop_watching(EbCredentialsPlugin *self)
{
    g_clear_pointer(&self->env_watch, creds_watch_free);
    g_clear_pointer(&self->sealed_watch, creds_watch_free);
}

static void
eb_credentials_plugin_finalize(GObject *object)
{
    EbCredentialsPlugin *self = EB_CREDENTIALS_PLUGIN(object);

    stop_watching(self);
    g_ptr_array_unref(self->env_paths);
    g_ptr_array_unref(self->sealed_paths);
    g_clear_object(&self->env_file);
    g_clear_object(&self->sealed);
    G_OBJECT_CLASS(eb_credentials_plugin_parent_class)->finalize(object);
}

static void
eb_credentials_plugin_class_init(EbCredentialsPluginClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_credentials_plugin_finalize;
}

static void
eb_credentials_plugin_init(EbCredentialsPlugin *self)
{
    self->env_paths = g_ptr_array_new_with_free_func(g_free);
    self->sealed_paths = g_ptr_array_new_with_free_func(g_free);
}

static gboolean
get_path(EbConfigSection *section, const char *key, char **path, GError **error)
{
    g_autoptr(GError) local = NULL;

    *path = eb_config_section_get_string(section, key, NULL, &local);
    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (*path != NULL && !g_path_is_absolute(*path)) {
        g_autofree char *where = eb_config_section_where(section, key);
        eb_set_error(error, EB_ERROR_CONFIG, "config.value", "%s: plugin.credentials.%s must be an absolute path",
                     where, key);
        return FALSE;
    }
    return TRUE;
}

static void
settings_clear(CredsSettings *self)
{
    g_free(self->file);
    g_free(self->sealed_file);
    g_free(self->passphrase_file);
    g_free(self->key_file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CredsSettings, settings_clear)

/* One would be written over the other, and what opens the sealed file be gone. */
static gboolean
check_distinct(EbConfigSection *section, const CredsSettings *settings, GError **error)
{
    const struct {
        const char *key, *path;
    } of[] = {{"file", settings->file},
              {"sealed_file", settings->sealed_file},
              {"sealed_passphrase_file", settings->passphrase_file},
              {"sealed_key_file", settings->key_file}};

    for (guint i = 0; i < G_N_ELEMENTS(of); i++)
        for (guint j = 0; j < i; j++)
            if (of[i].path != NULL && g_strcmp0(of[i].path, of[j].path) == 0) {
                g_autofree char *where = eb_config_section_where(section, of[i].key);
                eb_set_error(error, EB_ERROR_CONFIG, "config.value",
                             "%s: plugin.credentials.%s and %s are one file: give each its own", where, of[j].key,
                             of[i].key);
                return FALSE;
            }
    return TRUE;
}

static gboolean
read_settings(EbConfigSection *section, CredsSettings *settings, GError **error)
{
    if (!get_path(section, "file", &settings->file, error) ||
        !get_path(section, "sealed_file", &settings->sealed_file, error) ||
        !get_path(section, "sealed_passphrase_file", &settings->passphrase_file, error) ||
        !get_path(section, "sealed_key_file", &settings->key_file, error))
        return FALSE;
    if (settings->passphrase_file != NULL && settings->key_file != NULL) {
        g_autofree char *where = eb_config_section_where(section, "sealed_key_file");
        eb_set_error(error, EB_ERROR_CONFIG, "config.value",
                     "%s: plugin.credentials has both sealed_passphrase_file and sealed_key_file: keep one", where);
        return FALSE;
    }
    return check_distinct(section, settings, error) && eb_config_section_check_unknown(section, error);
}

static void
make_env_file(EbCredentialsPlugin *self, EbPluginContext *context, const CredsSettings *settings)
{
    if (settings->file != NULL) {
        g_ptr_array_add(self->env_paths, g_strdup(settings->file));
    } else {
        g_ptr_array_add(self->env_paths, g_build_filename(eb_plugin_context_get_state_dir(context), "creds.env", NULL));
        g_ptr_array_add(self->env_paths, g_strdup(ETC "creds.env"));
    }
    g_autoptr(GPtrArray) paths = g_ptr_array_copy(self->env_paths, NULL, NULL);
    g_ptr_array_set_free_func(paths, NULL);
    g_ptr_array_add(paths, NULL);
    self->env_file = EB_CREDENTIAL_STORE(
        eb_credentials_env_file_store_new((const char *const *)paths->pdata, eb_plugin_context_get_account(context)));
}

static void
make_sealed(EbCredentialsPlugin *self, EbPluginContext *context, const CredsSettings *settings, const char *handed)
{
    g_autofree char *path = settings->sealed_file != NULL
                                ? g_strdup(settings->sealed_file)
                                : g_build_filename(eb_plugin_context_get_state_dir(context), "creds.sealed", NULL);
    SealedSources sources = {settings->passphrase_file, settings->key_file, (char *)handed, (char *)ETC "seal.key",
                             (char *)eb_plugin_context_get_account(context)};

    self->sealed = EB_CREDENTIAL_STORE(eb_credentials_sealed_store_new(path, &sources));
    g_ptr_array_add(self->sealed_paths, g_steal_pointer(&path));
    g_ptr_array_add(self->sealed_paths, g_strdup(settings->passphrase_file != NULL ? settings->passphrase_file
                                                 : settings->key_file != NULL      ? settings->key_file
                                                                                   : ETC "seal.key"));
}

static gboolean
configure(EbPlugin *plugin, EbPluginContext *context, EbConfigSection *section, GError **error)
{
    EbCredentialsPlugin *self = EB_CREDENTIALS_PLUGIN(plugin);
    g_auto(CredsSettings) settings = {0};
    /* The one thing that is no setting: the service manager names it anew with each start. */
    const char *handed = g_getenv("CREDENTIALS_DIRECTORY");

    if (handed != NULL && !g_path_is_absolute(handed))
        handed = NULL;
    if (!read_settings(section, &settings, error))
        return FALSE;
    g_autoptr(EbCredentialsSystemdStore) systemd = eb_credentials_systemd_store_new(handed);
    make_env_file(self, context, &settings);
    make_sealed(self, context, &settings, handed);
    return eb_plugin_context_provide(context, EB_EXTENSION_CREDENTIAL_STORE, "systemd", G_OBJECT(systemd), error) &&
           eb_plugin_context_provide(context, EB_EXTENSION_CREDENTIAL_STORE, "sealed", G_OBJECT(self->sealed), error) &&
           eb_plugin_context_provide(context, EB_EXTENSION_CREDENTIAL_STORE, "env-file", G_OBJECT(self->env_file),
                                     error);
}

static CredsWatch *
watch(EbCredentialStore *store, GPtrArray *paths)
{
    CredsWatch *self = creds_watch_new(store);

    for (guint i = 0; i < paths->len; i++)
        creds_watch_add(self, paths->pdata[i]);
    return self;
}

/* In the service alone: a command is over before anything changes. */
static void
start_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    EbCredentialsPlugin *self = EB_CREDENTIALS_PLUGIN(plugin);
    g_autoptr(GTask) task = g_task_new(plugin, cancellable, callback, user_data);

    self->env_watch = watch(self->env_file, self->env_paths);
    self->sealed_watch = watch(self->sealed, self->sealed_paths);
    g_task_return_boolean(task, TRUE);
}

static void
stop_async(EbPlugin *plugin, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(plugin, cancellable, callback, user_data);

    stop_watching(EB_CREDENTIALS_PLUGIN(plugin));
    g_task_return_boolean(task, TRUE);
}

static gboolean
finish(EbPlugin *plugin, GAsyncResult *result, GError **error)
{
    return g_task_propagate_boolean(G_TASK(result), error);
}

static void
eb_credentials_plugin_iface_init(EbPluginInterface *iface)
{
    iface->configure = configure;
    iface->start_async = start_async;
    iface->start_finish = finish;
    iface->stop_async = stop_async;
    iface->stop_finish = finish;
}

static EbPlugin *
create(void)
{
    return EB_PLUGIN(g_object_new(EB_TYPE_CREDENTIALS_PLUGIN, NULL));
}

EB_PLUGIN_DEFINE("credentials", EB_VERSION, create);
