/* SPDX-License-Identifier: MIT */
/* Lookups through the registry's stores, with the real env-file store. */
#include "core/base/eb-paths.h"
#include "core/plugin/eb-credentials.h"

#include "tests/lib/eb-test.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *dir;
    char *file;
    EbPluginRegistry *registry;
    EbCredentials *credentials;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    static const char *const order[] = {"nowhere", "env-file", NULL}; /* the first is not loaded and passed over */
    static const char *const only[] = {"credential-store", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = eb_paths_new(&error);

    g_assert_no_error(error);
    f->dir = eb_test_temp_dir("cred");
    f->file = g_build_filename(f->dir, "creds.env", NULL);
    f->registry = eb_plugin_registry_new("errand", f->dir, TRUE);
    eb_plugin_registry_load_dir(f->registry, eb_paths_get_plugin_dir(paths), NULL, only, NULL, NULL);
    f->credentials = eb_credentials_new(f->registry, order);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_object_unref(f->credentials);
    g_object_unref(f->registry);
    g_free(f->file);
    g_free(f->dir);
}

static void
write_creds(Fixture *f, const char *text, mode_t mode)
{
    eb_test_write_file(f->file, text);
    g_assert_cmpint(chmod(f->file, mode), ==, 0);
}

static EbSecret *
look_up(Fixture *f, const char *name, GCancellable *cancellable, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credentials_lookup_async(f->credentials, name, cancellable, eb_test_result_ready, &done);
    return eb_credentials_lookup_finish(f->credentials, eb_test_result_wait(&done), error);
}

static gboolean
keep(Fixture *f, GError **error)
{
    static const char *const names[] = {"model-key", "chat-token", NULL};
    g_auto(EbTestResult) done = {0};

    eb_credentials_keep_async(f->credentials, names, NULL, eb_test_result_ready, &done);
    return eb_credentials_keep_finish(f->credentials, eb_test_result_wait(&done), error);
}

static void
assert_value(EbSecret *secret, const char *value)
{
    g_assert_nonnull(secret);
    g_auto(EbSecretView) view = eb_secret_view(secret);
    g_assert_cmpmem(view.bytes, view.length, value, strlen(value));
}

static void
test_lookup(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) stores = eb_credentials_get_stores(f->credentials);

    g_assert_cmpuint(stores->len, ==, 1);
    g_assert_true(eb_credentials_from_registry(f->registry) == f->credentials);
    write_creds(f, "ERRAND_PROVIDER_CREDENTIAL=hunter-one\n", 0600);
    g_autoptr(EbSecret) secret = look_up(f, "model-key", NULL, &error);
    g_assert_no_error(error);
    assert_value(secret, "hunter-one");
    /* Found, so never shown from here on. */
    g_autofree char *masked = eb_log_mask_text("said hunter-one aloud", -1);
    g_assert_null(strstr(masked, "hunter-one"));
}

static void
test_missing(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(look_up(f, "model-key", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "credential.missing", f->file);
    g_assert_nonnull(strstr(error->message, "errand-box creds set model-key"));
    g_clear_error(&error);
    g_assert_null(look_up(f, "Not A Name", NULL, &error));
    g_assert_nonnull(error);
}

/* A store that fails in another way ends the search: what comes after it may be older. */
static void
test_exposed(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    write_creds(f, "ERRAND_PROVIDER_CREDENTIAL=hunter-two\n", 0644);
    g_assert_null(look_up(f, "model-key", NULL, &error));
    g_assert_nonnull(strstr(error->message, "chmod 600"));
    g_assert_null(strstr(error->message, "hunter-two"));
    g_assert_false(g_error_matches(error, EB_ERROR, EB_ERROR_UNAUTHENTICATED));
    g_clear_error(&error);
    g_assert_false(keep(f, &error));
    g_assert_nonnull(error);
}

static void
test_keep(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    write_creds(f, "ERRAND_PROVIDER_CREDENTIAL=hunter-old\n", 0600);
    g_assert_true(keep(f, &error)); /* chat-token is missing, which is no error here */
    g_assert_no_error(error);
    write_creds(f, "ERRAND_PROVIDER_CREDENTIAL=hunter-new\n", 0600);
    g_autoptr(EbSecret) fresh = look_up(f, "model-key", NULL, &error);
    assert_value(fresh, "hunter-new");
    /* The newest that was seen, to a program that gave up its rights. */
    uid_t self = geteuid();
    g_assert_cmpint(chmod(f->file, 0), ==, 0);
    g_assert_true(self != 0 || seteuid(65534) == 0);
    g_autoptr(EbSecret) kept = look_up(f, "model-key", NULL, &error);
    g_assert_no_error(error);
    assert_value(kept, "hunter-new");
    g_assert_true(self != 0 || seteuid(0) == 0);
    /* What was removed is not given to anybody any more, also not when the file is closed afterwards. */
    write_creds(f, "# ERRAND_PROVIDER_CREDENTIAL\n", 0600);
    g_assert_null(look_up(f, "model-key", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "credential.missing", f->file);
    g_clear_error(&error);
    g_assert_cmpint(chmod(f->file, 0), ==, 0);
    g_assert_true(self != 0 || seteuid(65534) == 0);
    g_assert_null(look_up(f, "model-key", NULL, &error));
    g_assert_true(self != 0 || seteuid(0) == 0);
    g_clear_error(&error);
    g_assert_null(look_up(f, "chat-token", NULL, &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "credential.missing", NULL);
}

static void
test_cancelled(Fixture *f, gconstpointer data)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;

    g_cancellable_cancel(cancellable);
    write_creds(f, "ERRAND_PROVIDER_CREDENTIAL=hunter-three\n", 0600);
    g_assert_null(look_up(f, "model-key", cancellable, &error));
    g_assert_nonnull(error);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/credentials/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("lookup", test_lookup);
    ADD("missing", test_missing);
    ADD("exposed", test_exposed);
    ADD("keep", test_keep);
    ADD("cancelled", test_cancelled);
    return g_test_run();
}
