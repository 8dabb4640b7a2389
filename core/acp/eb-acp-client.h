/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbAcpClient: the client side of the Agent Client Protocol, version 1, with one agent on a pair of streams.
 *
 * One session an agent process. A pending call holds a reference on the client: end the process, or tell
 * eb_acp_client_agent_ended(), before letting it go. Calls fail with EB_ERROR_UNAVAILABLE "acp.agent-gone" when the agent ends (its last
 * line of stderr is in the message) and EB_ERROR_TIMEOUT "acp.timeout" at their deadline (the message names the call);
 * an error answer is "acp.auth-required", "acp.not-found", "acp.method-not-found", "acp.invalid", "acp.cancelled" or
 * "acp.agent-error". All memory fed by the agent is bounded: line 32 MiB, tool calls 4096 (oldest
 * finished ones are forgotten), pending agent requests 64, text of one update as the line allows.
 *
 * Signals (all in the thread of creation):
 *   "update" (EbAcpUpdate *update): one session/update, decoded; also late ones and those before session/new answers.
 *   "permission" (EbAcpPermission *permission): must be answered with eb_acp_permission_answer(); the last unref
 *       answers "cancelled".
 *   "noise" (const char *line): something on stdout that is no frame, escaped and cut.
 *   "stderr" (const char *line): likewise from stderr.
 *   "closed" (GError *error (nullable)): the streams ended or broke; every pending call has failed already.
 */
#define EB_TYPE_ACP_CLIENT (eb_acp_client_get_type())
G_DECLARE_FINAL_TYPE(EbAcpClient, eb_acp_client, EB, ACP_CLIENT, GObject)

typedef enum {
    EB_ACP_UPDATE_TEXT = 0,     /* agent_message_chunk: text */
    EB_ACP_UPDATE_THOUGHT = 1,  /* agent_thought_chunk: text */
    EB_ACP_UPDATE_USER = 2,     /* user_message_chunk (replay): text */
    EB_ACP_UPDATE_TOOL = 3,     /* tool_call, tool_call_update or a permission's toolCall: tool */
    EB_ACP_UPDATE_PLAN = 4,     /* raw.entries */
    EB_ACP_UPDATE_COMMANDS = 5, /* available_commands_update */
    EB_ACP_UPDATE_MODE = 6,
    EB_ACP_UPDATE_CONFIG = 7,  /* config_option_update */
    EB_ACP_UPDATE_INFO = 8,    /* session_info_update: text = title when present */
    EB_ACP_UPDATE_USAGE = 9,   /* used, size, cost, currency */
    EB_ACP_UPDATE_NOTICE = 10, /* notice, _kage/notice: text, severity in raw */
    EB_ACP_UPDATE_OTHER = 11,  /* anything else, kept raw */
} EbAcpUpdateKind;

/** EbAcpDiff: one change a tool call reports. */
typedef struct {
    char *path;
    char *old_text; /* (nullable): NULL = new file */
    char *new_text;
} EbAcpDiff;

/** EbAcpTool: a tool call as known so far (an upsert of everything received for its id). */
typedef struct {
    char *id;
    char *title;
    char *kind;           /* read edit delete move search execute think fetch switch_mode other */
    char *status;         /* pending in_progress completed failed cancelled */
    GPtrArray *locations; /* (element-type utf8) "path:line" or path */
    GPtrArray *diffs;     /* (element-type EbAcpDiff) */
    char *output;         /* (nullable): text content, cut at 64 KiB with a mark */
    JsonNode *raw_input;  /* (nullable) */
} EbAcpTool;

typedef struct {
    int ref_count;
    EbAcpUpdateKind kind;
    char *session_id;  /* (nullable) */
    char *name;        /* the sessionUpdate value */
    char *text;        /* (nullable) */
    char *message_id;  /* (nullable) */
    EbAcpTool *tool;   /* (nullable): a snapshot */
    gboolean late;     /* after the prompt's answer */
    gboolean replay;   /* during session/load */
    gint64 used, size; /* -1 = unknown */
    double cost;       /* negative = unknown */
    char *currency;
    JsonObject *raw; /* (owned): the update object */
} EbAcpUpdate;
#define EB_TYPE_ACP_UPDATE (eb_acp_update_get_type())
GType eb_acp_update_get_type(void);
EbAcpUpdate *eb_acp_update_ref(EbAcpUpdate *self);
void eb_acp_update_unref(EbAcpUpdate *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAcpUpdate, eb_acp_update_unref)

typedef struct {
    char *id;
    char *name;
    char *kind; /* allow_once allow_always reject_once reject_always, or something unknown */
} EbAcpOption;

#define EB_TYPE_ACP_PERMISSION (eb_acp_permission_get_type())
G_DECLARE_FINAL_TYPE(EbAcpPermission, eb_acp_permission, EB, ACP_PERMISSION, GObject)
/* signal "withdrawn": the agent took the question back ($/cancel_request); it is answered already */
const EbAcpTool *eb_acp_permission_get_tool(EbAcpPermission *self);
/** eb_acp_permission_get_options: (transfer none) (element-type EbAcpOption) */
GPtrArray *eb_acp_permission_get_options(EbAcpPermission *self);
/** eb_acp_permission_answer: @option_id: (nullable): one that was offered; NULL = cancelled. Once. */
gboolean eb_acp_permission_answer(EbAcpPermission *self, const char *option_id, GError **error);
gboolean eb_acp_permission_is_open(EbAcpPermission *self);
/** eb_acp_permission_get_raw: (transfer none): the request's params: _meta and what else an agent adds. */
JsonObject *eb_acp_permission_get_raw(EbAcpPermission *self);

/** eb_acp_client_new: (transfer full): takes references on the streams; @stderr_stream: (nullable) */
EbAcpClient *eb_acp_client_new(GOutputStream *stdin_stream, GInputStream *stdout_stream, GInputStream *stderr_stream);

/** EbAcpAgentInfo: what initialize told. Owned by the client. */
typedef struct {
    char *name, *version; /* (nullable) */
    gint64 protocol_version;
    gboolean load, resume, list, close, image, embedded_context, steer;
    JsonObject *capabilities; /* (nullable) raw */
    JsonArray *auth_methods;  /* (nullable) raw */
} EbAcpAgentInfo;

/** eb_acp_client_initialize_async: deadlines are the client's duty; an answer beyond one is ignored. */
void eb_acp_client_initialize_async(EbAcpClient *self, guint deadline_ms, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
const EbAcpAgentInfo *eb_acp_client_initialize_finish(EbAcpClient *self, GAsyncResult *result, GError **error);
/** eb_acp_client_get_info: (transfer none): all empty before initialize was answered */
const EbAcpAgentInfo *eb_acp_client_get_info(EbAcpClient *self);

typedef enum {
    EB_ACP_OPEN_NEW = 0,
    EB_ACP_OPEN_LOAD = 1,   /* session/load with replay */
    EB_ACP_OPEN_RESUME = 2, /* session/resume */
} EbAcpOpen;
/** eb_acp_client_open_async: @session_id: (nullable) for NEW. */
void eb_acp_client_open_async(EbAcpClient *self, EbAcpOpen how, const char *session_id, const char *cwd,
                              guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);
/** eb_acp_client_open_finish: (transfer full) (nullable): the agent's session id; @replayed: (out) (optional): updates seen */
char *eb_acp_client_open_finish(EbAcpClient *self, GAsyncResult *result, guint *replayed, GError **error);

/** eb_acp_client_set_model_async: by the config option of category model, else session/set_model. */
void eb_acp_client_set_model_async(EbAcpClient *self, const char *model, guint deadline_ms, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_acp_client_set_model_finish(EbAcpClient *self, GAsyncResult *result, GError **error);
void eb_acp_client_set_mode_async(EbAcpClient *self, const char *mode, guint deadline_ms, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_acp_client_set_mode_finish(EbAcpClient *self, GAsyncResult *result, GError **error);
/** eb_acp_client_get_config_options: (transfer none) (nullable): raw configOptions as last told; likewise modes, models */
JsonArray *eb_acp_client_get_config_options(EbAcpClient *self);
JsonObject *eb_acp_client_get_modes(EbAcpClient *self);
JsonObject *eb_acp_client_get_models(EbAcpClient *self);

/** EbAcpTurn: how a prompt ended. */
typedef struct {
    char *stop_reason; /* end_turn max_tokens max_turn_requests refusal cancelled error, or what the agent said */
    char *error;       /* (nullable): text for people, message and data joined */
    gint64 error_code;
    gboolean empty; /* neither text nor tool call nor thought was seen: suspicious */
    guint64 ms;
    JsonObject *usage; /* (nullable) */
} EbAcpTurn;
void eb_acp_turn_free(EbAcpTurn *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbAcpTurn, eb_acp_turn_free)

/**
 * eb_acp_client_prompt_async: @blocks: (transfer none): ContentBlock[]. One at a time: a second is EB_ERROR_BUSY.
 * No deadline; @cancellable only abandons the wait, eb_acp_client_cancel() ends the turn.
 */
void eb_acp_client_prompt_async(EbAcpClient *self, JsonArray *blocks, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user_data);
EbAcpTurn *eb_acp_client_prompt_finish(EbAcpClient *self, GAsyncResult *result, GError **error);

/**
 * eb_acp_client_cancel:
 *
 * Answers every open permission with cancelled, sends session/cancel (held back until the first update of the turn or
 * 500 ms after the prompt), marks unfinished tool calls cancelled. When the agent does not answer within @abort_ms
 * the prompt ends as "cancelled" with error set and the caller should end the process.
 */
void eb_acp_client_cancel(EbAcpClient *self, guint abort_ms);

/**
 * eb_acp_client_steer_async: gives the running turn another message (agents with info.steer alone, during a turn);
 * everything else is EB_ERROR_NOT_SUPPORTED "acp.steer" and the caller sends it as the next prompt.
 */
void eb_acp_client_steer_async(EbAcpClient *self, JsonArray *blocks, guint deadline_ms, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
gboolean eb_acp_client_steer_finish(EbAcpClient *self, GAsyncResult *result, GError **error);

/** eb_acp_client_in_turn: a prompt is at the agent and not answered, also one that was given up or aborted. */
gboolean eb_acp_client_in_turn(EbAcpClient *self);
/** eb_acp_client_get_idle_ms: milliseconds since the last byte from the agent. */
guint64 eb_acp_client_get_idle_ms(EbAcpClient *self);
/** eb_acp_client_get_stderr_tail: (transfer full): last lines of stderr, at most 2000 characters. */
char *eb_acp_client_get_stderr_tail(EbAcpClient *self);
/** eb_acp_client_close: answers open permissions, closes stdin; pending calls fail when the agent is gone. */
void eb_acp_client_close(EbAcpClient *self);
/**
 * eb_acp_client_agent_ended: the caller knows that the process is gone; @how: (nullable): "exited with status 1".
 *
 * What is still in the pipes is read for a short while (300 ms), also when some child holds them open; then every
 * pending call fails with an error that has @how and the last line of stderr in it, and "closed" follows.
 */
void eb_acp_client_agent_ended(EbAcpClient *self, const char *how);

G_END_DECLS
