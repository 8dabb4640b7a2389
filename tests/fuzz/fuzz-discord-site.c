/* SPDX-License-Identifier: MIT */
/* URLs that others name: whatever is let through, the parser that connects reads in the same way. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "discord-multipart.h"
#include "discord-site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static DiscordSite *
make_site(const char *mock_url, const char *token_text)
{
    g_autofree char *copy = g_strdup(token_text);
    g_autoptr(EbSecret) token = eb_secret_new_take("token", copy, strlen(token_text), NULL);
    return discord_site_new(mock_url, token, NULL);
}

static void
check_url(const char *url, const char *scheme, gboolean loopback)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_ENCODED | G_URI_FLAGS_SCHEME_NORMALIZE, NULL);
    g_assert_nonnull(uri);
    g_assert_cmpstr(g_uri_get_scheme(uri), ==, scheme);
    g_assert_null(g_uri_get_userinfo(uri));
    g_assert_null(g_uri_get_fragment(uri));
    const char *host = g_uri_get_host(uri);
    if (loopback) {
        g_autoptr(GInetAddress) address = g_inet_address_new_from_string(host);
        g_assert_nonnull(address);
        g_assert_true(g_inet_address_get_is_loopback(address));
        g_assert_cmpint(g_uri_get_port(uri), >, 0);
        return;
    }
    g_assert_true(g_str_equal(host, "cdn.discordapp.com") || g_str_equal(host, "media.discordapp.net") ||
                  g_str_has_suffix(host, ".discord.gg"));
    g_assert_true(g_uri_get_port(uri) == 443 || g_uri_get_port(uri) == -1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static DiscordSite *real;
    static DiscordSite *mock;
    if (real == NULL) {
        real = make_site(NULL, "MTIz.real");
        mock = make_site("http://127.0.0.1:1", "mock");
    }
    g_autofree char *url = g_strndup((const char *)data, size);
    if (discord_site_check_attachment(real, url, NULL))
        check_url(url, "https", FALSE);
    if (discord_site_check_gateway(real, url, NULL))
        check_url(url, "wss", FALSE);
    if (discord_site_check_attachment(mock, url, NULL))
        check_url(url, "http", TRUE);
    if (discord_site_check_gateway(mock, url, NULL))
        check_url(url, "ws", TRUE);
    if (*url != '\0') {
        g_autoptr(DiscordSite) site = make_site(url, "mock");
        if (site != NULL)
            check_url(site->api_base, "http", TRUE);
    }
    /* Names of files are people's and agents' text as well, and end up in a header. */
    g_autofree char *name = discord_multipart_name(url);
    g_assert_true(*name != '\0' && strlen(name) <= 200 && g_utf8_validate(name, -1, NULL));
    g_assert_null(strpbrk(name, "\"\\/\r\n"));
    return 0;
}
