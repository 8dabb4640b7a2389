/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** eb_json_set_text_or_null: @member is there in any case, so that scripts can rely on it. @text: (nullable) */
void eb_json_set_text_or_null(JsonObject *object, const char *member, const char *text);
/** eb_json_set_time: in ISO 8601, UTC; an empty text for a moment that no calendar has. */
void eb_json_set_time(JsonObject *object, const char *member, gint64 unix_ms);

G_END_DECLS
