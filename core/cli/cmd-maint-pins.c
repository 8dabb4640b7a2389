/* SPDX-License-Identifier: MIT */
/* maint pins: what was fetched is what is pinned, and what is no longer pinned goes. */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/control/eb-control.h"
#include "core/provision/eb-pin-job.h"

static guint
tell_bad(EbCli *cli, GPtrArray *outcomes)
{
    guint n_bad = 0;

    for (guint i = 0; i < outcomes->len; i++) {
        const EbPinOutcome *outcome = g_ptr_array_index(outcomes, i);
        if (outcome->error == NULL)
            continue;
        n_bad++;
        eb_cli_fail(cli, "maint pins", outcome->error);
    }
    return n_bad;
}

static void
tell_count(EbCli *cli, guint n_pins, guint n_bad, const EbPinCacheCount *count)
{
    if (!eb_cli_get_json(cli)) {
        g_autofree char *kept = g_format_size_full(count->kept_bytes, G_FORMAT_SIZE_IEC_UNITS);
        g_autofree char *removed = g_format_size_full(count->removed_bytes, G_FORMAT_SIZE_IEC_UNITS);
        eb_cli_print(cli, "%u pinned, %u bad; fetched files: %u before (%u no longer pinned, %s), %u now (%s)\n",
                     n_pins, n_bad, count->kept + count->removed, count->removed, removed, count->kept, kept);
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "schema", 1);
    json_object_set_int_member(object, "pins", n_pins);
    json_object_set_int_member(object, "bad", n_bad);
    json_object_set_int_member(object, "files_before", count->kept + count->removed);
    json_object_set_int_member(object, "files_after", count->kept);
    json_object_set_int_member(object, "bytes_removed", (gint64)count->removed_bytes);
    json_object_set_int_member(object, "bytes_kept", (gint64)count->kept_bytes);
    eb_cli_print_json(cli, eb_control_object(object));
}

int
eb_cli_maint_pins(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autofree char *cache_dir = eb_pin_cache_default_dir();
    g_auto(EbCliWait) wait = {0};
    EbPinCacheCount count;
    EbPaths *paths = eb_cli_get_paths(cli, &error);

    if (paths == NULL)
        return eb_cli_fail(cli, "maint pins", error);
    const char *tree = eb_paths_get_data_dir(paths);
    if (!eb_pin_sweep_cache(tree, cache_dir, FALSE, &count, &error))
        return eb_cli_fail(cli, "maint pins", error);
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(cancellable);
    eb_pin_verify_async(tree, cache_dir, cancellable, eb_cli_wait_ready, &wait);
    g_autoptr(GPtrArray) outcomes = eb_pin_job_finish(eb_cli_wait_result(cli, &wait), &error);
    if (outcomes == NULL)
        return eb_cli_fail(cli, "maint pins", error);
    guint n_bad = tell_bad(cli, outcomes);
    tell_count(cli, outcomes->len, n_bad, &count);
    return n_bad == 0 ? EB_EXIT_OK : EB_EXIT_FAILED;
}
