/* SPDX-License-Identifier: MIT */
#include "discord-gateway-close.h"

typedef struct {
    guint code;
    DiscordGatewayClose class;
    const char *name;
    EbErrorCode error;
    const char *reason; /* (nullable): of those that give up */
    const char *remedy; /* (nullable) */
} Code;

static const Code codes[] = {
    {0, DISCORD_GATEWAY_CLOSE_RESUME, "the connection broke", 0, NULL, NULL},
    {1000, DISCORD_GATEWAY_CLOSE_IDENTIFY, "session ended by Discord", 0, NULL, NULL},
    {1001, DISCORD_GATEWAY_CLOSE_RESUME, "Discord's server went away", 0, NULL, NULL},
    {1005, DISCORD_GATEWAY_CLOSE_RESUME, "closed without a code", 0, NULL, NULL},
    {1006, DISCORD_GATEWAY_CLOSE_RESUME, "the connection broke", 0, NULL, NULL},
    {4000, DISCORD_GATEWAY_CLOSE_RESUME, "unknown error at Discord", 0, NULL, NULL},
    {4001, DISCORD_GATEWAY_CLOSE_FAULT, "we sent an unknown opcode", 0, NULL, NULL},
    {4002, DISCORD_GATEWAY_CLOSE_FAULT, "we sent what could not be decoded", 0, NULL, NULL},
    {4003, DISCORD_GATEWAY_CLOSE_IDENTIFY, "not authenticated", 0, NULL, NULL},
    {4004, DISCORD_GATEWAY_CLOSE_GIVE_UP, "token refused", EB_ERROR_UNAUTHENTICATED, "discord.unauthorized",
     "Discord does not accept the bot token: make a new one in the developer portal (Bot, Reset Token), store it with "
     "`errand-box creds set chat-token` and restart the service"},
    {4005, DISCORD_GATEWAY_CLOSE_IDENTIFY, "already authenticated", 0, NULL, NULL},
    {4007, DISCORD_GATEWAY_CLOSE_IDENTIFY, "invalid sequence", 0, NULL, NULL},
    {4008, DISCORD_GATEWAY_CLOSE_LIMITED, "we sent too much", 0, NULL, NULL},
    {4009, DISCORD_GATEWAY_CLOSE_IDENTIFY, "session timed out", 0, NULL, NULL},
    {4010, DISCORD_GATEWAY_CLOSE_GIVE_UP, "invalid shard", EB_ERROR_CONFIG, "discord.shard",
     "Discord refuses the connection as an invalid shard (4010): use a bot of its own for this service, or update "
     "errand-box"},
    {4011, DISCORD_GATEWAY_CLOSE_GIVE_UP, "sharding required", EB_ERROR_CONFIG, "discord.sharding",
     "Discord wants this bot split into shards (4011), which it does for bots in about 2500 servers: use a bot of its "
     "own for this service"},
    {4012, DISCORD_GATEWAY_CLOSE_GIVE_UP, "invalid API version", EB_ERROR_CONFIG, "discord.version",
     "Discord no longer serves version 10 of its gateway (4012): update errand-box"},
    {4013, DISCORD_GATEWAY_CLOSE_GIVE_UP, "invalid intents", EB_ERROR_CONFIG, "discord.intents",
     "Discord does not know one of the intents that were asked for (4013): update errand-box"},
    {4014, DISCORD_GATEWAY_CLOSE_GIVE_UP, "disallowed intents", EB_ERROR_CONFIG, "discord.message-content",
     "Discord does not allow this bot the Message Content intent: turn it on in the developer portal "
     "(https://discord.com/developers/applications: your application, Bot, Message Content Intent) and restart the "
     "service"},
};

static const Code *
code_find(guint code)
{
    for (gsize i = 0; i < G_N_ELEMENTS(codes); i++) {
        if (codes[i].code == code)
            return &codes[i];
    }
    return NULL;
}

DiscordGatewayClose
discord_gateway_close_class(guint code)
{
    const Code *known = code_find(code);
    return known != NULL ? known->class : DISCORD_GATEWAY_CLOSE_RESUME;
}

const char *
discord_gateway_close_name(guint code)
{
    const Code *known = code_find(code);
    return known != NULL ? known->name : "closed with a code that is not known";
}

GError *
discord_gateway_close_error(guint code)
{
    const Code *known = code_find(code);
    g_return_val_if_fail(known != NULL && known->remedy != NULL, NULL);
    return eb_error_new(known->error, known->reason, "%s", known->remedy);
}
