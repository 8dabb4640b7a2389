/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/config/eb-config.h"

G_BEGIN_DECLS

/** EB_BACKEND_LOOK_MS: what one answer of the container daemon may take when somebody only looks. */
#define EB_BACKEND_LOOK_MS 2000

/**
 * eb_backend_look: asks the container daemon how it is, for `status`; blocks for two answers at most.
 * @object: gets "backend" {"name","answers","version","ms","error"} and "pools" [{"name","driver","used","total"}] with
 *   sizes in bytes
 */
void eb_backend_look(EbConfig *config, JsonObject *object);

G_END_DECLS
