/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-redactor.h"
#include "core/broker/eb-broker-policy.h"
#include "core/broker/eb-broker-proto.h"

G_BEGIN_DECLS

/** EbProviderKind: which header carries the key. */
typedef enum {
    EB_PROVIDER_OPENAI,
    EB_PROVIDER_ANTHROPIC,
    EB_PROVIDER_GEMINI,
} EbProviderKind;

/** EB_PROVIDER_HASH: bytes of a hash of a nonce. */
#define EB_PROVIDER_HASH 32

/** EbProvider: a route /provider/NAME inside the broker. */
typedef struct {
    char *name;
    EbProviderKind kind;
    gboolean tls;
    EbTarget host;
    char *base_path;                     /* no trailing slash; may be empty */
    EbSecret *key;                       /* (owned) */
    EbSecret *nonce;                     /* (owned) */
    guint8 nonce_hash[EB_PROVIDER_HASH]; /* keyed, with nonce_hashed: so that not every request opens the nonce */
    gboolean nonce_hashed;
    gint64 reported_at; /* monotonic: when its last failure was reported */
} EbProvider;

/** EbBrokerConfig: what the broker goes by; replaced as a whole, kept alive by the requests that use it. */
typedef struct {
    gatomicrefcount refs;
    guint64 serial;
    char *session;
    guint16 relay_port;
    gboolean budget;      /* provider requests need a grant */
    guint64 reserve;      /* tokens asked for when a request states no limit */
    guint64 overshoot;    /* tokens beyond the last grant before an answer is cut off */
    EbPolicy *policy;     /* (owned) */
    GPtrArray *providers; /* (element-type EbProvider) (owned) */
    EbRedactSet *canary;  /* (owned) (nullable) */
} EbBrokerConfig;

EbBrokerConfig *eb_broker_config_ref(EbBrokerConfig *self);
void eb_broker_config_unref(EbBrokerConfig *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbBrokerConfig, eb_broker_config_unref)
/** eb_broker_config_find: (nullable) (transfer none): @name need not be NUL-terminated. */
EbProvider *eb_broker_config_find(EbBrokerConfig *self, const char *name, gsize length);

/**
 * eb_provider_set_url: takes @base_url apart: https://host[:port][/path], or http to a loopback address given as one;
 * no user info, no query.
 */
gboolean eb_provider_set_url(EbProvider *self, const char *base_url, GError **error);

/** EbBrokerStage: rules on their way in, message by message. */
typedef struct _EbBrokerStage EbBrokerStage;
EbBrokerStage *eb_broker_stage_new(void);
void eb_broker_stage_free(EbBrokerStage *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbBrokerStage, eb_broker_stage_free)
/**
 * eb_broker_stage_take: one message of BEGIN to COMMIT.
 * @config: (out) (transfer full) (nullable): set by COMMIT
 * A FALSE ends the transaction; the next BEGIN starts another. @serial: (out): of the transaction
 */
gboolean eb_broker_stage_take(EbBrokerStage *self, const EbBrokerMsg *msg, EbBrokerConfig **config, guint64 *serial,
                              GError **error);

G_END_DECLS
