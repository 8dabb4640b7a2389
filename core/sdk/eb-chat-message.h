/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/** EbChatAttachment: a file a person added; fetched by the transport on demand, never by the core. */
typedef struct {
    char *id;
    char *name;         /* as the person named it; untrusted */
    char *content_type; /* (nullable) */
    guint64 size_bytes;
    char *url; /* (nullable): opaque to the core */
} EbChatAttachment;

/** EbChatMessage: something a person said. All text is untrusted. */
struct _EbChatMessage {
    int ref_count;
    char *id;          /* unique within the transport */
    char *thread;      /* (nullable): NULL = said in the channel itself */
    char *author_id;   /* stable id, never a display name */
    char *author_name; /* for display alone */
    gboolean author_bot;
    gboolean mentions_us;
    char *text; /* UTF-8 */
    gint64 sent_unix_ms;
    GPtrArray *attachments; /* (element-type EbChatAttachment) (owned) */
    JsonObject *extra;      /* (nullable) (owned): what the transport wants back, e.g. project, agent, model of `try` */
    /* since ABI 1.1 */
    gboolean replayed; /* found by eb_chat_transport_read_back_async(), not told as it was said */
    char *note;        /* (nullable): what of it cannot be read here ("a sticker"), for the answer when text is empty */
};
#define EB_TYPE_CHAT_MESSAGE (eb_chat_message_get_type())
EB_API GType eb_chat_message_get_type(void);
EB_API EbChatMessage *eb_chat_message_new(const char *id, const char *thread, const char *author_id, const char *text);
/** eb_chat_message_add_attachment: since ABI 1.1; @content_type, @url: (nullable) */
EB_API void eb_chat_message_add_attachment(EbChatMessage *self, const char *id, const char *name,
                                           const char *content_type, guint64 size_bytes, const char *url);
EB_API EbChatMessage *eb_chat_message_ref(EbChatMessage *self);
EB_API void eb_chat_message_unref(EbChatMessage *self);

/** EbChatPostKind: what a post is, so that each transport may show it its own way. */
typedef enum {
    EB_CHAT_POST_TEXT = 0,    /* what the agent says (Markdown) */
    EB_CHAT_POST_THOUGHT = 1, /* what the agent thinks */
    EB_CHAT_POST_TOOL = 2,    /* a tool call's line; data: id, title, kind, status, locations[] */
    EB_CHAT_POST_DIFF = 3,    /* a change; data: path, diff, added, removed */
    EB_CHAT_POST_NOTICE = 4,  /* the service speaks */
    EB_CHAT_POST_ERROR = 5,   /* the service says what failed and what to do */
    EB_CHAT_POST_USAGE = 6,   /* data: used, size, cost, currency */
    EB_CHAT_POST_PLAN = 7,    /* data: entries[{content,priority,status}] */
    EB_CHAT_POST_GUEST = 8,   /* a guest is being prepared or is there; data: state, instance, origin (cold|pool), ms */
    EB_CHAT_POST_READY = 9,   /* the agent answered session/new; data: agent, version, session, ms */
    EB_CHAT_POST_END = 10,    /* the turn ended; data: stop_reason, ms{guest,agent,turn}, error? */
    EB_CHAT_POST_PERMISSION = 11, /* how a question was answered; data: title, outcome, option, by? */
    /* since ABI 1.1 */
    EB_CHAT_POST_BUSY = 12, /* data: busy: somebody is at work for this thread, or no longer; no text */
    EB_CHAT_POST_ANSWER =
        13,                 /* to a command; reply_to is the message or action that asked, thread where it was asked */
    EB_CHAT_POST_FILE = 14, /* files is what matters */
} EbChatPostKind;

/** eb_chat_post_kind_to_string: "text", "thought", "tool", ... as in `try --json`. */
EB_API const char *eb_chat_post_kind_to_string(EbChatPostKind kind);

/** EbChatFile: a file on its way to a chat; since ABI 1.1. */
typedef struct {
    char *name;         /* one path segment */
    char *content_type; /* (nullable) */
    GBytes *bytes;
} EbChatFile;
/** eb_chat_file_new: (transfer full): @bytes: (transfer none) */
EB_API EbChatFile *eb_chat_file_new(const char *name, const char *content_type, GBytes *bytes);
EB_API void eb_chat_file_free(EbChatFile *self);

/** EbChatPost: something the service says into a thread. Secrets are masked before it is made. */
struct _EbChatPost {
    int ref_count;
    char *thread;
    char *key; /* (nullable): posts with one key are one message, later ones change it */
    EbChatPostKind kind;
    char *text;       /* UTF-8; may be empty when data says all */
    gboolean append;  /* TRUE: text continues the post with this key (transports with EB_CHAT_CAP_STREAM) */
    gboolean final;   /* TRUE: no later post with this key comes */
    char *reply_to;   /* (nullable): message id */
    JsonObject *data; /* (nullable) (owned): fields by kind, above */
    /* since ABI 1.1 */
    GPtrArray *files; /* (nullable) (element-type EbChatFile) (owned): transports with EB_CHAT_CAP_FILES */
    gboolean retract; /* TRUE: the post with this key is taken away (transports with EB_CHAT_CAP_EDIT); no text */
    char *notify;     /* (nullable): id of the one person who may be notified; a post without notifies nobody */
    /* since ABI 1.3 */
    GPtrArray *notify_also; /* (nullable) (element-type utf8) (owned): further people, who are notified as well */
};
#define EB_TYPE_CHAT_POST (eb_chat_post_get_type())
EB_API GType eb_chat_post_get_type(void);
EB_API EbChatPost *eb_chat_post_new(const char *thread, EbChatPostKind kind, const char *text);
EB_API EbChatPost *eb_chat_post_ref(EbChatPost *self);
EB_API void eb_chat_post_unref(EbChatPost *self);

/** EbChatChoice: one answer of a question. */
typedef struct {
    char *id;
    char *label;
    char *kind; /* (nullable): allow_once, allow_always, reject_once, reject_always, or NULL */
    /* since ABI 1.3 */
    GPtrArray *answerers; /* (nullable) (element-type utf8) (owned): who of those that may answer may take this choice;
                             NULL = each of them. Read anew at each answer. */
} EbChatChoice;

/** EbChatQuestion: asks people in a thread to choose. */
struct _EbChatQuestion {
    int ref_count;
    char *thread;
    char *text;
    GPtrArray *choices;   /* (element-type EbChatChoice) (owned) */
    GPtrArray *answerers; /* (element-type utf8) (nullable) (owned): author ids that may answer; NULL = anyone.
                             Read anew at each answer: the asker adds people who are invited meanwhile. */
    JsonObject *data;     /* (nullable) (owned): the tool call it is about */
    /* since ABI 1.1 */
    char *id;         /* (nullable): of the asker, [a-z0-9-]{1,40}, the same across restarts of the service */
    char *message_id; /* (nullable): set by the asker: it was shown as this message before a restart and is taken up */
    char *outcome;    /* (nullable): set by the asker before it cancels: shown in place of the choices */
    /* since ABI 1.3 */
    GPtrArray *notify; /* (nullable) (element-type utf8) (owned): people who are notified of it; else nobody is */
    gboolean standing; /* it waits beside the talk, for long: no text is an answer to it, and no policy allows */
};
#define EB_TYPE_CHAT_QUESTION (eb_chat_question_get_type())
EB_API GType eb_chat_question_get_type(void);
EB_API EbChatQuestion *eb_chat_question_new(const char *thread, const char *text);
EB_API void eb_chat_question_add_choice(EbChatQuestion *self, const char *id, const char *label, const char *kind);
EB_API EbChatQuestion *eb_chat_question_ref(EbChatQuestion *self);
EB_API void eb_chat_question_unref(EbChatQuestion *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbChatMessage, eb_chat_message_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbChatPost, eb_chat_post_unref)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbChatFile, eb_chat_file_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbChatQuestion, eb_chat_question_unref)

G_END_DECLS
