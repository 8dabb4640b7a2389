/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-client.h"

G_BEGIN_DECLS

/** IncusSettings: what the configuration says; empty strings are found out. */
typedef struct {
    char *project;
    char *pool;
    char *image;
    char *account; /* name of the service's account */
} IncusSettings;
void incus_settings_free(IncusSettings *self);

/** IncusServer: what was found at the other end. Reference counted, immutable. */
typedef struct {
    gatomicrefcount refs;
    char *name;    /* "incus" */
    char *version; /* "6.0.4" */
    char *project;
    char *pool;
    char *pool_driver;        /* (nullable) */
    JsonNode *environment;    /* of GET /1.0 (nullable) */
    JsonNode *project_config; /* (nullable) */
} IncusServer;
IncusServer *incus_server_ref(IncusServer *self);
void incus_server_unref(IncusServer *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusServer, incus_server_unref)

/**
 * incus_server_check: TRUE when the answer of GET /1.0 is of a server that can be used: Incus (LXD's restrictions and
 * failed operations differ too much to be trusted with this) that trusts this client.
 */
gboolean incus_server_check(JsonObject *metadata, GError **error);

/**
 * incus_server_find_async: asks GET /1.0, then the project and the pool, and sets the client's project.
 *
 * An empty project is "user-<uid>" through incus-user, else that of the service's account when it exists, else
 * "errand-box". An empty pool is that of the default profile's root disk, else the only pool there is.
 */
void incus_server_find_async(IncusClient *client, const IncusSettings *settings, IncusDeadline *deadline,
                             GAsyncReadyCallback callback, gpointer user_data);
/** incus_server_find_finish: (transfer full) (nullable) */
IncusServer *incus_server_find_finish(GAsyncResult *result, GError **error);

G_END_DECLS
