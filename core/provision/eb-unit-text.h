/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbUnitValue: what stands for @NAME@ in a template of data/units, as it is to be there. */
typedef struct {
    const char *name; /* capitals and underscores; NULL ends a list */
    const char *text;
} EbUnitValue;

/**
 * eb_unit_text_fill: (transfer full) (nullable): @template with every @NAME@ replaced; other text between at-signs
 * (systemd's sets of system calls) stays. EB_ERROR_INTEGRITY: a name without a value.
 */
char *eb_unit_text_fill(const char *template, const EbUnitValue *values, GError **error);

/**
 * eb_unit_text_systemd, eb_unit_text_shell: (transfer full) (nullable): @word as one word of a unit file, or of a shell
 * script. @command: on a line that starts a program, where "$" means a variable too. EB_ERROR_CONFIG: it has control
 * characters, which neither can hold.
 */
char *eb_unit_text_systemd(const char *word, gboolean command, GError **error);
char *eb_unit_text_shell(const char *word, GError **error);

/**
 * eb_unit_text_is_below: is one of @paths (nullable ones are passed over; array zero-terminated by @n) @directory or
 * below it?
 */
gboolean eb_unit_text_is_below(const char *const *paths, gsize n, const char *directory);

G_END_DECLS
