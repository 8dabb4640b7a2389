/* SPDX-License-Identifier: MIT */
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zoo.h"

/* --- file trust --- */

typedef void (*Spoil)(const char *dir);

static void
spoil_file_mode(const char *dir)
{
    g_autofree char *path = zoo_module_path(dir, "zoo-good", ".so");

    g_assert_cmpint(g_chmod(path, 0664), ==, 0);
}

static void
spoil_manifest_mode(const char *dir)
{
    g_autofree char *path = zoo_module_path(dir, "zoo-good", ".plugin");

    g_assert_cmpint(g_chmod(path, 0646), ==, 0);
}

static void
spoil_folder_mode(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "zoo-good", NULL);

    g_assert_cmpint(g_chmod(path, 0775), ==, 0);
}

static void
spoil_parent_mode(const char *dir)
{
    g_assert_cmpint(g_chmod(dir, 0757), ==, 0);
}

static void
spoil_file_link(const char *dir)
{
    g_autofree char *path = zoo_module_path(dir, "zoo-good", ".so");
    g_autofree char *other = g_build_filename(dir, "real.so", NULL);

    g_assert_cmpint(g_rename(path, other), ==, 0);
    g_assert_cmpint(symlink(other, path), ==, 0);
}

static void
spoil_folder_link(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "zoo-good", NULL);
    g_autofree char *other = g_build_filename(dir, "Real", NULL);

    g_assert_cmpint(g_rename(path, other), ==, 0);
    g_assert_cmpint(symlink(other, path), ==, 0);
}

static void
spoil_file_type(const char *dir)
{
    g_autofree char *path = zoo_module_path(dir, "zoo-good", ".so");

    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(mkfifo(path, 0644), ==, 0);
}

static void
spoil_file_owner(const char *dir)
{
    g_autofree char *path = zoo_module_path(dir, "zoo-good", ".so");

    g_assert_cmpint(chown(path, 54321, 54321), ==, 0);
}

static void
spoil_folder_owner(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "zoo-good", NULL);

    g_assert_cmpint(chown(path, 54321, 54321), ==, 0);
}

static void
test_trust(void)
{
    static const struct {
        Spoil spoil;
        const char *reason;
        const char *text;
        gboolean needs_root;
    } table[] = {
        {spoil_file_mode, "plugin.trust-mode", "zoo-good.so has mode 0664", FALSE},
        {spoil_manifest_mode, "plugin.trust-mode", "zoo-good.plugin has mode 0646", FALSE},
        {spoil_folder_mode, "plugin.trust-mode", "has mode 0775", FALSE},
        {spoil_parent_mode, "plugin.trust-mode", "has mode 0757", FALSE},
        {spoil_file_link, "plugin.trust-symlink", "zoo-good.so is a symbolic link", FALSE},
        {spoil_folder_link, "plugin.trust-symlink", "zoo-good is a symbolic link", FALSE},
        {spoil_file_type, "plugin.trust-type", "zoo-good.so is no regular file", FALSE},
        {spoil_file_owner, "plugin.trust-owner", "zoo-good.so belongs to uid 54321", TRUE},
        {spoil_folder_owner, "plugin.trust-owner", "zoo-good belongs to uid 54321", TRUE},
    };

    g_unsetenv("ZOO_OPENED_zoo-good");
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_auto(Zoo) zoo = {0};

        if (table[i].needs_root && geteuid() != 0)
            continue;
        zoo_init(&zoo);
        zoo_install_plugin(zoo.dir, "zoo-good");
        table[i].spoil(zoo.dir);
        zoo_load(&zoo);
        zoo_assert_failed(&zoo, "zoo-good", EB_ERROR_INTEGRITY, table[i].reason, table[i].text);
    }
    g_assert_false(zoo_has_run("OPENED", "zoo-good"));
}

/* Installed, nothing below /tmp is trusted, however it is owned: others may write there. */
static void
test_trust_installed(void)
{
    g_auto(Zoo) zoo = {0};

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    g_clear_object(&zoo.registry);
    zoo.registry = eb_plugin_registry_new("errand", "/x", FALSE);
    zoo_load(&zoo);
    zoo_assert_failed(&zoo, "zoo-good", EB_ERROR_INTEGRITY, NULL, "/tmp");
}

/* The directory itself may be a link of the administrator's. */
static void
test_linked_dir(void)
{
    g_auto(Zoo) zoo = {0};
    g_autofree char *holder = eb_test_temp_dir("zoo2");
    g_autofree char *link = g_build_filename(holder, "plugins", NULL);

    zoo_init(&zoo);
    zoo_install_plugin(zoo.dir, "zoo-good");
    g_assert_cmpint(symlink(zoo.dir, link), ==, 0);
    eb_plugin_registry_load_dir(zoo.registry, link, NULL, NULL, NULL, NULL);
    g_assert_cmpint(zoo_find(&zoo, "zoo-good")->state, ==, EB_PLUGIN_STATE_LOADED);
    g_assert_true(g_str_has_prefix(zoo_find(&zoo, "zoo-good")->path, zoo.dir));
}

static const ZooTest tests[] = {
    {"/zoo/trust", test_trust},
    {"/zoo/trust-installed", test_trust_installed},
    {"/zoo/linked-dir", test_linked_dir},
};

int
main(int argc, char **argv)
{
    return zoo_run(argc, argv, tests, G_N_ELEMENTS(tests));
}
