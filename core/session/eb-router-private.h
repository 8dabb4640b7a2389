/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/chat/eb-chat-symbols.h"
#include "core/chat/eb-command-parse.h"
#include "core/session/eb-router.h"
#include "core/session/eb-session.h"
#include "core/state/eb-journal.h"

G_BEGIN_DECLS

/** EB_ROUTER_MAX_TOLD: people of threads who were told that they are not invited; then it is begun anew. */
#define EB_ROUTER_MAX_TOLD 1000
/** EB_ROUTER_MAX_PROMPTS: prompts whose reaction is followed: what is not done stands in the journal, which has no more. */
#define EB_ROUTER_MAX_PROMPTS EB_JOURNAL_MAX_OPEN
/** EB_ROUTER_MAX_STOPS: orders to stop under way; a further one is done when its session was told to end. */
#define EB_ROUTER_MAX_STOPS 256
/** EB_ROUTER_OPEN_TRIES: of opening a thread when the chat says that it may pass. */
#define EB_ROUTER_OPEN_TRIES 5

/** EbCatchup: what is read back, and what waits for that. eb-router-catchup.c */
typedef struct _EbCatchup EbCatchup;

struct _EbRouter {
    GObject parent_instance;
    EbSessionManager *manager; /* not owned; NULL when closed */
    char *name;
    EbChatTransport *transport;
    EbChatCaps caps;
    const EbChatPolicy *policy; /* (nullable): of the transport */
    GCancellable *cancellable;
    GPtrArray *held;  /* (element-type EbChatMessage), at most EB_ROUTER_MAX_HELD */
    guint opening;    /* threads that are being opened: the journal bounds them */
    GPtrArray *stops; /* (element-type EbChatMessage): !stop that is not yet carried out, at most EB_ROUTER_MAX_STOPS */
    GPtrArray *openings; /* (element-type EbThreadOpening) (not owned): those the chat was asked for */
    GHashTable *prompts; /* utf8 message id -> EbRouterPrompt, at most EB_ROUTER_MAX_PROMPTS */
    GHashTable *told;    /* (set of utf8 "thread author"), at most EB_ROUTER_MAX_TOLD */
    GHashTable *late;    /* utf8 thread or "" -> EbRouterLate: places of one catch-up */
    GSource *late_timer;
    EbCatchup *catchup; /* (nullable): transports with EB_CHAT_CAP_HISTORY */
};

/* --- eb-router.c --- */

/** eb_router_take: checks whether @message is for us, writes it down, then dispatches it. */
void eb_router_take(EbRouter *self, EbChatMessage *message);
/** eb_router_release: what is held for @thread (nullable: for any) goes on. */
void eb_router_release(EbRouter *self, const char *thread);
/** eb_router_lose_thread: it can be written to no more: @state: archived, deleted, lost */
void eb_router_lose_thread(EbRouter *self, const char *thread, const char *state);

/** eb_router_put_away: closes @thread, whose session was stopped; the orders to do so are done then. */
void eb_router_put_away(EbRouter *self, const char *thread);

/* --- eb-router-dispatch.c --- */

/** EbRouterAddress: who says something where. */
typedef struct {
    const char *thread;      /* (nullable): NULL = the channel */
    EbSession *session;      /* (nullable): live, maybe ending */
    EbSessionRecord *record; /* (nullable): of the session that is live or can be continued */
    gboolean stopped;        /* there was one that was ended for good */
    EbRole role;
} EbRouterAddress;
EbRouterAddress eb_router_address(EbRouter *self, const EbChatMessage *message);

void eb_router_dispatch(EbRouter *self, EbChatMessage *message);
/** eb_router_change_opening: the message for which a thread is being opened was edited, or (text NULL) withdrawn. */
void eb_router_change_opening(EbRouter *self, const char *message_id, const char *text);
/** eb_router_continue_entry: what an earlier run left. */
void eb_router_continue_entry(EbRouter *self, EbJournalEntry *entry);
/** EbRouterGive: how a prompt goes to its session. */
typedef enum { EB_ROUTER_SAY, EB_ROUTER_THEN, EB_ROUTER_STEER } EbRouterGive;
/** eb_router_give: @text of @message to the session at @address, which is resumed when it sleeps. FALSE: refused, told. */
gboolean eb_router_give(EbRouter *self, const EbRouterAddress *address, EbChatMessage *message, const char *text,
                        EbRouterGive how);

/* --- eb-router-paste.c --- */

/** eb_router_is_pasted: all @message has for a text is a file that the chat made of it. */
gboolean eb_router_is_pasted(EbRouter *self, const EbChatMessage *message);
/** eb_router_unfold_async: never fails: what cannot be read stays the file it is. */
void eb_router_unfold_async(EbRouter *self, EbChatMessage *message, GAsyncReadyCallback callback, gpointer user_data);
/** eb_router_unfold_finish: (transfer full) */
EbChatMessage *eb_router_unfold_finish(EbRouter *self, GAsyncResult *result);

/* --- eb-router-commands.c --- */

/** eb_router_command: @message is an action or begins with "!": carries it out. TRUE: that was all. */
gboolean eb_router_command(EbRouter *self, EbChatMessage *message);
/** eb_router_continue_stop: a !stop that an earlier run began is carried out by this one. FALSE: @message is none. */
gboolean eb_router_continue_stop(EbRouter *self, EbChatMessage *message);
/**
 * eb_router_first_state: what @message is in the journal as soon as it stands there: a command is carried out at once, so
 * that what is said after it comes after it, and never again, whatever happens.
 */
EbJournalState eb_router_first_state(EbRouter *self, const EbChatMessage *message);
/** eb_router_is_action: it came by a command of the chat, not as a text. */
gboolean eb_router_is_action(const EbChatMessage *message);

/* --- eb-router-files.c --- */

/** eb_router_show_files: ls, cat, file of the project of @record; ends with EB_JOURNAL_DONE. */
void eb_router_show_files(EbRouter *self, EbChatMessage *message, const EbSessionRecord *record,
                          const EbCommand *command);

/* --- eb-router-hosts.c --- */

/** eb_router_hosts: allow-host, deny-host, hosts in the session of @record; ends with EB_JOURNAL_DONE. */
void eb_router_hosts(EbRouter *self, EbChatMessage *message, EbSessionRecord *record, const EbCommand *command);

/* --- eb-router-tell.c --- */

/** eb_router_answer: to @message, where it was said. @text: Markdown, not masked yet */
void eb_router_answer(EbRouter *self, const EbChatMessage *message, const char *text);
/** eb_router_answer_file: with a file, whose name and bytes are masked already. */
void eb_router_answer_file(EbRouter *self, const EbChatMessage *message, const char *text, EbChatFile *file);
/** eb_router_secrets: (transfer none) (nullable): what is masked in @thread (nullable) */
EbRedactSet *eb_router_secrets(EbRouter *self, const char *thread);
/** eb_router_tell: a notice in @thread (nullable): the channel; for transports without one their main thread. */
void eb_router_tell(EbRouter *self, const char *thread, EbChatPostKind kind, const char *text, const char *reply_to);
/** eb_router_tell_once: FALSE when @author was told before in @thread. */
gboolean eb_router_tell_once(EbRouter *self, const char *thread, const char *author);
/** eb_router_refuse: @message starts nothing: told, reacted to, done. */
void eb_router_refuse(EbRouter *self, EbChatMessage *message, const char *thread, const GError *error);
/** eb_router_done: nothing more is to be done about @message. */
void eb_router_done(EbRouter *self, const EbChatMessage *message);
/** eb_router_react: @symbol: EB_CHAT_SYMBOL_* */
void eb_router_react(EbRouter *self, const char *thread, const char *message_id, const char *symbol);
/** eb_router_follow: from now on the reaction to @message says how it stands. */
void eb_router_follow(EbRouter *self, const EbChatMessage *message);
void eb_router_unfollow(EbRouter *self, const char *message_id);
/** eb_router_prompt_outcome: of a prompt of @thread. */
void eb_router_prompt_outcome(EbRouter *self, const char *thread, const char *message_id, int outcome);
/** eb_router_note_late: @message is too old to be acted on: one answer for all of its place follows. */
void eb_router_note_late(EbRouter *self, EbChatMessage *message);
/** eb_router_raw_id: the transport's own id in ours. */
const char *eb_router_raw_id(EbRouter *self, const char *message_id);
void eb_router_prompt_free(gpointer data);
void eb_router_late_free(gpointer data);

/* --- eb-router-catchup.c --- */

/** EB_CATCHUP_MAX_WAITING: live messages of one place that wait for it; beyond them it is read back once more. */
#define EB_CATCHUP_MAX_WAITING 256
/** EB_CATCHUP_PAGE: messages asked for, and written down, at once: the store's queue takes much less than a chat has. */
#define EB_CATCHUP_PAGE 100
/** EB_CATCHUP_MAX_READ: of one place in one catch-up; beyond them it is told that some were left. */
#define EB_CATCHUP_MAX_READ 1000
/** EB_CATCHUP_MAX_THREADS: threads that are read back: those used last. */
#define EB_CATCHUP_MAX_THREADS 100
/** EB_CATCHUP_PARALLEL: places read at the same time. */
#define EB_CATCHUP_PARALLEL 2

EbCatchup *eb_catchup_new(EbRouter *router);
void eb_catchup_free(EbCatchup *self);
/** eb_catchup_begin: the journal of earlier runs is settled: reads the watermarks, then reads back. */
void eb_catchup_begin(EbCatchup *self);
/** eb_catchup_connected: the connection is up (again). */
void eb_catchup_connected(EbCatchup *self);
/** eb_catchup_hold: TRUE: @message waits for what was missed before it. */
gboolean eb_catchup_hold(EbCatchup *self, EbChatMessage *message);
void eb_catchup_seen(EbCatchup *self, const char *thread, const char *message_id);
/** eb_catchup_thread_opened: @thread, new to us, begins after @message_id, which was not acted on yet. */
void eb_catchup_thread_opened(EbCatchup *self, const char *thread, const char *message_id);
void eb_catchup_forget(EbCatchup *self, const char *thread);
/** eb_catchup_change_waiting: @message was edited or (text NULL) withdrawn while it waits: TRUE when it did. */
gboolean eb_catchup_change_waiting(EbCatchup *self, const char *thread, const char *message_id, const char *text);

G_END_DECLS
