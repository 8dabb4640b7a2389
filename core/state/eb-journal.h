/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_JOURNAL_MAX_DONE: finished messages kept to recognise repeats. */
#define EB_JOURNAL_MAX_DONE 5000
/** EB_JOURNAL_MAX_OPEN: messages that are not finished; a further one is refused: EB_ERROR_QUOTA "journal.full". */
#define EB_JOURNAL_MAX_OPEN 2000
/** EB_JOURNAL_MAX_BYTES: of the text of one; a longer one is refused: EB_ERROR_INVALID "journal.size". */
#define EB_JOURNAL_MAX_BYTES (2 * 1024 * 1024)
/** EB_JOURNAL_MAX_ATTACHMENTS: kept of one message. */
#define EB_JOURNAL_MAX_ATTACHMENTS 32
/** EB_JOURNAL_MAX_WATERMARKS: threads of one transport whose watermark outlives a restart: those used last. */
#define EB_JOURNAL_MAX_WATERMARKS 2000

/**
 * The journal of inbound messages: each is written down before it is acted on, so that a repeat from the chat service
 * is no second errand, and one that was waiting when the service died is not lost. All calls are carried out in the order
 * they were made.
 */
typedef enum {
    EB_JOURNAL_RECEIVED = 0, /* written down, nothing done yet */
    EB_JOURNAL_STARTED = 1,  /* an agent was given it, or a command is being carried out */
    EB_JOURNAL_DONE = 2,
} EbJournalState;

/** EbJournalEntry: a message as it was written down. */
typedef struct {
    EbChatMessage *message; /* (owned): sent_unix_ms is when it was received where the transport did not tell */
    EbJournalState state;
    char *session; /* (nullable) */
} EbJournalEntry;
void eb_journal_entry_free(EbJournalEntry *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbJournalEntry, eb_journal_entry_free)

/**
 * eb_journal_receive_async: writes @message down, its attachments with it.
 * @state: what it begins with: EB_JOURNAL_STARTED for what is carried out as soon as it stands there
 */
void eb_journal_receive_async(EbStore *store, const char *transport, EbChatMessage *message, EbJournalState state,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_receive_finish: @repeat: (out): TRUE when it stood there already. */
gboolean eb_journal_receive_finish(EbStore *store, GAsyncResult *result, gboolean *repeat, GError **error);
/** eb_journal_mark: fire and forget; a failure is logged. @session: (nullable): left as it is when NULL. */
void eb_journal_mark(EbStore *store, const char *transport, const char *message_id, EbJournalState state,
                     const char *session);
/** eb_journal_mark_async: the same for who must not go on before it stands there: then a kill does not repeat it. */
void eb_journal_mark_async(EbStore *store, const char *transport, const char *message_id, EbJournalState state,
                           const char *session, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data);
gboolean eb_journal_mark_finish(EbStore *store, GAsyncResult *result, GError **error);
/** eb_journal_open_async: what is not done, oldest first. */
void eb_journal_open_async(EbStore *store, const char *transport, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_open_finish: (transfer full) (nullable) (element-type EbJournalEntry) */
GPtrArray *eb_journal_open_finish(EbStore *store, GAsyncResult *result, GError **error);

/** eb_journal_edit_async: a person changed the message: its text, as long as no agent was given it. */
void eb_journal_edit_async(EbStore *store, const char *transport, const char *message_id, const char *text,
                           GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/**
 * eb_journal_withdraw_async: a person deleted the message: its text goes, whatever its state; one that nothing was done
 * about yet is done.
 */
void eb_journal_withdraw_async(EbStore *store, const char *transport, const char *message_id, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_change_finish: (transfer full) (nullable): of both: how it was before; NULL without @error: unknown */
EbJournalEntry *eb_journal_change_finish(EbStore *store, GAsyncResult *result, GError **error);

/**
 * The watermark of a thread (NULL: of the channel) is the message up to which everything was written down; "" when there
 * was none yet.
 */
void eb_journal_set_watermark(EbStore *store, const char *transport, const char *thread, const char *message_id);
/** eb_journal_set_watermark_async: for who goes on when all that was written before it stands there as well. */
void eb_journal_set_watermark_async(EbStore *store, const char *transport, const char *thread, const char *message_id,
                                    GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_journal_set_watermark_finish(EbStore *store, GAsyncResult *result, GError **error);
void eb_journal_forget_watermark(EbStore *store, const char *transport, const char *thread);
/** eb_journal_watermarks_async: drops those of threads beyond EB_JOURNAL_MAX_WATERMARKS, gives the rest. */
void eb_journal_watermarks_async(EbStore *store, const char *transport, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_watermarks_finish: (transfer full) (nullable): utf8 thread -> utf8 message; the channel is "" */
GHashTable *eb_journal_watermarks_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
