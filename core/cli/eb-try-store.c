/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-try-store.h"

#include "core/base/eb-tree-remove.h"
#include "core/cli/eb-cli-call.h"
#include "core/control/eb-control.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"
#include "core/state/eb-egress-store.h"
#include "core/state/eb-session-store.h"
#include "core/state/eb-transcript.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS (5 * 60 * 1000)

/* NULL without an error: there is no database. */
static EbStore *
open_store(EbCli *cli, const char *root, GError **error)
{
    g_autofree char *path = g_build_filename(root, EB_STATE_DATABASE_FILE, NULL);
    g_auto(EbCliWait) wait = {0};

    if (!g_file_test(path, G_FILE_TEST_IS_REGULAR))
        return NULL;
    eb_store_open_async(path, NULL, eb_cli_wait_ready, &wait);
    EbStore *store = eb_store_open_finish(eb_cli_wait_result(cli, &wait), error);
    return store;
}

static GPtrArray *
load(EbCli *cli, EbStore *store, GError **error)
{
    g_auto(EbCliWait) wait = {0};

    eb_session_store_load_async(store, NULL, eb_cli_wait_ready, &wait);
    GPtrArray *records = eb_session_store_load_finish(store, eb_cli_wait_result(cli, &wait), error);
    return records;
}

static void
close_store(EbStore *store)
{
    if (store == NULL)
        return;
    eb_store_close(store);
    g_object_unref(store);
}

int
eb_try_store_list(EbCli *cli, const char *root, const char *origin, JsonArray *sessions)
{
    g_autoptr(GError) error = NULL;
    EbStore *store = open_store(cli, root, &error);
    g_autoptr(GPtrArray) records = store != NULL ? load(cli, store, &error) : NULL;

    const int code = error != NULL ? eb_cli_fail(cli, root, error) : EB_EXIT_OK;

    for (guint i = 0; records != NULL && i < records->len; i++) {
        JsonObject *object = eb_session_record_to_json(records->pdata[i]);
        if (origin != NULL)
            json_object_set_string_member(object, "origin", origin);
        json_array_add_object_element(sessions, object);
    }
    close_store(store);
    return code;
}

static JsonNode *
read_events(EbCli *cli, EbStore *store, const char *id, gboolean egress, GError **error)
{
    g_auto(EbCliWait) wait = {0};

    if (egress)
        eb_egress_store_read_async(store, id, NULL, eb_cli_wait_ready, &wait);
    else
        eb_transcript_read_async(store, id, NULL, eb_cli_wait_ready, &wait);
    GAsyncResult *result = eb_cli_wait_result(cli, &wait);
    g_autoptr(GPtrArray) events =
        egress ? eb_egress_store_read_finish(store, result, error) : eb_transcript_read_finish(store, result, error);
    if (events == NULL)
        return NULL;
    JsonObject *object = json_object_new();
    JsonArray *list = json_array_new();
    for (guint i = 0; i < events->len; i++)
        json_array_add_element(list, json_node_copy(events->pdata[i]));
    json_object_set_array_member(object, "events", list);
    return eb_control_object(object);
}

static JsonNode *
read_record(EbCli *cli, EbStore *store, const char *root, const char *id, GError **error)
{
    g_autoptr(GPtrArray) records = load(cli, store, error);

    for (guint i = 0; records != NULL && i < records->len; i++) {
        const EbSessionRecord *record = records->pdata[i];
        if (strcmp(record->id, id) != 0)
            continue;
        JsonObject *object = eb_session_record_to_json(record);
        g_autofree char *directory = g_build_filename(root, "sessions", id, NULL);
        json_object_set_string_member(object, "directory", directory);
        json_object_set_string_member(object, "origin", "try");
        return eb_control_object(object);
    }
    if (records != NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "try.session", "there is no record of session \"%s\"", id);
    return NULL;
}

static JsonNode *
pin(EbCli *cli, EbStore *store, const char *id, gboolean pinned, GError **error)
{
    g_autoptr(GPtrArray) records = load(cli, store, error);
    g_auto(EbCliWait) wait = {0};

    for (guint i = 0; records != NULL && i < records->len; i++) {
        EbSessionRecord *record = records->pdata[i];
        if (strcmp(record->id, id) != 0)
            continue;
        record->pinned = pinned;
        eb_session_store_save_async(store, record, NULL, eb_cli_wait_ready, &wait);
        return eb_session_store_finish(store, eb_cli_wait_result(cli, &wait), error)
                   ? eb_control_object(json_object_new())
                   : NULL;
    }
    if (records != NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "try.session", "there is no record of session \"%s\"", id);
    return NULL;
}

static gboolean
check_idle(const char *root, GError **error)
{
    if (!eb_dir_lock_is_held(root, EB_STATE_LOCK_FILE))
        return TRUE;
    eb_set_error(error, EB_ERROR_BUSY, "try.running", "this try is running: end it where it runs (Ctrl-C)");
    return FALSE;
}

JsonNode *
eb_try_store_do(EbCli *cli, const char *root, const char *verb, const char *id, GError **error)
{
    JsonNode *node = NULL;

    if (strcmp(verb, "stop") == 0)
        return check_idle(root, error) ? eb_control_object(json_object_new()) : NULL;
    if (strcmp(verb, "remove") == 0)
        return check_idle(root, error) && eb_try_store_remove_root(root, error) ? eb_control_object(json_object_new())
                                                                                : NULL;
    EbStore *store = open_store(cli, root, error);
    if (store != NULL && g_str_has_suffix(verb, "pin"))
        node = pin(cli, store, id, strcmp(verb, "pin") == 0, error);
    else if (store != NULL && (strcmp(verb, "logs") == 0 || strcmp(verb, "egress") == 0))
        node = read_events(cli, store, id, strcmp(verb, "egress") == 0, error);
    else if (store != NULL)
        node = read_record(cli, store, root, id, error);
    else if (error != NULL && *error == NULL)
        eb_set_error(error, EB_ERROR_NOT_FOUND, "try.session", "%s has no database", root);
    close_store(store);
    return node;
}

gboolean
eb_try_store_remove_root(const char *root, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(root);
    g_autofree char *name = g_path_get_basename(root);
    EbDirLock *lock = eb_dir_lock_take(root, EB_STATE_LOCK_FILE, error);
    guint64 left = 0;
    gboolean good = FALSE;

    if (lock == NULL)
        return FALSE;
    int dir = open(parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        eb_set_error(error, EB_ERROR_DENIED, "try.dir", "%s: %s", parent, g_strerror(errno));
    } else {
        good = eb_tree_remove_at(dir, name, REMOVE_DEADLINE_MS, &left, error);
        close(dir);
    }
    eb_dir_lock_release(lock);
    if (good && left > 0) {
        eb_set_error(error, EB_ERROR_DENIED, "try.left",
                     "%" G_GUINT64_FORMAT " entries of other ids could not be removed (sudo errand-box sessions prune)",
                     left);
        return FALSE;
    }
    return good;
}
