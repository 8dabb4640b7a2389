/* SPDX-License-Identifier: MIT */
#include "discord-gateway-heart.h"

void
discord_heart_stop(DiscordHeart *self)
{
    self->interval = 0;
    self->next = G_MAXINT64;
    self->acked = TRUE;
    self->graced = FALSE;
    self->sends.n = 0;
}

gboolean
discord_heart_hello(DiscordHeart *self, gint64 interval, GRand *random, gint64 now)
{
    if (interval <= 0)
        return FALSE;
    self->interval = CLAMP(interval, DISCORD_HEART_MIN, DISCORD_HEART_MAX);
    self->acked = TRUE;
    self->graced = FALSE;
    self->next = now + (gint64)((double)self->interval * g_rand_double(random));
    return TRUE;
}

void
discord_heart_ack(DiscordHeart *self)
{
    self->acked = TRUE;
}

DiscordHeartVerdict
discord_heart_tick(DiscordHeart *self, gint64 now)
{
    if (now < self->next)
        return DISCORD_HEART_REST;
    if (!self->acked && !self->graced && now - self->next > DISCORD_HEART_LATE) {
        self->graced = TRUE;
        self->next = now + DISCORD_HEART_GRACE;
        return DISCORD_HEART_REST;
    }
    if (!self->acked)
        return DISCORD_HEART_DEAD;
    self->graced = FALSE;
    gint64 wait = discord_sends_wait(&self->sends, DISCORD_SENDS_MAX, now);
    if (wait > 0) {
        self->next = now + wait;
        return DISCORD_HEART_REST;
    }
    discord_sends_note(&self->sends, now);
    self->acked = FALSE;
    self->next = now + self->interval;
    return DISCORD_HEART_BEAT;
}

gboolean
discord_heart_asked(DiscordHeart *self, gint64 now)
{
    /* Not taken as the beat that an answer is due for: its answer may not be there yet when the next regular one is. */
    if (self->interval == 0 || discord_sends_wait(&self->sends, DISCORD_SENDS_ASKED, now) > 0)
        return FALSE;
    discord_sends_note(&self->sends, now);
    return TRUE;
}
