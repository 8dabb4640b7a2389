/* SPDX-License-Identifier: MIT */
#pragma once

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/**
 * eb_done_line: what a person reads when a turn is over: how it ended, then model, times, tokens and cost, as far as they
 * are known. Names nobody: a transport with a way to do that adds post->notify itself. Pure.
 * @end_data: (nullable): data of an EB_CHAT_POST_END, every member optional: state (shown as it is instead of the word for
 *     stop_reason), stop_reason (as in ACP), error (one line is shown), model, ms{wait,turn}, tokens{input,output,cached,
 *     total} (cached is a part of input), context{used,size} (tokens), cost, currency (ISO 4217, USD when missing).
 *
 * Returns: (transfer full): one line
 */
char *eb_done_line(JsonObject *end_data);

/** eb_done_line_count: (transfer full): 999, 1.2k, 345k, 1.2M, 3B. */
char *eb_done_line_count(gint64 count);
/** eb_done_line_duration: (transfer full): 850 ms, 4.2 s, 3:07, 1:02:09. */
char *eb_done_line_duration(gint64 ms);

G_END_DECLS
