/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-pins.h"

G_BEGIN_DECLS

/**
 * eb_pin_edit_set: replaces the value of one key in the text of pins.toml and leaves every other byte as it is.
 * @pin: whose table it is
 * @key: has a plain "..." on one line
 * @value: has no quote and no backslash
 *
 * Returns: (transfer full) (nullable): the new text; EB_ERROR_NOT_SUPPORTED when the key is not written in that way
 */
char *eb_pin_edit_set(const char *text, const EbPin *pin, const char *key, const char *value, GError **error);

/**
 * eb_pin_version_compare: as semantic versions are: numbers by value, a pre-release ("1.0-rc.1") before its release, what
 * follows "+" not at all; a part that is missing is 0.
 *
 * Returns: less than, equal to or greater than 0
 */
int eb_pin_version_compare(const char *left, const char *right);
/** eb_pin_version_in_series: is @version @series ("10") or below it ("10.2.1")? A NULL series has them all. */
gboolean eb_pin_version_in_series(const char *version, const char *series);
/** eb_pin_version_is_prerelease: has it a "-"? */
gboolean eb_pin_version_is_prerelease(const char *version);
/**
 * eb_pin_version_pick: the greatest of @versions that is after @current, in @series, and no pre-release unless @current
 * is one.
 * @series: (nullable)
 *
 * Returns: (transfer none) (nullable): of @versions; NULL when none is newer
 */
const char *eb_pin_version_pick(GPtrArray *versions, const char *current, const char *series);

G_END_DECLS
