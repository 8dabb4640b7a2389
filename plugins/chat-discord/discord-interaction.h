/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_INTERACTION_MAX_TOKEN, _MAX_OPTIONS, _MAX_TEXT: bytes of a token (seen: 200 to 600); options of one command
 *  (Discord: 25); bytes of a value (Discord: 6000 characters). */
#define DISCORD_INTERACTION_MAX_TOKEN 2048
#define DISCORD_INTERACTION_MAX_OPTIONS 25
#define DISCORD_INTERACTION_MAX_TEXT (24 * 1024)

/** DiscordInteractionKind: what somebody did. */
typedef enum {
    DISCORD_INTERACTION_OTHER = 0,   /* nothing we offer: to be told so */
    DISCORD_INTERACTION_COMMAND = 1, /* gave a slash command */
    DISCORD_INTERACTION_PRESS = 2,   /* pressed a button of a question */
} DiscordInteractionKind;

/** DiscordInteraction: INTERACTION_CREATE, checked. */
typedef struct {
    DiscordInteractionKind kind;
    gboolean component; /* by a button or a list of a message, not by a command */
    char *id;           /* a snowflake */
    char *token;        /* lets whoever has it answer for 15 minutes: never logged */
    char *application_id;
    char *channel_id; /* (nullable) */
    char *user_id;
    char *user_name;     /* for display */
    char *command;       /* (nullable): name of a command */
    JsonObject *options; /* (nullable) (owned): name: text, of a command */
    char *question_id;   /* (nullable): of a button "q:ID:N" */
    guint choice;        /* N, from 0 */
} DiscordInteraction;

/**
 * discord_interaction_read: (transfer full) (nullable): NULL when it lacks what is needed to answer it, or comes from
 * outside any guild. Pure.
 */
DiscordInteraction *discord_interaction_read(JsonObject *data);
void discord_interaction_free(DiscordInteraction *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordInteraction, discord_interaction_free)

G_END_DECLS
