/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-backend.h"
#include "core/cli/eb-cli-commands.h"
#include "core/provision/eb-image-ensure.h"
#include "core/provision/eb-image-recipe.h"
#include "core/provision/eb-image-trial.h"

#include <string.h>

#define INFO_DEADLINE_MS 15000

/* One run of the command. */
typedef struct {
    EbCli *cli;
    EbCliBackend *opened;        /* (nullable) */
    EbPaths *paths;              /* not owned, as the next two */
    EbContainerBackend *backend; /* (nullable) */
    const char *alias;           /* (nullable) */
    GCancellable *cancellable;
    gboolean done;
    gboolean changed;
    char *detail;
    GPtrArray *images;
    GError *error;
} Run;

static void
run_clear(Run *self)
{
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->opened, eb_cli_backend_free);
    g_clear_pointer(&self->detail, g_free);
    g_clear_pointer(&self->images, g_ptr_array_unref);
    g_clear_error(&self->error);
}

static gboolean
open_backend(Run *self)
{
    self->opened = eb_cli_backend_open(self->cli, self->cancellable, &self->error);
    if (self->opened == NULL)
        return FALSE;
    self->paths = self->opened->paths;
    self->backend = self->opened->backend;
    self->alias = self->opened->alias;
    return TRUE;
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
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(self->cancellable);
    if (import)
        eb_image_ensure_async(self->paths, self->backend, self->alias, (const char *const *)agents, cache,
                              eb_cli_print_progress, NULL, self->cancellable, on_ensured, self);
    else
        eb_image_build_async(self->paths, (const char *const *)agents, cache, eb_cli_print_progress, NULL,
                             self->cancellable, on_built, self);
    eb_cli_wait(self->cli, &self->done);
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
    g_autoptr(EbCliInterrupt) interrupt = eb_cli_interrupt_new(self->cancellable);
    eb_image_trial_async(self->paths, self->backend, self->alias, (const char *const *)programs, sessions,
                         self->cancellable, on_tried, self);
    eb_cli_wait(self->cli, &self->done);
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
