/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-key-filter.h"

#include <string.h>

void
eb_key_filter_init(EbKeyFilter *self, EbSecret *key)
{
    gboolean usable = key != NULL && eb_secret_get_length(key) >= EB_KEY_FILTER_MIN;

    self->key = usable ? eb_secret_ref(key) : NULL;
    self->held = 0;
    self->out = NULL;
    if (usable) {
        g_auto(EbSecretView) view = eb_secret_view(key);

        memcpy(self->lead, view.bytes, EB_KEY_FILTER_LEAD);
    }
}

void
eb_key_filter_clear(EbKeyFilter *self)
{
    g_clear_pointer(&self->key, eb_secret_unref);
    g_clear_pointer(&self->out, g_byte_array_unref);
    self->held = 0;
}

/* Length of the longest end of @bytes that begins the key. */
static gsize
beginning_at_end(const char *bytes, gsize length, const char *key, gsize key_length)
{
    gsize most = MIN(length, key_length - 1);

    for (const char *at = bytes + length - most; at < bytes + length; at++) {
        at = memchr(at, key[0], (gsize)(bytes + length - at));
        if (at == NULL)
            return 0;
        if (memcmp(at, key, (gsize)(bytes + length - at)) == 0)
            return (gsize)(bytes + length - at);
    }
    return 0;
}

/* TRUE: neither the key nor a beginning of it at the end is in @bytes. Every look at the key costs two system calls. */
static gboolean
is_free_of(const EbKeyFilter *self, const char *bytes, gsize length)
{
    if (self->held > 0 || memmem(bytes, length, self->lead, EB_KEY_FILTER_LEAD) != NULL)
        return FALSE;
    for (gsize n = 1; n < EB_KEY_FILTER_LEAD && n <= length; n++) {
        if (memcmp(bytes + length - n, self->lead, n) == 0)
            return FALSE;
    }
    return TRUE;
}

const char *
eb_key_filter_run(EbKeyFilter *self, const char *bytes, gsize length, gsize *n_out)
{
    char *at, *found;
    gsize left;

    *n_out = length;
    if (self->key == NULL || is_free_of(self, bytes, length))
        return bytes;

    g_auto(EbSecretView) view = eb_secret_view(self->key);

    if (self->held == 0 && memmem(bytes, length, view.bytes, view.length) == NULL) {
        self->held = beginning_at_end(bytes, length, view.bytes, view.length);
        *n_out = length - self->held;
        return bytes;
    }
    if (self->out == NULL)
        self->out = g_byte_array_new();
    g_byte_array_set_size(self->out, 0);
    g_byte_array_append(self->out, (const guint8 *)view.bytes, (guint)self->held);
    g_byte_array_append(self->out, (const guint8 *)bytes, (guint)length);
    at = (char *)self->out->data;
    left = self->out->len;
    while ((found = memmem(at, left, view.bytes, view.length)) != NULL) {
        memset(found, '*', view.length);
        left -= (gsize)(found - at) + view.length;
        at = found + view.length;
    }
    self->held = beginning_at_end(at, left, view.bytes, view.length);
    *n_out = self->out->len - self->held;
    return (const char *)self->out->data;
}

const char *
eb_key_filter_end(EbKeyFilter *self, gsize *n_out)
{
    gsize held = self->held;

    *n_out = held;
    if (held == 0)
        return "";

    g_auto(EbSecretView) view = eb_secret_view(self->key);

    if (self->out == NULL)
        self->out = g_byte_array_new();
    g_byte_array_set_size(self->out, 0);
    /* A beginning alone is no key; it belongs to the answer. */
    g_byte_array_append(self->out, (const guint8 *)view.bytes, (guint)held);
    self->held = 0;
    return (const char *)self->out->data;
}

gboolean
eb_key_filter_finds(EbKeyFilter *self, const char *text)
{
    if (self->key == NULL || memmem(text, strlen(text), self->lead, EB_KEY_FILTER_LEAD) == NULL)
        return FALSE;

    g_auto(EbSecretView) view = eb_secret_view(self->key);

    return memmem(text, strlen(text), view.bytes, view.length) != NULL;
}
