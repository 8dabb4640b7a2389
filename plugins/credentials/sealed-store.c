/* SPDX-License-Identifier: MIT */
#include "sealed-store.h"

#include "creds-task.h"
#include "sealed-box.h"

#include <sodium.h>
#include <string.h>

#define RIGHT_KEY                                                                                                      \
    " (put the right one back; where this is to be the one from now on: errand-box creds seal --old-key FILE)"

struct _EbCredentialsSealedStore {
    GObject parent_instance;
    char *path;
    SealedSources sources;
    GMutex lock;         /* one call at a time: what is read is still there when it is written back */
    EbSecret *key;       /* (owned) (nullable): of the last file, since stretching a passphrase takes its time; */
    SealedHeader header; /* for this salt and these parameters */
    CredsFileId key_id;  /* and this passphrase or key file */
};

static void eb_credentials_sealed_store_iface_init(EbCredentialStoreInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE(EbCredentialsSealedStore, eb_credentials_sealed_store, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_CREDENTIAL_STORE, eb_credentials_sealed_store_iface_init))

static void
eb_credentials_sealed_store_finalize(GObject *object)
{
    EbCredentialsSealedStore *self = EB_CREDENTIALS_SEALED_STORE(object);

    g_free(self->path);
    sealed_sources_clear(&self->sources);
    eb_secret_unref(self->key);
    g_mutex_clear(&self->lock);
    G_OBJECT_CLASS(eb_credentials_sealed_store_parent_class)->finalize(object);
}

static void
eb_credentials_sealed_store_class_init(EbCredentialsSealedStoreClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_credentials_sealed_store_finalize;
    /* Again is nothing; without it the library's memory is out of reach. */
    if (sodium_init() < 0)
        g_error("libsodium cannot initialise: no source of randomness");
}

static void
eb_credentials_sealed_store_init(EbCredentialsSealedStore *self)
{
    g_mutex_init(&self->lock);
}

EbCredentialsSealedStore *
eb_credentials_sealed_store_new(const char *path, const SealedSources *sources)
{
    EbCredentialsSealedStore *self = g_object_new(EB_TYPE_CREDENTIALS_SEALED_STORE, NULL);

    self->path = g_strdup(path);
    self->sources.passphrase_file = g_strdup(sources->passphrase_file);
    self->sources.key_file = g_strdup(sources->key_file);
    self->sources.handed_dir = g_strdup(sources->handed_dir);
    self->sources.own_key_file = g_strdup(sources->own_key_file);
    self->sources.account = g_strdup(sources->account);
    return self;
}

static char *
describe(EbCredentialStore *store)
{
    return g_strconcat("sealed ", EB_CREDENTIALS_SEALED_STORE(store)->path, NULL);
}

/* --- in the thread, under the lock --- */

/* (transfer full) (nullable): the bytes of the file; they are encrypted, so plain memory will do. */
static GBytes *
read_file(EbCredentialsSealedStore *self, CredsOwner *owner, SealedHeader *header, GError **error)
{
    g_auto(CredsFile) file = CREDS_FILE_INIT;

    if (!creds_file_open(&file, self->path, creds_owner_of_account(self->sources.account), 077, SEALED_MAX_BYTES,
                         error))
        return NULL;
    g_autofree guint8 *bytes = g_malloc(file.size + 1);
    gssize got = creds_file_read(&file, self->path, bytes, file.size, error);
    if (got < 0)
        return NULL;
    if (!sealed_header_decode(bytes, (gsize)got, header, error) ||
        !sealed_header_check_length(header, (gsize)got, error)) {
        g_prefix_error(error, "%s: ", self->path);
        return NULL;
    }
    *owner = file.owner;
    return g_bytes_new_take(g_steal_pointer(&bytes), (gsize)got);
}

static gboolean
is_key_of(const EbCredentialsSealedStore *self, const SealedHeader *header, const CredsFileId *id)
{
    return self->key != NULL && creds_file_id_equal(&self->key_id, id) && self->header.kdf == header->kdf &&
           self->header.passes == header->passes && self->header.memory_kib == header->memory_kib &&
           memcmp(self->header.salt, header->salt, sizeof header->salt) == 0;
}

/* (transfer none) (nullable): the key for @header, which may be a new one. */
static EbSecret *
get_key(EbCredentialsSealedStore *self, const SealedHeader *header, const SealedMaterial *material, GError **error)
{
    if (is_key_of(self, header, &material->id))
        return self->key;
    EbSecret *key = sealed_key_derive(header, material->secret, error);
    if (key == NULL) {
        g_prefix_error(error, "%s: ", material->path);
        return NULL;
    }
    eb_secret_unref(self->key);
    self->key = key;
    self->header = *header;
    self->key_id = material->id;
    return key;
}

static gboolean
kdf_fits(const EbCredentialsSealedStore *self, const SealedHeader *header, const SealedMaterial *material,
         GError **error)
{
    if (header->kdf == material->kdf)
        return TRUE;
    eb_set_error(error, EB_ERROR_DENIED, "sealed.wrong-key", "%s was sealed with a %s, and %s is a %s" RIGHT_KEY,
                 self->path, header->kdf == SEALED_KDF_PASSPHRASE ? "passphrase" : "key file", material->path,
                 header->kdf == SEALED_KDF_PASSPHRASE ? "key file" : "passphrase");
    return FALSE;
}

/* What a read gives for a later write. */
typedef struct {
    GPtrArray *entries; /* (owned) (element-type SealedEntry) */
    SealedHeader header;
    CredsOwner owner;
} Opened;

static void
opened_clear(Opened *self)
{
    g_clear_pointer(&self->entries, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Opened, opened_clear)

/* EB_ERROR_NOT_FOUND "credentials.absent" without a file. */
static gboolean
open_file(EbCredentialsSealedStore *self, Opened *opened, GError **error)
{
    g_autoptr(GBytes) bytes = read_file(self, &opened->owner, &opened->header, error);
    g_autoptr(GError) local = NULL;
    gsize length;

    if (bytes == NULL)
        return FALSE;
    g_autoptr(SealedMaterial) material = sealed_material_find(&self->sources, &local);
    if (material == NULL) {
        gboolean gone = g_strcmp0(eb_error_get_reason(local), "sealed.no-key") == 0;
        /* Not an absence: the value may well be in there, and an older one in the next store. */
        eb_set_error(error, EB_ERROR_DENIED, "sealed.no-key", "%s cannot be opened: %s%s", self->path, local->message,
                     gone ? " (put it back; if it is lost, move the sealed file away and set its values again)" : "");
        return FALSE;
    }
    if (!kdf_fits(self, &opened->header, material, error))
        return FALSE;
    EbSecret *key = get_key(self, &opened->header, material, error);
    const guint8 *data = g_bytes_get_data(bytes, &length);
    opened->entries = key != NULL ? sealed_open(data, length, key, &local) : NULL;
    if (key == NULL || opened->entries != NULL)
        return opened->entries != NULL;
    gboolean wrong = g_strcmp0(eb_error_get_reason(local), "sealed.wrong-key") == 0;
    eb_set_error(error, (EbErrorCode)local->code, eb_error_get_reason(local), "%s, with %s: %s%s", self->path,
                 material->path, local->message, wrong ? RIGHT_KEY : "");
    return FALSE;
}

static gboolean
write_file(EbCredentialsSealedStore *self, const Opened *opened, const SealedMaterial *material, GError **error)
{
    EbSecret *key = get_key(self, &opened->header, material, error);
    g_autoptr(GBytes) bytes = key != NULL ? sealed_close(&opened->header, opened->entries, key, error) : NULL;
    gsize length;

    if (bytes == NULL)
        return FALSE;
    const void *data = g_bytes_get_data(bytes, &length);
    return creds_file_replace(self->path, data, length, opened->owner, error);
}

/* An empty file to be, for the first value. EB_ERROR_NOT_SUPPORTED without a key: nobody has asked for sealing yet. */
static gboolean
begin_file(EbCredentialsSealedStore *self, Opened *opened, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(SealedMaterial) material = sealed_material_find(&self->sources, &local);

    gboolean named = self->sources.key_file != NULL || self->sources.passphrase_file != NULL;
    if (material == NULL && g_strcmp0(eb_error_get_reason(local), "sealed.no-key") == 0) {
        eb_set_error(error, named ? EB_ERROR_CONFIG : EB_ERROR_NOT_SUPPORTED, "sealed.no-key", "%s (%s)",
                     local->message,
                     self->sources.passphrase_file != NULL ? "write a passphrase into it, mode 0600"
                                                           : "errand-box creds seal makes one");
        return FALSE;
    }
    if (material == NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (!sealed_material_check(material, error))
        return FALSE;
    opened->entries = g_ptr_array_new_with_free_func(sealed_entry_free);
    opened->owner = creds_owner_of_directory(self->path);
    sealed_header_new(&opened->header, material->kdf);
    return TRUE;
}

/* @secret: (nullable): NULL removes */
static gboolean
change(EbCredentialsSealedStore *self, const char *name, EbSecret *secret, gint64 expires, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_auto(Opened) opened = {0};

    if (!open_file(self, &opened, &local)) {
        if (secret == NULL || g_strcmp0(eb_error_get_reason(local), "credentials.absent") != 0) {
            g_propagate_error(error, g_steal_pointer(&local));
            return FALSE;
        }
        if (!begin_file(self, &opened, error))
            return FALSE;
    }
    SealedEntry *before = sealed_entries_find(opened.entries, name);
    if (secret == NULL && before == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "credentials.missing", "there is no credential \"%s\" to remove", name);
        return FALSE;
    }
    if (before != NULL)
        g_ptr_array_remove(opened.entries, before);
    if (secret != NULL)
        g_ptr_array_add(opened.entries, sealed_entry_new(name, secret, expires, g_get_real_time() / G_USEC_PER_SEC));
    g_autoptr(SealedMaterial) material = sealed_material_find(&self->sources, error);
    return material != NULL && write_file(self, &opened, material, error);
}

/* --- calls --- */

static void
lookup_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsSealedStore *self = source;
    const CredsTask *work = data;
    g_auto(Opened) opened = {0};
    GError *error = NULL;

    g_mutex_lock(&self->lock);
    gboolean good = open_file(self, &opened, &error);
    g_mutex_unlock(&self->lock);
    if (!good) {
        g_task_return_error(task, error);
        return;
    }
    const SealedEntry *entry = sealed_entries_find(opened.entries, work->name);
    if (entry == NULL) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_NOT_FOUND, "credentials.missing", "%s is not in %s", work->name, self->path));
        return;
    }
    g_autofree char *where = g_strconcat("sealed ", self->path, NULL);
    EbCredential *credential = eb_credential_new(entry->secret, entry->expires, where);
    credential->changed_unix = entry->changed;
    g_task_return_pointer(task, credential, (GDestroyNotify)eb_credential_free);
}

static void
list_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsSealedStore *self = source;
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_auto(Opened) opened = {0};
    GError *error = NULL;

    g_mutex_lock(&self->lock);
    gboolean good = open_file(self, &opened, &error);
    g_mutex_unlock(&self->lock);
    if (!good && g_strcmp0(eb_error_get_reason(error), "credentials.absent") != 0) {
        g_task_return_error(task, error);
        return;
    }
    g_clear_error(&error);
    for (guint i = 0; good && i < opened.entries->len; i++)
        g_hash_table_add(names, ((SealedEntry *)opened.entries->pdata[i])->name);
    g_task_return_pointer(task, creds_task_sorted(names), (GDestroyNotify)g_strfreev);
}

static void
change_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsSealedStore *self = source;
    const CredsTask *work = data;
    GError *error = NULL;

    g_mutex_lock(&self->lock);
    int lock = creds_file_lock(self->path, cancellable, &error);
    if (lock >= 0)
        change(self, work->name, work->secret, work->expires, &error);
    creds_file_unlock(lock);
    g_mutex_unlock(&self->lock);
    creds_task_return(task, error);
}

/* Opens with @previous, and writes under what is there now. Once more after a crash finds it done. */
static gboolean
rekey(EbCredentialsSealedStore *self, EbSecret *previous, GError **error)
{
    g_auto(Opened) opened = {0};
    g_autoptr(GBytes) bytes = read_file(self, &opened.owner, &opened.header, error);
    g_autoptr(GError) local = NULL;
    gsize length;

    if (bytes == NULL)
        return FALSE;
    g_autoptr(SealedMaterial) material = sealed_material_find(&self->sources, error);
    g_autoptr(EbSecret) old = material != NULL ? sealed_key_derive(&opened.header, previous, error) : NULL;
    if (old == NULL)
        return FALSE;
    const guint8 *data = g_bytes_get_data(bytes, &length);
    opened.entries = sealed_open(data, length, old, &local);
    if (opened.entries == NULL) {
        g_auto(Opened) now = {0};
        if (g_strcmp0(eb_error_get_reason(local), "sealed.wrong-key") == 0 && open_file(self, &now, NULL))
            return TRUE;
        g_propagate_prefixed_error(error, g_steal_pointer(&local), "%s, with the previous key: ", self->path);
        return FALSE;
    }
    if (!sealed_material_check(material, error))
        return FALSE;
    sealed_header_new(&opened.header, material->kdf);
    return write_file(self, &opened, material, error);
}

/* No key is made for a file that some other key closed: where that one only is not there just now, the new one would be
 * in its place. */
static gboolean
begin_sealing(EbCredentialsSealedStore *self, EbSecret *previous, GError **error)
{
    const CredsFileId none = {0};
    CredsFileId id = creds_file_id(self->path);
    g_auto(Opened) opened = {0};

    if (!creds_file_id_equal(&id, &none))
        return previous != NULL ? sealed_material_make(&self->sources, error) && rekey(self, previous, error)
                                : open_file(self, &opened, error);
    if (previous == NULL)
        return sealed_material_make(&self->sources, error);
    eb_set_error(error, EB_ERROR_NOT_FOUND, "credentials.absent",
                 "%s is not there: nothing is to be closed with another key (leave --old-key out)", self->path);
    return FALSE;
}

static void
rekey_in_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    EbCredentialsSealedStore *self = source;
    const CredsTask *work = data;
    GError *error = NULL;

    g_mutex_lock(&self->lock);
    int lock = creds_file_lock(self->path, cancellable, &error);
    if (lock >= 0)
        begin_sealing(self, work->secret, &error);
    creds_file_unlock(lock);
    g_mutex_unlock(&self->lock);
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
    creds_task_start(store, name, secret, 0, change_in_thread, put_async, cancellable, callback, user_data);
}

static void
put_credential_async(EbCredentialStore *store, const char *name, const EbCredential *credential,
                     GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    creds_task_start(store, name, credential->secret, MAX(credential->expires_unix, 0), change_in_thread,
                     put_credential_async, cancellable, callback, user_data);
}

static void
remove_async(EbCredentialStore *store, const char *name, GCancellable *cancellable, GAsyncReadyCallback callback,
             gpointer user_data)
{
    creds_task_start(store, name, NULL, 0, change_in_thread, remove_async, cancellable, callback, user_data);
}

static void
rekey_async(EbCredentialStore *store, EbSecret *previous, GCancellable *cancellable, GAsyncReadyCallback callback,
            gpointer user_data)
{
    creds_task_start(store, NULL, previous, 0, rekey_in_thread, rekey_async, cancellable, callback, user_data);
}

static void
eb_credentials_sealed_store_iface_init(EbCredentialStoreInterface *iface)
{
    iface->describe = describe;
    iface->lookup_async = lookup_async;
    iface->lookup_finish = creds_task_lookup_finish;
    iface->list_async = list_async;
    iface->list_finish = creds_task_list_finish;
    iface->put_async = put_async;
    iface->put_finish = creds_task_change_finish;
    iface->put_credential_async = put_credential_async;
    iface->put_credential_finish = creds_task_change_finish;
    iface->remove_async = remove_async;
    iface->remove_finish = creds_task_change_finish;
    iface->rekey_async = rekey_async;
    iface->rekey_finish = creds_task_change_finish;
}
