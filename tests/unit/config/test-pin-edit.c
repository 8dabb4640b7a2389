/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pin-edit.h"
#include "eb-test.h"

#include <string.h>

static const EbPin TOOL = {.kind = EB_PIN_ARCHIVE, .name = (char *)"tool"};

static const char TEXT[] = "# version = \"1\"\n"
                           "[archive.other]\n"
                           "version = \"1.0\" # stays\n"
                           "[archive.tool]   # what it is\n"
                           "# version = \"0.9\"\n"
                           "versions = \"x\"\n"
                           "\tversion=\"1.0\"   # of May\r\n"
                           "urls = [\"https://a.invalid/\"]\n"
                           "[npm.tool2]\n"
                           "version = \"1.0\"";

static void
test_set(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *edited = eb_pin_edit_set(TEXT, &TOOL, "version", "2.0.1", &error);
    g_autoptr(GString) expected = g_string_new(TEXT);

    g_assert_no_error(error);
    g_string_replace(expected, "\tversion=\"1.0\"", "\tversion=\"2.0.1\"", 0);
    g_assert_cmpstr(edited, ==, expected->str);
}

static void
test_quoted_name(void)
{
    const EbPin pin = {.kind = EB_PIN_DEB, .name = (char *)"a.b"};
    g_autoptr(GError) error = NULL;
    g_autofree char *edited = eb_pin_edit_set("[deb.\"a.b\"]\nat_least = \"1\"\n", &pin, "at_least", "2", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(edited, ==, "[deb.\"a.b\"]\nat_least = \"2\"\n");
}

/* Other spellings are left to a person. */
static void
test_not_set(void)
{
    static const char *const bad[] = {
        "",
        "[archive.tool]\n",
        "[archive.tool2]\nversion = \"1\"\n",
        "[archive.tool]\nversion = '1'\n",
        "[archive.tool]\nversion = \"\"\"1\"\"\"\n",
        "[archive.tool]\nversion = \"\\u0031\"\n",
        "[archive.tool]\nversion = \"1\n",
        "[archive.tool]\n[archive.more]\nversion = \"1\"\n",
        "archive.tool.version = \"1\"\n",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_pin_edit_set(bad[i], &TOOL, "version", "2", &error));
        eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "pins.edit", "[archive.tool]: version");
    }
}

static void
test_compare(void)
{
    static const char *const ordered[] = {
        "0.9",        "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
        "1.0.0",      "1.0.1",        "1.2",           "1.10.0",
        "2",          "10.0",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(ordered); i++)
        for (gsize j = 0; j < G_N_ELEMENTS(ordered); j++) {
            int order = eb_pin_version_compare(ordered[i], ordered[j]);
            g_assert_true(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    g_assert_cmpint(eb_pin_version_compare("1.0", "1.0.0"), ==, 0);
    g_assert_cmpint(eb_pin_version_compare("1.0+a", "1.0+b-c"), ==, 0);
    g_assert_cmpint(eb_pin_version_compare("1.01", "1.1"), ==, 0);
    g_assert_cmpint(eb_pin_version_compare("99999999999999999999", "100000000000000000000"), <, 0);
}

static void
test_pick(void)
{
    const char *const names[] = {"1.9.0", "2.0.0", "1.10.2", "3.0.0-rc.1", "1.10.10", "../9", "10.0.0", "1.10.10"};
    g_autoptr(GPtrArray) versions = g_ptr_array_new();

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_ptr_array_add(versions, (gpointer)names[i]);
    g_assert_cmpstr(eb_pin_version_pick(versions, "1.0.0", NULL), ==, "10.0.0");
    g_assert_cmpstr(eb_pin_version_pick(versions, "1.0.0", "1"), ==, "1.10.10");
    g_assert_cmpstr(eb_pin_version_pick(versions, "1.9.0", "1.9"), ==, NULL);
    g_assert_cmpstr(eb_pin_version_pick(versions, "11.0", NULL), ==, NULL);
    g_assert_cmpstr(eb_pin_version_pick(versions, "3.0.0-beta", "3"), ==, "3.0.0-rc.1");
    g_assert_cmpstr(eb_pin_version_pick(versions, "2.9.0", "3"), ==, NULL);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/pin-edit/set", test_set);
    g_test_add_func("/pin-edit/quoted-name", test_quoted_name);
    g_test_add_func("/pin-edit/not-set", test_not_set);
    g_test_add_func("/pin-edit/compare", test_compare);
    g_test_add_func("/pin-edit/pick", test_pick);
    return g_test_run();
}
