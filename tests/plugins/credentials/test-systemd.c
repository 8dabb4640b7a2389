/* SPDX-License-Identifier: MIT */
/* What the service manager hands over. */
#include "tests/lib/eb-test.h"

#include "sealed-material.h"
#include "systemd-store.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    eb_test_write_file(path, text);
    g_assert_cmpint(chmod(path, mode), ==, 0);
}

static EbCredential *
look_up(EbCredentialStore *store, const char *name, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credential_store_lookup_async(store, name, NULL, eb_test_result_ready, &done);
    return eb_credential_store_lookup_finish(store, eb_test_result_wait(&done), error);
}

static void
assert_value(EbCredentialStore *store, const char *name, const char *value)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) found = look_up(store, name, &error);

    g_assert_no_error(error);
    g_assert_true(eb_secret_equal_bytes(found->secret, value, strlen(value)));
    g_assert_cmpint(found->expires_unix, ==, 0);
}

static void
test_reads(void)
{
    g_autofree char *dir = eb_test_temp_dir("systemd");
    g_autoptr(EbCredentialStore) store = EB_CREDENTIAL_STORE(eb_credentials_systemd_store_new(dir));
    g_autoptr(GError) error = NULL;

    write_file(dir, "model-key", "for anyone\n", 0400);
    write_file(dir, "chat-token", "plain\n", 0440); /* as an access list for one user looks */
    write_file(dir, "errand-box.model-key", "for us\n", 0440);
    write_file(dir, SEALED_HANDED_KEY, "0123456789abcdef0123456789abcdef", 0400);
    write_file(dir, "Not A Name", "x", 0400);
    assert_value(store, "model-key", "for us");
    assert_value(store, "chat-token", "plain");
    g_assert_null(look_up(store, "github-token", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "credentials.missing", dir);

    g_auto(EbTestResult) done = {0};
    eb_credential_store_list_async(store, NULL, eb_test_result_ready, &done);
    g_auto(GStrv) names = eb_credential_store_list_finish(store, eb_test_result_wait(&done), NULL);
    g_autofree char *all = g_strjoinv(" ", names);
    g_assert_cmpstr(all, ==, "chat-token model-key"); /* not what opens the sealed ones */
}

static void
test_refuses(void)
{
    g_autofree char *dir = eb_test_temp_dir("systemd");
    g_autofree char *link_path = g_build_filename(dir, "linked", NULL);
    g_autoptr(EbCredentialStore) store = EB_CREDENTIAL_STORE(eb_credentials_systemd_store_new(dir));
    const char *const names[] = {"others", "writable", "linked", "empty"};

    write_file(dir, "others", "x", 0444);
    write_file(dir, "writable", "x", 0420);
    write_file(dir, "empty", "", 0400);
    g_assert_cmpint(symlink("others", link_path), ==, 0);
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(look_up(store, names[i], &error));
        g_assert_nonnull(strstr(error->message, names[i]));
        g_assert_cmpint(error->code, !=, EB_ERROR_NOT_FOUND); /* the search must not go on to an older value */
    }
}

static void
test_nothing_handed(void)
{
    static const char *const dirs[] = {NULL, "relative", "/nonexistent/credentials"};

    for (guint i = 0; i < G_N_ELEMENTS(dirs); i++) {
        g_autoptr(EbCredentialStore) store = EB_CREDENTIAL_STORE(eb_credentials_systemd_store_new(dirs[i]));
        g_autoptr(EbSecret) secret = eb_secret_new_random("x", 16);
        g_autoptr(GError) error = NULL;
        g_auto(EbTestResult) listed = {0}, stored = {0};

        g_assert_null(look_up(store, "model-key", &error));
        eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "credentials.missing", NULL);
        g_clear_error(&error);
        eb_credential_store_list_async(store, NULL, eb_test_result_ready, &listed);
        g_auto(GStrv) names = eb_credential_store_list_finish(store, eb_test_result_wait(&listed), &error);
        g_assert_no_error(error);
        g_assert_cmpuint(g_strv_length(names), ==, 0);
        eb_credential_store_put_async(store, "model-key", secret, NULL, eb_test_result_ready, &stored);
        g_assert_false(eb_credential_store_put_finish(store, eb_test_result_wait(&stored), &error));
        eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, NULL, NULL);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/systemd/reads", test_reads);
    g_test_add_func("/systemd/refuses", test_refuses);
    g_test_add_func("/systemd/nothing-handed", test_nothing_handed);
    return g_test_run();
}
