/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/render/eb-live.h"

typedef struct {
    EbChatPost *(*next)(EbLive *self, gint64 now_us, gint64 *due_us);
    gsize (*get_bytes)(EbLive *self);
    void (*free)(EbLive *self);
} EbLiveClass;

struct _EbLive {
    int ref_count;
    const EbLiveClass *klass;
    const EbLiveChat *chat;
    char *key;
    gboolean closed;
};

/** eb_live_init: for a newly allocated one. */
void eb_live_init(EbLive *self, const EbLiveClass *klass, const EbLiveChat *chat, const char *key);
/** eb_live_max_units: of a message; a bound also where the chat has none. */
guint eb_live_max_units(EbLive *self);
