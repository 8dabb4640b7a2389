/* SPDX-License-Identifier: MIT */
/* Where the token and requests for files may go: every way around the rules is refused. */
#include "discord-site.h"
#include "eb-test.h"

static EbSecret *
make_token(const char *text)
{
    char *copy = g_strdup(text);
    EbSecret *token = eb_secret_new_take("chat-token", copy, strlen(text), NULL);
    g_free(copy);
    return token;
}

static DiscordSite *
real_site(void)
{
    g_autoptr(EbSecret) token = make_token("MTIz.real-looking.token");
    DiscordSite *site = discord_site_new(NULL, token, NULL);
    g_assert_nonnull(site);
    return site;
}

static DiscordSite *
mock_site(void)
{
    g_autoptr(EbSecret) token = make_token("mock-token");
    DiscordSite *site = discord_site_new("http://127.0.0.1:8080", token, NULL);
    g_assert_nonnull(site);
    return site;
}

static void
test_discord_itself(void)
{
    g_autoptr(EbSecret) token = make_token("MTIz.real-looking.token");
    const char *unset[] = {NULL, ""};
    for (guint i = 0; i < G_N_ELEMENTS(unset); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(DiscordSite) site = discord_site_new(unset[i], token, &error);
        g_assert_no_error(error);
        g_assert_false(site->mock);
        g_assert_cmpstr(site->api_base, ==, "https://discord.com/api/v10");
    }
}

static void
test_mock_accepted(void)
{
    static const struct {
        const char *url;
        const char *base;
    } cases[] = {
        {"http://127.0.0.1:1", "http://127.0.0.1:1"},
        {"http://127.0.0.1:65535/", "http://127.0.0.1:65535"},
        {"http://127.255.0.9:8080/api/v10", "http://127.255.0.9:8080/api/v10"},
        {"http://[::1]:8080/api/v10/", "http://[::1]:8080/api/v10"},
    };
    g_autoptr(EbSecret) token = make_token("mock");
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(DiscordSite) site = discord_site_new(cases[i].url, token, &error);
        g_assert_no_error(error);
        g_assert_true(site->mock);
        g_assert_cmpstr(site->api_base, ==, cases[i].base);
        /* GLib, which connects, reads it in the same way. */
        g_autoptr(GUri) uri = g_uri_parse(cases[i].url, G_URI_FLAGS_NONE, NULL);
        g_autoptr(GInetAddress) address = g_inet_address_new_from_string(g_uri_get_host(uri));
        g_assert_true(g_inet_address_get_is_loopback(address));
        g_assert_null(g_uri_get_userinfo(uri));
    }
}

static const char *const bad_mock_urls[] = {
    /* names, also such as resolve to loopback */
    "http://localhost:8080",
    "http://localhost.localdomain:8080",
    "http://ip6-localhost:8080",
    "http://127.0.0.1.nip.io:8080",
    "http://foo.localhost:8080",
    "http://discord.com:80",
    "http://LOCALHOST:1",
    /* other addresses */
    "http://10.0.0.1:8080",
    "http://192.168.1.1:80",
    "http://169.254.169.254:80",
    "http://0.0.0.0:8080",
    "http://128.0.0.1:8080",
    "http://[::]:80",
    "http://[fe80::1]:80",
    "http://162.159.128.233:443",
    /* loopback in forms that parsers differ about */
    "http://[::ffff:127.0.0.1]:80",
    "http://[::ffff:7f00:1]:80",
    "http://[0:0:0:0:0:0:0:1]:80",
    "http://[::0001]:80",
    "http://[::127.0.0.1]:80",
    "http://::1:80",
    "http://2130706433:80",
    "http://0x7f000001:80",
    "http://0x7f.0.0.1:80",
    "http://017700000001:80",
    "http://0177.0.0.1:80",
    "http://127.1:80",
    "http://127.0.1:80",
    "http://127:80",
    "http://127.0.0.01:80",
    "http://127.0.0.256:80",
    "http://127.0.0.1.:80",
    "http://127.0.0.1.1:80",
    "http://.127.0.0.1:80",
    "http://127..0.1:80",
    "http://127.0.0.:80",
    "http://127.0.0.-1:80",
    "http://127.0.0.+1:80",
    "http://%31%32%37.0.0.1:80",
    "http://127.0.0.1%00:80",
    "http://127.0.0.1%2eevil.com:80",
    "http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:80",
    "http://127\xe3\x80\x82"
    "0.0.1:80",
    /* zone ids */
    "http://[::1%lo]:80",
    "http://[::1%25lo]:80",
    "http://[fe80::1%25eth0]:80",
    "http://127.0.0.1%25lo:80",
    /* user info */
    "http://user@127.0.0.1:80",
    "http://user:pw@127.0.0.1:80",
    "http://127.0.0.1:80@evil.com",
    "http://127.0.0.1@evil.com:80",
    "http://127.0.0.1:80@evil.com:80/",
    "http://@127.0.0.1:80",
    "http://evil.com\\@127.0.0.1:80",
    "http://127.0.0.1\\@evil.com:80",
    "http://127.0.0.1:80\\evil",
    /* query, fragment, paths that lead elsewhere */
    "http://127.0.0.1:80?x",
    "http://127.0.0.1:80/?x=1",
    "http://127.0.0.1:80#x",
    "http://127.0.0.1:80/#",
    "http://127.0.0.1:80/a/../b",
    "http://127.0.0.1:80//evil.com",
    "http://127.0.0.1:80/%2e%2e",
    "http://127.0.0.1:80/a b",
    "http://127.0.0.1:80/;x",
    "http://127.0.0.1:80/@x",
    "http://127.0.0.1:80/\r\nX: y",
    "http://127.0.0.1:80/\tx",
    /* ports */
    "http://127.0.0.1",
    "http://127.0.0.1/",
    "http://127.0.0.1:",
    "http://127.0.0.1:0",
    "http://127.0.0.1:00080",
    "http://127.0.0.1:080",
    "http://127.0.0.1:65536",
    "http://127.0.0.1:99999999999",
    "http://127.0.0.1:-1",
    "http://127.0.0.1:+80",
    "http://127.0.0.1:0x50",
    "http://127.0.0.1: 80",
    "http://127.0.0.1:80:80",
    "http://127.0.0.1:8a",
    /* schemes and what is no URL */
    "https://127.0.0.1:80",
    "ws://127.0.0.1:80",
    "HTTP://127.0.0.1:80",
    "http:/127.0.0.1:80",
    "http:127.0.0.1:80",
    "//127.0.0.1:80",
    "127.0.0.1:80",
    " http://127.0.0.1:80",
    "http://127.0.0.1:80 ",
    "http://",
    "http://:80",
    "http://[]:80",
    "http://[::1:80",
    "http://[::1]80",
    "http://[::1]",
    "file:///etc/passwd",
    "unix:///run/x",
    "x",
    "http+unix://x:1",
};

static void
test_mock_refused(void)
{
    g_autoptr(EbSecret) token = make_token("mock-token");
    for (guint i = 0; i < G_N_ELEMENTS(bad_mock_urls); i++) {
        g_autoptr(GError) error = NULL;
        g_test_message("%s", bad_mock_urls[i]);
        g_assert_null(discord_site_new(bad_mock_urls[i], token, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.mock-url", "127.0.0.0/8");
    }
    g_autofree char *padding = g_strnfill(5000, 'a');
    g_autofree char *too_long = g_strconcat("http://127.0.0.1:80/", padding, NULL);
    g_assert_null(discord_site_new(too_long, token, NULL));
}

/* The token decides too: a real one never reaches a stand-in, one for a stand-in never Discord. */
static void
test_tokens(void)
{
    static const char *const real[] = {
        "MTIz.real-looking.token", "Mock", "MOCK-x", "xmock", " mock", "moc", "Bot mock"};
    for (guint i = 0; i < G_N_ELEMENTS(real); i++) {
        g_autoptr(EbSecret) token = make_token(real[i]);
        g_autoptr(GError) error = NULL;
        g_assert_null(discord_site_new("http://127.0.0.1:8080", token, &error));
        eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.mock-url", "does not begin with \"mock\"");
        g_assert_null(strstr(error->message, "real-looking"));
    }
    g_autoptr(EbSecret) mock = make_token("mock-token");
    g_autoptr(GError) error = NULL;
    g_assert_null(discord_site_new(NULL, mock, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.mock-url", "for a stand-in");
    g_clear_error(&error);
    g_assert_null(discord_site_new("", mock, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.mock-url", "for a stand-in");
}

static void
check_all(const DiscordSite *site, gboolean (*check)(const DiscordSite *, const char *, GError **),
          const char *const *urls, const char *reason)
{
    for (; *urls != NULL; urls++) {
        g_autoptr(GError) error = NULL;
        g_test_message("%s", *urls);
        g_assert_true(check(site, *urls, &error) == (reason == NULL));
        if (reason != NULL)
            eb_test_assert_error(error, EB_ERROR_DENIED, reason, "expected");
        else
            g_assert_no_error(error);
    }
}

static void
test_gateway(void)
{
    static const char *const real_good[] = {"wss://gateway.discord.gg",
                                            "wss://gateway.discord.gg/",
                                            "wss://gateway.discord.gg/?v=10&encoding=json",
                                            "wss://gateway.discord.gg:443/?v=10",
                                            "wss://gateway-us-east1-b.discord.gg",
                                            "wss://a.b.discord.gg?v=10",
                                            NULL};
    static const char *const real_bad[] = {"ws://gateway.discord.gg",
                                           "https://gateway.discord.gg",
                                           "wss://discord.gg",
                                           "wss://.discord.gg",
                                           "wss://a..discord.gg",
                                           "wss://gateway.discord.gg.",
                                           "wss://gateway.discord.gg:80",
                                           "wss://gateway.discord.gg:0",
                                           "wss://gateway.discord.gg.evil.com",
                                           "wss://evildiscord.gg",
                                           "wss://gateway.discord.com",
                                           "wss://evil.com/.discord.gg",
                                           "wss://evil.com?.discord.gg",
                                           "wss://evil.com#.discord.gg",
                                           "wss://evil.com\\.discord.gg",
                                           "wss://evil.com%2f.discord.gg",
                                           "wss://x@gateway.discord.gg",
                                           "wss://gateway.discord.gg@evil.com",
                                           "wss://GATEWAY.discord.gg",
                                           "wss://g\xc3\xa4teway.discord.gg",
                                           "wss://127.0.0.1:8080",
                                           "wss://gateway.discord.gg/ x",
                                           "",
                                           NULL};
    static const char *const mock_good[] = {"ws://127.0.0.1:80", "ws://[::1]:8080/?v=10&encoding=json",
                                            "ws://127.0.0.2:9/gateway?v=10", NULL};
    static const char *const mock_bad[] = {
        "ws://localhost:80",          "ws://127.0.0.1",           "ws://10.0.0.1:80",
        "wss://127.0.0.1:80",         "wss://gateway.discord.gg", "ws://127.0.0.1:80@evil.com/",
        "ws://[::ffff:127.0.0.1]:80", "ws://2130706433:80",       NULL};
    g_autoptr(DiscordSite) real = real_site();
    g_autoptr(DiscordSite) mock = mock_site();
    check_all(real, discord_site_check_gateway, real_good, NULL);
    check_all(real, discord_site_check_gateway, real_bad, "discord.gateway-url");
    check_all(mock, discord_site_check_gateway, mock_good, NULL);
    check_all(mock, discord_site_check_gateway, mock_bad, "discord.gateway-url");
}

static void
test_attachment(void)
{
    static const char *const real_good[] = {
        "https://cdn.discordapp.com/attachments/1/2/a.png?ex=6&is=5&hm=abc",
        "https://media.discordapp.net/attachments/1/2/a%20b.png",
        "https://cdn.discordapp.com:443/x",
        NULL,
    };
    static const char *const real_bad[] = {"http://cdn.discordapp.com/x",
                                           "https://cdn.discordapp.com:8443/x",
                                           "https://cdn.discordapp.com./x",
                                           "https://cdn.discordapp.com.evil.com/x",
                                           "https://cdn.discordapp.com/%zz",
                                           "https://cdn.discordapp.com/%2",
                                           "https://evil.com/cdn.discordapp.com",
                                           "https://x.cdn.discordapp.com/x",
                                           "https://u@cdn.discordapp.com/x",
                                           "https://cdn.discordapp.com@evil.com/x",
                                           "https://cdn.discordapp.com:443@evil.com/x",
                                           "https://cdn.discordapp.com\\@evil.com/x",
                                           "https://cdn.discordapp.com#@evil.com/x",
                                           "https://CDN.DISCORDAPP.COM/x",
                                           "https://discord.com/api/v10/users/@me",
                                           "https://169.254.169.254/latest/meta-data",
                                           "https://127.0.0.1:443/x",
                                           "https://[::1]/x",
                                           "file:///etc/passwd",
                                           "data:text/plain,x",
                                           "",
                                           NULL};
    static const char *const mock_good[] = {"http://127.0.0.1:80/attachments/1/2/a.png?ex=1", NULL};
    static const char *const mock_bad[] = {"https://cdn.discordapp.com/x", "http://localhost:80/x",
                                           "http://10.0.0.1:80/x",         "http://127.0.0.1/x",
                                           "http://[::1%25lo]:80/x",       NULL};
    g_autoptr(DiscordSite) real = real_site();
    g_autoptr(DiscordSite) mock = mock_site();
    check_all(real, discord_site_check_attachment, real_good, NULL);
    check_all(real, discord_site_check_attachment, real_bad, "discord.attachment-url");
    check_all(mock, discord_site_check_attachment, mock_good, NULL);
    check_all(mock, discord_site_check_attachment, mock_bad, "discord.attachment-url");
}

/* What an URL carries after '?' is a signature that lets anyone read the file: it is not in messages. */
static void
test_refusals_hide_queries(void)
{
    g_autoptr(DiscordSite) real = real_site();
    g_autoptr(GError) error = NULL;
    g_assert_false(discord_site_check_attachment(real, "https://evil.com/x?hm=SIGNATURE\x1b[2J", &error));
    g_assert_null(strstr(error->message, "SIGNATURE"));
    g_clear_error(&error);
    g_assert_false(discord_site_check_attachment(real, "https://evil.com/\x1b[2J", &error));
    g_assert_null(strchr(error->message, '\x1b'));
}

static void
test_addresses(void)
{
    static const char *const internal[] = {
        "0.0.0.0",
        "0.1.2.3",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.8.8.8",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "3fff::1",
        "5f00::1",
        "4000::1",
    };
    static const char *const public[] = {
        "162.159.128.233",          "1.1.1.1",           "100.63.255.255",  "100.128.0.0",
        "172.15.255.255",           "172.32.0.0",        "192.167.255.255", "192.169.0.0",
        "198.17.255.255",           "198.20.0.0",        "223.255.255.255", "::ffff:162.159.128.233",
        "64:ff9b::162.159.128.233", "2606:4700::6810:1", "2001:4860::1",    "2002:a29f:80e9::1",
    };
    g_autoptr(DiscordSite) real = real_site();
    g_autoptr(DiscordSite) mock = mock_site();
    for (guint i = 0; i < G_N_ELEMENTS(internal); i++) {
        g_autoptr(GInetAddress) address = g_inet_address_new_from_string(internal[i]);
        g_autoptr(GError) error = NULL;
        g_test_message("%s", internal[i]);
        g_assert_false(discord_site_check_address(real, address, &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "discord.address", "internal address");
    }
    for (guint i = 0; i < G_N_ELEMENTS(public); i++) {
        g_autoptr(GInetAddress) address = g_inet_address_new_from_string(public[i]);
        g_autoptr(GError) error = NULL;
        g_test_message("%s", public[i]);
        g_assert_true(discord_site_check_address(real, address, &error));
        g_assert_no_error(error);
        g_assert_false(discord_site_check_address(mock, address, &error));
        eb_test_assert_error(error, EB_ERROR_DENIED, "discord.address", "no loopback");
    }
    g_autoptr(GInetAddress) loopback = g_inet_address_new_from_string("127.0.0.1");
    g_assert_true(discord_site_check_address(mock, loopback, NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/site/itself", test_discord_itself);
    g_test_add_func("/discord/site/mock-accepted", test_mock_accepted);
    g_test_add_func("/discord/site/mock-refused", test_mock_refused);
    g_test_add_func("/discord/site/tokens", test_tokens);
    g_test_add_func("/discord/site/gateway", test_gateway);
    g_test_add_func("/discord/site/attachment", test_attachment);
    g_test_add_func("/discord/site/refusals-hide-queries", test_refusals_hide_queries);
    g_test_add_func("/discord/site/addresses", test_addresses);
    return g_test_run();
}
