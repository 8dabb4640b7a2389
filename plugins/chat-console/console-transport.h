/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** CONSOLE_MAX_QUESTIONS: questions open at one time; a further one is refused. */
#define CONSOLE_MAX_QUESTIONS 64

/** ConsolePolicy: who answers permission questions. */
typedef enum {
    CONSOLE_ASK = 0,
    CONSOLE_ALLOW,
    CONSOLE_REJECT,
} ConsolePolicy;

/** console_policy_from_string: "ask", "allow", "reject" */
gboolean console_policy_from_string(const char *text, ConsolePolicy *policy);

/** ConsoleSettings: how the terminal is used. */
typedef struct {
    gboolean json; /* one JSON event a line on stdout */
    gboolean color;
    gboolean interactive; /* somebody sits at the terminal and can answer */
    ConsolePolicy policy;
    int input; /* descriptor answers are read from */
} ConsoleSettings;

/**
 * EbChatConsoleTransport: one terminal, one thread ("main"). What is to be done is the command's operand, so this
 * transport says nothing by itself; it shows posts and asks questions.
 *
 * Properties, written by the program that owns the terminal before the first post: "events" (boolean): one JSON event a
 * line on stdout; "permissions" (string): "ask", "allow" or "reject".
 */
#define EB_TYPE_CHAT_CONSOLE_TRANSPORT (eb_chat_console_transport_get_type())
G_DECLARE_FINAL_TYPE(EbChatConsoleTransport, eb_chat_console_transport, EB, CHAT_CONSOLE_TRANSPORT, GObject)

EbChatConsoleTransport *eb_chat_console_transport_new(const ConsoleSettings *settings);
/** eb_chat_console_transport_flush: @task: (transfer full): returns TRUE when everything is written. */
void eb_chat_console_transport_flush(EbChatConsoleTransport *self, GTask *task);

G_END_DECLS
