/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-recipe.h"
#include "core/config/eb-toml.h"
#include "core/provision/eb-machine.h"

#include <string.h>

/* Changes whenever the builder itself makes a different image of the same recipe. */
#define BUILDER_VERSION "errand-box image 1"
#define MIN_FREE (G_GUINT64_CONSTANT(1) << 30)
#define MAX_FREE (G_GUINT64_CONSTANT(1) << 40)
#define MAX_PROGRAMS 32

void
eb_image_recipe_free(EbImageRecipe *self)
{
    g_free(self->guest_dir);
    g_free(self->suite);
    g_strfreev(self->packages);
    g_strfreev(self->programs);
    g_strfreev(self->agents);
    g_clear_pointer(&self->init, g_bytes_unref);
    g_clear_pointer(&self->pins, eb_pins_free);
    g_free(self->digest);
    g_free(self);
}

/* Debian's own alphabet for package names: they become one argument of the bootstrap. */
static gboolean
check_words(EbConfigSection *root, const char *key, char **words, GError **error)
{
    for (char **word = words; *word != NULL; word++) {
        if (**word != '\0' && strspn(*word, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == strlen(*word))
            continue;
        g_autofree char *where = eb_config_section_where(root, key);
        eb_set_error(error, EB_ERROR_CONFIG, "image.recipe", "%s: %s: \"%s\" is no name", where, key, *word);
        return FALSE;
    }
    return TRUE;
}

static gboolean
read_recipe(EbImageRecipe *self, const char *path, const char *text, gsize length, const char *const *agents,
            GError **error)
{
    g_autoptr(EbConfigSection) root = eb_toml_parse(text, length, path, error);

    if (root == NULL)
        return FALSE;
    self->suite = eb_config_section_get_string(root, "suite", "trixie", error);
    self->packages = self->suite != NULL ? eb_config_section_get_strings(root, "packages", error) : NULL;
    g_auto(GStrv) tools = self->packages != NULL ? eb_config_section_get_strings(root, "tools", error) : NULL;
    g_auto(GStrv) usual = tools != NULL ? eb_config_section_get_strings(root, "agents", error) : NULL;
    if (usual == NULL ||
        !eb_config_section_get_size(root, "free_space", MIN_FREE, MIN_FREE, MAX_FREE, &self->free_space, error) ||
        !eb_config_section_check_unknown(root, error) || !check_words(root, "packages", self->packages, error))
        return FALSE;
    self->agents = g_strdupv(agents != NULL ? (char **)agents : usual);
    g_autoptr(GPtrArray) programs = g_ptr_array_new_with_free_func(g_free);
    for (char **name = tools; *name != NULL; name++)
        g_ptr_array_add(programs, g_strdup(*name));
    for (char **name = self->agents; *name != NULL; name++) {
        for (guint i = 0; i < programs->len; i++) {
            if (strcmp(g_ptr_array_index(programs, i), *name) == 0) {
                eb_set_error(error, EB_ERROR_INVALID, "image.agents", "%s is named twice", *name);
                return FALSE;
            }
        }
        g_ptr_array_add(programs, g_strdup(*name));
    }
    if (programs->len > MAX_PROGRAMS) {
        eb_set_error(error, EB_ERROR_INVALID, "image.agents", "more than %d programs", MAX_PROGRAMS);
        return FALSE;
    }
    g_ptr_array_add(programs, NULL);
    self->programs = (char **)g_ptr_array_steal(programs, NULL);
    return TRUE;
}

static void
add(GChecksum *sum, const char *text)
{
    g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text) + 1);
}

static gboolean
make_digest(EbImageRecipe *self, const char *recipe, gsize recipe_length, GError **error)
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    g_autofree char *script = g_build_filename(self->guest_dir, "image", "rootfs.sh", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(script, &text, &length, error)) {
        eb_error_convert(error, "image.recipe", NULL);
        return FALSE;
    }
    add(sum, BUILDER_VERSION);
    add(sum, self->cpu);
    add(sum, self->avx2 ? "avx2" : "baseline");
    g_checksum_update(sum, (const guchar *)recipe, (gssize)recipe_length);
    g_checksum_update(sum, (const guchar *)text, (gssize)length);
    g_checksum_update(sum, g_bytes_get_data(self->init, NULL), (gssize)g_bytes_get_size(self->init));
    for (char **name = self->programs; *name != NULL; name++) {
        const EbPin *pin = eb_pins_get(self->pins, *name, error);
        if (pin == NULL)
            return FALSE;
        g_autofree char *commands = g_strjoinv("\n", pin->commands);
        g_autofree char *baseline = g_strjoinv("\n", pin->commands_baseline);
        add(sum, pin->name);
        add(sum, pin->version);
        add(sum, pin->digest);
        add(sum, pin->lock_sha256);
        add(sum, commands);
        add(sum, baseline);
    }
    self->digest = g_strdup(g_checksum_get_string(sum));
    return TRUE;
}

EbImageRecipe *
eb_image_recipe_load(EbPaths *paths, const char *const *agents, GError **error)
{
    g_autoptr(EbImageRecipe) self = g_new0(EbImageRecipe, 1);
    const char *data_dir = eb_paths_get_data_dir(paths);
    g_autofree char *pins = g_build_filename(data_dir, "pins.toml", NULL);
    g_autofree char *path = g_build_filename(data_dir, "guest", "image", "recipe.toml", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;

    self->guest_dir = g_build_filename(data_dir, "guest", NULL);
    if (!g_file_get_contents(path, &text, &length, error)) {
        eb_error_convert(error, "image.recipe", "the image's recipe cannot be read");
        return NULL;
    }
    self->pins = eb_pins_load(pins, error);
    EbMachine machine;
    if (self->pins == NULL || !eb_machine_find(&machine, error))
        return NULL;
    self->cpu = machine.cpu;
    self->avx2 = machine.avx2;
    GBytes *init = eb_paths_get_guest_program(paths, "init", error);
    self->init = init != NULL ? g_bytes_ref(init) : NULL;
    if (init == NULL || !read_recipe(self, path, text, length, agents, error) ||
        !make_digest(self, text, length, error))
        return NULL;
    return g_steal_pointer(&self);
}

char *
eb_image_recipe_describe_agents(const EbImageRecipe *self)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (char **name = self->agents; *name != NULL; name++) {
        const EbPin *pin = eb_pins_get(self->pins, *name, NULL);
        g_string_append_printf(text, "%s%s=%s", text->len > 0 ? "," : "", *name, pin != NULL ? pin->version : "");
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char **
eb_image_agent_names(const char *description)
{
    char **names = g_strsplit(description != NULL ? description : "", ",", MAX_PROGRAMS);

    for (char **name = names; *name != NULL; name++)
        (*name)[strcspn(*name, "=")] = '\0';
    return names;
}
