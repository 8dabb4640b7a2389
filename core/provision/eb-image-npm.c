/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-npm.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FETCH_DEADLINE_S 900
#define UNPACK_DEADLINE_S 300
#define PROGRAMS_DIR "usr/local/lib/errand"

static gboolean
fetch(EbImageJob *job, GPtrArray *packages, const char *work, GError **error)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    static const char *const words[] = {
        "npm", "pack", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--pack-destination"};

    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        g_ptr_array_add(argv, g_strdup(words[i]));
    g_ptr_array_add(argv, g_strdup(work));
    g_ptr_array_add(argv, g_strdup("--"));
    for (guint i = 0; i < packages->len; i++) {
        const EbPinPackage *package = g_ptr_array_index(packages, i);
        g_ptr_array_add(argv, g_strdup_printf("%s@%s", package->name, package->version));
    }
    g_ptr_array_add(argv, NULL);
    return eb_image_job_run(job, (const char *const *)argv->pdata, FETCH_DEADLINE_S, NULL, error);
}

/* The name npm gives an archive: "@scope/name" becomes "scope-name". */
static char *
archive_path(const EbPinPackage *package, const char *work)
{
    g_autofree char *name = g_strdup(package->name[0] == '@' ? package->name + 1 : package->name);
    g_autofree char *file = NULL;

    g_strdelimit(name, "/", '-');
    file = g_strdup_printf("%s-%s.tgz", name, package->version);
    return g_build_filename(work, file, NULL);
}

static gboolean
unpack(EbImageJob *job, const EbPinPackage *package, const char *home, const char *work, GError **error)
{
    g_autofree char *archive = archive_path(package, work);
    g_autofree char *target = g_build_filename(home, package->path, NULL);
    const char *const argv[] = {
        "tar", "-xzf", archive, "-C", target, "--strip-components=1", "--no-same-owner", "--no-same-permissions", NULL};

    if (!eb_pins_check_file(archive, package->integrity, error))
        return FALSE;
    if (g_mkdir_with_parents(target, 0755) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.npm", "%s: %s", target, g_strerror(errno));
        return FALSE;
    }
    return eb_image_job_run(job, argv, UNPACK_DEADLINE_S, NULL, error);
}

static gboolean
link_command(const char *root, const char *home, const EbPin *pin, const char *command, GError **error)
{
    const char *equals = strchr(command, '=');
    g_autofree char *name = g_strndup(command, (gsize)(equals - command));
    g_autofree char *program = g_build_filename(home, equals + 1, NULL);
    g_autofree char *target = g_build_filename("..", "lib", "errand", pin->name, equals + 1, NULL);
    g_autofree char *link = g_build_filename(root, "usr/local/bin", name, NULL);

    if (!g_file_test(program, G_FILE_TEST_IS_REGULAR) || chmod(program, 0755) != 0) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "image.npm", "%s %s has no %s for this machine", pin->package,
                     pin->version, equals + 1);
        return FALSE;
    }
    if (symlink(target, link) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_EXISTS, "image.npm", "%s: %s", link, g_strerror(errno));
    return FALSE;
}

gboolean
eb_image_npm_install(EbImageJob *job, const EbImageRecipe *recipe, const EbPin *pin, const char *root, const char *work,
                     GError **error)
{
    g_autofree char *home = g_build_filename(root, PROGRAMS_DIR, pin->name, NULL);
    g_autoptr(GBytes) lock = eb_pins_read_lock(pin, recipe->guest_dir, error);
    g_autoptr(GPtrArray) packages =
        lock != NULL ? eb_pins_list_packages(pin, lock, recipe->cpu, recipe->avx2, error) : NULL;

    if (packages == NULL || !fetch(job, packages, work, error))
        return FALSE;
    for (guint i = 0; i < packages->len; i++) {
        if (!unpack(job, g_ptr_array_index(packages, i), home, work, error))
            return FALSE;
    }
    const char *const modes[] = {"chmod", "-R", "u+rwX,go+rX,go-w", "--", home, NULL};
    if (!eb_image_job_run(job, modes, UNPACK_DEADLINE_S, NULL, error))
        return FALSE;
    char **commands = !recipe->avx2 && pin->commands_baseline[0] != NULL ? pin->commands_baseline : pin->commands;
    for (char **command = commands; *command != NULL; command++) {
        if (!link_command(root, home, pin, *command, error))
            return FALSE;
    }
    return TRUE;
}
