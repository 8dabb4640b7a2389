/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_LIVE_MAX_PARTS: messages of one text of the agent; a longer one goes on in a file where files can be shown. */
#define EB_LIVE_MAX_PARTS 6
/** EB_LIVE_MAX_TEXT_BYTES, EB_LIVE_MAX_FILE_BYTES: of one text where files cannot, and can, be shown; a new one follows. */
#define EB_LIVE_MAX_TEXT_BYTES (32 * 1024)
#define EB_LIVE_MAX_FILE_BYTES (1024 * 1024)
/** EB_LIVE_MIN_INTERVAL_MS: a growing text is not made ready for showing more often, whatever the chat allows. */
#define EB_LIVE_MIN_INTERVAL_MS 250
/** EB_LIVE_MAX_LINES: tool calls of one message. */
#define EB_LIVE_MAX_LINES 100

/** EbLiveChat: what the messages are made for. Plain data; strings outlive the EbLive. */
typedef struct {
    const char *thread;
    EbChatCaps caps;
    EbChatLimits limits;
} EbLiveChat;

/**
 * EbLive: messages of a chat that change while the agent works. What to send is asked for when there is room to send, so
 * that what came meanwhile costs nothing: the latest state is sent, the same state never twice.
 */
typedef struct _EbLive EbLive;
EbLive *eb_live_ref(EbLive *self);
void eb_live_unref(EbLive *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbLive, eb_live_unref)

/**
 * eb_live_next: (transfer full) (nullable): the next post to send; NULL: nothing now.
 * @now_us: monotonic
 * @due_us: (out): with NULL: when to ask again, G_MAXINT64 when something must change first
 */
EbChatPost *eb_live_next(EbLive *self, gint64 now_us, gint64 *due_us);
/** eb_live_close: nothing is added any more. */
void eb_live_close(EbLive *self);
gboolean eb_live_is_closed(EbLive *self);
/** eb_live_get_bytes: what it holds. */
gsize eb_live_get_bytes(EbLive *self);

/** eb_live_text_new: a text of the agent. @key: prefix of the keys of its posts */
EbLive *eb_live_text_new(const EbLiveChat *chat, const char *key, gint64 now_us);
void eb_live_text_append(EbLive *self, const char *text);
/**
 * eb_live_text_roll: (transfer full) (nullable): when the text became too long for one: closes it, and returns what the
 * next one begins with. NULL while it is not.
 */
char *eb_live_text_roll(EbLive *self);

/** eb_live_tools_new: consecutive tool calls, a line each. */
EbLive *eb_live_tools_new(const EbLiveChat *chat, const char *key);
/** eb_live_tools_put: @post: EB_CHAT_POST_TOOL with a key. FALSE: a new line that has no room; nothing is changed. */
gboolean eb_live_tools_put(EbLive *self, const EbChatPost *post);
gboolean eb_live_tools_has(EbLive *self, const char *key);
/** eb_live_tools_is_running: whether a call has not ended. */
gboolean eb_live_tools_is_running(EbLive *self);
/** eb_live_tools_end_turn: no call runs any more. TRUE when that changes something. */
gboolean eb_live_tools_end_turn(EbLive *self);

G_END_DECLS
