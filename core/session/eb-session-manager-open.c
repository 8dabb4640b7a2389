/* SPDX-License-Identifier: MIT */
/* Opening a state root: locks, ids, database, and what dead runs left. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-manager-private.h"

#include "core/plugin/eb-credentials.h"
#include "core/session/eb-project-name.h"
#include "core/session/eb-session-dirs.h"
#include "core/session/eb-session-sweep.h"
#include "core/state/eb-restore.h"

#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long a try waits for its own root: 2 s in all; a service for its state directory: 200 ms. */
#define SETTLE_TRIES 20
#define LOOK_TRIES 2
#define SETTLE_PAUSE_US 100000

typedef struct {
    EbSessionParts *parts;
    EbSessionManager *manager;
    GPtrArray *records;
    GPtrArray *rules; /* (element-type EbSessionRule) */
} EbOpening;

typedef struct {
    EbSessionParts *parts; /* the worker fills uid, gid and home_id before anybody else sees them */
    EbDirLock *state_lock, *run_lock;
} EbGround;

static void
opening_free(gpointer data)
{
    EbOpening *opening = data;
    g_clear_pointer(&opening->records, g_ptr_array_unref);
    g_clear_pointer(&opening->rules, g_ptr_array_unref);
    g_clear_object(&opening->manager);
    eb_session_parts_unref(opening->parts);
    g_free(opening);
}

static void
ground_free(gpointer data)
{
    EbGround *ground = data;
    eb_dir_lock_release(ground->run_lock);
    eb_dir_lock_release(ground->state_lock);
    eb_session_parts_unref(ground->parts);
    g_free(ground);
}

/* --- in the worker --- */

static gboolean
find_account(EbSessionParts *parts, GError **error)
{
    parts->uid = geteuid();
    parts->gid = getegid();
    if (parts->uid != 0)
        return TRUE;
    const char *account = eb_config_get_account(parts->config);
    struct passwd entry, *found = NULL;
    char buffer[4096];
    int failed = getpwnam_r(account, &entry, buffer, sizeof buffer, &found);
    if (failed != 0 || found == NULL || found->pw_uid == 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "account.missing",
                     "the account \"%s\" of [service] account %s: guests never share the identity of root (run setup)",
                     account, found != NULL ? "is root" : "does not exist");
        return FALSE;
    }
    parts->uid = found->pw_uid;
    parts->gid = found->pw_gid;
    return TRUE;
}

static gboolean
make_path(const char *path, EbSessionParts *parts, GError **error)
{
    if (g_file_test(path, G_FILE_TEST_IS_DIR))
        return TRUE;
    g_autofree char *parent = g_path_get_dirname(path);
    if (g_str_equal(parent, path))
        return TRUE;
    return make_path(parent, parts, error) && eb_session_dirs_make_private(path, parts->uid, parts->gid, error);
}

/* One random name a state directory; made once. */
static char *
find_home_id(const char *locks_dir, GError **error)
{
    g_autofree char *path = g_build_filename(locks_dir, EB_SESSION_HOME_ID_FILE, NULL);
    char *known = eb_session_home_id_read(locks_dir);
    if (known != NULL)
        return known;
    g_autofree char *fresh = eb_session_id_new();
    GError *failed = NULL;
    if (!g_file_set_contents_full(path, fresh, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, &failed)) {
        eb_error_convert(&failed, "session.directory", NULL);
        g_propagate_error(error, failed);
        return NULL;
    }
    return g_steal_pointer(&fresh);
}

/* Another try may hold the lock of a dead one for the moments it takes to settle it; whoever looks whether a service
 * lives holds its lock for microseconds. */
static EbDirLock *
take_state_lock(EbSessionParts *parts, GError **error)
{
    gboolean service = g_strcmp0(parts->state_root, eb_config_get_state_dir(parts->config)) == 0;
    for (guint tries = service ? SETTLE_TRIES - LOOK_TRIES : 0;; tries++) {
        GError *local = NULL;
        EbDirLock *lock = eb_dir_lock_take(parts->state_root, EB_STATE_LOCK_FILE, &local);
        if (lock != NULL)
            return lock;
        if (tries >= SETTLE_TRIES || !g_error_matches(local, EB_ERROR, EB_ERROR_LOCKED)) {
            g_propagate_error(error, local);
            return NULL;
        }
        g_error_free(local);
        g_usleep(SETTLE_PAUSE_US); /* in the worker */
    }
}

/* Directories without a row go in the sweep: without a database that would be all of them. */
static gboolean
check_not_lost(const char *state_root, GError **error)
{
    g_autofree char *database = g_build_filename(state_root, EB_STATE_DATABASE_FILE, NULL);
    struct stat info;
    if (lstat(database, &info) == 0 || errno != ENOENT)
        return TRUE;
    g_autoptr(GPtrArray) ids = eb_session_dirs_list(state_root);
    if (ids->len == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "state.missing",
                 "the database %s is gone, but %u sessions have directories in %s/sessions (nothing was changed; "
                 "errand-box maint restore FILE --replace brings back a backup and keeps them aside)",
                 database, ids->len, state_root);
    return FALSE;
}

static gboolean
prepare_ground(EbGround *ground, GError **error)
{
    EbSessionParts *parts = ground->parts;
    if (!find_account(parts, error) || !make_path(parts->state_root, parts, error) ||
        !eb_session_dirs_make_private(parts->state_root, parts->uid, parts->gid, error) ||
        !make_path(parts->locks_dir, parts, error))
        return FALSE;
    ground->state_lock = take_state_lock(parts, error);
    if (ground->state_lock == NULL) {
        g_prefix_error(error, "another errand-box works on this state directory: ");
        return FALSE;
    }
    eb_log_step("start.locked", "EB_REASON", NULL);
    eb_dir_lock_set_id(ground->state_lock, parts->run_id);
    if (!eb_restore_settle(parts->state_root, NULL, error) || !check_not_lost(parts->state_root, error))
        return FALSE;
    parts->home_id = find_home_id(parts->locks_dir, error);
    if (parts->home_id == NULL)
        return FALSE;
    g_autofree char *name = g_strdup_printf("run-%s.lock", parts->run_id);
    ground->run_lock = eb_dir_lock_take(parts->locks_dir, name, error);
    return ground->run_lock != NULL;
}

static void
prepare_in_worker(GTask *task)
{
    EbGround *ground = g_task_get_task_data(task);
    GError *error = NULL;
    if (prepare_ground(ground, &error))
        g_task_return_boolean(task, TRUE);
    else
        g_task_return_error(task, error);
}

/* --- in the main thread --- */

static void
open_failed(GTask *task, GError *error)
{
    EbOpening *opening = g_task_get_task_data(task);
    if (opening->parts->store != NULL)
        eb_store_close(opening->parts->store);
    g_task_return_error(task, error);
    g_object_unref(task);
}

static void
hand_over(GTask *task)
{
    EbOpening *opening = g_task_get_task_data(task);
    EbSessionManager *manager = opening->manager;
    eb_log_step("start.swept", "EB_REASON", NULL);
    for (guint i = 0; i < opening->records->len; i++) {
        EbSessionRecord *record = opening->records->pdata[i];
        g_hash_table_replace(manager->records, record->id, eb_session_record_ref(record));
    }
    eb_host_desk_load(manager->desk, opening->rules);
    if (!manager->upkeep) {
        eb_session_manager_connect_backend(manager);
        eb_session_manager_connect_questions(manager);
    }
    g_task_return_pointer(task, g_object_ref(manager), g_object_unref);
    g_object_unref(task);
}

static void
on_swept(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    if (eb_session_sweep_open_finish(result, &opening->manager->swept, &error))
        hand_over(task);
    else
        open_failed(task, error);
}

static void
on_rules(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    opening->rules = eb_session_rules_load_finish(EB_STORE(source), result, &error);
    if (opening->rules == NULL) {
        open_failed(task, error);
        return;
    }
    if (opening->manager->upkeep)
        hand_over(task);
    else
        eb_session_sweep_open_async(opening->parts, opening->records, on_swept, task);
}

static void
on_loaded(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    opening->records = eb_session_store_load_finish(EB_STORE(source), result, &error);
    if (opening->records == NULL) {
        open_failed(task, error);
        return;
    }
    eb_session_rules_load_async(opening->parts->store, on_rules, task);
}

static void
on_usage(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    if (!eb_budget_desk_load_finish(EB_BUDGET_DESK(source), result, &error)) {
        open_failed(task, error);
        return;
    }
    eb_session_store_load_async(opening->parts->store, NULL, on_loaded, task);
}

static void
on_store(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    GError *error = NULL;
    opening->parts->store = eb_store_open_finish(result, &error);
    if (opening->parts->store == NULL) {
        open_failed(task, error);
        return;
    }
    eb_log_step("start.store", "EB_REASON", NULL);
    opening->parts->egress = eb_egress_log_new(opening->parts->store);
    opening->parts->budget = eb_budget_desk_new(opening->parts->store, opening->parts->config);
    eb_budget_desk_load_async(opening->parts->budget, on_usage, task);
}

static void
on_prepared(GObject *source, GAsyncResult *result, gpointer user_data)
{
    GTask *task = G_TASK(user_data);
    EbOpening *opening = g_task_get_task_data(task);
    EbGround *ground = g_task_get_task_data(G_TASK(result));
    GError *error = NULL;
    if (!g_task_propagate_boolean(G_TASK(result), &error)) {
        open_failed(task, error);
        return;
    }
    opening->manager->state_lock = g_steal_pointer(&ground->state_lock);
    opening->manager->run_lock = g_steal_pointer(&ground->run_lock);
    g_autofree char *path = g_build_filename(opening->parts->state_root, EB_STATE_DATABASE_FILE, NULL);
    eb_store_open_async(path, NULL, on_store, task);
}

static void
on_credential_changed(EbCredentials *credentials, const char *name, gpointer user_data)
{
    eb_session_manager_keys_changed(user_data, name);
}

static void
open_with(EbSessionParts *parts, const char *state_root, gboolean upkeep, GCancellable *cancellable,
          GAsyncReadyCallback callback, gpointer user_data)
{
    const EbSessionConfig *config = eb_config_get_session(parts->config);
    parts->state_root = g_strdup(state_root);
    parts->locks_dir = g_build_filename(eb_config_get_state_dir(parts->config), "locks", NULL);
    parts->run_id = eb_session_id_new();
    parts->disk = eb_worker_new("eb-disk", 0);
    parts->live = eb_admission_new("session", config->max_live, config->max_queue, config->max_queue_wait_ms);
    parts->turns = eb_admission_new("turn", config->max_turns, config->max_queue, config->max_queue_wait_ms);
    if (parts->gaps == NULL)
        parts->gaps = eb_gap_check_new(parts->backend, eb_config_get_accept_degraded(parts->config));
    if (parts->image == NULL) {
        g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(parts->config, config->backend);
        parts->image = eb_config_section_get_string(section, "image", "errand-box/guest", NULL);
    }
    EbOpening *opening = g_new0(EbOpening, 1);
    opening->parts = parts;
    opening->manager = g_object_new(EB_TYPE_SESSION_MANAGER, NULL);
    opening->manager->parts = eb_session_parts_ref(parts);
    opening->manager->upkeep = upkeep;
    EbCredentials *credentials = parts->owner != NULL && EB_IS_PLUGIN_REGISTRY(parts->owner)
                                     ? eb_credentials_from_registry(EB_PLUGIN_REGISTRY(parts->owner))
                                     : NULL;
    if (credentials != NULL)
        g_signal_connect_object(credentials, "changed", G_CALLBACK(on_credential_changed), opening->manager, 0);
    GTask *task = g_task_new(NULL, cancellable, callback, user_data);
    g_task_set_source_tag(task, eb_session_manager_open_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, opening, opening_free);
    EbGround *ground = g_new0(EbGround, 1);
    ground->parts = eb_session_parts_ref(parts);
    GTask *job = g_task_new(NULL, NULL, on_prepared, task);
    g_task_set_task_data(job, ground, ground_free);
    eb_worker_run(parts->disk, job, prepare_in_worker);
}

void
eb_session_manager_open_with_async(EbSessionParts *parts, const char *state_root, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
    open_with(parts, state_root, FALSE, cancellable, callback, user_data);
}

void
eb_session_manager_open_upkeep_async(EbConfig *config, EbPaths *paths, EbContainerBackend *backend,
                                     GAsyncReadyCallback callback, gpointer user_data)
{
    EbSessionParts *parts = eb_session_parts_new();
    parts->config = g_object_ref(config);
    parts->paths = paths != NULL ? g_object_ref(paths) : NULL;
    parts->backend = g_object_ref(backend);
    parts->broker = &EB_BROKER_OPS_DEFAULT;
    open_with(parts, eb_config_get_state_dir(config), TRUE, NULL, callback, user_data);
}

static void
on_credential(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    GError *error = NULL;
    EbSecret *secret = eb_credentials_lookup_finish(EB_CREDENTIALS(source), result, &error);
    if (secret == NULL)
        g_task_return_error(task, error);
    else
        g_task_return_pointer(task, secret, (GDestroyNotify)eb_secret_unref);
}

static void
lookup_credential(const char *name, GTask *task, gpointer user_data)
{
    EbCredentials *credentials = eb_credentials_from_registry(EB_PLUGIN_REGISTRY(user_data));
    if (credentials == NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_CONFIG, "credential.no-store",
                                               "credential %s is needed and no credential store is enabled", name));
        g_object_unref(task);
        return;
    }
    eb_credentials_lookup_async(credentials, name, g_task_get_cancellable(task), on_credential, task);
}

static EbContainerBackend *
find_backend(EbPluginRegistry *registry, const char *name, GError **error)
{
    const EbPluginRecord *record = NULL;
    GObject *found = eb_plugin_registry_find(registry, EB_EXTENSION_CONTAINER_BACKEND, name, &record);
    if (found != NULL && EB_IS_CONTAINER_BACKEND(found))
        return EB_CONTAINER_BACKEND(g_object_ref(found));
    GPtrArray *records = eb_plugin_registry_get_records(registry);
    for (guint i = 0; i < records->len; i++) {
        const EbPluginRecord *plugin = records->pdata[i];
        if (g_str_equal(plugin->name, name) && plugin->error != NULL) {
            eb_set_error(error, EB_ERROR_CONFIG, "backend.failed", "the container backend %s does not work: %s", name,
                         plugin->error->message);
            return NULL;
        }
    }
    eb_set_error(error, EB_ERROR_CONFIG, "backend.missing",
                 "no plugin provides the container backend \"%s\" ([session] backend, [plugins] enabled)", name);
    return NULL;
}

void
eb_session_manager_open_async(EbConfig *config, EbPaths *paths, EbPluginRegistry *registry, const char *state_root,
                              GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_return_if_fail(EB_IS_CONFIG(config) && EB_IS_PLUGIN_REGISTRY(registry) && g_path_is_absolute(state_root));
    GError *error = NULL;
    g_autoptr(EbSessionParts) parts = eb_session_parts_new();
    parts->config = g_object_ref(config);
    parts->paths = g_object_ref(paths);
    parts->broker = &EB_BROKER_OPS_DEFAULT;
    parts->lookup = lookup_credential;
    parts->lookup_data = registry;
    parts->owner = g_object_ref(G_OBJECT(registry));
    parts->backend = find_backend(registry, eb_config_get_session(config)->backend, &error);
    GBytes *launch = parts->backend != NULL ? eb_paths_get_guest_program(paths, "launch", &error) : NULL;
    GBytes *relay = launch != NULL ? eb_paths_get_guest_program(paths, "relay", &error) : NULL;
    if (relay == NULL) {
        g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
        g_task_set_source_tag(task, eb_session_manager_open_async);
        g_task_return_error(task, error);
        return;
    }
    parts->launch = g_bytes_ref(launch);
    parts->relay = g_bytes_ref(relay);
    eb_session_manager_open_with_async(g_steal_pointer(&parts), state_root, cancellable, callback, user_data);
}

EbSessionManager *
eb_session_manager_open_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_session_manager_open_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
