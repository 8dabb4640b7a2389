/* SPDX-License-Identifier: MIT */
/* Who may answer in a session, and what they answer. */
#define G_LOG_DOMAIN "eb-session"
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
eb_session_set_operators(EbSession *self, const char *const *operators)
{
    g_return_if_fail(EB_IS_SESSION(self));
    self->restricted = operators != NULL;
    g_ptr_array_set_size(self->operators, 0);
    for (guint i = 0; operators != NULL && operators[i] != NULL; i++)
        g_ptr_array_add(self->operators, g_strdup(operators[i]));
    eb_session_share_answerers(self);
}

GPtrArray *
eb_session_list_answerers(EbSession *self)
{
    if (!self->restricted)
        return NULL;
    GPtrArray *answerers = g_ptr_array_new_with_free_func(g_free);
    if (self->record->owner != NULL)
        g_ptr_array_add(answerers, g_strdup(self->record->owner));
    for (guint i = 0; i < self->record->guests->len; i++)
        g_ptr_array_add(answerers, g_strdup(self->record->guests->pdata[i]));
    for (guint i = 0; i < self->operators->len; i++)
        g_ptr_array_add(answerers, g_strdup(self->operators->pdata[i]));
    return answerers;
}

void
eb_session_share_answerers(EbSession *self)
{
    for (guint i = 0; i < self->permissions->len; i++) {
        g_autoptr(GPtrArray) answerers = eb_session_list_answerers(self);
        eb_permission_set_answerers(self->permissions->pdata[i], answerers);
    }
}

EbSessionAnswer
eb_session_answer(EbSession *self, const char *author_id, const char *text)
{
    g_return_val_if_fail(EB_IS_SESSION(self) && text != NULL, EB_SESSION_ANSWER_NONE);
    g_autofree char *advice = NULL;
    EbSessionAnswer answer = eb_permissions_answer(self->permissions, author_id, text, &advice);
    if (advice != NULL)
        eb_session_notice(self, advice);
    return answer;
}
