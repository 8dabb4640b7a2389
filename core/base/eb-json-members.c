/* SPDX-License-Identifier: MIT */
#include "core/base/eb-json-members.h"

void
eb_json_set_text_or_null(JsonObject *object, const char *member, const char *text)
{
    if (text != NULL)
        json_object_set_string_member(object, member, text);
    else
        json_object_set_null_member(object, member);
}

void
eb_json_set_time(JsonObject *object, const char *member, gint64 unix_ms)
{
    g_autoptr(GDateTime) moment = g_date_time_new_from_unix_utc(unix_ms / 1000);
    g_autofree char *text = moment != NULL ? g_date_time_format_iso8601(moment) : NULL;

    json_object_set_string_member(object, member, text != NULL ? text : "");
}
