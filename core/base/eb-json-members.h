/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** eb_json_set_text_or_null: @member is there in any case, so that scripts can rely on it. @text: (nullable) */
void eb_json_set_text_or_null(JsonObject *object, const char *member, const char *text);

G_END_DECLS
