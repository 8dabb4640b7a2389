/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

#include "core/plugin/eb-plugin-loader.h"
#include "core/plugin/eb-plugin-manifest.h"

#define HEAD "[Plugin]\nName=acme-disk\nVersion=1.0\nAbi=1.0\nLicense=MIT\n"

static EbPluginManifest *
parse(const char *text, GError **error)
{
    return eb_plugin_manifest_parse(text, strlen(text), "/p/acme-disk.plugin", error);
}

static void
test_whole(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPluginManifest) manifest = parse(
        HEAD "Implements=credential-store:vault; doctor-check ;\nAccesses=/etc/motd;run:uname\nRequires=b-c\n", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(manifest->name, ==, "acme-disk");
    g_assert_cmpuint(manifest->abi_major, ==, 1);
    g_assert_cmpstr(manifest->config_section, ==, "plugin.acme-disk");
    g_assert_cmpuint(g_strv_length(manifest->implements), ==, 2);
    g_assert_cmpstr(manifest->implements[1], ==, "doctor-check");
    g_assert_cmpstr(manifest->requires[0], ==, "b-c");
    g_assert_true(eb_plugin_manifest_implements(manifest, EB_EXTENSION_CREDENTIAL_STORE, "vault"));
    g_assert_true(eb_plugin_manifest_implements(manifest, EB_EXTENSION_CREDENTIAL_STORE, NULL));
    g_assert_false(eb_plugin_manifest_implements(manifest, EB_EXTENSION_CREDENTIAL_STORE, "vaul"));
    g_assert_true(eb_plugin_manifest_implements(manifest, EB_EXTENSION_DOCTOR_CHECK, "x-any"));
    g_assert_false(eb_plugin_manifest_implements(manifest, EB_EXTENSION_CHAT_TRANSPORT, NULL));
}

static void
test_refused(void)
{
    static const struct {
        const char *text;
        const char *problem;
    } table[] = {
        {"", "not a key file"},
        {"no group at all", "not a key file"},
        {"[Plugin]\n", "key Name is missing"},
        {"[Plugin]\nName=\n", "key Name is empty"},
        {HEAD, "key Implements is missing"},
        {HEAD "Implements=;\n", "key Implements is empty"},
        {HEAD "Implements=doctor-check:\n", "empty name"},
        {HEAD "Implements=container-backend\n", "lacks the name"},
        {HEAD "Implements=doctor-check\nVersion=a\\nb\n", "cannot be shown"},
        {HEAD "Implements=doctor-check\nName=Acme\n", "Name=Acme is not of the form"},
        {HEAD "Implements=doctor-check\nName=../x\n", "is not of the form"},
        {HEAD "Implements=doctor-check\nAbi=1\n", "MAJOR.MINOR"},
        {HEAD "Implements=doctor-check\nAbi=1.-1\n", "MAJOR.MINOR"},
        {HEAD "Implements=doctor-check\nAbi=1.0.0\n", "MAJOR.MINOR"},
        {HEAD "Implements=doctor-check\nAbi=99999999999999999999.0\n", "MAJOR.MINOR"},
        {HEAD "Implements=doctor-check\nRequires=acme-disk\n", "another plugin"},
        {HEAD "Implements=doctor-check\nRequires=/etc\n", "another plugin"},
        {HEAD "Implements=doctor-check\nAccess=/\n", "unknown key Access (did you mean Accesses?)"},
        {HEAD "Implements=doctor-check\n[Plugin2]\n", "unknown group [Plugin2]"},
        {HEAD "Implements=doctor-check\nLicense=\xff\n", "not UTF-8"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(parse(table[i].text, &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.manifest", table[i].problem);
        g_assert_nonnull(strstr(error->message, "/p/acme-disk.plugin"));
    }
}

static void
test_bounds(void)
{
    g_autoptr(GString) many = g_string_new(HEAD "Implements=doctor-check\nAccesses=");
    g_autofree char *wide = g_strnfill(1100, 'x');
    g_autofree char *wide_text = g_strconcat(HEAD "Implements=doctor-check\nAccesses=", wide, "\n", NULL);
    g_autofree char *huge = g_strnfill(EB_PLUGIN_MANIFEST_MAX + 1, '#');
    g_autoptr(GError) error = NULL;

    for (int i = 0; i < 65; i++)
        g_string_append(many, "/a;");
    g_assert_null(parse(many->str, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.manifest", "more than 64 items");
    g_clear_error(&error);
    g_assert_null(parse(wide_text, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.manifest", "longer than 1024 bytes");
    g_clear_error(&error);
    g_assert_null(parse(huge, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "plugin.manifest", "longer than 16384 bytes");
}

static void
test_abi(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_plugin_loader_check_abi("p", "module", EB_ABI_MAJOR, EB_ABI_MINOR, &error));
    g_assert_true(eb_plugin_loader_check_abi("p", "module", EB_ABI_MAJOR, 0, &error));
    g_assert_no_error(error);
    g_assert_false(eb_plugin_loader_check_abi("p", "module", 0, 0, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "plugin.abi-major", "0.0");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/plugin/manifest/whole", test_whole);
    g_test_add_func("/plugin/manifest/refused", test_refused);
    g_test_add_func("/plugin/manifest/bounds", test_bounds);
    g_test_add_func("/plugin/manifest/abi", test_abi);
    return g_test_run();
}
