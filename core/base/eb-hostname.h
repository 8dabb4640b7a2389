/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * eb_hostname_to_ascii: a host name as people write it, in the form the DNS has: labels beyond ASCII become punycode.
 * @why: (out) (transfer none): what is wrong, lower case
 *
 * Refused are names that two standards read as two different hosts (IDNA 2003, which GLib and older resolvers go by,
 * and IDNA 2008, which registries do), and labels that only look foreign: full-width letters that map to plain ones.
 * ASCII labels pass as they are, unchecked and in their case.
 *
 * Returns: (transfer full) (nullable)
 */
char *eb_hostname_to_ascii(const char *name, const char **why);

G_END_DECLS
