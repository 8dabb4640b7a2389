/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

static EbConfigSection *
make_section(void)
{
    EbConfigSection *section = eb_config_section_new("plugin.x");
    const char *const list[] = {"a", "b", NULL};

    eb_config_section_set(section, "name", g_variant_new_string("box"), "/etc/e.toml", 3);
    eb_config_section_set(section, "count", g_variant_new_int64(7), "/etc/e.toml", 4);
    eb_config_section_set(section, "on", g_variant_new_boolean(TRUE), "/etc/e.toml", 5);
    eb_config_section_set(section, "list", g_variant_new_strv(list, -1), "/etc/e.toml", 6);
    eb_config_section_set(section, "none", g_variant_new_array(G_VARIANT_TYPE_INT64, NULL, 0), "/etc/e.toml", 7);
    eb_config_section_set(section, "memory", g_variant_new_string("2GiB"), "/etc/e.toml", 8);
    eb_config_section_set(section, "idle", g_variant_new_string("30min"), "/etc/e.toml", 9);
    eb_config_section_set(section, "token", g_variant_new_string("cred:chat-token"), "/etc/e.toml", 10);
    return section;
}

static void
test_reads(void)
{
    g_autoptr(EbConfigSection) section = make_section();
    g_autoptr(GError) error = NULL;
    g_autofree char *name = eb_config_section_get_string(section, "name", NULL, &error);
    g_auto(GStrv) list = eb_config_section_get_strings(section, "list", &error);
    g_auto(GStrv) none = eb_config_section_get_strings(section, "none", &error);
    g_auto(GStrv) absent = eb_config_section_get_strings(section, "absent", &error);
    g_autofree char *fallback = eb_config_section_get_string(section, "absent", "dflt", &error);
    g_autofree char *secret = eb_config_section_get_secret_name(section, "token", &error);
    g_autofree char *where = eb_config_section_where(section, "on");
    gint64 count = 0;
    gboolean on = FALSE;
    guint64 number = 0;

    g_assert_cmpstr(name, ==, "box");
    g_assert_cmpuint(g_strv_length(list), ==, 2);
    g_assert_cmpuint(g_strv_length(none), ==, 0);
    g_assert_cmpuint(g_strv_length(absent), ==, 0);
    g_assert_cmpstr(fallback, ==, "dflt");
    g_assert_cmpstr(secret, ==, "chat-token");
    g_assert_cmpstr(where, ==, "/etc/e.toml:5");
    g_assert_true(eb_config_section_get_int(section, "count", 1, 0, 10, &count, &error));
    g_assert_cmpint(count, ==, 7);
    g_assert_true(eb_config_section_get_bool(section, "on", FALSE, &on, &error));
    g_assert_true(on);
    g_assert_true(eb_config_section_get_size(section, "memory", 1, 0, G_MAXUINT64, &number, &error));
    g_assert_cmpuint(number, ==, G_GUINT64_CONSTANT(2) << 30);
    g_assert_true(eb_config_section_get_duration(section, "idle", 1, 0, G_MAXUINT64, &number, &error));
    g_assert_cmpuint(number, ==, 30 * 60 * 1000);
    g_assert_true(eb_config_section_get_size(section, "gone", 5, 10, 20, &number, &error));
    g_assert_cmpuint(number, ==, 5); /* a default is not judged */
    g_assert_true(eb_config_section_check_unknown(section, &error));
    g_assert_no_error(error);
}

static void
test_wrong_type(void)
{
    g_autoptr(EbConfigSection) section = make_section();
    gint64 count = 3;
    gboolean on = TRUE;
    guint64 number = 3;

    {
        g_autoptr(GError) error = NULL;

        g_assert_null(eb_config_section_get_string(section, "count", "x", &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value",
                             "/etc/e.toml:4: plugin.x.count is an integer and must be a string");
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_section_get_int(section, "name", 0, 0, 9, &count, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "/etc/e.toml:3");
        g_assert_cmpint(count, ==, 3);
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_section_get_int(section, "count", 0, 0, 6, &count, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "is 7 and must be 0 to 6");
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_section_get_bool(section, "name", FALSE, &on, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "true or false");
        g_assert_true(on);
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_null(eb_config_section_get_strings(section, "name", &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "a list of strings");
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_section_get_duration(section, "count", 0, 0, 9, &number, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "must be a duration");
        g_assert_cmpuint(number, ==, 3);
    }
    {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_section_get_size(section, "memory", 0, 0, 1024, &number, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "must be");
    }
}

static void
test_literal_secret(void)
{
    static const char *const values[] = {"sk-live-hunter2", "cred:", "cred:Bad Name", "cred:../x", ""};

    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autoptr(EbConfigSection) section = eb_config_section_new("provider.p");
        g_autoptr(GError) error = NULL;

        eb_config_section_set(section, "key", g_variant_new_string(values[i]), "/etc/e.toml", 1);
        g_assert_null(eb_config_section_get_secret_name(section, "key", &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.value", "provider.p.key");
        g_assert_null(strstr(error->message, "hunter2"));
    }
}

static void
test_unknown(void)
{
    g_autoptr(EbConfigSection) section = make_section();
    g_autoptr(EbConfigSection) child = eb_config_section_new("plugin.x.triger");
    g_autoptr(GError) error = NULL;

    eb_config_section_set(section, "conut", g_variant_new_int64(1), "/etc/e.toml", 20);
    eb_config_section_add_child(section, "triger", child);
    g_assert_true(eb_config_section_get_child(section, "triger") == child); /* asked for now */
    eb_config_section_has(section, "count");
    g_assert_false(eb_config_section_check_unknown(section, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "config.unknown-key",
                         "/etc/e.toml:20: unknown key plugin.x.conut (did you mean count?)");
    g_assert_nonnull(strstr(error->message, "unknown key plugin.x.name")); /* all of them at once */
    g_assert_null(strstr(error->message, "triger"));
}

static void
test_parsers(void)
{
    static const struct {
        const char *text;
        guint64 value;
    } sizes[] = {{"0", 0},
                 {"1", 1},
                 {"512MiB", 512 << 20},
                 {"1kB", 1000},
                 {"3 GB", 3000000000},
                 {"1TiB", G_GUINT64_CONSTANT(1) << 40},
                 {"18446744073709551615", G_MAXUINT64}};
    static const char *const bad_sizes[] = {
        "", "-1", "x", "1.5GiB", "1 m", "1mib", "18446744073709551616", "99999999999TiB", "MiB", "1GiB!"};
    static const char *const bad_durations[] = {"", "5", "-5s", "5 fortnights", "1.5h", "s", "99999999999999999999d"};
    guint64 value = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_assert_true(eb_config_parse_size(sizes[i].text, &value, NULL));
        g_assert_cmpuint(value, ==, sizes[i].value);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad_sizes); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_parse_size(bad_sizes[i], &value, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.size", NULL);
    }
    g_assert_true(eb_config_parse_duration("500ms", &value, NULL) && value == 500);
    g_assert_true(eb_config_parse_duration("15s", &value, NULL) && value == 15000);
    g_assert_true(eb_config_parse_duration("2h", &value, NULL) && value == 7200000);
    g_assert_true(eb_config_parse_duration("1d", &value, NULL) && value == 86400000);
    for (gsize i = 0; i < G_N_ELEMENTS(bad_durations); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(eb_config_parse_duration(bad_durations[i], &value, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "config.duration", NULL);
    }
}

static void
test_nearest(void)
{
    static const char *const names[] = {"memory", "cpus", "pids", "idle", NULL};
    g_autofree char *huge = g_strnfill(5000, 'm');

    g_assert_cmpstr(eb_config_nearest("memroy", names), ==, "memory");
    g_assert_cmpstr(eb_config_nearest("cpu", names), ==, "cpus");
    g_assert_cmpstr(eb_config_nearest("idle", names), ==, "idle");
    g_assert_null(eb_config_nearest("network", names));
    g_assert_null(eb_config_nearest("x", names));
    g_assert_null(eb_config_nearest("", names));
    g_assert_null(eb_config_nearest(huge, names));
    g_assert_null(eb_config_nearest("memory", NULL));
}

static void
test_replace_and_list(void)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("s");
    g_autoptr(GPtrArray) keys = NULL;
    g_autofree char *where = NULL;
    g_autofree char *value = NULL;

    eb_config_section_set(section, "b", g_variant_new_string("old"), "/etc/a", 1);
    eb_config_section_set(section, "b", g_variant_new_string("new"), "/etc/conf.d/z", 2);
    eb_config_section_set(section, "a", g_variant_new_string("x"), NULL, 0);
    keys = eb_config_section_get_keys(section);
    g_assert_cmpuint(keys->len, ==, 2);
    g_assert_cmpstr(g_ptr_array_index(keys, 0), ==, "a");
    where = eb_config_section_where(section, "b");
    g_assert_cmpstr(where, ==, "/etc/conf.d/z:2");
    value = eb_config_section_get_string(section, "b", NULL, NULL);
    g_assert_cmpstr(value, ==, "new");
}

/* Whoever walks over a section may lay another one on it meanwhile. */
static void
test_names_stay(void)
{
    g_autoptr(EbConfigSection) section = eb_config_section_new("");
    g_autoptr(EbConfigSection) first = eb_config_section_new("a");
    g_autoptr(EbConfigSection) second = eb_config_section_new("a");
    eb_config_section_add_child(section, "a", first);
    eb_config_section_set(section, "k", g_variant_new_string("1"), NULL, 0);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    eb_config_section_add_child(section, "a", second);
    eb_config_section_set(section, "k", g_variant_new_string("2"), NULL, 0);
    g_autoptr(GPtrArray) children_after = eb_config_section_get_children(section);
    g_autoptr(GPtrArray) keys_after = eb_config_section_get_keys(section);
    g_assert_true(children->pdata[0] == children_after->pdata[0]);
    g_assert_true(keys->pdata[0] == keys_after->pdata[0]);
    g_assert_true(eb_config_section_get_child(section, "a") == second);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/config/reads", test_reads);
    g_test_add_func("/sdk/config/wrong-type", test_wrong_type);
    g_test_add_func("/sdk/config/literal-secret", test_literal_secret);
    g_test_add_func("/sdk/config/unknown", test_unknown);
    g_test_add_func("/sdk/config/parsers", test_parsers);
    g_test_add_func("/sdk/config/nearest", test_nearest);
    g_test_add_func("/sdk/config/replace-and-list", test_replace_and_list);
    g_test_add_func("/config/names-stay", test_names_stay);
    return g_test_run();
}
