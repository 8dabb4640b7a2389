/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"
#include "core/provision/eb-pin-job.h"
#include "core/provision/eb-pin-update.h"

#include <string.h>

/* One run of the command. */
typedef struct {
    EbCli *cli;
    char *tree;
    char *cache_dir;
    GCancellable *cancellable;
    GPtrArray *outcomes; /* (nullable): of verify and fetch */
    GPtrArray *changes;  /* (nullable): of update */
    GError *error;
} Run;

static void
run_clear(Run *self)
{
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->outcomes, g_ptr_array_unref);
    g_clear_pointer(&self->changes, g_ptr_array_unref);
    g_clear_pointer(&self->tree, g_free);
    g_clear_pointer(&self->cache_dir, g_free);
    g_clear_error(&self->error);
}

static gboolean
open_run(Run *self)
{
    EbCliArgs *args = eb_cli_get_args(self->cli);
    const char *tree = eb_cli_args_value(args, "tree");
    const char *cache = eb_cli_args_value(args, "cache");
    EbPaths *paths = tree == NULL ? eb_cli_get_paths(self->cli, &self->error) : NULL;

    if (tree == NULL && paths == NULL)
        return FALSE;
    self->tree = tree != NULL ? g_canonicalize_filename(tree, NULL) : g_strdup(eb_paths_get_data_dir(paths));
    self->cache_dir = cache != NULL ? g_canonicalize_filename(cache, NULL) : eb_pin_cache_default_dir();
    self->cancellable = g_cancellable_new();
    return TRUE;
}

static void
on_progress(const char *what, gpointer user_data)
{
    g_printerr("  %s\n", what);
}

static JsonObject *
outcome_to_json(const EbPinOutcome *outcome)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "kind", eb_pin_kind_name(outcome->kind));
    json_object_set_string_member(object, "name", outcome->name);
    if (outcome->package != NULL)
        json_object_set_string_member(object, "package", outcome->package);
    if (outcome->version != NULL)
        json_object_set_string_member(object, "version", outcome->version);
    if (outcome->digest != NULL)
        json_object_set_string_member(object, outcome->kind == EB_PIN_NPM ? "integrity" : "digest", outcome->digest);
    json_object_set_string_member(object, "state", eb_pin_state_name(outcome->state));
    json_object_set_string_member(object, "detail", outcome->detail);
    return object;
}

static void
print_outcomes(Run *self)
{
    JsonArray *array = eb_cli_get_json(self->cli) ? json_array_new() : NULL;

    for (guint i = 0; i < self->outcomes->len; i++) {
        const EbPinOutcome *outcome = g_ptr_array_index(self->outcomes, i);
        if (array != NULL)
            json_array_add_object_element(array, outcome_to_json(outcome));
        else
            eb_cli_print(self->cli, "%-7s %-7s %-20s %-14s %s\n", eb_pin_state_name(outcome->state),
                         eb_pin_kind_name(outcome->kind), outcome->name,
                         outcome->version != NULL ? outcome->version : "-", outcome->detail);
    }
    if (array != NULL) {
        JsonObject *object = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);
        json_object_set_array_member(object, "pins", array);
        json_node_take_object(node, object);
        eb_cli_print_json(self->cli, node);
    }
}

/* The table, then a line on stderr for each entry that is bad. */
static int
report(Run *self, const char *what)
{
    int code = EB_EXIT_OK;

    if (self->outcomes == NULL)
        return eb_cli_fail(self->cli, what, self->error);
    print_outcomes(self);
    for (guint i = 0; i < self->outcomes->len; i++) {
        const EbPinOutcome *outcome = g_ptr_array_index(self->outcomes, i);
        if (outcome->error == NULL)
            continue;
        eb_cli_fail(self->cli, what, outcome->error);
        code = EB_EXIT_FAILED;
    }
    return code;
}

static int
verify(Run *self)
{
    g_auto(EbCliWait) wait = {0};

    eb_pin_verify_async(self->tree, self->cache_dir, self->cancellable, eb_cli_wait_ready, &wait);
    self->outcomes = eb_pin_job_finish(eb_cli_wait_result(self->cli, &wait), &self->error);
    return report(self, "pins verify");
}

static int
fetch(Run *self)
{
    const char *const *names = eb_cli_args_operands(eb_cli_get_args(self->cli));
    g_auto(EbCliWait) wait = {0};

    eb_pin_fetch_async(self->tree, self->cache_dir, names[0], on_progress, self, self->cancellable, eb_cli_wait_ready,
                       &wait);
    self->outcomes = eb_pin_job_finish(eb_cli_wait_result(self->cli, &wait), &self->error);
    return report(self, "pins fetch");
}

static int
update(Run *self)
{
    gboolean plan_only = eb_cli_args_flag(eb_cli_get_args(self->cli), "plan");
    g_auto(EbCliWait) wait = {0};
    int code = EB_EXIT_OK;

    eb_pin_update_async(self->tree, self->cache_dir, plan_only, on_progress, self, self->cancellable, eb_cli_wait_ready,
                        &wait);
    self->changes = eb_pin_update_finish(eb_cli_wait_result(self->cli, &wait), &self->error);
    if (self->changes == NULL)
        return eb_cli_fail(self->cli, "pins update", self->error);
    if (eb_cli_get_json(self->cli)) {
        eb_cli_print_json(self->cli, eb_pin_update_to_json(self->changes));
    } else {
        g_autofree char *markdown = eb_pin_update_to_markdown(self->changes);
        eb_cli_print(self->cli, "%s", markdown);
    }
    for (guint i = 0; i < self->changes->len; i++) {
        const EbPinChange *change = g_ptr_array_index(self->changes, i);
        g_autofree char *what = g_strdup_printf("pins update: %s", change->name);
        if (change->error == NULL)
            continue;
        eb_cli_fail(self->cli, what, change->error);
        code = EB_EXIT_FAILED;
    }
    return code;
}

int
eb_cmd_pins(EbCli *cli, int argc, char **argv)
{
    const char *verb = eb_cli_args_get_verb(eb_cli_get_args(cli));
    Run self = {.cli = cli};
    int code = EB_EXIT_FAILED;

    if (!open_run(&self)) {
        code = eb_cli_fail(cli, "pins", self.error);
    } else {
        g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(self.cancellable);
        code = strcmp(verb, "fetch") == 0 ? fetch(&self) : strcmp(verb, "update") == 0 ? update(&self) : verify(&self);
    }
    run_clear(&self);
    return code;
}
