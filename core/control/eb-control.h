/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-jsonrpc.h"

G_BEGIN_DECLS

/**
 * The control socket: how the command line talks to a running service. JSON-RPC 2.0, one object a line, over
 * <state_dir>/run/control.sock. Root and the service's account may connect, nobody else.
 *
 * methods:  status {} . plugins.list {} . sessions.list {} . sessions.show {id} . sessions.logs {id} .
 *           sessions.egress {id} .
 *           sessions.stop {id} . sessions.remove {id} . sessions.pin {id} . sessions.unpin {id} . prompt {text, project?, agent?, model?, session?} .
 *           interrupt {thread, count} . maint.gc {plan?, free?} . health.check {} (runs the doctor now; answers as "health" of status) .
 *           watchdog.report {target, state: ok|wedged|down, detail, seconds} (whether the backend answers)
 * from the service, to the client that sent a prompt:
 *           post {thread, kind, text, key?, append, final, data?} (notification)
 *           ended {thread, session?, stop_reason?, error?, code?} (notification): the turn, or its start, is over
 *           ask {thread, text, choices[{id, label, kind?}], data?, timeout_ms} (call) -> {choice}
 * Errors carry the message as it is for people, and an EbErrorCode as code (positive).
 */

/** eb_control_path: (transfer full): the socket of the service with that state directory. */
char *eb_control_path(const char *state_dir);

/** EB_CONTROL_MAX_TEXT: bytes of text in one post; longer ones are cut and say so. */
#define EB_CONTROL_MAX_TEXT (256 * 1024)
/** EB_CONTROL_MAX_CLIENTS: connections at one time; further ones are closed at once. */
#define EB_CONTROL_MAX_CLIENTS 32
/** EB_CONTROL_CONNECT_MS: what a place in the service's queue of connections may take; it is free in moments, or never. */
#define EB_CONTROL_CONNECT_MS 5000
/** EB_CONTROL_DEADLINE_MS: what an answer may take, unless the method says otherwise. */
#define EB_CONTROL_DEADLINE_MS 30000

/** eb_control_object: (transfer full): a node that owns @object. @object: (transfer full) */
JsonNode *eb_control_object(JsonObject *object);
/** eb_control_set_text: sets @member when @text is not NULL. */
void eb_control_set_text(JsonObject *object, const char *member, const char *text);

/** eb_control_post_to_json: (transfer full): @post as the parameters of "post". */
JsonNode *eb_control_post_to_json(EbChatPost *post);
/** eb_control_post_from_json: (transfer full) (nullable): NULL when it is none. */
EbChatPost *eb_control_post_from_json(JsonObject *object);
/** eb_control_question_to_json: (transfer full) */
JsonNode *eb_control_question_to_json(EbChatQuestion *question, guint timeout_ms);
/** eb_control_question_from_json: (transfer full) (nullable): @timeout_ms: (out) */
EbChatQuestion *eb_control_question_from_json(JsonObject *object, guint *timeout_ms);

G_END_DECLS
