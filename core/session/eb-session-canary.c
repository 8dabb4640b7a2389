/* SPDX-License-Identifier: MIT */
/* The key that nobody has a use for: when it shows up, the agent, or what it runs, takes what it finds. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-canary.h"

#include <string.h>

#define RANDOM_BYTES 36

EbSecret *
eb_canary_new(const char *kind)
{
    static const struct {
        const char *kind, *prefix;
    } shapes[] = {{"anthropic", "sk-ant-api03-"}, {"gemini", "AIzaSy"}, {"openai", "sk-proj-"}};
    const char *prefix = shapes[2].prefix;
    g_autoptr(EbSecret) random = eb_secret_new_random("canary", RANDOM_BYTES);
    g_auto(EbSecretView) view = eb_secret_view(random);

    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        if (g_strcmp0(kind, shapes[i].kind) == 0)
            prefix = shapes[i].prefix;
    g_autofree char *text = g_strconcat(prefix, view.bytes, NULL);
    GError *error = NULL;
    EbSecret *canary = eb_secret_new_take("canary", text, strlen(text), &error);
    if (canary == NULL)
        g_error("%s", error->message); /* as for any secret that is made here */
    return canary;
}

/* A row of the audit beside those of connections. */
static void
write_row(EbSession *self)
{
    if (!EB_IS_BROKER_CTL(self->guest->broker))
        return;
    g_autoptr(JsonObject) row = json_object_new();
    json_object_set_string_member(row, "session", self->record->id);
    json_object_set_string_member(row, "kind", "canary");
    json_object_set_string_member(row, "decision", "alarm");
    json_object_set_string_member(row, "rule", self->canary_seen);
    g_signal_emit_by_name(self->guest->broker, "audit", row);
}

/* From the loop: it may have been seen in the middle of something that ending the session would take away. */
static gboolean
tell(gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    const EbSessionConfig *config = eb_config_get_session(self->parts->config);
    g_autoptr(GError) error =
        eb_error_new(EB_ERROR_DENIED, "session.canary",
                     "the planted key showed up in %s: the agent, or something it ran, passes on keys that it finds%s",
                     self->canary_seen, config->canary_ends ? "; the session was ended ([session] canary_action)" : "");

    if (self->guest == NULL)
        return G_SOURCE_REMOVE;
    eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, error->message, "EB_SESSION", self->record->id, "EB_REASON",
                 "session.canary", NULL);
    write_row(self);
    /* Before it ends: who is to be told is asked of a session that lives. */
    eb_session_tell_operators(self, error->message);
    if (config->canary_ends)
        eb_session_end(self, EB_SESSION_END_STOPPED, error);
    g_signal_emit_by_name(self, "changed");
    return G_SOURCE_REMOVE;
}

static void
alarm_once(EbSession *self, const char *where)
{
    if (self->canary_seen != NULL)
        return;
    self->canary_seen = eb_log_escape(where, -1, 40);
    g_autoptr(GSource) source = g_idle_source_new();
    g_source_set_callback(source, tell, g_object_ref(self), g_object_unref);
    g_source_attach(source, g_main_context_get_thread_default());
}

static void
on_sent(GObject *broker, const char *where, gpointer user_data)
{
    alarm_once(EB_SESSION(user_data), where);
}

static void
on_masked(gpointer user_data)
{
    alarm_once(EB_SESSION(user_data), "what it said");
}

void
eb_session_canary_watch(EbSession *self)
{
    EbGuest *guest = self->guest;

    if (guest->canary == NULL)
        return;
    eb_redact_set_watch(guest->secrets, guest->canary, on_masked, self);
    if (EB_IS_BROKER_CTL(guest->broker))
        g_signal_connect_object(guest->broker, "canary", G_CALLBACK(on_sent), self, 0);
}

void
eb_session_canary_unwatch(EbSession *self)
{
    if (self->guest != NULL && self->guest->canary != NULL)
        eb_redact_set_watch(self->guest->secrets, self->guest->canary, NULL, NULL);
}
