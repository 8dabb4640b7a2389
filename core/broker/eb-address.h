/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * EbAddress: an IP address as bytes in network order. Pure: no resolver, no zone ids.
 */
typedef struct {
    guint8 length; /* 4 or 16 */
    guint8 bytes[16];
} EbAddress;

/** eb_address_parse: strict: dotted quad of four decimals without leading zeros, or RFC 4291 text without a zone. */
gboolean eb_address_parse(const char *text, EbAddress *address);
/** EB_ADDRESS_TEXT: room for any address as text. */
#define EB_ADDRESS_TEXT 46
/** eb_address_format: @text: room for EB_ADDRESS_TEXT bytes. */
void eb_address_format(const EbAddress *address, char *text);
gboolean eb_address_equal(const EbAddress *a, const EbAddress *b);

/**
 * eb_address_special:
 *
 * Returns: (nullable) (transfer none): NULL for an address of the public internet; otherwise why it is not one, e.g.
 * "loopback". Addresses that carry an IPv4 address (mapped, compatible, NAT64) are judged by that one.
 */
const char *eb_address_special(const EbAddress *address);

G_END_DECLS
