/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-store.h"

G_BEGIN_DECLS

/** EB_QUESTION_STORE_MAX: rows that load gives, the newest; an agent has at most 64 open, few sessions have any. */
#define EB_QUESTION_STORE_MAX 200
/** EB_QUESTION_STORE_KEEP_MS: how long a row is kept after its time, for whoever wonders what was decided. */
#define EB_QUESTION_STORE_KEEP_MS ((gint64)7 * 24 * 3600 * 1000)
/** EB_QUESTION_STORE_MAX_OVER: rows since which one that is over is not kept any longer: an agent may ask and take back
 *  all day, with 64 KiB each time. */
#define EB_QUESTION_STORE_MAX_OVER 1000

/** EbQuestionState: open -> answered -> applied, or from the first two to expired or closed. */
typedef enum {
    EB_QUESTION_OPEN = 0,
    EB_QUESTION_ANSWERED = 1, /* a person decided; no agent was told yet */
    EB_QUESTION_APPLIED = 2,  /* an agent was told: never again */
    EB_QUESTION_EXPIRED = 3,
    EB_QUESTION_CLOSED = 4, /* its turn ended, or the agent took it back */
} EbQuestionState;
const char *eb_question_state_to_string(EbQuestionState state);

/** EbQuestionRow: a question that people are asked for an agent, beyond the life of the process that asks. */
typedef struct {
    char *id;      /* [a-z0-9-]{1,40} */
    char *session; /* id of the EbSessionRecord */
    char *message; /* (nullable): as which it is shown; NULL = not known to be shown */
    char *body;    /* JSON, of the asker */
    char *digest;  /* of all that makes it this question; "" = nothing is taken for the same */
    EbQuestionState state;
    char *answer;                /* (nullable): the agent's id of the option */
    char *answered_by;           /* (nullable) */
    gint64 asked_ms, expires_ms; /* unix, milliseconds */
} EbQuestionRow;
EbQuestionRow *eb_question_row_new(void);
void eb_question_row_free(EbQuestionRow *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbQuestionRow, eb_question_row_free)

/** eb_question_store_add_async: @row: (transfer full) */
void eb_question_store_add_async(EbStore *store, EbQuestionRow *row, GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_question_store_add_finish(EbStore *store, GAsyncResult *result, GError **error);
/** eb_question_store_set_message: fire and forget. */
void eb_question_store_set_message(EbStore *store, const char *id, const char *message);
/**
 * eb_question_store_move_async: @answer, @answered_by: (nullable): left as they are when NULL; @callback: (nullable)
 * Of two moves from one state one succeeds.
 */
void eb_question_store_move_async(EbStore *store, const char *id, EbQuestionState from, EbQuestionState to,
                                  const char *answer, const char *answered_by, GAsyncReadyCallback callback,
                                  gpointer user_data);
/** eb_question_store_move_finish: @moved: (out): FALSE when it was not in that state */
gboolean eb_question_store_move_finish(EbStore *store, GAsyncResult *result, gboolean *moved, GError **error);
/** eb_question_store_end: open or answered becomes @state; fire and forget. */
void eb_question_store_end(EbStore *store, const char *id, EbQuestionState state);
/** eb_question_store_load_async: what is open or answered, oldest first; forgets what is long over. */
void eb_question_store_load_async(EbStore *store, GAsyncReadyCallback callback, gpointer user_data);
/** eb_question_store_load_finish: (transfer full) (nullable) (element-type EbQuestionRow) */
GPtrArray *eb_question_store_load_finish(EbStore *store, GAsyncResult *result, GError **error);

G_END_DECLS
