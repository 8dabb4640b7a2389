/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gio/gio.h>

#include "zoo.h"

/* The program's own doctor with plugins that do their worst: each is named, and everybody else reports. */

typedef struct {
    char *dir; /* looks like a build directory: the program, plugins/, share/ */
    char *lock;
    JsonNode *node; /* (nullable): what doctor --json said */
    int code;
    char *errors;
} World;

static void
world_clear(World *world)
{
    g_clear_pointer(&world->node, json_node_unref);
    g_free(world->dir);
    g_free(world->lock);
    g_free(world->errors);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(World, world_clear)

static void
copy_file(const char *from, const char *to, int mode)
{
    g_autofree char *bytes = NULL;
    g_autoptr(GError) error = NULL;
    gsize length = 0;

    g_file_get_contents(from, &bytes, &length, &error);
    g_assert_no_error(error);
    eb_test_write_file(to, "");
    g_file_set_contents(to, bytes, (gssize)length, &error);
    g_assert_no_error(error);
    g_assert_cmpint(chmod(to, (mode_t)mode), ==, 0);
}

/* @names: plugins of the zoo to enable beside our own checks */
static void
world_init(World *world, const char *const *names)
{
    const char *build = g_getenv("EB_TEST_BUILD_ROOT");
    g_autoptr(GString) config = g_string_new("[plugins]\nenabled = [\"doctor-checks\"");
    static const char *const SUFFIXES[] = {".so", ".plugin"};
    g_autofree char *program = g_build_filename(build, "errand-box", NULL);

    world->dir = eb_test_temp_dir("zoo-doctor");
    world->lock = g_build_filename(world->dir, "lock", NULL);
    eb_test_write_file(world->lock, "");
    g_autofree char *copy = g_build_filename(world->dir, "errand-box", NULL);
    g_autofree char *marker = g_build_filename(world->dir, "meson-private", "marker", NULL);
    g_autofree char *plugins = g_build_filename(world->dir, "plugins", NULL);
    g_autofree char *config_file = g_build_filename(world->dir, "test.toml", NULL);
    g_autofree char *share = g_build_filename(build, "share", NULL);
    g_autofree char *share_link = g_build_filename(world->dir, "share", NULL);
    copy_file(program, copy, 0755);
    eb_test_write_file(marker, "");
    g_assert_cmpint(symlink(share, share_link), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(SUFFIXES); i++) {
        g_autofree char *from = g_strdup_printf("%s/plugins/doctor-checks/doctor-checks%s", build, SUFFIXES[i]);
        g_autofree char *to = zoo_module_path(plugins, "doctor-checks", SUFFIXES[i]);
        copy_file(from, to, 0644);
    }
    for (guint i = 0; names[i] != NULL; i++) {
        zoo_install_plugin(plugins, names[i]);
        g_string_append_printf(config, ", \"%s\"", names[i]);
    }
    g_string_append(config, "]\n");
    eb_test_write_file(config_file, config->str);
    g_assert_cmpint(chmod(config_file, 0600), ==, 0);
}

static void
world_run(World *world, ...)
{
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_autofree char *config = g_build_filename(world->dir, "test.toml", NULL);
    g_autofree char *program = g_build_filename(world->dir, "errand-box", NULL);
    g_autofree char *libraries = g_build_filename(g_getenv("EB_TEST_BUILD_ROOT"), "core/sdk", NULL);
    g_autoptr(GPtrArray) arguments = g_ptr_array_new();
    g_autoptr(GSubprocess) process = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *out = NULL;
    const char *argument;
    va_list args;

    g_ptr_array_add(arguments, program);
    g_ptr_array_add(arguments, (gpointer) "--json");
    va_start(args, world);
    while ((argument = va_arg(args, const char *)) != NULL)
        g_ptr_array_add(arguments, (gpointer)argument);
    va_end(args);
    g_ptr_array_add(arguments, NULL);
    g_subprocess_launcher_setenv(launcher, "ERRAND_BOX_CONFIG", config, TRUE);
    g_subprocess_launcher_setenv(launcher, "LD_LIBRARY_PATH", libraries, TRUE);
    /* The C library would write to each page of what the greedy one takes. */
    g_subprocess_launcher_unsetenv(launcher, "MALLOC_PERTURB_");
    g_subprocess_launcher_setenv(launcher, "ZOO_LOCK", world->lock, TRUE);
    g_clear_pointer(&world->errors, g_free);
    process = g_subprocess_launcher_spawnv(launcher, (const char *const *)arguments->pdata, &error);
    g_assert_no_error(error);
    g_subprocess_communicate_utf8(process, NULL, NULL, &out, &world->errors, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_get_if_exited(process));
    world->code = g_subprocess_get_exit_status(process);
    g_clear_pointer(&world->node, json_node_unref);
    world->node = *out != '\0' ? eb_json_parse(out, strlen(out), NULL, &error) : NULL;
    g_assert_no_error(error);
}

static JsonObject *
row(World *world, const char *id)
{
    JsonArray *checks = eb_json_get_array(eb_json_node_object(world->node), "checks");

    for (guint i = 0; i < json_array_get_length(checks); i++) {
        JsonObject *object = eb_json_array_object(checks, i);
        if (g_strcmp0(eb_json_get_string(object, "id"), id) == 0)
            return object;
    }
    g_error("no row %s; stderr: %s", id, world->errors);
    return NULL;
}

static void
assert_row(World *world, const char *id, const char *status, const char *text)
{
    JsonObject *object = row(world, id);
    const char *observed = eb_json_get_string(object, "observed");

    if (g_strcmp0(eb_json_get_string(object, "status"), status) != 0 || strstr(observed, text) == NULL)
        g_error("%s: %s: %s", id, eb_json_get_string(object, "status"), observed);
}

/* The others of plugin @name report, and our own checks do. */
static void
assert_others(World *world, const char *name)
{
    g_autofree char *good = g_strdup_printf("x-%s-good", name);
    g_autofree char *late = g_strdup_printf("x-%s-late", name);

    assert_row(world, good, "ok", "good");
    assert_row(world, late, "ok", "late");
    assert_row(world, "E-01", "ok", "kernel");
}

typedef struct {
    const char *name;
    const char *says; /* of the bad check */
} Bad;

/* What each does is in meson.build and zoo-doctor.c. */
static const Bad BAD[] = {
    {"zoo-doctor-segfault", "was killed by SIGSEGV"},
    {"zoo-doctor-abort", "was killed by SIGABRT"},
    {"zoo-doctor-exit", "exited with code 0"},
    {"zoo-doctor-hang", "did not come back within"},
    {"zoo-doctor-stop", "did not come back within"},
    {"zoo-doctor-flood-pipe", "wrote what is no answer of a check"},
    {"zoo-doctor-flood-line", "wrote what is no answer of a check"},
    {"zoo-doctor-daemon", "was killed by SIGSEGV"},
#ifndef __SANITIZE_ADDRESS__ /* which ends such a process in its own way, and needs more memory than a worker may have */
    {"zoo-doctor-recursion", "was killed by SIGSEGV"},
    {"zoo-doctor-memory", "was killed by SIG"},
#endif
};

/* All at the same time: nobody is in anybody's way. */
static void
test_bad(void)
{
    const char *names[G_N_ELEMENTS(BAD) + 1] = {NULL};
    g_auto(World) world = {0};

    for (guint i = 0; i < G_N_ELEMENTS(BAD); i++)
        names[i] = BAD[i].name;
    world_init(&world, names);
    world_run(&world, "doctor", NULL);
    g_assert_cmpint(world.code, ==, 1);
    for (guint i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_autofree char *id = g_strdup_printf("x-%s-bad", BAD[i].name);
        g_autofree char *named = g_strdup_printf("plugin %s ", BAD[i].name);

        assert_row(&world, id, "fail", BAD[i].says);
        assert_row(&world, id, "fail", named);
        assert_others(&world, BAD[i].name);
        /* A check that is deaf costs its own thread alone; all others their process. */
        if (strcmp(BAD[i].name, "zoo-doctor-hang") != 0)
            assert_row(&world, "E-75", "degraded", named);
    }
}

/* What a plugin leaves running is gone when the doctor has ended. */
static void
test_orphans(void)
{
    const char *const names[] = {"zoo-doctor-daemon", NULL};
    g_auto(World) world = {0};
    int fd;

    world_init(&world, names);
    world_run(&world, "doctor", NULL);
    fd = open(world.lock, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(flock(fd, LOCK_EX | LOCK_NB), ==, 0);
    close(fd);
}

/* Noise is no fault, however much of it there is, and none of it gets out. */
static void
test_noise(void)
{
    const char *const names[] = {"zoo-doctor-noise", NULL};
    g_auto(World) world = {0};

    world_init(&world, names);
    world_run(&world, "doctor", NULL);
    assert_others(&world, "zoo-doctor-noise");
    assert_row(&world, "x-zoo-doctor-noise-bad", "ok", "not so bad");
    assert_row(&world, "E-75", "ok", "2 plugins");
    g_assert_cmpstr(world.errors, ==, "");
}

/* No check of it is known, so the plugin itself is what is named; a listing says so too. */
static void
test_load(void)
{
    static const struct {
        const char *name, *says;
    } ROWS[] = {
        {"zoo-doctor-load-segfault", "was killed by SIGSEGV while it was loaded"},
        {"zoo-doctor-load-exit", "exited with code 0 while it was loaded"},
        {"zoo-doctor-load-hang", "did not come back within"},
        {"zoo-configure-fails", "the animal refuses"},
        {"zoo-wrong-major", "brings no checks: "},
    };

    const char *names[G_N_ELEMENTS(ROWS) + 2] = {"zoo-good", NULL};
    g_auto(World) world = {0};

    for (guint i = 0; i < G_N_ELEMENTS(ROWS); i++)
        names[i + 1] = ROWS[i].name;
    world_init(&world, names);
    world_run(&world, "doctor", NULL);
    for (guint i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        assert_row(&world, "E-75", "degraded", ROWS[i].says);
        assert_row(&world, "E-75", "degraded", ROWS[i].name);
    }
    assert_row(&world, "x-zoo-good", "ok", "zoo-good");
    assert_row(&world, "E-01", "ok", "kernel");
}

/* An id belongs to one plugin: ours first, whoever is faster. */
static void
test_taken(void)
{
    const char *const names[] = {"zoo-twin-a", "zoo-twin-b", "zoo-doctor-thief", NULL};
    g_auto(World) world = {0};

    world_init(&world, names);
    world_run(&world, "doctor", NULL);
    g_assert_cmpstr(eb_json_get_string(row(&world, "E-01"), "plugin"), ==, "doctor-checks");
    g_assert_cmpstr(eb_json_get_string(row(&world, "x-zoo-twin"), "plugin"), ==, "zoo-twin-a");
    assert_row(&world, "E-75", "degraded", "plugin zoo-twin-b brings check x-zoo-twin, which is there already");
    assert_row(&world, "E-75", "degraded", "plugin zoo-doctor-thief brings check E-01, which is there already");
}

/* Without our own plugin nothing is known of the host. */
static void
test_own_missing(void)
{
    const char *const names[] = {"zoo-good", NULL};
    g_auto(World) world = {0};
    g_autofree char *module = NULL;
    g_autofree char *folder = NULL;

    world_init(&world, names);
    module = g_build_filename(world.dir, "plugins/doctor-checks/doctor-checks.so", NULL);
    eb_test_write_file(module, "no module");
    world_run(&world, "doctor", NULL);
    assert_row(&world, "E-75", "fail", "plugin doctor-checks brings no checks");
    assert_row(&world, "x-zoo-good", "ok", "zoo-good");
    g_assert_cmpint(world.code, ==, 1);
    /* Not even its folder. */
    folder = g_build_filename(world.dir, "plugins/doctor-checks", NULL);
    eb_test_remove_tree(folder);
    world_run(&world, "doctor", NULL);
    assert_row(&world, "E-75", "fail", "plugin doctor-checks is not there");
    g_assert_cmpint(world.code, ==, 1);
}

static void
test_ids(void)
{
    const char *const names[] = {"zoo-doctor-segfault", "zoo-doctor-load-exit", NULL};
    g_auto(World) world = {0};

    world_init(&world, names);
    world_run(&world, "doctor", "--check", "x-zoo-doctor-segfault-good", "--check", "E-01", NULL);
    g_assert_cmpint(world.code, ==, 0);
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(eb_json_node_object(world.node), "checks")), ==, 2);
    world_run(&world, "doctor", "--check", "x-zoo-doctor-load-exit-good", NULL);
    g_assert_cmpint(world.code, ==, 2);
    g_assert_null(world.node);
    g_assert_nonnull(strstr(world.errors, "there is no check \"x-zoo-doctor-load-exit-good\""));
    g_assert_nonnull(strstr(world.errors, "but plugin zoo-doctor-load-exit exited with code 0"));
    world_run(&world, "doctor", "--list", NULL);
    g_assert_cmpint(world.code, ==, 0);
    g_assert_cmpstr(eb_json_get_string(row(&world, "x-zoo-doctor-segfault-bad"), "title"), ==, "bad");
    g_assert_null(eb_json_get_string(row(&world, "E-01"), "status"));
    g_assert_nonnull(strstr(eb_json_get_string(row(&world, "E-17"), "cost"), "one layer less"));
    g_assert_cmpstr(eb_json_get_string(row(&world, "E-06"), "hold"), ==, "fail");
}

/* What the service asks every minute: ours alone, and each says so of itself. */
static void
test_watch(void)
{
    const char *const names[] = {"zoo-good", NULL};
    g_auto(World) world = {0};
    JsonArray *checks;

    world_init(&world, names);
    world_run(&world, "doctor", "--watch", NULL);
    checks = eb_json_get_array(eb_json_node_object(world.node), "checks");
    g_assert_cmpuint(json_array_get_length(checks), >=, 5);
    for (guint i = 0; i < json_array_get_length(checks); i++) {
        JsonObject *object = eb_json_array_object(checks, i);
        g_assert_true(eb_json_get_bool(object, "watch", FALSE));
        g_assert_cmpstr(eb_json_get_string(object, "plugin"), ==, "doctor-checks");
    }
    world_run(&world, "doctor", "--check", "x-zoo-good", "--check", "E-06", NULL);
    g_assert_false(eb_json_get_bool(row(&world, "x-zoo-good"), "watch", TRUE));
    g_assert_cmpstr(eb_json_get_string(row(&world, "x-zoo-good"), "hold"), ==, "degraded");
    g_assert_cmpstr(eb_json_get_string(row(&world, "E-06"), "hold"), ==, "fail");
}

int
main(int argc, char **argv)
{
    umask(022);
    eb_test_init(&argc, &argv);
    g_test_add_func("/zoo-doctor/bad", test_bad);
    g_test_add_func("/zoo-doctor/orphans", test_orphans);
    g_test_add_func("/zoo-doctor/noise", test_noise);
    g_test_add_func("/zoo-doctor/load", test_load);
    g_test_add_func("/zoo-doctor/taken", test_taken);
    g_test_add_func("/zoo-doctor/own-missing", test_own_missing);
    g_test_add_func("/zoo-doctor/ids", test_ids);
    g_test_add_func("/zoo-doctor/watch", test_watch);
    return g_test_run();
}
