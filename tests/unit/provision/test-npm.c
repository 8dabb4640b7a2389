/* SPDX-License-Identifier: MIT */
/* What npm and apt print, and what an update says. */
#include "core/provision/eb-debian.h"
#include "core/provision/eb-image-npm.h"
#include "core/provision/eb-npm-lock.h"
#include "core/provision/eb-npm.h"
#include "core/provision/eb-pin-update.h"
#include "eb-test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHA512_ABC "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="

static void
test_registry(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbNpmRegistry) registry =
        eb_npm_registry_parse("registry=https://mirror.invalid/npm\ncafile=/etc/ca.pem\nhttps-proxy=http://"
                              "p.invalid:3128/\nnoproxy=\n@own:registry=https://own.invalid/\n"
                              "@none:registry=undefined\n",
                              &error);

    g_assert_no_error(error);
    g_assert_cmpstr(registry->ca_file, ==, "/etc/ca.pem");
    g_assert_cmpstr(registry->proxy, ==, "http://p.invalid:3128/");
    g_assert_null(registry->no_proxy);
    g_autofree char *plain = eb_npm_registry_archive_url(registry, "a", "1.0.0");
    g_autofree char *scoped = eb_npm_registry_archive_url(registry, "@none/b", "1.0.0");
    g_autofree char *own = eb_npm_registry_archive_url(registry, "@own/b", "2.0.0-rc.1");
    g_assert_cmpstr(plain, ==, "https://mirror.invalid/npm/a/-/a-1.0.0.tgz");
    g_assert_cmpstr(scoped, ==, "https://mirror.invalid/npm/@none/b/-/b-1.0.0.tgz");
    g_assert_cmpstr(own, ==, "https://own.invalid/@own/b/-/b-2.0.0-rc.1.tgz");
}

static void
test_registry_refused(void)
{
    static const char *const bad[] = {"", "registry=undefined\n", "registry=http://mirror.invalid/\n",
                                      "registry=https://user:pass@mirror.invalid/\n",
                                      "registry=https://a.invalid/\n@s:registry=ftp://b.invalid/\n"};

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_npm_registry_parse(bad[i], &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "pins.registry", "npm config get registry");
    }
}

static void
test_versions(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) one = eb_npm_parse_versions("\"1.2.3\"\n", &error);
    g_autoptr(GPtrArray) more = eb_npm_parse_versions("[\n \"1.0.0\", \"1.1.0\", 7\n]\n", &error);
    g_autoptr(GPtrArray) none = eb_npm_parse_versions("\n", &error);

    g_assert_no_error(error);
    g_assert_cmpuint(one->len, ==, 1);
    g_assert_cmpuint(more->len, ==, 2);
    g_assert_cmpuint(none->len, ==, 0);
    g_assert_null(eb_npm_parse_versions("npm ERR!", &error));
    g_assert_nonnull(error);
}

#define LOCK(more)                                                                                                     \
    "{\"lockfileVersion\":3,\"packages\":{\"\":{},\"node_modules/"                                                     \
    "a\":{\"version\":\"2.0.0\",\"integrity\":\"" SHA512_ABC "\"" more "}}}"

static gboolean
check_lock(const char *lock, const char *command, char **integrity, GError **error)
{
    char *commands[] = {(char *)command, NULL};
    char *none[] = {NULL};
    const EbPin pin = {.kind = EB_PIN_NPM,
                       .name = (char *)"a",
                       .package = (char *)"a",
                       .lock = (char *)"lock.json",
                       .commands = commands,
                       .commands_baseline = none,
                       .avx2 = none,
                       .baseline = none};
    g_autoptr(GBytes) bytes = g_bytes_new_static(lock, strlen(lock));

    return eb_npm_lock_check(&pin, "2.0.0", bytes, integrity, error);
}

static void
test_lock(void)
{
    static const struct {
        const char *lock;
        const char *command;
        const char *says;
    } bad[] = {
        {LOCK(",\"resolved\":\"https://registry.invalid/a.tgz\""), "a=node_modules/a/b",
         "where node_modules/a comes from"},
        {LOCK(""), "a=node_modules/b/b", "no package that node_modules/b/b could be in"},
        {"{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.9.0\",\"integrity\":\"" SHA512_ABC
         "\"}}}",
         "a=node_modules/a/b", "does not have a 2.0.0"},
        {"{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"2.0.0\",\"integrity\":\"sha1-x\"}}}",
         "a=node_modules/a/b", "no SHA-512"},
        {"{\"lockfileVersion\":1}", "a=node_modules/a/b", "no lock file of version 3"},
        {"[", "a=node_modules/a/b", NULL},
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *integrity = NULL;

    g_assert_true(check_lock(LOCK(""), "a=node_modules/a/b", &integrity, &error));
    g_assert_cmpstr(integrity, ==, SHA512_ABC);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *nothing = NULL;
        g_assert_false(check_lock(bad[i].lock, bad[i].command, &nothing, &error));
        g_assert_null(nothing);
        g_assert_true(bad[i].says == NULL || strstr(error->message, bad[i].says) != NULL);
        g_clear_error(&error);
    }
}

static void
test_debian(void)
{
    g_autofree char *one =
        eb_debian_parse_candidate("a:\n  Installed: (none)\n  Candidate: 1:2.0-1~bpo\n  Version table:\n");
    g_autofree char *none = eb_debian_parse_candidate("a:\n  Installed: (none)\n  Candidate: (none)\n");

    g_assert_cmpstr(one, ==, "1:2.0-1~bpo");
    g_assert_null(none);
    g_assert_null(eb_debian_parse_candidate(""));
    g_assert_true(eb_debian_is_at_least("6.0.4-2", "6.0.0-1~"));
    g_assert_false(eb_debian_is_at_least("6.0~rc1", "6.0"));
    g_assert_null(eb_debian_installed("no-such-package-here"));
}

static EbPinChange *
change_new(const char *name, EbPinNews news)
{
    EbPinChange *change = g_new0(EbPinChange, 1);

    change->kind = EB_PIN_ARCHIVE;
    change->name = g_strdup(name);
    change->news = news;
    change->old_version = g_strdup("1.0");
    return change;
}

static void
test_report(void)
{
    g_autoptr(GPtrArray) changes = g_ptr_array_new_with_free_func((GDestroyNotify)eb_pin_change_free);

    g_ptr_array_add(changes, change_new("same", EB_PIN_NEWS_NONE));
    g_autofree char *nothing = eb_pin_update_to_markdown(changes);
    g_assert_cmpstr(nothing, ==, "Nothing newer than what is pinned.\n");
    EbPinChange *newer = change_new("tool", EB_PIN_NEWS_NEWER);
    newer->new_version = g_strdup("2.0");
    newer->old_digest = g_strdup("0ld");
    newer->new_digest = g_strdup("n3w");
    g_ptr_array_add(changes, newer);
    EbPinChange *failed = change_new("bad", EB_PIN_NEWS_FAILED);
    failed->error = eb_error_new(EB_ERROR_FAILED, NULL, "said `x` | <img src=y>\n@everyone");
    g_ptr_array_add(changes, failed);
    g_autofree char *text = eb_pin_update_to_markdown(changes);
    g_assert_nonnull(strstr(text, "| archive | `tool` | 1.0 | 2.0 | **none: compare"));
    g_assert_nonnull(strstr(text, "  - old: `0ld`\n  - new: `n3w`\n"));
    g_assert_null(strstr(text, "same"));
    g_assert_nonnull(strstr(text, "said \\`x\\` \\| \\<img src=y\\>")); /* what a server said is text and no more */
    g_assert_null(strstr(text, "\n@everyone"));
    g_assert_nonnull(strstr(text, "\\@everyone"));
}

/* An image's programs are unpacked by root on the host: what a package's link leads to is the host's. */
static void
test_package_tree(void)
{
    static const char *const ODD[] = {"link", "dangling", "node_modules", "twin", "pipe"};
    g_autofree char *dir = eb_test_temp_dir("package");
    g_autofree char *deep = g_build_filename(dir, "lib", "deep", NULL);
    g_autofree char *file = g_build_filename(deep, "cli.js", NULL);
    g_autofree char *none = g_build_filename(dir, "none", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(g_mkdir_with_parents(deep, 0755), ==, 0);
    eb_test_write_file(file, "");
    g_assert_true(eb_image_npm_check_tree(dir, "base", &error));
    g_assert_no_error(error);
    for (guint i = 0; i < G_N_ELEMENTS(ODD); i++) {
        g_autofree char *odd = g_build_filename(i % 2 == 0 ? dir : deep, ODD[i], NULL);
        g_autoptr(GError) refused = NULL;
        g_assert_cmpint(i == 0   ? symlink("lib/deep/cli.js", odd)
                        : i == 1 ? symlink("nowhere", odd)
                        : i == 2 ? symlink("/etc", odd)
                        : i == 3 ? link(file, odd)
                                 : mkfifo(odd, 0600),
                        ==, 0);
        g_assert_false(eb_image_npm_check_tree(dir, "base", &refused));
        eb_test_assert_error(refused, EB_ERROR_INTEGRITY, "image.package", "package base");
        g_assert_cmpint(unlink(odd), ==, 0);
    }
    g_assert_true(eb_image_npm_check_tree(dir, "base", NULL));
    g_assert_false(eb_image_npm_check_tree(none, "base", NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/npm/registry", test_registry);
    g_test_add_func("/npm/registry-refused", test_registry_refused);
    g_test_add_func("/npm/versions", test_versions);
    g_test_add_func("/npm/lock", test_lock);
    g_test_add_func("/npm/debian", test_debian);
    g_test_add_func("/npm/report", test_report);
    g_test_add_func("/npm/package-tree", test_package_tree);
    return g_test_run();
}
