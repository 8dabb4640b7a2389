/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-build.h"
#include "core/base/eb-own-dir.h"
#include "core/provision/eb-image-npm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BOOTSTRAP_DEADLINE_S 1800
#define STEP_DEADLINE_S 600
#define LOCK_POLL_US 200000
#define LOCK_WAIT_S 3600
#define PARTIAL_TRIES 5

/* One build. */
typedef struct {
    EbImageJob job;
    EbPaths *paths;
    char **agents;
    char *cache_dir;
    EbImageRecipe *recipe;
    char *partial;    /* (nullable): directory being filled; gone at the end of the build */
    int partial_lock; /* -1, or the directory itself, locked as long as it is being filled */
} Build;

void
eb_image_files_free(EbImageFiles *self)
{
    g_free(self->metadata);
    g_free(self->rootfs);
    g_free(self);
}

static void
build_free(gpointer data)
{
    Build *self = data;

    eb_image_job_clear(&self->job);
    g_clear_object(&self->paths);
    g_strfreev(self->agents);
    g_free(self->cache_dir);
    g_clear_pointer(&self->recipe, eb_image_recipe_free);
    g_free(self->partial);
    if (self->partial_lock >= 0)
        close(self->partial_lock);
    g_free(self);
}

char *
eb_image_default_cache(void)
{
    const char *named = g_getenv("ERRAND_BOX_CACHE");
    return g_strdup(named != NULL && named[0] == '/' ? named : "/var/cache/errand-box/images");
}

static gboolean
step(Build *self, const char *const *words, guint deadline_s, char **output, GError **error)
{
    g_autofree char *script = g_build_filename(self->recipe->guest_dir, "image", "rootfs.sh", NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();

    g_ptr_array_add(argv, (gpointer) "sh");
    g_ptr_array_add(argv, script);
    for (; *words != NULL; words++)
        g_ptr_array_add(argv, (gpointer)*words);
    g_ptr_array_add(argv, NULL);
    return eb_image_job_run(&self->job, (const char *const *)argv->pdata, deadline_s, output, error);
}

static gboolean
check_host(Build *self, GError **error)
{
    static const struct {
        const char *program, *package;
    } needed[] = {{"mmdebstrap", "mmdebstrap"}, {"npm", "npm"}, {"unshare", "util-linux"}, {"tar", "tar"}};
    struct statvfs space;

    if (getuid() != 0) {
        eb_set_error(error, EB_ERROR_DENIED, "image.root", "an image is built as root");
        return FALSE;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++) {
        g_autofree char *path = g_find_program_in_path(needed[i].program);
        if (path == NULL) {
            eb_set_error(error, EB_ERROR_NOT_FOUND, "image.tool", "%s is not installed (apt-get install %s)",
                         needed[i].program, needed[i].package);
            return FALSE;
        }
    }
    if (statvfs(self->cache_dir, &space) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.cache", "%s: %s", self->cache_dir, g_strerror(errno));
        return FALSE;
    }
    guint64 available = (guint64)space.f_bavail * space.f_frsize;
    if (available < self->recipe->free_space) {
        g_autofree char *have = g_format_size_full(available, G_FORMAT_SIZE_IEC_UNITS);
        g_autofree char *want = g_format_size_full(self->recipe->free_space, G_FORMAT_SIZE_IEC_UNITS);
        eb_set_error(error, EB_ERROR_QUOTA, "image.space", "%s has %s free, an image build needs %s", self->cache_dir,
                     have, want);
        return FALSE;
    }
    return TRUE;
}

static gboolean
write_metadata(Build *self, GError **error)
{
    g_autofree char *dir = g_build_filename(self->partial, "metadata", NULL);
    g_autofree char *file = g_build_filename(dir, "metadata.yaml", NULL);
    g_autofree char *tar = g_build_filename(self->partial, "metadata.tar", NULL);
    g_autofree char *agents = eb_image_recipe_describe_agents(self->recipe);
    const char *const argv[] = {"tar", "--owner=0", "--group=0", "-C", dir, "-cf", tar, "metadata.yaml", NULL};
    struct utsname machine;

    uname(&machine);
    /* No templates: incusd would write them into the guest's file system as root. */
    g_autofree char *text = g_strdup_printf("architecture: %s\ncreation_date: %" G_GINT64_FORMAT "\nproperties:\n"
                                            "  description: errand-box guest\n  os: debian\n  release: %s\n"
                                            "  errand.recipe: \"%s\"\n  errand.agents: \"%s\"\n",
                                            machine.machine, g_get_real_time() / G_USEC_PER_SEC, self->recipe->suite,
                                            self->recipe->digest, agents);
    if (g_mkdir_with_parents(dir, 0700) != 0 || !g_file_set_contents(file, text, -1, error)) {
        if (error != NULL && *error == NULL)
            eb_set_error(error, EB_ERROR_FAILED, "image.cache", "%s: %s", dir, g_strerror(errno));
        return FALSE;
    }
    return eb_image_job_run(&self->job, argv, STEP_DEADLINE_S, NULL, error);
}

static gboolean
install_programs(Build *self, const char *root, GError **error)
{
    for (char **name = self->recipe->programs; *name != NULL; name++) {
        const EbPin *pin = eb_pins_get(self->recipe->pins, *name, error);
        if (pin == NULL)
            return FALSE;
        g_autofree char *stage = g_strdup_printf("%s %s", pin->name, pin->version);
        eb_image_job_begin(&self->job, stage);
        if (!eb_image_npm_install(&self->job, self->recipe, pin, root, error))
            return FALSE;
    }
    return TRUE;
}

/* Every command of every program answers --version inside the new root. */
static gboolean
check_programs(Build *self, const char *root, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(words, g_strdup("check"));
    g_ptr_array_add(words, g_strdup(root));
    for (char **name = self->recipe->programs; *name != NULL; name++) {
        const EbPin *pin = eb_pins_get(self->recipe->pins, *name, error);
        for (char **command = pin != NULL ? pin->commands : NULL; command != NULL && *command != NULL; command++)
            g_ptr_array_add(words, g_strndup(*command, strcspn(*command, "=")));
    }
    g_ptr_array_add(words, NULL);
    eb_image_job_begin(&self->job, "trying the programs");
    return step(self, (const char *const *)words->pdata, STEP_DEADLINE_S, NULL, error);
}

static gboolean
make_image(Build *self, const char *root, GError **error)
{
    g_autofree char *packages = g_strjoinv(",", self->recipe->packages);
    g_autofree char *init = g_build_filename(self->partial, "init", NULL);
    g_autofree char *tar = g_build_filename(self->partial, "rootfs.tar", NULL);
    g_autofree char *stage = g_strdup_printf("Debian %s", self->recipe->suite);
    const char *const bootstrap[] = {"bootstrap", root, self->recipe->suite, packages, NULL};
    const char *const configure[] = {"configure", root, init, NULL};
    const char *const pack[] = {"pack", root, tar, NULL};
    gsize length = 0;
    const char *bytes = g_bytes_get_data(self->recipe->init, &length);

    if (!g_file_set_contents(init, bytes, (gssize)length, error)) {
        eb_error_convert(error, "image.cache", NULL);
        return FALSE;
    }
    eb_image_job_begin(&self->job, stage);
    if (!step(self, bootstrap, BOOTSTRAP_DEADLINE_S, NULL, error))
        return FALSE;
    eb_image_job_begin(&self->job, "settings of the guest");
    if (!step(self, configure, STEP_DEADLINE_S, NULL, error) || !install_programs(self, root, error) ||
        !check_programs(self, root, error))
        return FALSE;
    eb_image_job_begin(&self->job, "packing");
    if (!step(self, pack, STEP_DEADLINE_S, NULL, error) || !write_metadata(self, error))
        return FALSE;
    eb_image_job_begin(&self->job, NULL);
    return TRUE;
}

static EbImageFiles *
files_in(const char *dir, gboolean built)
{
    EbImageFiles *files = g_new0(EbImageFiles, 1);

    files->metadata = g_build_filename(dir, "metadata.tar", NULL);
    files->rootfs = g_build_filename(dir, "rootfs.tar", NULL);
    files->built = built;
    return files;
}

/* The directory @path itself, locked: -1 while another process fills it, or when it is no directory (any more). */
static int
lock_directory(const char *path)
{
    struct stat opened, named;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && lstat(path, &named) == 0 &&
        opened.st_dev == named.st_dev && opened.st_ino == named.st_ino)
        return fd;
    close(fd);
    return -1;
}

/* A build that was killed leaves its directory behind, but not the lock on it. */
static void
remove_dead_builds(const char *cache_dir)
{
    g_autoptr(GDir) dir = g_dir_open(cache_dir, 0, NULL);

    for (const char *name = dir != NULL ? g_dir_read_name(dir) : NULL; name != NULL; name = g_dir_read_name(dir)) {
        if (!g_str_has_prefix(name, EB_IMAGE_PARTIAL))
            continue;
        g_autofree char *path = g_build_filename(cache_dir, name, NULL);
        int lock = lock_directory(path);
        if (lock < 0)
            continue;
        eb_image_job_remove_tree(path);
        close(lock);
    }
}

/* Makes the partial directory and locks it: whoever cleans leaves it alone, even with the cache's lock file removed. */
static gboolean
begin_partial(Build *self, GError **error)
{
    for (guint tries = 0; tries < PARTIAL_TRIES; tries++) {
        g_free(self->partial);
        self->partial = g_build_filename(self->cache_dir, EB_IMAGE_PARTIAL "XXXXXX", NULL);
        if (g_mkdtemp(self->partial) == NULL) {
            eb_set_error(error, EB_ERROR_FAILED, "image.cache", "%s: %s", self->partial, g_strerror(errno));
            return FALSE;
        }
        self->partial_lock = lock_directory(self->partial);
        if (self->partial_lock >= 0)
            return TRUE;
    }
    eb_set_error(error, EB_ERROR_BUSY, "image.cache", "%s is being cleaned by another build", self->cache_dir);
    return FALSE;
}

static EbImageFiles *
build_locked(Build *self, const char *final, GError **error)
{
    if (g_file_test(final, G_FILE_TEST_IS_DIR))
        return files_in(final, FALSE);
    remove_dead_builds(self->cache_dir);
    if (!check_host(self, error))
        return NULL;
    if (!begin_partial(self, error))
        return NULL;
    self->job.log_path = g_build_filename(self->partial, "log", NULL);
    g_autofree char *root = g_build_filename(self->partial, "root", NULL);
    gboolean made = make_image(self, root, error);
    static const char *const scaffolding[] = {"root", "packages", "metadata", "init"};
    for (gsize i = 0; i < G_N_ELEMENTS(scaffolding); i++) {
        g_autofree char *path = g_build_filename(self->partial, scaffolding[i], NULL);
        eb_image_job_remove_tree(path);
    }
    if (made && rename(self->partial, final) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.cache", "%s: %s", final, g_strerror(errno));
        made = FALSE;
    }
    if (!made) {
        eb_image_job_remove_tree(self->partial);
        return NULL;
    }
    return files_in(final, TRUE);
}

/* -1 and @error, or the descriptor that holds the lock. */
static int
lock_cache(Build *self, GError **error)
{
    g_autofree char *path = g_build_filename(self->cache_dir, "lock", NULL);
    gint64 end = g_get_monotonic_time() + (gint64)LOCK_WAIT_S * G_USEC_PER_SEC;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.cache", "%s: %s", path, g_strerror(errno));
        return -1;
    }
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (self->job.stage == NULL)
            eb_image_job_begin(&self->job, "waiting for another image build");
        gboolean cancelled = g_cancellable_is_cancelled(self->job.cancellable);
        if (cancelled || errno != EWOULDBLOCK || g_get_monotonic_time() > end) {
            eb_set_error(error, cancelled ? EB_ERROR_CANCELLED : EB_ERROR_BUSY, "image.lock",
                         "%s is held by another image build", path);
            close(fd);
            return -1;
        }
        g_usleep(LOCK_POLL_US);
    }
    eb_image_job_begin(&self->job, NULL);
    return fd;
}

static void
build_thread(GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
    Build *self = data;
    GError *error = NULL;

    self->recipe = eb_image_recipe_load(self->paths, (const char *const *)self->agents, &error);
    if (self->recipe == NULL) {
        g_task_return_error(task, error);
        return;
    }
    if (g_mkdir_with_parents(self->cache_dir, 0755) != 0) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_FAILED, "%s: %s", self->cache_dir, g_strerror(errno));
        return;
    }
    /* A finished build is found in it by a name that everybody can compute, and becomes every guest. */
    char *real = geteuid() == 0 ? eb_own_dir_resolve(self->cache_dir, &error) : g_strdup(self->cache_dir);
    if (real == NULL) {
        g_task_return_error(task, error);
        return;
    }
    g_free(self->cache_dir);
    self->cache_dir = real;
    g_autofree char *final = g_build_filename(self->cache_dir, self->recipe->digest, NULL);
    int lock = lock_cache(self, &error);
    EbImageFiles *files = lock >= 0 ? build_locked(self, final, &error) : NULL;
    if (lock >= 0)
        close(lock);
    if (files != NULL)
        g_task_return_pointer(task, files, (GDestroyNotify)eb_image_files_free);
    else
        g_task_return_error(task, error);
}

void
eb_image_build_async(EbPaths *paths, const char *const *agents, const char *cache_dir, EbImageProgress progress,
                     gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                     gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    Build *self = g_new0(Build, 1);

    g_task_set_source_tag(task, eb_image_build_async);
    self->partial_lock = -1;
    self->paths = g_object_ref(paths);
    self->agents = g_strdupv((char **)agents);
    self->cache_dir = cache_dir != NULL ? g_strdup(cache_dir) : eb_image_default_cache();
    self->job.cancellable = cancellable != NULL ? g_object_ref(cancellable) : NULL;
    self->job.progress = progress;
    self->job.progress_data = progress_data;
    self->job.context = g_main_context_ref_thread_default();
    g_task_set_task_data(task, self, build_free);
    g_task_run_in_thread(task, build_thread);
}

EbImageFiles *
eb_image_build_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, NULL), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
