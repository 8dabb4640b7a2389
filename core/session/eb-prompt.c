/* SPDX-License-Identifier: MIT */
#include "core/session/eb-prompt.h"

#include <string.h>

EbPrompt *
eb_prompt_new(const char *message_id, const char *author_id, const char *text)
{
    EbPrompt *self = g_new0(EbPrompt, 1);
    self->message_id = g_strdup(message_id);
    self->author_id = g_strdup(author_id);
    self->text = g_strdup(text != NULL ? text : "");
    self->received_us = g_get_monotonic_time();
    return self;
}

EbPrompt *
eb_prompt_copy(const EbPrompt *self)
{
    EbPrompt *copy = eb_prompt_new(self->message_id, self->author_id, self->text);
    copy->received_us = self->received_us;
    copy->message = self->message != NULL ? eb_chat_message_ref(self->message) : NULL;
    copy->blocks = self->blocks != NULL ? json_array_ref(self->blocks) : NULL;
    return copy;
}

void
eb_prompt_free(EbPrompt *self)
{
    if (self == NULL)
        return;
    g_clear_pointer(&self->message, eb_chat_message_unref);
    g_clear_pointer(&self->blocks, json_array_unref);
    g_free(self->message_id);
    g_free(self->author_id);
    g_free(self->text);
    g_free(self);
}

gboolean
eb_prompt_has_attachments(const EbPrompt *self)
{
    return self->message != NULL && self->message->attachments != NULL && self->message->attachments->len > 0;
}

gboolean
eb_prompt_check(const EbPrompt *self, GError **error)
{
    gsize length = strlen(self->text);
    gboolean more = eb_prompt_has_attachments(self) || self->blocks != NULL;
    if ((length > 0 || more) && length <= EB_PROMPT_MAX_BYTES)
        return TRUE;
    eb_set_error(error, EB_ERROR_INVALID, "prompt.size", "a prompt has 1 to %d bytes, this one %" G_GSIZE_FORMAT,
                 EB_PROMPT_MAX_BYTES, length);
    return FALSE;
}

const char *
eb_prompt_outcome_to_string(EbPromptOutcome outcome)
{
    static const char *const names[] = {"waiting", "working", "done", "failed", "interrupted", "refused"};
    return (guint)outcome < G_N_ELEMENTS(names) ? names[outcome] : "failed";
}

gboolean
eb_prompt_outcome_is_final(EbPromptOutcome outcome)
{
    return outcome >= EB_PROMPT_DONE;
}

EbPromptOutcome
eb_prompt_outcome_of_turn(const char *stop_reason, gboolean failed)
{
    if (g_strcmp0(stop_reason, "cancelled") == 0)
        return EB_PROMPT_INTERRUPTED;
    if (failed || g_strcmp0(stop_reason, "refusal") == 0 || g_strcmp0(stop_reason, "error") == 0)
        return EB_PROMPT_FAILED;
    return EB_PROMPT_DONE;
}
