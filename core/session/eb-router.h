/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/session/eb-session-manager-private.h"

G_BEGIN_DECLS

/** EB_ROUTER_MAX_HELD: messages of threads whose session is just ending; they go on when it has. */
#define EB_ROUTER_MAX_HELD 64
/** EB_ROUTER_MAX_ID_BYTES: of a message's id; what has a longer one is dropped. */
#define EB_ROUTER_MAX_ID_BYTES 200

/**
 * EbRouter: brings the messages of one transport to sessions. Who may say anything is checked first; then each is written
 * into the journal, a repeat is dropped, and only what stands there is acted on: a command is carried out; in a thread
 * with a live session it is a prompt; with one that can be continued, it continues that; else it opens a new one. What a
 * person has not seen done when the service died is taken up by the next run, what came meanwhile is read back, both in
 * order and once (docs/chat.md).
 */
#define EB_TYPE_ROUTER (eb_router_get_type())
G_DECLARE_FINAL_TYPE(EbRouter, eb_router, EB, ROUTER, GObject)

/** EB_ROUTER_MAIN_THREAD: the one thread of a transport without threads. */
#define EB_ROUTER_MAIN_THREAD "main"

/** eb_router_new: attaches to @transport. @manager: (transfer none): not held; it owns the router */
EbRouter *eb_router_new(EbSessionManager *manager, const char *name, EbChatTransport *transport);
const char *eb_router_get_name(EbRouter *self);
EbChatTransport *eb_router_get_transport(EbRouter *self);
/** eb_router_session_ended: held messages of @thread go on; @reason: eb_session_end_to_string() */
void eb_router_session_ended(EbRouter *self, const char *thread, const char *reason);
/** eb_router_close: takes no further messages. */
void eb_router_close(EbRouter *self);

G_END_DECLS
