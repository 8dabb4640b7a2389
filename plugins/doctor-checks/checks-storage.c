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
    DC_ROW(E_07, check_pool),         DC_ROW(E_05, check_driver),      DC_ROW(E_06, check_pool_space),
    DC_ROW(E_38, check_daemon_space), DC_ROW(E_40, check_state_space), {NULL, NULL, NULL},
};
