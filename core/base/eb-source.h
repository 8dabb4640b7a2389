/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/** eb_clear_source: @source: (inout) (nullable): destroys it, drops our reference and forgets it. */
static inline void
eb_clear_source(GSource **source)
{
    if (*source == NULL)
        return;
    g_source_destroy(*source);
    g_clear_pointer(source, g_source_unref);
}

G_END_DECLS
