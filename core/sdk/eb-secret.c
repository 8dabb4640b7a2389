/* SPDX-License-Identifier: MIT */
#include "eb-secret.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "eb-error.h"

#define RANDOM_MAX_BYTES 1024

struct _EbSecret {
    gatomicrefcount ref_count;
    char *label; /* (owned) */
    char *bytes; /* (owned): sodium_malloc()ed, unreadable while n_views is 0 */
    gsize length;
    GMutex lock;
    guint n_views; /* under lock */
};

G_DEFINE_BOXED_TYPE(EbSecret, eb_secret, eb_secret_ref, eb_secret_unref)

/* Set once a secret, or the probe page, could not be locked into memory. */
static gint memory_unlocked = 0;

static gpointer
init_sodium(gpointer unused)
{
    gpointer page;

    if (sodium_init() < 0)
        g_error("libsodium cannot initialise: no source of randomness");
    /* sodium_malloc() ignores a refused mlock(), so the answer has to be asked for. */
    page = sodium_malloc(1);
    if (page == NULL || sodium_mlock(page, 1) != 0)
        g_atomic_int_set(&memory_unlocked, 1);
    if (page != NULL)
        sodium_free(page);
    return NULL;
}

static void
ensure_sodium(void)
{
    static GOnce once = G_ONCE_INIT;

    g_once(&once, init_sodium, NULL);
}

/* Returns a secret with room for @length bytes, still writable; finish with seal(). */
static EbSecret *
allocate(const char *label, gsize length)
{
    EbSecret *self;
    char *bytes;

    ensure_sodium();
    bytes = sodium_malloc(length + 1);
    if (bytes == NULL)
        return NULL;
    if (sodium_mlock(bytes, length + 1) != 0)
        g_atomic_int_set(&memory_unlocked, 1);
    self = g_new0(EbSecret, 1);
    g_atomic_ref_count_init(&self->ref_count);
    g_mutex_init(&self->lock);
    self->label = g_strdup(label != NULL ? label : "secret");
    self->bytes = bytes;
    self->length = length;
    bytes[length] = '\0';
    return self;
}

static void
protect_none(EbSecret *self)
{
    if (sodium_mprotect_noaccess(self->bytes) != 0)
        g_error("secret %s: mprotect failed: %s", self->label, g_strerror(errno));
}

EbSecret *
eb_secret_new_take(const char *label, char *bytes, gsize length, GError **error)
{
    EbSecret *self;

    g_return_val_if_fail(bytes != NULL || length == 0, NULL);
    if (length == 0 || length > EB_SECRET_MAX_BYTES) {
        if (bytes != NULL)
            sodium_memzero(bytes, length);
        eb_set_error(error, EB_ERROR_INVALID, length == 0 ? "secret.empty" : "secret.too-long",
                     length == 0 ? "secret %s is empty" : "secret %s is longer than 64 KiB", label);
        return NULL;
    }
    self = allocate(label, length);
    if (self == NULL) {
        sodium_memzero(bytes, length);
        eb_set_error(error, EB_ERROR_QUOTA, "secret.memory", "no protected memory for secret %s", label);
        return NULL;
    }
    memcpy(self->bytes, bytes, length);
    sodium_memzero(bytes, length);
    protect_none(self);
    return self;
}

/* Reads to end of file or @size bytes; -1 with errno on failure. */
static gssize
read_all(int fd, char *buffer, gsize size)
{
    gsize have = 0;

    while (have < size) {
        ssize_t n = read(fd, buffer + have, size - have);

        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        have += (gsize)n;
    }
    return (gssize)have;
}

EbSecret *
eb_secret_new_from_fd(const char *label, int fd, GError **error)
{
    const gsize size = EB_SECRET_MAX_BYTES + 3; /* a newline of two bytes, and one more to notice what is longer */
    EbSecret *self;
    char *buffer;
    gssize have;
    int saved_errno;

    ensure_sodium();
    buffer = sodium_malloc(size);
    if (buffer == NULL) {
        eb_set_error(error, EB_ERROR_QUOTA, "secret.memory", "no protected memory for secret %s", label);
        return NULL;
    }
    have = read_all(fd, buffer, size);
    saved_errno = errno;
    if (have < 0) {
        sodium_free(buffer);
        eb_set_error(error, EB_ERROR_FAILED, "secret.read", "cannot read secret %s: %s", label,
                     g_strerror(saved_errno));
        return NULL;
    }
    if (have > 0 && buffer[have - 1] == '\n')
        have--;
    if (have > 0 && buffer[have - 1] == '\r' && buffer[have] == '\n')
        have--;
    self = eb_secret_new_take(label, buffer, (gsize)have, error);
    sodium_free(buffer);
    return self;
}

EbSecret *
eb_secret_new_random(const char *label, gsize length)
{
    guint8 raw[RANDOM_MAX_BYTES];
    EbSecret *self;
    gsize text_size;

    g_return_val_if_fail(length > 0 && length <= sizeof(raw), NULL);
    ensure_sodium();
    text_size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_URLSAFE_NO_PADDING); /* with the NUL */
    self = allocate(label, text_size - 1);
    if (self == NULL)
        g_error("no protected memory for secret %s", label);
    randombytes_buf(raw, length);
    sodium_bin2base64(self->bytes, text_size, raw, length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(raw, sizeof(raw));
    protect_none(self);
    return self;
}

EbSecret *
eb_secret_ref(EbSecret *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    g_atomic_ref_count_inc(&self->ref_count);
    return self;
}

void
eb_secret_unref(EbSecret *self)
{
    if (self == NULL || !g_atomic_ref_count_dec(&self->ref_count))
        return;
    sodium_free(self->bytes); /* wipes */
    g_mutex_clear(&self->lock);
    g_free(self->label);
    g_free(self);
}

const char *
eb_secret_get_label(EbSecret *self)
{
    g_return_val_if_fail(self != NULL, NULL);
    return self->label;
}

gsize
eb_secret_get_length(EbSecret *self)
{
    g_return_val_if_fail(self != NULL, 0);
    return self->length;
}

gboolean
eb_secret_equal(EbSecret *self, EbSecret *other)
{
    g_auto(EbSecretView) view = {0};

    g_return_val_if_fail(self != NULL && other != NULL, FALSE);
    view = eb_secret_view(other);
    return eb_secret_equal_bytes(self, view.bytes, view.length);
}

gboolean
eb_secret_equal_bytes(EbSecret *self, const char *bytes, gsize length)
{
    g_auto(EbSecretView) view = {0};

    g_return_val_if_fail(self != NULL, FALSE);
    if (bytes == NULL || length != self->length)
        return FALSE;
    view = eb_secret_view(self);
    return sodium_memcmp(view.bytes, bytes, length) == 0;
}

EbSecretView
eb_secret_view(EbSecret *self)
{
    EbSecretView view = {0};

    g_return_val_if_fail(self != NULL, view);
    g_mutex_lock(&self->lock);
    if (self->n_views++ == 0 && sodium_mprotect_readonly(self->bytes) != 0)
        g_error("secret %s: mprotect failed: %s", self->label, g_strerror(errno));
    g_mutex_unlock(&self->lock);
    view.bytes = self->bytes;
    view.length = self->length;
    view.secret = eb_secret_ref(self);
    return view;
}

void
eb_secret_view_clear(EbSecretView *view)
{
    EbSecret *secret;

    g_return_if_fail(view != NULL);
    secret = g_steal_pointer(&view->secret);
    view->bytes = NULL;
    view->length = 0;
    if (secret == NULL)
        return;
    g_mutex_lock(&secret->lock);
    if (--secret->n_views == 0)
        protect_none(secret);
    g_mutex_unlock(&secret->lock);
    eb_secret_unref(secret);
}

gboolean
eb_secret_memory_is_locked(void)
{
    ensure_sodium();
    return g_atomic_int_get(&memory_unlocked) == 0;
}
