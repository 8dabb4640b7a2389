/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-commands.h"
#include "core/provision/eb-image-ensure.h"

#include <glib-unix.h>
#include <signal.h>
#include <string.h>

#define START_DEADLINE_MS 15000
#define INFO_DEADLINE_MS 15000

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
        eb_cli_print(self->cli, "%s%s\n", self->detail, self->changed ? "" : " (nothing to do)");
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
    g_autoptr(GSource) on_int = g_unix_signal_source_new(SIGINT);
    g_autoptr(GSource) on_term = g_unix_signal_source_new(SIGTERM);
    g_autoptr(GSource) on_hup = g_unix_signal_source_new(SIGHUP);
    gboolean import = !eb_cli_args_flag(args, "no-import");

    if (import && !open_backend(self))
        return eb_cli_fail(self->cli, "the image cannot be imported", self->error);
    if (!import)
        self->paths = eb_cli_get_paths(self->cli, &self->error);
    if (self->paths == NULL)
        return eb_cli_fail(self->cli, "image build", self->error);
    g_source_set_callback(on_int, on_interrupt, self, NULL);
    g_source_attach(on_int, NULL);
    g_source_set_callback(on_term, on_interrupt, self, NULL);
    g_source_attach(on_term, NULL);
    g_source_set_callback(on_hup, on_interrupt, self, NULL);
    g_source_attach(on_hup, NULL);
    if (import)
        eb_image_ensure_async(self->paths, self->backend, self->alias, (const char *const *)agents, cache, on_progress,
                              self, self->cancellable, on_ensured, self);
    else
        eb_image_build_async(self->paths, (const char *const *)agents, cache, on_progress, self, self->cancellable,
                             on_built, self);
    eb_cli_wait(self->cli, &self->done);
    g_source_destroy(on_int);
    g_source_destroy(on_term);
    g_source_destroy(on_hup);
    return report(self, "image build");
}

static void
on_info(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Run *self = user_data;

    self->images = eb_container_backend_image_info_finish(EB_CONTAINER_BACKEND(source), result, &self->error);
    self->done = TRUE;
}

static void
print_image(Run *self, const EbImageInfo *image, JsonArray *array)
{
    const char *recipe = g_hash_table_lookup(image->properties, "errand.recipe");
    const char *agents = g_hash_table_lookup(image->properties, "errand.agents");

    if (array == NULL) {
        g_autofree char *size = g_format_size_full(image->size_bytes, G_FORMAT_SIZE_IEC_UNITS);
        eb_cli_print(self->cli, "%-24s %.12s  %10s  %s\n", image->alias != NULL ? image->alias : "-",
                     image->fingerprint, size, agents != NULL ? agents : "");
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "alias", image->alias);
    json_object_set_string_member(object, "fingerprint", image->fingerprint);
    json_object_set_int_member(object, "size", (gint64)image->size_bytes);
    json_object_set_int_member(object, "created", image->created_unix);
    json_object_set_string_member(object, "recipe", recipe);
    json_object_set_string_member(object, "agents", agents);
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
