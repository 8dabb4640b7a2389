/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon-beat.h"

#include "core/base/eb-notify.h"
#include "core/base/eb-source.h"
#include "core/session/eb-session-hold.h"

struct _EbDaemonBeat {
    EbSessionManager *manager; /* not owned (nullable): while it is ready */
    GSource *source;
    char *told;        /* (nullable): the last line */
    guint extended_ms; /* of the start or drain that goes on */
};

static const char *
plural(gint64 n)
{
    return n == 1 ? "" : "s";
}

char *
eb_daemon_beat_text(JsonObject *status, const char *hold)
{
    gint64 live = eb_json_get_int(status, "live", 0);
    gint64 turns = eb_json_get_int(status, "turns", 0);
    gint64 waiting = eb_json_get_int(status, "waiting_sessions", 0) + eb_json_get_int(status, "waiting_turns", 0);
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text,
                    "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " sessions, %" G_GINT64_FORMAT
                    " turn%s at work, %" G_GINT64_FORMAT " waiting",
                    live, eb_json_get_int(status, "max_live", 0), turns, plural(turns), waiting);
    if (hold != NULL)
        g_string_append_printf(text, "; no new sessions: %s", hold);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
tell(EbDaemonBeat *self)
{
    g_autoptr(JsonNode) status = eb_session_manager_status_json(self->manager);
    g_autofree char *hold = eb_session_manager_describe_hold(self->manager);
    g_autofree char *text = eb_daemon_beat_text(eb_json_node_object(status), hold);
    if (g_strcmp0(text, self->told) == 0)
        return;
    eb_notify_status("%s", text);
    g_free(self->told);
    self->told = g_steal_pointer(&text);
}

static gboolean
beat(gpointer user_data)
{
    EbDaemonBeat *self = user_data;

    if (self->manager != NULL) {
        tell(self);
    } else if (self->extended_ms < EB_DAEMON_MAX_EXTEND_MS) {
        eb_notify_extend(EB_DAEMON_EXTEND_MS);
        self->extended_ms += EB_DAEMON_BEAT_MS;
    }
    return G_SOURCE_CONTINUE;
}

EbDaemonBeat *
eb_daemon_beat_new(void)
{
    EbDaemonBeat *self = g_new0(EbDaemonBeat, 1);

    self->source = g_timeout_source_new(EB_DAEMON_BEAT_MS);
    g_source_set_callback(self->source, beat, self, NULL);
    g_source_attach(self->source, NULL);
    eb_notify_status("starting");
    return self;
}

void
eb_daemon_beat_free(EbDaemonBeat *self)
{
    eb_clear_source(&self->source);
    g_free(self->told);
    g_free(self);
}

void
eb_daemon_beat_ready(EbDaemonBeat *self, EbSessionManager *manager)
{
    self->manager = manager;
    eb_notify_ready();
    tell(self);
}

void
eb_daemon_beat_stopping(EbDaemonBeat *self)
{
    self->manager = NULL;
    self->extended_ms = 0;
    eb_notify_stopping();
    eb_notify_status("draining");
}
