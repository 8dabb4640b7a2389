/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-chat-message.h"
#include "eb-types.h"

G_BEGIN_DECLS

/** EbChatCaps: what a transport can do; the renderer adapts. */
typedef enum {
    EB_CHAT_CAP_NONE = 0,
    EB_CHAT_CAP_STREAM = 1 << 0,  /* takes posts with append */
    EB_CHAT_CAP_EDIT = 1 << 1,    /* a post with a known key replaces the earlier one */
    EB_CHAT_CAP_THREADS = 1 << 2, /* open_thread makes one */
    EB_CHAT_CAP_REACTIONS = 1 << 3,
    EB_CHAT_CAP_STRUCTURED = 1 << 4, /* wants every post kind with its data, none left out */
    EB_CHAT_CAP_HISTORY = 1 << 5,    /* read_back works */
} EbChatCaps;

/** EbChatLimits: numbers the renderer keeps. */
typedef struct {
    guint max_text_units;   /* UTF-16 code units a post may have, 0 = no bound */
    guint edit_interval_ms; /* shortest time between two changes of one post */
} EbChatLimits;

/**
 * EbChatTransport: where people are. Connecting and disconnecting is the plugin's start and stop.
 *
 * Signals:
 *   "message" (EbChatMessage *message): somebody said something; emitted once per message.
 *   "action" (EbChatMessage *message): a command or button outside any open question; extra names it.
 *   "withdrawn" (const char *thread (nullable), const char *message_id): a person deleted a message.
 *   "interrupt" (const char *thread, guint count): a terminal's Ctrl-C; count within one turn.
 *   "connection" (gboolean up, const char *detail): for status.
 */
#define EB_TYPE_CHAT_TRANSPORT (eb_chat_transport_get_type())
EB_API
G_DECLARE_INTERFACE(EbChatTransport, eb_chat_transport, EB, CHAT_TRANSPORT, GObject)

struct _EbChatTransportInterface {
    GTypeInterface parent_iface;

    EbChatCaps (*get_caps)(EbChatTransport *self, EbChatLimits *limits);

    void (*post_async)(EbChatTransport *self, EbChatPost *post, GCancellable *cancellable, GAsyncReadyCallback callback,
                       gpointer user_data);
    char *(*post_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);

    void (*ask_async)(EbChatTransport *self, EbChatQuestion *question, guint timeout_ms, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer user_data);
    char *(*ask_finish)(EbChatTransport *self, GAsyncResult *result, char **answered_by, GError **error);

    void (*open_thread_async)(EbChatTransport *self, const char *message_id, const char *title,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    char *(*open_thread_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);

    void (*close_thread_async)(EbChatTransport *self, const char *thread, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*close_thread_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);

    void (*react_async)(EbChatTransport *self, const char *thread, const char *message_id, const char *reaction,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*react_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);

    void (*read_back_async)(EbChatTransport *self, const char *thread, const char *after_id, guint max,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    GPtrArray *(*read_back_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);
};

/** eb_chat_transport_get_caps: @limits: (out) (optional) */
EB_API EbChatCaps eb_chat_transport_get_caps(EbChatTransport *self, EbChatLimits *limits);
/** eb_chat_transport_post_async: posts are shown in the order of the calls within one thread. */
EB_API void eb_chat_transport_post_async(EbChatTransport *self, EbChatPost *post, GCancellable *cancellable,
                                         GAsyncReadyCallback callback, gpointer user_data);
/** eb_chat_transport_post_finish: (transfer full) (nullable): id of the message; NULL with @error. */
EB_API char *eb_chat_transport_post_finish(EbChatTransport *self, GAsyncResult *result, GError **error);
/** eb_chat_transport_ask_async: cancelling closes the question; @timeout_ms passed is EB_ERROR_TIMEOUT. */
EB_API void eb_chat_transport_ask_async(EbChatTransport *self, EbChatQuestion *question, guint timeout_ms,
                                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_chat_transport_ask_finish: (transfer full) (nullable): id of the choice; @answered_by: (out) (optional) */
EB_API char *eb_chat_transport_ask_finish(EbChatTransport *self, GAsyncResult *result, char **answered_by,
                                          GError **error);
/** eb_chat_transport_open_thread_async: a thread for message @message_id. */
EB_API void eb_chat_transport_open_thread_async(EbChatTransport *self, const char *message_id, const char *title,
                                                GCancellable *cancellable, GAsyncReadyCallback callback,
                                                gpointer user_data);
/** eb_chat_transport_open_thread_finish: (transfer full) (nullable): id of the thread */
EB_API char *eb_chat_transport_open_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error);
EB_API void eb_chat_transport_close_thread_async(EbChatTransport *self, const char *thread, GCancellable *cancellable,
                                                 GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_chat_transport_close_thread_finish(EbChatTransport *self, GAsyncResult *result, GError **error);
/** eb_chat_transport_react_async: @reaction: (nullable): replaces ours on that message; NULL removes it. */
EB_API void eb_chat_transport_react_async(EbChatTransport *self, const char *thread, const char *message_id,
                                          const char *reaction, GCancellable *cancellable, GAsyncReadyCallback callback,
                                          gpointer user_data);
EB_API gboolean eb_chat_transport_react_finish(EbChatTransport *self, GAsyncResult *result, GError **error);
/** eb_chat_transport_read_back_async: @thread: (nullable): NULL = the channel. Oldest first, at most @max. */
EB_API void eb_chat_transport_read_back_async(EbChatTransport *self, const char *thread, const char *after_id,
                                              guint max, GCancellable *cancellable, GAsyncReadyCallback callback,
                                              gpointer user_data);
/** eb_chat_transport_read_back_finish: (transfer full) (nullable) (element-type EbChatMessage) */
EB_API GPtrArray *eb_chat_transport_read_back_finish(EbChatTransport *self, GAsyncResult *result, GError **error);

G_END_DECLS
