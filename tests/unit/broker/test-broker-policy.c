/* SPDX-License-Identifier: MIT */
/* Addresses, targets, rules: tables of what is let through and what is not. */
#include <string.h>

#include "core/broker/eb-broker-config.h"
#include "core/broker/eb-broker-dial.h"
#include "core/broker/eb-broker-policy.h"
#include "eb-test.h"

static const char *const PUBLIC[] = {
    "1.1.1.1",     "8.8.8.8",     "9.255.255.255",   "11.0.0.0",         "100.63.255.255",   "100.128.0.0",
    "126.1.2.3",   "128.0.0.1",   "169.253.255.255", "169.255.0.0",      "172.15.255.255",   "172.32.0.0",
    "192.0.1.0",   "192.0.3.0",   "192.167.255.255", "192.169.0.0",      "198.17.255.255",   "198.20.0.0",
    "203.0.114.0", "223.255.0.1", "2606:4700::1111", "2a00:1450::200e",  "2001:200::1",      "2001:4860::8888",
    "2003::1",     "2400::1",     "::ffff:8.8.8.8",  "64:ff9b::8.8.8.8", "64:ff9b::808:808",
};

static const char *const SPECIAL[] = {
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
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
    "203.0.113.9",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::127.0.0.1",
    "::10.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.1.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:4136:e378::",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "4000::1",
    "8000::1",
    "1::1",
};

static void
test_addresses(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(PUBLIC); i++) {
        EbAddress address;

        g_assert_true(eb_address_parse(PUBLIC[i], &address));
        g_test_message("%s: %s", PUBLIC[i], eb_address_special(&address));
        g_assert_null(eb_address_special(&address));
    }
    for (gsize i = 0; i < G_N_ELEMENTS(SPECIAL); i++) {
        EbAddress address;

        g_assert_true(eb_address_parse(SPECIAL[i], &address));
        g_test_message("%s", SPECIAL[i]);
        g_assert_nonnull(eb_address_special(&address));
    }
}

static void
test_address_text(void)
{
    static const char *const BAD[] = {"",          "1",     "127.1",     "0x7f.0.0.1",  "0177.0.0.1", "127.0.0.01",
                                      "1.2.3.4.5", "1.2.3", "256.1.1.1", "::1%lo",      "fe80::1%1",  "[::1]",
                                      "1.2.3.4 ",  "::g",   "1::2::3",   "127.0.0.1:80"};
    char text[EB_ADDRESS_TEXT];
    EbAddress address;

    for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
        g_test_message("\"%s\"", BAD[i]);
        g_assert_false(eb_address_parse(BAD[i], &address));
    }
    g_assert_true(eb_address_parse("2001:DB8:0:0:0:0:0:1", &address));
    eb_address_format(&address, text);
    g_assert_cmpstr(text, ==, "2001:db8::1");
}

typedef struct {
    const char *text;
    guint16 default_port;
    const char *host; /* NULL: refused */
    guint16 port;
} TargetRow;

static const TargetRow TARGETS[] = {
    {"example.com:443", 0, "example.com", 443},
    {"EXAMPLE.com:443", 0, "example.com", 443},
    {"example.com.:443", 0, "example.com", 443},
    {"example.com", 80, "example.com", 80},
    {"a_b.example.com:1", 0, "a_b.example.com", 1},
    {"xn--bcher-kva.example:443", 0, "xn--bcher-kva.example", 443},
    {"127.0.0.1:80", 0, "127.0.0.1", 80},
    {"[::1]:80", 0, "::1", 80},
    {"[2001:DB8::1]:443", 0, "2001:db8::1", 443},
    {"[::ffff:1.2.3.4]", 80, "::ffff:1.2.3.4", 80},
    {"host:65535", 0, "host", 65535},
    {"example.com", 0, NULL, 0},
    {"example.com:", 80, NULL, 0},
    {"example.com:0", 80, NULL, 0},
    {"example.com:00443", 80, NULL, 0},
    {"example.com:65536", 80, NULL, 0},
    {"example.com:443443", 80, NULL, 0},
    {"example.com:+443", 80, NULL, 0},
    {"example.com: 443", 80, NULL, 0},
    {"example.com:443x", 80, NULL, 0},
    {"user@example.com:443", 0, NULL, 0},
    {"user:pass@example.com:443", 0, NULL, 0},
    {"example.com/x:443", 0, NULL, 0},
    {"example.com:443/x", 0, NULL, 0},
    {"exam ple.com:443", 0, NULL, 0},
    {"exa%6dple.com:443", 0, NULL, 0},
    {"b\xc3\xbc"
     "cher.example:443",
     0, NULL, 0},
    {"example\xe3\x80\x82"
     "com:443",
     0, NULL, 0},
    {"example..com:443", 0, NULL, 0},
    {".example.com:443", 0, NULL, 0},
    {"example.com..:443", 0, NULL, 0},
    {"-a.example.com:443", 0, NULL, 0},
    {"a-.example.com:443", 0, NULL, 0},
    {":443", 0, NULL, 0},
    {".:443", 0, NULL, 0},
    {"", 80, NULL, 0},
    {"127.1:80", 0, NULL, 0},
    {"2130706433:80", 0, NULL, 0},
    {"0x7f000001:80", 0, NULL, 0},
    {"0x7f.1:80", 0, NULL, 0},
    {"0177.0.0.1:80", 0, NULL, 0},
    {"127.0.0.1.:80", 0, "127.0.0.1", 80},
    {"1.2.3.4.5:80", 0, NULL, 0},
    {"foo.0x10:80", 0, NULL, 0},
    {"[::1:80", 0, NULL, 0},
    {"[]:80", 0, NULL, 0},
    {"[fe80::1%eth0]:80", 0, NULL, 0},
    {"[fe80::1%25eth0]:80", 0, NULL, 0},
    {"[127.0.0.1]:80", 0, NULL, 0},
    {"[::1]80", 0, NULL, 0},
    {"::1:80", 0, NULL, 0},
    {"*.example.com:443", 0, NULL, 0},
};

static void
test_targets(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(TARGETS); i++) {
        const TargetRow *row = &TARGETS[i];
        const char *why = NULL;
        EbTarget target;
        gboolean good = eb_target_parse(row->text, strlen(row->text), row->default_port, &target, &why);

        g_test_message("\"%s\": %s", row->text, good ? target.host : why);
        g_assert_cmpint(good, ==, row->host != NULL);
        if (good) {
            g_assert_cmpstr(target.host, ==, row->host);
            g_assert_cmpuint(target.port, ==, row->port);
        } else {
            g_assert_nonnull(why);
        }
    }
}

static void
test_target_bounds(void)
{
    g_autofree char *label = g_strnfill(64, 'a');
    g_autoptr(GString) name = g_string_new(NULL);
    EbTarget target;

    g_assert_false(eb_target_parse(label, 64, 1, &target, NULL));
    g_assert_true(eb_target_parse(label, 63, 1, &target, NULL));
    while (name->len < 251)
        g_string_append(name, "a.");
    g_string_append(name, "aa");
    g_assert_cmpuint(name->len, ==, 254);
    g_assert_false(eb_target_parse(name->str, 254, 1, &target, NULL));
    g_assert_true(eb_target_parse(name->str, 253, 1, &target, NULL));
    /* A NUL cuts no name short. */
    g_assert_false(eb_target_parse("good.test\0.evil.test:443", 24, 0, &target, NULL));
    g_assert_false(eb_target_parse("[::1\0]:443", 10, 0, &target, NULL));
}

typedef struct {
    const char *target;
    EbVerdict verdict;
    const char *rule;
} JudgeRow;

static void
judge_all(EbPolicy *policy, const JudgeRow *rows, gsize n_rows)
{
    for (gsize i = 0; i < n_rows; i++) {
        const char *rule = NULL;
        EbTarget target;

        g_test_message("%s", rows[i].target);
        g_assert_true(eb_target_parse(rows[i].target, strlen(rows[i].target), 443, &target, NULL));
        g_assert_cmpint(eb_policy_judge(policy, &target, &rule), ==, rows[i].verdict);
        g_assert_cmpstr(rule, ==, rows[i].rule);
    }
}

static void
test_rules(void)
{
    static const char *const ALLOW[] = {"Example.com",  "*.wild.test.", "8.8.8.8",       "10.0.0.1",
                                        "2606:4700::1", "localhost",    "sub.localhost", NULL};
    static const guint16 PORTS[] = {443, 80};
    static const JudgeRow ROWS[] = {
        {"example.com", EB_VERDICT_ALLOWED, "Example.com"},
        {"example.com.:80", EB_VERDICT_ALLOWED, "Example.com"},
        {"example.com:22", EB_VERDICT_PORT, NULL},
        {"www.example.com", EB_VERDICT_HOST, NULL},
        {"notexample.com", EB_VERDICT_HOST, NULL},
        {"example.com.evil.test", EB_VERDICT_HOST, NULL},
        {"wild.test", EB_VERDICT_HOST, NULL},
        {"a.wild.test", EB_VERDICT_ALLOWED, "*.wild.test."},
        {"A.B.WILD.test", EB_VERDICT_ALLOWED, "*.wild.test."},
        {"awild.test", EB_VERDICT_HOST, NULL},
        {"8.8.8.8", EB_VERDICT_ALLOWED, "8.8.8.8"},
        {"8.8.4.4", EB_VERDICT_HOST, NULL},
        {"[2606:4700:0:0::1]", EB_VERDICT_ALLOWED, "2606:4700::1"},
        {"10.0.0.1", EB_VERDICT_INTERNAL, NULL},
        {"127.0.0.1", EB_VERDICT_INTERNAL, NULL},
        {"[::1]", EB_VERDICT_INTERNAL, NULL},
        {"[::ffff:10.0.0.1]", EB_VERDICT_INTERNAL, NULL},
        {"169.254.169.254:80", EB_VERDICT_INTERNAL, NULL},
        {"localhost", EB_VERDICT_INTERNAL, NULL},
        {"sub.localhost", EB_VERDICT_INTERNAL, NULL},
    };
    static const JudgeRow INTERNAL[] = {
        {"10.0.0.1", EB_VERDICT_ALLOWED, "10.0.0.1"},
        {"10.0.0.2", EB_VERDICT_HOST, NULL},
        {"[::ffff:10.0.0.1]", EB_VERDICT_HOST, NULL},
        {"localhost", EB_VERDICT_INTERNAL, NULL},
    };
    static const JudgeRow CLOSED[] = {{"example.com", EB_VERDICT_CLOSED, NULL}};
    g_autoptr(EbPolicy) policy = eb_policy_new(TRUE, ALLOW, PORTS, 2, FALSE, NULL);
    g_autoptr(EbPolicy) internal = eb_policy_new(TRUE, ALLOW, PORTS, 2, TRUE, NULL);
    g_autoptr(EbPolicy) closed = eb_policy_new(FALSE, ALLOW, PORTS, 2, TRUE, NULL);

    judge_all(policy, ROWS, G_N_ELEMENTS(ROWS));
    judge_all(internal, INTERNAL, G_N_ELEMENTS(INTERNAL));
    judge_all(closed, CLOSED, G_N_ELEMENTS(CLOSED));
}

/* Rules as people write them, targets as clients send them. */
static void
test_international(void)
{
    static const char *const ALLOW[] = {"b\xc3\xbc"
                                        "cher.example",
                                        "*.\xe4\xbe\x8b\xe3\x81\x88.test", "XN--Mnchen-3ya.example", NULL};
    static const guint16 PORTS[] = {443};
    static const JudgeRow ROWS[] = {
        {"xn--bcher-kva.example", EB_VERDICT_ALLOWED,
         "b\xc3\xbc"
         "cher.example"},
        {"XN--BCHER-KVA.example.", EB_VERDICT_ALLOWED,
         "b\xc3\xbc"
         "cher.example"},
        {"xn--mnchen-3ya.example", EB_VERDICT_ALLOWED, "XN--Mnchen-3ya.example"},
        {"a.xn--r8jz45g.test", EB_VERDICT_ALLOWED, "*.\xe4\xbe\x8b\xe3\x81\x88.test"},
        {"xn--r8jz45g.test", EB_VERDICT_HOST, NULL},
        {"bucher.example", EB_VERDICT_HOST, NULL},
        {"bcher.example", EB_VERDICT_HOST, NULL},
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPolicy) policy = eb_policy_new(TRUE, ALLOW, PORTS, 1, FALSE, &error);

    g_assert_no_error(error);
    judge_all(policy, ROWS, G_N_ELEMENTS(ROWS));
}

/* Which answer wins: the later a check, the more a person can do about it. Nothing on the list opens what is inside. */
static void
test_precedence(void)
{
    static const char *const ALLOW[] = {"*.wild.test", "10.0.0.1", "8.8.8.8", NULL};
    static const guint16 PORTS[] = {443};
    static const JudgeRow OPEN[] = {
        {"a.wild.test:22", EB_VERDICT_PORT, NULL},
        {"other.test:22", EB_VERDICT_HOST, NULL},
        {"10.0.0.1:22", EB_VERDICT_INTERNAL, NULL},
        {"10.0.0.1:443", EB_VERDICT_INTERNAL, NULL},
        {"a.localhost:22", EB_VERDICT_INTERNAL, NULL},
        {"8.8.8.8:22", EB_VERDICT_PORT, NULL},
        {"a.b.wild.test:443", EB_VERDICT_ALLOWED, "*.wild.test"},
    };
    static const JudgeRow CLOSED[] = {
        {"a.wild.test:443", EB_VERDICT_CLOSED, NULL},
        {"10.0.0.1:443", EB_VERDICT_CLOSED, NULL},
        {"other.test:22", EB_VERDICT_CLOSED, NULL},
    };
    static const JudgeRow NOTHING[] = {
        {"a.wild.test:443", EB_VERDICT_PORT, NULL},
        {"other.test:443", EB_VERDICT_HOST, NULL},
    };
    g_autoptr(EbPolicy) open = eb_policy_new(TRUE, ALLOW, PORTS, 1, FALSE, NULL);
    g_autoptr(EbPolicy) closed = eb_policy_new(FALSE, ALLOW, PORTS, 1, TRUE, NULL);
    g_autoptr(EbPolicy) portless = eb_policy_new(TRUE, ALLOW, NULL, 0, FALSE, NULL);

    judge_all(open, OPEN, G_N_ELEMENTS(OPEN));
    judge_all(closed, CLOSED, G_N_ELEMENTS(CLOSED));
    judge_all(portless, NOTHING, G_N_ELEMENTS(NOTHING));
}

static void
test_bad_rules(void)
{
    static const char *const BAD[] = {"*",
                                      "",
                                      "*.",
                                      "*example.com",
                                      "a.*.com",
                                      "*.*.com",
                                      "https://example.com",
                                      "example.com:443",
                                      "*.10.0.0.1",
                                      "exa mple.com",
                                      "127.1",
                                      "user@example.com",
                                      "fa\xc3\x9f.example",
                                      "a\xe2\x80\x8d"
                                      "b.example",
                                      "\xef\xbd\x85vil.example",
                                      "a\xe3\x80\x82"
                                      "b.example",
                                      "a\xc2\xa0"
                                      "b.example",
                                      "a\xff.example"};

    for (gsize i = 0; i < G_N_ELEMENTS(BAD); i++) {
        const char *const allow[] = {BAD[i], NULL};
        g_autoptr(GError) error = NULL;
        g_autoptr(EbPolicy) policy = eb_policy_new(TRUE, allow, NULL, 0, FALSE, &error);

        g_test_message("\"%s\"", BAD[i]);
        g_assert_null(policy);
        eb_test_assert_error(error, EB_ERROR_CONFIG, "egress.rule", NULL);
    }
}

static GList *
addresses_of(const char *first, ...)
{
    GList *list = NULL;
    va_list arguments;

    va_start(arguments, first);
    for (const char *text = first; text != NULL; text = va_arg(arguments, const char *))
        list = g_list_append(list, g_inet_address_new_from_string(text));
    va_end(arguments);
    return list;
}

static void
test_rebinding(void)
{
    static const char *const ALLOW[] = {"rebind.test", "10.0.0.1", NULL};
    static const guint16 PORTS[] = {443};
    g_autoptr(EbPolicy) policy = eb_policy_new(TRUE, ALLOW, PORTS, 1, TRUE, NULL);
    EbAddress chosen[EB_DIAL_MAX_ADDRESSES];
    char text[EB_ADDRESS_TEXT];
    EbTarget target;
    GList *list;

    g_assert_true(eb_target_parse("rebind.test:443", 15, 0, &target, NULL));
    /* A name never reaches inside, not even when the address itself is allowed. */
    list = addresses_of("10.0.0.1", "127.0.0.1", "::1", "::ffff:10.0.0.1", "169.254.169.254", NULL);
    g_assert_cmpuint(eb_dial_select(policy, &target, list, chosen), ==, 0);
    g_resolver_free_addresses(list);
    /* Of a mixed answer the public ones alone are dialled, families in turn. */
    list = addresses_of("1.1.1.1", "10.0.0.1", "8.8.8.8", "2606:4700::1", "fd00::1", "2606:4700::2", NULL);
    g_assert_cmpuint(eb_dial_select(policy, &target, list, chosen), ==, 4);
    eb_address_format(&chosen[0], text);
    g_assert_cmpstr(text, ==, "1.1.1.1");
    eb_address_format(&chosen[1], text);
    g_assert_cmpstr(text, ==, "2606:4700::1");
    eb_address_format(&chosen[3], text);
    g_assert_cmpstr(text, ==, "2606:4700::2");
    g_resolver_free_addresses(list);
}

static void
test_provider_urls(void)
{
    static const struct {
        const char *url;
        const char *host; /* NULL: refused */
        guint16 port;
        const char *path;
    } ROWS[] = {
        {"https://api.anthropic.com", "api.anthropic.com", 443, ""},
        {"https://api.openai.com/v1/", "api.openai.com", 443, "/v1"},
        {"HTTPS://Host.test:8443/a/b", "host.test", 8443, "/a/b"},
        {"http://127.0.0.1:9000", "127.0.0.1", 9000, ""},
        {"http://[::1]:9000/v1", "::1", 9000, "/v1"},
        {"https://10.0.0.7/v1", "10.0.0.7", 443, "/v1"},
        {"http://api.anthropic.com", NULL, 0, NULL},
        {"http://localhost:9000", NULL, 0, NULL},
        {"http://10.0.0.7", NULL, 0, NULL},
        {"ftp://host.test", NULL, 0, NULL},
        {"https://user@host.test", NULL, 0, NULL},
        {"https://host.test/?key=1", NULL, 0, NULL},
        {"https://host.test/#x", NULL, 0, NULL},
        {"https://", NULL, 0, NULL},
        {"host.test", NULL, 0, NULL},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        EbProvider provider = {.name = (char *)"p"};
        g_autoptr(GError) error = NULL;
        gboolean good = eb_provider_set_url(&provider, ROWS[i].url, &error);

        g_test_message("%s", ROWS[i].url);
        g_assert_cmpint(good, ==, ROWS[i].host != NULL);
        if (good) {
            g_assert_cmpstr(provider.host.host, ==, ROWS[i].host);
            g_assert_cmpuint(provider.host.port, ==, ROWS[i].port);
            g_assert_cmpstr(provider.base_path, ==, ROWS[i].path);
        }
        g_free(provider.base_path);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/policy/addresses", test_addresses);
    g_test_add_func("/broker/policy/address-text", test_address_text);
    g_test_add_func("/broker/policy/targets", test_targets);
    g_test_add_func("/broker/policy/target-bounds", test_target_bounds);
    g_test_add_func("/broker/policy/rules", test_rules);
    g_test_add_func("/broker/policy/international", test_international);
    g_test_add_func("/broker/policy/precedence", test_precedence);
    g_test_add_func("/broker/policy/bad-rules", test_bad_rules);
    g_test_add_func("/broker/policy/rebinding", test_rebinding);
    g_test_add_func("/broker/policy/provider-urls", test_provider_urls);
    return g_test_run();
}
