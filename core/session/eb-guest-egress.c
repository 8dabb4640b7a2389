/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-guest-egress.h"

typedef struct {
    EbEgressLog *log;
    char *session;
} Listener;

static void
listener_free(gpointer data, GClosure *closure)
{
    Listener *self = data;

    g_object_unref(self->log);
    g_free(self->session);
    g_free(self);
}

static Listener *
listener_new(const EbGuest *guest)
{
    Listener *self = g_new0(Listener, 1);

    self->log = g_object_ref(guest->parts->egress);
    self->session = g_strdup(guest->id);
    return self;
}

static void
on_audit(GObject *broker, JsonObject *row, gpointer user_data)
{
    Listener *self = user_data;

    eb_egress_log_add(self->log, eb_egress_row_new(self->session, row));
}

static void
on_died(GObject *broker, gboolean restarted, const char *why, gpointer user_data)
{
    Listener *self = user_data;

    eb_egress_log_note_death(self->log, self->session);
}

void
eb_guest_listen_egress(EbGuest *self)
{
    if (!EB_IS_BROKER_CTL(self->broker) || self->parts->egress == NULL)
        return;
    g_signal_connect_data(self->broker, "audit", G_CALLBACK(on_audit), listener_new(self), listener_free, 0);
    g_signal_connect_data(self->broker, "died", G_CALLBACK(on_died), listener_new(self), listener_free, 0);
}
