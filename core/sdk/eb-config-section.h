/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/**
 * EbConfigSection: one table of the merged configuration, read-only, with the file and line of every key.
 *
 * A plugin gets its own table alone. Getters check type and range; a problem is an EB_ERROR_CONFIG that names
 * file, line, key and what to do. After reading, eb_config_section_check_unknown() refuses keys nobody asked for
 * and names the nearest known one.
 */
#define EB_TYPE_CONFIG_SECTION (eb_config_section_get_type())
EB_API
G_DECLARE_FINAL_TYPE(EbConfigSection, eb_config_section, EB, CONFIG_SECTION, GObject)

/** EbConfigType: type of a value. */
typedef enum {
    EB_CONFIG_STRING = 0,
    EB_CONFIG_INT = 1,
    EB_CONFIG_BOOL = 2,
    EB_CONFIG_STRING_LIST = 3,
    EB_CONFIG_INT_LIST = 4,
    EB_CONFIG_FLOAT = 5,
} EbConfigType;

/* --- building (the configuration loader and tests) --- */

/** eb_config_section_new: (transfer full): @path: dotted name of the table, e.g. "plugin.incus". */
EB_API EbConfigSection *eb_config_section_new(const char *path);
/** eb_config_section_set: @value: (transfer none): GVariant s, x, b, as, ax or d. A later call replaces. */
EB_API void eb_config_section_set(EbConfigSection *self, const char *key, GVariant *value, const char *file,
                                  guint line);
/** eb_config_section_add_child: @child: (transfer none): sub-table @name; replaces one of that name. */
EB_API void eb_config_section_add_child(EbConfigSection *self, const char *name, EbConfigSection *child);

/* --- reading --- */

EB_API const char *eb_config_section_get_path(EbConfigSection *self);
EB_API gboolean eb_config_section_has(EbConfigSection *self, const char *key);
/** eb_config_section_where: (transfer full): "file:line" of @key, or of the table; "default" when absent. */
EB_API char *eb_config_section_where(EbConfigSection *self, const char *key);
/** eb_config_section_get_keys: (transfer container) (element-type utf8): valid as long as @self. */
EB_API GPtrArray *eb_config_section_get_keys(EbConfigSection *self);
/** eb_config_section_get_children: (transfer container) (element-type utf8): names of sub-tables, valid as long as @self. */
EB_API GPtrArray *eb_config_section_get_children(EbConfigSection *self);
/** eb_config_section_get_child: (nullable) (transfer none) */
EB_API EbConfigSection *eb_config_section_get_child(EbConfigSection *self, const char *name);
/** eb_config_section_get_value: (nullable) (transfer none) */
EB_API GVariant *eb_config_section_get_value(EbConfigSection *self, const char *key);

/**
 * eb_config_section_get_string: (transfer full) (nullable): @fallback (copied, nullable) when absent; NULL with
 * @error set on a wrong type. With a NULL fallback an absent key gives NULL and no error.
 */
EB_API char *eb_config_section_get_string(EbConfigSection *self, const char *key, const char *fallback, GError **error);
EB_API gboolean eb_config_section_get_int(EbConfigSection *self, const char *key, gint64 fallback, gint64 min,
                                          gint64 max, gint64 *result, GError **error);
EB_API gboolean eb_config_section_get_bool(EbConfigSection *self, const char *key, gboolean fallback, gboolean *result,
                                           GError **error);
/** eb_config_section_get_strings: (transfer full) (array zero-terminated=1) (nullable): empty list when absent. */
EB_API char **eb_config_section_get_strings(EbConfigSection *self, const char *key, GError **error);
/** eb_config_section_get_size: "512MiB", "4GiB", "100kB" or a plain integer: bytes. */
EB_API gboolean eb_config_section_get_size(EbConfigSection *self, const char *key, guint64 fallback, guint64 min,
                                           guint64 max, guint64 *result, GError **error);
/** eb_config_section_get_duration: "500ms", "15s", "30min", "2h", "1d": milliseconds. */
EB_API gboolean eb_config_section_get_duration(EbConfigSection *self, const char *key, guint64 fallback_ms,
                                               guint64 min_ms, guint64 max_ms, guint64 *result_ms, GError **error);
/**
 * eb_config_section_get_secret_name: (transfer full) (nullable): NAME of a reference "cred:NAME"; a literal is
 * refused, since a secret does not belong into a configuration file.
 */
EB_API char *eb_config_section_get_secret_name(EbConfigSection *self, const char *key, GError **error);

/** eb_config_section_check_unknown: refuses keys and sub-tables that no getter has asked for so far. */
EB_API gboolean eb_config_section_check_unknown(EbConfigSection *self, GError **error);

/** eb_config_parse_size, eb_config_parse_duration: the bare parsers. */
EB_API gboolean eb_config_parse_size(const char *text, guint64 *bytes, GError **error);
EB_API gboolean eb_config_parse_duration(const char *text, guint64 *ms, GError **error);
/** eb_config_nearest: (nullable) (transfer none): the candidate closest to @word, when close enough to suggest. */
EB_API const char *eb_config_nearest(const char *word, const char *const *candidates);

G_END_DECLS
