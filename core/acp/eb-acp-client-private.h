/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"
#include "core/acp/eb-acp-stderr.h"
#include "core/acp/eb-acp-tools.h"
#include "core/acp/eb-acp-types.h"
#include "core/base/eb-jsonrpc.h"
#include "core/base/eb-source.h"

G_BEGIN_DECLS

/* What the files of EbAcpClient share: eb-acp-client.c (life, calls, opening), eb-acp-inbound.c (what the agent sends),
 * eb-acp-turn.c (prompt, cancel), eb-acp-settings.c (model, mode). */

/* Updates that come before session/new is answered wait here. */
#define EB_ACP_MAX_EARLY_UPDATES 256
#define EB_ACP_MAX_EARLY_BYTES ((gsize)8 * 1024 * 1024)

/** EbAcpTurnState: the prompt that is open at the agent. */
typedef struct {
    gboolean active; /* sent and not yet answered, given up or not */
    GTask *task;     /* (nullable): NULL when nobody waits any more */
    gint64 started;
    gboolean content;   /* text, thought, tool or permission seen */
    gboolean cancelled; /* by us: decides how the turn ended, whatever the agent says */
    gboolean cancel_sent;
    guint abort_ms;
    GSource *hold;  /* (nullable): until session/cancel may be sent */
    GSource *abort; /* (nullable): until the wait for the agent's answer ends */
    GSource *watch; /* (nullable): the caller's cancellable */
} EbAcpTurnState;

struct _EbAcpClient {
    GObject parent_instance;
    GMainContext *context;
    EbJsonrpc *rpc;
    EbAcpStderr *stderr_reader; /* (nullable) */
    char *exit_text;            /* (nullable): how the agent's process ended, when told */
    GSource *ending;            /* (nullable): waits for the rest of stderr, or for the end of stdout */
    GError *close_error;        /* (nullable) */
    GPtrArray *orphans;         /* (element-type EbAcpCall): calls that fail when the end is understood */
    gboolean concluded;         /* "closed" has been emitted */

    EbAcpAgentInfo info;
    gboolean initialized;

    char *session_id; /* (nullable) */
    gboolean opening;
    gboolean opening_new;
    gboolean replaying; /* session/load is under way */
    guint replayed;
    GQueue early;      /* (element-type JsonObject): params of session/update, EB_ACP_MAX_EARLY_UPDATES */
    gsize early_bytes; /* at most EB_ACP_MAX_EARLY_BYTES */
    guint foreign;     /* updates for sessions that are not ours */

    JsonArray *config_options; /* (nullable) */
    JsonObject *modes;         /* (nullable) */
    JsonObject *models;        /* (nullable) */

    EbAcpTools *tools;
    GHashTable *permissions; /* id text -> EbAcpPermission (not owned), open ones; bounded by the peer's requests */
    EbAcpTurnState turn;
    guint turns_done;
};

/** EbAcpDecode: turns the result of a call into what its task returns. */
typedef void (*EbAcpDecode)(EbAcpClient *self, GTask *task, JsonObject *result);

/** EbAcpCall: one call to the agent on behalf of a task. */
typedef struct {
    GTask *task; /* (owned) */
    const char *method;
    guint deadline_ms;
    EbAcpDecode decode;
} EbAcpCall;

/** eb_acp_client_call: @task, @params: (transfer full); cancellable of @task is honoured. */
void eb_acp_client_call(EbAcpClient *self, const char *method, JsonNode *params, guint deadline_ms, GTask *task,
                        EbAcpDecode decode);
/** eb_acp_client_gone: (transfer full): the error for what waited for the agent when it went away. */
GError *eb_acp_client_gone(EbAcpClient *self, const char *method);
void eb_acp_client_orphan(EbAcpClient *self, GTask *task, const char *method);
/** eb_acp_client_emit_update: @update: (transfer full): sets late and replay, accounts for the turn, emits. */
void eb_acp_client_emit_update(EbAcpClient *self, EbAcpUpdate *update);
void eb_acp_client_emit_noise(EbAcpClient *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_acp_client_set_timer: replaces *@place by a timer that calls @function with @self once. */
void eb_acp_client_set_timer(EbAcpClient *self, GSource **place, guint ms, GSourceFunc function);

/* eb-acp-inbound.c */
void eb_acp_client_listen(EbAcpClient *self);
void eb_acp_client_flush_early(EbAcpClient *self);
void eb_acp_client_drop_early(EbAcpClient *self);
/** eb_acp_client_answer_permissions: cancelled to all that are open. */
void eb_acp_client_answer_permissions(EbAcpClient *self);
void eb_acp_client_detach_permissions(EbAcpClient *self);

/* eb-acp-turn.c */
/** eb_acp_client_turn_alive: the agent works on the turn. */
void eb_acp_client_turn_alive(EbAcpClient *self);
void eb_acp_client_turn_clear(EbAcpClient *self);

/* eb-acp-settings.c */
/** eb_acp_client_take_settings: configOptions, modes and models in a result or an update. */
void eb_acp_client_take_settings(EbAcpClient *self, JsonObject *object);

G_END_DECLS
