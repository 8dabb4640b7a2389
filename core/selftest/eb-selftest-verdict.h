/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/selftest/eb-selftest-look.h"

G_BEGIN_DECLS

/** EbSelftestFate: what must have become of a session. */
typedef enum {
    EB_SELFTEST_MAY_BE = 1, /* it was being made or removed when the service died */
    EB_SELFTEST_MUST_BE,    /* its agent was given a prompt: it is never lost */
    EB_SELFTEST_GONE,       /* its removal was confirmed */
} EbSelftestFate;

/** EbSelftestPrompt: something that was said to the service. */
typedef struct {
    char *text;         /* unique */
    char *session;      /* (nullable): that it was said to; NULL: it opens one */
    gboolean journaled; /* it stood in the journal: from then on it may not be lost without a word */
    gboolean excused;   /* its session was stopped or removed by us: nobody need act on it */
} EbSelftestPrompt;
EbSelftestPrompt *eb_selftest_prompt_new(const char *text, const char *session);
void eb_selftest_prompt_free(EbSelftestPrompt *self);

/** EbSelftestMoment: when it is looked at. */
typedef enum {
    EB_SELFTEST_RUNNING, /* the service is up again after a kill */
    EB_SELFTEST_OVER,    /* every session was removed and the service ended */
} EbSelftestMoment;

/** EbSelftestExpected: what whoever drives the service knows. */
typedef struct {
    EbSelftestMoment moment;
    GHashTable *fates;   /* (utf8 session -> EbSelftestFate) */
    GHashTable *touched; /* (set of utf8): sessions this run of the service has worked on */
    GPtrArray *prompts;  /* (element-type EbSelftestPrompt): marked as journaled here */
    GHashTable *told;    /* (set of utf8): ids of messages whose loss was told */
    GHashTable *late;    /* (set of utf8): sessions that could not start because the backend took too long */
    GHashTable *stale;   /* (set of utf8): guests of dead runs at the last look; brought up to date here */
} EbSelftestExpected;

/**
 * eb_selftest_judge: what of @look is against the rules; decides alone, touches nothing.
 *
 * A guest that a dead run had asked for may come to be after the next start has looked for it: it is wrong when it is
 * still there one start later, or in the end.
 *
 * Returns: (transfer full) (element-type utf8): one sentence each, empty when all is well
 */
GPtrArray *eb_selftest_judge(EbSelftestLook *look, EbSelftestExpected *expected);

G_END_DECLS
