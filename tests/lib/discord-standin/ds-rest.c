/* SPDX-License-Identifier: MIT */

#include "ds-buckets.h"
#include "ds-request.h"
#include "ds-socket.h"

#include <string.h>

#define PREFIX "/api/v10"
#define USER_AGENT "^DiscordBot \\(https?://[^ ,)]+,? [^)]+\\)"

/* --- which route --- */

static void
clear_args(DsRequest *self)
{
    for (guint i = 0; i < G_N_ELEMENTS(self->args); i++)
        g_clear_pointer(&self->args[i], g_free);
}

static gboolean
match(DsRequest *self, const char *template)
{
    g_auto(GStrv) wanted = g_strsplit(template, "/", -1);
    g_auto(GStrv) given = g_strsplit(self->path, "/", -1);
    guint n = 0;

    clear_args(self);
    if (g_strv_length(wanted) != g_strv_length(given))
        return FALSE;
    for (guint i = 0; wanted[i] != NULL; i++) {
        if (wanted[i][0] != '{') {
            if (strcmp(wanted[i], given[i]) != 0)
                return FALSE;
            continue;
        }
        if (given[i][0] == '\0' || n >= G_N_ELEMENTS(self->args))
            return FALSE;
        self->args[n] = g_uri_unescape_string(given[i], NULL);
        if (self->args[n] == NULL || !g_utf8_validate(self->args[n], -1, NULL))
            return FALSE;
        n++;
    }
    return TRUE;
}

const DsRoute *
ds_routes_find(DsRequest *self, gboolean *path_known)
{
    const DsRoute *const tables[] = {ds_routes_messages, ds_routes_threads, ds_routes_guild, ds_routes_interactions};

    *path_known = FALSE;
    for (gsize t = 0; t < G_N_ELEMENTS(tables); t++) {
        for (const DsRoute *route = tables[t]; route->method != NULL; route++) {
            if (!match(self, route->template))
                continue;
            *path_known = TRUE;
            if (strcmp(route->method, self->method) == 0)
                return route;
        }
    }
    return NULL;
}

/* --- before and after --- */

static gboolean
check_client(DsRequest *self)
{
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(self->message);
    const char *agent = soup_message_headers_get_one(headers, "User-Agent");
    const char *authorization = soup_message_headers_get_one(headers, "Authorization");
    g_autofree char *wanted = g_strdup_printf("Bot %s", self->world->token);

    if (agent == NULL || !g_regex_match_simple(USER_AGENT, agent, 0, 0)) {
        ds_world_violation(self->world, "user-agent", "%s %s: %s", self->method, self->path,
                           agent != NULL ? agent : "none");
        if (self->route == NULL || !self->route->plain) {
            ds_refuse(self, 403, 40333, "internal network error");
            return FALSE;
        }
    }
    self->authorized = g_strcmp0(authorization, wanted) == 0 && !self->world->token_revoked;
    if (self->route != NULL && self->route->plain)
        return TRUE;
    if (!self->authorized) {
        ds_refuse_code(self, 0);
        return FALSE;
    }
    return TRUE;
}

static void
finish(DsRequest *self)
{
    SoupMessageHeaders *answer = soup_server_message_get_response_headers(self->message);
    const char *scope = soup_message_headers_get_one(answer, "X-RateLimit-Scope");
    const guint status = soup_server_message_get_status(self->message);
    const char *user = g_uri_get_query(soup_server_message_get_uri(self->message));

    if ((status == 401 || status == 403 || status == 429) && g_strcmp0(scope, "shared") != 0)
        ds_world_count(self->world, "invalid");
    if (status == 429)
        ds_world_count(self->world, "answered_429");
    if (status >= 400)
        ds_world_log(self->world, DS_LOG_REFUSALS,
                     ds_object("s:method", self->method, "s:path", self->path, "i:status", (int)status, "i:code",
                               self->code, "s:answer", soup_server_message_get_response_body(self->message)->data,
                               NULL));
    ds_world_log(self->world, DS_LOG_REQUESTS,
                 ds_object("s:method", self->method, "s:path", self->path, "s:query", user, "s:route",
                           self->route != NULL ? self->route->template : NULL, "i:status", (int)status, "i:code",
                           self->code, "l:us", g_get_monotonic_time() - self->began_us, "s:content",
                           eb_json_get_string(self->body, "content"), "i:files",
                           self->uploads != NULL ? (int)self->uploads->len : 0, NULL));
    ds_request_free(self);
}

/* Everything of a request but the faults that a test has asked for. */
static void
proceed(DsRequest *self)
{
    gboolean path_known = FALSE;

    self->route = ds_routes_find(self, &path_known);
    if (check_client(self)) {
        if (self->route == NULL) {
            ds_world_violation(self->world, "unknown-route", "%s %s", self->method, self->path);
            ds_refuse(self, path_known ? 405 : 404, 0, path_known ? "405: Method Not Allowed" : "404: Not Found");
        } else if (ds_buckets_take(self->world->buckets, self) && ds_body_read(self)) {
            if (self->body == NULL)
                self->body = json_object_new();
            self->route->handle(self);
        }
    }
    finish(self);
}

void
ds_rest_handle(DsWorld *world, SoupServerMessage *message, const char *path, GHashTable *query)
{
    DsRequest *self = g_new0(DsRequest, 1);

    self->world = world;
    self->message = g_object_ref(message);
    self->method = g_strdup(soup_server_message_get_method(message));
    self->path = g_strdup(g_str_has_prefix(path, PREFIX "/") ? path + strlen(PREFIX) : path);
    self->query = query != NULL ? g_hash_table_ref(query) : NULL;
    self->began_us = g_get_monotonic_time();
    if (world->silent) {
        world->held++;
        ds_pause(message);
        ds_request_free(self);
        return;
    }
    if (!g_str_has_prefix(path, PREFIX "/")) {
        ds_world_violation(world, "unknown-route", "%s %s", self->method, path);
        ds_refuse(self, 404, 0, "404: Not Found");
        finish(self);
    } else if (ds_faults_take(self, proceed)) {
        if (soup_server_message_get_status(message) != 0)
            finish(self);
    } else {
        proceed(self);
    }
}

/* --- files --- */

void
ds_cdn_handle(DsWorld *world, SoupServerMessage *message, const char *path, GHashTable *query)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1); /* "", attachments, channel, id, name */
    SoupMessageHeaders *headers = soup_server_message_get_request_headers(message);
    DsFile *file = g_strv_length(parts) == 5 ? g_hash_table_lookup(world->files, parts[3]) : NULL;
    const char *signature = query != NULL ? g_hash_table_lookup(query, "hm") : NULL;
    const char *until = query != NULL ? g_hash_table_lookup(query, "ex") : NULL;
    g_autofree char *wanted = file != NULL ? g_strdup_printf("%08x", g_str_hash(parts[3])) : NULL;
    const char *gone = "This content is no longer available.";

    ds_world_log(
        world, DS_LOG_REQUESTS,
        ds_object("s:method", soup_server_message_get_method(message), "s:path", path, "s:route", "cdn", NULL));
    if (soup_message_headers_get_one(headers, "Authorization") != NULL)
        ds_world_violation(world, "token-to-cdn", "GET %s carries an authorization", path);
    if (file == NULL || g_strcmp0(signature, wanted) != 0 || file->expires_s < ds_now_ms() / 1000 || until == NULL ||
        g_ascii_strtoll(until, NULL, 16) != file->expires_s) {
        soup_server_message_set_status(message, 404, NULL);
        soup_server_message_set_response(message, "text/plain", SOUP_MEMORY_COPY, gone, strlen(gone));
        return;
    }
    soup_server_message_set_status(message, 200, NULL);
    soup_message_headers_set_content_type(soup_server_message_get_response_headers(message),
                                          file->type != NULL ? file->type : "application/octet-stream", NULL);
    soup_message_body_append_bytes(soup_server_message_get_response_body(message), file->bytes);
}
