/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-outbox.h"

G_BEGIN_DECLS

/** DISCORD_ASK_MAX: questions that are open at once; further ones are refused: EB_ERROR_QUOTA "discord.questions". */
#define DISCORD_ASK_MAX 500
/** DISCORD_ASK_MAX_PARKED: presses that wait for their question; the oldest makes room and is told to be too late. */
#define DISCORD_ASK_MAX_PARKED 64
/** DISCORD_ASK_SETTLE_MS: how long after the start a button of a question nobody knows yet waits for that question. */
#define DISCORD_ASK_SETTLE_MS 20000

/** DiscordPressResult: what a press did. */
typedef enum {
    DISCORD_PRESS_TAKEN = 0,   /* it is the answer */
    DISCORD_PRESS_REFUSED = 1, /* this person may not answer; the question stays open */
    DISCORD_PRESS_CLOSED = 2,  /* answered, expired or unknown */
} DiscordPressResult;
typedef void (*DiscordPressed)(DiscordPressResult result, gpointer user_data);

/**
 * DiscordAsk: questions with buttons. The first press of somebody who may answer at that moment is the answer; the message
 * then shows it and has no buttons any more.
 *
 * Signal: "asked" (const char *question_id, const char *message_id): a question with an id of its own is shown.
 */
#define DISCORD_TYPE_ASK (discord_ask_get_type())
G_DECLARE_FINAL_TYPE(DiscordAsk, discord_ask, DISCORD, ASK, GObject)

DiscordAsk *discord_ask_new(void);
/** discord_ask_set_settle_ms: in place of DISCORD_ASK_SETTLE_MS, from now on. For tests. */
void discord_ask_set_settle_ms(DiscordAsk *self, guint ms);

/**
 * discord_ask_open_async: asks in the thread of @outbox, or takes up the message that asks when question->message_id is
 * set. Cancelled with question->outcome set, the message shows that; without, it stays as it is, to be taken up later.
 */
void discord_ask_open_async(DiscordAsk *self, DiscordOutbox *outbox, EbChatQuestion *question, guint timeout_ms,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** discord_ask_open_finish: (transfer full) (nullable): id of the choice; @answered_by: (out) (optional) */
char *discord_ask_open_finish(DiscordAsk *self, GAsyncResult *result, char **answered_by, GError **error);

/**
 * discord_ask_press: @user_id pressed button @choice of question @question_id; @pressed is called once, at once or, just
 * after the start, when the question is taken up or would have been.
 */
void discord_ask_press(DiscordAsk *self, const char *question_id, guint choice, const char *user_id,
                       DiscordPressed pressed, gpointer user_data);
guint discord_ask_get_open(DiscordAsk *self);

G_END_DECLS
