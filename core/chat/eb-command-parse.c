/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-command-parse.h"

#include <string.h>

#define MIN_ID_DIGITS 5
#define MAX_ID_DIGITS 25

void
eb_command_free(EbCommand *self)
{
    if (self == NULL)
        return;
    for (gsize i = 0; i < EB_COMMAND_MAX_OPTIONS; i++)
        g_free(self->values[i]);
    g_free(self);
}

char *
eb_command_parse_person(const char *text)
{
    const char *at = text;
    gboolean mention = g_str_has_prefix(at, "<@");
    if (mention)
        at += at[2] == '!' ? 3 : 2;
    gsize digits = strspn(at, "0123456789");
    const char *rest = at + digits;
    if (mention ? !g_str_equal(rest, ">") : *rest != '\0')
        return NULL;
    return digits >= MIN_ID_DIGITS && digits <= MAX_ID_DIGITS ? g_strndup(at, digits) : NULL;
}

/* @value: (transfer full): without the quotation marks around the whole of it; phones write them curled. */
static char *
unquote(char *value)
{
    static const struct {
        const char *begin, *end;
    } quotes[] = {
        {"\"", "\""}, {"'", "'"}, {"`", "`"}, {"\xe2\x80\x9c", "\xe2\x80\x9d"}, {"\xe2\x80\x98", "\xe2\x80\x99"}};
    gsize length = strlen(value);
    for (gsize i = 0; i < G_N_ELEMENTS(quotes); i++) {
        gsize begin = strlen(quotes[i].begin), end = strlen(quotes[i].end);
        if (length > begin + end && g_str_has_prefix(value, quotes[i].begin) &&
            g_str_has_suffix(value, quotes[i].end)) {
            char *inner = g_strndup(value + begin, length - begin - end);
            g_free(value);
            return inner;
        }
    }
    return value;
}

/* What the agent is told, and what is said to people, is kept as it was written. */
static gboolean
is_speech(const EbChatOption *option)
{
    return g_str_equal(option->name, "text");
}

/* @value: (transfer full): of option @index; "" = not given. */
static gboolean
set_value(EbCommand *command, gsize index, char *value, GError **error)
{
    const EbCommandSpec *spec = command->spec;
    const EbChatOption *option = &spec->options[index];
    g_autofree char *owned = g_strstrip(value);
    if (!is_speech(option))
        owned = unquote(g_steal_pointer(&owned));
    if (*owned == '\0' && !option->required)
        return TRUE;
    if (option->person && *owned != '\0') {
        command->values[index] = eb_command_parse_person(owned);
        if (command->values[index] != NULL)
            return TRUE;
        eb_set_error(error, EB_ERROR_INVALID, "command.person",
                     "that is nobody I can find: mention the person, or write the number of the account: %s",
                     spec->example);
        return FALSE;
    }
    if (*owned == '\0') {
        g_autofree char *usage = eb_command_usage(spec);
        eb_set_error(error, EB_ERROR_INVALID, "command.missing", "%s lacks something: %s. For example: %s", usage,
                     option->summary, spec->example);
        return FALSE;
    }
    command->values[index] = g_steal_pointer(&owned);
    return TRUE;
}

static gboolean
take_arguments(EbCommand *command, const char *rest, GError **error)
{
    const EbCommandSpec *spec = command->spec;
    const char *at = rest;
    for (gsize i = 0; i < spec->n_options; i++) {
        while (g_ascii_isspace(*at))
            at++;
        gsize length = i + 1 == spec->n_options ? strlen(at) : strcspn(at, " \t\r\n");
        if (!set_value(command, i, g_strndup(at, length), error))
            return FALSE;
        at += length;
    }
    while (g_ascii_isspace(*at))
        at++;
    if (*at == '\0')
        return TRUE;
    /* "!stop doing that" was not meant to end everything. */
    eb_set_error(error, EB_ERROR_INVALID, "command.surplus",
                 "!%s takes nothing after it: write %s alone; to tell the agent something, write it without the !",
                 spec->name, spec->example);
    return FALSE;
}

EbCommandParse
eb_command_parse_text(const char *text, EbCommand **command, GError **error)
{
    g_return_val_if_fail(text != NULL && command != NULL, EB_COMMAND_PARSE_NONE);
    *command = NULL;
    while (g_ascii_isspace(*text))
        text++;
    if (*text != '!')
        return EB_COMMAND_PARSE_NONE;
    const char *name = text + 1;
    gsize length = 0;
    const EbCommandSpec *spec;
    if (g_str_has_prefix(text, "!!!")) {
        spec = eb_command_get(EB_COMMAND_ASIDE);
        length = 2;
    } else {
        while (g_ascii_isalnum(name[length]) || name[length] == '-')
            length++;
        gboolean bounded = name[length] == '\0' || g_ascii_isspace(name[length]);
        spec = bounded && length > 0 ? eb_command_find(name, length) : NULL;
    }
    if (spec == NULL)
        return EB_COMMAND_PARSE_UNKNOWN;
    g_autoptr(EbCommand) found = g_new0(EbCommand, 1);
    found->spec = spec;
    if (!take_arguments(found, name + length, error))
        return EB_COMMAND_PARSE_INVALID;
    *command = g_steal_pointer(&found);
    return EB_COMMAND_PARSE_OK;
}

EbCommandParse
eb_command_parse_action(JsonObject *extra, EbCommand **command, GError **error)
{
    g_return_val_if_fail(command != NULL, EB_COMMAND_PARSE_NONE);
    *command = NULL;
    const char *name = eb_json_get_string(extra, "command");
    if (name == NULL)
        return EB_COMMAND_PARSE_NONE;
    const EbCommandSpec *spec = eb_command_find(name, strlen(name));
    if (spec == NULL || spec->id == EB_COMMAND_ASIDE)
        return EB_COMMAND_PARSE_UNKNOWN;
    g_autoptr(EbCommand) found = g_new0(EbCommand, 1);
    found->spec = spec;
    JsonObject *options = eb_json_get_object(extra, "options");
    for (gsize i = 0; i < spec->n_options; i++) {
        const char *value = eb_json_get_string(options, spec->options[i].name);
        if (!set_value(found, i, g_strdup(value != NULL ? value : ""), error))
            return EB_COMMAND_PARSE_INVALID;
    }
    *command = g_steal_pointer(&found);
    return EB_COMMAND_PARSE_OK;
}
