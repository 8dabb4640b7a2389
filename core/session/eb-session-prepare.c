/* SPDX-License-Identifier: MIT */
/* What comes before an agent is given a prompt: its files are taken, and it is written down that it was given. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

#include "core/session/eb-attachments.h"

static void
append_line(EbPrompt *prompt, const char *line)
{
    if (line == NULL || *line == '\0')
        return;
    char *text = *prompt->text != '\0' ? g_strconcat(prompt->text, "\n\n", line, NULL) : g_strdup(line);
    g_free(prompt->text);
    prompt->text = text;
}

static void
on_marked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    EbPrompt *prompt = g_task_get_task_data(task);
    if (eb_journal_mark_finish(EB_STORE(source), result, &error))
        g_task_return_pointer(task, eb_prompt_copy(prompt), (GDestroyNotify)eb_prompt_free);
    else
        g_task_return_error(task, error);
}

/* Written before it is sent: a kill in between loses it to the journal's notice, but never runs it twice.
 * @task: (transfer full) */
static void
mark(EbSession *self, GTask *task)
{
    EbPrompt *prompt = g_task_get_task_data(task);
    if (prompt->message_id != NULL && self->record->transport != NULL) {
        eb_log_step("turn.mark", "EB_SESSION", self->record->id);
        eb_journal_mark_async(self->parts->store, self->record->transport, prompt->message_id, EB_JOURNAL_STARTED,
                              self->record->id, NULL, on_marked, task);
        return;
    }
    g_task_return_pointer(task, eb_prompt_copy(prompt), (GDestroyNotify)eb_prompt_free);
    g_object_unref(task);
}

static void
on_taken(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbSession *self = g_task_get_source_object(task);
    EbPrompt *prompt = g_task_get_task_data(task);
    GError *error = NULL;
    g_autoptr(EbAttachments) taken = eb_attachments_take_finish(result, &error);
    if (taken == NULL) {
        g_task_return_error(task, error);
        g_object_unref(task);
        return;
    }
    for (guint i = 0; i < taken->refusals->len; i++)
        eb_session_notice(self, taken->refusals->pdata[i]);
    if (*prompt->text == '\0')
        append_line(prompt, taken->text);
    append_line(prompt, taken->lines);
    g_clear_pointer(&prompt->blocks, json_array_unref);
    prompt->blocks = taken->blocks != NULL ? json_array_ref(taken->blocks) : NULL;
    g_clear_pointer(&prompt->message, eb_chat_message_unref);
    mark(self, task);
}

void
eb_session_prepare_async(EbSession *self, const EbPrompt *prompt, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_prepare_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, eb_prompt_copy(prompt), (GDestroyNotify)eb_prompt_free);
    if (eb_prompt_has_attachments(prompt))
        eb_attachments_take_async(self->parts, self->record->project, self->transport, prompt->message, cancellable,
                                  on_taken, task);
    else
        mark(self, task);
}

EbPrompt *
eb_session_prepare_finish(EbSession *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
