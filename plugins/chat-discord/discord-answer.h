/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_ANSWER_MAX: bytes of an answer's body that are read; 100 full messages with embeds stay below it. */
#define DISCORD_ANSWER_MAX (8 * 1024 * 1024)
/** DISCORD_ANSWER_MAX_WAIT_US: longest wait that an answer can ask for; anything above is taken for this. */
#define DISCORD_ANSWER_MAX_WAIT_US (3600 * (gint64)G_USEC_PER_SEC)

/** DiscordScope: whom a 429 is about (X-RateLimit-Scope). */
typedef enum {
    DISCORD_SCOPE_NONE,
    DISCORD_SCOPE_USER,   /* this bot, on this route */
    DISCORD_SCOPE_GLOBAL, /* this bot, everywhere */
    DISCORD_SCOPE_SHARED, /* the resource, whoever asks; counts for no ban */
} DiscordScope;

/** DiscordAnswer: what an answer says besides its content. Times are microseconds, -1 = not said. */
typedef struct {
    guint status;
    JsonNode *node;        /* (nullable) (owned): the body when it is JSON; bodies may be HTML or empty at any status */
    gboolean empty;        /* no body at all */
    char *bucket;          /* (nullable): X-RateLimit-Bucket */
    gint64 remaining;      /* X-RateLimit-Remaining, -1 = not said */
    gint64 reset_after_us; /* X-RateLimit-Reset-After */
    gint64 retry_after_us; /* the larger of the header and the body's float */
    DiscordScope scope;
    gboolean edge; /* a 403 or 429 that does not come from the API but from what stands before it (Cloudflare) */
    guint code;    /* Discord's error number, 0 = none */
    char *text;    /* (nullable): what it says is wrong, one line, bounded, safe to show and log */
} DiscordAnswer;

/** discord_answer_parse: (transfer full): never fails. @headers: (nullable). Pure. */
DiscordAnswer *discord_answer_parse(guint status, SoupMessageHeaders *headers, const char *body, gsize length);
void discord_answer_free(DiscordAnswer *self);
/** discord_answer_error: (transfer full): what status and code mean, as discord-rest.h says; @what: "POST /channels/{c}" */
GError *discord_answer_error(const DiscordAnswer *self, const char *what);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordAnswer, discord_answer_free)

G_END_DECLS
