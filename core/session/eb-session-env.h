/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-agent-profile.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_SESSION_ENV_MAX: bytes of a block, as the launcher takes them. */
#define EB_SESSION_ENV_MAX (8 * 1024 * 1024)

/** EbSessionEnv: what goes into the launcher's block. All pointers are borrowed. */
typedef struct {
    EbAgentProfile *profile;
    const char *provider; /* (nullable): name of the provider the broker routes; NULL = none, no variable of it */
    const char *dialect;  /* (nullable): how the agent speaks to it */
    const char *model;    /* (nullable) */
    EbSecret *nonce;      /* (nullable): what the guest presents in place of the key */
    EbSecret *canary;     /* (nullable): laid where an agent that looks for keys finds it */
    gboolean proxy;       /* the broker lets chosen hosts through: set the proxy variables */
    guint16 relay_port;
} EbSessionEnv;

/** EB_CANARY_VARIABLE: where the key that nobody has a use for lies in the guest. */
#define EB_CANARY_VARIABLE "PRODUCTION_API_KEY"

/** EB_GUEST_HOME, EB_GUEST_WORKSPACE: as the agent sees them; the same in every guest, since agents keep them in their history. */
#define EB_GUEST_HOME "/state/home"
#define EB_GUEST_WORKSPACE "/workspace"
#define EB_GUEST_RUN "/opt/errand/run"

/**
 * eb_session_env_bytes: the whole block with its header line (guest/PROTOCOL.md): variables sorted by name, then files in
 * the profile's order. It holds the nonce: wiped when freed, never logged.
 *
 * Returns: (transfer full) (nullable): EB_ERROR_INVALID when a name, value or path cannot be given.
 */
GBytes *eb_session_env_bytes(const EbSessionEnv *self, GError **error);

/** eb_session_env_command: (transfer full) (array zero-terminated=1): the agent's command, with its model argument. */
char **eb_session_env_command(const EbSessionEnv *self, GError **error);

G_END_DECLS
