/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbFakeService: a chat service with a channel, threads and a history, and the transport to it in one. It outlives the
 * service under test, keeps what was said while nobody listened, and refuses what a real one refuses: posts and reactions
 * where nothing is, texts that are too long, threads on messages that do not exist.
 */
#define EB_TYPE_FAKE_SERVICE (eb_fake_service_get_type())
G_DECLARE_FINAL_TYPE(EbFakeService, eb_fake_service, EB, FAKE_SERVICE, GObject)

#define OWNER "10001"
#define FRIEND "10002"
#define OTHER "10003"
#define STRANGER "10004"
#define BLOCKED "10005"
#define OPERATOR "10006"

struct _EbFakeService {
    GObject parent_instance;
    EbChatCaps caps;
    EbChatLimits limits;
    EbChatPolicy policy;
    gboolean down; /* nothing is told of what is said */
    guint64 last_id;
    GPtrArray *history;     /* (element-type EbChatMessage): of people, in order */
    GPtrArray *posts;       /* (element-type EbChatPost): of the service under test */
    GHashTable *files;      /* utf8 attachment -> utf8 content: those that can be fetched */
    GHashTable *threads;    /* utf8 thread -> utf8 title */
    GHashTable *archived;   /* (set of utf8 thread) */
    GHashTable *reactions;  /* utf8 message -> utf8: all it ever had, joined by spaces */
    GPtrArray *open_errors; /* (element-type GError): for the next threads to open */
    GPtrArray *read_errors; /* (element-type GError): for the next reads */
    gboolean hold_reads;
    GPtrArray *held_reads; /* (element-type GTask) */
    guint reads;
    gboolean late_to_open; /* threads are opened when eb_fake_service_release() is called */
    GPtrArray *held_opens; /* (element-type GTask) */
    guint opened;
    gsize n_commands;  /* that attach() was given */
    GPtrArray *asking; /* (element-type GTask): open questions */
    char *log_path;    /* (nullable): posts and reactions are appended here, to outlive a kill */
};

EbFakeService *eb_fake_service_new(void);
/** eb_fake_service_add: a message in the history; not told. (transfer none) */
EbChatMessage *eb_fake_service_add(EbFakeService *self, const char *thread, const char *author, const char *text);
/** eb_fake_service_tell: tells it, as a gateway would. */
void eb_fake_service_tell(EbFakeService *self, EbChatMessage *message);
/** eb_fake_service_say: added and, unless it is down, told. (transfer none): its id */
const char *eb_fake_service_say(EbFakeService *self, const char *thread, const char *author, const char *text);
/** eb_fake_service_command: a command of the chat: @options: (nullable): JSON. (transfer none): its id, until the next */
const char *eb_fake_service_command(EbFakeService *self, const char *thread, const char *author, const char *command,
                                    const char *options);
void eb_fake_service_edit(EbFakeService *self, const char *message_id, const char *text);
void eb_fake_service_withdraw(EbFakeService *self, const char *message_id);
void eb_fake_service_connect(EbFakeService *self, gboolean up);
/** eb_fake_service_release: what was held (reads, openings) goes on. */
void eb_fake_service_release(EbFakeService *self);

/** eb_fake_service_text: (transfer full): all texts in @thread (nullable: the channel), but for the agent's, by lines. */
char *eb_fake_service_text(EbFakeService *self, const char *thread, EbChatPostKind kind);
/** eb_fake_service_answer_to: (transfer none) (nullable): the text that answers @message_id */
const char *eb_fake_service_answer_to(EbFakeService *self, const char *message_id);
/** eb_fake_service_reaction: (transfer none): all reactions @message_id had: "wait done", "" */
const char *eb_fake_service_reaction(EbFakeService *self, const char *message_id);
guint eb_fake_service_count(EbFakeService *self, const char *thread);
/** eb_fake_service_thread: (transfer none) (nullable): the newest */
const char *eb_fake_service_thread(EbFakeService *self);

G_END_DECLS
