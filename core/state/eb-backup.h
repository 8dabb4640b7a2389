/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/state/eb-archive.h"

G_BEGIN_DECLS

/** EB_BACKUP_TEMP_PREFIX: directories in state_dir that a backup works in, each locked (flock) while it does. */
#define EB_BACKUP_TEMP_PREFIX ".backup-"

/** EbBackupConfig: one configuration file, read before the process gave up root. */
typedef struct {
    char *name; /* below etc/: "errand-box.toml", "conf.d/10-local.toml" */
    GBytes *content;
} EbBackupConfig;
void eb_backup_config_free(EbBackupConfig *self);

/**
 * eb_backup_read_config: @files: (array zero-terminated=1): paths, the main file first
 * Returns: (transfer full) (element-type EbBackupConfig): those that are regular files that this process may read;
 * @left_out: (out): how many are not
 */
GPtrArray *eb_backup_read_config(const char *const *files, guint *left_out);

/**
 * eb_backup_write:
 * @state_dir: of the service, which may run
 * @fd: the archive goes here
 * @config: (element-type EbBackupConfig)
 *
 * The database of the service and of every try, each as it was at one moment, whoever writes to them meanwhile. As the
 * service's account. Blocks.
 * Returns: (transfer full) (nullable): what is in it
 */
EbArchiveManifest *eb_backup_write(const char *state_dir, int fd, const GPtrArray *config, GError **error);

G_END_DECLS
