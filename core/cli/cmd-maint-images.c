/* SPDX-License-Identifier: MIT */
/* maint images: the guest image follows its recipe. */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/control/eb-control.h"
#include "core/provision/eb-image-ensure.h"

int
eb_cli_maint_images(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(EbCliBackend) opened = eb_cli_backend_open(cli, cancellable, &error);
    g_auto(EbCliWait) wait = {0};
    g_autofree char *detail = NULL;
    gboolean changed = FALSE;

    if (opened == NULL)
        return eb_cli_fail(cli, "maint images", error);
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(cancellable);
    eb_image_ensure_async(opened->paths, opened->backend, opened->alias, NULL, NULL, eb_cli_print_progress, NULL,
                          cancellable, eb_cli_wait_ready, &wait);
    if (!eb_image_ensure_finish(eb_cli_wait_result(cli, &wait), &changed, &detail, &error))
        return eb_cli_fail(cli, "maint images", error);
    if (!eb_cli_get_json(cli)) {
        eb_cli_print(cli, "%s%s\n", detail, changed ? "" : " (nothing to do)");
        return EB_EXIT_OK;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "schema", 1);
    json_object_set_boolean_member(object, "changed", changed);
    json_object_set_string_member(object, "detail", detail);
    eb_cli_print_json(cli, eb_control_object(object));
    return EB_EXIT_OK;
}
