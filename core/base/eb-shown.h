/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>

/** eb_is_shown: FALSE: a terminal or a chat would act on @c, or show in another order what it stands in; eb_log_escape() goes by the same. */
static inline gboolean
eb_is_shown(gunichar c)
{
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
    case G_UNICODE_SURROGATE:
        return FALSE;
    default:
        return TRUE;
    }
}
