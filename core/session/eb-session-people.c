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
    g_strfreev(self->operators);
    self->operators = g_strdupv((char **)operators);
    eb_session_share_answerers(self);
}

GPtrArray *
eb_session_record_list_answerers(const EbSessionRecord *record, const char *const *operators)
{
    GPtrArray *answerers = g_ptr_array_new_with_free_func(g_free);
    if (record->owner != NULL)
        g_ptr_array_add(answerers, g_strdup(record->owner));
    for (guint i = 0; i < record->guests->len; i++)
        g_ptr_array_add(answerers, g_strdup(record->guests->pdata[i]));
    for (guint i = 0; operators != NULL && operators[i] != NULL; i++)
        g_ptr_array_add(answerers, g_strdup(operators[i]));
    return answerers;
}

GPtrArray *
eb_session_list_answerers(EbSession *self)
{
    return self->operators != NULL
               ? eb_session_record_list_answerers(self->record, (const char *const *)self->operators)
               : NULL;
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
eb_session_answer(EbSession *self, const char *author_id, const char *text)
{
    g_return_val_if_fail(EB_IS_SESSION(self) && text != NULL, EB_SESSION_ANSWER_NONE);
    g_autofree char *advice = NULL;
    g_autoptr(GPtrArray) open = eb_questions_list(self->parts->questions, self->record->id);
    for (guint i = 0; i < self->permissions->len; i++)
        g_ptr_array_add(open, g_object_ref(self->permissions->pdata[i]));
    EbSessionAnswer answer = eb_permissions_answer(open, author_id, text, &advice);
    if (advice != NULL)
        eb_session_notice(self, advice);
    return answer;
}
