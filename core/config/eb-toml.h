/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_TOML_MAX_BYTES: longest text accepted; a configuration of a thousand lines has 50 kB. */
#define EB_TOML_MAX_BYTES (1024 * 1024)
/** EB_TOML_MAX_DEPTH: deepest nesting of tables and arrays, and parts of one dotted key. */
#define EB_TOML_MAX_DEPTH 16
/** EB_TOML_MAX_PROBLEMS: problems of one text that are reported one by one. */
#define EB_TOML_MAX_PROBLEMS 50

/**
 * eb_toml_parse:
 * @text: bytes, need not be NUL-terminated
 * @length: bytes
 * @name: file name for messages and for the provenance of every key
 *
 * Reads TOML 1.0 into a tree of sections. Strings, integers, booleans, floats and lists of strings or integers become
 * values; a list of tables becomes a sub-table whose sub-tables are "0", "1", ... Dates, mixed and nested lists are
 * refused, since nothing here takes them.
 *
 * Returns: (transfer full) (nullable): the root, whose path is "". NULL with EB_ERROR_CONFIG: each problem is one line
 *   of the message and begins with "file:line:column: ".
 */
EbConfigSection *eb_toml_parse(const char *text, gsize length, const char *name, GError **error);

/**
 * eb_toml_read: as eb_toml_parse(), for a caller that goes on judging a text with problems.
 * @problems: (element-type utf8): each problem is added as a line
 *
 * Returns: (transfer full) (nullable): all that could be read, without the values that have problems; NULL when the text
 *   is no TOML
 */
EbConfigSection *eb_toml_read(const char *text, gsize length, const char *name, GPtrArray *problems);

/**
 * eb_toml_scan: the checks made before the parser proper sees the text: size, UTF-8, NUL bytes, depth of nesting and of
 * dotted keys. The parser's tree is freed by recursion, so its depth has to be bounded beforehand.
 */
gboolean eb_toml_scan(const char *text, gsize length, const char *name, GError **error);

G_END_DECLS
