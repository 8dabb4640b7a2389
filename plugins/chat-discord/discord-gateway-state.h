/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-gateway-frame.h"
#include "discord-gateway-heart.h"
#include "discord-gateway-info.h"
#include "discord-gateway-saved.h"
#include "discord-site.h"

G_BEGIN_DECLS

/* Times of the gateway, milliseconds. Discord documents none of the first four; those of its own client are 60 s for
 * HELLO and 15 s for READY. */
#define DISCORD_GATEWAY_ASK_MS 45000
#define DISCORD_GATEWAY_CONNECT_MS 30000
#define DISCORD_GATEWAY_HELLO_MS 60000
#define DISCORD_GATEWAY_READY_MS 15000
/** DISCORD_GATEWAY_RESUMED_MS: without an event of the replay or its end. */
#define DISCORD_GATEWAY_RESUMED_MS 60000
/** DISCORD_GATEWAY_STABLE_MS: how long a session must have held for the failures before it to be forgotten. */
#define DISCORD_GATEWAY_STABLE_MS 30000
/** DISCORD_GATEWAY_SESSION_MS: a session is not tried again when the connection was lost that long ago. */
#define DISCORD_GATEWAY_SESSION_MS (15 * 60 * 1000)
/** DISCORD_GATEWAY_RESUMES_MAX: RESUMEs in a row that came to nothing; then IDENTIFY. */
#define DISCORD_GATEWAY_RESUMES_MAX 3
/** DISCORD_GATEWAY_INFO_MS: an answer of GET /gateway/bot older than this is asked for anew before an IDENTIFY. */
#define DISCORD_GATEWAY_INFO_MS (10 * 60 * 1000)

typedef enum {
    DISCORD_GATEWAY_IDLE,
    DISCORD_GATEWAY_WAITING,     /* for the time to try again */
    DISCORD_GATEWAY_ASKING,      /* GET /gateway/bot is on its way */
    DISCORD_GATEWAY_CONNECTING,  /* the websocket is being opened */
    DISCORD_GATEWAY_GREETING,    /* it is open, HELLO is awaited */
    DISCORD_GATEWAY_SAVING,      /* the IDENTIFY is being put on record before it is sent */
    DISCORD_GATEWAY_IDENTIFYING, /* READY is awaited */
    DISCORD_GATEWAY_RESUMING,    /* RESUMED is awaited, events come */
    DISCORD_GATEWAY_UP,
    DISCORD_GATEWAY_FAILED,
    DISCORD_GATEWAY_STOPPED,
} DiscordGatewayPhase;

/** DiscordGatewayDo: what the shell is told to do. */
typedef enum {
    DISCORD_GATEWAY_DO_NOTHING,
    DISCORD_GATEWAY_DO_ASK,       /* GET /gateway/bot; then told() or untold() */
    DISCORD_GATEWAY_DO_CONNECT,   /* text: URL; then connected() or closed() */
    DISCORD_GATEWAY_DO_CLOSE,     /* code; the connection, or the try for one, is not heard of any more */
    DISCORD_GATEWAY_DO_SAVE,      /* then saved() */
    DISCORD_GATEWAY_DO_HEARTBEAT, /* seq; -1: null */
    DISCORD_GATEWAY_DO_IDENTIFY,
    DISCORD_GATEWAY_DO_RESUME, /* text: session id; seq */
    DISCORD_GATEWAY_DO_DOWN,   /* text: why */
    DISCORD_GATEWAY_DO_LOG,    /* level, text */
    DISCORD_GATEWAY_DO_FAIL,   /* error */
} DiscordGatewayDo;

typedef struct {
    DiscordGatewayDo what;
    guint code;
    gint64 seq;
    GLogLevelFlags level;
    char *text;    /* (nullable) */
    GError *error; /* (nullable) */
} DiscordGatewayAction;

void discord_gateway_action_clear(DiscordGatewayAction *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(DiscordGatewayAction, discord_gateway_action_clear)

/** DiscordGatewayVerdict: what becomes of a payload. */
typedef enum {
    DISCORD_GATEWAY_NO_EVENT, /* nothing to tell anybody */
    DISCORD_GATEWAY_EVENT,
    DISCORD_GATEWAY_READY,
    DISCORD_GATEWAY_RESUMED,
} DiscordGatewayVerdict;

/**
 * DiscordGatewayState: what to do when with the connection to the gateway, without doing it: no clock, no timer, no
 * socket, no file. Something that happens goes in by a call; afterwards discord_gateway_state_next() gives what is to be
 * done, and discord_gateway_state_get_due() when discord_gateway_state_tick() is to be called. What comes at a time when
 * it cannot matter any more is ignored.
 */
typedef struct _DiscordGatewayState DiscordGatewayState;

/** discord_gateway_state_new: (transfer full): @site: (transfer none): outlives it; @seed: of the jitter */
DiscordGatewayState *discord_gateway_state_new(const DiscordSite *site, guint intents, guint32 seed);
void discord_gateway_state_free(DiscordGatewayState *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordGatewayState, discord_gateway_state_free)

/** discord_gateway_state_load: takes what a file holds, before start(). FALSE = none of it is ours. */
gboolean discord_gateway_state_load(DiscordGatewayState *self, const char *text, gsize length, DiscordGatewayClock now);
/** discord_gateway_state_write: (transfer full): what the file is to hold now. */
char *discord_gateway_state_write(DiscordGatewayState *self, DiscordGatewayClock now);

void discord_gateway_state_start(DiscordGatewayState *self, DiscordGatewayClock now);
void discord_gateway_state_stop(DiscordGatewayState *self, DiscordGatewayClock now);
void discord_gateway_state_told(DiscordGatewayState *self, const DiscordGatewayInfo *info, DiscordGatewayClock now);
void discord_gateway_state_untold(DiscordGatewayState *self, const GError *error, DiscordGatewayClock now);
void discord_gateway_state_connected(DiscordGatewayState *self, DiscordGatewayClock now);
/** discord_gateway_state_closed: @code: 0 = none came; @why: (nullable): more words for the log, already escaped */
void discord_gateway_state_closed(DiscordGatewayState *self, guint code, const char *why, DiscordGatewayClock now);
/** discord_gateway_state_receive: a payload came; @frame: (out): what it is, when the verdict is not NO_EVENT */
DiscordGatewayVerdict discord_gateway_state_receive(DiscordGatewayState *self, const char *text, gsize length,
                                                    DiscordGatewayFrame *frame, DiscordGatewayClock now);
void discord_gateway_state_saved(DiscordGatewayState *self, DiscordGatewayClock now);
void discord_gateway_state_tick(DiscordGatewayState *self, DiscordGatewayClock now);
/**
 * discord_gateway_state_full: more events wait to be handled than there is room for: the connection is closed, and
 * resumed after discord_gateway_state_drained(); the server keeps what is missed meanwhile.
 */
void discord_gateway_state_full(DiscordGatewayState *self, DiscordGatewayClock now);
void discord_gateway_state_drained(DiscordGatewayState *self, DiscordGatewayClock now);

/** discord_gateway_state_next: (out): the next thing to do; FALSE = nothing left. */
gboolean discord_gateway_state_next(DiscordGatewayState *self, DiscordGatewayAction *action);
/** discord_gateway_state_get_due: monotonic ms; G_MAXINT64 = nothing is awaited. */
gint64 discord_gateway_state_get_due(const DiscordGatewayState *self);
DiscordGatewayPhase discord_gateway_state_get_phase(const DiscordGatewayState *self);

/** discord_gateway_state_get_epoch: number of the session that events belong to which are received now. */
guint discord_gateway_state_get_epoch(const DiscordGatewayState *self);
/**
 * discord_gateway_state_handled: the event @seq of session @epoch was handled: a service that is started again need not
 * get it once more. TRUE = the file is out of date.
 */
gboolean discord_gateway_state_handled(DiscordGatewayState *self, guint epoch, gint64 seq);

G_END_DECLS
