/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_PROMPT_MAX_BYTES: of one prompt's text. */
#define EB_PROMPT_MAX_BYTES (1024 * 1024)

/** EbPrompt: one thing a person said to an agent. */
typedef struct {
    char *message_id;       /* (nullable): NULL = said by the service itself: no state and no outcome is told of it */
    char *author_id;        /* (nullable) */
    char *text;             /* may be empty when message has attachments */
    EbChatMessage *message; /* (nullable) (owned): whose attachments are taken when its turn begins */
    JsonArray *blocks;  /* (nullable) (owned): further ACP content blocks; left out when the agent takes no images */
    gint64 received_us; /* monotonic: when it was said */
} EbPrompt;

/** eb_prompt_new: received now. */
EbPrompt *eb_prompt_new(const char *message_id, const char *author_id, const char *text);
/** eb_prompt_copy: (transfer full) */
EbPrompt *eb_prompt_copy(const EbPrompt *self);
void eb_prompt_free(EbPrompt *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPrompt, eb_prompt_free)
/** eb_prompt_check: EB_ERROR_INVALID "prompt.size": nothing is said, or too much. */
gboolean eb_prompt_check(const EbPrompt *self, GError **error);
/** eb_prompt_has_attachments: there are files to take when its turn begins. */
gboolean eb_prompt_has_attachments(const EbPrompt *self);

/** EbPromptOutcome: what has become of a prompt; from EB_PROMPT_DONE on it is final. */
typedef enum {
    EB_PROMPT_WAITING = 0, /* for its turn; also again, when an agent did not take it in the middle of a turn */
    EB_PROMPT_WORKING = 1, /* an agent was given it */
    EB_PROMPT_DONE = 2,
    EB_PROMPT_FAILED = 3,
    EB_PROMPT_INTERRUPTED = 4, /* somebody stopped, withdrew or ended it */
    EB_PROMPT_REFUSED = 5,     /* no agent was given it, and none will be */
} EbPromptOutcome;
/** eb_prompt_outcome_to_string: waiting, working, done, failed, interrupted, refused */
const char *eb_prompt_outcome_to_string(EbPromptOutcome outcome);
gboolean eb_prompt_outcome_is_final(EbPromptOutcome outcome);
/**
 * eb_prompt_outcome_of_turn: pure.
 * @stop_reason: (nullable): as ACP has it, or "error"
 * @failed: the turn ended with an error
 */
EbPromptOutcome eb_prompt_outcome_of_turn(const char *stop_reason, gboolean failed);

G_END_DECLS
