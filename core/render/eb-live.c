/* SPDX-License-Identifier: MIT */
#include "core/render/eb-live-private.h"

#define DEFAULT_MAX_UNITS 2000

void
eb_live_init(EbLive *self, const EbLiveClass *klass, const EbLiveChat *chat, const char *key)
{
    self->ref_count = 1;
    self->klass = klass;
    self->chat = chat;
    self->key = g_strdup(key);
}

EbLive *
eb_live_ref(EbLive *self)
{
    self->ref_count++;
    return self;
}

void
eb_live_unref(EbLive *self)
{
    if (self == NULL || --self->ref_count > 0)
        return;
    g_free(self->key);
    self->klass->free(self);
}

EbChatPost *
eb_live_next(EbLive *self, gint64 now_us, gint64 *due_us)
{
    *due_us = G_MAXINT64;
    return self->klass->next(self, now_us, due_us);
}

void
eb_live_close(EbLive *self)
{
    self->closed = TRUE;
}

gboolean
eb_live_is_closed(EbLive *self)
{
    return self->closed;
}

gsize
eb_live_get_bytes(EbLive *self)
{
    return self->klass->get_bytes(self);
}

guint
eb_live_max_units(EbLive *self)
{
    return self->chat->limits.max_text_units > 0 ? self->chat->limits.max_text_units : DEFAULT_MAX_UNITS;
}
