/* SPDX-License-Identifier: MIT */
/* Files that people attach: from the service's own hosts, at addresses that were judged, and not too much of them. */
#include <string.h>

#include "discord-address.h"
#include "discord-exchange.h"
#include "rest-fixture.h"

#define MAX_BYTES 100

static GBytes *
download(RestFixture *fixture, const char *url, GError **error)
{
    g_auto(EbTestResult) done = {0};
    discord_rest_download_async(fixture->rest, url, MAX_BYTES, NULL, eb_test_result_ready, &done);
    return discord_rest_download_finish(fixture->rest, eb_test_result_wait(&done), error);
}

static char *
file_url(RestFixture *fixture)
{
    return g_strdup_printf("%s/attachments/1/2/a.txt?ex=1&hm=2", fixture->server->url);
}

static void
test_file(RestFixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *url = file_url(fixture);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "hello"});
    g_autoptr(GBytes) bytes = download(fixture, url, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes), "hello", 5);
    const ScriptedRequest *request = scripted_server_get(fixture->server, 0);
    g_assert_cmpstr(request->line, ==, "GET /attachments/1/2/a.txt?ex=1&hm=2");
    g_assert_null(request->authorization);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = ""});
    g_autoptr(GBytes) none = download(fixture, url, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(g_bytes_get_size(none), ==, 0);
}

static void
test_size(RestFixture *fixture, gconstpointer data)
{
    g_autofree char *url = file_url(fixture);
    g_autofree char *fits = g_strnfill(MAX_BYTES, 'x');
    g_autofree char *over = g_strnfill(MAX_BYTES + 1, 'x');
    for (guint chunked = 0; chunked < 2; chunked++) {
        g_autoptr(GError) error = NULL;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = fits, .chunked = chunked});
        g_autoptr(GBytes) bytes = download(fixture, url, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(g_bytes_get_size(bytes), ==, MAX_BYTES);
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = over, .chunked = chunked});
        g_assert_null(download(fixture, url, &error));
        eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.file-size", "larger than 100 bytes");
    }
}

static void
test_statuses(RestFixture *fixture, gconstpointer data)
{
    static const struct {
        guint status;
        EbErrorCode code;
        const char *reason;
    } cases[] = {
        {301, EB_ERROR_DENIED, "discord.redirect"},         {302, EB_ERROR_DENIED, "discord.redirect"},
        {307, EB_ERROR_DENIED, "discord.redirect"},         {404, EB_ERROR_NOT_FOUND, "discord.file-gone"},
        {403, EB_ERROR_NOT_FOUND, "discord.file-gone"},     {206, EB_ERROR_UNAVAILABLE, "discord.unreachable"},
        {429, EB_ERROR_UNAVAILABLE, "discord.unreachable"}, {503, EB_ERROR_UNAVAILABLE, "discord.unreachable"},
    };
    g_autoptr(ScriptedServer) other = scripted_server_new();
    g_autofree char *headers = g_strdup_printf("Location: %s/elsewhere", other->url);
    g_autofree char *url = file_url(fixture);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = cases[i].status, .headers = headers});
        g_assert_null(download(fixture, url, &error));
        eb_test_assert_error(error, cases[i].code, cases[i].reason, NULL);
    }
    g_assert_cmpuint(other->requests->len, ==, 0);
    g_autoptr(GError) error = NULL;
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "abc", .cut = TRUE});
    g_assert_null(download(fixture, url, &error));
    g_assert_nonnull(error);
}

static void
test_urls(RestFixture *fixture, gconstpointer data)
{
    static const char *const bad[] = {"https://cdn.discordapp.com/x", "http://localhost:1/x", "file:///etc/passwd",
                                      "http://10.0.0.1:80/x"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(download(fixture, bad[i], &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "discord.attachment-url", NULL);
    }
}

static void
test_ends(RestFixture *fixture, gconstpointer data)
{
    g_autofree char *url = file_url(fixture);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    EbTestResult results[DISCORD_REST_MAX_DOWNLOADS] = {0};
    for (guint i = 0; i < DISCORD_REST_MAX_DOWNLOADS; i++) {
        scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
        discord_rest_download_async(fixture->rest, url, MAX_BYTES, i == 0 ? cancellable : NULL, eb_test_result_ready,
                                    &results[i]);
    }
    scripted_server_wait(fixture->server, DISCORD_REST_MAX_DOWNLOADS);
    g_assert_null(download(fixture, url, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.queue-full", NULL);
    g_clear_error(&error);
    g_cancellable_cancel(cancellable);
    g_assert_null(discord_rest_download_finish(fixture->rest, eb_test_result_wait(&results[0]), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, "discord.cancelled", NULL);
    g_assert_null(results[1].result);
    discord_rest_close(fixture->rest);
    for (guint i = 1; i < DISCORD_REST_MAX_DOWNLOADS; i++) {
        g_clear_error(&error);
        g_assert_null(discord_rest_download_finish(fixture->rest, eb_test_result_wait(&results[i]), &error));
        eb_test_assert_error(error, EB_ERROR_CANCELLED, "discord.cancelled", NULL);
    }
    for (guint i = 0; i < DISCORD_REST_MAX_DOWNLOADS; i++)
        eb_test_result_clear(&results[i]);
    g_clear_error(&error);
    g_assert_null(download(fixture, url, &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, "discord.closed", NULL);
}

/* An exchange that gets no whole answer ends by itself. */
static void
test_timeout(RestFixture *fixture, gconstpointer data)
{
    g_autoptr(SoupSession) session = discord_session_new(NULL);
    g_autofree char *url = file_url(fixture);
    g_autoptr(SoupMessage) message = soup_message_new("GET", url);
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    discord_exchange_async(session, message, MAX_BYTES, 100, NULL, eb_test_result_ready, &done);
    g_assert_null(discord_exchange_finish(session, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "discord.timeout", "100 ms");
}

/* --- names that resolve to where nothing may be fetched from --- */

#define TEST_TYPE_RESOLVER (test_resolver_get_type())
G_DECLARE_FINAL_TYPE(TestResolver, test_resolver, TEST, RESOLVER, GResolver)

struct _TestResolver {
    GResolver parent_instance;
    const char *const *answers; /* what the name is, lookup after lookup; the last one stays */
    guint lookups;
};

G_DEFINE_FINAL_TYPE(TestResolver, test_resolver, G_TYPE_RESOLVER)

static void
lookup_async(GResolver *resolver, const char *hostname, GResolverNameLookupFlags flags, GCancellable *cancellable,
             GAsyncReadyCallback callback, gpointer user_data)
{
    TestResolver *self = TEST_RESOLVER(resolver);
    g_autoptr(GTask) task = g_task_new(self, cancellable, callback, user_data);
    if (flags == G_RESOLVER_NAME_LOOKUP_FLAGS_IPV6_ONLY) {
        g_task_return_new_error(task, G_RESOLVER_ERROR, G_RESOLVER_ERROR_NOT_FOUND, "none");
        return;
    }
    const char *text = self->answers[0];
    self->lookups++;
    if (self->answers[1] != NULL)
        self->answers++;
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    GList *list = NULL;
    for (guint i = 0; words[i] != NULL; i++)
        list = g_list_append(list, g_inet_address_new_from_string(words[i]));
    g_task_return_pointer(task, list, (GDestroyNotify)g_resolver_free_addresses);
}

static GList *
lookup_finish(GResolver *resolver, GAsyncResult *result, GError **error)
{
    return g_task_propagate_pointer(G_TASK(result), error);
}

static void
test_resolver_class_init(TestResolverClass *klass)
{
    G_RESOLVER_CLASS(klass)->lookup_by_name_with_flags_async = lookup_async;
    G_RESOLVER_CLASS(klass)->lookup_by_name_with_flags_finish = lookup_finish;
}

static void
test_resolver_init(TestResolver *self)
{
}

static TestResolver *
use_resolver(const char *const *answers)
{
    TestResolver *resolver = g_object_new(TEST_TYPE_RESOLVER, NULL);
    resolver->answers = answers;
    g_resolver_set_default(G_RESOLVER(resolver));
    return resolver;
}

static DiscordSite *
real_site(void)
{
    char text[] = "MTIz.real-looking.token";
    g_autoptr(EbSecret) token = eb_secret_new_take("chat-token", text, strlen(text), NULL);
    return discord_site_new(NULL, token, NULL);
}

/* (transfer full): what would be connected to, "ADDRESS;...", then "!" with the reason when that is an error */
static char *
enumerate(const DiscordSite *site, const char *host)
{
    g_autoptr(GSocketConnectable) address = discord_address_new(site, host, 443);
    g_autoptr(GSocketAddressEnumerator) enumerator = g_socket_connectable_enumerate(address);
    GString *text = g_string_new(NULL);
    for (;;) {
        g_auto(EbTestResult) done = {0};
        g_autoptr(GError) error = NULL;
        g_socket_address_enumerator_next_async(enumerator, NULL, eb_test_result_ready, &done);
        g_autoptr(GSocketAddress) next =
            g_socket_address_enumerator_next_finish(enumerator, eb_test_result_wait(&done), &error);
        if (error != NULL)
            g_string_append_printf(text, "!%s", eb_error_get_reason(error));
        if (next == NULL)
            return g_string_free(text, FALSE);
        g_autofree char *shown =
            g_inet_address_to_string(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(next)));
        g_string_append_printf(text, "%s;", shown);
    }
}

static void
test_judged_addresses(void)
{
    static const struct {
        const char *answer;
        const char *expected;
    } cases[] = {
        {"162.159.128.233 162.159.129.233", "162.159.128.233;162.159.129.233;"},
        {"127.0.0.1", "!discord.address"},
        {"10.0.0.1 169.254.169.254 ::1 ::ffff:127.0.0.1", "!discord.address"},
        {"127.0.0.1 162.159.128.233", "162.159.128.233;"},
        {"162.159.128.233 192.168.1.1", "162.159.128.233;"},
    };
    g_autoptr(DiscordSite) site = real_site();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const answers[] = {cases[i].answer, NULL};
        g_autoptr(TestResolver) resolver = use_resolver(answers);
        g_autofree char *text = enumerate(site, "cdn.discordapp.com");
        g_assert_cmpstr(text, ==, cases[i].expected);
    }
    g_autofree char *literal = enumerate(site, "127.0.0.1");
    g_assert_cmpstr(literal, ==, "!discord.address");
}

/*
 * DNS rebinding: public when it is looked up first, internal the second time. There is no second time: one look-up gives
 * the addresses that are judged and the ones that are connected to.
 */
static void
test_rebinding(void)
{
    static const char *const answers[] = {"162.159.128.233", "127.0.0.1", NULL};
    g_autoptr(DiscordSite) site = real_site();
    g_autoptr(TestResolver) resolver = use_resolver(answers);
    g_autoptr(GSocketConnectable) address = discord_address_new(site, "cdn.discordapp.com", 443);
    for (guint i = 0; i < 3; i++) {
        /* A second connection looks it up again, and judges again. */
        g_autoptr(GSocketAddressEnumerator) enumerator = g_socket_connectable_proxy_enumerate(address);
        g_auto(EbTestResult) done = {0};
        g_autoptr(GError) error = NULL;
        g_socket_address_enumerator_next_async(enumerator, NULL, eb_test_result_ready, &done);
        g_autoptr(GSocketAddress) next =
            g_socket_address_enumerator_next_finish(enumerator, eb_test_result_wait(&done), &error);
        if (next == NULL) {
            eb_test_assert_error(error, EB_ERROR_DENIED, "discord.address", "internal address");
            continue;
        }
        g_autofree char *shown =
            g_inet_address_to_string(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(next)));
        g_assert_cmpstr(shown, ==, "162.159.128.233");
    }
    g_assert_cmpuint(resolver->lookups, >=, 1);
}

static gboolean
on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer user_data)
{
    ++*(guint *)user_data;
    return FALSE;
}

/* All of it together: a download of Discord's own host name that leads inside touches nothing there. */
static void
test_nothing_connects_inside(void)
{
    static const char *const answers[] = {"127.0.0.1", NULL};
    guint connections = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(GSocketService) service = g_socket_service_new();
    g_autoptr(GInetAddress) loopback = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
    g_autoptr(GSocketAddress) wanted = g_inet_socket_address_new(loopback, 0);
    g_autoptr(GSocketAddress) bound = NULL;
    g_socket_listener_add_address(G_SOCKET_LISTENER(service), wanted, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL,
                                  &bound, &error);
    g_assert_no_error(error);
    g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), &connections);
    guint16 port = g_inet_socket_address_get_port(G_INET_SOCKET_ADDRESS(bound));
    g_autoptr(DiscordSite) site = real_site();
    g_autoptr(TestResolver) resolver = use_resolver(answers);

    g_autoptr(GSocketConnectable) address = discord_address_new(site, "cdn.discordapp.com", port);
    g_autoptr(SoupSession) session = discord_session_new(address);
    g_autofree char *url = g_strdup_printf("http://cdn.discordapp.com:%u/x", port);
    g_autoptr(SoupMessage) message = soup_message_new("GET", url);
    g_auto(EbTestResult) done = {0};
    discord_exchange_async(session, message, MAX_BYTES, 5000, NULL, eb_test_result_ready, &done);
    g_assert_null(discord_exchange_finish(session, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "discord.address", "127.0.0.1 is an internal address");
    eb_test_run_for(50);
    g_assert_cmpuint(connections, ==, 0);

    /* The same without the judge does arrive, so that the test above could have failed. */
    g_auto(EbTestResult) again = {0};
    g_autoptr(SoupSession) careless = discord_session_new(NULL);
    g_autoptr(SoupMessage) second = soup_message_new("GET", url);
    discord_exchange_async(careless, second, MAX_BYTES, 500, NULL, eb_test_result_ready, &again);
    discord_exchange_finish(careless, eb_test_result_wait(&again), NULL);
    g_assert_cmpuint(connections, ==, 1);

    char text[] = "MTIz.real-looking.token";
    g_autoptr(EbSecret) token = eb_secret_new_take("chat-token", text, strlen(text), NULL);
    g_autoptr(DiscordRest) rest = discord_rest_new(site, token);
    g_auto(EbTestResult) third = {0};
    g_clear_error(&error);
    discord_rest_download_async(rest, "https://cdn.discordapp.com/attachments/1/2/a.png", MAX_BYTES, NULL,
                                eb_test_result_ready, &third);
    g_assert_null(discord_rest_download_finish(rest, eb_test_result_wait(&third), &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "discord.address", "127.0.0.1 is an internal address");
    discord_rest_close(rest);
    eb_test_drain();
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, function)                                                                                            \
    g_test_add("/discord/download/" name, RestFixture, NULL, rest_fixture_set_up, function, rest_fixture_tear_down)
    ADD("file", test_file);
    ADD("size", test_size);
    ADD("statuses", test_statuses);
    ADD("urls", test_urls);
    ADD("ends", test_ends);
    ADD("timeout", test_timeout);
    g_test_add_func("/discord/download/judged-addresses", test_judged_addresses);
    g_test_add_func("/discord/download/rebinding", test_rebinding);
    g_test_add_func("/discord/download/nothing-connects-inside", test_nothing_connects_inside);
    return g_test_run();
}
