/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * Structured logging. Define G_LOG_DOMAIN per folder ("eb-session", "eb-plugin-incus"). Library code logs at
 * debug alone; who handles an error logs it once. Text from guests or chat only at debug, through
 * eb_log_escape().
 */

/**
 * eb_log_event:
 * @level: G_LOG_LEVEL_*
 * @domain: G_LOG_DOMAIN
 * @message: the sentence
 * @...: pairs of const char *field, const char *value; then NULL. Fields in use: EB_SESSION, EB_PLUGIN,
 *   EB_INSTANCE, EB_OP, EB_REASON. A NULL value is left out.
 */
EB_API void eb_log_event(GLogLevelFlags level, const char *domain, const char *message, ...) G_GNUC_NULL_TERMINATED;

/**
 * eb_log_step: a mark in the debug log: what is done next leaves something behind when the process dies here.
 * @step: "launch.guest": a constant name, unique for its place
 * @field, @value: one pair as of eb_log_event(): EB_SESSION or EB_INSTANCE; a NULL value is left out
 *
 * `errand-box maint selftest` kills the service at every one of them, so a new step gets a mark and a row in its table.
 */
#define eb_log_step(step, field, value) eb_log_event(G_LOG_LEVEL_DEBUG, EB_LOG_STEP_DOMAIN, step, field, value, NULL)
#define EB_LOG_STEP_DOMAIN "eb-step"

#define eb_debug(...) g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_DEBUG, "MESSAGE", __VA_ARGS__)
#define eb_info(...) g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_INFO, "MESSAGE", __VA_ARGS__)
#define eb_warning(...) g_log_structured(G_LOG_DOMAIN, G_LOG_LEVEL_WARNING, "MESSAGE", __VA_ARGS__)

/**
 * eb_log_escape:
 * @text: untrusted bytes
 * @length: bytes, or -1 when NUL-terminated
 * @max_bytes: the result is cut at a character boundary and marked with "…" beyond this
 *
 * Returns: (transfer full): valid UTF-8 without control characters (they become \xNN).
 */
EB_API char *eb_log_escape(const char *text, gssize length, gsize max_bytes);

/**
 * eb_log_mask_add:
 *
 * Registers a secret with the process-wide mask: every message that leaves through the log writer has its
 * occurrences replaced. (transfer none): a reference is taken.
 */
EB_API void eb_log_mask_add(EbSecret *secret);
/** eb_log_mask_text: (transfer full): @text with every registered secret replaced by "[label]". */
EB_API char *eb_log_mask_text(const char *text, gssize length);

/**
 * eb_log_setup:
 * @verbosity: 0 warnings, 1 info, 2 debug of errand-box, 3 debug of all
 * @json: JSON lines instead of text
 *
 * Installs the writer of the programs (not for plugins): stderr, or the journal when stderr is it.
 */
EB_API void eb_log_setup(int verbosity, gboolean json);

G_END_DECLS
