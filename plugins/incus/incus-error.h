/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * incus_error_new: (transfer full): an EB_ERROR for what incusd said.
 * @code: HTTP-like code of the envelope
 * @text: (nullable): its error text, the only detail the API gives; it is escaped and cut
 *
 * incusd uses 500 for almost everything, so the text decides first and the code after it.
 */
GError *incus_error_new(int code, const char *text);

/** incus_error_has_reason: TRUE when @error (nullable) carries that token. */
gboolean incus_error_has_reason(const GError *error, const char *reason);

G_END_DECLS
