/* SPDX-License-Identifier: MIT */
#include "discord-config.h"

#include <string.h>

#define EVERYBODY "*"
/* Of what somebody wrote in place of an id: enough for a name, too little of what may be a secret pasted there. */
#define MAX_SHOWN 24

typedef struct {
    EbConfigSection *section;
    GString *text;
} Problems;

gboolean
discord_is_snowflake(const char *text)
{
    gsize length = text != NULL ? strlen(text) : 0;
    guint64 number;

    return length >= 15 && length <= 20 && text[0] != '0' && strspn(text, "0123456789") == length &&
           g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT64, &number, NULL);
}

static void
add(Problems *problems, const char *sentence)
{
    if (problems->text->len > 0)
        g_string_append(problems->text, "; ");
    g_string_append(problems->text, sentence);
}

static void G_GNUC_PRINTF(3, 4) problem(Problems *problems, const char *key, const char *format, ...)
{
    g_autofree char *where = eb_config_section_where(problems->section, key);
    va_list args;

    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *sentence =
        g_strdup_printf("%s: %s.%s %s", where, eb_config_section_get_path(problems->section), key, what);
    add(problems, sentence);
}

/* @error: (transfer full) (nullable) */
static void
take(Problems *problems, GError *error)
{
    if (error == NULL)
        return;
    add(problems, error->message);
    g_error_free(error);
}

/* TOML reads an id without quotes as a number, whatever its length. FALSE: that was said. */
static gboolean
check_quoted(Problems *problems, const char *key)
{
    GVariant *value = eb_config_section_get_value(problems->section, key);

    if (value == NULL ||
        (!g_variant_is_of_type(value, G_VARIANT_TYPE_INT64) && !g_variant_is_of_type(value, G_VARIANT_TYPE("ax"))))
        return TRUE;
    problem(problems, key, "is a number: put ids into quotes");
    return FALSE;
}

static char *
read_channel(Problems *problems)
{
    GError *error = NULL;

    if (!check_quoted(problems, "channel_id"))
        return NULL;
    char *channel = eb_config_section_get_string(problems->section, "channel_id", "", &error);
    take(problems, error);
    if (channel == NULL || discord_is_snowflake(channel))
        return channel;
    g_autofree char *shown = eb_log_escape(channel, -1, MAX_SHOWN);
    if (*channel == '\0')
        problem(problems, "channel_id",
                "is missing: the id of the channel to serve (in Discord: right click, Copy ID)");
    else
        problem(problems, "channel_id", "\"%s\" is not an id: ids are numbers (in Discord: right click, Copy ID)",
                shown);
    return channel;
}

static char **
read_ids(Problems *problems, const char *key, gboolean may_be_everybody)
{
    GError *error = NULL;
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    if (!check_quoted(problems, key))
        return NULL;
    char **ids = eb_config_section_get_strings(problems->section, key, &error);
    take(problems, error);
    if (ids != NULL && g_strv_length(ids) > DISCORD_CONFIG_MAX_IDS) {
        problem(problems, key, "has more than %d entries", DISCORD_CONFIG_MAX_IDS);
        return ids;
    }
    for (char **id = ids; id != NULL && *id != NULL; id++) {
        g_autofree char *shown = eb_log_escape(*id, -1, MAX_SHOWN);
        if (!discord_is_snowflake(*id) && !(may_be_everybody && strcmp(*id, EVERYBODY) == 0))
            problem(problems, key,
                    "has \"%s\", which is not an id: names change hands, ids do not (in Discord: right "
                    "click the person, Copy User ID)",
                    shown);
        else if (!g_hash_table_add(seen, *id))
            problem(problems, key, "has \"%s\" twice", shown);
    }
    return ids;
}

/* What is allowed and perhaps not meant. (transfer full) (nullable) */
static char *
find_warning(const EbChatPolicy *policy)
{
    if (g_strv_contains((const char *const *)policy->allowed, EVERYBODY))
        return g_strdup("allowed_user_ids has \"*\": everybody who can write in the channel can start errands");
    for (char **id = policy->operators; *id != NULL; id++)
        if (!g_strv_contains((const char *const *)policy->allowed, *id))
            return g_strdup_printf("operator %s is not in allowed_user_ids: add the id there too", *id);
    return NULL;
}

gboolean
discord_config_is_present(EbConfigSection *section)
{
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);
    g_autoptr(GPtrArray) children = eb_config_section_get_children(section);

    return keys->len > 0 || children->len > 0;
}

DiscordConfig *
discord_config_read(EbConfigSection *section, GError **error)
{
    g_autoptr(DiscordConfig) self = g_new0(DiscordConfig, 1);
    g_autoptr(GString) text = g_string_new(NULL);
    Problems problems = {.section = section, .text = text};
    EbChatPolicy *policy = &self->policy;
    GError *wrong = NULL;

    self->token_name = eb_config_section_get_secret_name(section, "token", &wrong);
    /* No default: what a privileged start keeps for the service is what the configuration names. */
    if (self->token_name == NULL && wrong == NULL)
        problem(&problems, "token",
                "is missing: write token = \"cred:chat-token\" and run errand-box creds set chat-token");
    take(&problems, g_steal_pointer(&wrong));
    self->channel_id = read_channel(&problems);
    policy->allowed = read_ids(&problems, "allowed_user_ids", TRUE);
    policy->blocked = read_ids(&problems, "blocked_user_ids", FALSE);
    policy->operators = read_ids(&problems, "operator_user_ids", FALSE);
    if (policy->allowed != NULL && policy->allowed[0] == NULL)
        problem(&problems, "allowed_user_ids", "is empty: name the ids of those who may start errands");
    eb_config_section_get_bool(section, "start_on_mention", FALSE, &policy->start_on_mention, &wrong);
    take(&problems, g_steal_pointer(&wrong));
    eb_config_section_get_duration(section, "late_age", DISCORD_CONFIG_LATE_MS, 0, DISCORD_CONFIG_LATE_MAX_MS,
                                   &policy->late_ms, &wrong);
    take(&problems, g_steal_pointer(&wrong));
    eb_config_section_check_unknown(section, &wrong);
    take(&problems, g_steal_pointer(&wrong));
    if (text->len > 0) {
        eb_set_error(error, EB_ERROR_CONFIG, "discord.config", "%s", text->str);
        return NULL;
    }
    self->warning = find_warning(policy);
    return g_steal_pointer(&self);
}

void
discord_config_free(DiscordConfig *self)
{
    g_free(self->token_name);
    g_free(self->channel_id);
    g_strfreev(self->policy.allowed);
    g_strfreev(self->policy.blocked);
    g_strfreev(self->policy.operators);
    g_free(self->warning);
    g_free(self);
}
