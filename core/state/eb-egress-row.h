/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_EGRESS_HASH: bytes of a row's hash (BLAKE2b). */
#define EB_EGRESS_HASH 32
/** EB_EGRESS_TEXT: bytes of one text of a row: a host name, and room to spare. */
#define EB_EGRESS_TEXT 260

/** EbEgressRow: one connection of a guest. No path, no query, no header, no body: there is no field for any. */
typedef struct {
    gint64 seq; /* in its session, from 1; given by the store */
    char *session;
    gint64 at_ms; /* unix: when it was over */
    char *kind;   /* connect, http, provider, broker */
    char *host;   /* (nullable) */
    char *address;
    guint port;
    guint64 bytes_up, bytes_down, ms;
    char *decision; /* allowed, broken-off, or a refusal's code */
    char *rule;     /* (nullable) */
    char *provider; /* (nullable) */
    guint status;
    guint64 lost; /* rows missing before this one */
    guint8 previous[EB_EGRESS_HASH];
    guint8 hash[EB_EGRESS_HASH];
} EbEgressRow;

/**
 * eb_egress_row_new: (transfer full): from what a broker reports (the signal "audit"). A broker meets guests, so texts
 * are cut to EB_EGRESS_TEXT and hold nothing that a name, an address or a code does not.
 */
EbEgressRow *eb_egress_row_new(const char *session, JsonObject *report);
void eb_egress_row_free(EbEgressRow *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbEgressRow, eb_egress_row_free)

/** eb_egress_row_seal: sets seq, previous and hash. The hash covers every field, with lengths, and the previous hash. */
void eb_egress_row_seal(EbEgressRow *self, gint64 seq, const guint8 *previous);
/** eb_egress_row_check: TRUE when the hash is that of the fields. */
gboolean eb_egress_row_check(const EbEgressRow *self);
/** eb_egress_row_to_json: (transfer full): as `sessions logs --egress --json` shows it. */
JsonObject *eb_egress_row_to_json(const EbEgressRow *self);

G_END_DECLS
