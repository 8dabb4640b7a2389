/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/control/eb-control.h"

G_BEGIN_DECLS

/** EB_CONTROL_MAX_THREADS: threads with a client at one time. */
#define EB_CONTROL_MAX_THREADS 256

/**
 * EbControlTransport: clients of the control socket as a chat transport named "control". A prompt opens a thread, or
 * continues one; what is said in a thread goes to the client that prompted last, and to nobody when it left: the thread,
 * its session and the session's record go on without it. A question without a client is refused.
 */
#define EB_TYPE_CONTROL_TRANSPORT (eb_control_transport_get_type())
G_DECLARE_FINAL_TYPE(EbControlTransport, eb_control_transport, EB, CONTROL_TRANSPORT, GObject)

EbControlTransport *eb_control_transport_new(void);
/**
 * eb_control_transport_prompt: emits the message.
 * @thread: (nullable): continue this one; NULL: a new one
 * @params: text, and project, agent, model where given
 */
gboolean eb_control_transport_prompt(EbControlTransport *self, EbJsonrpc *peer, const char *thread, JsonObject *params,
                                     GError **error);
/** eb_control_transport_interrupt: FALSE when @peer has nothing in @thread (nullable: any of its threads). */
gboolean eb_control_transport_interrupt(EbControlTransport *self, EbJsonrpc *peer, const char *thread, guint count);
/** eb_control_transport_ended: tells the client of @thread (nullable) that the turn, or its start, is over. */
void eb_control_transport_ended(EbControlTransport *self, const char *thread, const char *session,
                                const char *stop_reason, const GError *error);
/** eb_control_transport_forget: @peer left. */
void eb_control_transport_forget(EbControlTransport *self, EbJsonrpc *peer);

G_END_DECLS
