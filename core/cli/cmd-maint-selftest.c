/* SPDX-License-Identifier: MIT */
/* maint selftest: services of its own, killed at every step. */
#include "core/base/eb-account.h"
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/control/eb-control.h"
#include "core/selftest/eb-selftest-plan.h"
#include "core/selftest/eb-selftest.h"

#include <string.h>

#define DEFAULT_KILLS 200
#define DEFAULT_JOBS 3

static gboolean
read_number(EbCli *cli, const char *name, guint64 fallback, guint64 min, guint64 max, guint64 *number, GError **error)
{
    const char *text = eb_cli_args_value(eb_cli_get_args(cli), name);

    *number = fallback;
    if (text == NULL || g_ascii_string_to_unsigned(text, 10, min, max, number, NULL))
        return TRUE;
    eb_set_error(error, EB_ERROR_INVALID, "selftest.option",
                 "--%s takes a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, name, min, max);
    return FALSE;
}

static gboolean
read_options(EbCli *cli, EbSelftestOptions *options, GError **error)
{
    guint64 kills, jobs, seed;

    if (!read_number(cli, "kills", DEFAULT_KILLS, 1, EB_SELFTEST_MAX_KILLS, &kills, error) ||
        !read_number(cli, "jobs", DEFAULT_JOBS, 1, EB_SELFTEST_MAX_JOBS, &jobs, error) ||
        !read_number(cli, "seed", g_random_int(), 0, G_MAXUINT32, &seed, error))
        return FALSE;
    options->kills = (guint)kills;
    options->jobs = (guint)MIN(jobs, kills);
    options->seed = (guint32)seed;
    return TRUE;
}

/* Name of the plugin that provides the backend. */
static const char *
plugin_of(EbCliBackend *opened, EbConfig *config)
{
    const EbPluginRecord *record = NULL;

    eb_plugin_registry_find(opened->registry, EB_EXTENSION_CONTAINER_BACKEND, eb_config_get_session(config)->backend,
                            &record);
    return record->name;
}

static void
add_counts(JsonObject *object, const char *member, GHashTable *counts)
{
    JsonObject *table = json_object_new();
    g_autoptr(GList) keys = g_list_sort(g_hash_table_get_keys(counts), (GCompareFunc)strcmp);

    for (GList *link = keys; link != NULL; link = link->next)
        json_object_set_int_member(table, link->data, GPOINTER_TO_UINT(g_hash_table_lookup(counts, link->data)));
    json_object_set_object_member(object, member, table);
}

static void
print_json(EbCli *cli, const EbSelftestOptions *options, const EbSelftestReport *report)
{
    JsonObject *object = json_object_new();
    JsonArray *violations = json_array_new();

    json_object_set_int_member(object, "schema", 1);
    json_object_set_int_member(object, "seed", options->seed);
    json_object_set_int_member(object, "kills", report->kills);
    json_object_set_int_member(object, "jobs", options->jobs);
    json_object_set_int_member(object, "starts", report->starts);
    json_object_set_int_member(object, "sessions", report->sessions);
    json_object_set_int_member(object, "prompts", report->prompts);
    json_object_set_int_member(object, "late_guests", report->late_guests);
    json_object_set_int_member(object, "missed", report->missed);
    json_object_set_int_member(object, "ms", report->us / 1000);
    json_object_set_int_member(object, "start_median_ms", report->start_median_ms);
    json_object_set_int_member(object, "start_slowest_ms", report->start_slowest_ms);
    eb_control_set_text(object, "slowest", report->slowest);
    add_counts(object, "groups", report->groups);
    add_counts(object, "steps", report->killed_at);
    for (guint i = 0; i < report->violations->len; i++)
        json_array_add_string_element(violations, report->violations->pdata[i]);
    json_object_set_array_member(object, "violations", violations);
    if (report->violations->len > 0)
        json_object_set_string_member(object, "reports", options->reports);
    eb_cli_print_json(cli, eb_control_object(object));
}

static void
print_text(EbCli *cli, const EbSelftestOptions *options, const EbSelftestReport *report)
{
    g_autoptr(GList) steps = g_list_sort(g_hash_table_get_keys(report->killed_at), (GCompareFunc)strcmp);
    g_autoptr(GList) groups = g_list_sort(g_hash_table_get_keys(report->groups), (GCompareFunc)strcmp);

    for (GList *link = steps; link != NULL; link = link->next)
        eb_cli_print(cli, "%6u  %s\n", GPOINTER_TO_UINT(g_hash_table_lookup(report->killed_at, link->data)),
                     (char *)link->data);
    eb_cli_print(cli, "%u kills in %" G_GINT64_FORMAT " s (", report->kills, report->us / G_USEC_PER_SEC);
    for (GList *link = groups; link != NULL; link = link->next)
        eb_cli_print(cli, "%s%s %u", link != groups ? ", " : "", (char *)link->data,
                     GPOINTER_TO_UINT(g_hash_table_lookup(report->groups, link->data)));
    eb_cli_print(cli, "), seed %u\n%u sessions, %u prompts, %u starts: %u ms as a rule, the slowest %u ms%s%s\n",
                 options->seed, report->sessions, report->prompts, report->starts, report->start_median_ms,
                 report->start_slowest_ms, report->slowest != NULL ? " after " : "",
                 report->slowest != NULL ? report->slowest : "");
    if (report->missed > 0)
        eb_cli_print(cli, "%u kills were tried again: the backend took too long to make a guest\n", report->missed);
    for (guint i = 0; i < report->violations->len; i++)
        eb_cli_print(cli, "VIOLATION %s\n", (char *)report->violations->pdata[i]);
    if (report->violations->len == 0)
        eb_cli_print(cli, "nothing was left behind, lost or done twice\n");
    else
        eb_cli_print(cli, "%u violations; logs are in %s\n", report->violations->len, options->reports);
}

int
eb_cli_maint_selftest(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_auto(EbCliWait) wait = {0};
    EbSelftestOptions options = {0};

    options.config = eb_cli_get_config(cli, &error);
    if (options.config == NULL || !read_options(cli, &options, &error))
        return eb_cli_fail(cli, "maint selftest", error);
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(options.config), &error);
    g_autoptr(EbCliBackend) opened =
        account != NULL && eb_account_check_caller(account, &error) && eb_account_become(account, &error)
            ? eb_cli_backend_open(cli, cancellable, &error)
            : NULL;
    if (opened == NULL)
        return eb_cli_fail(cli, "maint selftest", error);
    g_autofree char *name = g_strdup_printf("selftest-%u", options.seed);
    g_autofree char *reports = g_build_filename(eb_config_get_state_dir(options.config), name, NULL);
    options.paths = opened->paths;
    options.backend = opened->backend;
    options.backend_plugin = plugin_of(opened, options.config);
    options.reports = reports;
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(cancellable);
    g_printerr("%u kills by %u jobs, seed %u\n", options.kills, options.jobs, options.seed);
    eb_selftest_run_async(&options, cancellable, eb_cli_wait_ready, &wait);
    g_autoptr(EbSelftestReport) report = eb_selftest_run_finish(eb_cli_wait_result(cli, &wait), &error);
    if (report == NULL)
        return eb_cli_fail(cli, "maint selftest", error);
    (eb_cli_get_json(cli) ? print_json : print_text)(cli, &options, report);
    return report->violations->len == 0 ? EB_EXIT_OK : EB_EXIT_FAILED;
}
