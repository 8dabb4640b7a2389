/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-ask.h"
#include "discord-gateway.h"
#include "discord-interactions.h"
#include "discord-message.h"
#include "discord-reactions.h"
#include "discord-transport.h"
#include "discord-view.h"

G_BEGIN_DECLS

/* Between the files of DiscordTransport. */

struct _DiscordTransport {
    GObject parent_instance;
    const DiscordConfig *config;
    char *state_path; /* (nullable) */
    EbSecret *token;  /* (nullable), and all below it up to the table of views: before the start */
    DiscordSite *site;
    DiscordRest *rest;
    DiscordGateway *gateway;
    DiscordReactions *reactions;
    DiscordAsk *ask;
    DiscordInteractions *interactions;
    GHashTable *views; /* (element-type utf8 DiscordView) */
    GHashTable *gone;  /* (element-type utf8 utf8): threads that cannot be written to -> why */
    DiscordThreads *threads;
    GHashTable *unknown;       /* (element-type utf8 GQueue): places that are being asked about -> events that wait */
    GHashTable *last_edits;    /* (element-type utf8 utf8): message -> edited_timestamp that was told */
    GPtrArray *opening;        /* (element-type GTask): threads that are being opened, not owned */
    GCancellable *cancellable; /* of everything that is nobody else's */

    char *user_id;        /* (nullable): of the bot, known after the start-up check or READY */
    char *application_id; /* (nullable) */
    char *guild_id;       /* (nullable) */
    gboolean checked;     /* the start-up check has passed */
    gboolean checking;
    gboolean check_again;  /* something changed while it ran */
    gboolean channel_gone; /* Discord told that the channel is deleted, or hidden */
    char *amiss;           /* (nullable): what the check says is not as needed */
    guint check_failures;  /* in a row, for the back-off */
    GSource *check_timer;  /* (nullable) */

    GTask *starting;      /* (nullable) */
    GSource *start_timer; /* (nullable) */
    guint start_ms;
    gboolean up;        /* the gateway is */
    char *guild_absent; /* (nullable): an outage of the server, or we were removed */
    char *down_why;     /* (nullable): why the gateway is not up */
    gboolean failed;
    gboolean stopping;
    guint empty_messages; /* in a row, without one that had a text */

    const EbChatCommand *commands;
    gsize n_commands;
    gboolean commands_offered;
    gboolean attached;
    GSource *attach_idle; /* (nullable): somebody listens from its run on */
    GQueue held;          /* (element-type DiscordEvent): for whoever listens later */
    gboolean held_lost;
};

/* --- discord-transport.c --- */

/** discord_transport_place: (transfer none): the channel or thread that the core calls @thread */
const char *discord_transport_place(DiscordTransport *self, const char *thread);
/** discord_transport_set_elsewhere: EB_ERROR_NOT_FOUND "discord.thread-elsewhere": it is none that is served. */
void discord_transport_set_elsewhere(DiscordTransport *self, const char *thread, GError **error);
/** discord_transport_view: (transfer none) (nullable): NULL with @error */
DiscordView *discord_transport_view(DiscordTransport *self, const char *thread, GError **error);

/* --- discord-transport-link.c --- */

/** discord_transport_fail: @error: (transfer full): nothing works any more before somebody changes something. */
void discord_transport_fail(DiscordTransport *self, GError *error);
/** discord_transport_check_soon: something changed that may be part of what we need. */
void discord_transport_check_soon(DiscordTransport *self, guint delay_ms);
/** discord_transport_set_guild_absent: @why: (nullable): NULL: it is there again */
void discord_transport_set_guild_absent(DiscordTransport *self, const char *why);
/** discord_transport_set_identity: what is not NULL is taken over. */
void discord_transport_set_identity(DiscordTransport *self, const char *user_id, const char *application_id,
                                    const char *guild_id);
/** discord_transport_offer_commands: once it is known which, and where. */
void discord_transport_offer_commands(DiscordTransport *self);
/** discord_transport_close_rest: nothing is sent any more. */
void discord_transport_close_rest(DiscordTransport *self);
/** discord_clear_source: ends @source and forgets it. */
void discord_clear_source(GSource **source);

/* --- discord-transport-signals.c: what the core hears; it waits until somebody listens --- */

void discord_transport_emit_message(DiscordTransport *self, const char *signal, EbChatMessage *message);
/** discord_transport_emit_texts: @signal: with two strings; @first: (nullable) */
void discord_transport_emit_texts(DiscordTransport *self, const char *signal, const char *first, const char *second);
void discord_transport_emit_connection(DiscordTransport *self, gboolean up, const char *detail);
void discord_transport_emit_failed(DiscordTransport *self, const GError *error);
/** discord_transport_release: somebody listens now. */
void discord_transport_release(DiscordTransport *self);
void discord_transport_clear_held(DiscordTransport *self);

/* --- discord-transport-events.c --- */

/** discord_transport_handle: one event of the gateway. */
void discord_transport_handle(DiscordTransport *self, const char *type, JsonObject *data);
/** discord_transport_handles: FALSE: events of @type are nothing to us. */
gboolean discord_transport_handles(const char *type);
DiscordListener discord_transport_listener(DiscordTransport *self);
/** discord_transport_note_gone: a thread is archived, deleted or lost. */
void discord_transport_note_gone(DiscordTransport *self, const char *thread, const char *state);
/** discord_transport_lose_threads: all of them are. */
void discord_transport_lose_threads(DiscordTransport *self, const char *state);

/* --- discord-transport-filter.c --- */

/** discord_transport_wants: a DiscordGatewayFilter with the transport as its data. */
gboolean discord_transport_wants(const DiscordGatewayFrame *frame, const char *text, gpointer user_data);

/* --- discord-transport-posts.c --- */

void discord_transport_post_async(EbChatTransport *transport, EbChatPost *post, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
void discord_transport_ask_async(EbChatTransport *transport, EbChatQuestion *question, guint timeout_ms,
                                 GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
char *discord_transport_ask_finish(EbChatTransport *transport, GAsyncResult *result, char **answered_by,
                                   GError **error);
void discord_transport_react_async(EbChatTransport *transport, const char *thread, const char *message_id,
                                   const char *reaction, GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);

/* --- discord-transport-threads.c --- */

void discord_transport_open_thread_async(EbChatTransport *transport, const char *message_id, const char *title,
                                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
void discord_transport_close_thread_async(EbChatTransport *transport, const char *thread, GCancellable *cancellable,
                                          GAsyncReadyCallback callback, gpointer user_data);
/** discord_transport_tell_limit: threads cannot be made for @seconds: whoever waits for one is told. */
void discord_transport_tell_limit(DiscordTransport *self, guint seconds);

/* --- discord-transport-history.c --- */

void discord_transport_read_back_async(EbChatTransport *transport, const char *thread, const char *after_id, guint max,
                                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
void discord_transport_fetch_async(EbChatTransport *transport, const EbChatAttachment *attachment, gsize max_bytes,
                                   GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);

G_END_DECLS
