/* SPDX-License-Identifier: MIT */
#include "tests/lib/eb-test.h"

#include "env-file-data.h"
#include "env-file-store.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *dir;
    char *first;  /* written to */
    char *second; /* read after it */
    EbCredentialStore *store;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->dir = eb_test_temp_dir("creds");
    fixture->first = g_build_filename(fixture->dir, "creds.env", NULL);
    fixture->second = g_build_filename(fixture->dir, "etc.env", NULL);
    const char *const paths[] = {fixture->first, fixture->second, NULL};
    fixture->store = EB_CREDENTIAL_STORE(eb_credentials_env_file_store_new(paths, "nobody-of-that-name"));
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_object_unref(fixture->store);
    g_free(fixture->first);
    g_free(fixture->second);
    g_free(fixture->dir);
}

static void
write_private(const char *path, const char *text)
{
    eb_test_write_file(path, text);
    g_assert_cmpint(chmod(path, 0600), ==, 0);
}

static EbCredential *
lookup(Fixture *fixture, const char *name, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credential_store_lookup_async(fixture->store, name, NULL, eb_test_result_ready, &done);
    return eb_credential_store_lookup_finish(fixture->store, eb_test_result_wait(&done), error);
}

static void
assert_value(Fixture *fixture, const char *name, const char *value)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) credential = lookup(fixture, name, &error);

    g_assert_no_error(error);
    g_assert_true(eb_secret_equal_bytes(credential->secret, value, strlen(value)));
}

static void
assert_missing(Fixture *fixture, const char *name)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(lookup(fixture, name, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
}

static gboolean
put(Fixture *fixture, const char *name, const char *value, GError **error)
{
    g_auto(EbTestResult) done = {0};
    g_autofree char *bytes = g_strdup(value);
    g_autoptr(EbSecret) secret = eb_secret_new_take(name, bytes, strlen(value), error);

    g_assert_nonnull(secret);
    eb_credential_store_put_async(fixture->store, name, secret, NULL, eb_test_result_ready, &done);
    return eb_credential_store_put_finish(fixture->store, eb_test_result_wait(&done), error);
}

static gboolean
drop(Fixture *fixture, const char *name, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credential_store_remove_async(fixture->store, name, NULL, eb_test_result_ready, &done);
    return eb_credential_store_remove_finish(fixture->store, eb_test_result_wait(&done), error);
}

static void
test_lookup(Fixture *fixture, gconstpointer data)
{
    write_private(fixture->first, "# mine\r\nERRAND_CHAT_TOKEN='a b'\r\nERRAND_CRED_ACME_DISK=x=y#z\n"
                                  "ERRAND_GITHUB_TOKEN=\n");
    write_private(fixture->second, "ERRAND_CHAT_TOKEN=older\nERRAND_PROVIDER_CREDENTIAL=\"$HOME\"\n"
                                   "ERRAND_GITHUB_TOKEN=gh\n");
    assert_value(fixture, "chat-token", "a b");
    assert_value(fixture, "acme-disk", "x=y#z");
    assert_value(fixture, "model-key", "$HOME");
    assert_value(fixture, "github-token", "gh");
    assert_missing(fixture, "nothing");

    g_auto(EbTestResult) done = {0};
    eb_credential_store_list_async(fixture->store, NULL, eb_test_result_ready, &done);
    g_auto(GStrv) names = eb_credential_store_list_finish(fixture->store, eb_test_result_wait(&done), NULL);
    g_autofree char *joined = g_strjoinv(",", names);
    g_assert_cmpstr(joined, ==, "acme-disk,chat-token,github-token,model-key");

    g_autoptr(EbCredential) credential = lookup(fixture, "chat-token", NULL);
    g_autofree char *source = g_strdup_printf("env-file %s:2", fixture->first);
    g_assert_cmpstr(credential->source, ==, source);
    g_autofree char *described = eb_credential_store_describe(fixture->store);
    g_assert_nonnull(strstr(described, fixture->second));
}

static void
test_bad_names(Fixture *fixture, gconstpointer data)
{
    const char *const names[] = {"", "A", "a_b", "a/b", "../x", "1a", "\xff", NULL};

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(lookup(fixture, names[i], &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "credentials.name", NULL);
    }
}

/* A file that others could read is an error, not a miss that the next file answers. */
static void
test_exposed(Fixture *fixture, gconstpointer data)
{
    const mode_t modes[] = {0640, 0604, 0620, 0666};

    write_private(fixture->second, "ERRAND_CHAT_TOKEN=second\n");
    for (guint i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_autoptr(GError) error = NULL;
        eb_test_write_file(fixture->first, "ERRAND_CHAT_TOKEN=hunter2\n");
        g_assert_cmpint(chmod(fixture->first, modes[i]), ==, 0);
        g_assert_null(lookup(fixture, "chat-token", &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "credentials.exposed", "chmod 600");
        g_assert_null(strstr(error->message, "hunter2"));
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(put(fixture, "chat-token", "new", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "credentials.exposed", NULL);
}

static void
test_link_and_owner(Fixture *fixture, gconstpointer data)
{
    g_autofree char *real = g_build_filename(fixture->dir, "real", NULL);
    g_autoptr(GError) error = NULL;

    write_private(real, "ERRAND_CHAT_TOKEN=x\n");
    g_assert_cmpint(symlink(real, fixture->first), ==, 0);
    g_assert_null(lookup(fixture, "chat-token", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "credentials.exposed", "symbolic link");
    if (geteuid() != 0) {
        g_test_skip("only root can give a file away");
        return;
    }
    g_clear_error(&error);
    g_assert_cmpint(unlink(fixture->first), ==, 0);
    write_private(fixture->first, "ERRAND_CHAT_TOKEN=x\n");
    g_assert_cmpint(chown(fixture->first, 12345, 12345), ==, 0);
    g_assert_null(lookup(fixture, "chat-token", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "credentials.exposed", "belongs to uid 12345");
}

static void
test_broken(Fixture *fixture, gconstpointer data)
{
    const char *const texts[] = {"ERRAND_CHAT_TOKEN=hunter2\nERRAND_CHAT_TOKEN=hunter3\n", "hunter2\n",
                                 "ERRAND_CHAT_TOKEN=\"hunter2\n", NULL};

    for (guint i = 0; texts[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        write_private(fixture->first, texts[i]);
        g_assert_null(lookup(fixture, "chat-token", &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "line ");
        g_assert_nonnull(strstr(error->message, fixture->first));
        g_assert_null(strstr(error->message, "hunter"));
    }
}

static void
test_put_and_remove(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    struct stat info;

    assert_missing(fixture, "model-key");
    g_assert_true(put(fixture, "model-key", "one", &error));
    g_assert_no_error(error);
    assert_value(fixture, "model-key", "one");
    g_assert_cmpint(stat(fixture->first, &info), ==, 0);
    g_assert_cmpint(info.st_mode & 07777, ==, 0600);

    write_private(fixture->first, "# keep me\n ERRAND_PROVIDER_CREDENTIAL = old\n\nERRAND_CHAT_TOKEN=t\n");
    g_assert_true(put(fixture, "model-key", " spaced ", &error));
    assert_value(fixture, "model-key", " spaced ");
    assert_value(fixture, "chat-token", "t");
    g_assert_true(g_file_get_contents(fixture->first, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, "# keep me\n\nERRAND_CHAT_TOKEN=t\nERRAND_PROVIDER_CREDENTIAL=\" spaced \"\n");

    write_private(fixture->second, "ERRAND_PROVIDER_CREDENTIAL=second\n");
    g_assert_true(drop(fixture, "model-key", &error));
    g_assert_no_error(error);
    assert_missing(fixture, "model-key");
    assert_value(fixture, "chat-token", "t");
    g_assert_false(drop(fixture, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, "model-key");
}

static void
test_put_unfit(Fixture *fixture, gconstpointer data)
{
    const char *const values[] = {"two\nlines", "cr\r", "\"both'", "'both\"x", NULL};

    for (guint i = 0; values[i] != NULL; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(put(fixture, "model-key", values[i], &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "credentials.value", NULL);
        g_assert_false(g_file_test(fixture->first, G_FILE_TEST_EXISTS));
    }
}

static void
test_many_round_trips(Fixture *fixture, gconstpointer data)
{
    static const char alphabet[] = "aZ0 \"'#=\\$\t\xc3\xa4";

    for (guint round = 0; round < 200; round++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) value = g_string_new("v");
        for (int i = g_test_rand_int_range(0, 20); i > 0; i--)
            g_string_append_c(value, alphabet[g_test_rand_int_range(0, sizeof alphabet - 1)]);
        if (put(fixture, "model-key", value->str, &error))
            assert_value(fixture, "model-key", value->str);
        else
            eb_test_assert_error(error, EB_ERROR_INVALID, "credentials.value", NULL);
    }
}

static void
test_key_names(void)
{
    g_autofree char *key = eb_env_file_key_for_credential("acme-disk-2");
    g_autofree char *name = eb_env_file_credential_for_key("ERRAND_CRED_ACME_DISK_2");

    g_assert_cmpstr(key, ==, "ERRAND_CRED_ACME_DISK_2");
    g_assert_cmpstr(name, ==, "acme-disk-2");
    g_assert_null(eb_env_file_credential_for_key("PATH"));
    g_assert_null(eb_env_file_credential_for_key("ERRAND_CRED_"));
    g_assert_null(eb_env_file_credential_for_key("ERRAND_CRED_lower"));
    g_assert_null(eb_env_file_credential_for_key("ERRAND_CRED_CHAT_TOKEN"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/env-file/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("lookup", test_lookup);
    ADD("bad-names", test_bad_names);
    ADD("exposed", test_exposed);
    ADD("link-and-owner", test_link_and_owner);
    ADD("broken", test_broken);
    ADD("put-and-remove", test_put_and_remove);
    ADD("put-unfit", test_put_unfit);
    ADD("many-round-trips", test_many_round_trips);
    g_test_add_func("/env-file/key-names", test_key_names);
    return g_test_run();
}
