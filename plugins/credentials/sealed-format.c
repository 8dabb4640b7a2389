/* SPDX-License-Identifier: MIT */
#include "sealed-format.h"

#include "creds-task.h"

#include <sodium.h>
#include <string.h>

#define MAGIC "EBSEALED"
#define VERSION 1
#define CIPHER 1
#define DIGEST_AT 80
#define DIGEST_BYTES (SEALED_HEADER_BYTES - DIGEST_AT)

/* --- numbers --- */

static guint64
get_number(const guint8 *bytes, guint size)
{
    guint64 value = 0;

    for (guint i = size; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

static guint8 *
put_number(guint8 *out, guint64 value, guint size)
{
    for (guint i = 0; i < size; i++, value >>= 8)
        *out++ = (guint8)value;
    return out;
}

static guint8 *
put_bytes(guint8 *out, const void *bytes, gsize length)
{
    memcpy(out, bytes, length);
    return out + length;
}

/* --- header --- */

static gboolean
check_parameters(const SealedHeader *header)
{
    if (header->kdf == SEALED_KDF_KEY_FILE)
        return header->passes == 0 && header->memory_kib == 0;
    return header->kdf == SEALED_KDF_PASSPHRASE && header->passes >= 1 && header->passes <= SEALED_MAX_PASSES &&
           header->memory_kib >= SEALED_MIN_MEMORY_KIB && header->memory_kib <= SEALED_MAX_MEMORY_KIB;
}

gboolean
sealed_header_decode(const guint8 *bytes, gsize length, SealedHeader *header, GError **error)
{
    guint8 digest[DIGEST_BYTES];

    if (length < strlen(MAGIC) || memcmp(bytes, MAGIC, strlen(MAGIC)) != 0) {
        eb_set_error(error, EB_ERROR_INTEGRITY, length == 0 ? "sealed.truncated" : "sealed.not-sealed",
                     length == 0
                         ? "the file is empty: put a backup in its place, or remove it"
                         : "this is no file of sealed credentials: put the right one, or a backup, in its place");
        return FALSE;
    }
    if (length < SEALED_HEADER_BYTES) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "sealed.truncated",
                     "the file is cut off within its header: put a backup in its place");
        return FALSE;
    }
    if (get_number(bytes + 8, 2) != VERSION) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "sealed.version",
                     "the file is of version %u, which this errand-box does not know: use the newer one that wrote it, "
                     "or put a backup in its place",
                     (guint)get_number(bytes + 8, 2));
        return FALSE;
    }
    crypto_generichash(digest, sizeof digest, bytes, DIGEST_AT, NULL, 0);
    header->kdf = (SealedKdf)bytes[10];
    header->passes = (guint32)get_number(bytes + 12, 4);
    header->memory_kib = (guint32)get_number(bytes + 16, 4);
    memcpy(header->salt, bytes + 20, SEALED_SALT_BYTES);
    memcpy(header->nonce, bytes + 36, SEALED_NONCE_BYTES);
    memcpy(header->check, bytes + 60, SEALED_CHECK_BYTES);
    header->payload = (guint32)get_number(bytes + 76, 4);
    if (memcmp(digest, bytes + DIGEST_AT, DIGEST_BYTES) != 0 || bytes[11] != CIPHER || !check_parameters(header) ||
        header->payload < SEALED_TAG_BYTES + 4 || header->payload > SEALED_MAX_BYTES - SEALED_HEADER_BYTES) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "sealed.damaged",
                     "the header of the file was changed or is damaged: put a backup in its place");
        return FALSE;
    }
    return TRUE;
}

void
sealed_header_encode(const SealedHeader *header, guint8 bytes[SEALED_HEADER_BYTES])
{
    guint8 *out = put_bytes(bytes, MAGIC, strlen(MAGIC));

    out = put_number(out, VERSION, 2);
    out = put_number(out, header->kdf, 1);
    out = put_number(out, CIPHER, 1);
    out = put_number(out, header->passes, 4);
    out = put_number(out, header->memory_kib, 4);
    out = put_bytes(out, header->salt, SEALED_SALT_BYTES);
    out = put_bytes(out, header->nonce, SEALED_NONCE_BYTES);
    out = put_bytes(out, header->check, SEALED_CHECK_BYTES);
    out = put_number(out, header->payload, 4);
    crypto_generichash(out, DIGEST_BYTES, bytes, DIGEST_AT, NULL, 0);
}

gboolean
sealed_header_check_length(const SealedHeader *header, gsize length, GError **error)
{
    gsize wanted = SEALED_HEADER_BYTES + (gsize)header->payload;

    if (length == wanted)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, length < wanted ? "sealed.truncated" : "sealed.damaged",
                 length < wanted ? "the file is cut off: %" G_GSIZE_FORMAT " of %" G_GSIZE_FORMAT
                                   " bytes are there; put a backup in its place"
                                 : "the file has %" G_GSIZE_FORMAT " bytes where it says %" G_GSIZE_FORMAT
                                   ": put a backup in its place",
                 length, wanted);
    return FALSE;
}

/* --- entries --- */

SealedEntry *
sealed_entry_new(const char *name, EbSecret *secret, gint64 expires, gint64 changed)
{
    SealedEntry *self = g_new0(SealedEntry, 1);

    self->name = g_strdup(name);
    self->secret = eb_secret_ref(secret);
    self->expires = expires;
    self->changed = changed;
    return self;
}

void
sealed_entry_free(gpointer entry)
{
    SealedEntry *self = entry;

    g_free(self->name);
    eb_secret_unref(self->secret);
    g_free(self);
}

SealedEntry *
sealed_entries_find(GPtrArray *entries, const char *name)
{
    for (guint i = 0; i < entries->len; i++) {
        SealedEntry *entry = entries->pdata[i];
        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

/* What is left of the bytes. */
typedef struct {
    const guint8 *at;
    gsize left;
} Rest;

static const guint8 *
take(Rest *rest, gsize length)
{
    const guint8 *bytes = rest->at;

    if (length > rest->left)
        return NULL;
    rest->at += length;
    rest->left -= length;
    return bytes;
}

/* (transfer full) (nullable) */
static SealedEntry *
decode_entry(Rest *rest, GPtrArray *before)
{
    const guint8 *size = take(rest, 1);
    const guint8 *name = size != NULL ? take(rest, *size) : NULL;
    const guint8 *times = name != NULL ? take(rest, 16) : NULL;
    const guint8 *length = times != NULL ? take(rest, 4) : NULL;
    guint32 bytes = length != NULL ? (guint32)get_number(length, 4) : 0;
    const guint8 *value = bytes > 0 && bytes <= EB_SECRET_MAX_BYTES ? take(rest, bytes) : NULL;

    if (value == NULL || !creds_is_name((const char *)name, *size))
        return NULL;
    gint64 expires = (gint64)get_number(times, 8);
    gint64 changed = (gint64)get_number(times + 8, 8);
    g_autofree char *text = g_strndup((const char *)name, *size);
    if (expires < 0 || changed < 0 || sealed_entries_find(before, text) != NULL)
        return NULL;
    /* A copy in locked memory, which the secret takes over and wipes. */
    char *copy = sodium_malloc(bytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, value, bytes);
    g_autoptr(EbSecret) secret = eb_secret_new_take(text, copy, bytes, NULL);
    sodium_free(copy);
    return secret != NULL ? sealed_entry_new(text, secret, expires, changed) : NULL;
}

GPtrArray *
sealed_entries_decode(const guint8 *bytes, gsize length, GError **error)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(sealed_entry_free);
    Rest rest = {bytes, length};
    const guint8 *head = take(&rest, 4);
    guint32 count = head != NULL ? (guint32)get_number(head, 4) : G_MAXUINT32;
    gboolean good = count <= SEALED_MAX_ENTRIES;

    for (guint32 i = 0; good && i < count; i++) {
        SealedEntry *entry = decode_entry(&rest, entries);
        good = entry != NULL;
        if (good)
            g_ptr_array_add(entries, entry);
    }
    if (good && rest.left == 0)
        return g_steal_pointer(&entries);
    eb_set_error(error, EB_ERROR_INTEGRITY, "sealed.damaged",
                 "what is sealed in the file is malformed: put a backup in its place");
    return NULL;
}

gsize
sealed_entries_size(GPtrArray *entries, GError **error)
{
    gsize size = 4;

    for (guint i = 0; i < entries->len; i++) {
        const SealedEntry *entry = entries->pdata[i];
        size += 1 + strlen(entry->name) + 16 + 4 + eb_secret_get_length(entry->secret);
    }
    if (entries->len <= SEALED_MAX_ENTRIES && size <= SEALED_MAX_BYTES - SEALED_HEADER_BYTES - SEALED_TAG_BYTES)
        return size;
    eb_set_error(error, EB_ERROR_QUOTA, "sealed.full", "more than %d credentials, or than %d KiB of them",
                 SEALED_MAX_ENTRIES, SEALED_MAX_BYTES / 1024);
    return 0;
}

void
sealed_entries_encode(GPtrArray *entries, guint8 *out)
{
    out = put_number(out, entries->len, 4);
    for (guint i = 0; i < entries->len; i++) {
        const SealedEntry *entry = entries->pdata[i];
        g_auto(EbSecretView) view = eb_secret_view(entry->secret);
        out = put_number(out, strlen(entry->name), 1);
        out = put_bytes(out, entry->name, strlen(entry->name));
        out = put_number(out, (guint64)entry->expires, 8);
        out = put_number(out, (guint64)entry->changed, 8);
        out = put_number(out, view.length, 4);
        out = put_bytes(out, view.bytes, view.length);
    }
}
