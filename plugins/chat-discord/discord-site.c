/* SPDX-License-Identifier: MIT */
#include "discord-site.h"

#include <string.h>

/* Longest URL that is looked at; Discord's signed ones have about 300 bytes. */
#define MAX_URL 2048
/* Tokens that a stand-in takes begin so; Discord's never do. */
#define MOCK_PREFIX "mock"

typedef struct {
    const char *host;
    gsize host_length;
    guint port;       /* 0 = none given */
    const char *rest; /* path and query */
} UrlParts;

/* Decimal without sign, leading zeros or anything else; 0 for what is none of 1..@max. */
static guint
parse_decimal(const char *text, gsize length, guint max)
{
    guint value = 0;
    if (length == 0 || length > 5 || text[0] == '0')
        return 0;
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isdigit(text[i]))
            return 0;
        value = value * 10 + (guint)(text[i] - '0');
    }
    return value <= max ? value : 0;
}

/*
 * A narrow reading of URLs, on purpose no general parser: what two parsers could understand differently (user info,
 * backslashes, escapes in the host, fragments, spaces, ports like 0443) is no URL here.
 */
static gboolean
split_url(const char *url, const char *scheme, UrlParts *parts)
{
    gsize length = strnlen(url, MAX_URL + 1);
    if (length > MAX_URL || !g_str_has_prefix(url, scheme))
        return FALSE;
    for (gsize i = 0; i < length; i++)
        if (url[i] <= ' ' || url[i] >= 0x7f || strchr("\\#\"<>^`{|}", url[i]) != NULL ||
            (url[i] == '%' && !(g_ascii_isxdigit(url[i + 1]) && g_ascii_isxdigit(url[i + 2]))))
            return FALSE;
    parts->host = url + strlen(scheme);
    if (parts->host[0] == '[')
        parts->host_length = strcspn(parts->host, "]/?") + (strchr(parts->host, ']') != NULL);
    else
        parts->host_length = strcspn(parts->host, ":/?");
    const char *after = parts->host + parts->host_length;
    parts->port = 0;
    parts->rest = after;
    if (*after == ':') {
        gsize digits = strcspn(after + 1, "/?");
        parts->port = parse_decimal(after + 1, digits, G_MAXUINT16);
        parts->rest = after + 1 + digits;
        if (parts->port == 0)
            return FALSE;
    }
    return parts->host_length > 0 && (*parts->rest == '\0' || *parts->rest == '/' || *parts->rest == '?');
}

static gboolean
host_is(const UrlParts *parts, const char *host)
{
    return parts->host_length == strlen(host) && strncmp(parts->host, host, parts->host_length) == 0;
}

/* Lower-case labels below @domain. */
static gboolean
host_is_below(const UrlParts *parts, const char *domain)
{
    gsize tail = strlen(domain) + 1;
    if (parts->host_length <= tail || parts->host[parts->host_length - tail] != '.' ||
        strncmp(parts->host + parts->host_length - tail + 1, domain, tail - 1) != 0)
        return FALSE;
    char before = '.';
    for (gsize i = 0; i < parts->host_length; i++) {
        char c = parts->host[i];
        if (!g_ascii_islower(c) && !g_ascii_isdigit(c) && c != '-' && c != '.')
            return FALSE;
        if (c == '.' && before == '.')
            return FALSE;
        before = c;
    }
    return TRUE;
}

/* Four decimal numbers of 127.0.0.0/8 in full, or [::1]: forms that every parser reads in one way. */
static gboolean
host_is_loopback(const UrlParts *parts)
{
    if (host_is(parts, "[::1]"))
        return TRUE;
    const char *at = parts->host;
    const char *end = at + parts->host_length;
    for (guint i = 0; i < 4; i++) {
        const char *dot = memchr(at, '.', (gsize)(end - at));
        gsize length = (gsize)((dot != NULL ? dot : end) - at);
        gboolean zero = length == 1 && *at == '0';
        if ((dot == NULL) != (i == 3) || (!zero && parse_decimal(at, length, 255) == 0))
            return FALSE;
        if (i == 0 && (length != 3 || strncmp(at, "127", 3) != 0))
            return FALSE;
        at += length + 1;
    }
    return TRUE;
}

/* A path that means the same to every parser: no query, no escapes, no dots that lead up, no empty segments. */
static gboolean
path_is_plain(const char *path)
{
    for (const char *at = path; *at != '\0'; at++)
        if (!g_ascii_isalnum(*at) && strchr("/-_.", *at) == NULL)
            return FALSE;
    return strstr(path, "..") == NULL && strstr(path, "//") == NULL;
}

static gboolean
token_is_mock(EbSecret *token)
{
    g_auto(EbSecretView) view = eb_secret_view(token);
    return view.length >= strlen(MOCK_PREFIX) && memcmp(view.bytes, MOCK_PREFIX, strlen(MOCK_PREFIX)) == 0;
}

DiscordSite *
discord_site_new(const char *mock_url, EbSecret *token, GError **error)
{
    gboolean mock = mock_url != NULL && *mock_url != '\0';
    g_autofree char *base = NULL;
    if (mock) {
        UrlParts parts;
        if (!split_url(mock_url, "http://", &parts) || !host_is_loopback(&parts) || parts.port == 0 ||
            !path_is_plain(parts.rest)) {
            eb_set_error(error, EB_ERROR_CONFIG, "discord.mock-url",
                         DISCORD_MOCK_ENV " must be http://ADDRESS:PORT[/PATH] with a literal of 127.0.0.0/8 or [::1]; "
                                          "it is for tests alone: unset it to use Discord");
            return NULL;
        }
        if (!token_is_mock(token)) {
            eb_set_error(error, EB_ERROR_CONFIG, "discord.mock-url",
                         "the bot token does not begin with \"" MOCK_PREFIX "\", so it is never sent to a stand-in: "
                         "unset " DISCORD_MOCK_ENV);
            return NULL;
        }
        base = g_strdup(mock_url);
        if (g_str_has_suffix(base, "/"))
            base[strlen(base) - 1] = '\0';
    } else if (token_is_mock(token)) {
        eb_set_error(error, EB_ERROR_CONFIG, "discord.mock-url",
                     "the bot token is one for a stand-in: put the bot's real token into the credential store");
        return NULL;
    }
    DiscordSite *self = g_new0(DiscordSite, 1);
    self->api_base = mock ? g_steal_pointer(&base) : g_strdup(DISCORD_API_BASE);
    self->mock = mock;
    return self;
}

void
discord_site_free(DiscordSite *self)
{
    if (self == NULL)
        return;
    g_free(self->api_base);
    g_free(self);
}

static gboolean
refuse(GError **error, const char *reason, const char *url, const char *expected)
{
    g_autofree char *shown = eb_log_escape(url, (gssize)strcspn(url, "?"), 120);
    eb_set_error(error, EB_ERROR_DENIED, reason, "\"%s\" is not connected to: expected %s", shown, expected);
    return FALSE;
}

gboolean
discord_site_check_gateway(const DiscordSite *self, const char *url, GError **error)
{
    UrlParts parts;
    if (self->mock) {
        if (split_url(url, "ws://", &parts) && host_is_loopback(&parts) && parts.port != 0)
            return TRUE;
        return refuse(error, "discord.gateway-url", url, "ws:// and a loopback address, as for all of a stand-in");
    }
    if (split_url(url, "wss://", &parts) && (parts.port == 0 || parts.port == 443) &&
        host_is_below(&parts, "discord.gg"))
        return TRUE;
    return refuse(error, "discord.gateway-url", url, "wss:// and a host below discord.gg");
}

gboolean
discord_site_check_attachment(const DiscordSite *self, const char *url, GError **error)
{
    UrlParts parts;
    if (self->mock) {
        if (split_url(url, "http://", &parts) && host_is_loopback(&parts) && parts.port != 0)
            return TRUE;
        return refuse(error, "discord.attachment-url", url, "http:// and a loopback address, as for all of a stand-in");
    }
    if (split_url(url, "https://", &parts) && (parts.port == 0 || parts.port == 443) &&
        (host_is(&parts, "cdn.discordapp.com") || host_is(&parts, "media.discordapp.net")))
        return TRUE;
    return refuse(error, "discord.attachment-url", url, "https:// and cdn.discordapp.com or media.discordapp.net");
}

/* --- addresses --- */

typedef struct {
    guint32 network;
    guint bits;
} Ipv4Range;

/* IANA's special-purpose registry: everything that is not plain public unicast. */
static const Ipv4Range internal_ipv4[] = {
    {0x00000000, 8},  {0x0a000000, 8},  {0x64400000, 10}, {0x7f000000, 8},  {0xa9fe0000, 16},
    {0xac100000, 12}, {0xc0000000, 24}, {0xc0000200, 24}, {0xc0586300, 24}, {0xc0a80000, 16},
    {0xc6120000, 15}, {0xc6336400, 24}, {0xcb007100, 24}, {0xe0000000, 4},  {0xf0000000, 4},
};

static gboolean
ipv4_is_public(const guint8 *bytes)
{
    guint32 value = (guint32)bytes[0] << 24 | (guint32)bytes[1] << 16 | (guint32)bytes[2] << 8 | bytes[3];
    for (gsize i = 0; i < G_N_ELEMENTS(internal_ipv4); i++)
        if ((value ^ internal_ipv4[i].network) >> (32 - internal_ipv4[i].bits) == 0)
            return FALSE;
    return TRUE;
}

static gboolean
ipv6_is_public(const guint8 *bytes)
{
    static const guint8 nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const guint8 mapped[12] = {[10] = 0xff, [11] = 0xff};
    /* Both lead to the IPv4 address in their last four bytes; hosts without IPv4 reach all of it by NAT64. */
    if (memcmp(bytes, nat64, sizeof nat64) == 0 || memcmp(bytes, mapped, sizeof mapped) == 0)
        return ipv4_is_public(bytes + 12);
    if ((bytes[0] & 0xe0) != 0x20) /* 2000::/3 is what is given out for public unicast */
        return FALSE;
    if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
        return ipv4_is_public(bytes + 2);
    if (bytes[0] == 0x20 && bytes[1] == 0x01 && (bytes[2] & 0xfe) == 0) /* 2001::/23: Teredo, ORCHID, benchmarks */
        return FALSE;
    return !(bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0d && bytes[3] == 0xb8) && /* documentation */
           !(bytes[0] == 0x3f && bytes[1] == 0xff && (bytes[2] & 0xf0) == 0);
}

gboolean
discord_site_check_address(const DiscordSite *self, GInetAddress *address, GError **error)
{
    const guint8 *bytes = g_inet_address_to_bytes(address);
    gboolean fits;
    if (self->mock)
        fits = g_inet_address_get_is_loopback(address);
    else if (g_inet_address_get_family(address) == G_SOCKET_FAMILY_IPV4)
        fits = ipv4_is_public(bytes);
    else
        fits = ipv6_is_public(bytes);
    if (fits)
        return TRUE;
    g_autofree char *text = g_inet_address_to_string(address);
    eb_set_error(error, EB_ERROR_DENIED, "discord.address",
                 self->mock ? "%s is no loopback address, and a stand-in is never elsewhere"
                            : "%s is an internal address, and nothing is fetched from those",
                 text);
    return FALSE;
}
