/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-broker-config.h"
#include "core/broker/eb-poller.h"
#include "core/broker/eb-refusal.h"

G_BEGIN_DECLS

/* The bounds of one session's broker. */
#define EB_BROKER_MAX_CONNECTIONS 4096    /* open connections of the guest, tunnels included */
#define EB_BROKER_MAX_DIALS 256           /* connections being made at once */
#define EB_BROKER_MAX_PER_HOST 1024       /* tunnels and plain requests to one host */
#define EB_BROKER_MAX_EXCHANGES 512       /* requests being forwarded at once */
#define EB_BROKER_SCRATCH (256 * 1024)    /* the one buffer bytes pass through */
#define EB_BROKER_MAX_STALLED (32u << 20) /* bytes held for receivers that do not read, all connections */
#define EB_BROKER_MAX_DENIED 512          /* hosts of which the service was told; later ones are audited alone */

/* Waits, in microseconds. */
#define EB_BROKER_HEAD_WAIT (30 * G_USEC_PER_SEC)        /* a begun request's head */
#define EB_BROKER_KEEP_ALIVE_WAIT (300 * G_USEC_PER_SEC) /* the next request of a connection */
#define EB_BROKER_RESOLVE_WAIT (5 * G_USEC_PER_SEC)
#define EB_BROKER_CONNECT_WAIT (10 * G_USEC_PER_SEC)   /* all addresses of one target */
#define EB_BROKER_STAGGER_WAIT (G_USEC_PER_SEC / 4)    /* before the next address is tried beside */
#define EB_BROKER_HANDSHAKE_WAIT (30 * G_USEC_PER_SEC) /* the answer to a WebSocket's request */
#define EB_BROKER_FIRST_BYTE_WAIT (900 * G_USEC_PER_SEC)
#define EB_BROKER_IDLE_WAIT (900 * G_USEC_PER_SEC)                        /* nothing moves in a tunnel or an answer */
#define EB_BROKER_TUNNEL_WAIT (G_GINT64_CONSTANT(86400) * G_USEC_PER_SEC) /* a tunnel, whatever moves in it */
#define EB_BROKER_STALL_WAIT (120 * G_USEC_PER_SEC)                       /* a guest that does not take its answer */
#define EB_BROKER_LINGER_WAIT (2 * G_USEC_PER_SEC) /* after a refusal, for what is still being sent */

/** EbTicked: something looked at now and then; its function may end it, and nothing else that ticks. */
typedef struct {
    GList link;
    void (*tick)(gpointer owner, gint64 now);
    gpointer owner;
} EbTicked;

/** EbHostCount: connections to one host. */
typedef struct {
    guint n;
    char host[];
} EbHostCount;

/** EbAudit: what one connection or request did; sent as one row when it ends. */
typedef struct {
    const char *kind; /* "connect", "http", "provider"; static */
    char *host;       /* (owned) (nullable) */
    guint16 port;
    EbAddress address;
    const char *decision;   /* "allowed" or a refusal's token; static */
    const char *rule;       /* (nullable): of config */
    const char *provider;   /* (nullable): of config */
    EbBrokerConfig *config; /* (owned) (nullable) */
    EbHostCount *counted;   /* (unowned) (nullable): the host's count it is part of */
    guint status;
    guint64 bytes_up;
    guint64 bytes_down;
    gint64 started; /* monotonic microseconds */
} EbAudit;

typedef struct _EbBrokerLink EbBrokerLink;
typedef struct _EbUpstream EbUpstream;
typedef struct _EbUpstreamTls EbUpstreamTls;
typedef struct _EbDialer EbDialer;
typedef struct _EbPipePool EbPipePool;
typedef struct _EbMeter EbMeter;
typedef struct _EbAnswerObserver EbAnswerObserver;

/** EbBroker: one session's broker; a single thread, a single loop. */
typedef struct {
    GMainContext *context;  /* (unowned) */
    EbPoller *poller;       /* (owned) */
    EbBrokerConfig *config; /* (owned) (nullable): NULL until the first COMMIT */
    EbBrokerLink *link;     /* (unowned) (nullable) */
    EbUpstream *upstream;   /* (owned) */
    EbPipePool *pipes;      /* (owned) */
    GResolver *resolver;    /* (owned) */
    EbWatch listener;       /* fd owned once given */
    gboolean listening;
    gboolean accept_blocked; /* connections may be waiting that no event will tell of */
    gboolean heads_paused;   /* as may requests on connections that are open */
    guint n_connections;
    guint n_dials;
    guint n_exchanges;
    gsize stalled;
    GQueue ticked;
    GSource *ticker;
    GHashTable *hosts;  /* (element-type utf8 EbHostCount) */
    GHashTable *meters; /* (guint64 id -> EbMeter), not owned: one a request under way */
    guint64 last_meter;
    gboolean canary_seen;             /* the service was told */
    GHashTable *denied;               /* hosts the service was told of */
    const EbAnswerObserver *observer; /* (unowned) (nullable): sees the answers of providers pass */
    char *scratch;                    /* EB_BROKER_SCRATCH bytes; valid within one event */
} EbBroker;

/** eb_broker_new: @tls: (transfer full) */
EbBroker *eb_broker_new(GMainContext *context, GResolver *resolver, EbUpstreamTls *tls, GError **error);
void eb_broker_free(EbBroker *self);
/** eb_broker_set_listener: @fd: (transfer full): accepting begins with the first configuration. */
void eb_broker_set_listener(EbBroker *self, int fd);
/** eb_broker_set_config: @config: (transfer full) */
void eb_broker_set_config(EbBroker *self, EbBrokerConfig *config);
/** eb_broker_resume_accept: goes on accepting after the bound that stopped it: connections, or untaken audit rows. */
void eb_broker_resume_accept(EbBroker *self);

/**
 * eb_broker_is_behind: TRUE while the service does not take what it is told: what a guest does then would have no row. Each
 * connection is ticked when that is over.
 */
gboolean eb_broker_is_behind(EbBroker *self);

void eb_broker_tick_add(EbBroker *self, EbTicked *ticked, void (*tick)(gpointer owner, gint64 now), gpointer owner);
void eb_broker_tick_remove(EbBroker *self, EbTicked *ticked);
/** eb_broker_tick_soon: makes the next tick come within a tenth of a second. */
void eb_broker_tick_soon(EbBroker *self);

/** eb_audit_begin: @config: (transfer none) (nullable) */
void eb_audit_begin(EbAudit *audit, const char *kind, const char *host, guint16 port, EbBrokerConfig *config);
/** eb_audit_count_host: counts @audit's connection towards its host until it ends; FALSE at EB_BROKER_MAX_PER_HOST. */
gboolean eb_audit_count_host(EbBroker *self, EbAudit *audit);
/** eb_audit_end: sends the row and clears @audit; nothing when it was not begun. */
void eb_audit_end(EbBroker *self, EbAudit *audit);
/** eb_broker_report_refusal: tells the service of a host the first time a rule refuses it. */
void eb_broker_report_refusal(EbBroker *self, const EbRefusal *refusal);

G_END_DECLS
