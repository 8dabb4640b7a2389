/* SPDX-License-Identifier: MIT */
#pragma once

#include "ds-world.h"

#include <libsoup/soup.h>

G_BEGIN_DECLS

/** ds_record_open: from now on everything that bots send is appended to the file at @path. */
gboolean ds_record_open(DsWorld *world, const char *path, GError **error);
/** ds_record_request: line, headers and body of a request, byte for byte; the token where it belongs is left out. */
void ds_record_request(DsWorld *world, SoupServerMessage *message);
/** ds_record_frame: what came over a gateway's connection, likewise. */
void ds_record_frame(DsWorld *world, const char *text, gsize length);

G_END_DECLS
