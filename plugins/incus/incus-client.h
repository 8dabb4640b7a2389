/* SPDX-License-Identifier: MIT */
#pragma once

#include <libsoup/soup.h>

#include "incus-deadline.h"
#include "incus-endpoint.h"
#include "incus-reply.h"

G_BEGIN_DECLS

/**
 * IncusClient: requests and websockets to one incusd, over a unix socket or TLS with a client certificate and one
 * pinned server certificate. Used from the main loop's thread alone.
 */
#define INCUS_TYPE_CLIENT (incus_client_get_type())
G_DECLARE_FINAL_TYPE(IncusClient, incus_client, INCUS, CLIENT, GObject)

/** incus_client_new: (transfer full): @endpoint: (transfer none): copied. No I/O. */
IncusClient *incus_client_new(const IncusEndpoint *endpoint);
/** incus_client_settle: takes the endpoint of the account this process is by now; before the first request. */
void incus_client_settle(IncusClient *self);
const IncusEndpoint *incus_client_get_endpoint(IncusClient *self);
/** incus_client_set_project: the project every path of incus_client_path() names. */
void incus_client_set_project(IncusClient *self, const char *project);
const char *incus_client_get_project(IncusClient *self);

/**
 * incus_client_path: (transfer full): "/1.0/SEGMENT/...?project=P&QUERY"
 * @query: (nullable): further parameters, already escaped
 * @first: segments, each escaped here, then NULL
 */
char *incus_client_path(IncusClient *self, const char *query, const char *first, ...) G_GNUC_NULL_TERMINATED;

/** incus_client_request_async: one request. @body: (nullable) (transfer none): sent as JSON. */
void incus_client_request_async(IncusClient *self, const char *method, const char *path, JsonNode *body,
                                IncusDeadline *deadline, GAsyncReadyCallback callback, gpointer user_data);
/** incus_client_upload_async: as incus_client_request_async() with a streamed body of @length bytes. */
void incus_client_upload_async(IncusClient *self, const char *method, const char *path, const char *content_type,
                               GInputStream *body, gssize length, IncusDeadline *deadline, GAsyncReadyCallback callback,
                               gpointer user_data);
/** incus_client_request_finish: (transfer full) (nullable) */
IncusReply *incus_client_request_finish(IncusClient *self, GAsyncResult *result, GError **error);

/** incus_client_get_text_async: a body that is no JSON (a log file), at most 256 KiB of it. */
void incus_client_get_text_async(IncusClient *self, const char *path, IncusDeadline *deadline,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** incus_client_get_text_finish: (transfer full) (nullable): NUL-terminated bytes, not necessarily UTF-8. */
char *incus_client_get_text_finish(IncusClient *self, GAsyncResult *result, gsize *length, GError **error);

G_END_DECLS
