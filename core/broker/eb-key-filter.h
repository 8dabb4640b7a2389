/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_KEY_FILTER_MIN: shorter keys would be found by chance. */
#define EB_KEY_FILTER_MIN 8
/** EB_KEY_FILTER_LEAD: bytes of the key kept outside its locked pages: what providers put before every key ("sk-"). */
#define EB_KEY_FILTER_LEAD 3

/**
 * EbKeyFilter: blots a key out of what comes back, byte for byte, so that lengths stay. A provider, or what was set up
 * as one, may echo the request's headers. Holds back only what could be the beginning of the key.
 */
typedef struct {
    EbSecret *key;                 /* (owned) (nullable): NULL = everything passes */
    char lead[EB_KEY_FILTER_LEAD]; /* how the key begins: what does not hold that needs no look at the key */
    gsize held;                    /* bytes of the key that ended the last piece */
    GByteArray *out;
} EbKeyFilter;

void eb_key_filter_init(EbKeyFilter *self, EbSecret *key);
void eb_key_filter_clear(EbKeyFilter *self);
/** eb_key_filter_run: what may be passed on of @bytes and what was held; valid until the next call, or @bytes itself. */
const char *eb_key_filter_run(EbKeyFilter *self, const char *bytes, gsize length, gsize *n_out);
/** eb_key_filter_end: what is still held when nothing follows. */
const char *eb_key_filter_end(EbKeyFilter *self, gsize *n_out);
/** eb_key_filter_finds: TRUE when @text holds the key. */
gboolean eb_key_filter_finds(EbKeyFilter *self, const char *text);

G_END_DECLS
