/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_JOURNAL_MAX_DONE: finished messages kept to recognise repeats. */
#define EB_JOURNAL_MAX_DONE 5000

/**
 * The journal of inbound messages: each is written down before it is acted on, so that a repeat from the chat service
 * is no second errand, and one that was waiting when the service died is not lost.
 */
typedef enum {
    EB_JOURNAL_RECEIVED = 0, /* written down, nothing done yet */
    EB_JOURNAL_STARTED = 1,  /* an agent was given it */
    EB_JOURNAL_DONE = 2,
} EbJournalState;

/** EbJournalEntry: a message left open by an earlier run. */
typedef struct {
    EbChatMessage *message; /* (owned): without attachments */
    EbJournalState state;
    char *session; /* (nullable) */
} EbJournalEntry;
void eb_journal_entry_free(EbJournalEntry *self);

/** eb_journal_receive_async: writes @message down. */
void eb_journal_receive_async(EbStore *store, const char *transport, EbChatMessage *message, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_receive_finish: @repeat: (out): TRUE when it stood there already. */
gboolean eb_journal_receive_finish(EbStore *store, GAsyncResult *result, gboolean *repeat, GError **error);
/** eb_journal_mark: fire and forget; a failure is logged. @session: (nullable): left as it is when NULL. */
void eb_journal_mark(EbStore *store, const char *transport, const char *message_id, EbJournalState state,
                     const char *session);
/** eb_journal_open_async: what is not done, oldest first, at most 200. */
void eb_journal_open_async(EbStore *store, const char *transport, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user_data);
/** eb_journal_open_finish: (transfer full) (nullable) (element-type EbJournalEntry) */
GPtrArray *eb_journal_open_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
