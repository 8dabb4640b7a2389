/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-ctl.h"
#include "core/config/eb-config.h"
#include "core/state/eb-session-store.h"

G_BEGIN_DECLS

/* Which hosts people may allow one session beside [egress] allow, and what they are told of refusals: pure. */

/** EB_HOST_ONCE_S: how long "once" lasts at most: until the turn under way ends, or the next one, but no longer. */
#define EB_HOST_ONCE_S 600
/** EB_HOST_MAX_ONCE: hosts allowed once at a time, of one session. */
#define EB_HOST_MAX_ONCE 20

/** EbHostFate: what can be done about a host that was refused. */
typedef enum {
    EB_HOST_OFFER = 0, /* somebody who may can allow it for this session */
    EB_HOST_PORT,      /* its port is not in [egress] ports */
    EB_HOST_INTERNAL,  /* an internal address, or a name for one */
    EB_HOST_CLOSED,    /* [egress] mode is none */
    EB_HOST_INVALID,   /* no host */
} EbHostFate;
/**
 * eb_host_judge: what a broker tells of a host is not trusted: it is judged again.
 * @host: without a port, or with one; an IPv6 address with brackets or without
 * @port: 0 = the one in @host, or the first of [egress] ports
 * @normal: (out) (transfer full) (optional): as a rule names it; set unless EB_HOST_INVALID
 * @why: (out) (transfer none) (optional): what is wrong with it, for EB_HOST_INVALID
 */
EbHostFate eb_host_judge(const EbSessionConfig *config, const char *host, guint port, char **normal, const char **why);
/** eb_host_check: a host that a person names: EB_ERROR_INVALID says what to write, EB_ERROR_DENIED why it cannot be.
 *  Returns: (transfer full) (nullable): as a rule names it */
char *eb_host_check(const EbSessionConfig *config, const char *text, GError **error);

/** EbHostNotice: what people are told of one refusal. */
typedef struct {
    char *key;      /* the same for what is told once; a host's does not hold its port */
    char *text;     /* one sentence, Markdown without any */
    char *host;     /* (nullable): what can be allowed */
    gboolean offer; /* to be asked, not only told */
} EbHostNotice;
/** eb_host_notice_new: (transfer full) (nullable): of the "denied" of a broker; NULL: nothing that people can act on. */
EbHostNotice *eb_host_notice_new(const EbSessionConfig *config, const char *host, guint port, const char *code);
void eb_host_notice_free(EbHostNotice *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbHostNotice, eb_host_notice_free)

/** EbHostOnce: a host that is allowed for a while. */
typedef struct {
    char *host;
    gint64 until_us; /* monotonic */
} EbHostOnce;
/** eb_host_once_list_new: (transfer full) (element-type EbHostOnce) */
GPtrArray *eb_host_once_list_new(void);
/** eb_host_once_add: of one that is there the time begins anew. FALSE: there are EB_HOST_MAX_ONCE. */
gboolean eb_host_once_add(GPtrArray *once, const char *host, gint64 now_us);
/** eb_host_once_prune: TRUE when one was over. @next_us: (out): when the next one is; 0 = none is left */
gboolean eb_host_once_prune(GPtrArray *once, gint64 now_us, gint64 *next_us);

/**
 * eb_host_rules_set: @rules->allow becomes [egress] allow, then @hosts, then @once.
 * @hosts: (element-type EbSessionRule); @once: (element-type EbHostOnce)
 */
void eb_host_rules_set(EbBrokerRules *rules, const EbSessionConfig *config, const GPtrArray *hosts,
                       const GPtrArray *once);

/** EB_HOST_LINES_BURST, EB_HOST_LINES_S: lines about refusals in one thread at once, and seconds until one more may come. */
#define EB_HOST_LINES_BURST 5
#define EB_HOST_LINES_S 20
/** EB_HOST_MAX_LINES: refusals told in one session; those after them are in `sessions logs --egress` alone. */
#define EB_HOST_MAX_LINES 50
/** EbHostPace: how many lines may still be said. */
typedef struct {
    guint said;      /* of EB_HOST_MAX_LINES */
    guint burst;     /* said since it was all free */
    gint64 since_us; /* monotonic: since when one of burst becomes free again */
} EbHostPace;
/** eb_host_pace_take: TRUE: say it now; else @wait_us: (out): after that long, -1 = never. */
gboolean eb_host_pace_take(EbHostPace *self, gint64 now_us, gint64 *wait_us);

G_END_DECLS
