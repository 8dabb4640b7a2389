/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-address.h"

#include <arpa/inet.h>
#include <string.h>

typedef struct {
    guint8 prefix[16];
    guint8 bits;
    const char *why;
} Range;

/* The IANA registries of special-purpose addresses, plus multicast and what was withdrawn but may still be routed. */
static const Range RANGES_V4[] = {
    {{0}, 8, "this network"},
    {{10}, 8, "private"},
    {{100, 64}, 10, "carrier-grade NAT"},
    {{127}, 8, "loopback"},
    {{169, 254}, 16, "link-local"},
    {{172, 16}, 12, "private"},
    {{192, 0, 0}, 24, "protocol assignments"},
    {{192, 0, 2}, 24, "documentation"},
    {{192, 31, 196}, 24, "AS112"},
    {{192, 52, 193}, 24, "AMT"},
    {{192, 88, 99}, 24, "6to4 relay"},
    {{192, 168}, 16, "private"},
    {{192, 175, 48}, 24, "AS112"},
    {{198, 18}, 15, "benchmarking"},
    {{198, 51, 100}, 24, "documentation"},
    {{203, 0, 113}, 24, "documentation"},
    {{224}, 4, "multicast"},
    {{240}, 4, "reserved"},
};

static const Range RANGES_V6[] = {
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "local NAT64"},
    {{0x01, 0x00}, 64, "discard-only"},
    {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
    {{0x20, 0x01}, 23, "protocol assignments"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x20, 0x02}, 16, "6to4"},
    {{0x26, 0x20, 0x00, 0x4f, 0x80}, 48, "AS112"},
    {{0x3f, 0xff}, 20, "documentation"},
    {{0x5f, 0x00}, 16, "segment routing"},
    {{0xfc}, 7, "unique local"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "site-local"},
    {{0xff}, 8, "multicast"},
};

static const guint8 NAT64_PREFIX[12] = {0x00, 0x64, 0xff, 0x9b};
static const guint8 MAPPED_PREFIX[12] = {[10] = 0xff, [11] = 0xff};
static const guint8 ZEROS[16];

static gboolean
in_range(const guint8 *bytes, const Range *range)
{
    guint whole = range->bits / 8, rest = range->bits % 8;
    guint8 mask = (guint8)(0xff << (8 - rest));

    if (memcmp(bytes, range->prefix, whole) != 0)
        return FALSE;
    return rest == 0 || (bytes[whole] & mask) == (range->prefix[whole] & mask);
}

static const char *
find_range(const guint8 *bytes, const Range *ranges, gsize n_ranges)
{
    for (gsize i = 0; i < n_ranges; i++) {
        if (in_range(bytes, &ranges[i]))
            return ranges[i].why;
    }
    return NULL;
}

const char *
eb_address_special(const EbAddress *address)
{
    const guint8 *bytes = address->bytes;
    const char *why;

    if (address->length == 4)
        return find_range(bytes, RANGES_V4, G_N_ELEMENTS(RANGES_V4));
    if (address->length != 16)
        return "not an address";
    if (memcmp(bytes, ZEROS, 15) == 0 && bytes[15] <= 1)
        return bytes[15] == 0 ? "unspecified" : "loopback";
    if (memcmp(bytes, MAPPED_PREFIX, 12) == 0 || memcmp(bytes, NAT64_PREFIX, 12) == 0 || memcmp(bytes, ZEROS, 12) == 0)
        return find_range(bytes + 12, RANGES_V4, G_N_ELEMENTS(RANGES_V4));
    why = find_range(bytes, RANGES_V6, G_N_ELEMENTS(RANGES_V6));
    if (why != NULL)
        return why;
    /* 2000::/3 is all that was ever given out as global unicast. */
    return (bytes[0] & 0xe0) == 0x20 ? NULL : "unassigned";
}

gboolean
eb_address_parse(const char *text, EbAddress *address)
{
    EbAddress parsed = {0};

    /* inet_pton() takes no zone, no port, no octal, no short forms; leading zeros are refused since glibc 2.0. */
    if (inet_pton(AF_INET, text, parsed.bytes) == 1)
        parsed.length = 4;
    else if (inet_pton(AF_INET6, text, parsed.bytes) == 1)
        parsed.length = 16;
    else
        return FALSE;
    *address = parsed;
    return TRUE;
}

void
eb_address_format(const EbAddress *address, char *text)
{
    if (inet_ntop(address->length == 4 ? AF_INET : AF_INET6, address->bytes, text, EB_ADDRESS_TEXT) == NULL)
        g_strlcpy(text, "?", EB_ADDRESS_TEXT);
}

gboolean
eb_address_equal(const EbAddress *a, const EbAddress *b)
{
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}
