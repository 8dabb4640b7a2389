/* SPDX-License-Identifier: MIT */
#include "env-file-store.h"

#include "creds-task.h"
#include "env-file-data.h"

#include <string.h>

struct _EbCredentialsEnvFileStore {
    GObject parent_instance;
    char **paths;
    char *account;
    GMutex writing; /* one change at a time: read, edit, replace */
};

static void eb_credentials_env_file_store_iface_init(EbCredentialStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsEnvFileStore, eb_credentials_env_file_store, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, eb_credentials_env_file_store_iface_init))

static void
eb_credentials_env_file_store_finalize(GObject *object)
{
    EbCredentialsEnvFileStore *self = EB_CREDENTIALS_ENV_FILE_STORE(object);

    g_strfreev(self->paths);
    g_free(self->account);
    g_mutex_clear(&self->writing);
    G_OBJECT_CLASS(eb_credentials_env_file_store_parent_class)->finalize(object);
}

static void
eb_credentials_env_file_store_class_init(EbCredentialsEnvFileStoreClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_credentials_env_file_store_finalize;
}

static void
eb_credentials_env_file_store_init(EbCredentialsEnvFileStore *self)
{
    g_mutex_init(&self->writing);
}

EbCredentialsEnvFileStore *
eb_credentials_env_file_store_new(const char *const *paths, const char *account)
{
    EbCredentialsEnvFileStore *self;

    g_return_val_if_fail(paths != NULL && paths[0] != NULL, NULL);
    self = g_object_new(EB_TYPE_CREDENTIALS_ENV_FILE_STORE, NULL);
    self->paths = g_strdupv((char **)paths);
    self->account = g_strdup(account);
    return self;
}

static char *
describe(EbCredentialStore *store)
{
    EbCredentialsEnvFileStore *self = EB_CREDENTIALS_ENV_FILE_STORE(store);
    g_autofree char *list = g_strjoinv(", ", self->paths);
    return g_strconcat("env-file ", list, NULL);
}

static EnvFile *
read_file(EbCredentialsEnvFileStore *self, const char *path, GError **error)
{
    return env_file_read(path, creds_owner_of_account(self->account), error);
}

/* What lets the search go on: the file is absent, or only somebody else's to read. */
static gboolean
may_pass(const GError *error)
{
    return g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) ||
           g_strcmp0(eb_error_get_reason(error), "credentials.unreadable") == 0;
}

static const EbEnvEntry *
find_entry(const EnvFile *file, const char *key)
{
    for (guint i = 0; i < file->entries->len; i++) {
        const EbEnvEntry *entry = file->entries->pdata[i];
        if (strcmp(entry->key, key) == 0 && *entry->value != '\0')
            return entry;
    }
    return NULL;
}

static EbCredential *
take_entry(const EnvFile *file, const EbEnvEntry *entry, const char *name, GError **error)
{
    gsize length = strlen(entry->value);
    g_autofree char *source = g_strdup_printf("env-file %s:%u", file->path, entry->line);
    EbSecret *secret = eb_secret_new_take(name, entry->value, length, error);
    EbCredential *credential;

    if (secret == NULL)
        return NULL;
    credential = eb_credential_new(secret, 0, source);
    credential->changed_unix = file->modified;
    eb_secret_unref(secret);
    return credential;
}

static void
lookup_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    CredsTask *work = data;
    g_autofree char *key = eb_env_file_key_for_credential(work->name);
    g_autoptr(GString) looked = g_string_new(NULL);
    gboolean closed = FALSE;

    for (char **path = self->paths; *path != NULL; path++) {
        GError *error = NULL;
        g_autoptr(EnvFile) file = read_file(self, *path, &error);
        const EbEnvEntry *entry = file != NULL ? find_entry(file, key) : NULL;
        if (entry != NULL) {
            EbCredential *credential = take_entry(file, entry, work->name, &error);
            if (credential != NULL)
                g_task_return_pointer(task, credential, (GDestroyNotify)eb_credential_free);
            else
                g_task_return_error(task, error);
            return;
        }
        if (error != NULL && !may_pass(error)) {
            g_task_return_error(task, error);
            return;
        }
        closed = closed || (error != NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND));
        g_string_append_printf(looked, "%s%s", looked->len > 0 ? ", " : "", error != NULL ? error->message : *path);
        g_clear_error(&error);
    }
    g_task_return_error(task,
                        eb_error_new(EB_ERROR_NOT_FOUND, closed ? "credentials.unreadable" : "credentials.missing",
                                     "%s is not in %s", key, looked->str));
}

static void
list_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GError) unreadable = NULL;
    gboolean any = FALSE;

    for (char **path = self->paths; *path != NULL; path++) {
        GError *error = NULL;
        g_autoptr(EnvFile) file = read_file(self, *path, &error);
        if (file == NULL && !may_pass(error)) {
            g_task_return_error(task, error);
            return;
        }
        any = any || file != NULL;
        if (error != NULL && unreadable == NULL && !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND))
            unreadable = g_steal_pointer(&error);
        g_clear_error(&error);
        for (guint i = 0; file != NULL && i < file->entries->len; i++) {
            const EbEnvEntry *entry = file->entries->pdata[i];
            char *name = eb_env_file_credential_for_key(entry->key);
            if (name != NULL && *entry->value != '\0')
                g_hash_table_add(names, name);
            else
                g_free(name);
        }
    }
    /* To whom every file there is is closed, an empty list would be a lie. */
    if (!any && unreadable != NULL) {
        g_task_return_error(task, g_steal_pointer(&unreadable));
        return;
    }
    g_task_return_pointer(task, creds_task_sorted(names), (GDestroyNotify)g_strfreev);
}

/* @secret: (nullable): NULL removes. @changed: (out): was there something to do? */
static gboolean
change_file(EbCredentialsEnvFileStore *self, const char *path, const char *name, EbSecret *secret, gboolean *changed,
            GError **error)
{
    g_autofree char *key = eb_env_file_key_for_credential(name);
    g_autoptr(GError) local = NULL;
    g_autoptr(EnvFile) file = read_file(self, path, &local);
    char *text = NULL;

    *changed = FALSE;
    if (file == NULL && !g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (secret == NULL) {
        if (file == NULL || eb_env_file_lookup(file->entries, key) == NULL)
            return TRUE;
        text = env_file_edit(file->text, key, NULL, 0, error);
    } else {
        g_auto(EbSecretView) view = eb_secret_view(secret);
        text = env_file_edit(file != NULL ? file->text : NULL, key, view.bytes, view.length, error);
    }
    if (text == NULL)
        return FALSE;
    gboolean good = env_file_write(path, text, file != NULL ? file->owner : creds_owner_of_directory(path), error);
    explicit_bzero(text, strlen(text));
    g_free(text);
    *changed = good;
    return good;
}

static void
put_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    CredsTask *work = data;
    GError *error = NULL;
    gboolean changed;

    g_mutex_lock(&self->writing);
    int lock = creds_file_lock(self->paths[0], cancellable, &error);
    if (lock >= 0)
        change_file(self, self->paths[0], work->name, work->secret, &changed, &error);
    creds_file_unlock(lock);
    g_mutex_unlock(&self->writing);
    creds_task_return(task, error);
}

static void
remove_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    CredsTask *work = data;
    GError *error = NULL;
    gboolean any = FALSE;

    g_mutex_lock(&self->writing);
    for (char **path = self->paths; *path != NULL && error == NULL; path++) {
        gboolean changed = FALSE;
        int lock = creds_file_lock(*path, cancellable, &error);
        if (lock >= 0)
            change_file(self, *path, work->name, NULL, &changed, &error);
        creds_file_unlock(lock);
        if (error != NULL && may_pass(error))
            g_clear_error(&error);
        any = any || changed;
    }
    g_mutex_unlock(&self->writing);
    if (error == NULL && !any)
        error = eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "there is no credential \"%s\" to remove",
                             work->name);
    creds_task_return(task, error);
}

static void
lookup_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    creds_task_start(store, name, NULL, 0, lookup_in_thread, lookup_async, cancellable, callback, user_data);
}

static void
list_async(EbCredentialStore *store, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    creds_task_start(store, NULL, NULL, 0, list_in_thread, list_async, cancellable, callback, user_data);
}

static void
put_async(EbCredentialStore *store, const char *name, EbSecret *secret, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    creds_task_start(store, name, secret, 0, put_in_thread, put_async, cancellable, callback, user_data);
}

static void
remove_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    creds_task_start(store, name, NULL, 0, remove_in_thread, remove_async, cancellable, callback, user_data);
}

static void
eb_credentials_env_file_store_iface_init(EbCredentialStoreInterface *iface)
{
    iface->describe = describe;
    iface->lookup_async = lookup_async;
    iface->lookup_finish = creds_task_lookup_finish;
    iface->list_async = list_async;
    iface->list_finish = creds_task_list_finish;
    iface->put_async = put_async;
    iface->put_finish = creds_task_change_finish;
    iface->remove_async = remove_async;
    iface->remove_finish = creds_task_change_finish;
}
