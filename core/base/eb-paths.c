/* SPDX-License-Identifier: MIT */
#include "core/base/eb-paths.h"

#include "eb-build-config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What stands in the guest: small static programs, none near this. */
#define MAX_GUEST_PROGRAM (16 * 1024 * 1024)
/* How far below the build directory a test program may lie. */
#define MAX_LEVELS_UP 6

typedef struct {
    const char *name;      /* as asked for */
    const char *build;     /* below the build directory */
    const char *installed; /* installed */
} Program;

static const Program guest_programs[] = {
    {"launch", "guest/launch", EB_LIBEXEC_DIR "/guest/launch"},
    {"relay", "guest/relay", EB_LIBEXEC_DIR "/guest/relay"},
    {"init", "guest/init", EB_LIBEXEC_DIR "/guest/init"},
};
/* Stand where the running program stands. */
static const char *const own_programs[] = {"errand-box", "errand-boxd", "errand-box-watchdog"};
static const Program broker_program = {"errand-box-broker", "errand-box-broker", EB_LIBEXEC_DIR "/errand-box-broker"};

typedef struct {
    int fd; /* -1 and saved_errno */
    int saved_errno;
    char *path;
    GBytes *bytes; /* (nullable): read on first use */
} OpenFile;

struct _EbPaths {
    GObject parent_instance;
    gboolean uninstalled;
    char *plugin_dir;
    char *data_dir;
    OpenFile broker;
    OpenFile guest[G_N_ELEMENTS(guest_programs)];
    char *own[G_N_ELEMENTS(own_programs)];
};

G_DEFINE_FINAL_TYPE(EbPaths, eb_paths, G_TYPE_OBJECT)

static void
open_file_clear(OpenFile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    g_clear_pointer(&file->path, g_free);
    g_clear_pointer(&file->bytes, g_bytes_unref);
}

static void
eb_paths_finalize(GObject *object)
{
    EbPaths *self = EB_PATHS(object);

    open_file_clear(&self->broker);
    for (guint i = 0; i < G_N_ELEMENTS(self->guest); i++)
        open_file_clear(&self->guest[i]);
    for (guint i = 0; i < G_N_ELEMENTS(self->own); i++)
        g_free(self->own[i]);
    g_free(self->plugin_dir);
    g_free(self->data_dir);
    G_OBJECT_CLASS(eb_paths_parent_class)->finalize(object);
}

static void
eb_paths_class_init(EbPathsClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_paths_finalize;
}

static void
eb_paths_init(EbPaths *self)
{
    self->broker.fd = -1;
    for (guint i = 0; i < G_N_ELEMENTS(self->guest); i++)
        self->guest[i].fd = -1;
}

static gboolean
is_build_dir(const char *dir)
{
    g_autofree char *meson = g_build_filename(dir, "meson-private", NULL);
    g_autofree char *plugins = g_build_filename(dir, "plugins", NULL);
    return g_file_test(meson, G_FILE_TEST_IS_DIR) && g_file_test(plugins, G_FILE_TEST_IS_DIR);
}

/* The build directory this program stands in, at its top or, for a test, below. NULL when installed. */
static char *
find_build_dir(const char *exe)
{
    g_autofree char *dir = g_path_get_dirname(exe);

    for (guint level = 0; level < MAX_LEVELS_UP && strcmp(dir, "/") != 0; level++) {
        if (is_build_dir(dir))
            return g_steal_pointer(&dir);
        g_autofree char *parent = g_path_get_dirname(dir);
        g_free(dir);
        dir = g_steal_pointer(&parent);
    }
    return NULL;
}

static void
open_program(OpenFile *file, const Program *program, const char *build_dir)
{
    file->path = build_dir != NULL ? g_build_filename(build_dir, program->build, NULL) : g_strdup(program->installed);
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    file->saved_errno = file->fd < 0 ? errno : 0;
}

EbPaths *
eb_paths_new(GError **error)
{
    g_autoptr(EbPaths) self = NULL;
    g_autofree char *exe = g_file_read_link("/proc/self/exe", NULL);

    if (exe == NULL) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "paths.proc", "/proc/self/exe cannot be read: is /proc mounted?");
        return NULL;
    }
    g_autofree char *build_dir = find_build_dir(exe);
    self = g_object_new(EB_TYPE_PATHS, NULL);
    self->uninstalled = build_dir != NULL;
    self->plugin_dir = build_dir != NULL ? g_build_filename(build_dir, "plugins", NULL) : g_strdup(EB_PLUGIN_DIR);
    self->data_dir = build_dir != NULL ? g_build_filename(build_dir, "share", NULL) : g_strdup(EB_DATA_DIR);
    open_program(&self->broker, &broker_program, build_dir);
    for (guint i = 0; i < G_N_ELEMENTS(guest_programs); i++)
        open_program(&self->guest[i], &guest_programs[i], build_dir);
    g_autofree char *own_dir = build_dir != NULL ? g_strdup(build_dir) : g_path_get_dirname(exe);
    for (guint i = 0; i < G_N_ELEMENTS(own_programs); i++)
        self->own[i] = g_build_filename(own_dir, own_programs[i], NULL);
    return g_steal_pointer(&self);
}

gboolean
eb_paths_is_uninstalled(EbPaths *self)
{
    g_return_val_if_fail(EB_IS_PATHS(self), FALSE);
    return self->uninstalled;
}

const char *
eb_paths_get_plugin_dir(EbPaths *self)
{
    g_return_val_if_fail(EB_IS_PATHS(self), NULL);
    return self->plugin_dir;
}

const char *
eb_paths_get_data_dir(EbPaths *self)
{
    g_return_val_if_fail(EB_IS_PATHS(self), NULL);
    return self->data_dir;
}

static gboolean
usable(const OpenFile *file, GError **error)
{
    if (file->fd >= 0)
        return TRUE;
    eb_set_error(error, file->saved_errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_DENIED, "paths.program",
                 "%s: %s (the installation is not complete)", file->path, g_strerror(file->saved_errno));
    return FALSE;
}

int
eb_paths_get_broker_fd(EbPaths *self, GError **error)
{
    g_return_val_if_fail(EB_IS_PATHS(self), -1);
    return usable(&self->broker, error) ? self->broker.fd : -1;
}

static GBytes *
read_program(OpenFile *file, GError **error)
{
    struct stat info;

    if (fstat(file->fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= 0 ||
        info.st_size > MAX_GUEST_PROGRAM) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "paths.program", "%s: not a program", file->path);
        return NULL;
    }
    gsize length = (gsize)info.st_size;
    g_autofree guint8 *data = g_malloc(length);
    for (gsize at = 0; at < length;) {
        ssize_t got = pread(file->fd, data + at, length - at, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            eb_set_error(error, EB_ERROR_FAILED, "paths.program", "%s: cannot be read whole", file->path);
            return NULL;
        }
        at += (gsize)got;
    }
    return g_bytes_new_take(g_steal_pointer(&data), length);
}

GBytes *
eb_paths_get_guest_program(EbPaths *self, const char *name, GError **error)
{
    g_return_val_if_fail(EB_IS_PATHS(self) && name != NULL, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(guest_programs); i++) {
        OpenFile *file = &self->guest[i];
        if (strcmp(guest_programs[i].name, name) != 0)
            continue;
        if (!usable(file, error))
            return NULL;
        if (file->bytes == NULL)
            file->bytes = read_program(file, error);
        return file->bytes;
    }
    eb_set_error(error, EB_ERROR_INVALID, "paths.program", "there is no guest program \"%s\"", name);
    return NULL;
}

const char *
eb_paths_get_program_path(EbPaths *self, const char *name)
{
    g_return_val_if_fail(EB_IS_PATHS(self) && name != NULL, NULL);

    if (strcmp(name, broker_program.name) == 0)
        return self->broker.path;
    for (guint i = 0; i < G_N_ELEMENTS(guest_programs); i++)
        if (strcmp(guest_programs[i].name, name) == 0)
            return self->guest[i].path;
    for (guint i = 0; i < G_N_ELEMENTS(own_programs); i++)
        if (strcmp(own_programs[i], name) == 0)
            return self->own[i];
    return NULL;
}
