/* SPDX-License-Identifier: MIT */
#include "sealed-material.h"

#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#define NEW_KEY_BYTES 32
/* A supervisor hands files over that their group may read by an access list of ours alone. */
#define OWN_FILE 077
#define HANDED_FILE 027

void
sealed_sources_clear(SealedSources *self)
{
    g_clear_pointer(&self->passphrase_file, g_free);
    g_clear_pointer(&self->key_file, g_free);
    g_clear_pointer(&self->handed_dir, g_free);
    g_clear_pointer(&self->own_key_file, g_free);
    g_clear_pointer(&self->account, g_free);
}

void
sealed_material_free(SealedMaterial *self)
{
    eb_secret_unref(self->secret);
    g_free(self->path);
    g_free(self);
}

/* (transfer full) (nullable) */
static SealedMaterial *
read_material(const SealedSources *sources, const char *path, SealedKdf kdf, guint forbidden, GError **error)
{
    g_auto(CredsFile) file = CREDS_FILE_INIT;
    CredsFileId id = creds_file_id(path);

    if (!creds_file_open(&file, path, creds_owner_of_account(sources->account), forbidden, EB_SECRET_MAX_BYTES, error))
        return NULL;
    g_autoptr(EbSecret) secret =
        eb_secret_new_from_fd(kdf == SEALED_KDF_PASSPHRASE ? "seal-passphrase" : "seal-key", file.fd, error);
    if (secret == NULL) {
        g_prefix_error(error, "%s, which opens what is sealed: ", path);
        return NULL;
    }
    SealedMaterial *self = g_new0(SealedMaterial, 1);
    self->kdf = kdf;
    self->secret = g_steal_pointer(&secret);
    self->path = g_strdup(path);
    self->id = id;
    return self;
}

gboolean
sealed_material_check(const SealedMaterial *material, GError **error)
{
    if (material->kdf != SEALED_KDF_PASSPHRASE || eb_secret_get_length(material->secret) >= SEALED_PASSPHRASE_MIN)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "sealed.short-passphrase",
                 "%s: a passphrase has at least %d characters, better six words", material->path,
                 SEALED_PASSPHRASE_MIN);
    return FALSE;
}

SealedMaterial *
sealed_material_find(const SealedSources *sources, GError **error)
{
    if (sources->passphrase_file != NULL || sources->key_file != NULL) {
        gboolean words = sources->passphrase_file != NULL;
        const char *path = words ? sources->passphrase_file : sources->key_file;
        g_autoptr(GError) local = NULL;
        SealedMaterial *named =
            read_material(sources, path, words ? SEALED_KDF_PASSPHRASE : SEALED_KDF_KEY_FILE, OWN_FILE, &local);
        if (g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND))
            eb_set_error(error, EB_ERROR_NOT_FOUND, "sealed.no-key", "the %s file %s is not there",
                         words ? "passphrase" : "key", path);
        else if (local != NULL)
            g_propagate_error(error, g_steal_pointer(&local));
        return named;
    }

    const struct {
        const char *dir, *name;
        SealedKdf kdf;
        guint forbidden;
    } places[] = {
        {sources->handed_dir, SEALED_HANDED_PASSPHRASE, SEALED_KDF_PASSPHRASE, HANDED_FILE},
        {sources->handed_dir, SEALED_HANDED_KEY, SEALED_KDF_KEY_FILE, HANDED_FILE},
        {"", sources->own_key_file, SEALED_KDF_KEY_FILE, OWN_FILE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        if (places[i].dir == NULL)
            continue;
        g_autofree char *path =
            *places[i].dir != '\0' ? g_build_filename(places[i].dir, places[i].name, NULL) : g_strdup(places[i].name);
        g_autoptr(GError) local = NULL;
        SealedMaterial *found = read_material(sources, path, places[i].kdf, places[i].forbidden, &local);
        if (found != NULL)
            return found;
        if (!g_error_matches(local, EB_ERROR, EB_ERROR_NOT_FOUND)) {
            g_propagate_error(error, g_steal_pointer(&local));
            return NULL;
        }
    }
    eb_set_error(error, EB_ERROR_NOT_FOUND, "sealed.no-key",
                 "there is no key for sealed credentials: neither %s, nor a systemd credential %s or %s",
                 sources->own_key_file, SEALED_HANDED_KEY, SEALED_HANDED_PASSPHRASE);
    return NULL;
}

/* /etc/errand-box is made by `setup --env` alone. What goes wrong here shows when the key is written. */
static void
make_own_dir(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    if (mkdir(dir, 0755) == 0)
        chmod(dir, 0755); /* whatever the umask */
}

gboolean
sealed_material_make(const SealedSources *sources, GError **error)
{
    g_autoptr(GError) local = NULL;
    g_autoptr(SealedMaterial) found = sealed_material_find(sources, &local);
    char text[NEW_KEY_BYTES * 2 + 2];
    guint8 raw[NEW_KEY_BYTES];

    if (found != NULL)
        return TRUE;
    if (g_strcmp0(eb_error_get_reason(local), "sealed.no-key") != 0) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (sources->passphrase_file != NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "sealed.no-key",
                     "%s: write a passphrase into it, mode 0600, which only people can make", local->message);
        return FALSE;
    }
    randombytes_buf(raw, sizeof raw);
    sodium_bin2hex(text, sizeof text, raw, sizeof raw);
    text[NEW_KEY_BYTES * 2] = '\n';
    const char *path = sources->key_file != NULL ? sources->key_file : sources->own_key_file;
    if (sources->key_file == NULL)
        make_own_dir(path);
    g_clear_error(&local);
    gboolean made =
        creds_file_create(path, text, NEW_KEY_BYTES * 2 + 1, creds_owner_of_account(sources->account), &local);
    sodium_memzero(raw, sizeof raw);
    sodium_memzero(text, sizeof text);
    if (made) {
        g_autofree char *said =
            g_strdup_printf("the key of sealed credentials was made, %s: keep a copy where no backup of them is", path);
        eb_log_event(G_LOG_LEVEL_MESSAGE, G_LOG_DOMAIN, said, NULL);
    }
    if (made || g_error_matches(local, EB_ERROR, EB_ERROR_EXISTS)) /* another command was faster */
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}
