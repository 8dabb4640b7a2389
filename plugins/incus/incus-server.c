/* SPDX-License-Identifier: MIT */
#include "incus-server.h"

#include <pwd.h>
#include <unistd.h>

#include "incus-error.h"

#define FALLBACK_PROJECT "errand-box"
#define MAX_CANDIDATES 3

typedef enum {
    STEP_SERVER,
    STEP_PROJECT,
    STEP_PROFILE,
    STEP_POOLS,
    STEP_POOL,
} Step;

typedef struct {
    IncusClient *client; /* (owned) */
    IncusDeadline *deadline;
    char *configured_pool;
    char *candidates[MAX_CANDIDATES]; /* projects to try, in order */
    guint candidate;
    Step step;
    IncusServer *server;
} Find;

static void find_step(GTask *task);

void
incus_settings_free(IncusSettings *self)
{
    if (self == NULL)
        return;
    g_free(self->project);
    g_free(self->pool);
    g_free(self->image);
    g_free(self->account);
    g_free(self);
}

IncusServer *
incus_server_ref(IncusServer *self)
{
    g_atomic_ref_count_inc(&self->refs);
    return self;
}

void
incus_server_unref(IncusServer *self)
{
    if (!g_atomic_ref_count_dec(&self->refs))
        return;
    g_free(self->name);
    g_free(self->version);
    g_free(self->project);
    g_free(self->pool);
    g_free(self->pool_driver);
    g_clear_pointer(&self->environment, json_node_unref);
    g_clear_pointer(&self->project_config, json_node_unref);
    g_free(self);
}

static void
find_free(gpointer data)
{
    Find *find = data;
    g_clear_object(&find->client);
    incus_deadline_unref(find->deadline);
    g_free(find->configured_pool);
    for (guint i = 0; i < MAX_CANDIDATES; i++)
        g_free(find->candidates[i]);
    g_clear_pointer(&find->server, incus_server_unref);
    g_free(find);
}

gboolean
incus_server_check(JsonObject *metadata, GError **error)
{
    JsonObject *environment = eb_json_get_object(metadata, "environment");
    const char *auth = eb_json_get_string(metadata, "auth");
    const char *server = eb_json_get_string(environment, "server");
    if (g_strcmp0(auth, "trusted") != 0) {
        eb_set_error(error, EB_ERROR_UNAUTHENTICATED, "incus.untrusted",
                     "incusd does not trust this client (add its certificate, or use a socket)");
        return FALSE;
    }
    if (g_strcmp0(server, "lxd") == 0) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "incus.lxd",
                     "the server is LXD, which is not supported: it lacks security.guestapi and start on create, and "
                     "its restrictions were not tested (install Incus)");
        return FALSE;
    }
    if (g_strcmp0(server, "incus") != 0) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "incus.server", "the server does not say that it is Incus");
        return FALSE;
    }
    return TRUE;
}

static void
find_fail(GTask *task, GError *error)
{
    g_task_return_error(task, error);
    g_object_unref(task);
}

static void
find_done(GTask *task)
{
    Find *find = g_task_get_task_data(task);
    g_task_return_pointer(task, g_steal_pointer(&find->server), (GDestroyNotify)incus_server_unref);
    g_object_unref(task);
}

static JsonNode *
member_copy(JsonObject *object, const char *member)
{
    JsonNode *node = eb_json_get_node(object, member);
    return node != NULL ? json_node_ref(node) : NULL;
}

static gboolean
take_server(Find *find, IncusReply *reply, GError **error)
{
    JsonObject *metadata = incus_reply_object(reply);
    if (!incus_server_check(metadata, error))
        return FALSE;
    JsonObject *environment = eb_json_get_object(metadata, "environment");
    const char *version = eb_json_get_string(environment, "server_version");
    find->server->name = g_strdup("incus");
    find->server->version = g_strdup(version != NULL ? version : "unknown");
    find->server->environment = member_copy(metadata, "environment");
    find->step = STEP_PROJECT;
    return TRUE;
}

/* A project that this client may not see answers like one that is not there. */
static gboolean
next_candidate(Find *find, const GError *error)
{
    if (error->code != EB_ERROR_NOT_FOUND && error->code != EB_ERROR_DENIED)
        return FALSE;
    return find->candidates[++find->candidate] != NULL;
}

static void
take_project(Find *find, IncusReply *reply)
{
    find->server->project = g_strdup(find->candidates[find->candidate]);
    find->server->project_config = member_copy(incus_reply_object(reply), "config");
    incus_client_set_project(find->client, find->server->project);
    if (find->configured_pool != NULL) {
        find->server->pool = g_strdup(find->configured_pool);
        find->step = STEP_POOL;
    } else {
        find->step = STEP_PROFILE;
    }
}

static void
take_profile(Find *find, IncusReply *reply)
{
    JsonObject *devices = reply != NULL ? eb_json_get_object(incus_reply_object(reply), "devices") : NULL;
    find->step = STEP_POOLS;
    if (devices == NULL)
        return;
    JsonObjectIter iter;
    const char *name;
    json_object_iter_init_ordered(&iter, devices);
    while (json_object_iter_next_ordered(&iter, &name, NULL)) {
        JsonObject *device = eb_json_get_object(devices, name);
        const char *pool = eb_json_get_string(device, "pool");
        if (g_strcmp0(eb_json_get_string(device, "path"), "/") == 0 && pool != NULL) {
            g_free(find->server->pool);
            find->server->pool = g_strdup(pool);
            find->step = STEP_POOL;
        }
    }
}

static gboolean
take_pools(Find *find, IncusReply *reply, GError **error)
{
    JsonNode *list = reply != NULL ? reply->metadata : NULL;
    JsonArray *pools = list != NULL && JSON_NODE_HOLDS_ARRAY(list) ? json_node_get_array(list) : NULL;
    const char *url = pools != NULL && json_array_get_length(pools) == 1 ? eb_json_array_string(pools, 0) : NULL;
    if (url == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "incus.no-pool",
                     "project %s names no storage pool (set [plugin.incus] pool, or run: errand-box setup)",
                     find->server->project);
        return FALSE;
    }
    find->server->pool = g_path_get_basename(url);
    find->step = STEP_POOL;
    return TRUE;
}

static void
on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = user_data;
    Find *find = g_task_get_task_data(task);
    g_autoptr(GError) error = NULL;
    g_autoptr(IncusReply) reply = incus_client_request_finish(INCUS_CLIENT(source), result, &error);
    gboolean lost = error != NULL && (error->code == EB_ERROR_UNAVAILABLE || error->code == EB_ERROR_TIMEOUT ||
                                      error->code == EB_ERROR_CANCELLED);
    GError *failure = NULL;

    if (reply == NULL && (lost || find->step == STEP_SERVER)) {
        find_fail(task, g_steal_pointer(&error));
        return;
    }
    switch (find->step) {
    case STEP_SERVER:
        take_server(find, reply, &failure);
        break;
    case STEP_PROJECT:
        if (reply != NULL)
            take_project(find, reply);
        else if (!next_candidate(find, error))
            failure =
                eb_error_new(EB_ERROR_NOT_FOUND, "incus.project-missing",
                             "incusd has no project %s for this account (run: errand-box setup)", find->candidates[0]);
        break;
    case STEP_PROFILE:
        take_profile(find, reply);
        break;
    case STEP_POOLS:
        take_pools(find, reply, &failure);
        break;
    case STEP_POOL:
        if (reply != NULL)
            find->server->pool_driver = g_strdup(eb_json_get_string(incus_reply_object(reply), "driver"));
        else if (error->code == EB_ERROR_NOT_FOUND)
            failure = eb_error_new(EB_ERROR_NOT_FOUND, "incus.pool-missing",
                                   "incusd has no storage pool %s (set [plugin.incus] pool)", find->server->pool);
        if (failure == NULL) {
            find_done(task);
            return;
        }
        break;
    }
    if (failure != NULL)
        find_fail(task, failure);
    else
        find_step(task);
}

static void
find_step(GTask *task)
{
    Find *find = g_task_get_task_data(task);
    g_autofree char *path = NULL;
    switch (find->step) {
    case STEP_SERVER:
        path = g_strdup("/1.0");
        break;
    case STEP_PROJECT:
        path = incus_client_path(find->client, NULL, "projects", find->candidates[find->candidate], NULL);
        break;
    case STEP_PROFILE:
        path = incus_client_path(find->client, NULL, "profiles", "default", NULL);
        break;
    case STEP_POOLS:
        path = incus_client_path(find->client, NULL, "storage-pools", NULL);
        break;
    case STEP_POOL:
        path = incus_client_path(find->client, NULL, "storage-pools", find->server->pool, NULL);
        break;
    }
    incus_client_request_async(find->client, "GET", path, NULL, find->deadline, on_answer, task);
}

static void
add_candidates(Find *find, const IncusSettings *settings)
{
    guint n = 0;
    if (settings->project != NULL && *settings->project != '\0') {
        find->candidates[n++] = g_strdup(settings->project);
        return;
    }
    if (incus_client_get_endpoint(find->client)->per_user) {
        find->candidates[n++] = g_strdup_printf("user-%u", (guint)geteuid());
        return;
    }
    const struct passwd *entry = settings->account != NULL ? getpwnam(settings->account) : NULL;
    if (entry != NULL && entry->pw_uid != 0)
        find->candidates[n++] = g_strdup_printf("user-%u", (guint)entry->pw_uid);
    find->candidates[n++] = g_strdup(FALLBACK_PROJECT);
}

void
incus_server_find_async(IncusClient *client, const IncusSettings *settings, IncusDeadline *deadline,
                        GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(client, NULL, callback, user_data);
    Find *find = g_new0(Find, 1);
    g_task_set_source_tag(task, incus_server_find_async);
    g_task_set_task_data(task, find, find_free);
    find->client = g_object_ref(client);
    find->deadline = incus_deadline_ref(deadline);
    if (settings->pool != NULL && *settings->pool != '\0')
        find->configured_pool = g_strdup(settings->pool);
    find->server = g_new0(IncusServer, 1);
    g_atomic_ref_count_init(&find->server->refs);
    add_candidates(find, settings);
    find_step(task);
}

IncusServer *
incus_server_find_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_server_find_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
