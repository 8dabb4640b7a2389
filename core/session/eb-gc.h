/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EbGcClass: one class of what dead runs leave behind: how much there was, how much went, how much is left. */
typedef struct {
    const char *name; /* static: a stable word for scripts */
    guint before, removed, after;
    guint64 bytes; /* that went, or would go; where they can be told */
    char *note;    /* (nullable): why the numbers are not the whole truth, or why something stays */
} EbGcClass;
EbGcClass *eb_gc_class_new(const char *name);
void eb_gc_class_free(EbGcClass *self);
/** eb_gc_class_note: the first one stays. */
void eb_gc_class_note(EbGcClass *self, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** eb_gc_to_json: (transfer full): {"schema":1,"plan":...,"classes":[{"class","before","removed","after","bytes","note"?}]} */
JsonNode *eb_gc_to_json(const GPtrArray *classes, gboolean plan);
/** eb_gc_class_to_json: (transfer full) */
JsonObject *eb_gc_class_to_json(const EbGcClass *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbGcClass, eb_gc_class_free)

G_END_DECLS
