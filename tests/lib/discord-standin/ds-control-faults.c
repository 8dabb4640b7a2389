/* SPDX-License-Identifier: MIT */

#include "ds-buckets.h"
#include "ds-control.h"
#include "ds-gateway.h"

#include <string.h>

static gboolean
known(const char *const *names, const char *kind, GError **error)
{
    if (kind != NULL && g_strv_contains(names, kind))
        return TRUE;
    eb_set_error(error, EB_ERROR_INVALID, NULL, "there is no fault %s", kind);
    return FALSE;
}

static JsonObject *
add_fault(DsWorld *world, JsonObject *args, GError **error)
{
    static const char *const kinds[] = {"429-user", "429-global", "429-shared", "429-html", "429-empty", "500",
                                        "502",      "401",        "50013",      "redirect", "bad-json",  "reset",
                                        "half",     "delay",      "lost",       "hang",     NULL};
    const char *path = eb_json_get_string(args, "path");
    DsFault *fault;
    GRegex *regex = NULL;

    if (!known(kinds, eb_json_get_string(args, "kind"), error))
        return NULL;
    if (path != NULL) {
        regex = g_regex_new(path, 0, 0, error);
        if (regex == NULL)
            return NULL;
    }
    fault = g_new0(DsFault, 1);
    fault->method = g_strdup(eb_json_get_string(args, "method"));
    fault->path = regex;
    fault->kind = g_strdup(eb_json_get_string(args, "kind"));
    fault->count = (guint)eb_json_get_int(args, "count", 1);
    fault->skip = (guint)eb_json_get_int(args, "skip", 0);
    fault->seconds = eb_json_get_double(args, "seconds", 1);
    g_ptr_array_add(world->faults, fault);
    return json_object_new();
}

static JsonObject *
add_event_fault(DsWorld *world, JsonObject *args, GError **error)
{
    static const char *const kinds[] = {"drop", "duplicate", "delay", "reorder", NULL};
    DsEventFault *fault;

    if (!known(kinds, eb_json_get_string(args, "kind"), error))
        return NULL;
    fault = g_new0(DsEventFault, 1);
    fault->type = g_strdup(eb_json_get_string(args, "type"));
    fault->kind = g_strdup(eb_json_get_string(args, "kind"));
    fault->count = (guint)eb_json_get_int(args, "count", 1);
    fault->skip = (guint)eb_json_get_int(args, "skip", 0);
    fault->delay_ms = (guint)eb_json_get_int(args, "delay_ms", 100);
    g_ptr_array_add(world->gateway->faults, fault);
    return json_object_new();
}

static JsonObject *
clear_faults(DsWorld *world, JsonObject *args, GError **error)
{
    g_ptr_array_set_size(world->faults, 0);
    g_ptr_array_set_size(world->gateway->faults, 0);
    return json_object_new();
}

/* --- the gateway --- */

static void
take_text(JsonObject *args, const char *name, char **value)
{
    if (!json_object_has_member(args, name))
        return;
    g_free(*value);
    *value = g_strdup(eb_json_get_string(args, name));
}

static JsonObject *
configure_gateway(DsWorld *world, JsonObject *args, GError **error)
{
    DsGateway *gateway = world->gateway;

    gateway->heartbeat_ms = (guint)eb_json_get_int(args, "heartbeat_ms", gateway->heartbeat_ms);
    gateway->no_ack = eb_json_get_bool(args, "no_ack", gateway->no_ack);
    gateway->no_hello = eb_json_get_bool(args, "no_hello", gateway->no_hello);
    gateway->no_ready = eb_json_get_bool(args, "no_ready", gateway->no_ready);
    gateway->shards = (guint)eb_json_get_int(args, "shards", gateway->shards);
    gateway->remaining = (guint)eb_json_get_int(args, "remaining", gateway->remaining);
    gateway->reset_after_ms = (guint)eb_json_get_int(args, "reset_after_ms", gateway->reset_after_ms);
    gateway->identify_interval_ms = (guint)eb_json_get_int(args, "identify_interval_ms", gateway->identify_interval_ms);
    gateway->resume_window_ms = (guint)eb_json_get_int(args, "resume_window_ms", gateway->resume_window_ms);
    gateway->padding = (guint)eb_json_get_int(args, "padding", gateway->padding);
    take_text(args, "url", &gateway->url);
    take_text(args, "resume_url", &gateway->resume_url);
    take_text(args, "resume", &gateway->resume);
    take_text(args, "identify", &gateway->identify);
    return json_object_new();
}

static JsonObject *
drop(DsWorld *world, JsonObject *args, GError **error)
{
    const gint64 code = eb_json_get_int(args, "code", 0);

    return ds_object("i:dropped", (int)ds_gateway_drop(world->gateway, (guint)code), NULL);
}

static JsonObject *
send_op(DsWorld *world, JsonObject *args, GError **error)
{
    JsonNode *data = eb_json_get_node(args, "d");

    ds_gateway_send_op(world->gateway, (int)eb_json_get_int(args, "op", 0), data != NULL ? json_node_copy(data) : NULL);
    return json_object_new();
}

static JsonObject *
send_event(DsWorld *world, JsonObject *args, GError **error)
{
    JsonObject *data = eb_json_get_object(args, "d");

    if (eb_json_get_string(args, "type") == NULL) {
        eb_set_error(error, EB_ERROR_INVALID, NULL, "an event needs a type");
        return NULL;
    }
    ds_gateway_dispatch(world->gateway, eb_json_get_string(args, "type"),
                        data != NULL ? ds_copy(data) : json_object_new(), 0, NULL);
    return json_object_new();
}

static JsonObject *
forget_sessions(DsWorld *world, JsonObject *args, GError **error)
{
    ds_gateway_forget(world->gateway);
    return json_object_new();
}

static JsonObject *
pause_events(DsWorld *world, JsonObject *args, GError **error)
{
    if (world->gateway->paused == NULL)
        world->gateway->paused = g_ptr_array_new_with_free_func((GDestroyNotify)ds_event_free);
    return json_object_new();
}

static JsonObject *
release_events(DsWorld *world, JsonObject *args, GError **error)
{
    ds_gateway_release(world->gateway);
    return json_object_new();
}

/* --- the network --- */

static JsonObject *
refuse(DsWorld *world, JsonObject *args, GError **error)
{
    if (world->refuse != NULL)
        world->refuse(world->hooks_data, eb_json_get_double(args, "seconds", 1));
    if (eb_json_get_bool(args, "drop", FALSE))
        ds_gateway_drop(world->gateway, 0);
    return json_object_new();
}

static JsonObject *
silence(DsWorld *world, JsonObject *args, GError **error)
{
    world->silent = TRUE;
    return json_object_new();
}

static JsonObject *
speak(DsWorld *world, JsonObject *args, GError **error)
{
    world->silent = FALSE;
    /* Nothing of what was taken meanwhile comes back to life. */
    ds_gateway_drop(world->gateway, 0);
    if (world->speak != NULL)
        world->speak(world->hooks_data);
    return json_object_new();
}

/* --- limits, tokens --- */

static JsonObject *
set_bucket(DsWorld *world, JsonObject *args, GError **error)
{
    const char *bucket = eb_json_get_string(args, "bucket");

    if (bucket == NULL) {
        eb_set_error(error, EB_ERROR_INVALID, NULL,
                     "name a bucket: a route's template, reactions, threads, webhook, global");
        return NULL;
    }
    ds_buckets_configure(world->buckets, bucket, (guint)eb_json_get_int(args, "limit", 5),
                         (guint)eb_json_get_int(args, "window_ms", 5000));
    return json_object_new();
}

static JsonObject *
set_renames(DsWorld *world, JsonObject *args, GError **error)
{
    world->rename_window_s = eb_json_get_double(args, "window_s", 600);
    return json_object_new();
}

static JsonObject *
revoke_token(DsWorld *world, JsonObject *args, GError **error)
{
    world->token_revoked = eb_json_get_bool(args, "revoked", TRUE);
    return json_object_new();
}

static JsonObject *
age_interaction(DsWorld *world, JsonObject *args, GError **error)
{
    DsInteraction *interaction = ds_world_interaction(world, eb_json_get_string(args, "id"));

    if (interaction == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, NULL, "there is no such interaction");
        return NULL;
    }
    interaction->made_us -= (gint64)(eb_json_get_double(args, "seconds", 0) * G_USEC_PER_SEC);
    return json_object_new();
}

static JsonObject *
expire_files(DsWorld *world, JsonObject *args, GError **error)
{
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, world->files);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        ((DsFile *)value)->expires_s = 0;
    return json_object_new();
}

const DsVerb ds_verbs_faults[] = {
    {"fault", add_fault},
    {"event-fault", add_event_fault},
    {"clear-faults", clear_faults},
    {"gateway-config", configure_gateway},
    {"drop", drop},
    {"op", send_op},
    {"event", send_event},
    {"forget-sessions", forget_sessions},
    {"pause-events", pause_events},
    {"release-events", release_events},
    {"refuse", refuse},
    {"silence", silence},
    {"speak", speak},
    {"bucket", set_bucket},
    {"renames", set_renames},
    {"revoke-token", revoke_token},
    {"age-interaction", age_interaction},
    {"expire-files", expire_files},
    {NULL, NULL},
};
