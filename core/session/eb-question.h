/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/base/eb-redactor.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/* What a question of an agent is, apart from who asks whom: pure. */

/** EB_QUESTION_MAX_OPTIONS: further ones are not shown. */
#define EB_QUESTION_MAX_OPTIONS 24
/** EB_QUESTION_MAX_BODY: bytes of a body. */
#define EB_QUESTION_MAX_BODY ((gsize)256 * 1024)

/** EbQuestionOption: one answer. */
typedef struct {
    char *choice; /* what a person chooses by: the agent's own id where a chat can carry it, else a number */
    char *option; /* the agent's id */
    char *label;
    char *kind; /* (nullable) */
} EbQuestionOption;

/** EbQuestionText: what is shown of a question. */
typedef struct {
    char *thread;
    char *title;
    GPtrArray *options; /* (element-type EbQuestionOption), at most EB_QUESTION_MAX_OPTIONS */
    JsonObject *data;   /* (nullable): the tool call */
} EbQuestionText;
EbQuestionText *eb_question_text_new(const char *thread, const char *title);
void eb_question_text_free(EbQuestionText *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbQuestionText, eb_question_text_free)
/** eb_question_text_add_options: @options: (element-type EbAcpOption) */
void eb_question_text_add_options(EbQuestionText *self, GPtrArray *options);
/** eb_question_text_find: (transfer none) (nullable): by what a person chooses; _find_option: by the agent's id. */
const EbQuestionOption *eb_question_text_find(const EbQuestionText *self, const char *choice);
const EbQuestionOption *eb_question_text_find_option(const EbQuestionText *self, const char *option);
/** eb_question_text_refusal: (transfer none) (nullable): what refuses this one call; NULL when the agent offers nothing. */
const EbQuestionOption *eb_question_text_refusal(const EbQuestionText *self);
/** eb_question_option_outcome: "allowed", "rejected", or "answered" when its kind is not known. */
const char *eb_question_option_outcome(const EbQuestionOption *self);

/** eb_question_text_write: (transfer full): JSON; data that is too large is left out. */
char *eb_question_text_write(const EbQuestionText *self);
/** eb_question_text_read: (transfer full) (nullable): NULL with @error for anything that _write() does not write. */
EbQuestionText *eb_question_text_read(const char *body, GError **error);

/** EB_QUESTION_MAX_INPUT: bytes of an input that is shown. */
#define EB_QUESTION_MAX_INPUT ((gsize)4096)
/**
 * eb_question_input: (transfer full) (nullable): what a call would do in full, for a title that does not say it wholly: the
 * command when it says it all (not beside arguments, a directory, an environment), else its input as JSON; masked, cut and marked so beyond EB_QUESTION_MAX_INPUT.
 */
char *eb_question_input(const EbAcpTool *tool, EbRedactSet *secrets);

/**
 * eb_question_digest: (transfer full): of everything that makes it this question: kind, title, input, changes, places and
 * options; neither the id nor the state of the call. "" when a part of it was cut: then nothing is the same question.
 * @tool: (nullable): as known so far
 * @request: the params of session/request_permission
 * @options: (element-type EbAcpOption)
 */
char *eb_question_digest(const EbAcpTool *tool, JsonObject *request, GPtrArray *options);

/**
 * eb_question_resume_text: (transfer full): what an agent is told whose question was answered while it was away.
 * @in_time: the answer still counts when it asks again
 */
char *eb_question_resume_text(const char *title, const EbQuestionOption *answer, gboolean in_time);

G_END_DECLS
