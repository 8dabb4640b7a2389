/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-json.h"

/**
 * eb_json_scan_repair:
 * @repair: (nullable): a writable copy of @text: escapes that json-glib cannot hold (NUL, half a surrogate pair)
 *   are overwritten there with "\ufffd", which is just as long
 * @n_repairs: (out) (optional): how many there are
 */
gboolean eb_json_scan_repair(const char *text, gsize length, const EbJsonLimits *limits, char *repair, guint *n_repairs,
                             GError **error);
