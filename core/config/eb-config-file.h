/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_CONFIG_MAX_FILES: files of one conf.d directory. */
#define EB_CONFIG_MAX_FILES 200

/** EbConfigProblems: what is wrong, one line each, bounded. */
typedef struct {
    GPtrArray *lines; /* (element-type utf8) (owned) */
    guint dropped;    /* beyond the bound */
} EbConfigProblems;
EbConfigProblems *eb_config_problems_new(void);
void eb_config_problems_free(EbConfigProblems *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbConfigProblems, eb_config_problems_free)
void eb_config_problems_add(EbConfigProblems *self, const char *format, ...) G_GNUC_PRINTF(2, 3);
/** eb_config_problems_take: adds every line of @error's message and frees it; @error: (nullable) (transfer full) */
void eb_config_problems_take(EbConfigProblems *self, GError *error);
/** eb_config_problems_to_error: FALSE and @error (EB_ERROR_CONFIG, a problem a line) when there are any. */
gboolean eb_config_problems_to_error(EbConfigProblems *self, GError **error);

/** EbConfigTrust: who may own a file that is read. */
typedef enum {
    EB_CONFIG_TRUST_SYSTEM = 0, /* root or the running user: what is found without being asked for */
    EB_CONFIG_TRUST_NAMED = 1,  /* anybody: the operator named this file */
} EbConfigTrust;

/**
 * eb_config_file_read:
 *
 * A regular file of at most EB_TOML_MAX_BYTES that neither its group nor others may write, in directories of which the
 * same is true up to the root: who can exchange a file writes it. A symlink is followed: what it leads to is judged,
 * through the descriptor that is read.
 *
 * Returns: (transfer full) (nullable): the tree; NULL with EB_ERROR_CONFIG, or EB_ERROR_NOT_FOUND when absent.
 */
EbConfigSection *eb_config_file_read(const char *path, EbConfigTrust trust, GError **error);

/**
 * eb_config_file_read_problems: the same for a caller that reports all that is wrong: every problem is added to
 * @problems, and what could be read of the file is given back, so that it is judged too.
 * @optional: an absent file is no problem; a link that leads nowhere is one
 *
 * Returns: (transfer full) (nullable)
 */
EbConfigSection *eb_config_file_read_problems(const char *path, EbConfigTrust trust, gboolean optional,
                                              EbConfigProblems *problems);

/**
 * eb_config_file_list: (transfer full) (nullable) (array zero-terminated=1): the *.toml of @dir, sorted; hidden ones
 * are left out. An absent directory is an empty list.
 */
char **eb_config_file_list(const char *dir, GError **error);
/** eb_config_file_list_ignored: (transfer full) (array zero-terminated=1): the others of @dir, save hidden ones and
 *  what editors and packages keep ("x.toml~", "x.toml.dpkg-old"): somebody may wonder why they do nothing. */
char **eb_config_file_list_ignored(const char *dir);

/**
 * eb_config_merge: lays @over on @base, key by key and table by table; every key keeps the file and line it is from.
 * Neither is changed. Returns: (transfer full)
 */
EbConfigSection *eb_config_merge(EbConfigSection *base, EbConfigSection *over);

G_END_DECLS
