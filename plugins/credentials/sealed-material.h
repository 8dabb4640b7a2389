/* SPDX-License-Identifier: MIT */
#pragma once

#include "creds-file.h"
#include "sealed-format.h"

G_BEGIN_DECLS

/** SealedSources: where the key may come from; the first that is there is used. */
typedef struct {
    char *passphrase_file; /* (nullable): as configured; then nothing else is looked at */
    char *key_file;        /* (nullable): likewise */
    char *handed_dir;      /* (nullable): $CREDENTIALS_DIRECTORY */
    char *own_key_file;    /* made by the first seal when there is no other key */
    char *account;
} SealedSources;
void sealed_sources_clear(SealedSources *self);

/** SEALED_HANDED_PASSPHRASE, SEALED_HANDED_KEY: their names in $CREDENTIALS_DIRECTORY. */
#define SEALED_HANDED_PASSPHRASE "errand-box.seal-passphrase"
#define SEALED_HANDED_KEY "errand-box.seal-key"

/** SealedMaterial: a passphrase, or what is in a key file. */
typedef struct {
    SealedKdf kdf;
    EbSecret *secret; /* (owned) */
    char *path;
    CredsFileId id;
} SealedMaterial;
void sealed_material_free(SealedMaterial *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SealedMaterial, sealed_material_free)

/** SEALED_PASSPHRASE_MIN: bytes; what is shorter is guessed in a day, however it is stretched. */
#define SEALED_PASSPHRASE_MIN 8
/** sealed_material_check: may something new be sealed with it? EB_ERROR_CONFIG "sealed.short-passphrase" otherwise. */
gboolean sealed_material_check(const SealedMaterial *material, GError **error);

/** sealed_material_find: (transfer full) (nullable): EB_ERROR_NOT_FOUND "sealed.no-key" when there is none. Blocks. */
SealedMaterial *sealed_material_find(const SealedSources *sources, GError **error);
/** sealed_material_make: makes the key file with 32 random bytes; nothing when there is a key. A passphrase is made by people. */
gboolean sealed_material_make(const SealedSources *sources, GError **error);

G_END_DECLS
