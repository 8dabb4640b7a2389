/* SPDX-License-Identifier: MIT */
#include "core/selftest/eb-selftest-plan.h"

#include <string.h>

/* Delays grow with the square of a random number: most kills come soon after a mark, where the next step begins. */
#define AT_ONCE_SHARE 3 /* one kill in so many of the later rounds is at the mark itself */

static const EbSelftestTarget targets[] = {
    {EB_SELFTEST_START, "start.plugins"},
    {EB_SELFTEST_START, "start.locked"},
    {EB_SELFTEST_START, "start.store"},
    {EB_SELFTEST_START, "start.guests"},
    {EB_SELFTEST_START, "start.rows"},
    {EB_SELFTEST_START, "start.disk"},
    {EB_SELFTEST_START, "start.swept"},
    {EB_SELFTEST_START, "start.control"},
    {EB_SELFTEST_START, "start.ready"},

    {EB_SELFTEST_PROMPT, "message.received"},
    {EB_SELFTEST_PROMPT, "message.journal"},
    {EB_SELFTEST_PROMPT, "message.thread"},
    {EB_SELFTEST_PROMPT, "message.given"},
    {EB_SELFTEST_PROMPT, "launch.check"},
    {EB_SELFTEST_PROMPT, "launch.credential"},
    {EB_SELFTEST_PROMPT, "launch.lock"},
    {EB_SELFTEST_PROMPT, "launch.record"},
    {EB_SELFTEST_PROMPT, "launch.directories"},
    {EB_SELFTEST_PROMPT, "launch.broker"},
    {EB_SELFTEST_PROMPT, "launch.guest"},
    {EB_SELFTEST_PROMPT, "guest.create"},
    {EB_SELFTEST_PROMPT, "guest.verify"},
    {EB_SELFTEST_PROMPT, "guest.start"},
    {EB_SELFTEST_PROMPT, "launch.exec"},
    {EB_SELFTEST_PROMPT, "launch.block"},
    {EB_SELFTEST_PROMPT, "launch.initialize"},
    {EB_SELFTEST_PROMPT, "launch.open"},
    {EB_SELFTEST_PROMPT, "launch.model"},
    {EB_SELFTEST_PROMPT, "launch.ready"},
    {EB_SELFTEST_PROMPT, "launch.opened"},
    {EB_SELFTEST_PROMPT, "turn.place"},
    {EB_SELFTEST_PROMPT, "turn.mark"},
    {EB_SELFTEST_PROMPT, "turn.prompt"},
    {EB_SELFTEST_PROMPT, "turn.working"},
    {EB_SELFTEST_PROMPT, "turn.tool"},
    {EB_SELFTEST_PROMPT, "turn.question"},
    {EB_SELFTEST_PROMPT, "turn.answer"},
    {EB_SELFTEST_PROMPT, "turn.text"},
    {EB_SELFTEST_PROMPT, "turn.settled"},

    {EB_SELFTEST_CONTINUE, "message.given"},
    {EB_SELFTEST_CONTINUE, "launch.record"},
    {EB_SELFTEST_CONTINUE, "launch.directories"},
    {EB_SELFTEST_CONTINUE, "guest.start"},
    {EB_SELFTEST_CONTINUE, "launch.open"},
    {EB_SELFTEST_CONTINUE, "launch.opened"},
    {EB_SELFTEST_CONTINUE, "turn.mark"},
    {EB_SELFTEST_CONTINUE, "turn.working"},

    {EB_SELFTEST_ABORT, "stop.asked"},
    {EB_SELFTEST_ABORT, "undo.guest"},
    {EB_SELFTEST_ABORT, "guest.stop"},
    {EB_SELFTEST_ABORT, "guest.delete"},
    {EB_SELFTEST_ABORT, "undo.broker"},
    {EB_SELFTEST_ABORT, "undo.run-directory"},
    {EB_SELFTEST_ABORT, "undo.directories"},
    {EB_SELFTEST_ABORT, "undo.record"},
    {EB_SELFTEST_ABORT, "undo.lock"},
    {EB_SELFTEST_ABORT, "stop.record"},

    {EB_SELFTEST_STOP, "stop.asked"},
    {EB_SELFTEST_STOP, "stop.cancel"},
    {EB_SELFTEST_STOP, "turn.settled"},
    {EB_SELFTEST_STOP, "undo.agent"},
    {EB_SELFTEST_STOP, "undo.guest"},
    {EB_SELFTEST_STOP, "undo.broker"},
    {EB_SELFTEST_STOP, "undo.run-directory"},
    {EB_SELFTEST_STOP, "undo.lock"},
    {EB_SELFTEST_STOP, "stop.record"},
    {EB_SELFTEST_STOP, "stop.ended"},
    {EB_SELFTEST_STOP_ENDED, "stop.mark"},

    {EB_SELFTEST_REMOVE, "undo.ownership-of-files"},
    {EB_SELFTEST_REMOVE, "undo.agent"},
    {EB_SELFTEST_REMOVE, "undo.guest"},
    {EB_SELFTEST_REMOVE, "remove.mark"},
    {EB_SELFTEST_REMOVE, "remove.directories"},
    {EB_SELFTEST_REMOVE, "remove.row"},
    {EB_SELFTEST_REMOVE, "remove.done"},
    {EB_SELFTEST_REMOVE_ENDED, "remove.mark"},
    {EB_SELFTEST_REMOVE_ENDED, "remove.directories"},
    {EB_SELFTEST_REMOVE_ENDED, "remove.row"},
    {EB_SELFTEST_REMOVE_ENDED, "remove.done"},

    {EB_SELFTEST_CLOSE, "close.drain"},
    {EB_SELFTEST_CLOSE, "undo.agent"},
    {EB_SELFTEST_CLOSE, "undo.guest"},
    {EB_SELFTEST_CLOSE, "stop.ended"},
    {EB_SELFTEST_CLOSE, "close.store"},
    {EB_SELFTEST_CLOSE, "close.plugins"},
};

const EbSelftestTarget *
eb_selftest_targets(guint *n)
{
    *n = G_N_ELEMENTS(targets);
    return targets;
}

const char *
eb_selftest_way_to_string(EbSelftestWay way)
{
    static const char *const names[EB_SELFTEST_N_WAYS] = {"start",      "prompt", "continue",     "abort", "stop",
                                                          "stop-ended", "remove", "remove-ended", "close"};
    return (guint)way < G_N_ELEMENTS(names) ? names[way] : "?";
}

const char *
eb_selftest_target_group(const EbSelftestTarget *target)
{
    switch (target->way) {
    case EB_SELFTEST_START:
        return "start";
    case EB_SELFTEST_ABORT:
    case EB_SELFTEST_STOP:
    case EB_SELFTEST_STOP_ENDED:
        return "stop";
    case EB_SELFTEST_REMOVE:
    case EB_SELFTEST_REMOVE_ENDED:
        return "delete";
    case EB_SELFTEST_CLOSE:
        return "close";
    default:
        return g_str_has_prefix(target->step, "turn.") ? "turn" : "launch";
    }
}

struct _EbSelftestPlan {
    GMutex lock;
    GRand *chance;
    guint kills, given;
    guint order[G_N_ELEMENTS(targets)];
};

EbSelftestPlan *
eb_selftest_plan_new(guint kills, guint32 seed)
{
    EbSelftestPlan *self = g_new0(EbSelftestPlan, 1);

    g_mutex_init(&self->lock);
    self->chance = g_rand_new_with_seed(seed);
    self->kills = kills;
    return self;
}

void
eb_selftest_plan_free(EbSelftestPlan *self)
{
    if (self == NULL)
        return;
    g_rand_free(self->chance);
    g_mutex_clear(&self->lock);
    g_free(self);
}

static void
shuffle(EbSelftestPlan *self)
{
    guint n = G_N_ELEMENTS(targets);

    for (guint i = 0; i < n; i++)
        self->order[i] = i;
    for (guint i = n - 1; i > 0; i--) {
        guint j = (guint)g_rand_int_range(self->chance, 0, (gint32)i + 1);
        guint kept = self->order[i];
        self->order[i] = self->order[j];
        self->order[j] = kept;
    }
}

static guint
choose_delay(EbSelftestPlan *self, guint round)
{
    double share = g_rand_double(self->chance);

    if (round == 0 || g_rand_int_range(self->chance, 0, AT_ONCE_SHARE) == 0)
        return 0;
    return (guint)(share * share * EB_SELFTEST_MAX_DELAY_US);
}

gboolean
eb_selftest_plan_next(EbSelftestPlan *self, EbSelftestKill *kill)
{
    guint n = G_N_ELEMENTS(targets);
    gboolean more;

    g_mutex_lock(&self->lock);
    more = self->given < self->kills;
    if (more) {
        if (self->given % n == 0)
            shuffle(self);
        kill->number = self->given;
        kill->target = &targets[self->order[self->given % n]];
        kill->delay_us = choose_delay(self, self->given / n);
        self->given++;
    }
    g_mutex_unlock(&self->lock);
    return more;
}

gboolean
eb_selftest_read_mark(const char *line, char **step, char **subject)
{
    static const char head[] = " debug " EB_LOG_STEP_DOMAIN ": ";
    const char *at = strchr(line, ' '); /* behind the time; what others say may look like a mark further on */

    *step = *subject = NULL;
    if (at == NULL || !g_str_has_prefix(at, head))
        return FALSE;
    at += strlen(head);
    gsize length = strcspn(at, " \r\n");
    if (length == 0)
        return FALSE;
    *step = g_strndup(at, length);
    at += length;
    const char *value = *at == ' ' ? strchr(at, '=') : NULL;
    if (value != NULL)
        *subject = g_strndup(value + 1, strcspn(value + 1, " \r\n"));
    return TRUE;
}
