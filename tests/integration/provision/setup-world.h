/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/provision/eb-setup.h"

G_BEGIN_DECLS

/**
 * SetupWorld: a directory with everything that setup is handed, an INCUS_DIR of its own and an account of its own, so
 * that all of it can be made and taken back beside whatever else runs on the machine.
 */
typedef struct {
    char *dir;
    char *state_dir;
    char *config_file;
    char *creds_file;
    char *env_file;
    char *settings_file; /* that setup writes */
    char *incus_dir;
    char *ledger_dir;
} SetupWorld;

/** setup_world_skip_reason: (nullable): why these tests cannot run here. */
const char *setup_world_skip_reason(void);
/**
 * setup_world_new: sets INCUS_DIR.
 * @account: made and removed by setup
 * @name: (nullable): part of its directory's name
 * @dir: (nullable): of an existing world
 */
SetupWorld *setup_world_new(const char *account, const char *name, const char *dir);
void setup_world_free(SetupWorld *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SetupWorld, setup_world_free)

/** setup_world_options: (transfer full): zeroed but for what a world has; @config: (out) (transfer full) */
EbSetupOptions setup_world_options(SetupWorld *self, EbConfig **config);
/** setup_world_find_row: (nullable) (transfer none) */
const EbSetupRow *setup_world_find_row(EbSetup *setup, const char *id);
/** setup_world_list_host: (transfer full): what a host is made of as far as setup could touch it: files below the world
 *  and in the directories of /etc that setup writes, accounts, id ranges, kernel settings, storage and mounts. */
char *setup_world_list_host(SetupWorld *self);
/** setup_world_describe: (transfer full): what setup made, with names that differ from world to world replaced. */
char *setup_world_describe(SetupWorld *self);

G_END_DECLS
