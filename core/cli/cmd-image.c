/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/provision/eb-image-ensure.h"
#include "core/provision/eb-image-recipe.h"
#include "core/provision/eb-image-trial.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>

#define START_DEADLINE_MS 15000
#define INFO_DEADLINE_MS 15000
#define N_SIGNALS 3

/* One run of the command. */
typedef struct {
    EbCli *cli;
    EbPaths *paths;
    EbPluginRegistry *registry;
    EbContainerBackend *backend;
    char *alias;
    GCancellable *cancellable;
    gboolean done;
    gboolean changed;
    char *detail;
    GPtrArray *images;
    GError *error;
    GSource *signals[N_SIGNALS];
} Run;

static void
run_clear(Run *self)
{
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->alias, g_free);
    g_clear_pointer(&self->detail, g_free);
    g_clear_pointer(&self->images, g_ptr_array_unref);
    g_clear_error(&self->error);
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;

    eb_plugin_registry_start_finish(EB_PLUGIN_REGISTRY(source), result, &self->error);
    self->done = TRUE;
}

/* Opens the configured backend's plugin alone and starts it. */
static gboolean
open_backend(Run *self)
{
    EbConfig *config = eb_cli_get_config(self->cli, &self->error);
    const EbPluginRecord *record = NULL;

    if (config == NULL)
        return FALSE;
    const char *name = eb_config_get_session(config)->backend;
    g_autofree char *point = g_strdup_printf("container-backend:%s", name);
    const char *const only[] = {point, NULL};
    g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(config, name);
    self->alias = eb_config_section_get_string(section, "image", "errand-box/guest", &self->error);
    self->paths = self->alias != NULL ? eb_cli_get_paths(self->cli, &self->error) : NULL;
    if (self->paths == NULL)
        return FALSE;
    self->registry = eb_cli_get_registry(self->cli, only, NULL, NULL, &self->error);
    if (self->registry == NULL)
        return FALSE;
    /* Found before it is started: one that then fails has the reason in its record. */
    GObject *found = eb_plugin_registry_find(self->registry, EB_EXTENSION_CONTAINER_BACKEND, name, &record);
    if (found == NULL) {
        eb_set_error(&self->error, EB_ERROR_CONFIG, "image.backend", "no plugin provides the container backend %s",
                     name);
        return FALSE;
    }
    eb_plugin_registry_tell_failures(self->registry);
    eb_plugin_registry_start_async(self->registry, START_DEADLINE_MS, self->cancellable, on_started, self);
    eb_cli_wait(self->cli, &self->done);
    self->done = FALSE;
    if (self->error != NULL)
        return FALSE;
    if (record->state == EB_PLUGIN_STATE_RUNNING)
        self->backend = EB_CONTAINER_BACKEND(found);
    else if (record->error != NULL)
        self->error = g_error_copy(record->error);
    else
        eb_set_error(&self->error, EB_ERROR_UNAVAILABLE, "image.backend", "the container backend %s did not start",
                     name);
    return self->backend != NULL;
}

static void
on_progress(const char *stage, guint seconds, gboolean done, gpointer user_data)
{
    if (done)
        g_printerr("  done  %s (%u s)\n", stage, seconds);
    else if (seconds > 0)
        g_printerr("        %s ... %u s\n", stage, seconds);
    else
        g_printerr("        %s\n", stage);
}

static gboolean
on_interrupt(gpointer user_data)
{
    Run *self = user_data;

    g_printerr("interrupted: taking back what was begun\n");
    g_cancellable_cancel(self->cancellable);
    return G_SOURCE_CONTINUE;
}

/* While something is under way that can be taken back. */
static void
watch_signals(Run *self, gboolean watch)
{
    static const int signals[N_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

    for (guint i = 0; i < N_SIGNALS; i++) {
        if (watch) {
            self->signals[i] = g_unix_signal_source_new(signals[i]);
            g_source_set_callback(self->signals[i], on_interrupt, self, NULL);
            g_source_attach(self->signals[i], NULL);
        } else {
            g_source_destroy(self->signals[i]);
            g_clear_pointer(&self->signals[i], g_source_unref);
        }
    }
}

static void
on_ensured(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;

    eb_image_ensure_finish(result, &self->changed, &self->detail, &self->error);
    self->done = TRUE;
}

static void
on_built(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;
    g_autoptr(EbImageFiles) files = eb_image_build_finish(result, &self->error);

    if (files != NULL) {
        self->changed = files->built;
        self->detail = g_strdup_printf("%s and %s", files->metadata, files->rootfs);
    }
    self->done = TRUE;
}

static int
report(Run *self, const char *what)
{
    if (self->error != NULL)
        return eb_cli_fail(self->cli, what, self->error);
    if (eb_cli_get_json(self->cli)) {
        JsonObject *object = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);
        json_object_set_string_member(object, "alias", self->alias != NULL ? self->alias : "");
        json_object_set_boolean_member(object, "changed", self->changed);
        json_object_set_string_member(object, "detail", self->detail);
        json_node_take_object(node, object);
        eb_cli_print_json(self->cli, node);
    } else {
        eb_cli_print(self->cli, "%s%s\n", self->detail,
                     self->changed || strcmp(what, "image verify") == 0 ? "" : " (nothing to do)");
    }
    return EB_EXIT_OK;
}

/* "a,b,c"; NULL for the recipe's own list. */
static char **
agents_asked_for(EbCli *cli)
{
    const char *list = eb_cli_args_value(eb_cli_get_args(cli), "agents");
    return list != NULL ? g_strsplit(list, ",", -1) : NULL;
}

static int
build(Run *self)
{
    EbCliArgs *args = eb_cli_get_args(self->cli);
    g_auto(GStrv) agents = agents_asked_for(self->cli);
    const char *cache = eb_cli_args_value(args, "cache");
    gboolean import = !eb_cli_args_flag(args, "no-import");

    if (import && !open_backend(self))
        return eb_cli_fail(self->cli, "the image cannot be imported", self->error);
    if (!import)
        self->paths = eb_cli_get_paths(self->cli, &self->error);
    if (self->paths == NULL)
        return eb_cli_fail(self->cli, "image build", self->error);
    watch_signals(self, TRUE);
    if (import)
        eb_image_ensure_async(self->paths, self->backend, self->alias, (const char *const *)agents, cache, on_progress,
                              self, self->cancellable, on_ensured, self);
    else
        eb_image_build_async(self->paths, (const char *const *)agents, cache, on_progress, self, self->cancellable,
                             on_built, self);
    eb_cli_wait(self->cli, &self->done);
    watch_signals(self, FALSE);
    return report(self, "image build");
}

static void
on_info(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;

    self->images = eb_container_backend_image_info_finish(EB_CONTAINER_BACKEND(source), result, &self->error);
    self->done = TRUE;
}

/* "current" or "stale" against the recipe with the image's own agents; "foreign": not one of ours. */
static const char *
recipe_state(Run *self, const char *digest, const char *agents)
{
    if (digest == NULL || agents == NULL)
        return "foreign";
    g_auto(GStrv) names = eb_image_agent_names(agents);
    g_autoptr(EbImageRecipe) recipe = eb_image_recipe_load(self->paths, (const char *const *)names, NULL);
    return recipe != NULL && strcmp(recipe->digest, digest) == 0 ? "current" : "stale";
}

static void
print_image(Run *self, const EbImageInfo *image, JsonArray *array)
{
    const char *recipe = g_hash_table_lookup(image->properties, "errand.recipe");
    const char *agents = g_hash_table_lookup(image->properties, "errand.agents");
    const char *state = recipe_state(self, recipe, agents);

    if (array == NULL) {
        g_autofree char *size = g_format_size_full(image->size_bytes, G_FORMAT_SIZE_IEC_UNITS);
        g_autoptr(GDateTime) created = g_date_time_new_from_unix_utc(image->created_unix);
        g_autofree char *day = created != NULL ? g_date_time_format(created, "%Y-%m-%d %H:%M") : g_strdup("-");
        eb_cli_print(self->cli, "%-24s %.12s  %10s  %s  %-7s  %s\n", image->alias != NULL ? image->alias : "-",
                     image->fingerprint, size, day, state, agents != NULL ? agents : "");
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "alias", image->alias);
    json_object_set_string_member(object, "fingerprint", image->fingerprint);
    json_object_set_int_member(object, "size", (gint64)image->size_bytes);
    json_object_set_int_member(object, "created", image->created_unix);
    json_object_set_string_member(object, "recipe", recipe);
    json_object_set_string_member(object, "agents", agents);
    json_object_set_string_member(object, "state", state);
    json_array_add_object_element(array, object);
}

static int
list(Run *self)
{
    if (!open_backend(self))
        return eb_cli_fail(self->cli, "images cannot be listed", self->error);
    eb_container_backend_image_info_async(self->backend, NULL, INFO_DEADLINE_MS, self->cancellable, on_info, self);
    eb_cli_wait(self->cli, &self->done);
    if (self->images == NULL)
        return eb_cli_fail(self->cli, "images cannot be listed", self->error);
    JsonArray *array = eb_cli_get_json(self->cli) ? json_array_new() : NULL;
    for (guint i = 0; i < self->images->len; i++)
        print_image(self, g_ptr_array_index(self->images, i), array);
    if (array != NULL) {
        JsonObject *object = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);
        json_object_set_array_member(object, "images", array);
        json_node_take_object(node, object);
        eb_cli_print_json(self->cli, node);
    }
    return EB_EXIT_OK;
}

static void
on_checked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;
    gboolean current = FALSE;

    if (eb_image_check_finish(result, &current, &self->detail, &self->error) && !current)
        eb_set_error(&self->error, EB_ERROR_NOT_FOUND, "image.stale", "%s (run: errand-box image build)", self->detail);
    self->done = TRUE;
}

static void
on_tried(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;
    char *versions = eb_image_trial_finish(result, &self->error);

    if (versions != NULL) {
        g_autofree char *head = self->detail;
        g_autofree char *shown = g_strdup(g_strchomp(versions));
        self->detail = g_strdup_printf("%s\n%s", head, shown);
    }
    g_free(versions);
    self->done = TRUE;
}

/* (transfer full): what a session may rely on, and the commands of the agents that the image says it has. */
static char **
programs_to_try(Run *self, const EbImageInfo *image)
{
    static const char *const always[] = {"git", "rg", "python3", "node", "podman", NULL};
    g_auto(GStrv) names = eb_image_agent_names(g_hash_table_lookup(image->properties, "errand.agents"));
    g_autoptr(EbImageRecipe) recipe = eb_image_recipe_load(self->paths, (const char *const *)names, &self->error);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();

    g_strv_builder_addv(builder, (const char **)always);
    for (char **name = recipe != NULL ? recipe->agents : NULL; name != NULL && *name != NULL; name++) {
        const EbPin *pin = eb_pins_get(recipe->pins, *name, &self->error);
        for (char **command = pin != NULL ? pin->commands : NULL; command != NULL && *command != NULL; command++) {
            g_autofree char *word = g_strndup(*command, strcspn(*command, "="));
            g_strv_builder_add(builder, word);
        }
    }
    return self->error == NULL ? g_strv_builder_end(builder) : NULL;
}

static int
verify(Run *self)
{
    g_auto(GStrv) agents = agents_asked_for(self->cli);

    if (!open_backend(self))
        return eb_cli_fail(self->cli, "the image cannot be verified", self->error);
    eb_image_check_async(self->paths, self->backend, self->alias, (const char *const *)agents, INFO_DEADLINE_MS,
                         self->cancellable, on_checked, self);
    eb_cli_wait(self->cli, &self->done);
    if (self->error != NULL)
        return eb_cli_fail(self->cli, "the image is not fine", self->error);
    self->done = FALSE;
    eb_container_backend_image_info_async(self->backend, self->alias, INFO_DEADLINE_MS, self->cancellable, on_info,
                                          self);
    eb_cli_wait(self->cli, &self->done);
    g_auto(GStrv) programs = self->images != NULL && self->images->len > 0
                                 ? programs_to_try(self, g_ptr_array_index(self->images, 0))
                                 : NULL;
    if (programs == NULL)
        return eb_cli_fail(self->cli, "the image cannot be verified", self->error);
    g_autofree char *sessions =
        g_build_filename(eb_config_get_state_dir(eb_cli_get_config(self->cli, NULL)), "sessions", NULL);
    self->done = FALSE;
    watch_signals(self, TRUE);
    eb_image_trial_async(self->paths, self->backend, self->alias, (const char *const *)programs, sessions,
                         self->cancellable, on_tried, self);
    eb_cli_wait(self->cli, &self->done);
    watch_signals(self, FALSE);
    if (self->error != NULL)
        return eb_cli_fail(self->cli, "the image is not fine", self->error);
    return report(self, "image verify");
}

int
eb_cmd_image(EbCli *cli, int argc, char **argv)
{
    const char *verb = eb_cli_args_get_verb(eb_cli_get_args(cli));
    Run self = {.cli = cli, .cancellable = g_cancellable_new()};
    int code = strcmp(verb, "build") == 0 ? build(&self) : strcmp(verb, "list") == 0 ? list(&self) : verify(&self);

    run_clear(&self);
    return code;
}
