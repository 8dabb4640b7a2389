/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway.h"
#include "discord-interactions.h"
#include "discord-standin.h"
#include "eb-test.h"

G_BEGIN_DECLS

#define RIG_THREAD_OTHER "100000000000000999"

/** Rig: the stand-in, and the parts of the plugin between a gateway and its buttons and commands. */
typedef struct {
    DiscordStandin *standin;
    DiscordSite *site;
    EbSecret *token;
    DiscordRest *rest;
    DiscordGateway *gateway;
    DiscordAsk *ask;
    DiscordInteractions *interactions;
    DiscordOutbox *outbox;        /* of the thread, or the channel */
    char *thread;                 /* (nullable): NULL = the channel */
    GPtrArray *actions;           /* (element-type EbChatMessage) */
    GPtrArray *asked;             /* (element-type utf8): "QUESTION MESSAGE" */
    GPtrArray *interactions_seen; /* (element-type JsonNode): every INTERACTION_CREATE */
    gboolean up;
    gboolean deaf; /* interactions are kept and not handled */
} Rig;

/** rig_new: @settle_ms: of the questions; @in_thread: asks and answers in a thread, else in the channel */
Rig *rig_new(guint settle_ms, gboolean in_thread);
void rig_free(Rig *self);
/** rig_restart: new objects for questions and interactions, as after a restart of the service. */
void rig_restart(Rig *self, guint settle_ms);
/** rig_hear: handles what came while the rig was deaf. */
void rig_hear(Rig *self);
/** rig_wait: runs until list @verb has @count items with @filters (a JSON object). */
void rig_wait(Rig *self, const char *verb, const char *filters, guint count);
/** rig_call: a call of the control interface with printf-style arguments; its answer is (transfer full). */
JsonObject *rig_call(Rig *self, const char *verb, const char *format, ...) G_GNUC_PRINTF(3, 4);
/** rig_count: items of list @verb with @filters. */
guint rig_count(Rig *self, const char *verb, const char *filters);
/** rig_press: @label: regular expression of the button, or its custom_id, which need not be there any more */
void rig_press(Rig *self, const char *message, const char *user, const char *label);
/** rig_message_text: (transfer full): content of @message as it is now. */
char *rig_message_text(Rig *self, const char *message);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Rig, rig_free)

G_END_DECLS
