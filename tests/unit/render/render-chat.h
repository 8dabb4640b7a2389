/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * RenderChat: a chat as people see it: messages in the order they were made, changed and taken away by key. As strict as
 * a real one: too long, empty, too fast, or an unknown thread is an error of the test. Each call takes @delay_ms.
 */
#define RENDER_TYPE_CHAT (render_chat_get_type())
G_DECLARE_FINAL_TYPE(RenderChat, render_chat, RENDER, CHAT, GObject)

typedef struct {
    char *key;
    char *text;
    EbChatPostKind kind;
    guint edits;
    gboolean gone;
    gboolean final;
    GPtrArray *files; /* (element-type utf8): names */
    char *file;       /* (nullable): content of the first */
    char *reply_to;
    char *notify;
} RenderMessage;

struct _RenderChat {
    GObject parent_instance;
    EbChatCaps caps;
    EbChatLimits limits;
    guint delay_ms;
    gboolean hold;       /* no call is answered before render_chat_release() */
    GPtrArray *held;     /* (element-type GTask) */
    GPtrArray *messages; /* (element-type RenderMessage) */
    guint calls;
    guint in_flight;
    gsize bytes; /* of all texts and files */
    guint busy;
    gint64 begin_us;
};

RenderChat *render_chat_new(EbChatCaps caps, guint max_units, guint edit_interval_ms);
void render_chat_release(RenderChat *self);
/** render_chat_screen: (transfer full): what a person sees: texts, "|" between; files as {NAME}. */
char *render_chat_screen(RenderChat *self);

G_END_DECLS
