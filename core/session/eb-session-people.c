/* SPDX-License-Identifier: MIT */
/* Who may answer in a session, and what they answer. */
#define G_LOG_DOMAIN "eb-session"
#include "core/chat/eb-roles.h"
#include "core/session/eb-session-private.h"

gboolean
eb_session_set_guest(EbSession *self, const char *id, gboolean invited)
{
    g_return_val_if_fail(EB_IS_SESSION(self) && id != NULL, FALSE);
    if (!eb_session_record_set_guest(self->record, id, invited))
        return FALSE;
    eb_session_share_answerers(self);
    eb_session_save(self);
    g_signal_emit_by_name(self, "changed");
    return TRUE;
}

void
eb_session_set_policy(EbSession *self, const EbChatPolicy *policy)
{
    g_return_if_fail(EB_IS_SESSION(self));
    self->policy = policy;
    eb_session_share_answerers(self);
}

/* A record keeps its people when the operator's lists change: who is blocked by now, or no longer allowed, is nobody. */
static void
add_answerer(GPtrArray *answerers, const EbSessionRecord *record, const EbChatPolicy *policy, const char *id)
{
    if (eb_role_of(policy, record->owner, record->guests, id) >= EB_ROLE_GUEST)
        g_ptr_array_add(answerers, g_strdup(id));
}

GPtrArray *
eb_session_record_list_answerers(const EbSessionRecord *record, const EbChatPolicy *policy)
{
    if (policy == NULL)
        return NULL;
    GPtrArray *answerers = g_ptr_array_new_with_free_func(g_free);
    add_answerer(answerers, record, policy, record->owner);
    for (guint i = 0; i < record->guests->len; i++)
        add_answerer(answerers, record, policy, record->guests->pdata[i]);
    for (guint i = 0; policy->operators != NULL && policy->operators[i] != NULL; i++)
        add_answerer(answerers, record, policy, policy->operators[i]);
    return answerers;
}

GPtrArray *
eb_session_list_answerers(EbSession *self)
{
    return eb_session_record_list_answerers(self->record, self->policy);
}

void
eb_session_share_answerers(EbSession *self)
{
    g_autoptr(GPtrArray) answerers = eb_session_list_answerers(self);
    for (guint i = 0; i < self->permissions->len; i++)
        eb_permission_set_answerers(self->permissions->pdata[i], answerers);
    eb_questions_set_answerers(self->parts->questions, self->record->id, answerers);
}

EbSessionAnswer
eb_session_answer(EbSession *self, const char *author_id, const char *text, gint64 sent_ms)
{
    g_return_val_if_fail(EB_IS_SESSION(self) && text != NULL, EB_SESSION_ANSWER_NONE);
    g_autofree char *advice = NULL;
    g_autoptr(GPtrArray) open = eb_questions_list(self->parts->questions, self->record->id);
    for (guint i = 0; i < self->permissions->len; i++)
        g_ptr_array_add(open, g_object_ref(self->permissions->pdata[i]));
    EbSessionAnswer answer = eb_permissions_answer(open, author_id, text, sent_ms, &advice);
    if (advice != NULL)
        eb_session_notice(self, advice);
    return answer;
}
