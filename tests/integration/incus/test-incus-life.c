/* SPDX-License-Identifier: MIT */
/* Launches that fail or are cancelled, many at once, ends, images, the probe. */
#include <unistd.h>

#include "incus-test.h"

#define PARALLEL 10
#define CANCELS 12

static void
expect_launch_error(const EbContainerSpec *spec, EbErrorCode code, const char *reason, const char *text)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_launch_async(incus_test.backend, spec, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_false(eb_container_backend_launch_finish(incus_test.backend, eb_test_result_wait(&done), &error));
    g_test_message("%s", error->message);
    eb_test_assert_error(error, code, reason, text);
}

static void
test_launch_failures(void)
{
    g_autoptr(EbContainerSpec) image = incus_test_spec("noimage");
    g_free(image->image);
    image->image = g_strdup("no/such/image");
    expect_launch_error(image, EB_ERROR_NOT_FOUND, "incus.image-missing", "no/such/image");
    g_assert_false(incus_test_exists(incus_test.backend, image->name));

    g_autoptr(EbContainerSpec) missing = incus_test_spec("nosource");
    g_autofree char *path = g_build_filename(incus_test.incusd->sessions, "absent", NULL);
    eb_container_spec_add_directory(missing, "work", path, "/workspace", FALSE);
    expect_launch_error(missing, EB_ERROR_NOT_FOUND, "incus.source-missing", NULL);
    g_assert_false(incus_test_exists(incus_test.backend, missing->name));

    g_autoptr(EbContainerSpec) outside = incus_test_spec("outside");
    eb_container_spec_add_directory(outside, "work", "/etc", "/workspace", FALSE);
    expect_launch_error(outside, EB_ERROR_DENIED, NULL, NULL);
    g_assert_false(incus_test_exists(incus_test.backend, outside->name));

    g_autoptr(EbContainerSpec) memory = incus_test_spec("nomemory");
    memory->memory_bytes = 0;
    expect_launch_error(memory, EB_ERROR_INVALID, NULL, NULL);

    g_autoptr(EbContainerSpec) mapped = incus_test_spec("othermap");
    mapped->agent_uid = mapped->agent_gid = incus_test.incusd->uid + 1;
    expect_launch_error(mapped, EB_ERROR_DENIED, "incus.restricted", NULL);
    g_assert_false(incus_test_exists(incus_test.backend, mapped->name));
}

/* Fails when it starts, not when it is made: why stands in a log of incusd's alone, and nothing may be left. */
static void
test_start_failure(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("nostart");
    g_autofree char *real = g_strdup_printf("%s/%d-real", incus_test.incusd->sessions, (int)getpid());
    g_autofree char *link = g_strdup_printf("%s/%d-link", incus_test.incusd->sessions, (int)getpid());
    g_autofree char *volume = g_strconcat(spec->name, "-v", NULL);
    g_assert_cmpint(symlink("/etc", link), ==, 0);
    eb_container_spec_add_directory(spec, "work", link, "/workspace", FALSE);
    eb_container_spec_add_volume(spec, "extra", volume, 0, "/state");
    expect_launch_error(spec, EB_ERROR_DENIED, "incus.source-outside", NULL);
    g_assert_false(incus_test_exists(incus_test.backend, spec->name));
    g_autofree char *volumes =
        eb_test_incusd_cli(incus_test.incusd, "storage", "volume", "list", incus_test.incusd->pool, "--project",
                           incus_test.incusd->project, "-f", "csv", "-c", "n", NULL);
    g_assert_null(strstr(volumes, volume));
    g_assert_cmpint(unlink(link), ==, 0);

    /* a uid that root may not map: liblxc's log says so */
    g_autoptr(EbContainerBackend) backend = incus_test_backend(incus_test.incusd->socket, "default");
    g_autoptr(EbContainerSpec) unmapped = incus_test_spec("unmapped");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    unmapped->agent_uid = unmapped->agent_gid = 54321;
    eb_container_backend_launch_async(backend, unmapped, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_assert_false(eb_container_backend_launch_finish(backend, eb_test_result_wait(&done), &error));
    g_test_message("%s", error->message);
    eb_test_assert_error(error, EB_ERROR_CONFIG, "incus.id-map", "54321");
    g_assert_false(incus_test_exists(backend, unmapped->name));
}

static void
test_name_in_use(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("twice");
    incus_test_launch(incus_test.backend, spec);
    expect_launch_error(spec, EB_ERROR_EXISTS, "incus.exists", NULL);
    /* the first one must not have been undone for the second */
    g_auto(IncusRun) run = incus_test_shell(incus_test.backend, spec->name, 0, NULL, "echo here");
    g_assert_cmpstr(run.out->str, ==, "here\n");
    incus_test_destroy(incus_test.backend, spec->name);
}

static void
stop(const char *name, EbStopFlags flags, guint grace_ms)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_stop_async(incus_test.backend, name, flags, grace_ms, EB_TEST_DEADLINE_MS, NULL,
                                    eb_test_result_ready, &done);
    g_assert_true(eb_container_backend_stop_finish(incus_test.backend, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

/* The image's init does not know SIGPWR: a clean stop never works, force has to follow. */
static void
test_stop_deaf_init(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("deaf");
    incus_test_launch(incus_test.backend, spec);
    stop(spec->name, EB_STOP_GRACEFUL, 500);
    g_assert_false(incus_test_exists(incus_test.backend, spec->name)); /* ephemeral */
    stop(spec->name, EB_STOP_GRACEFUL, 500);
    stop(spec->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0);
}

static void
test_stop_keeps(void)
{
    g_autoptr(EbContainerSpec) spec = incus_test_spec("kept");
    spec->ephemeral = FALSE;
    incus_test_launch(incus_test.backend, spec);
    stop(spec->name, EB_STOP_FORCE, 0);
    g_assert_true(incus_test_exists(incus_test.backend, spec->name));
    stop(spec->name, EB_STOP_FORCE, 0);
    stop(spec->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0);
    g_assert_false(incus_test_exists(incus_test.backend, spec->name));
}

/* A full disk makes incusd report a stop that worked as failed. */
static void
test_stop_over_quota(void)
{
    if (!g_str_equal(incus_test.incusd->driver, "btrfs")) {
        g_test_skip("the pool has no quota");
        return;
    }
    g_autoptr(EbContainerSpec) spec = incus_test_spec("full");
    spec->disk_bytes = 64 * 1024 * 1024;
    spec->ephemeral = FALSE;
    incus_test_launch(incus_test.backend, spec);
    g_auto(IncusRun) fill =
        incus_test_shell(incus_test.backend, spec->name, 0, NULL, "attack fill /root 200; echo; chown -R 1000 /root");
    g_test_message("%s %s", fill.out->str, fill.err->str);
    stop(spec->name, EB_STOP_FORCE, 0);
    stop(spec->name, EB_STOP_DESTROY, 0);
    g_assert_false(incus_test_exists(incus_test.backend, spec->name));
}

static void
test_parallel(void)
{
    EbTestResult done[PARALLEL] = {0};
    EbContainerSpec *specs[PARALLEL];
    for (guint i = 0; i < PARALLEL; i++) {
        specs[i] = incus_test_spec("many");
        eb_container_backend_launch_async(incus_test.backend, specs[i], EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready,
                                          &done[i]);
    }
    for (guint i = 0; i < PARALLEL; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(eb_container_backend_launch_finish(incus_test.backend, eb_test_result_wait(&done[i]), &error));
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
        done[i] = (EbTestResult){0};
    }
    for (guint i = 0; i < PARALLEL; i++) {
        g_auto(IncusRun) run = incus_test_shell(incus_test.backend, specs[i]->name, 1000, NULL, "hostname");
        g_strchomp(run.out->str);
        g_assert_cmpstr(run.out->str, ==, specs[i]->name);
        eb_container_backend_stop_async(incus_test.backend, specs[i]->name, EB_STOP_FORCE | EB_STOP_DESTROY, 0,
                                        EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done[i]);
    }
    for (guint i = 0; i < PARALLEL; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(eb_container_backend_stop_finish(incus_test.backend, eb_test_result_wait(&done[i]), &error));
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
        g_assert_false(incus_test_exists(incus_test.backend, specs[i]->name));
        eb_container_spec_free(specs[i]);
    }
}

static gboolean
cancel_now(gpointer user_data)
{
    g_cancellable_cancel(user_data);
    return G_SOURCE_REMOVE;
}

static void
test_cancel_anywhere(void)
{
    for (guint i = 0; i < CANCELS; i++) {
        g_auto(EbTestResult) done = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(GCancellable) cancellable = g_cancellable_new();
        g_autoptr(EbContainerSpec) spec = incus_test_spec("cancel");
        g_autofree char *volume = g_strconcat(spec->name, "-v", NULL);
        eb_container_spec_add_volume(spec, "extra", volume, 0, "/state");
        guint delay = (guint)g_test_rand_int_range(0, 300);
        eb_container_backend_launch_async(incus_test.backend, spec, EB_TEST_DEADLINE_MS, cancellable,
                                          eb_test_result_ready, &done);
        g_timeout_add(delay, cancel_now, cancellable);
        gboolean ok = eb_container_backend_launch_finish(incus_test.backend, eb_test_result_wait(&done), &error);
        eb_test_run_for(310); /* the timer */
        if (ok) {
            incus_test_destroy(incus_test.backend, spec->name);
            g_autofree char *removed =
                eb_test_incusd_cli(incus_test.incusd, "storage", "volume", "delete", incus_test.incusd->pool, volume,
                                   "--project", incus_test.incusd->project, NULL);
            continue;
        }
        eb_test_assert_error(error, EB_ERROR_CANCELLED, "incus.cancelled", NULL);
        g_assert_false(incus_test_exists(incus_test.backend, spec->name));
        g_autofree char *volumes =
            eb_test_incusd_cli(incus_test.incusd, "storage", "volume", "list", incus_test.incusd->pool, "--project",
                               incus_test.incusd->project, "-f", "csv", "-c", "n", NULL);
        g_assert_null(strstr(volumes, volume));
    }
}

static EbImageInfo *
import(const char *alias, const char *metadata, const char *rootfs, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_container_backend_image_import_async(incus_test.backend, alias, metadata, rootfs, EB_TEST_DEADLINE_MS, NULL,
                                            eb_test_result_ready, &done);
    return eb_container_backend_image_import_finish(incus_test.backend, eb_test_result_wait(&done), error);
}

static GPtrArray *
image_info(const char *alias)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_image_info_async(incus_test.backend, alias, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready,
                                          &done);
    GPtrArray *images = eb_container_backend_image_info_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return images;
}

static void
run_program(const char *directory, const char *command)
{
    const char *argv[] = {"sh", "-c", command, NULL};
    g_autoptr(GError) error = NULL;
    int status;
    g_spawn_sync(directory, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, &status, &error);
    g_assert_no_error(error);
    g_assert_true(g_spawn_check_wait_status(status, NULL));
}

static void
remove_image(const char *fingerprint)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_image_remove_async(incus_test.backend, fingerprint, EB_TEST_DEADLINE_MS, NULL,
                                            eb_test_result_ready, &done);
    eb_container_backend_image_remove_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
}

static void
assert_made_from(const char *name, const char *fingerprint)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_list_async(incus_test.backend, name, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) found =
        eb_container_backend_list_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(found->len, ==, 1);
    g_assert_cmpstr(((EbInstanceInfo *)found->pdata[0])->image, ==, fingerprint);
}

static void
test_images(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *dir = eb_test_temp_dir("image");
    g_autofree char *metadata = g_build_filename(dir, "meta.tar", NULL);
    g_autofree char *rootfs = g_build_filename(dir, "rootfs.tar", NULL);
    g_autofree char *yaml = g_build_filename(dir, "metadata.yaml", NULL);
    g_autofree char *source = g_build_filename(incus_test.incusd->dir, "rootfs.tar", NULL);
    g_autofree char *copy = g_strdup_printf("cp %s rootfs.tar", source);
    eb_test_write_file(yaml, "architecture: x86_64\ncreation_date: 2\nproperties:\n  description: second\n"
                             "  errand.recipe: two\n");
    run_program(dir, "tar -cf meta.tar metadata.yaml");
    run_program(dir, copy);

    g_autoptr(GPtrArray) none = image_info("test/second");
    g_assert_cmpuint(none->len, ==, 0);
    g_autoptr(EbImageInfo) first = import("test/second", metadata, rootfs, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(first->alias, ==, "test/second");
    g_assert_cmpuint(strlen(first->fingerprint), ==, 64);
    g_assert_cmpuint(first->size_bytes, >, 1000000);
    g_assert_cmpstr(g_hash_table_lookup(first->properties, "errand.recipe"), ==, "two");
    /* the same again, and under another name: sent once */
    g_autoptr(EbImageInfo) again = import("test/second", metadata, rootfs, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(again->fingerprint, ==, first->fingerprint);
    g_autoptr(EbImageInfo) other = import("test/other", metadata, rootfs, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(other->fingerprint, ==, first->fingerprint);
    /* an alias moves to new content */
    eb_test_write_file(yaml, "architecture: x86_64\ncreation_date: 3\nproperties:\n  description: third\n");
    run_program(dir, "tar -cf meta.tar metadata.yaml");
    g_autoptr(EbImageInfo) moved = import("test/second", metadata, rootfs, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(moved->fingerprint, !=, first->fingerprint);
    g_autoptr(GPtrArray) found = image_info("test/second");
    g_assert_cmpuint(found->len, ==, 1);
    g_assert_cmpstr(((EbImageInfo *)found->pdata[0])->fingerprint, ==, moved->fingerprint);
    g_autoptr(GPtrArray) all = image_info(NULL);
    g_assert_cmpuint(all->len, ==, 3);
    /* and it is an image one can start */
    g_autoptr(EbContainerSpec) spec = incus_test_spec("image");
    g_free(spec->image);
    spec->image = g_strdup(moved->fingerprint);
    incus_test_launch(incus_test.backend, spec);
    assert_made_from(spec->name, moved->fingerprint);
    incus_test_destroy(incus_test.backend, spec->name);
    /* gone with its aliases; once more is no failure */
    remove_image(first->fingerprint);
    remove_image(moved->fingerprint);
    remove_image(moved->fingerprint);
    g_autoptr(GPtrArray) left = image_info(NULL);
    g_assert_cmpuint(left->len, ==, 1);
    g_autoptr(GPtrArray) unnamed = image_info("test/other");
    g_assert_cmpuint(unnamed->len, ==, 0);

    g_assert_null(import("test/second", "/no/such/file", rootfs, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "incus.image-file", "/no/such/file");
}

static const EbProbeItem *
probe_item(EbProbeReport *report, const char *guarantee)
{
    for (guint i = 0; i < report->items->len; i++) {
        const EbProbeItem *item = report->items->pdata[i];
        if (g_str_equal(item->guarantee, guarantee))
            return item;
    }
    g_error("no %s in the report", guarantee);
}

static void
test_probe(void)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_container_backend_probe_async(incus_test.backend, EB_TEST_DEADLINE_MS, NULL, eb_test_result_ready, &done);
    g_autoptr(EbProbeReport) report =
        eb_container_backend_probe_finish(incus_test.backend, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_true(g_str_has_prefix(report->server, "incus "));
    g_assert_cmpstr(report->access, ==, "socket");
    for (guint i = 0; i < report->items->len; i++) {
        const EbProbeItem *item = report->items->pdata[i];
        g_test_message("%s %d %s: %s", item->guarantee, item->enforced, item->degraded_id, item->detail);
    }
    g_assert_true(probe_item(report, "project-restricted")->enforced);
    g_assert_true(probe_item(report, "no-network")->enforced);
    gboolean quota = !g_str_equal(incus_test.incusd->driver, "dir");
    g_assert_cmpint(probe_item(report, "disk-quota")->enforced, ==, quota);
    if (!probe_item(report, "apparmor")->enforced)
        g_assert_cmpstr(probe_item(report, "apparmor")->degraded_id, ==, "E-17");
}

int
main(int argc, char **argv)
{
    if (!incus_test_init(&argc, &argv, "shared"))
        return 77;
    g_test_add_func("/incus/life/launch-failures", test_launch_failures);
    g_test_add_func("/incus/life/start-failure", test_start_failure);
    g_test_add_func("/incus/life/name-in-use", test_name_in_use);
    g_test_add_func("/incus/life/stop-deaf-init", test_stop_deaf_init);
    g_test_add_func("/incus/life/stop-keeps", test_stop_keeps);
    g_test_add_func("/incus/life/stop-over-quota", test_stop_over_quota);
    g_test_add_func("/incus/life/parallel", test_parallel);
    g_test_add_func("/incus/life/cancel-anywhere", test_cancel_anywhere);
    g_test_add_func("/incus/life/images", test_images);
    g_test_add_func("/incus/life/probe", test_probe);
    return incus_test_run();
}
