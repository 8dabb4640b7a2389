/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_STATUS_COLUMNS, EB_STATUS_LINES: a terminal of the old size holds all of it, with the prompt below. */
#define EB_STATUS_COLUMNS 80
#define EB_STATUS_LINES 23

/**
 * eb_status_screen: (transfer full): what `status` shows of the document that `status --json` prints. Never more than
 * EB_STATUS_LINES lines of EB_STATUS_COLUMNS characters: what is longer is cut and says so.
 * @now_s: wall clock
 */
char *eb_status_screen(JsonObject *status, gint64 now_s);

/** eb_status_duration: (transfer full): "5 s", "12 min", "3 h 5 min", "2 d 4 h". */
char *eb_status_duration(gint64 seconds);

G_END_DECLS
