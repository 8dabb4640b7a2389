/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-question-store.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

typedef struct _EbPermission EbPermission;

/**
 * EbQuestions: the questions of an earlier run whose agents are gone. They stay open until their time, and an answer waits
 * for the agent to ask the same again: then it gets it, once.
 *
 * Signal: "decided" (EbPermission *question): a person answered; its session should be told.
 */
#define EB_TYPE_QUESTIONS (eb_questions_get_type())
G_DECLARE_FINAL_TYPE(EbQuestions, eb_questions, EB, QUESTIONS, GObject)

EbQuestions *eb_questions_new(void);
/**
 * eb_questions_take_up: shows @row as it was, or waits with its answer; a row that cannot be read is closed.
 * @answerers: (transfer none) (nullable) (element-type utf8): NULL = anyone
 */
void eb_questions_take_up(EbQuestions *self, EbStore *store, EbChatTransport *transport, const EbQuestionRow *row,
                          GPtrArray *answerers);
/** eb_questions_claim: (transfer full) (nullable): the one an agent asks again; it is no longer here. */
EbPermission *eb_questions_claim(EbQuestions *self, const char *session, const char *digest);
/** eb_questions_list: (transfer container) (element-type EbPermission): those of @session, for eb_permissions_answer(). */
GPtrArray *eb_questions_list(EbQuestions *self, const char *session);
void eb_questions_set_answerers(EbQuestions *self, const char *session, GPtrArray *answerers);
/** eb_questions_close_session: it was ended or removed: nobody asks again. */
void eb_questions_close_session(EbQuestions *self, const char *session);
/** eb_questions_let_go: the service ends. */
void eb_questions_let_go(EbQuestions *self);
guint eb_questions_get_count(EbQuestions *self);

G_END_DECLS
