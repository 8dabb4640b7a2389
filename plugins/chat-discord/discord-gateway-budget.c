/* SPDX-License-Identifier: MIT */
#include "discord-gateway-budget.h"

#include <string.h>

#define BACKOFF_FIRST 1000
#define BACKOFF_DOUBLINGS 7

static const struct {
    guint most;
    gint64 window;
} windows[] = {
    {1, 5500}, {6, 60 * 1000}, {20, 10 * 60 * 1000}, {60, 60 * 60 * 1000}, {DISCORD_IDENTIFY_KEPT, 24 * 60 * 60 * 1000},
};

gint64
discord_identify_budget_wait(const DiscordIdentifyBudget *self, gint64 now)
{
    gint64 wait = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(windows); i++) {
        if (self->n >= windows[i].most)
            wait = MAX(wait, self->at[self->n - windows[i].most] + windows[i].window - now);
    }
    return wait;
}

void
discord_identify_budget_note(DiscordIdentifyBudget *self, gint64 now)
{
    if (self->n == DISCORD_IDENTIFY_KEPT) {
        memmove(self->at, self->at + 1, (DISCORD_IDENTIFY_KEPT - 1) * sizeof self->at[0]);
        self->n--;
    }
    self->at[self->n++] = now;
}

gint64
discord_sends_wait(const DiscordSends *self, guint most, gint64 now)
{
    g_return_val_if_fail(most >= 1 && most <= DISCORD_SENDS_MAX, 0);
    if (self->n < most)
        return 0;
    return MAX(0, self->at[(self->n - most) % DISCORD_SENDS_MAX] + DISCORD_SENDS_WINDOW - now);
}

void
discord_sends_note(DiscordSends *self, gint64 now)
{
    self->at[self->n++ % DISCORD_SENDS_MAX] = now;
}

gint64
discord_backoff(guint failures, GRand *random)
{
    gint64 most = MIN(BACKOFF_FIRST << MIN(failures, BACKOFF_DOUBLINGS), DISCORD_BACKOFF_MAX);
    return g_rand_int_range(random, 0, (gint32)most + 1);
}
