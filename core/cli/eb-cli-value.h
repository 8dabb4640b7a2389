/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/cli/eb-cli.h"

G_BEGIN_DECLS

/* Secret values on their way in: from a terminal, standard input or a file, never from an argument. */

/** eb_cli_value_read: (transfer full) (nullable): from @file, or from standard input when NULL; never shown. */
EbSecret *eb_cli_value_read(const char *name, const char *file, GError **error);

/** eb_cli_value_read_file: (nullable): a regular file, whole, of at most @max_bytes; the caller wipes and frees it. */
char *eb_cli_value_read_file(const char *file, gsize max_bytes, gsize *length, GError **error);

/**
 * eb_cli_value_doubt: (nullable): what of the value looks as if it had come along by mistake, for a note: blanks at its
 * ends, quotes around it, control characters. Nothing of the value is in it.
 */
const char *eb_cli_value_doubt(const char *bytes, gsize length);

G_END_DECLS
