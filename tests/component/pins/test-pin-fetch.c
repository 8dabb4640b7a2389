/* SPDX-License-Identifier: MIT */
/* Fetching what is pinned from a server that answers well, badly, or not at all. The server speaks plain bytes on a
 * loopback socket, so that it can do what no library would let it. */
#include "core/provision/eb-pin-fetch.h"
#include "eb-test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONTENT "what is pinned\n"
#define MAX_HEAD 8192

static char *dir;
static char *key;
static guint16 port;
static gint n_requests;

static const EbHttpLimits QUICK = {.idle_s = 1, .total_ms = 3000, .tries = 2, .wait_ms = 10};

/* --- the server --- */

static char *
file_of(const char *name)
{
    return g_build_filename(dir, name, NULL);
}

static void
say(GOutputStream *out, const char *text, gssize length)
{
    g_output_stream_write_all(out, text, length < 0 ? strlen(text) : (gsize)length, NULL, NULL, NULL);
}

static void
say_body(GOutputStream *out, const char *body)
{
    g_autofree char *head = g_strdup_printf("HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    say(out, head, -1);
    say(out, body, -1);
}

static void
say_redirect(GOutputStream *out, const char *format, guint16 where)
{
    g_autofree char *target = g_strdup_printf("http://127.0.0.1:%u%s", where, format);
    g_autofree char *text = g_strdup_printf("HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
                                            where != 0 ? target : format);
    say(out, text, -1);
}

static void
say_signature(GOutputStream *out, const char *name)
{
    g_autofree char *path = file_of(name);
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    say_body(out, text);
}

static void
answer(GOutputStream *out, const char *path)
{
    static gint n_flaky;

    if (strcmp(path, "/good") == 0 || strcmp(path, "/other-key") == 0 || strcmp(path, "/unsigned") == 0)
        say_body(out, CONTENT);
    else if (strcmp(path, "/good.minisig") == 0)
        say_signature(out, "a.minisig");
    else if (strcmp(path, "/other-key.minisig") == 0)
        say_signature(out, "b.minisig");
    else if (strcmp(path, "/altered") == 0 || strcmp(path, "/altered.minisig") == 0)
        say_body(out, "What is pinned\n");
    else if (strcmp(path, "/truncated") == 0)
        say(out, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nwhat is", -1);
    else if (strcmp(path, "/flaky") == 0 && g_atomic_int_add(&n_flaky, 1) == 0)
        say(out, "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n", -1);
    else if (strcmp(path, "/flaky") == 0)
        say_body(out, CONTENT);
    else if (strcmp(path, "/told-too-long") == 0)
        say(out, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", -1);
    else if (strcmp(path, "/too-long") == 0) {
        g_autofree char *much = g_strnfill(100000, 'x');
        say(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", -1);
        say(out, much, -1);
    } else if (strcmp(path, "/zipped") == 0)
        say(out, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 15\r\n\r\n" CONTENT, -1);
    else if (strcmp(path, "/to-good") == 0)
        say_redirect(out, "/good", port);
    else if (strcmp(path, "/loop") == 0)
        say_redirect(out, "/loop", 0);
    else if (strcmp(path, "/to-http") == 0)
        say_redirect(out, "http://192.0.2.1/good", 0);
    else if (strcmp(path, "/to-file") == 0)
        say_redirect(out, "file:///etc/passwd", 0);
    else if (strcmp(path, "/to-user") == 0)
        say_redirect(out, "https://user:secret@192.0.2.1/", 0);
    else if (strcmp(path, "/login") == 0)
        say(out, "HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n", -1);
    else if (strcmp(path, "/stall") == 0) {
        say(out, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nwhat", -1);
        g_usleep(2 * G_USEC_PER_SEC);
    } else if (strcmp(path, "/trickle") == 0) {
        say(out, "HTTP/1.1 200 OK\r\n", -1);
        for (guint i = 0; i < 50; i++) { /* a byte of the head at a time: never idle for long */
            g_usleep(100000);
            say(out, "X-A: a\r\n", -1);
        }
    } else
        say(out, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", -1);
}

static gboolean
on_run(GThreadedSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    GInputStream *in = g_io_stream_get_input_stream(G_IO_STREAM(connection));
    g_autoptr(GString) head = g_string_new(NULL);
    char c;

    while (head->len < MAX_HEAD && !g_str_has_suffix(head->str, "\r\n\r\n")) {
        if (g_input_stream_read(in, &c, 1, NULL, NULL) != 1)
            return TRUE;
        g_string_append_c(head, c);
    }
    g_atomic_int_inc(&n_requests);
    g_auto(GStrv) words = g_strsplit(head->str, " ", 3);
    gboolean plain = strcmp(words[0], "GET") == 0 && g_str_has_prefix(words[2], "HTTP/1.1\r\n") &&
                     strstr(head->str, "\r\nHost: 127.0.0.1") != NULL && strstr(head->str, "Authorization") == NULL &&
                     strstr(head->str, "Accept-Encoding: gzip") == NULL;
    if (plain)
        answer(g_io_stream_get_output_stream(G_IO_STREAM(connection)), words[1]);
    else
        say(g_io_stream_get_output_stream(G_IO_STREAM(connection)), "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n",
            -1);
    return TRUE;
}

/* --- what is fetched --- */

typedef struct {
    EbPin pin;
    char *cache_dir;
    GCancellable *cancellable; /* (nullable) */
    GError *error;
    gboolean fetched;
    gint done;
    EbPinFetched count;
} Fetch;

static gpointer
fetch_thread(gpointer data)
{
    Fetch *self = data;
    g_autoptr(EbPinCache) cache = eb_pin_cache_open(self->cache_dir, TRUE, &self->error);
    g_assert_no_error(self->error);
    g_autoptr(EbPinFetch) fetch = eb_pin_fetch_new(cache, dir, &QUICK, self->cancellable);

    self->fetched = eb_pin_fetch_pin(fetch, &self->pin, &self->count, &self->error);
    g_atomic_int_set(&self->done, TRUE);
    g_main_context_wakeup(NULL);
    return NULL;
}

/* Fetches @first, and where @second is given from there when the first has it not. */
static void
fetch_begin(Fetch *self, const char *first, const char *second, gboolean is_signed)
{
    static guint n_caches;
    g_autoptr(GPtrArray) urls = g_ptr_array_new();
    g_autofree char *name = g_strdup_printf("cache-%u", n_caches++);

    if (self->cache_dir == NULL)
        self->cache_dir = file_of(name);
    g_ptr_array_add(urls, g_strdup_printf("http://127.0.0.1:%u%s", port, first));
    if (second != NULL)
        g_ptr_array_add(urls, g_strdup_printf("http://127.0.0.1:%u%s", port, second));
    g_ptr_array_add(urls, NULL);
    self->pin.kind = EB_PIN_ARCHIVE;
    self->pin.name = (char *)"thing";
    self->pin.version = (char *)"1.0";
    self->pin.max_size = 1000;
    self->pin.minisign = is_signed ? key : NULL;
    self->pin.urls = (char **)g_ptr_array_steal(urls, NULL);
    if (self->pin.digest == NULL)
        self->pin.digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, CONTENT, -1);
}

static void
fetch_run(Fetch *self)
{
    GThread *thread = g_thread_new("fetch", fetch_thread, self);
    eb_test_run_until_true(&self->done);
    g_thread_join(thread);
}

static void
fetch_end(Fetch *self)
{
    g_strfreev(self->pin.urls);
    g_free(self->pin.digest);
    g_free(self->cache_dir);
    g_clear_object(&self->cancellable);
    g_clear_error(&self->error);
}

static guint
count_files(const char *path)
{
    g_autoptr(GDir) found = g_dir_open(path, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(found) != NULL)
        n++;
    return n;
}

/* Fetched, in place under the name of its digest, private, and nothing besides. */
static void
check_good(const char *path, const char *second, gboolean is_signed)
{
    Fetch self = {0};
    struct stat info;

    fetch_begin(&self, path, second, is_signed);
    fetch_run(&self);
    g_assert_no_error(self.error);
    g_assert_true(self.fetched);
    g_assert_cmpuint(self.count.fetched, ==, 1);
    g_assert_cmpuint(self.count.bytes, ==, strlen(CONTENT));
    g_autofree char *name = g_strconcat("sha256-", self.pin.digest, NULL);
    g_autofree char *file = g_build_filename(self.cache_dir, name, NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, CONTENT);
    g_assert_cmpint(stat(file, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0400);
    g_assert_cmpint(stat(self.cache_dir, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 0777, ==, 0700);
    g_assert_cmpuint(count_files(self.cache_dir), ==, is_signed ? 2 : 1);
    fetch_end(&self);
}

static void
test_good(void)
{
    check_good("/good", NULL, FALSE);
    check_good("/good", NULL, TRUE);
    check_good("/to-good", NULL, FALSE);
    check_good("/zipped", NULL, FALSE);
}

static void
test_second_try(void)
{
    check_good("/flaky", NULL, FALSE);
    check_good("/gone", "/good", FALSE);
}

/* What may go wrong: each says what, and leaves nothing. */
static void
test_refused(void)
{
    static const struct {
        const char *path;
        gboolean is_signed;
        EbErrorCode code;
        const char *reason;
        const char *says;
    } cases[] = {
        {"/altered", FALSE, EB_ERROR_INTEGRITY, "pins.digest", "found "},
        {"/altered", TRUE, EB_ERROR_INTEGRITY, "pins.digest", "expected "},
        {"/unsigned", TRUE, EB_ERROR_NOT_FOUND, "pins.gone", "unsigned.minisig"},
        {"/other-key", TRUE, EB_ERROR_INTEGRITY, "pins.signature", "pinned is key"},
        {"/truncated", FALSE, EB_ERROR_UNAVAILABLE, NULL, "/truncated"},
        {"/told-too-long", FALSE, EB_ERROR_QUOTA, "pins.size", "1000 bytes"},
        {"/too-long", FALSE, EB_ERROR_QUOTA, "pins.size", "1000 bytes"},
        {"/loop", FALSE, EB_ERROR_DENIED, "pins.redirect", "more than 5"},
        {"/to-http", FALSE, EB_ERROR_DENIED, "pins.redirect", "https:// is needed"},
        {"/to-file", FALSE, EB_ERROR_DENIED, "pins.redirect", "not followed"},
        {"/to-user", FALSE, EB_ERROR_DENIED, "pins.redirect", "user or password"},
        {"/login", FALSE, EB_ERROR_UNAUTHENTICATED, "pins.login", "without a login"},
        {"/nothing", FALSE, EB_ERROR_NOT_FOUND, "pins.gone", "404"},
        {"/stall", FALSE, EB_ERROR_TIMEOUT, "pins.stalled", "nothing came"},
        {"/trickle", FALSE, EB_ERROR_TIMEOUT, "pins.deadline", "within 3 s"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fetch self = {0};
        fetch_begin(&self, cases[i].path, NULL, cases[i].is_signed);
        fetch_run(&self);
        g_assert_false(self.fetched);
        eb_test_assert_error(self.error, cases[i].code, cases[i].reason, cases[i].says);
        g_assert_cmpuint(count_files(self.cache_dir), ==, 0);
        fetch_end(&self);
    }
}

/* Both digests are in the message. */
static void
test_mismatch_names_both(void)
{
    g_autofree char *expected = g_compute_checksum_for_string(G_CHECKSUM_SHA512, CONTENT, -1);
    g_autofree char *found = g_compute_checksum_for_string(G_CHECKSUM_SHA512, "What is pinned\n", -1);
    Fetch self = {.pin.digest = g_strdup(expected)};

    fetch_begin(&self, "/altered", NULL, FALSE);
    fetch_run(&self);
    eb_test_assert_error(self.error, EB_ERROR_INTEGRITY, "pins.digest", expected);
    eb_test_assert_error(self.error, EB_ERROR_INTEGRITY, "pins.digest", found);
    fetch_end(&self);
}

static void
test_unreachable(void)
{
    Fetch self = {0};
    guint16 kept = port;
    gint before = n_requests;

    port = 1;
    fetch_begin(&self, "/good", NULL, FALSE);
    port = kept;
    fetch_run(&self);
    eb_test_assert_error(self.error, EB_ERROR_UNAVAILABLE, "pins.unreachable", "127.0.0.1:1");
    g_assert_cmpint(n_requests, ==, before);
    fetch_end(&self);
}

static gboolean
was_asked(gpointer user_data)
{
    return g_atomic_int_get(&n_requests) > *(gint *)user_data;
}

static void
test_cancelled(void)
{
    Fetch self = {.cancellable = g_cancellable_new()};
    gint before = n_requests;

    fetch_begin(&self, "/stall", "/good", FALSE);
    GThread *thread = g_thread_new("fetch", fetch_thread, &self);
    eb_test_run_until(was_asked, &before);
    g_cancellable_cancel(self.cancellable);
    eb_test_run_until_true(&self.done);
    g_thread_join(thread);
    g_assert_false(self.fetched);
    eb_test_assert_error(self.error, EB_ERROR_CANCELLED, "pins.cancelled", NULL);
    g_assert_cmpint(n_requests, ==, before + 1); /* and the other place was not tried */
    g_assert_cmpuint(count_files(self.cache_dir), ==, 0);
    fetch_end(&self);
}

static EbPinExpected
expected_of(Fetch *self)
{
    return eb_pin_expected(&self->pin);
}

/* A cached file is fetched once, found damaged when it is, and then fetched again. */
static void
test_cache(void)
{
    g_autoptr(GError) error = NULL;
    Fetch self = {0};
    gboolean present = FALSE;

    fetch_begin(&self, "/good", NULL, TRUE);
    fetch_run(&self);
    g_assert_no_error(self.error);
    gint before = n_requests;
    self.done = FALSE;
    self.count = (EbPinFetched){0};
    fetch_run(&self);
    g_assert_cmpint(n_requests, ==, before);
    g_assert_cmpuint(self.count.fetched, ==, 0);

    g_autoptr(EbPinCache) cache = eb_pin_cache_open(self.cache_dir, FALSE, &error);
    g_assert_no_error(error);
    g_autofree char *file = eb_pin_cache_path(cache, self.pin.digest);
    g_assert_cmpint(chmod(file, 0600), ==, 0);
    eb_test_write_file(file, "what is pinned?");
    EbPinExpected expected = expected_of(&self);
    g_assert_false(eb_pin_cache_check(cache, &expected, &present, &error));
    g_assert_true(present);
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.digest", self.pin.digest);
    g_clear_error(&error);

    g_test_expect_message(NULL, G_LOG_LEVEL_MESSAGE, "*the cached file is not used*");
    self.done = FALSE;
    fetch_run(&self);
    g_test_assert_expected_messages();
    g_assert_no_error(self.error);
    g_assert_true(eb_pin_cache_check(cache, &expected, &present, &error) && present);
    fetch_end(&self);
}

/* Not what others may write, not through a link, not a directory somebody else may change. */
static void
test_cache_trust(void)
{
    g_autoptr(GError) error = NULL;
    Fetch self = {0};
    gboolean present = FALSE;

    fetch_begin(&self, "/good", NULL, FALSE);
    fetch_run(&self);
    g_assert_no_error(self.error);
    EbPinExpected expected = expected_of(&self);
    {
        g_autoptr(EbPinCache) cache = eb_pin_cache_open(self.cache_dir, FALSE, &error);
        g_autofree char *file = eb_pin_cache_path(cache, self.pin.digest);
        g_autofree char *aside = file_of("aside");
        g_assert_cmpint(chmod(file, 0622), ==, 0);
        g_assert_false(eb_pin_cache_check(cache, &expected, &present, &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "pins.cache", "nobody else may write");
        g_clear_error(&error);
        g_assert_cmpint(chmod(file, 0400), ==, 0);
        g_assert_cmpint(rename(file, aside), ==, 0);
        g_assert_cmpint(symlink(aside, file), ==, 0);
        g_assert_false(eb_pin_cache_check(cache, &expected, &present, &error));
        eb_test_assert_error(error, EB_ERROR_FAILED, "pins.cache", NULL);
        g_clear_error(&error);
    }
    g_assert_cmpint(chmod(self.cache_dir, 0777), ==, 0);
    g_assert_null(eb_pin_cache_open(self.cache_dir, FALSE, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "pins.cache", "777");
    g_clear_error(&error);
    g_autofree char *link = file_of("linked");
    g_assert_cmpint(symlink(self.cache_dir, link), ==, 0);
    g_assert_null(eb_pin_cache_open(link, FALSE, &error));
    g_assert_nonnull(error);
    fetch_end(&self);
}

static void
test_sweep(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GHashTable) wanted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Fetch self = {0};
    EbPinCacheCount count;

    fetch_begin(&self, "/good", NULL, TRUE);
    fetch_run(&self);
    g_assert_no_error(self.error);
    g_autoptr(EbPinCache) cache = eb_pin_cache_open(self.cache_dir, FALSE, &error);
    g_autofree char *other = g_build_filename(self.cache_dir, "somebody's", NULL);
    eb_test_write_file(other, "x");
    g_hash_table_add(wanted, g_strconcat("sha256-", self.pin.digest, NULL));
    g_assert_true(eb_pin_cache_sweep(cache, wanted, FALSE, &count, &error));
    g_assert_cmpuint(count.kept, ==, 2);
    g_assert_cmpuint(count.removed, ==, 0);
    g_hash_table_remove_all(wanted);
    g_assert_true(eb_pin_cache_sweep(cache, wanted, TRUE, &count, &error));
    g_assert_cmpuint(count.removed, ==, 2);
    g_assert_cmpuint(count_files(self.cache_dir), ==, 3);
    g_assert_true(eb_pin_cache_sweep(cache, wanted, FALSE, &count, &error));
    g_assert_cmpuint(count.removed, ==, 2);
    g_assert_cmpuint(count_files(self.cache_dir), ==, 1);
    fetch_end(&self);
}

/* A file of this machine: copied, checked, and not through a link. */
static void
test_file(void)
{
    g_autofree char *source = file_of("source");
    g_autofree char *link = file_of("source-link");
    Fetch self = {.pin = {.kind = EB_PIN_FILE, .name = (char *)"thing", .path = source, .max_size = 1000}};

    eb_test_write_file(source, CONTENT);
    g_assert_cmpint(symlink(source, link), ==, 0);
    self.cache_dir = file_of("file-cache");
    self.pin.digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, CONTENT, -1);
    self.pin.path = link;
    fetch_run(&self);
    eb_test_assert_error(self.error, EB_ERROR_FAILED, "pins.file", "source-link");
    g_clear_error(&self.error);
    self.pin.path = source;
    self.pin.max_size = 3;
    self.done = FALSE;
    fetch_run(&self);
    eb_test_assert_error(self.error, EB_ERROR_QUOTA, "pins.size", "3 bytes");
    g_clear_error(&self.error);
    g_assert_cmpuint(count_files(self.cache_dir), ==, 0);
    self.pin.max_size = 1000;
    self.done = FALSE;
    fetch_run(&self);
    g_assert_no_error(self.error);
    g_assert_cmpuint(count_files(self.cache_dir), ==, 1);
    fetch_end(&self);
}

static void
run_minisign(const char *const *argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *out = NULL;
    int status = 0;

    g_spawn_sync(dir, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                 &status, &error);
    g_assert_no_error(error);
    g_assert_true(g_spawn_check_wait_status(status, NULL));
}

static void
make_signatures(void)
{
    static const char *const calls[][11] = {
        {"minisign", "-G", "-W", "-p", "a.pub", "-s", "a.key"},
        {"minisign", "-G", "-W", "-p", "b.pub", "-s", "b.key"},
        {"minisign", "-S", "-s", "a.key", "-m", "content", "-x", "a.minisig"},
        {"minisign", "-S", "-s", "b.key", "-m", "content", "-x", "b.minisig"},
    };
    g_autofree char *content = file_of("content");
    g_autofree char *public_key = file_of("a.pub");
    g_autofree char *text = NULL;

    eb_test_write_file(content, CONTENT);
    for (gsize i = 0; i < G_N_ELEMENTS(calls); i++)
        run_minisign(calls[i]);
    g_assert_true(g_file_get_contents(public_key, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    key = g_strdup(lines[1]);
}

static GSocketService *
start_server(void)
{
    GSocketService *service = g_threaded_socket_service_new(8);
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) effective = NULL;
    g_autoptr(GError) error = NULL;

    g_socket_listener_add_address(G_SOCKET_LISTENER(service), address, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                                  NULL, &effective, &error);
    g_assert_no_error(error);
    port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(effective));
    g_signal_connect(service, "run", G_CALLBACK(on_run), NULL);
    return service;
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_autofree char *program = g_find_program_in_path("minisign");
    if (program == NULL) {
        g_test_message("minisign is not installed");
        return 77;
    }
    dir = eb_test_temp_dir("pins");
    make_signatures();
    g_autoptr(GSocketService) server = start_server();
    g_test_add_func("/pin-fetch/good", test_good);
    g_test_add_func("/pin-fetch/second-try", test_second_try);
    g_test_add_func("/pin-fetch/refused", test_refused);
    g_test_add_func("/pin-fetch/mismatch-names-both", test_mismatch_names_both);
    g_test_add_func("/pin-fetch/unreachable", test_unreachable);
    g_test_add_func("/pin-fetch/cancelled", test_cancelled);
    g_test_add_func("/pin-fetch/cache", test_cache);
    g_test_add_func("/pin-fetch/cache-trust", test_cache_trust);
    g_test_add_func("/pin-fetch/sweep", test_sweep);
    g_test_add_func("/pin-fetch/file", test_file);
    int code = g_test_run();
    g_socket_service_stop(server);
    g_free(key);
    g_free(dir);
    return code;
}
