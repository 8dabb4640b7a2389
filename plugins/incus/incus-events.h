/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/**
 * IncusEvents: follows incusd's lifecycle events of one project over a websocket, for ever, connecting again with
 * growing pauses. incusd's order of events is not reliable and events are lost while the connection is down, so they
 * are hints; the state of an instance is asked for, not concluded.
 */
#define INCUS_TYPE_EVENTS (incus_events_get_type())
G_DECLARE_FINAL_TYPE(IncusEvents, incus_events, INCUS, EVENTS, GObject)

/** IncusEventFunc: @name: (nullable): of the instance, NULL for BACKEND_LOST and BACKEND_BACK. */
typedef void (*IncusEventFunc)(EbInstanceEvent event, const char *name, gpointer user_data);

/** incus_events_new: (transfer full) */
IncusEvents *incus_events_new(IncusClient *client, IncusEventFunc func, gpointer user_data);
void incus_events_start(IncusEvents *self);
/** incus_events_stop: no call of the function after this. */
void incus_events_stop(IncusEvents *self);
/** incus_events_get_connected: TRUE while the stream is up. */
gboolean incus_events_get_connected(IncusEvents *self);

/**
 * incus_event_parse: reads one message.
 * @event, @name: (out): @name (transfer full)
 *
 * Returns: FALSE for everything that is no event of an instance we care about.
 */
gboolean incus_event_parse(const char *text, gsize length, EbInstanceEvent *event, char **name);

G_END_DECLS
