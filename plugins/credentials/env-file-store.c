/* SPDX-License-Identifier: MIT */
#include "env-file-store.h"

#include "env-file-data.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct _EbCredentialsEnvFileStore {
    GObject parent_instance;
    char **paths;
    char *account;
    GMutex writing; /* one change at a time: read, edit, replace */
};

static void eb_credentials_env_file_store_iface_init(EbCredentialStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsEnvFileStore, eb_credentials_env_file_store, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, eb_credentials_env_file_store_iface_init))

/* Work for a thread: files may lie on a slow disk, and the loop must not wait for one. */
typedef struct {
    char *name;
    EbSecret *secret; /* (nullable) */
} Work;

static void
work_free(gpointer data)
{
    Work *work = data;

    g_free(work->name);
    eb_secret_unref(work->secret);
    g_free(work);
}

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

/* Root reads what the account owns; without an account of that name nobody more. */
static gboolean
account_ids(EbCredentialsEnvFileStore *self, guint32 *uid, guint32 *gid)
{
    char buffer[4096];
    struct passwd entry, *found = NULL;

    if (getpwnam_r(self->account, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL)
        return FALSE;
    *uid = found->pw_uid;
    *gid = found->pw_gid;
    return TRUE;
}

static EnvFile *
read_file(EbCredentialsEnvFileStore *self, const char *path, GError **error)
{
    guint32 uid = 0, gid = 0;

    account_ids(self, &uid, &gid);
    return env_file_read(path, uid, error);
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
    eb_secret_unref(secret);
    return credential;
}

static void
lookup_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    Work *work = data;
    g_autofree char *key = eb_env_file_key_for_credential(work->name);
    g_autoptr(GString) looked = g_string_new(NULL);

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
        g_string_append_printf(looked, "%s%s", looked->len > 0 ? ", " : "", error != NULL ? error->message : *path);
        g_clear_error(&error);
    }
    g_task_return_error(task,
                        eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "%s is not in %s", key, looked->str));
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
    GList *sorted = g_list_sort(g_hash_table_get_keys(names), (GCompareFunc)strcmp);
    GPtrArray *list = g_ptr_array_new();
    for (GList *at = sorted; at != NULL; at = at->next)
        g_ptr_array_add(list, g_strdup(at->data));
    g_list_free(sorted);
    g_ptr_array_add(list, NULL);
    g_task_return_pointer(task, g_ptr_array_free(list, FALSE), (GDestroyNotify)g_strfreev);
}

/* A new file belongs to whom its directory belongs to: the account in the state directory, root in /etc. */
static void
owner_of_new(const char *path, guint32 *uid, guint32 *gid)
{
    g_autofree char *dir = g_path_get_dirname(path);
    struct stat info;

    *uid = *gid = 0;
    if (stat(dir, &info) == 0) {
        *uid = info.st_uid;
        *gid = info.st_gid;
    }
}

/* @secret: (nullable): NULL removes. @changed: (out): was there something to do? */
static gboolean
change_file(EbCredentialsEnvFileStore *self, const char *path, const char *name, EbSecret *secret, gboolean *changed,
            GError **error)
{
    g_autofree char *key = eb_env_file_key_for_credential(name);
    g_autoptr(GError) local = NULL;
    g_autoptr(EnvFile) file = read_file(self, path, &local);
    guint32 uid, gid;
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
    if (file != NULL) {
        uid = file->uid;
        gid = file->gid;
    } else {
        owner_of_new(path, &uid, &gid);
    }
    gboolean good = env_file_write(path, text, uid, gid, error);
    explicit_bzero(text, strlen(text));
    g_free(text);
    *changed = good;
    return good;
}

static void
put_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    Work *work = data;
    GError *error = NULL;
    gboolean changed;

    g_mutex_lock(&self->writing);
    gboolean good = change_file(self, self->paths[0], work->name, work->secret, &changed, &error);
    g_mutex_unlock(&self->writing);
    if (good)
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static void
remove_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsEnvFileStore *self = source;
    Work *work = data;
    GError *error = NULL;
    gboolean any = FALSE;

    g_mutex_lock(&self->writing);
    for (char **path = self->paths; *path != NULL && error == NULL; path++) {
        gboolean changed;
        if (!change_file(self, *path, work->name, NULL, &changed, &error) && may_pass(error))
            g_clear_error(&error);
        any = any || changed;
    }
    g_mutex_unlock(&self->writing);
    if (error == NULL && !any)
        error = eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "there is no credential \"%s\" to remove",
                             work->name);
    if (error == NULL)
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

static gboolean
is_name(const char *name)
{
    gsize length = strlen(name);
    return length > 0 && length <= 63 && g_ascii_islower(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static void
start(EbCredentialStore *store, const char *name, EbSecret *secret, GTaskThreadFunc func, gpointer tag,
      GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(store, cancellable, callback, user_data);
    Work *work;

    g_task_set_source_tag(task, tag);
    if (name != NULL && !is_name(name)) {
        g_autofree char *shown = eb_log_escape(name, -1, 80);
        g_task_return_error(task, eb_error_new(EB_ERROR_INVALID, "credentials.name",
                                               "\"%s\" is no name of a credential (lower-case letters, digits, \"-\")",
                                               shown));
        g_object_unref(task);
        return;
    }
    work = g_new0(Work, 1);
    work->name = g_strdup(name);
    work->secret = secret != NULL ? eb_secret_ref(secret) : NULL;
    g_task_set_task_data(task, work, work_free);
    g_task_run_in_thread(task, func);
    g_object_unref(task);
}

static void
lookup_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    start(store, name, NULL, lookup_in_thread, lookup_async, cancellable, callback, user_data);
}

static EbCredential *
lookup_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
list_async(EbCredentialStore *store, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    start(store, NULL, NULL, list_in_thread, list_async, cancellable, callback, user_data);
}

static char **
list_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
put_async(EbCredentialStore *store, const char *name, EbSecret *secret, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    start(store, name, secret, put_in_thread, put_async, cancellable, callback, user_data);
}

static void
remove_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    start(store, name, NULL, remove_in_thread, remove_async, cancellable, callback, user_data);
}

static gboolean
change_finish(EbCredentialStore *store, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, store), FALSE);
    gboolean good = g_task_propagate_boolean(G_TASK(result), error);
    if (good) {
        const Work *work = g_task_get_task_data(G_TASK(result));
        g_signal_emit_by_name(store, "changed", work->name);
    }
    return good;
}

static void
eb_credentials_env_file_store_iface_init(EbCredentialStoreInterface *iface)
{
    iface->describe = describe;
    iface->lookup_async = lookup_async;
    iface->lookup_finish = lookup_finish;
    iface->list_async = list_async;
    iface->list_finish = list_finish;
    iface->put_async = put_async;
    iface->put_finish = change_finish;
    iface->remove_async = remove_async;
    iface->remove_finish = change_finish;
}
