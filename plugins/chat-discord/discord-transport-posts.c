/* SPDX-License-Identifier: MIT */
/* What the core says: posts, questions, reactions. */
#include "discord-transport-private.h"

/* --- posts --- */

static void
on_posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    char *id = discord_view_post_finish(DISCORD_VIEW(source), result, &error);

    if (id != NULL)
        g_task_return_pointer(task, id, g_free);
    else
        g_task_return_error(task, error);
}

static void
on_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    char *id = discord_interactions_answer_finish(DISCORD_INTERACTIONS(source), result, &error);

    if (id != NULL)
        g_task_return_pointer(task, id, g_free);
    else
        g_task_return_error(task, error);
}

/* An answer to a command goes to where the command was given, seen by whoever gave it alone. */
static gboolean
is_answer(DiscordTransport *self, const EbChatPost *post)
{
    return post->kind == EB_CHAT_POST_ANSWER && post->reply_to != NULL &&
           discord_interactions_knows(self->interactions, post->reply_to);
}

void
discord_transport_post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    GError *error = NULL;
    DiscordView *view = discord_transport_view(self, post->thread, &error);

    g_task_set_source_tag(task, discord_transport_post_async);
    g_task_set_check_cancellable(task, FALSE);
    if (view == NULL) {
        g_task_return_error(task, error);
    } else if (post->kind == EB_CHAT_POST_BUSY) {
        discord_view_set_busy(view, !self->stopping && eb_json_get_bool(post->data, "busy", FALSE));
        g_task_return_pointer(task, g_strdup(""), g_free);
    } else if (is_answer(self, post)) {
        discord_interactions_answer_async(self->interactions, post->reply_to, post, discord_view_get_outbox(view),
                                          cancellable, on_answered, g_steal_pointer(&task));
    } else {
        discord_view_post_async(view, post, cancellable, on_posted, g_steal_pointer(&task));
    }
}

/* --- questions --- */

static void
on_chosen(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;
    char *by = NULL;
    char *choice = discord_ask_open_finish(DISCORD_ASK(source), result, &by, &error);

    g_task_set_task_data(task, by, g_free);
    if (choice != NULL)
        g_task_return_pointer(task, choice, g_free);
    else
        g_task_return_error(task, error);
}

void
discord_transport_ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    GError *error = NULL;
    DiscordView *view = discord_transport_view(self, question->thread, &error);

    g_task_set_source_tag(task, discord_transport_ask_async);
    g_task_set_check_cancellable(task, FALSE);
    if (view == NULL)
        g_task_return_error(task, error);
    else
        discord_ask_open_async(self->ask, discord_view_get_outbox(view), question, timeout_ms, cancellable, on_chosen,
                               g_steal_pointer(&task));
}

char *
discord_transport_ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, transport), NULL);
    if (answered_by != NULL)
        *answered_by = g_strdup(g_task_get_task_data(G_TASK(result)));
    return g_task_propagate_pointer(G_TASK(result), error);
}

/* --- reactions --- */

static void
on_reacted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    GError *error = NULL;

    if (discord_reactions_set_finish(DISCORD_REACTIONS(source), result, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

void
discord_transport_react_async(EbChatTransport *transport, const char *thread, const char *message_id,
                              const char *reaction, GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data)
{
    DiscordTransport *self = DISCORD_TRANSPORT(transport);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);

    g_task_set_source_tag(task, discord_transport_react_async);
    g_task_set_check_cancellable(task, FALSE);
    if (self->rest == NULL || self->failed) {
        g_task_return_error(
            task, eb_error_new(EB_ERROR_UNAVAILABLE, "discord.not-started", "the connection to Discord is not there"));
        return;
    }
    /* A command is no message: there is nothing to react to. */
    if (!discord_is_snowflake(message_id) || discord_interactions_knows(self->interactions, message_id)) {
        g_task_return_boolean(task, TRUE);
        return;
    }
    discord_reactions_set_async(self->reactions, discord_transport_place(self, thread), message_id, reaction,
                                cancellable, on_reacted, g_steal_pointer(&task));
}
