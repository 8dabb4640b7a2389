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
