/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-types.h"

#include <string.h>

/* Values named in an error message. */
#define SHOWN_VALUES 8

JsonObject *
eb_acp_config_option(JsonArray *options, const char *category)
{
    const guint n = options != NULL ? json_array_get_length(options) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *option = eb_json_array_object(options, i);

        if (g_strcmp0(eb_json_get_string(option, "category"), category) == 0 &&
            eb_json_get_string(option, "id") != NULL)
            return option;
    }
    /* The category is optional; the id of the same name is what agents use then. */
    for (guint i = 0; i < n; i++) {
        JsonObject *option = eb_json_array_object(options, i);

        if (eb_json_get_string(option, "category") == NULL &&
            g_strcmp0(eb_json_get_string(option, "id"), category) == 0)
            return option;
    }
    return NULL;
}

typedef struct {
    const char *wanted;
    const char *exact;
    const char *named;
    const char *tail;
    guint n_tails;
    guint n_values;
    GString *shown;
} Choice;

static void
consider(Choice *choice, JsonObject *entry)
{
    const char *value = eb_json_get_string(entry, "value");
    const char *slash;

    if (value == NULL)
        return;
    if (choice->n_values++ < SHOWN_VALUES)
        g_string_append_printf(choice->shown, "%s%s", choice->shown->len > 0 ? ", " : "", value);
    slash = strrchr(value, '/');
    if (strcmp(value, choice->wanted) == 0)
        choice->exact = value;
    if (g_strcmp0(eb_json_get_string(entry, "name"), choice->wanted) == 0)
        choice->named = value;
    if (slash != NULL && strcmp(slash + 1, choice->wanted) == 0) {
        choice->tail = value;
        choice->n_tails++;
    }
}

char *
eb_acp_config_choose(JsonObject *option, const char *wanted, GError **error)
{
    JsonArray *entries = eb_json_get_array(option, "options");
    g_autoptr(GString) shown = g_string_new(NULL);
    Choice choice = {.wanted = wanted, .shown = shown};
    const guint n = entries != NULL ? json_array_get_length(entries) : 0;

    for (guint i = 0; i < n; i++) {
        JsonObject *entry = eb_json_array_object(entries, i);
        JsonArray *group = eb_json_get_array(entry, "options");

        if (group == NULL)
            consider(&choice, entry);
        for (guint k = 0; group != NULL && k < json_array_get_length(group); k++)
            consider(&choice, eb_json_array_object(group, k));
    }
    if (choice.exact != NULL)
        return g_strdup(choice.exact);
    if (choice.named != NULL)
        return g_strdup(choice.named);
    if (choice.n_tails == 1)
        return g_strdup(choice.tail);
    if (choice.n_values == 0)
        return g_strdup(wanted); /* nothing was listed: the agent knows better */
    {
        g_autofree char *text = eb_acp_cut(shown->str, 500);

        eb_set_error(error, EB_ERROR_NOT_FOUND, "acp.no-such-value", "the agent does not offer \"%s\" (it has: %s%s)",
                     wanted, text, choice.n_values > SHOWN_VALUES ? ", ..." : "");
    }
    return NULL;
}
