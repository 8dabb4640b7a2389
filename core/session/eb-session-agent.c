/* SPDX-License-Identifier: MIT */
/* What a session's agent does and asks, and what goes wrong with it. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-guest-rules.h"
#include "core/session/eb-session-canary.h"
#include "core/session/eb-session-private.h"

#include <string.h>

/* --- what the agent does --- */

static void
show(EbSession *self, GPtrArray *posts)
{
    for (guint i = 0; i < posts->len; i++)
        eb_session_post(self, posts->pdata[i]);
}

/* Agents name it after what they call it. */
static void
note_commands(EbSession *self, JsonObject *update)
{
    static const char *const names[] = {"compact", "compress", NULL};
    JsonArray *commands = eb_json_get_array(update, "availableCommands");
    g_clear_pointer(&self->compact, g_free);
    for (guint i = 0; commands != NULL && self->compact == NULL && i < json_array_get_length(commands); i++) {
        const char *name = eb_json_get_string(eb_json_array_object(commands, i), "name");
        if (name != NULL && g_strv_contains(names, name))
            self->compact = g_strdup(name);
    }
}

static void
note_usage(EbSession *self, const EbAcpUpdate *update)
{
    if (update->used >= 0)
        self->context_used = update->used;
    if (update->size >= 0)
        self->context_size = update->size;
    if (update->cost < 0)
        return;
    self->cost = update->cost;
    g_free(self->currency);
    self->currency = update->currency != NULL ? eb_log_escape(update->currency, -1, 16) : NULL;
}

static void
on_note(EbAcpClient *client, EbAcpUpdate *update, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (update->kind == EB_ACP_UPDATE_COMMANDS)
        note_commands(self, update->raw);
    else if (update->kind == EB_ACP_UPDATE_USAGE)
        note_usage(self, update);
}

void
eb_session_listen_early(EbSession *self, EbAcpClient *client)
{
    g_signal_connect_object(client, "update", G_CALLBACK(on_note), self, 0);
}

static void
on_update(EbAcpClient *client, EbAcpUpdate *update, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (update->kind == EB_ACP_UPDATE_TOOL)
        eb_log_step("turn.tool", "EB_SESSION", self->record->id);
    else if (update->kind == EB_ACP_UPDATE_TEXT)
        eb_log_step("turn.text", "EB_SESSION", self->record->id);
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_update(self->renderer, update, posts);
    show(self, posts);
    eb_session_touch(self);
}

void
eb_session_end_span(EbSession *self)
{
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_end_span(self->renderer, posts);
    show(self, posts);
}

static void
on_silent(EbActivityWatch *watch, guint seconds, gpointer user_data)
{
    g_autofree char *text = g_strdup_printf("no activity for %u s", seconds);
    eb_session_notice(EB_SESSION(user_data), text);
}

static void
on_stalled(EbActivityWatch *watch, guint64 limit, gpointer user_data)
{
    g_autoptr(GError) error = eb_error_new(EB_ERROR_QUOTA, "session.memory",
                                           "the guest reached its memory limit of %" G_GUINT64_FORMAT
                                           " MiB and the agent stopped answering ([session] memory)",
                                           limit >> 20);
    eb_session_end(EB_SESSION(user_data), EB_SESSION_END_LIMIT, error);
}

/* The process ended, or the connection to it. */
static void
on_agent_gone(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(EbSession) self = EB_SESSION(user_data);
    int code = eb_exec_wait_finish(EB_EXEC(source), result, NULL);
    if (self->ending || self->guest == NULL)
        return;
    g_autofree char *tail = eb_acp_client_get_stderr_tail(self->guest->client);
    g_autoptr(GError) error = eb_guest_explain_exit(self->guest, code, tail);
    EbSessionEnd reason = error->code == EB_ERROR_QUOTA ? EB_SESSION_END_LIMIT : EB_SESSION_END_CRASHED;
    eb_session_end(self, reason, error);
}

void
eb_session_attach_agent(EbSession *self)
{
    EbGuest *guest = self->guest;
    self->renderer = eb_renderer_new(self->record->thread, guest->secrets);
    self->watch = eb_activity_watch_new(guest->client, self->parts->backend, guest->instance, EB_ACTIVITY_SILENT_MS);
    g_signal_connect_object(self->watch, "silent", G_CALLBACK(on_silent), self, 0);
    g_signal_connect_object(self->watch, "stalled", G_CALLBACK(on_stalled), self, 0);
    g_signal_connect_object(guest->client, "update", G_CALLBACK(on_update), self, 0);
    g_signal_connect_object(guest->client, "permission", G_CALLBACK(eb_session_on_permission), self, 0);
    eb_session_apply_hosts(self);
    eb_session_canary_watch(self);
    eb_exec_wait_async(guest->exec, self->cancellable, on_agent_gone, g_object_ref(self));
}

void
eb_session_detach_agent(EbSession *self)
{
    eb_session_canary_unwatch(self);
    if (self->watch != NULL)
        eb_activity_watch_stop(self->watch);
    eb_session_close_permissions(self);
    if (self->renderer != NULL)
        eb_session_end_span(self);
    if (self->guest != NULL && self->guest->client != NULL)
        g_signal_handlers_disconnect_by_data(self->guest->client, self);
    if (self->guest != NULL && self->guest->broker != NULL)
        g_signal_handlers_disconnect_by_data(self->guest->broker, self);
    g_clear_object(&self->watch);
}

void
eb_session_keys_changed(EbSession *self, const char *name)
{
    g_return_if_fail(EB_IS_SESSION(self));
    if (self->guest != NULL && !self->ending)
        eb_guest_refresh_keys(self->guest, name);
}
