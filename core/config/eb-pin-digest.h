/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * A digest is spelled as its source spells it: 64 hex digits are a SHA-256, 128 a SHA-512, "sha512-BASE64" is npm's
 * spelling of a SHA-512. Hex digits are lower case.
 */

/** eb_pin_digest_is_valid: is @text one of the three spellings? */
gboolean eb_pin_digest_is_valid(const char *text);
/** eb_pin_digest_new_sum: (transfer full) (nullable): what computes a digest of the kind of @digest. */
GChecksum *eb_pin_digest_new_sum(const char *what, const char *digest, GError **error);
/** eb_pin_digest_file_name: (transfer full): "sha512-HEX" or "sha256-HEX", the same for every spelling. */
char *eb_pin_digest_file_name(const char *digest);
/** eb_pin_digest_spell: (transfer full): the digest in @sum, spelled as @like is. */
char *eb_pin_digest_spell(const char *like, GChecksum *sum);
/**
 * eb_pin_digest_check:
 * @what: names the thing in the error
 * @sum: has seen all of the thing; it cannot be updated afterwards
 *
 * Returns: FALSE with EB_ERROR_INTEGRITY that names both digests, spelled alike, when they differ.
 */
gboolean eb_pin_digest_check(const char *what, const char *digest, GChecksum *sum, GError **error);

G_END_DECLS
