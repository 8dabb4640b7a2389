/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "eb-test.h"

G_BEGIN_DECLS

/** ClientFixture: the client with a misbehaving agent (agent.py MODE) at its other end. */
typedef struct {
    GSubprocess *process;
    EbAcpClient *client;
    GPtrArray *events;  /* (element-type utf8): "KIND text" of everything told, in order */
    GPtrArray *asked;   /* (element-type EbAcpPermission): what was not answered at once */
    const char *choose; /* (nullable): option to answer with; NULL = keep open */
    gboolean closed;
    gboolean exited;
    guint n_updates;
    gsize largest;
} ClientFixture;

/** client_set_up: @mode: agent.py's argument; starts, does not initialize. */
void client_set_up(ClientFixture *fixture, gconstpointer mode);
void client_tear_down(ClientFixture *fixture, gconstpointer mode);
/** client_initialize: waits for the answer. */
const EbAcpAgentInfo *client_initialize(ClientFixture *fixture, GError **error);
/** client_open: (transfer full): initializes and opens a new session. */
char *client_open(ClientFixture *fixture);
/** client_prompt: (transfer full) (nullable) */
EbAcpTurn *client_prompt(ClientFixture *fixture, GError **error);
/** client_prompt_start: the result goes to @result. */
void client_prompt_start(ClientFixture *fixture, EbTestResult *result);
/** client_find: the index of the first event that begins with @prefix, -1 without. */
int client_find(ClientFixture *fixture, const char *prefix);
/** client_wait_event: until an event begins with @prefix. */
void client_wait_event(ClientFixture *fixture, const char *prefix);

G_END_DECLS
