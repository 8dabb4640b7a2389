/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_QUESTION_MAX_BUTTONS: 5 rows of 5; further choices are in the list alone and answered by their number. */
#define DISCORD_QUESTION_MAX_BUTTONS 25

/**
 * discord_question_to_message: (transfer full): body of the message that asks: text, what it is about as far as there is
 * room, the choices as a numbered list and as buttons. Pure.
 * @id: goes into the buttons
 */
JsonObject *discord_question_to_message(EbChatQuestion *question, const char *id);
/** discord_question_to_outcome: (transfer full): body of the edit that closes it: text, @outcome (safe Markdown), no
 *  buttons. Pure. */
JsonObject *discord_question_to_outcome(EbChatQuestion *question, const char *outcome);
/** discord_question_answer: (transfer full): outcome when @choice was chosen; @user_id: (nullable) */
char *discord_question_answer(const EbChatChoice *choice, const char *user_id);

/**
 * discord_question_parse_button: "q:ID:N", as discord_question_to_message() writes it.
 * @id: (out) (transfer full)
 */
gboolean discord_question_parse_button(const char *custom_id, char **id, guint *choice);

G_END_DECLS
