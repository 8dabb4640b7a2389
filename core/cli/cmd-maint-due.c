/* SPDX-License-Identifier: MIT */
/* maint without a verb: looks what is due and does it; fit for a timer. One screen, one exit code. */
#include "core/cli/eb-cli-again.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/control/eb-control.h"
#include "core/provision/eb-image-cache.h"
#include "core/provision/eb-pin-job.h"
#include "core/session/eb-pressure.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

typedef struct {
    EbCli *cli;
    gboolean plan;
    JsonObject *report;
    guint failed; /* parts that could not be done */
} Due;

static void
failed(Due *self, const char *part, const GError *error)
{
    JsonObject *object = json_object_new();

    self->failed++;
    eb_cli_fail(self->cli, part, error);
    json_object_set_string_member(object, "error", error->message);
    json_object_set_object_member(self->report, part + strlen("maint "), object);
}

static void
do_images(Due *self)
{
    g_autoptr(GError) error = NULL;
    /* Only root can make a root file system; others are told that it is due. */
    JsonObject *object = eb_cli_maint_refresh_images(self->cli, self->plan || geteuid() != 0, &error);

    if (object == NULL) {
        failed(self, "maint images", error);
        return;
    }
    if (!eb_cli_get_json(self->cli))
        eb_cli_maint_print_images(self->cli, object);
    json_object_set_object_member(self->report, "images", object);
}

/* Built images in the cache of who builds them. */
static void
do_builds(Due *self)
{
    g_autoptr(GError) error = NULL;
    EbImageCacheCount count;
    gint64 max_age_s = 0;

    if (geteuid() != 0)
        return;
    if (!eb_cli_maint_days(self->cli, &max_age_s, &error) ||
        !eb_image_cache_sweep(NULL, max_age_s, self->plan, &count, &error)) {
        failed(self, "maint builds", error);
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "before", count.found);
    json_object_set_int_member(object, "removed", count.removed);
    json_object_set_int_member(object, "bytes", (gint64)count.bytes);
    json_object_set_object_member(self->report, "builds", object);
    if (eb_cli_get_json(self->cli) || count.found == 0)
        return;
    g_autofree char *size = g_format_size_full(count.bytes, G_FORMAT_SIZE_IEC_UNITS);
    eb_cli_print(self->cli, "%-10s %u old builds in the cache, %u removed (%s)\n", "", count.found, count.removed,
                 size);
}

static void
do_pins(Due *self)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *cache_dir = eb_pin_cache_default_dir();
    g_auto(EbCliWait) wait = {0};
    EbPaths *paths = eb_cli_get_paths(self->cli, &error);
    EbPinCacheCount count = {0};
    guint bad = 0, missing = 0;

    if (paths == NULL) {
        failed(self, "maint pins", error);
        return;
    }
    const char *tree = eb_paths_get_data_dir(paths);
    eb_pin_verify_async(tree, cache_dir, NULL, eb_cli_wait_ready, &wait);
    g_autoptr(GPtrArray) outcomes = eb_pin_job_finish(eb_cli_wait_result(self->cli, &wait), &error);
    if (outcomes == NULL || !eb_pin_sweep_cache(tree, cache_dir, self->plan, &count, &error)) {
        failed(self, "maint pins", error);
        return;
    }
    for (guint i = 0; i < outcomes->len; i++) {
        const EbPinOutcome *outcome = outcomes->pdata[i];
        missing += outcome->state == EB_PIN_STATE_MISSING ? 1 : 0;
        if (outcome->state != EB_PIN_STATE_BAD)
            continue;
        bad++;
        eb_cli_fail(self->cli, "maint pins", outcome->error);
    }
    self->failed += bad > 0 ? 1 : 0;
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "pins", outcomes->len);
    json_object_set_int_member(object, "bad", bad);
    json_object_set_int_member(object, "missing", missing);
    json_object_set_int_member(object, "files_removed", count.removed);
    json_object_set_object_member(self->report, "pins", object);
    if (!eb_cli_get_json(self->cli))
        eb_cli_print(self->cli, "%-10s %u pinned, %u bad, %u not fetched; %u fetched files no longer pinned\n", "pins",
                     outcomes->len, bad, missing, count.removed);
}

/* What the running service's own checks say; without one `doctor` is the way to know. */
static void
tell_health(Due *self, EbConfig *config)
{
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), NULL);
    g_autoptr(JsonNode) status =
        client != NULL ? eb_cli_call(self->cli, client, "status", NULL, EB_CONTROL_DEADLINE_MS, NULL) : NULL;
    JsonObject *health = eb_json_get_object(eb_json_node_object(status), "health");
    JsonArray *checks = eb_json_get_array(health, "checks");
    g_autoptr(GString) ids = g_string_new(NULL);
    JsonArray *degraded = json_array_new();

    for (guint i = 0; checks != NULL && i < json_array_get_length(checks); i++) {
        JsonObject *check = eb_json_array_object(checks, i);
        const char *id = eb_json_get_string(check, "id");
        const char *state = eb_json_get_string(check, "status");
        if (id == NULL || (g_strcmp0(state, "degraded") != 0 && g_strcmp0(state, "fail") != 0))
            continue;
        g_string_append_printf(ids, "%s%s", ids->len > 0 ? " " : "", id);
        json_array_add_string_element(degraded, id);
    }
    json_object_set_array_member(self->report, "degraded", degraded);
    if (eb_cli_get_json(self->cli))
        return;
    eb_cli_print(self->cli, "%-10s %s\n", "service", status != NULL ? "runs" : "does not run (errand-box up)");
    if (ids->len > 0)
        eb_cli_print(self->cli, "%-10s %s (errand-box doctor)\n", "degraded", ids->str);
}

static guint64
wanted_space(Due *self, EbConfig *config)
{
    struct statvfs info;
    guint64 min_free = eb_config_get_min_free(config);

    if (statvfs(eb_config_get_state_dir(config), &info) != 0 || info.f_frsize == 0)
        return 0;
    guint64 left = (guint64)info.f_bavail * info.f_frsize;
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "free", (gint64)left);
    json_object_set_int_member(object, "total", (gint64)(info.f_blocks * info.f_frsize));
    json_object_set_int_member(object, "bound", (gint64)(2 * min_free));
    json_object_set_object_member(self->report, "space", object);
    if (!eb_cli_get_json(self->cli)) {
        g_autofree char *shown = g_format_size_full(left, G_FORMAT_SIZE_IEC_UNITS);
        g_autofree char *total = g_format_size_full(info.f_blocks * info.f_frsize, G_FORMAT_SIZE_IEC_UNITS);
        eb_cli_print(self->cli, "%-10s %s of %s are free%s\n", "space", shown, total,
                     left < 2 * min_free ? ": what was not used for longest goes" : "");
    }
    return eb_pressure_wanted(left, min_free);
}

/* In a process of its own: without a service it gives up root for it. */
static void
do_gc(Due *self, guint64 wanted)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *said = NULL;
    g_autofree char *size = g_strdup_printf("--free=%" G_GUINT64_FORMAT "B", wanted);
    const char *const args[] = {"maint", "gc", size, self->plan ? "--plan" : NULL, NULL};
    int code = eb_cli_again(self->cli, args, EB_CLI_AGAIN_LISTEN, -1, &said, &error);
    g_autoptr(JsonNode) report =
        code == EB_EXIT_OK ? eb_json_parse(said, strlen(said), &EB_JSON_LIMITS_SMALL, &error) : NULL;

    if (report == NULL) {
        if (error == NULL)
            eb_set_error(&error, EB_ERROR_FAILED, "maint.gc", "it ended with exit code %d", code);
        failed(self, "maint gc", error);
        return;
    }
    if (!eb_cli_get_json(self->cli))
        eb_cli_maint_print_gc(self->cli, report, self->plan);
    json_object_set_member(self->report, "gc", g_steal_pointer(&report));
}

int
eb_cli_maint_due(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    EbConfig *config = eb_cli_get_config(cli, &error);
    Due self = {.cli = cli, .plan = eb_cli_args_flag(eb_cli_get_args(cli), "plan")};

    if (config == NULL)
        return eb_cli_fail(cli, "maint", error);
    self.report = json_object_new();
    json_object_set_int_member(self.report, "schema", 1);
    json_object_set_boolean_member(self.report, "plan", self.plan);
    tell_health(&self, config);
    do_images(&self);
    do_builds(&self);
    do_pins(&self);
    do_gc(&self, wanted_space(&self, config));
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, eb_control_object(self.report));
    else
        json_object_unref(self.report);
    return self.failed == 0 ? EB_EXIT_OK : EB_EXIT_FAILED;
}
