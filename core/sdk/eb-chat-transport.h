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
    EB_CHAT_CAP_HISTORY = 1 << 5,    /* read_back works, and ids of messages mean the same in every run */
    /* since ABI 1.1 */
    EB_CHAT_CAP_FILES = 1 << 6,    /* shows posts with files */
    EB_CHAT_CAP_FETCH = 1 << 7,    /* fetch works */
    EB_CHAT_CAP_COMMANDS = 1 << 8, /* offers the commands of attach by itself and emits "action" for them */
    EB_CHAT_CAP_BUSY = 1 << 9,     /* shows EB_CHAT_POST_BUSY */
} EbChatCaps;

/** EbChatLimits: numbers the renderer keeps. */
typedef struct {
    guint max_text_units;   /* UTF-16 code units a post may have, 0 = no bound */
    guint edit_interval_ms; /* shortest time between two changes of one post */
    /* since ABI 1.1 */
    /* (nullable): Markdown of an agent or of the service as it is safe to show here; (transfer full). Called before the
       text is measured and split, so the result may be longer. Pure; any thread. */
    char *(*prepare)(const char *text);
    guint64 max_file_bytes; /* of one file of a post */
    guint max_files;        /* of one post */
    gboolean patient;       /* keeps a post until it is shown or can never be: nobody else gives up on it before */
} EbChatLimits;

/** EbChatOption: one option of a command; since ABI 1.1. */
typedef struct {
    const char *name; /* [a-z][a-z0-9-]{0,31} */
    const char *summary;
    gboolean required;
    gboolean person; /* the value is the id of a person */
} EbChatOption;

/** EbChatCommand: one command people can give, for transports that offer them by themselves; since ABI 1.1. */
typedef struct {
    const char *name; /* [a-z][a-z0-9-]{0,31} */
    const char *summary;
    const EbChatOption *options; /* required ones first */
    gsize n_options;
} EbChatCommand;

/** EbChatPolicy: who may do what, from the transport's own configuration; since ABI 1.1. Ids, never names. */
typedef struct {
    char **allowed;            /* (array zero-terminated=1): never empty; "*" = everybody */
    char **blocked;            /* (array zero-terminated=1) */
    char **operators;          /* (array zero-terminated=1): have an owner's rights everywhere */
    gboolean start_on_mention; /* in the channel, only messages that mention us start something */
    guint64 late_ms;           /* a message read back is answered "seen late" instead when older */
} EbChatPolicy;

/**
 * EbChatTransport: where people are. Connecting and disconnecting is the plugin's start and stop.
 *
 * Signals:
 *   "message" (EbChatMessage *message): somebody said something; emitted once per message.
 *   "action" (EbChatMessage *message): a command or button outside any open question; extra names it: command, and
 *       options{name: text}. Its id is good for reply_to of the posts that answer it.
 *   "withdrawn" (const char *thread (nullable), const char *message_id): a person deleted a message.
 *   "interrupt" (const char *thread, guint count): a terminal's Ctrl-C; count within one turn.
 *   "connection" (gboolean up, const char *detail): for status; after each "up" there may be something to read back.
 * Since ABI 1.1:
 *   "edited" (EbChatMessage *message): a person changed a message; text is the new one.
 *   "seen" (const char *thread (nullable), const char *message_id): everything in that thread up to this message has been
 *       told; also for messages that are no concern of ours.
 *   "thread-state" (const char *thread, const char *state): open, archived, deleted, or lost (may not be seen any more).
 *   "asked" (const char *question_id, const char *message_id): a question with an id is shown as that message; with
 *       EB_CHAT_CAP_HISTORY the core takes no text that was said before this for an answer to it.
 *   "failed" (GError *error): it cannot work any more before somebody changes something.
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

    /* since ABI 1.1 */
    const EbChatPolicy *(*attach)(EbChatTransport *self, const EbChatCommand *commands, gsize n_commands);

    void (*fetch_async)(EbChatTransport *self, const EbChatAttachment *attachment, gsize max_bytes,
                        GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    GBytes *(*fetch_finish)(EbChatTransport *self, GAsyncResult *result, GError **error);
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
/**
 * eb_chat_transport_read_back_async: what people said after @after_id; @thread: (nullable): NULL = the channel; @after_id:
 * (nullable): NULL = the newest @max. Oldest first, at most @max.
 */
EB_API void eb_chat_transport_read_back_async(EbChatTransport *self, const char *thread, const char *after_id,
                                              guint max, GCancellable *cancellable, GAsyncReadyCallback callback,
                                              gpointer user_data);
/** eb_chat_transport_read_back_finish: (transfer full) (nullable) (element-type EbChatMessage) */
EB_API GPtrArray *eb_chat_transport_read_back_finish(EbChatTransport *self, GAsyncResult *result, GError **error);

/**
 * eb_chat_transport_attach: somebody listens from now on: "message" and the rest may come, also from within. Once; since
 * ABI 1.1.
 * @commands: (array length=n_commands): static storage
 *
 * Returns: (transfer none) (nullable): valid as long as @self; NULL = whoever can speak here may do everything.
 */
EB_API const EbChatPolicy *eb_chat_transport_attach(EbChatTransport *self, const EbChatCommand *commands,
                                                    gsize n_commands);
/**
 * eb_chat_transport_fetch_async: what a person attached. More than @max_bytes is EB_ERROR_QUOTA, from anywhere but the
 * service's own hosts EB_ERROR_DENIED; since ABI 1.1.
 */
EB_API void eb_chat_transport_fetch_async(EbChatTransport *self, const EbChatAttachment *attachment, gsize max_bytes,
                                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_chat_transport_fetch_finish: (transfer full) (nullable) */
EB_API GBytes *eb_chat_transport_fetch_finish(EbChatTransport *self, GAsyncResult *result, GError **error);

G_END_DECLS
