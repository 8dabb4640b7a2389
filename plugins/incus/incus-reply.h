/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** IncusReply: one answer envelope of the API that was not an error. */
typedef struct {
    JsonNode *root;                 /* (owned) */
    JsonNode *metadata;             /* (nullable) (transfer none): inside root */
    char *operation;                /* (nullable): id of the operation an async answer started */
    JsonObject *operation_metadata; /* (nullable) (transfer none): its metadata (fds of an exec) */
} IncusReply;

/**
 * incus_reply_parse: (transfer full) (nullable)
 * @body: bytes from incusd
 * @http_status: of the response
 *
 * Error envelopes become errors (incus_error_new()).
 */
IncusReply *incus_reply_parse(const char *body, gsize length, guint http_status, GError **error);
void incus_reply_free(IncusReply *self);
/** incus_reply_object: (transfer none) (nullable): metadata as an object. */
JsonObject *incus_reply_object(IncusReply *self);

/**
 * incus_reply_outcome: TRUE when the answer of /operations/ID/wait says success.
 *
 * Incus 6.0 gives a failed operation as an error envelope (which incus_reply_parse() made an error already), 7.x as a
 * good envelope whose metadata.status is "Failure" with metadata.err. This is the second kind's check.
 */
gboolean incus_reply_outcome(IncusReply *self, GError **error);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(IncusReply, incus_reply_free)

G_END_DECLS
