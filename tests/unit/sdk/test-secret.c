/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALUE "correct horse battery staple"

static EbSecret *
make(const char *label, const char *text)
{
    g_autofree char *copy = g_strdup(text);
    g_autoptr(GError) error = NULL;
    EbSecret *secret = eb_secret_new_take(label, copy, strlen(text), &error);

    g_assert_no_error(error);
    return secret;
}

static void
test_take_wipes(void)
{
    char buffer[] = VALUE;
    static const char zeros[sizeof(buffer)] = {0};
    g_autoptr(EbSecret) secret = eb_secret_new_take("key", buffer, strlen(VALUE), NULL);

    g_assert_nonnull(secret);
    g_assert_cmpmem(buffer, sizeof(buffer), zeros, sizeof(zeros));
    g_assert_cmpstr(eb_secret_get_label(secret), ==, "key");
    g_assert_cmpuint(eb_secret_get_length(secret), ==, strlen(VALUE));
}

static void
test_refuses(void)
{
    g_autofree char *large = g_malloc0(EB_SECRET_MAX_BYTES + 1);
    g_autoptr(GError) error = NULL;

    memset(large, 'x', EB_SECRET_MAX_BYTES + 1);
    g_assert_null(eb_secret_new_take("key", large, EB_SECRET_MAX_BYTES + 1, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "secret.too-long", "key");
    g_assert_cmpint(large[0], ==, 0); /* wiped although refused */
    g_assert_cmpint(large[EB_SECRET_MAX_BYTES], ==, 0);
    g_clear_error(&error);
    g_assert_null(eb_secret_new_take("key", large, 0, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "secret.empty", "key");
    memset(large, 'y', EB_SECRET_MAX_BYTES);
    {
        g_autoptr(EbSecret) longest = eb_secret_new_take("key", large, EB_SECRET_MAX_BYTES, NULL);

        g_assert_cmpuint(eb_secret_get_length(longest), ==, EB_SECRET_MAX_BYTES);
    }
}

static void
test_views_nest(void)
{
    g_autoptr(EbSecret) secret = make("key", VALUE);
    EbSecretView outer = eb_secret_view(secret);

    {
        g_auto(EbSecretView) inner = eb_secret_view(secret);

        g_assert_cmpstr(inner.bytes, ==, VALUE);
        g_assert_true(inner.bytes == outer.bytes);
    }
    /* The inner view has ended, the outer one still reads. */
    g_assert_cmpmem(outer.bytes, outer.length, VALUE, strlen(VALUE));
    eb_secret_view_clear(&outer);
    g_assert_null(outer.bytes);
    eb_secret_view_clear(&outer); /* twice is harmless */
}

static void
test_view_outlives_owner(void)
{
    EbSecret *secret = make("key", VALUE);
    g_auto(EbSecretView) view = eb_secret_view(secret);

    eb_secret_unref(secret);
    g_assert_cmpstr(view.bytes, ==, VALUE);
}

typedef void (*ChildFunc)(volatile const char *bytes, EbSecret *secret);

/* Runs @func in a child; the signal that ended it, 0 for none. */
static int
signal_of_child(ChildFunc func)
{
    g_autoptr(EbSecret) secret = make("key", VALUE);
    volatile const char *bytes;
    int status = 0;
    pid_t pid;

    {
        g_auto(EbSecretView) view = eb_secret_view(secret);

        bytes = view.bytes;
    }
    pid = fork();
    g_assert_cmpint(pid, >=, 0);
    if (pid == 0) {
        const struct rlimit no_core = {0, 0};

        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would report and exit instead */
        signal(SIGBUS, SIG_DFL);
        func(bytes, secret);
        _exit(0);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
read_without_view(volatile const char *bytes, EbSecret *secret)
{
    (void)bytes[0];
}

static void
write_in_view(volatile const char *bytes, EbSecret *secret)
{
    g_auto(EbSecretView) view = eb_secret_view(secret);

    *(volatile char *)bytes = 'x';
}

static void
read_in_view(volatile const char *bytes, EbSecret *secret)
{
    g_auto(EbSecretView) view = eb_secret_view(secret);

    (void)bytes[0];
}

static void
read_past_end(volatile const char *bytes, EbSecret *secret)
{
    g_auto(EbSecretView) view = eb_secret_view(secret);

    (void)bytes[view.length + 1]; /* behind the NUL comes the guard page */
}

static void
test_memory_is_protected(void)
{
    g_assert_cmpint(signal_of_child(read_without_view), ==, SIGSEGV);
    g_assert_cmpint(signal_of_child(write_in_view), ==, SIGSEGV);
    g_assert_cmpint(signal_of_child(read_past_end), ==, SIGSEGV);
    g_assert_cmpint(signal_of_child(read_in_view), ==, 0);
}

static void
test_equal(void)
{
    g_autoptr(EbSecret) a = make("a", VALUE);
    g_autoptr(EbSecret) b = make("b", VALUE);
    g_autoptr(EbSecret) c = make("c", "correct horse battery stapl!");

    g_assert_true(eb_secret_equal(a, b));
    g_assert_true(eb_secret_equal(a, a));
    g_assert_false(eb_secret_equal(a, c));
    g_assert_true(eb_secret_equal_bytes(a, VALUE, strlen(VALUE)));
    g_assert_false(eb_secret_equal_bytes(a, VALUE, strlen(VALUE) - 1));
    g_assert_false(eb_secret_equal_bytes(a, NULL, 0));
}

static EbSecret *
from_bytes(const char *bytes, gsize length, GError **error)
{
    g_autofree char *dir = eb_test_temp_dir("secret");
    g_autofree char *path = g_build_filename(dir, "s", NULL);
    EbSecret *secret;
    int fd;

    g_assert_true(g_file_set_contents(path, bytes, (gssize)length, NULL));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    secret = eb_secret_new_from_fd("file", fd, error);
    close(fd);
    return secret;
}

static void
test_from_fd(void)
{
    static const struct {
        const char *content;
        const char *expected;
    } table[] = {
        {"abc", "abc"},       {"abc\n", "abc"},   {"abc\r\n", "abc"},
        {"abc\n\n", "abc\n"}, {"abc\r", "abc\r"}, {"a\nb\r\nc\n", "a\nb\r\nc"},
        {" abc ", " abc "},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbSecret) secret = from_bytes(table[i].content, strlen(table[i].content), &error);

        g_assert_no_error(error);
        g_assert_true(eb_secret_equal_bytes(secret, table[i].expected, strlen(table[i].expected)));
    }
}

static void
test_from_fd_refuses(void)
{
    g_autofree char *large = g_strnfill(EB_SECRET_MAX_BYTES + 2, 'x');
    g_autoptr(GError) error = NULL;

    g_assert_null(from_bytes("", 0, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "secret.empty", NULL);
    g_clear_error(&error);
    g_assert_null(from_bytes("\n", 1, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "secret.empty", NULL);
    g_clear_error(&error);
    g_assert_null(from_bytes(large, EB_SECRET_MAX_BYTES + 2, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "secret.too-long", NULL);
    g_clear_error(&error);
    large[EB_SECRET_MAX_BYTES] = '\n';
    {
        g_autoptr(EbSecret) longest = from_bytes(large, EB_SECRET_MAX_BYTES + 1, &error);

        g_assert_no_error(error);
        g_assert_cmpuint(eb_secret_get_length(longest), ==, EB_SECRET_MAX_BYTES);
    }
    g_assert_null(eb_secret_new_from_fd("file", -1, &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "secret.read", "file");
}

static void
test_random(void)
{
    g_autoptr(EbSecret) a = eb_secret_new_random("nonce", 32);
    g_autoptr(EbSecret) b = eb_secret_new_random("nonce", 32);
    g_auto(EbSecretView) view = eb_secret_view(a);

    g_assert_cmpuint(view.length, ==, 43);
    g_assert_cmpuint(strspn(view.bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"), ==, 43);
    g_assert_false(eb_secret_equal(a, b));
}

#define THREADS 8
#define ROUNDS 400

static gpointer
hammer(gpointer data)
{
    EbSecret *secret = data;

    for (int i = 0; i < ROUNDS; i++) {
        g_autoptr(EbSecret) own = eb_secret_ref(secret);
        g_auto(EbSecretView) view = eb_secret_view(own);

        if (strcmp(view.bytes, VALUE) != 0)
            return GINT_TO_POINTER(1);
    }
    return NULL;
}

static void
test_threads(void)
{
    g_autoptr(EbSecret) secret = make("key", VALUE);
    GThread *threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("hammer", hammer, secret);
    for (int i = 0; i < THREADS; i++)
        g_assert_null(g_thread_join(threads[i]));
}

/* GLib's ways of showing a value must not show this one. */
static void
test_not_in_values(void)
{
    g_autoptr(EbSecret) secret = make("model-key", VALUE);
    g_auto(GValue) value = G_VALUE_INIT;
    g_auto(GValue) text = G_VALUE_INIT;
    g_autofree char *shown = NULL;

    g_value_init(&value, EB_TYPE_SECRET);
    g_value_set_boxed(&value, secret);
    shown = g_strdup_value_contents(&value);
    g_assert_null(strstr(shown, "horse"));
    g_value_init(&text, G_TYPE_STRING);
    g_assert_false(g_value_transform(&value, &text));
}

static void
test_lock_is_known(void)
{
    struct rlimit limit;

    g_assert_cmpint(getrlimit(RLIMIT_MEMLOCK, &limit), ==, 0);
    if (geteuid() == 0 || limit.rlim_cur >= 64 * 1024)
        g_assert_true(eb_secret_memory_is_locked());
    else
        g_test_skip("this process may lock too little memory to tell");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/secret/take-wipes", test_take_wipes);
    g_test_add_func("/sdk/secret/refuses", test_refuses);
    g_test_add_func("/sdk/secret/views-nest", test_views_nest);
    g_test_add_func("/sdk/secret/view-outlives-owner", test_view_outlives_owner);
    g_test_add_func("/sdk/secret/memory-is-protected", test_memory_is_protected);
    g_test_add_func("/sdk/secret/equal", test_equal);
    g_test_add_func("/sdk/secret/from-fd", test_from_fd);
    g_test_add_func("/sdk/secret/from-fd-refuses", test_from_fd_refuses);
    g_test_add_func("/sdk/secret/random", test_random);
    g_test_add_func("/sdk/secret/threads", test_threads);
    g_test_add_func("/sdk/secret/not-in-values", test_not_in_values);
    g_test_add_func("/sdk/secret/lock-is-known", test_lock_is_known);
    return g_test_run();
}
