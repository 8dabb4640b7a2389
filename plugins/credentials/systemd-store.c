/* SPDX-License-Identifier: MIT */
#include "systemd-store.h"

#include "creds-file.h"
#include "creds-task.h"
#include "sealed-material.h"

#include <string.h>

struct _EbCredentialsSystemdStore {
    GObject parent_instance;
    char *dir; /* (nullable) */
};

static void eb_credentials_systemd_store_iface_init(EbCredentialStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsSystemdStore, eb_credentials_systemd_store, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, eb_credentials_systemd_store_iface_init))

static void
eb_credentials_systemd_store_finalize(GObject *object)
{
    g_free(EB_CREDENTIALS_SYSTEMD_STORE(object)->dir);
    G_OBJECT_CLASS(eb_credentials_systemd_store_parent_class)->finalize(object);
}

static void
eb_credentials_systemd_store_class_init(EbCredentialsSystemdStoreClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_credentials_systemd_store_finalize;
}

static void
eb_credentials_systemd_store_init(EbCredentialsSystemdStore *self)
{
}

EbCredentialsSystemdStore *
eb_credentials_systemd_store_new(const char *dir)
{
    EbCredentialsSystemdStore *self = g_object_new(EB_TYPE_CREDENTIALS_SYSTEMD_STORE, NULL);

    self->dir = dir != NULL && g_path_is_absolute(dir) ? g_strdup(dir) : NULL;
    return self;
}

static char *
describe(EbCredentialStore *store)
{
    EbCredentialsSystemdStore *self = EB_CREDENTIALS_SYSTEMD_STORE(store);

    return self->dir != NULL ? g_strconcat("systemd ", self->dir, NULL)
                             : g_strdup("systemd (nothing handed over to this program)");
}

/* (transfer full) (nullable) */
static EbCredential *
read_one(const EbCredentialsSystemdStore *self, const char *prefix, const char *name, GError **error)
{
    g_autofree char *file_name = g_strconcat(prefix, name, NULL);
    g_autofree char *path = g_build_filename(self->dir, file_name, NULL);
    g_auto(CredsFile) file = CREDS_FILE_INIT;

    /* Its group's bits are the mask of the access list that lets the service alone read it. */
    if (!creds_file_open(&file, path, (CredsOwner){0, 0}, 027, EB_SECRET_MAX_BYTES + 2, error))
        return NULL;
    g_autoptr(EbSecret) secret = eb_secret_new_from_fd(name, file.fd, error);
    if (secret == NULL) {
        g_prefix_error(error, "%s: ", path);
        return NULL;
    }
    g_autofree char *where = g_strconcat("systemd ", path, NULL);
    EbCredential *credential = eb_credential_new(secret, 0, where);
    credential->changed_unix = file.modified;
    return credential;
}

static void
lookup_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    static const char *const prefixes[] = {SYSTEMD_PREFIX, ""};
    EbCredentialsSystemdStore *self = source;
    const CredsTask *work = data;

    for (guint i = 0; self->dir != NULL && i < G_N_ELEMENTS(prefixes); i++) {
        GError *error = NULL;
        EbCredential *credential = read_one(self, prefixes[i], work->name, &error);
        if (credential != NULL) {
            g_task_return_pointer(task, credential, (GDestroyNotify)eb_credential_free);
            return;
        }
        if (!g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND)) {
            g_task_return_error(task, error);
            return;
        }
        g_error_free(error);
    }
    if (self->dir != NULL)
        g_task_return_error(
            task, eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "%s is not in %s", work->name, self->dir));
    else
        g_task_return_error(
            task, eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "systemd hands no credentials over here"));
}

static void
list_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsSystemdStore *self = source;
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GDir) dir = self->dir != NULL ? g_dir_open(self->dir, 0, NULL) : NULL;
    const char *name = dir != NULL ? g_dir_read_name(dir) : NULL;

    for (guint i = 0; name != NULL && i < SYSTEMD_MAX_FILES; i++, name = g_dir_read_name(dir)) {
        /* What opens the sealed store is none of the credentials. */
        if (strcmp(name, SEALED_HANDED_KEY) == 0 || strcmp(name, SEALED_HANDED_PASSPHRASE) == 0)
            continue;
        const char *bare = g_str_has_prefix(name, SYSTEMD_PREFIX) ? name + strlen(SYSTEMD_PREFIX) : name;
        if (creds_is_name(bare, strlen(bare)))
            g_hash_table_add(names, g_strdup(bare));
    }
    g_task_return_pointer(task, creds_task_sorted(names), (GDestroyNotify)g_strfreev);
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

/* Nothing is put or removed: the interface's own answers say so. */
static void
eb_credentials_systemd_store_iface_init(EbCredentialStoreInterface *iface)
{
    iface->describe = describe;
    iface->lookup_async = lookup_async;
    iface->lookup_finish = creds_task_lookup_finish;
    iface->list_async = list_async;
    iface->list_finish = creds_task_list_finish;
}
