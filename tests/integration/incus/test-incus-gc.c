/* SPDX-License-Identifier: MIT */
/* B17 against a real incusd: guests that nobody has, also half-made ones that hold an old image, all go; then so does the
 * image, and nothing of another installation does. */
#include "core/session/eb-gc-images.h"
#include "core/session/eb-session-manager.h"
#include "incus-test.h"
#include "plugins/incus/incus-instance-json.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_HALF_MADE 4

static EbSessionManager *
open_manager(const char *dir)
{
    g_autofree char *config_path = g_build_filename(dir, "eb.toml", NULL);
    g_autofree char *state = g_build_filename(dir, "state", NULL);
    g_autofree char *text = g_strdup_printf(
        "[service]\naccount = \"nobody\"\nstate_dir = \"%s\"\nproject_root = \"%s/projects\"\n", state, dir);
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) done = {0};
    g_assert_cmpint(mkdir(state, 0700), ==, 0);
    g_assert_cmpint(chown(state, 65534, 65534), ==, 0);
    eb_test_write_file(config_path, text);
    g_autoptr(EbConfig) config = eb_config_load(config_path, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    eb_session_manager_open_upkeep_async(config, NULL, incus_test.backend, eb_test_result_ready, &done);
    EbSessionManager *manager = eb_session_manager_open_finish(eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return manager;
}

static char *
home_id(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "state", "locks", "home-id", NULL);
    char *id = NULL;
    g_assert_true(g_file_get_contents(path, &id, NULL, NULL));
    return g_strstrip(id);
}

/* One image of ours, under @alias. (transfer full): its fingerprint */
static char *
import(const char *dir, const char *alias, const char *recipe)
{
    g_autofree char *metadata = g_build_filename(dir, "meta.tar", NULL);
    g_autofree char *rootfs = g_build_filename(incus_test.incusd->dir, "rootfs.tar", NULL);
    g_autofree char *yaml = g_build_filename(dir, "metadata.yaml", NULL);
    g_autofree char *text = g_strdup_printf("architecture: x86_64\ncreation_date: 2\nproperties:\n  errand.recipe: %s\n"
                                            "  errand.agents: none=1\n",
                                            recipe);
    const char *argv[] = {"tar", "-cf", metadata, "-C", dir, "metadata.yaml", NULL};
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    int status = -1;
    eb_test_write_file(yaml, text);
    g_assert_true(g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    eb_container_backend_image_import_async(incus_test.backend, alias, metadata, rootfs, EB_TEST_DEADLINE_MS, NULL,
                                            eb_test_result_ready, &done);
    g_autoptr(EbImageInfo) info =
        eb_container_backend_image_import_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return g_strdup(info->fingerprint);
}

static EbContainerSpec *
labelled(const char *prefix, const char *image, const char *home)
{
    EbContainerSpec *spec = incus_test_spec(prefix);
    g_free(spec->image);
    spec->image = g_strdup(image);
    spec->ephemeral = FALSE;
    eb_container_spec_set_label(spec, "home", home);
    eb_container_spec_set_label(spec, "run", "deadrundead1");
    eb_container_spec_set_label(spec, "session", "aaaaaaaaaaaa");
    return spec;
}

/* As a launch leaves it whose start failed and whose service was killed then. */
static void
half_make(const char *name, const char *image, const char *home)
{
    g_autofree char *labels = g_strdup_printf(INCUS_LABEL_PREFIX "home=%s", home);
    g_autofree char *made =
        eb_test_incusd_cli(incus_test.incusd, "init", image, name, "--project", incus_test.incusd->project, "-c",
                           labels, "-c", INCUS_LABEL_PREFIX "run=deadrundead1", "-c", INCUS_LAUNCH_KEY "=half", "-c",
                           "security.idmap.isolated=true", "-c", "security.guestapi=false", NULL);
    g_assert_nonnull(made);
}

static GPtrArray *
collect(EbSessionManager *manager, gboolean plan)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_gc_async(manager, plan, 0, eb_test_result_ready, &done);
    GPtrArray *classes = eb_session_manager_gc_finish(manager, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return classes;
}

static void
assert_class(const GPtrArray *classes, const char *name, guint before, guint removed)
{
    for (guint i = 0; i < classes->len; i++) {
        const EbGcClass *class = classes->pdata[i];
        if (strcmp(class->name, name) != 0)
            continue;
        g_assert_cmpstr(class->note, ==, NULL);
        g_assert_cmpuint(class->before, ==, before);
        g_assert_cmpuint(class->removed, ==, removed);
        g_assert_cmpuint(class->after, ==, before - removed);
        return;
    }
    g_error("no class %s", name);
}

static guint
old_images(gboolean plan)
{
    g_auto(EbTestResult) done = {0};
    eb_gc_images_async(incus_test.backend, 0, plan, eb_test_result_ready, &done);
    g_autoptr(EbGcClass) class = eb_gc_images_finish(eb_test_result_wait(&done));
    g_assert_cmpstr(class->note, ==, NULL);
    return plan ? class->before : class->removed;
}

static void
test_gc(void)
{
    g_autofree char *dir = eb_test_temp_dir("gc");
    g_assert_cmpint(chmod(dir, 0755), ==, 0);
    EbSessionManager *manager = open_manager(dir);
    g_autofree char *home = home_id(dir);
    g_autofree char *old = import(dir, "test/gc", "old");
    g_autofree char *new = import(dir, "test/gc", "new");
    g_assert_cmpstr(old, !=, new);
    g_autoptr(EbContainerSpec) orphan = labelled("orphan", old, home);
    g_autoptr(EbContainerSpec) theirs = labelled("theirs", new, "anotherhome1");
    incus_test_launch(incus_test.backend, orphan);
    incus_test_launch(incus_test.backend, theirs);
    for (guint i = 0; i < N_HALF_MADE; i++) {
        g_autofree char *name = g_strdup_printf("gc-half-%u", i);
        half_make(name, old, home);
    }
    /* the old image is held by what is left of the starts that failed */
    g_assert_cmpuint(old_images(TRUE), ==, 0);
    g_autoptr(GPtrArray) planned = collect(manager, TRUE);
    assert_class(planned, "guests", N_HALF_MADE + 1, 0);
    g_assert_true(incus_test_exists(incus_test.backend, orphan->name));
    g_autoptr(GPtrArray) done = collect(manager, FALSE);
    assert_class(done, "guests", N_HALF_MADE + 1, N_HALF_MADE + 1);
    g_assert_false(incus_test_exists(incus_test.backend, orphan->name));
    g_assert_false(incus_test_exists(incus_test.backend, "gc-half-0"));
    g_assert_true(incus_test_exists(incus_test.backend, theirs->name));
    g_autoptr(GPtrArray) again = collect(manager, FALSE);
    assert_class(again, "guests", 0, 0);
    /* and is nobody's now; the one that has the name stays */
    g_assert_cmpuint(old_images(FALSE), ==, 1);
    g_assert_cmpuint(old_images(FALSE), ==, 0);
    g_auto(EbTestResult) told = {0};
    eb_container_backend_image_info_async(incus_test.backend, "test/gc", EB_TEST_DEADLINE_MS, NULL,
                                          eb_test_result_ready, &told);
    g_autoptr(GPtrArray) left =
        eb_container_backend_image_info_finish(incus_test.backend, eb_test_result_wait(&told), NULL);
    g_assert_cmpuint(left->len, ==, 1);
    g_assert_cmpstr(((EbImageInfo *)left->pdata[0])->fingerprint, ==, new);
    incus_test_destroy(incus_test.backend, theirs->name);
    g_autofree char *removed = eb_test_incusd_cli(incus_test.incusd, "image", "delete", "test/gc", "--project",
                                                  incus_test.incusd->project, NULL);
    g_auto(EbTestResult) closed = {0};
    eb_session_manager_close_async(manager, NULL, eb_test_result_ready, &closed);
    g_assert_true(eb_session_manager_close_finish(manager, eb_test_result_wait(&closed), NULL));
    eb_test_drain();
    g_object_unref(manager);
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    g_test_add_func("/incus/gc", test_gc);
    return incus_test_run();
}
