/* SPDX-License-Identifier: MIT */
/* Tokens that are exchanged for the next one: exchanged once, whoever asks, and never lost once they are stored. */
#include "core/base/eb-paths.h"
#include "core/plugin/eb-credentials.h"

#include "tests/lib/eb-test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SESSIONS 5
#define HOUR 3600

typedef struct {
    char *dir;
    EbPluginRegistry *registry;
    EbCredentials *credentials;
    EbCredentialStore *sealed;
    /* the provider: it takes the newest token and no other */
    guint generation, renewals, refused;
    gint64 lifetime;
    gboolean fail, hang;
    GTask *hung;
    guint delay_ms;
} Fixture;

static EbConfigSection *
section(const char *name, gpointer user_data)
{
    Fixture *f = user_data;
    g_autofree char *key = g_build_filename(f->dir, "seal.key", NULL);
    EbConfigSection *self = eb_config_section_new("plugin.credentials");

    eb_config_section_set(self, "sealed_key_file", g_variant_new_string(key), "test", 1);
    return self;
}

static void
open_stores(Fixture *f)
{
    static const char *const order[] = {"systemd", "sealed", "env-file", NULL};
    static const char *const only[] = {"credential-store", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = eb_paths_new(&error);

    f->registry = eb_plugin_registry_new("errand", f->dir, TRUE);
    eb_plugin_registry_load_dir(f->registry, eb_paths_get_plugin_dir(paths), NULL, only, section, f);
    f->credentials = eb_credentials_new(f->registry, order);
    f->sealed =
        EB_CREDENTIAL_STORE(eb_plugin_registry_find(f->registry, EB_EXTENSION_CREDENTIAL_STORE, "sealed", NULL));
    g_assert_nonnull(f->sealed);
}

static void
close_stores(Fixture *f)
{
    g_clear_object(&f->credentials);
    g_clear_object(&f->registry);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = eb_test_temp_dir("renew");
    f->lifetime = HOUR;
    g_autofree char *key = g_build_filename(f->dir, "seal.key", NULL);
    g_assert_true(g_file_set_contents_full(key, "0123456789abcdef0123456789abcdef", 32, G_FILE_SET_CONTENTS_CONSISTENT,
                                           0600, NULL));
    open_stores(f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    close_stores(f);
    g_free(f->dir);
}

static EbSecret *
token(guint generation)
{
    g_autofree char *text = g_strdup_printf("refresh-token-%u", generation);
    return eb_secret_new_take("oauth", text, strlen(text), NULL);
}

static EbCredential *
next_token(Fixture *f)
{
    g_autoptr(EbSecret) secret = token(++f->generation);
    return eb_credential_new(secret, g_get_real_time() / G_USEC_PER_SEC + f->lifetime, "provider");
}

static gboolean
answer(gpointer user_data)
{
    GTask *task = user_data;
    Fixture *f = g_object_get_data(G_OBJECT(task), "fixture");

    g_task_return_pointer(task, next_token(f), (GDestroyNotify)eb_credential_free);
    return G_SOURCE_REMOVE;
}

static void
renew(const char *name, EbSecret *old, GTask *task, gpointer user_data)
{
    g_autoptr(GTask) owned = task;
    Fixture *f = user_data;
    g_autoptr(EbSecret) newest = token(f->generation);

    f->renewals++;
    if (f->hang) {
        f->hung = g_steal_pointer(&owned);
        return;
    }
    if (f->fail || (old != NULL && !eb_secret_equal(old, newest))) {
        f->refused++;
        g_task_return_error(task, eb_error_new(EB_ERROR_UNAUTHENTICATED, "provider.token-used", "the token was used"));
        return;
    }
    g_object_set_data(G_OBJECT(task), "fixture", f);
    g_timeout_add_full(G_PRIORITY_DEFAULT, f->delay_ms, answer, g_steal_pointer(&owned), g_object_unref);
}

static void
put(Fixture *f, guint generation, gint64 seconds)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSecret) secret = token(generation);
    g_autoptr(EbCredential) credential = eb_credential_new(secret, g_get_real_time() / G_USEC_PER_SEC + seconds, NULL);

    f->generation = generation;
    eb_credential_store_put_credential_async(f->sealed, "oauth", credential, NULL, eb_test_result_ready, &done);
    eb_credential_store_put_credential_finish(f->sealed, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
}

static EbSecret *
look_up(Fixture *f, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credentials_lookup_async(f->credentials, "oauth", NULL, eb_test_result_ready, &done);
    return eb_credentials_lookup_finish(f->credentials, eb_test_result_wait(&done), error);
}

static void
assert_token(EbSecret *secret, guint generation)
{
    g_autoptr(EbSecret) wanted = token(generation);
    g_assert_nonnull(secret);
    g_assert_true(eb_secret_equal(secret, wanted));
}

/* Over an expiry, several sessions at once: one exchange, and none of them fails. */
static void
test_once(Fixture *f, gconstpointer data)
{
    EbTestResult done[SESSIONS] = {0};

    put(f, 1, -10);
    f->delay_ms = 50;
    eb_credentials_set_renewer(f->credentials, "oauth", renew, f, NULL);
    for (guint i = 0; i < SESSIONS; i++)
        eb_credentials_lookup_async(f->credentials, "oauth", NULL, eb_test_result_ready, &done[i]);
    for (guint i = 0; i < SESSIONS; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbSecret) secret =
            eb_credentials_lookup_finish(f->credentials, eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        assert_token(secret, 2);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(f->renewals, ==, 1);
    g_assert_cmpuint(f->refused, ==, 0);
    /* What is not about to end is left alone, and many ends later there was one exchange for each. */
    g_autoptr(EbSecret) again = look_up(f, NULL);
    assert_token(again, 2);
    g_assert_cmpuint(f->renewals, ==, 1);
    f->lifetime = 1; /* due at once */
    put(f, 2, 1);
    for (guint i = 0; i < 4; i++) {
        g_autoptr(EbSecret) secret = look_up(f, NULL);
        assert_token(secret, 3 + i);
    }
    g_assert_cmpuint(f->refused, ==, 0);
}

static void
kill_self(void)
{
    raise(SIGKILL);
}

/* What test_crash() starts. */
static void
test_crashing(void)
{
    Fixture f = {.dir = g_strdup(g_getenv("EB_TEST_RENEWAL_DIR")), .generation = 1, .lifetime = HOUR};

    if (f.dir == NULL)
        return;
    open_stores(&f);
    eb_credentials_set_renewer(f.credentials, "oauth", renew, &f, NULL);
    g_signal_connect(f.sealed, "changed", G_CALLBACK(kill_self), NULL);
    look_up(&f, NULL);
    _exit(0); /* that it lived is what the parent takes for a failure */
}

/* Killed in the moment in which the new token is stored, before anybody got it: the next run has it. */
static void
test_crash(Fixture *f, gconstpointer data)
{
    put(f, 1, -10);
    close_stores(f);
    g_setenv("EB_TEST_RENEWAL_DIR", f->dir, TRUE);
    g_test_trap_subprocess("/renewal/crash/subprocess", 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
    open_stores(f);
    eb_credentials_set_renewer(f->credentials, "oauth", renew, f, NULL);
    f->generation = 2; /* the provider takes no older one any more */
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSecret) secret = look_up(f, &error);
    g_assert_no_error(error);
    assert_token(secret, 2);
    g_assert_cmpuint(f->renewals, ==, 0);
}

/* No store takes it: the old one is used up, so it is kept in memory and given to everybody. */
static void
test_not_stored(Fixture *f, gconstpointer data)
{
    g_autofree char *key = g_build_filename(f->dir, "seal.key", NULL);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(unlink(key), ==, 0);
    eb_credentials_set_renewer(f->credentials, "oauth", renew, f, NULL);
    g_autoptr(EbSecret) first = look_up(f, &error); /* made from nothing */
    g_assert_no_error(error);
    assert_token(first, 1);
    g_autoptr(EbSecret) second = look_up(f, &error);
    assert_token(second, 1);
    g_assert_cmpuint(f->renewals, ==, 1);
}

static void
test_fails(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->fail = TRUE;
    put(f, 1, EB_RENEWAL_EARLY_S - 10); /* due, and not over: it still works */
    eb_credentials_set_renewer(f->credentials, "oauth", renew, f, NULL);
    g_autoptr(EbSecret) old = look_up(f, &error);
    g_assert_no_error(error);
    assert_token(old, 1);
    g_autoptr(EbSecret) paused = look_up(f, &error);
    assert_token(paused, 1);
    g_assert_cmpuint(f->renewals, ==, 1); /* not asked again at once */
    put(f, 1, -1);
    g_assert_null(look_up(f, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "credential.renewal-failed", "oauth");
}

/* Without anybody who renews it, what is over is said to be, with the time and what to do. */
static void
test_over(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    put(f, 1, 5);
    g_autoptr(EbSecret) soon = look_up(f, &error);
    assert_token(soon, 1);
    put(f, 1, -1);
    g_assert_null(look_up(f, &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "credential.expired", "errand-box creds set oauth");
    g_assert_nonnull(strstr(error->message, "sealed "));
}

static void
test_cancelled_and_bounds(Fixture *f, gconstpointer data)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    g_auto(EbTestResult) cancelled = {0};
    EbTestResult *done = g_new0(EbTestResult, EB_RENEWAL_MAX_WAITING + 1);
    guint refused = EB_RENEWAL_MAX_WAITING + 1;

    put(f, 1, -1);
    f->hang = TRUE;
    eb_credentials_set_renewer(f->credentials, "oauth", renew, f, NULL);
    eb_credentials_lookup_async(f->credentials, "oauth", cancellable, eb_test_result_ready, &cancelled);
    eb_test_run_until_true((const gboolean *)&f->renewals);
    g_cancellable_cancel(cancellable);
    g_assert_null(eb_credentials_lookup_finish(f->credentials, eb_test_result_wait(&cancelled), &error));
    g_assert_true(g_error_matches(error, EB_ERROR, EB_ERROR_CANCELLED) ||
                  g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
    g_clear_error(&error);
    /* They read their store in threads first, so any of them may be the one too many. */
    for (guint i = 0; i <= EB_RENEWAL_MAX_WAITING; i++)
        eb_credentials_lookup_async(f->credentials, "oauth", NULL, eb_test_result_ready, &done[i]);
    while (refused > EB_RENEWAL_MAX_WAITING) {
        g_main_context_iteration(NULL, TRUE);
        for (guint i = 0; i <= EB_RENEWAL_MAX_WAITING; i++)
            if (done[i].calls > 0)
                refused = i;
    }
    g_assert_null(eb_credentials_lookup_finish(f->credentials, done[refused].result, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "credential.renewal-queue", NULL);
    eb_test_result_clear(&done[refused]);
    g_task_return_pointer(f->hung, next_token(f), (GDestroyNotify)eb_credential_free);
    g_clear_object(&f->hung);
    for (guint i = 0; i <= EB_RENEWAL_MAX_WAITING; i++) {
        if (i == refused)
            continue;
        g_autoptr(EbSecret) secret = eb_credentials_lookup_finish(f->credentials, eb_test_result_wait(&done[i]), NULL);
        assert_token(secret, 2);
        eb_test_result_clear(&done[i]);
    }
    g_free(done);
    for (guint i = 1; i < EB_RENEWAL_MAX; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        g_assert_true(eb_credentials_set_renewer(f->credentials, name, renew, f, NULL));
    }
    g_assert_false(eb_credentials_set_renewer(f->credentials, "one-more", renew, f, NULL));
}

static void
test_rules(Fixture *f, gconstpointer data)
{
    g_assert_false(eb_renewal_is_due(0, G_MAXINT64 - HOUR));
    g_assert_false(eb_renewal_is_over(0, G_MAXINT64 - HOUR));
    g_assert_true(eb_renewal_is_due(1000 + EB_RENEWAL_EARLY_S, 1000));
    g_assert_false(eb_renewal_is_due(1001 + EB_RENEWAL_EARLY_S, 1000));
    g_assert_false(eb_renewal_is_over(1001, 1000));
    g_assert_true(eb_renewal_is_over(1000, 1000));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/renewal/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("once", test_once);
    ADD("crash", test_crash);
    g_test_add_func("/renewal/crash/subprocess", test_crashing);
    ADD("not-stored", test_not_stored);
    ADD("fails", test_fails);
    ADD("over", test_over);
    ADD("cancelled-and-bounds", test_cancelled_and_bounds);
    ADD("rules", test_rules);
    return g_test_run();
}
