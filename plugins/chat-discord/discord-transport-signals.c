/* SPDX-License-Identifier: MIT */
/* What the core hears of DiscordTransport. Events come as soon as the connection is there, and that may be before the core
   is ready to listen: until then they wait, in order. */
#include "discord-transport-private.h"

typedef struct {
    char *signal;
    EbChatMessage *message; /* (nullable): for signals with a message */
    char *first;            /* (nullable) */
    char *second;
    GError *error; /* (nullable): for "failed" */
    gboolean up;
    enum { KIND_MESSAGE, KIND_TEXTS, KIND_CONNECTION, KIND_FAILED } kind;
} DiscordEvent;

static void
event_free(gpointer data)
{
    DiscordEvent *event = data;

    g_clear_pointer(&event->message, eb_chat_message_unref);
    g_clear_error(&event->error);
    g_free(event->signal);
    g_free(event->first);
    g_free(event->second);
    g_free(event);
}

static void
emit(DiscordTransport *self, const DiscordEvent *event)
{
    switch (event->kind) {
    case KIND_MESSAGE:
        g_signal_emit_by_name(self, event->signal, event->message);
        break;
    case KIND_TEXTS:
        g_signal_emit_by_name(self, event->signal, event->first, event->second);
        break;
    case KIND_CONNECTION:
        g_signal_emit_by_name(self, event->signal, event->up, event->second);
        break;
    case KIND_FAILED:
        g_signal_emit_by_name(self, event->signal, event->error);
        break;
    }
}

/* @event: (transfer full) */
static void
tell(DiscordTransport *self, DiscordEvent *event)
{
    if (self->attached) {
        emit(self, event);
        event_free(event);
        return;
    }
    if (self->held.length >= DISCORD_TRANSPORT_MAX_HELD) {
        /* Whoever listens reads back first, and so finds the messages. */
        eb_warning("%u events came before anybody listened and are left out", self->held.length);
        discord_transport_clear_held(self);
        self->held_lost = TRUE;
    }
    g_queue_push_tail(&self->held, event);
}

static DiscordEvent *
event_new(const char *signal)
{
    DiscordEvent *event = g_new0(DiscordEvent, 1);

    event->signal = g_strdup(signal);
    return event;
}

void
discord_transport_emit_message(DiscordTransport *self, const char *signal, EbChatMessage *message)
{
    DiscordEvent *event = event_new(signal);

    event->kind = KIND_MESSAGE;
    event->message = eb_chat_message_ref(message);
    tell(self, event);
}

void
discord_transport_emit_texts(DiscordTransport *self, const char *signal, const char *first, const char *second)
{
    DiscordEvent *event = event_new(signal);

    event->kind = KIND_TEXTS;
    event->first = g_strdup(first);
    event->second = g_strdup(second);
    tell(self, event);
}

void
discord_transport_emit_connection(DiscordTransport *self, gboolean up, const char *detail)
{
    DiscordEvent *event = event_new("connection");

    event->kind = KIND_CONNECTION;
    event->up = up;
    event->second = g_strdup(detail);
    tell(self, event);
}

void
discord_transport_emit_failed(DiscordTransport *self, const GError *error)
{
    DiscordEvent *event = event_new("failed");

    event->kind = KIND_FAILED;
    event->error = g_error_copy(error);
    tell(self, event);
}

void
discord_transport_clear_held(DiscordTransport *self)
{
    DiscordEvent *event;

    while ((event = g_queue_pop_head(&self->held)) != NULL)
        event_free(event);
}

void
discord_transport_release(DiscordTransport *self)
{
    DiscordEvent *event;

    self->attached = TRUE;
    while ((event = g_queue_pop_head(&self->held)) != NULL) {
        emit(self, event);
        event_free(event);
    }
    if (self->held_lost && self->up)
        discord_transport_emit_connection(self, TRUE, "connected");
    self->held_lost = FALSE;
}
