/* SPDX-License-Identifier: MIT */
/* maint images: the guest image follows its recipe and what its distribution has, and old ones go. */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/control/eb-control.h"
#include "core/provision/eb-image-ensure.h"
#include "core/session/eb-gc-images.h"

#include <string.h>
#include <unistd.h>

#define DAY_S (24 * 3600)
#define INFO_DEADLINE_MS 15000

gboolean
eb_cli_maint_days(EbCli *cli, gint64 *max_age_s, GError **error)
{
    const char *text = eb_cli_args_value(eb_cli_get_args(cli), "days");
    guint64 days = EB_CLI_MAINT_IMAGE_DAYS;

    if (text != NULL && !g_ascii_string_to_unsigned(text, 10, 1, 3650, &days, NULL)) {
        eb_set_error(error, EB_ERROR_INVALID, "maint.days", "--days takes a number of days, 1 to 3650");
        return FALSE;
    }
    *max_age_s = (gint64)days * DAY_S;
    return TRUE;
}

static EbGcClass *
remove_old(EbCli *cli, EbContainerBackend *backend, gboolean plan, gboolean changed)
{
    g_auto(EbCliWait) wait = {0};

    /* The one that was just replaced had its name until now: no need to wait whether it gets another. */
    eb_gc_images_async(backend, changed ? 0 : EB_GC_IMAGE_GRACE_S, plan, eb_cli_wait_ready, &wait);
    return eb_gc_images_finish(eb_cli_wait_result(cli, &wait));
}

/* Is the image the recipe's, and young enough? Changes nothing. */
static gboolean
check(EbCli *cli, EbCliBackend *opened, gint64 max_age_s, gboolean *due, char **detail, GError **error)
{
    g_auto(EbCliWait) wait = {0};
    g_auto(EbCliWait) told = {0};
    gboolean current = FALSE;

    eb_image_check_async(opened->paths, opened->backend, opened->alias, NULL, INFO_DEADLINE_MS, NULL, eb_cli_wait_ready,
                         &wait);
    if (!eb_image_check_finish(eb_cli_wait_result(cli, &wait), &current, detail, error))
        return FALSE;
    eb_container_backend_image_info_async(opened->backend, opened->alias, INFO_DEADLINE_MS, NULL, eb_cli_wait_ready,
                                          &told);
    g_autoptr(GPtrArray) images =
        eb_container_backend_image_info_finish(opened->backend, eb_cli_wait_result(cli, &told), error);
    if (images == NULL)
        return FALSE;
    const EbImageInfo *image = images->len > 0 ? images->pdata[0] : NULL;
    *due = !current || (image != NULL && image->created_unix + max_age_s < g_get_real_time() / G_USEC_PER_SEC);
    return TRUE;
}

JsonObject *
eb_cli_maint_refresh_images(EbCli *cli, gboolean plan, GError **error)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    gint64 max_age_s = 0;
    g_autoptr(EbCliBackend) opened =
        eb_cli_maint_days(cli, &max_age_s, error) ? eb_cli_backend_open(cli, cancellable, error) : NULL;
    g_auto(EbCliWait) wait = {0};
    g_autofree char *detail = NULL;
    gboolean changed = FALSE, due = FALSE;

    if (opened == NULL || !check(cli, opened, max_age_s, &due, &detail, error))
        return NULL;
    if (due && !plan) {
        g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(cancellable);
        g_clear_pointer(&detail, g_free);
        eb_image_refresh_async(opened->paths, opened->backend, opened->alias, NULL, NULL, max_age_s,
                               eb_cli_print_progress, NULL, cancellable, eb_cli_wait_ready, &wait);
        if (!eb_image_ensure_finish(eb_cli_wait_result(cli, &wait), &changed, &detail, error))
            return NULL;
    }
    g_autoptr(EbGcClass) old = remove_old(cli, opened->backend, plan, changed);
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "schema", 1);
    json_object_set_boolean_member(object, "due", due);
    json_object_set_boolean_member(object, "changed", changed);
    json_object_set_string_member(object, "detail", detail);
    json_object_set_object_member(object, "old", eb_gc_class_to_json(old));
    return object;
}

void
eb_cli_maint_print_images(EbCli *cli, JsonObject *object)
{
    JsonObject *old = eb_json_get_object(object, "old");
    gint64 before = eb_json_get_int(old, "before", 0);
    const char *note = eb_json_get_string(old, "note");
    gboolean changed = eb_json_get_bool(object, "changed", FALSE);
    gboolean due = eb_json_get_bool(object, "due", FALSE);

    eb_cli_print(cli, "%-10s %s%s\n", "image", eb_json_get_string(object, "detail"),
                 changed ? ""
                 : due   ? " (due)"
                         : " (nothing to do)");
    if (before > 0)
        eb_cli_print(cli, "%-10s %" G_GINT64_FORMAT " old, %" G_GINT64_FORMAT " removed\n", "", before,
                     eb_json_get_int(old, "removed", 0));
    if (note != NULL)
        eb_cli_print(cli, "%-10s %s\n", "", note);
}

int
eb_cli_maint_images(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    JsonObject *object = eb_cli_maint_refresh_images(cli, eb_cli_args_flag(eb_cli_get_args(cli), "plan"), &error);

    if (object == NULL)
        return eb_cli_fail(cli, "maint images", error);
    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, eb_control_object(object));
        return EB_EXIT_OK;
    }
    eb_cli_maint_print_images(cli, object);
    json_object_unref(object);
    return EB_EXIT_OK;
}
