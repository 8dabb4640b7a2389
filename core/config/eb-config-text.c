/* SPDX-License-Identifier: MIT */
/* Pure judgements on single texts of the configuration. */
#include "core/config/eb-config-schema.h"
#include "core/config/eb-price.h"

#include <string.h>

#include "core/base/eb-hostname.h"

/* Base64 of the longest id. */
#define BOT_PART_MAX 28

static gboolean
is_name(const char *text, gsize max)
{
    gsize length = strlen(text);

    if (length == 0 || length > max || !g_ascii_islower(text[0]))
        return FALSE;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

char *
eb_config_check_name(const char *text)
{
    return is_name(text, 63) ? NULL : g_strdup("a name is lower-case letters, digits and \"-\", at most 63");
}

char *
eb_config_check_account(const char *text)
{
    gsize length = strlen(text);

    if (strcmp(text, "root") == 0)
        return g_strdup("the service never runs as root");
    if (length == 0 || length > 31 || !(g_ascii_islower(text[0]) || text[0] == '_') ||
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-") != length)
        return g_strdup("not the name of an account");
    return NULL;
}

char *
eb_config_check_path(const char *text)
{
    static const char *const taken[] = {"/bin",  "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc",
                                        "/root", "/sbin", "/sys", "/usr", "/var",  "/tmp", "/run",   NULL};
    gsize length = strlen(text);

    if (text[0] != '/')
        return g_strdup("an absolute path is needed");
    if (length > 1024)
        return g_strdup("longer than 1024 bytes");
    for (gsize i = 0; i < length; i++)
        if (g_ascii_iscntrl(text[i]))
            return g_strdup("a path with a control character");
    g_autofree char *plain = g_canonicalize_filename(text, "/");
    if (strcmp(plain, text) != 0)
        return g_strdup_printf("write it without \".\", \"..\" and doubled or trailing slashes: %s", plain);
    if (strcmp(text, "/") == 0 || g_strv_contains(taken, text) || g_str_has_prefix(text, "/proc/") ||
        g_str_has_prefix(text, "/sys/") || g_str_has_prefix(text, "/dev/"))
        return g_strdup_printf("%s belongs to the system, name a directory of its own", text);
    return NULL;
}

char *
eb_config_check_degraded_id(const char *text)
{
    gsize length = strlen(text);

    if (g_str_has_prefix(text, "E-") && (length == 4 || length == 5) && g_ascii_isdigit(text[2]) &&
        g_ascii_isdigit(text[3]) && (length == 4 || g_ascii_isdigit(text[4])))
        return NULL;
    if (g_str_has_prefix(text, "x-") && is_name(text, 63))
        return NULL;
    return g_strdup("not the id of a check (\"E-05\", \"x-vendor-what\"; see: errand-box doctor --list)");
}

/* Letters, digits and inner hyphens, labels of 1 to 63, 253 in all. */
static gboolean
is_hostname(const char *text)
{
    g_auto(GStrv) labels = NULL;

    if (strlen(text) == 0 || strlen(text) > 253)
        return FALSE;
    labels = g_strsplit(text, ".", -1);
    for (char **label = labels; *label != NULL; label++) {
        gsize length = strlen(*label);
        if (length == 0 || length > 63 || (*label)[0] == '-' || (*label)[length - 1] == '-' ||
            strspn(*label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != length)
            return FALSE;
    }
    return TRUE;
}

static char *
check_wildcard(const char *text)
{
    if (strcmp(text, "*") == 0 || strcmp(text, "*.") == 0)
        return g_strdup("there is no open mode: name the hosts");
    if (text[1] != '.' || !is_hostname(text + 2))
        return g_strdup("a wildcard is \"*.domain\" and stands for names below it");
    if (strchr(text + 2, '.') == NULL)
        return g_strdup("a wildcard below a top-level domain is no list of hosts");
    return NULL;
}

char *
eb_config_check_egress_host(const char *text)
{
    const char *why = NULL;
    g_autofree char *ascii = eb_hostname_to_ascii(text, &why);
    g_autofree char *lower = ascii != NULL ? g_ascii_strdown(ascii, -1) : NULL;

    if (lower == NULL)
        return g_strdup_printf("not a host name: %s", why);
    if (strchr(text, '*') != NULL)
        return text[0] == '*' ? check_wildcard(lower) : g_strdup("a wildcard stands at the beginning alone");
    if (g_hostname_is_ip_address(text))
        return NULL;
    if (strstr(text, "://") != NULL || strchr(text, '/') != NULL)
        return g_strdup("a host, not a URL");
    if (strchr(text, ':') != NULL)
        return g_strdup(text[0] == '[' ? "an IPv6 address without brackets and port"
                                       : "a host without a port ([egress] ports names the ports)");
    if (strspn(text, "0123456789.") == strlen(text))
        return g_strdup("not an address");
    if (!is_hostname(lower))
        return g_strdup("not a host name");
    return NULL;
}

static gboolean
is_loopback_literal(const char *host)
{
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(host);
    return address != NULL && g_inet_address_get_is_loopback(address);
}

/* "127.1", "0x7f000001": a resolver takes them for addresses, and the broker for neither. */
static gboolean
ends_in_number(const char *host)
{
    const char *dot = strrchr(host, '.');
    const char *label = dot != NULL ? dot + 1 : host;

    return strspn(label, "0123456789") == strlen(label) || g_ascii_strncasecmp(label, "0x", 2) == 0;
}

/* ":", ":0443" */
static gboolean
has_odd_port(const char *url)
{
    const char *authority = strstr(url, "://");
    g_autofree char *host = authority != NULL ? g_strndup(authority + 3, strcspn(authority + 3, "/")) : g_strdup("");
    const char *colon = strrchr(host, ':');

    if (colon != NULL && strchr(colon, ']') != NULL)
        return FALSE; /* of an IPv6 address */
    return colon != NULL && (colon[1] == '\0' || colon[1] == '0');
}

static gboolean
is_address(const char *host)
{
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(host);
    return address != NULL;
}

/* The broker puts it on the wire as it is, and a server must not see another path than we do. @path: (nullable) */
static gboolean
is_plain_path(const char *path)
{
    g_auto(GStrv) parts = path != NULL ? g_strsplit(path + 1, "/", -1) : NULL;

    for (guint i = 0; parts != NULL && parts[i] != NULL; i++) {
        const char *part = parts[i];
        if ((*part == '\0' && parts[i + 1] != NULL) || strcmp(part, ".") == 0 || strcmp(part, "..") == 0)
            return FALSE;
        for (; *part != '\0'; part++)
            if (!g_ascii_isalnum(*part) && strchr("-._~!$&'()*+,;=:@", *part) == NULL)
                return FALSE;
    }
    return TRUE;
}

/* What is accepted here is what a session's broker takes, so that no session is refused for it later. */
char *
eb_config_check_base_url(const char *text)
{
    g_autoptr(GUri) uri = g_uri_parse(text, G_URI_FLAGS_HAS_PASSWORD, NULL);
    const char *host;

    if (strpbrk(text, "\\ %") != NULL)
        return g_strdup("a base URL has no \"%\", \"\\\" or space");
    if (!g_str_is_ascii(text))
        return g_strdup("not ASCII: write an international name as xn--...");
    if (uri == NULL || (host = g_uri_get_host(uri)) == NULL || *host == '\0')
        return g_strdup("not a URL");
    if (g_uri_get_userinfo(uri) != NULL)
        return g_strdup("a URL with a user or password: the key goes into a credential store");
    if (g_uri_get_query(uri) != NULL || g_uri_get_fragment(uri) != NULL)
        return g_strdup("a base URL has neither \"?\" nor \"#\"");
    if (!is_plain_path(strchr(strstr(text, "://") + 3, '/')))
        return g_strdup("its path has an empty part, \".\" or \"..\", or a sign that a path does not hold");
    if (g_uri_get_port(uri) == 0 || has_odd_port(text))
        return g_strdup("a port without a number, or 0");
    if (strcmp(g_uri_get_scheme(uri), "https") == 0) {
        g_autofree char *lower = g_ascii_strdown(host, -1);
        if (is_address(host))
            return NULL;
        if (!is_hostname(lower))
            return g_strdup("not a host name");
        return ends_in_number(host) ? g_strdup("a number that is not a plain IPv4 address") : NULL;
    }
    if (strcmp(g_uri_get_scheme(uri), "http") != 0)
        return g_strdup("https:// is needed");
    if (!is_loopback_literal(host))
        return g_strdup("the key would go over http: only a literal loopback address (127.0.0.1, [::1]) may");
    return NULL;
}

gboolean
eb_config_key_is_secret(const char *key)
{
    static const char *const words[] = {"token",   "secret",     "password",    "passwd",
                                        "api_key", "passphrase", "private_key", NULL};
    g_autofree char *lower = g_ascii_strdown(key, -1);

    g_strdelimit(lower, "-", '_');
    for (guint i = 0; words[i] != NULL; i++)
        if (g_str_has_suffix(lower, words[i]))
            return TRUE;
    return FALSE;
}

char *
eb_config_bot_of_token(const char *token)
{
    const gsize length = strcspn(token, ".");
    g_autofree char *part = NULL;
    g_autofree guchar *bytes = NULL;
    gsize n = 0;

    if (token[length] != '.' || length == 0 || length > BOT_PART_MAX)
        return NULL;
    part = g_strdup_printf("%.*s%.*s", (int)length, token, (int)((4 - length % 4) % 4), "===");
    bytes = g_base64_decode(part, &n);
    g_autofree char *id = g_strndup((const char *)bytes, n);
    if (n < 15 || n > 20 || strspn(id, "0123456789") != n || *id == '0')
        return NULL;
    return g_steal_pointer(&id);
}

gboolean
eb_config_text_is_secret(const char *text)
{
    static const struct {
        const char *prefix;
        gsize min;
    } shapes[] = {
        {"sk-", 20},  {"sk_", 20},  {"ghp_", 20},   {"gho_", 20},       {"ghs_", 20},
        {"ghu_", 20}, {"ghr_", 20}, {"glpat-", 20}, {"xoxb-", 20},      {"github_pat_", 20},
        {"AIza", 30}, {"AKIA", 20}, {"eyJ", 40},    {"-----BEGIN", 11},
    };

    g_autofree char *bot = eb_config_bot_of_token(text);

    for (guint i = 0; i < G_N_ELEMENTS(shapes); i++)
        if (g_str_has_prefix(text, shapes[i].prefix) && strlen(text) >= shapes[i].min)
            return TRUE;
    return bot != NULL;
}

void
eb_config_append_quoted(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            g_string_append_printf(out, "\\%c", *c);
        else if (*c == '\n')
            g_string_append(out, "\\n");
        else if (g_ascii_iscntrl(*c))
            g_string_append_printf(out, "\\u%04X", (guint)*c);
        else
            g_string_append_c(out, *c);
    }
    g_string_append_c(out, '"');
}

char *
eb_config_check_money(const char *text)
{
    guint64 micros;

    return eb_money_parse(text, &micros)
               ? NULL
               : g_strdup("is no amount of money: a number with at most six places, \"2.50\"");
}

char *
eb_config_check_currency(const char *text)
{
    gsize length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return length == 3 && text[3] == '\0' ? NULL : g_strdup("is no currency: three capital letters, \"USD\"");
}

char *
eb_config_check_price(const char *text)
{
    EbPrice *price = eb_price_parse(text);

    if (price == NULL)
        return g_strdup("is no price: \"MODEL INPUT OUTPUT [CACHED [WRITTEN]]\", for a million tokens");
    eb_price_free(price);
    return NULL;
}
