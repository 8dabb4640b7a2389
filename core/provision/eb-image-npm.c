/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-npm.h"

#include "core/provision/eb-pin-cache.h"
#include "core/provision/eb-pin-fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACK_DEADLINE_S 300
#define PROGRAMS_DIR "usr/local/lib/errand"
/* Of directories in a package, with those it brings along. */
#define MAX_DEPTH 64

/* Into the cache of what was fetched, where a later build finds it. */
static gboolean
fetch(EbImageJob *job, const EbImageRecipe *recipe, EbPinCache *cache, GPtrArray *packages, GError **error)
{
    g_autofree char *tree = g_path_get_dirname(recipe->guest_dir);
    g_autoptr(EbPinFetch) fetcher = eb_pin_fetch_new(cache, tree, &EB_HTTP_LIMITS_FILE, job->cancellable);
    EbPinFetched fetched = {0};

    return eb_pin_fetch_packages(fetcher, packages, &fetched, error);
}

static gboolean
has_odd_entry(int fd, guint depth)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    gboolean odd = dir == NULL || depth > MAX_DEPTH;

    while (!odd && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        odd = fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0;
        if (!odd && S_ISDIR(info.st_mode))
            odd = has_odd_entry(openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                                depth + 1);
        else
            odd = odd || !S_ISREG(info.st_mode) || info.st_nlink != 1;
    }
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    return odd;
}

gboolean
eb_image_npm_check_tree(const char *dir, const char *what, GError **error)
{
    if (!has_odd_entry(open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), 0))
        return TRUE;
    eb_set_error(error, EB_ERROR_INTEGRITY, "image.package",
                 "package %s holds something that is neither a directory nor a file of its own: no package does", what);
    return FALSE;
}

/* Checked again here: the fetch may have been another run's. */
static gboolean
unpack(EbImageJob *job, EbPinCache *cache, const EbPinPackage *package, const char *home, GError **error)
{
    EbPinExpected expected = eb_pin_package_expected(package);
    g_autofree char *archive = eb_pin_cache_path(cache, package->integrity);
    g_autofree char *target = g_build_filename(home, package->path, NULL);
    const char *const argv[] = {
        "tar", "-xzf", archive, "-C", target, "--strip-components=1", "--no-same-owner", "--no-same-permissions", NULL};
    gboolean present = FALSE;

    if (!eb_pin_cache_check(cache, &expected, &present, error))
        return FALSE;
    if (!present) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "image.npm", "%s: somebody removed it while the image was made",
                     archive);
        return FALSE;
    }
    if (g_mkdir_with_parents(target, 0755) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.npm", "%s: %s", target, g_strerror(errno));
        return FALSE;
    }
    return eb_image_job_run(job, argv, UNPACK_DEADLINE_S, NULL, error) &&
           eb_image_npm_check_tree(target, package->name, error);
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
eb_image_npm_install(EbImageJob *job, const EbImageRecipe *recipe, const EbPin *pin, const char *root, GError **error)
{
    g_autofree char *cache_dir = eb_pin_cache_default_dir();
    g_autofree char *home = g_build_filename(root, PROGRAMS_DIR, pin->name, NULL);
    g_autoptr(GBytes) lock = eb_pins_read_lock(pin, recipe->guest_dir, error);
    g_autoptr(GPtrArray) packages =
        lock != NULL ? eb_pins_list_packages(pin, lock, recipe->cpu, recipe->avx2, error) : NULL;

    g_autoptr(EbPinCache) cache = packages != NULL ? eb_pin_cache_open(cache_dir, TRUE, error) : NULL;

    if (cache == NULL || !fetch(job, recipe, cache, packages, error))
        return FALSE;
    for (guint i = 0; i < packages->len; i++) {
        if (!unpack(job, cache, g_ptr_array_index(packages, i), home, error))
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
