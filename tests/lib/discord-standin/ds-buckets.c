/* SPDX-License-Identifier: MIT */

#include "ds-buckets.h"

#include <string.h>

#define GLOBAL_LIMIT 50

typedef struct {
    guint used;
    gint64 ends_us;
} Window;

typedef struct {
    guint limit;
    guint window_ms;
} Size;

struct _DsBuckets {
    DsWorld *world;      /* (unowned) */
    GHashTable *windows; /* bucket and top-level id -> Window */
    GHashTable *sizes;   /* bucket -> Size: where a test has changed it */
    Window global;
    guint global_limit;
};

DsBuckets *
ds_buckets_new(DsWorld *world)
{
    DsBuckets *self = g_new0(DsBuckets, 1);

    self->world = world;
    self->windows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->global_limit = GLOBAL_LIMIT;
    return self;
}

void
ds_buckets_free(DsBuckets *self)
{
    g_hash_table_unref(self->windows);
    g_hash_table_unref(self->sizes);
    g_free(self);
}

void
ds_buckets_configure(DsBuckets *self, const char *bucket, guint limit, guint window_ms)
{
    Size *size;

    if (strcmp(bucket, "global") == 0) {
        self->global_limit = limit;
        return;
    }
    size = g_new0(Size, 1);
    size->limit = limit;
    size->window_ms = window_ms;
    g_hash_table_insert(self->sizes, g_strdup(bucket), size);
}

static void
refuse_limited(DsRequest *request, double seconds, gboolean global)
{
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(request->message);
    g_autofree char *after = g_strdup_printf("%.0f", seconds + 0.999);

    soup_message_headers_replace(headers, "Retry-After", after);
    soup_message_headers_replace(headers, "X-RateLimit-Scope", global ? "global" : "user");
    if (global)
        soup_message_headers_replace(headers, "X-RateLimit-Global", "true");
    ds_answer_object(
        request, 429,
        ds_object("s:message", "You are being rate limited.", "d:retry_after", seconds, "b:global", global, NULL));
    ds_world_count(request->world, "limited");
}

static gboolean
take(Window *window, guint limit, guint window_ms, double *left_s)
{
    const gint64 now = g_get_monotonic_time();

    if (window->ends_us <= now) {
        window->used = 0;
        window->ends_us = now + (gint64)window_ms * 1000;
    }
    *left_s = (double)(window->ends_us - now) / G_USEC_PER_SEC;
    if (window->used >= limit)
        return FALSE;
    window->used++;
    return TRUE;
}

static void
set_headers(DsRequest *request, const char *hash, guint limit, guint left, double seconds)
{
    SoupMessageHeaders *headers = soup_server_message_get_response_headers(request->message);
    g_autofree char *limit_text = g_strdup_printf("%u", limit);
    g_autofree char *left_text = g_strdup_printf("%u", left);
    g_autofree char *reset = g_strdup_printf("%.3f", (double)g_get_real_time() / G_USEC_PER_SEC + seconds);
    g_autofree char *after = g_strdup_printf("%.3f", seconds);

    soup_message_headers_replace(headers, "X-RateLimit-Limit", limit_text);
    soup_message_headers_replace(headers, "X-RateLimit-Remaining", left_text);
    soup_message_headers_replace(headers, "X-RateLimit-Reset", reset);
    soup_message_headers_replace(headers, "X-RateLimit-Reset-After", after);
    soup_message_headers_replace(headers, "X-RateLimit-Bucket", hash);
}

gboolean
ds_buckets_take(DsBuckets *self, DsRequest *request)
{
    const DsRoute *route = request->route;
    const char *bucket = route->bucket != NULL ? route->bucket : route->template;
    Size *size = g_hash_table_lookup(self->sizes, bucket);
    const guint limit = size != NULL ? size->limit : route->limit;
    const guint window_ms = size != NULL ? size->window_ms : route->window_ms;
    g_autofree char *named = route->bucket != NULL ? g_strdup(bucket) : g_strdup_printf("%s %s", route->method, bucket);
    g_autofree char *hash = NULL;
    g_autofree char *key = NULL;
    Window *window;
    double left_s = 0;
    gboolean free_place;

    if (!route->plain && !take(&self->global, self->global_limit, 1000, &left_s)) {
        refuse_limited(request, left_s, TRUE);
        return FALSE;
    }
    if (limit == 0)
        return TRUE;
    hash = g_compute_checksum_for_string(G_CHECKSUM_MD5, named, -1);
    key = g_strdup_printf("%s:%s", hash,
                          route->plain               ? request->args[1]
                          : request->args[0] != NULL ? request->args[0]
                                                     : "");
    window = g_hash_table_lookup(self->windows, key);
    if (window == NULL) {
        window = g_new0(Window, 1);
        g_hash_table_insert(self->windows, g_steal_pointer(&key), window);
    }
    free_place = take(window, limit, window_ms, &left_s);
    set_headers(request, hash, limit, limit - window->used, left_s);
    if (!free_place)
        refuse_limited(request, left_s, FALSE);
    return free_place;
}
