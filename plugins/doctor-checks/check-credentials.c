/* SPDX-License-Identifier: MIT */
#include "check-credentials.h"

#include "check-context.h"

#include <string.h>

void
dc_credentials_read(EbConfigSection *settings, DcCredentials *credentials)
{
    g_autofree char *text = dc_setting(settings, "credentials.list", NULL);
    g_autofree char *now = dc_setting(settings, "now", NULL);

    *credentials = (DcCredentials){
        .list = text != NULL ? eb_json_parse(text, strlen(text), &EB_JSON_LIMITS_SMALL, NULL) : NULL,
        .problem = dc_setting(settings, "credentials.problem", NULL),
        /* Named by fixtures alone. */
        .now = now != NULL ? g_ascii_strtoll(now, NULL, 10) : g_get_real_time() / G_USEC_PER_SEC,
    };
}

void
dc_credentials_clear(DcCredentials *self)
{
    g_clear_pointer(&self->list, json_node_unref);
    g_clear_pointer(&self->problem, g_free);
}

JsonObject *
dc_credentials_find(const DcCredentials *self, const char *name)
{
    JsonArray *all = eb_json_get_array(eb_json_node_object(self->list), "credentials");

    for (guint i = 0; all != NULL && i < json_array_get_length(all); i++) {
        JsonObject *one = eb_json_array_object(all, i);
        if (g_strcmp0(eb_json_get_string(one, "name"), name) == 0 && eb_json_get_bool(one, "used", FALSE))
            return one;
    }
    return NULL;
}

gint64
dc_credential_end(JsonObject *credential)
{
    const char *text = eb_json_get_string(credential, "expires");
    g_autoptr(GDateTime) when = text != NULL ? g_date_time_new_from_iso8601(text, NULL) : NULL;

    return when != NULL ? g_date_time_to_unix(when) : 0;
}

gboolean
dc_credential_is_over(const DcCredentials *self, JsonObject *credential)
{
    gint64 end = dc_credential_end(credential);

    return end != 0 && end <= self->now;
}
