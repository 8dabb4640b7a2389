/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/acp/eb-acp-client.h"

G_BEGIN_DECLS

/*
 * The messages of ACP version 1 as values: decoding and encoding without I/O. Every field of a message from an agent
 * may be missing, null or of a wrong type; decoding never fails for it. What is kept is cut to the bounds below.
 */

/** EB_ACP_PROTOCOL_VERSION: what is announced; never more than is implemented (an agent may answer with a newer one). */
#define EB_ACP_PROTOCOL_VERSION 1

#define EB_ACP_MAX_ID 512                        /* bytes of an id that is kept */
#define EB_ACP_MAX_TITLE 2048                    /* bytes of a title, name or path */
#define EB_ACP_MAX_OUTPUT ((gsize)64 * 1024)     /* bytes of a tool call's output */
#define EB_ACP_MAX_DIFF_TEXT ((gsize)256 * 1024) /* bytes of each side of a diff */
#define EB_ACP_MAX_DIFFS 64                      /* diffs of one tool call */
#define EB_ACP_MAX_LOCATIONS 64                  /* locations of one tool call */
#define EB_ACP_MAX_RAW ((gsize)64 * 1024)        /* about the bytes of a tool call's raw input */
#define EB_ACP_MAX_OPTIONS 32                    /* options of one permission request */
#define EB_ACP_MAX_ERROR 2000                    /* bytes of an agent's error text */
#define EB_ACP_CUT_MARK "\n[cut]"

/**
 * eb_acp_update_decode: (transfer full): the params of session/update; the tool is left NULL (eb-acp-tools keeps
 * state). @update: (transfer none): the update object itself; a NULL one becomes EB_ACP_UPDATE_OTHER with an empty raw.
 */
EbAcpUpdate *eb_acp_update_decode(const char *session_id, JsonObject *update);
/** eb_acp_update_new: (transfer full): one the client makes itself. @raw: (transfer none) (nullable) */
EbAcpUpdate *eb_acp_update_new(EbAcpUpdateKind kind, const char *session_id, const char *name, JsonObject *raw);
/** eb_acp_update_is_content: whether it shows that the agent works on the turn (text, thought, tool, plan). */
gboolean eb_acp_update_is_content(const EbAcpUpdate *update);

/** eb_acp_agent_info_decode: the result of initialize; EB_ERROR_NOT_SUPPORTED "acp.version" for another protocol. */
gboolean eb_acp_agent_info_decode(JsonObject *result, EbAcpAgentInfo *info, GError **error);
void eb_acp_agent_info_clear(EbAcpAgentInfo *info);

/** eb_acp_options_decode: (transfer full) (element-type EbAcpOption): options without an id or with a known one are
 *  left out, so the list may be empty. */
GPtrArray *eb_acp_options_decode(JsonArray *options);

/** eb_acp_error_text: (transfer full): message and data of a JSON-RPC error joined, at most EB_ACP_MAX_ERROR. */
char *eb_acp_error_text(JsonObject *error);
/** eb_acp_error_from: (transfer full): an error answer to @method as EB_ERROR; reason "acp.auth-required",
 *  "acp.not-found", "acp.method-not-found", "acp.invalid", "acp.cancelled" or "acp.agent-error". */
GError *eb_acp_error_from(const char *method, JsonObject *error);

/** eb_acp_stop_reason_is_known: one of the closed list of version 1. */
gboolean eb_acp_stop_reason_is_known(const char *reason);

/** eb_acp_config_option: (transfer none) (nullable): the first configOption of @category. */
JsonObject *eb_acp_config_option(JsonArray *options, const char *category);
/**
 * eb_acp_config_choose:
 * @option: a select option
 * @wanted: a value, a name, or the part of a value behind its last slash when only one fits
 *
 * Returns: (transfer full) (nullable): the value to send; EB_ERROR_NOT_FOUND "acp.no-such-value" names some that exist.
 */
char *eb_acp_config_choose(JsonObject *option, const char *wanted, GError **error);

/* --- encoding: all (transfer full) --- */
JsonNode *eb_acp_encode_initialize(void);
/** eb_acp_encode_open: @session_id: (nullable) */
JsonNode *eb_acp_encode_open(const char *session_id, const char *cwd);
/** eb_acp_encode_prompt: @delivery: (nullable): kage's "steer" */
JsonNode *eb_acp_encode_prompt(const char *session_id, JsonArray *blocks, const char *delivery);
/** eb_acp_encode_session: {sessionId, KEY: VALUE ...}, NULL-terminated pairs. */
JsonNode *eb_acp_encode_session(const char *session_id, ...) G_GNUC_NULL_TERMINATED;
/** eb_acp_encode_outcome: @option_id: (nullable): NULL = cancelled */
JsonNode *eb_acp_encode_outcome(const char *option_id);

/* --- bounded copies --- */

/** eb_acp_cut: (transfer full) (nullable): @text, at most @max bytes at a character boundary, marked when cut. */
char *eb_acp_cut(const char *text, gsize max);
/** eb_acp_json_weight: about the bytes @node takes; counting stops above @limit. */
gsize eb_acp_json_weight(JsonNode *node, gsize limit);
/** eb_acp_json_bounded_copy: (transfer full): a copy sharing everything when @node weighs no more than @max, else one
 *  whose strings are cut and whose members end when @max is used up. */
JsonNode *eb_acp_json_bounded_copy(JsonNode *node, gsize max);

G_END_DECLS
