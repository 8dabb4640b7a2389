/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * EbSecret: an immutable, reference-counted secret.
 *
 * The bytes live in memory from sodium_malloc() (guard pages, locked when the host allows it, wiped on the
 * last unref) that is unreadable outside a view. There is no string getter, no GValue, no printf form: a
 * secret is shown as its label alone.
 */
#define EB_TYPE_SECRET (eb_secret_get_type())
EB_API GType eb_secret_get_type(void);

/** EB_SECRET_MAX_BYTES: longest accepted secret; a PEM key with chain fits, a mistaken file does not. */
#define EB_SECRET_MAX_BYTES (64 * 1024)

/**
 * eb_secret_new_take:
 * @label: name shown in messages, e.g. "model-key"; copied
 * @bytes: (inout): the secret; wiped by this call
 * @length: bytes, 1 to EB_SECRET_MAX_BYTES
 *
 * Returns: (transfer full) (nullable): NULL with @error set when empty, too long or out of locked memory.
 */
EB_API EbSecret *eb_secret_new_take(const char *label, char *bytes, gsize length, GError **error);

/**
 * eb_secret_new_from_fd: reads until end of file or EB_SECRET_MAX_BYTES, drops one trailing newline (LF or
 * CRLF). The read buffer is wiped.
 *
 * Returns: (transfer full) (nullable)
 */
EB_API EbSecret *eb_secret_new_from_fd(const char *label, int fd, GError **error);

/** eb_secret_new_random: @length random bytes as base64url text without padding (nonces). Never NULL:
 * without memory for it the process ends.. */
EB_API EbSecret *eb_secret_new_random(const char *label, gsize length);

EB_API EbSecret *eb_secret_ref(EbSecret *self);
/** eb_secret_unref: @self: (nullable) (transfer full) */
EB_API void eb_secret_unref(EbSecret *self);

EB_API const char *eb_secret_get_label(EbSecret *self);
EB_API gsize eb_secret_get_length(EbSecret *self);

/** eb_secret_equal: compares in constant time for equal lengths (sodium_memcmp). */
EB_API gboolean eb_secret_equal(EbSecret *self, EbSecret *other);
/** eb_secret_equal_bytes: as eb_secret_equal() with plain bytes; the length is not hidden. */
EB_API gboolean eb_secret_equal_bytes(EbSecret *self, const char *bytes, gsize length);

/**
 * EbSecretView: the readable window on a secret; ends with the scope:
 *
 *   g_auto(EbSecretView) view = eb_secret_view(secret);
 *   send(fd, view.bytes, view.length);
 *
 * bytes is NUL-terminated behind length. Views nest.
 */
typedef struct {
    const char *bytes;
    gsize length;
    EbSecret *secret; /* (owned) */
} EbSecretView;

EB_API EbSecretView eb_secret_view(EbSecret *self);
EB_API void eb_secret_view_clear(EbSecretView *view);

/** eb_secret_memory_is_locked: FALSE when this process cannot mlock (doctor shows it). */
EB_API gboolean eb_secret_memory_is_locked(void);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSecret, eb_secret_unref)
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(EbSecretView, eb_secret_view_clear)

G_END_DECLS
