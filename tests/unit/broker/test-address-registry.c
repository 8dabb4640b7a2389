/* SPDX-License-Identifier: MIT */
/*
 * Every row of the two IANA registries, iana-ipv4-special-registry and iana-ipv6-special-registry, as they stood in
 * November 2026, each with the document it comes from: its first and its last address, and those of every bit length in
 * between, are not of the public internet. Rows that IANA calls globally reachable are refused too: they are anycast
 * services of the network a host is in, not hosts.
 */
#include <string.h>

#include "core/broker/eb-address.h"
#include "eb-test.h"

typedef struct {
    const char *prefix;
    guint bits;
    const char *name;
    const char *document;
} Row;

static const Row V4[] = {
    {"0.0.0.0", 8, "this network", "RFC 791, section 3.2"},
    {"0.0.0.0", 32, "this host on this network", "RFC 1122, section 3.2.1.3"},
    {"10.0.0.0", 8, "private use", "RFC 1918"},
    {"100.64.0.0", 10, "shared address space", "RFC 6598"},
    {"127.0.0.0", 8, "loopback", "RFC 1122, section 3.2.1.3"},
    {"169.254.0.0", 16, "link local", "RFC 3927"},
    {"172.16.0.0", 12, "private use", "RFC 1918"},
    {"192.0.0.0", 24, "IETF protocol assignments", "RFC 6890, section 2.1"},
    {"192.0.0.0", 29, "IPv4 service continuity prefix", "RFC 7335"},
    {"192.0.0.8", 32, "IPv4 dummy address", "RFC 7600"},
    {"192.0.0.9", 32, "port control protocol anycast", "RFC 7723"},
    {"192.0.0.10", 32, "TURN anycast", "RFC 8155"},
    {"192.0.0.170", 32, "NAT64/DNS64 discovery", "RFC 8880"},
    {"192.0.0.171", 32, "NAT64/DNS64 discovery", "RFC 7050, section 2.2"},
    {"192.0.2.0", 24, "documentation (TEST-NET-1)", "RFC 5737"},
    {"192.31.196.0", 24, "AS112-v4", "RFC 7535"},
    {"192.52.193.0", 24, "AMT", "RFC 7450"},
    {"192.88.99.0", 24, "deprecated (6to4 relay anycast)", "RFC 7526"},
    {"192.88.99.2", 32, "6a44-relay anycast", "RFC 6751"},
    {"192.168.0.0", 16, "private use", "RFC 1918"},
    {"192.175.48.0", 24, "direct delegation AS112", "RFC 7534"},
    {"198.18.0.0", 15, "benchmarking", "RFC 2544"},
    {"198.51.100.0", 24, "documentation (TEST-NET-2)", "RFC 5737"},
    {"203.0.113.0", 24, "documentation (TEST-NET-3)", "RFC 5737"},
    {"240.0.0.0", 4, "reserved", "RFC 1112, section 4"},
    {"255.255.255.255", 32, "limited broadcast", "RFC 8190"},
    /* Not in that registry: iana multicast-addresses. */
    {"224.0.0.0", 4, "multicast", "RFC 5771"},
};

static const Row V6[] = {
    {"::1", 128, "loopback", "RFC 4291"},
    {"::", 128, "unspecified", "RFC 4291"},
    {"64:ff9b:1::", 48, "IPv4-IPv6 translation", "RFC 8215"},
    {"100::", 64, "discard-only", "RFC 6666"},
    {"100:0:0:1::", 64, "dummy prefix", "RFC 9780"},
    {"2001::", 23, "IETF protocol assignments", "RFC 2928"},
    {"2001::", 32, "Teredo", "RFC 4380"},
    {"2001:1::1", 128, "port control protocol anycast", "RFC 7723"},
    {"2001:1::2", 128, "TURN anycast", "RFC 8155"},
    {"2001:1::3", 128, "DNS-SD service registration protocol anycast", "RFC 9665"},
    {"2001:2::", 48, "benchmarking", "RFC 5180"},
    {"2001:3::", 32, "AMT", "RFC 7450"},
    {"2001:4:112::", 48, "AS112-v6", "RFC 7535"},
    {"2001:10::", 28, "deprecated (ORCHID)", "RFC 4843"},
    {"2001:20::", 28, "ORCHIDv2", "RFC 7343"},
    {"2001:30::", 28, "drone remote ID", "RFC 9374"},
    {"2001:db8::", 32, "documentation", "RFC 3849"},
    {"2002::", 16, "6to4", "RFC 3056"},
    {"2620:4f:8000::", 48, "direct delegation AS112", "RFC 7534"},
    {"3fff::", 20, "documentation", "RFC 9637"},
    {"5f00::", 16, "segment routing SIDs", "RFC 9602"},
    {"fc00::", 7, "unique local", "RFC 4193"},
    {"fe80::", 10, "link local unicast", "RFC 4291"},
    /* Not in that registry: withdrawn, and other registries. */
    {"fec0::", 10, "site local", "RFC 3879"},
    {"ff00::", 8, "multicast", "RFC 4291"},
    {"::ffff:0:0:0", 96, "IPv4-translated", "RFC 2765"},
    {"4000::", 3, "unassigned", "RFC 4291"},
    {"8000::", 1, "unassigned", "RFC 4291"},
};

/* Rows that carry an IPv4 address, which decides. */
static const Row CARRIERS[] = {
    {"::ffff:0:0", 96, "IPv4-mapped", "RFC 4291"},
    {"64:ff9b::", 96, "IPv4-IPv6 translation", "RFC 6052"},
    {"::", 96, "IPv4-compatible, withdrawn", "RFC 4291, section 2.5.5.1"},
};

static const char *const OUTSIDE[] = {
    "1.0.0.0",      "9.255.255.255",   "11.0.0.0",     "100.63.255.255",  "100.128.0.0",    "126.255.255.255",
    "128.0.0.0",    "169.253.255.255", "169.255.0.0",  "172.15.255.255",  "172.32.0.0",     "191.255.255.255",
    "192.0.1.0",    "192.0.1.255",     "192.0.3.0",    "192.31.195.255",  "192.31.197.0",   "192.52.192.255",
    "192.52.194.0", "192.88.98.255",   "192.88.100.0", "192.167.255.255", "192.169.0.0",    "192.175.47.255",
    "192.175.49.0", "198.17.255.255",  "198.20.0.0",   "198.51.99.255",   "198.51.101.0",   "203.0.112.255",
    "203.0.114.0",  "223.255.255.255", "2000::",       "2000:ffff::",     "2001:200::",     "2001:db7:ffff::",
    "2001:db9::",   "2001:ffff::",     "2003::",       "2620:4f:7fff::",  "2620:4f:8001::", "3ffe:ffff::",
    "3fff:1000::",  "3fff:ffff::",
};

static void
check_special(const EbAddress *address, const Row *row)
{
    char text[EB_ADDRESS_TEXT];

    eb_address_format(address, text);
    if (eb_address_special(address) == NULL)
        g_error("%s of %s/%u (%s, %s) counts as public", text, row->prefix, row->bits, row->name, row->document);
}

/* The first address, the last, and those where one more bit of the free part is set. */
static void
check_row(const Row *row)
{
    EbAddress first, other;

    g_assert_true(eb_address_parse(row->prefix, &first));
    check_special(&first, row);
    other = first;
    for (guint bit = first.length * 8u; bit-- > row->bits;) {
        EbAddress one = first;

        one.bytes[bit / 8] |= (guint8)(0x80 >> bit % 8);
        other.bytes[bit / 8] |= (guint8)(0x80 >> bit % 8);
        check_special(&one, row);
        check_special(&other, row);
    }
}

static void
test_rows(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(V4); i++)
        check_row(&V4[i]);
    for (gsize i = 0; i < G_N_ELEMENTS(V6); i++)
        check_row(&V6[i]);
}

static void
test_outside(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(OUTSIDE); i++) {
        EbAddress address;

        g_test_message("%s", OUTSIDE[i]);
        g_assert_true(eb_address_parse(OUTSIDE[i], &address));
        g_assert_cmpstr(eb_address_special(&address), ==, NULL);
    }
}

static void
test_carried(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(CARRIERS); i++) {
        EbAddress carrier, inner;

        g_assert_true(eb_address_parse(CARRIERS[i].prefix, &carrier));
        for (gsize j = 0; j < G_N_ELEMENTS(V4); j++) {
            g_assert_true(eb_address_parse(V4[j].prefix, &inner));
            memcpy(carrier.bytes + 12, inner.bytes, 4);
            check_special(&carrier, &CARRIERS[i]);
        }
        g_assert_true(eb_address_parse("8.8.8.8", &inner));
        memcpy(carrier.bytes + 12, inner.bytes, 4);
        g_assert_cmpstr(eb_address_special(&carrier), ==, NULL);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/broker/registry/rows", test_rows);
    g_test_add_func("/broker/registry/outside", test_outside);
    g_test_add_func("/broker/registry/carried", test_carried);
    return g_test_run();
}
