/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_REDACT_MAX_PATTERNS: of one secret; the raw form, the reversed one and the encodings come first, then its lines. */
#define EB_REDACT_MAX_PATTERNS 160

typedef struct {
    guint offset;
    guint length;
} EbRedactPattern;

/** EbRedactShapes: all forms of a secret that are searched, one behind the other in one block of secret memory. */
typedef struct {
    EbSecret *bytes; /* (owned) */
    EbRedactPattern patterns[EB_REDACT_MAX_PATTERNS];
    guint n_patterns;
} EbRedactShapes;

/** eb_redact_shapes_init: FALSE without secret memory. @min: shorter forms are left out. */
gboolean eb_redact_shapes_init(EbRedactShapes *self, EbSecret *secret, gsize min);
void eb_redact_shapes_clear(EbRedactShapes *self);

G_END_DECLS
