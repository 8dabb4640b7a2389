/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-error.h"

/* What the default vfuncs of the interfaces are made of, and the last guard of the error domain. */

/** eb_report_not_supported: completes an operation with EB_ERROR_NOT_SUPPORTED; @tag: the vfunc; @what: its name. */
static inline void
eb_report_not_supported(gpointer source, GAsyncReadyCallback callback, gpointer user_data, gpointer tag,
                        const char *what)
{
    g_task_report_error(
        source, callback, user_data, tag,
        eb_error_new(EB_ERROR_NOT_SUPPORTED, "sdk.not-supported", "%s cannot %s", G_OBJECT_TYPE_NAME(source), what));
}

/** eb_border_pointer: @result as it is; a foreign error that a plugin let through becomes an EB_ERROR. */
static inline gpointer
eb_border_pointer(gpointer result, GError **error)
{
    if (result == NULL)
        eb_error_convert(error, NULL, NULL);
    return result;
}

/** eb_border_boolean: as eb_border_pointer(). */
static inline gboolean
eb_border_boolean(gboolean result, GError **error)
{
    if (!result)
        eb_error_convert(error, NULL, NULL);
    return result;
}
