/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "check-context.h"
#include "doctor-checks.h"

static JsonObject *
get_pool(EbHost *host, EbConfigSection *settings, char **name, EbCheckResult **skip)
{
    g_autofree char *request = NULL;
    g_autofree char *missing = NULL;

    *name = dc_pool(settings);
    request = dc_request("/1.0/storage-pools/%s", *name, NULL);
    missing = g_strdup_printf("there is no storage pool %s", *name);
    return dc_get(host, settings, request, missing, skip);
}

static EbCheckResult *
check_pool(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = NULL;
    g_autoptr(JsonObject) pool = get_pool(host, settings, &name, &skip);
    const char *status;

    if (pool == NULL)
        return skip;
    status = eb_json_get_string(pool, "status");
    if (status != NULL && strcmp(status, "Created") != 0)
        return eb_check_result_new(EB_CHECK_FAIL, "pool %s is %s", name, status);
    return eb_check_result_new(EB_CHECK_OK, "pool %s", name);
}

static EbCheckResult *
check_driver(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = NULL;
    g_autoptr(JsonObject) pool = get_pool(host, settings, &name, &skip);
    const char *driver;

    if (pool == NULL) {
        if (skip->status == EB_CHECK_FAIL)
            skip->status = EB_CHECK_SKIPPED;
        return skip;
    }
    driver = eb_json_get_string(pool, "driver");
    if (g_strcmp0(driver, "dir") == 0)
        return eb_check_result_new(EB_CHECK_DEGRADED, "pool %s is a plain directory", name);
    return eb_check_result_new(EB_CHECK_OK, "%s", driver != NULL ? driver : "unknown");
}

/* The daemon's own count of a loop pool ran at 75 % when writes already failed, so the alarm is early. */
static EbCheckResult *
check_pool_space(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *name = dc_pool(settings);
    g_autofree char *request = dc_request("/1.0/storage-pools/%s/resources", name, NULL);
    g_autoptr(JsonObject) resources = dc_get(host, settings, request, NULL, &skip);
    gint64 total, used, percent;

    if (resources == NULL)
        return skip;
    total = eb_json_get_int(eb_json_get_object(resources, "space"), "total", 0);
    used = eb_json_get_int(eb_json_get_object(resources, "space"), "used", 0);
    if (total <= 0)
        return eb_check_result_new(EB_CHECK_SKIPPED, "pool %s does not say how full it is", name);
    percent = (gint64)((double)used * 100 / (double)total);
    if (percent >= 85)
        return eb_check_result_new(EB_CHECK_FAIL, "pool %s is %d %% full", name, (int)percent);
    if (percent >= 70)
        return eb_check_result_new(EB_CHECK_DEGRADED, "pool %s is %d %% full", name, (int)percent);
    return eb_check_result_new(EB_CHECK_OK, "%d %% used", (int)percent);
}

/* A pool in a file of its own; the file is sparse and grows with what is written. */
static char *
loop_file(EbConfigSection *settings)
{
    g_autofree char *dir = dc_daemon_dir(settings);
    g_autofree char *pool = dc_pool(settings);

    return g_strdup_printf("%s/disks/%s.img", dir, pool);
}

/* (transfer full): why there is nothing to judge, when @file is not there. */
static EbCheckResult *
judge_no_file(EbHost *host, EbConfigSection *settings, const GError *error)
{
    g_autofree char *dir = dc_daemon_dir(settings);
    g_autofree char *pool = dc_pool(settings);

    if (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) && eb_host_exists(host, dir))
        return eb_check_result_new(EB_CHECK_OK, "pool %s is in no file", pool);
    return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
}

static EbCheckResult *
check_loop_space(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *skip = NULL;
    g_autofree char *file = loop_file(settings);
    g_autofree char *dir = dc_daemon_dir(settings);
    g_autofree char *name = dc_pool(settings);
    g_autofree char *request = dc_request("/1.0/storage-pools/%s/resources", name, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) resources = NULL;
    EbHostStat info;
    EbHostSpace space;
    gint64 grows;

    if (!eb_host_stat(host, file, &info, &error))
        return judge_no_file(host, settings, error);
    resources = dc_get(host, settings, request, NULL, &skip);
    if (resources == NULL)
        return skip;
    if (!eb_host_space(host, dir, &space, NULL))
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s cannot be looked at", dir);
    grows = (gint64)info.size - eb_json_get_int(eb_json_get_object(resources, "space"), "used", 0);
    if (grows > 0 && (guint64)grows > space.free_bytes)
        return eb_check_result_new(
            EB_CHECK_DEGRADED, "pool %s may grow by %" G_GINT64_FORMAT " MiB, %s has %" G_GUINT64_FORMAT " MiB free",
            name, grows >> 20, dir, space.free_bytes >> 20);
    return eb_check_result_new(EB_CHECK_OK, "there is room for all of %s", file);
}

static EbCheckResult *
check_loop_devices(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *file = loop_file(settings);
    g_autoptr(GError) error = NULL;
    EbHostStat info;

    if (!eb_host_stat(host, file, &info, &error))
        return judge_no_file(host, settings, error);
    if (!eb_host_exists(host, "/dev/loop-control"))
        return eb_check_result_new(EB_CHECK_FAIL, "the pool is in %s, and there is no /dev/loop-control", file);
    return eb_check_result_new(EB_CHECK_OK, "/dev/loop-control");
}

/* Where the kernel maps no ids, or a server in between decides who may write. */
static EbCheckResult *
check_file_systems(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    static const struct {
        guint32 type;
        const char *name;
    } FOREIGN[] = {{0x65735546, "FUSE or virtiofs"},
                   {0x6969, "NFS"},
                   {0x01021997, "9p"},
                   {0xff534d42, "SMB"},
                   {0xfe534d42, "SMB"}};
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");
    g_autofree char *fallback = g_build_filename(state_dir, "home/projects", NULL);
    g_autofree char *projects = dc_setting(settings, "project_root", fallback);
    const char *const paths[] = {state_dir, projects};

    for (guint i = 0; i < G_N_ELEMENTS(paths); i++) {
        EbHostSpace space;
        if (!eb_host_space(host, paths[i], &space, NULL))
            return eb_check_result_new(EB_CHECK_SKIPPED, "%s cannot be looked at", paths[i]);
        for (guint j = 0; j < G_N_ELEMENTS(FOREIGN); j++)
            if (space.type == FOREIGN[j].type)
                return eb_check_result_new(EB_CHECK_DEGRADED, "%s is on %s", paths[i], FOREIGN[j].name);
    }
    return eb_check_result_new(EB_CHECK_OK, "local");
}

static EbCheckResult *
judge_space(EbHost *host, const char *path, guint64 fail, guint64 degraded)
{
    g_autofree char *free_text = NULL;
    EbHostSpace space;

    if (!eb_host_space(host, path, &space, NULL))
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s cannot be looked at", path);
    free_text = g_format_size_full(space.free_bytes, G_FORMAT_SIZE_IEC_UNITS);
    return eb_check_result_new(space.free_bytes < fail       ? EB_CHECK_FAIL
                               : space.free_bytes < degraded ? EB_CHECK_DEGRADED
                                                             : EB_CHECK_OK,
                               "%s free at %s", free_text, path);
}

static EbCheckResult *
check_daemon_space(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *directory = dc_daemon_dir(settings);

    return judge_space(host, directory, G_GUINT64_CONSTANT(1) << 30, G_GUINT64_CONSTANT(5) << 30);
}

static EbCheckResult *
check_state_space(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *state_dir = dc_setting(settings, "state_dir", "/var/lib/errand-box");

    return judge_space(host, state_dir, G_GUINT64_CONSTANT(512) << 20, G_GUINT64_CONSTANT(2) << 30);
}

const DcRow DC_STORAGE_CHECKS[] = {
    DC_ROW(E_07, check_pool),         DC_ROW(E_05, check_driver),       DC_ROW(E_06, check_pool_space),
    DC_ROW(E_38, check_daemon_space), DC_ROW(E_40, check_state_space),  DC_ROW(E_52, check_loop_space),
    DC_ROW(E_53, check_loop_devices), DC_ROW(E_79, check_file_systems), {NULL, NULL, NULL},
};
