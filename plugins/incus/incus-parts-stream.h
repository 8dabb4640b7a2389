/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** IncusPartsStream: several streams read one after the other; the body of an upload that is never in memory. */
#define INCUS_TYPE_PARTS_STREAM (incus_parts_stream_get_type())
G_DECLARE_FINAL_TYPE(IncusPartsStream, incus_parts_stream, INCUS, PARTS_STREAM, GInputStream)

/** incus_parts_stream_new: (transfer full) */
IncusPartsStream *incus_parts_stream_new(void);
/** incus_parts_stream_add: @part: (transfer full) */
void incus_parts_stream_add(IncusPartsStream *self, GInputStream *part);
/** incus_parts_stream_add_text: a copy of @text */
void incus_parts_stream_add_text(IncusPartsStream *self, const char *text);

G_END_DECLS
