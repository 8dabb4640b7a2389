/* SPDX-License-Identifier: MIT */
/* Whatever base URL the configuration accepts, a broker takes: nobody may find out by a session that is refused. */
#include "core/broker/eb-broker-config.h"
#include "core/config/eb-config-schema.h"
#include "eb-test.h"

static gboolean
broker_takes(const char *url)
{
    EbProvider provider = {.name = (char *)"x"};
    gboolean good = eb_provider_set_url(&provider, url, NULL);

    g_free(provider.base_path);
    return good;
}

static gboolean
config_takes(const char *url)
{
    g_autofree char *wrong = eb_config_check_base_url(url);

    return wrong == NULL;
}

static void
test_known(void)
{
    static const struct {
        const char *url;
        gboolean good;
    } URLS[] = {
        {"https://api.anthropic.com", TRUE},
        {"https://api.openai.com/v1", TRUE},
        {"HTTPS://API.Example.COM:8443/a/b/", TRUE},
        {"https://203.0.113.7/v1", TRUE},
        {"https://[2001:db8::1]:8443", TRUE},
        {"https://[2001:db8::0]/v1", TRUE},
        {"http://127.0.0.1:11434", TRUE},
        {"http://[::1]:11434/v1", TRUE},
        {"http://localhost:11434", FALSE},
        {"http://example.com", FALSE},
        {"ftp://example.com", FALSE},
        {"https://127.1", FALSE},
        {"https://2130706433", FALSE},
        {"https://0x7f000001", FALSE},
        {"https://a.0x1", FALSE},
        {"https://ex%61mple.com", FALSE},
        {"https://example.com/a%2fb", FALSE},
        {"https://example.com/a b", FALSE},
        {"https://example.com/a\\b", FALSE},
        {"https://example.com/?a", FALSE},
        {"https://example.com/#a", FALSE},
        {"https://me:secret@example.com", FALSE},
        {"https://example.com:0", FALSE},
        {"https://example.com:0443", FALSE},
        {"https://example.com:/v1", FALSE},
        {"https://[:]", FALSE},
        {"https://b\xc3\xbc"
         "cher.example",
         FALSE},
        {"https://example.com:99999", FALSE},
        {"https://[fe80::1%25eth0]", FALSE},
        {"https://-x.com", FALSE},
        {"https://", FALSE},
        {"", FALSE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(URLS); i++) {
        g_test_message("%s", URLS[i].url);
        g_assert_cmpint(config_takes(URLS[i].url), ==, URLS[i].good);
        g_assert_cmpint(broker_takes(URLS[i].url), ==, URLS[i].good);
    }
}

/* Put together from what URLs are made of, and what they should not be. */
static void
test_made(void)
{
    static const char *const PARTS[] = {"https", "http",      "://", "/",    ":",        "@",   ".",   "example", "com",
                                        "1",     "0x7f",      "127", "[",    "]",        "::1", "443", "%2",      "\\",
                                        "?",     "#",         "-",   "_",    "\xc3\xa4", " ",   "\t",  "\x01",    "..",
                                        "//",    "127.0.0.1", "0",   "xn--", "A",        "a"};
    guint taken = 0;

    for (guint i = 0; i < 60000; i++) {
        g_autoptr(GString) url = g_string_new(i % 2 == 0 ? "https://" : "http://127.0.0.1");
        guint n = (guint)g_test_rand_int_range(1, 7);

        for (guint k = 0; k < n; k++)
            g_string_append(url, PARTS[g_test_rand_int_range(0, G_N_ELEMENTS(PARTS))]);
        if (!config_takes(url->str))
            continue;
        taken++;
        if (!broker_takes(url->str))
            g_error("the configuration takes \"%s\", and a broker does not", url->str);
    }
    g_assert_cmpuint(taken, >, 100);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/provider-url/known", test_known);
    g_test_add_func("/broker/provider-url/made", test_made);
    return g_test_run();
}
