/* SPDX-License-Identifier: MIT */
#pragma once

#include "discord-site.h"

G_BEGIN_DECLS

/** DISCORD_REST_MAX_QUEUED: requests that may wait; further ones are refused: EB_ERROR_QUOTA "discord.queue-full". */
#define DISCORD_REST_MAX_QUEUED 2000
/** DISCORD_REST_MAX_DOWNLOADS: files that are fetched at once; further ones are refused in the same way. */
#define DISCORD_REST_MAX_DOWNLOADS 16

/** DiscordRequest: one call of the REST API. */
typedef struct {
    const char *method;  /* static: GET POST PUT PATCH DELETE */
    const char *route;   /* static: the path with names for ids, e.g. "/channels/{c}/messages"; what buckets go by. A
                            request with a limit of its own that no header shows has its own: "/channels/{c}#name" for
                            renames, 2 in ten minutes, which then hold up nothing else */
    char *path;          /* as sent, from the API's base on, with query */
    char *major;         /* (nullable): the top-level id of the route: channel, guild or webhook */
    JsonNode *body;      /* (nullable) */
    GPtrArray *files;    /* (nullable) (element-type EbChatFile): sent as multipart, body as its payload_json */
    gboolean plain;      /* an interaction's callback or webhook: no authorization, outside the global limit */
    gboolean repeatable; /* may be sent again after a 5xx or a broken connection: idempotent, or guarded by a nonce */
    guint patience_ms;   /* 0 = none: gives up when that long has passed, waits for limits included */
} DiscordRequest;
DiscordRequest *discord_request_new(const char *method, const char *route, const char *major, const char *path_format,
                                    ...) G_GNUC_PRINTF(4, 5);
void discord_request_free(DiscordRequest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DiscordRequest, discord_request_free)

/**
 * DiscordRest: the REST API with its limits: buckets learned from the answers, the global limit, the budget of invalid
 * requests, repeats with back-off. Requests of one bucket go one after another in the order they came.
 *
 * Errors: 401 EB_ERROR_UNAUTHENTICATED "discord.unauthorized"; 403 EB_ERROR_DENIED, 404 EB_ERROR_NOT_FOUND, other 4xx
 * EB_ERROR_INVALID, each with reason "discord.CODE", CODE being Discord's number (discord_error_code()), or
 * "discord.http-STATUS"; EB_ERROR_PROTOCOL "discord.answer" for what is no JSON; EB_ERROR_UNAVAILABLE
 * "discord.unreachable" when repeats did not help; EB_ERROR_QUOTA "discord.invalid-budget" when sending on could get this
 * address banned, "discord.queue-full", "discord.answer-size", "discord.upload-size"; EB_ERROR_INVALID "discord.path";
 * EB_ERROR_TIMEOUT "discord.patience"; EB_ERROR_CANCELLED.
 *
 * Signals:
 *   "unauthorized": the token is no longer good; nothing is sent from now on.
 *   "limited" (const char *route, guint seconds): a wait of 5 s or more has begun.
 */
#define DISCORD_TYPE_REST (discord_rest_get_type())
G_DECLARE_FINAL_TYPE(DiscordRest, discord_rest, DISCORD, REST, GObject)

/** discord_rest_new: @site: (transfer none): outlives it; @token: (transfer none) */
DiscordRest *discord_rest_new(const DiscordSite *site, EbSecret *token);
/** discord_rest_send_async: @request: (transfer full) */
void discord_rest_send_async(DiscordRest *self, DiscordRequest *request, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
/** discord_rest_send_finish: (transfer full) (nullable): the body; a JSON null for answers without one */
JsonNode *discord_rest_send_finish(DiscordRest *self, GAsyncResult *result, GError **error);
/**
 * discord_rest_download_async: a file of the CDN: no authorization, no redirect, URL and address judged by the site.
 *
 * Errors: EB_ERROR_QUOTA "discord.file-size" when it is or says it is longer than @max_bytes; EB_ERROR_DENIED
 * "discord.attachment-url", "discord.address", "discord.redirect"; EB_ERROR_NOT_FOUND "discord.file-gone" when the link has
 * expired: read the message again for a fresh one; EB_ERROR_UNAVAILABLE; EB_ERROR_TIMEOUT; EB_ERROR_CANCELLED.
 */
void discord_rest_download_async(DiscordRest *self, const char *url, gsize max_bytes, GCancellable *cancellable,
                                 GAsyncReadyCallback callback, gpointer user_data);
/** discord_rest_download_finish: (transfer full) (nullable) */
GBytes *discord_rest_download_finish(DiscordRest *self, GAsyncResult *result, GError **error);
/** discord_rest_get_token_name: (transfer none): of the credential, for sentences about it */
const char *discord_rest_get_token_name(DiscordRest *self);
/** discord_rest_set_speed: for tests: limits and back-offs pass that many times as fast; before the first request. */
void discord_rest_set_speed(DiscordRest *self, guint speed);
/** discord_rest_close: everything under way ends with EB_ERROR_CANCELLED. */
void discord_rest_close(DiscordRest *self);

/** discord_error_code: Discord's number in @error's reason, 0 when there is none. */
guint discord_error_code(const GError *error);

G_END_DECLS
