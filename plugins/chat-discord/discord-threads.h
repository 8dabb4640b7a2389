/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** DISCORD_THREADS_MAX: places a table remembers; the one not heard of for longest makes room. */
#define DISCORD_THREADS_MAX 8192

/** DiscordPlace: where a message was said. */
typedef enum {
    DISCORD_PLACE_UNKNOWN = 0, /* never heard of: only Discord can tell */
    DISCORD_PLACE_CHANNEL = 1, /* the channel that is served */
    DISCORD_PLACE_THREAD = 2,  /* a thread of that channel */
    DISCORD_PLACE_OTHER = 3,   /* another channel, or a thread of another one */
} DiscordPlace;

/**
 * DiscordThreads: which channels and threads there are, by what Discord told. A message names the thread it is in and not
 * that thread's channel, so the threads of the channel have to be known by id. Pure.
 */
typedef struct _DiscordThreads DiscordThreads;

DiscordThreads *discord_threads_new(const char *channel_id);
void discord_threads_free(DiscordThreads *self);
/** discord_threads_place: @id: (nullable) */
DiscordPlace discord_threads_place(DiscordThreads *self, const char *id);
/**
 * discord_threads_note: a channel object: of THREAD_CREATE, THREAD_UPDATE, GUILD_CREATE, or from the REST API.
 *
 * Returns: (nullable): what became of a thread of the channel that was known before: "open" or "archived"
 */
const char *discord_threads_note(DiscordThreads *self, JsonObject *channel);
/** discord_threads_note_all: @channels: (nullable): an array of channel objects, at most DISCORD_THREADS_MAX of it read */
void discord_threads_note_all(DiscordThreads *self, JsonArray *channels);
/** discord_threads_claim: @id is a thread of the channel: it was just made. */
void discord_threads_claim(DiscordThreads *self, const char *id);
/** discord_threads_refuse: @id is none of ours, or may not be seen: it is not asked for again. */
void discord_threads_refuse(DiscordThreads *self, const char *id);
/** discord_threads_forget_refused: what could not be seen is unknown again: it may be seen now. */
void discord_threads_forget_refused(DiscordThreads *self);
/** discord_threads_remove: TRUE: it was a thread of the channel. */
gboolean discord_threads_remove(DiscordThreads *self, const char *id);
/** discord_threads_list: (transfer full) (element-type utf8): threads of the channel */
GPtrArray *discord_threads_list(DiscordThreads *self);
guint discord_threads_get_size(DiscordThreads *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordThreads, discord_threads_free)

G_END_DECLS
