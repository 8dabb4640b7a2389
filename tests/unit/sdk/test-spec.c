/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

static EbContainerSpec *
good_spec(void)
{
    EbContainerSpec *spec = eb_container_spec_new("eb-s1", "errand-box/guest");

    spec->memory_bytes = G_GUINT64_CONSTANT(1) << 30;
    spec->cpus = 2;
    spec->pids = 512;
    spec->agent_uid = 990;
    spec->agent_gid = 990;
    eb_container_spec_add_directory(spec, "workspace", "/srv/p", "/workspace", FALSE);
    eb_container_spec_add_volume(spec, "state", "eb-state-s1", 1 << 20, "/state");
    eb_container_spec_set_label(spec, "session", "s1");
    return spec;
}

static void
assert_invalid(EbContainerSpec *spec, const char *reason)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(eb_container_spec_validate(spec, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, reason, NULL);
    eb_container_spec_free(spec);
}

static void
test_valid(void)
{
    g_autoptr(EbContainerSpec) spec = good_spec();
    g_autoptr(EbContainerSpec) copy = eb_container_spec_copy(spec);
    g_autoptr(GError) error = NULL;
    const EbContainerMount *mount;

    g_assert_true(eb_container_spec_validate(spec, &error));
    g_assert_no_error(error);
    g_assert_true(eb_container_spec_validate(copy, NULL));
    g_assert_cmpuint(copy->mounts->len, ==, 2);
    mount = g_ptr_array_index(copy->mounts, 1);
    g_assert_cmpstr(mount->volume, ==, "eb-state-s1");
    g_assert_null(mount->source);
    g_assert_cmpstr(g_hash_table_lookup(copy->labels, "session"), ==, "s1");
    eb_container_spec_set_label(copy, "session", NULL);
    g_assert_cmpuint(g_hash_table_size(spec->labels), ==, 1);
    g_assert_cmpuint(g_hash_table_size(copy->labels), ==, 0);
}

static void
test_names(void)
{
    static const char *const bad[] = {
        "",    "-a", "1a",   "A", "a_b",
        "a b", "a-", "../a", "é", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        EbContainerSpec *spec = good_spec();

        g_free(spec->name);
        spec->name = g_strdup(bad[i]);
        assert_invalid(spec, "spec.name");
    }
}

static void
test_limits(void)
{
    EbContainerSpec *spec = good_spec();

    spec->memory_bytes = 0;
    assert_invalid(spec, "spec.memory");
    spec = good_spec();
    spec->pids = 0;
    assert_invalid(spec, "spec.limits");
    spec = good_spec();
    spec->agent_gid = 0;
    assert_invalid(spec, "spec.agent-id");
    spec = good_spec();
    g_free(spec->image);
    spec->image = g_strdup("");
    assert_invalid(spec, "spec.image");
}

static void
test_mounts(void)
{
    static const char *const targets[] = {"/run/x",  "/tmp",  "/dev", "/proc/x", "/sys",  "/",         "rel",
                                          "/a/../b", "/a//b", "/a/",  "/a/./b",  "/a\nb", "/workspace"};
    static const char *const sources[] = {"", "rel", "/", "/a/..", "/a\tb"};

    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++) {
        EbContainerSpec *spec = good_spec();

        eb_container_spec_add_directory(spec, "extra", "/srv/x", targets[i], TRUE);
        assert_invalid(spec, "spec.mount");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++) {
        EbContainerSpec *spec = good_spec();

        eb_container_spec_add_directory(spec, "extra", sources[i], "/opt/x", TRUE);
        assert_invalid(spec, "spec.mount");
    }
    {
        EbContainerSpec *spec = good_spec();

        eb_container_spec_add_directory(spec, "workspace", "/srv/x", "/opt/x", TRUE);
        assert_invalid(spec, "spec.mount");
        spec = good_spec();
        for (int i = 0; i < 40; i++) {
            g_autofree char *name = g_strdup_printf("m%d", i);
            g_autofree char *target = g_strdup_printf("/opt/m%d", i);

            eb_container_spec_add_directory(spec, name, "/srv/x", target, TRUE);
        }
        assert_invalid(spec, "spec.mount");
        spec = good_spec();
        eb_container_spec_add_directory(spec, "runner", "/srv/x", "/runner", TRUE); /* only looks like /run */
        g_assert_true(eb_container_spec_validate(spec, NULL));
        eb_container_spec_free(spec);
    }
}

static void
test_labels(void)
{
    EbContainerSpec *spec = good_spec();

    eb_container_spec_set_label(spec, "run", "two\nlines");
    assert_invalid(spec, "spec.label");
    spec = good_spec();
    eb_container_spec_set_label(spec, "Bad Key", "x");
    assert_invalid(spec, "spec.label");
    spec = good_spec();
    eb_container_spec_set_label(spec, "run", "\xff");
    assert_invalid(spec, "spec.label");
}

static void
test_other_values(void)
{
    const char *const argv[] = {"/bin/true", "x", NULL};
    g_autoptr(EbExecSpec) exec = eb_exec_spec_new(argv);
    g_autoptr(EbExecSpec) copy = NULL;
    g_autoptr(EbInstanceInfo) instance = eb_instance_info_new("i");
    g_autoptr(EbImageInfo) image = eb_image_info_new("a");
    g_autoptr(EbProbeReport) report = eb_probe_report_new("srv", "socket");
    const EbProbeItem *item;

    exec->uid = 5;
    exec->cwd = g_strdup("/w");
    copy = eb_exec_spec_copy(exec);
    g_assert_cmpstr(copy->argv[1], ==, "x");
    g_assert_true(copy->argv != exec->argv);
    g_assert_cmpstr(copy->cwd, ==, "/w");
    g_assert_cmpuint(copy->uid, ==, 5);
    g_assert_cmpint(instance->state, ==, EB_INSTANCE_UNKNOWN);
    g_assert_nonnull(image->properties);
    eb_probe_report_add(report, "disk-quota", FALSE, "E-05", NULL);
    item = g_ptr_array_index(report->items, 0);
    g_assert_cmpstr(item->degraded_id, ==, "E-05");
    g_assert_cmpstr(item->detail, ==, "");
    eb_container_spec_free(NULL);
    eb_exec_spec_free(NULL);
    eb_instance_info_free(NULL);
    eb_image_info_free(NULL);
    eb_probe_report_free(NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/spec/valid", test_valid);
    g_test_add_func("/sdk/spec/names", test_names);
    g_test_add_func("/sdk/spec/limits", test_limits);
    g_test_add_func("/sdk/spec/mounts", test_mounts);
    g_test_add_func("/sdk/spec/labels", test_labels);
    g_test_add_func("/sdk/spec/other-values", test_other_values);
    return g_test_run();
}
