/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/* Pure translation between the SDK's values and incusd's JSON. No I/O. */

/** INCUS_LABEL_PREFIX: config keys of labels. */
#define INCUS_LABEL_PREFIX "user.errand."
/** INCUS_LAUNCH_KEY: config key with the random id of the launch that made an instance: whose it is to clean up. */
#define INCUS_LAUNCH_KEY "user.errand-launch"
/** INCUS_VOLUMES_LABEL: label with the names of volumes, separated by commas, that EB_STOP_DESTROY deletes too. */
#define INCUS_VOLUMES_LABEL "session-volumes"

/**
 * incus_instance_to_json: (transfer full) (nullable): body of the request that makes an instance of @spec.
 * @pool: storage pool of the root disk and of volumes
 * @launch_id: value of INCUS_LAUNCH_KEY
 *
 * Every protection is written out, none left to a default or a profile. Returns NULL with EB_ERROR_INVALID for a spec
 * without memory limit or with values that cannot be written safely.
 */
JsonNode *incus_instance_to_json(const EbContainerSpec *spec, const char *pool, const char *launch_id, GError **error);

/**
 * incus_instance_update_json: (transfer full) (nullable): body of the PATCH that brings an instance to @spec.
 * @instance: as incusd describes it now; only mounts whose device it lacks are plugged in
 */
JsonNode *incus_instance_update_json(const EbContainerSpec *spec, const char *pool, JsonObject *instance,
                                     GError **error);

/** incus_volume_to_json: (transfer full): body that makes the volume of @mount, owned by guest uid 1000. */
JsonNode *incus_volume_to_json(const EbContainerMount *mount);

/** incus_state_to_json: (transfer full): body of a state change; @timeout_s: of the daemon, for a clean stop. */
JsonNode *incus_state_to_json(const char *action, gboolean force, guint timeout_s);

/**
 * incus_instance_verify: TRUE when incusd's view of an instance has what every instance must have: no device but
 * disks, no guest API, an id range of its own, the system call rules. Asked before it is started.
 */
gboolean incus_instance_verify(JsonObject *instance, GError **error);

/** incus_instance_is_ours: TRUE when it was made by a launch of this plugin. */
gboolean incus_instance_is_ours(JsonObject *instance);
/** incus_instance_get_config: (nullable) (transfer none) */
const char *incus_instance_get_config(JsonObject *instance, const char *key);
/** incus_instance_info: (transfer full) (nullable): @instance may hold "state" (recursion=1). */
EbInstanceInfo *incus_instance_info(JsonObject *instance);
/** incus_instance_state_parse: "Running", "Stopped", ... */
EbInstanceState incus_instance_state_parse(const char *status);

/** incus_image_info: (transfer full) (nullable): @alias: (nullable): name to show, else its first alias. */
EbImageInfo *incus_image_info(JsonObject *image, const char *alias);

/** incus_lxc_log_reason: (transfer full) (nullable): the first ERROR line of an lxc.log, without its stamps, escaped. */
char *incus_lxc_log_reason(const char *log, gsize length);

G_END_DECLS
