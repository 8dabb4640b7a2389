/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/base/eb-paths.h"
#include "core/base/eb-spawn.h"

G_BEGIN_DECLS

/** eb_broker_spawn_new: (transfer full) (nullable): a broker's process with its environment, and its log on ours. */
EbSpawn *eb_broker_spawn_new(EbPaths *paths, GError **error);

G_END_DECLS
