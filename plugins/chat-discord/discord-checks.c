/* SPDX-License-Identifier: MIT */
#include "discord-checks.h"

#include "discord-checks-catalogue.h"
#include "discord-permissions.h"
#include "discord-startup.h"

#include <string.h>

#define FIXTURE_API "/discord.com/api/v10"
#define UNIT_DIR "/etc/systemd/system"

typedef struct _DiscordCheck DiscordCheck;
typedef EbCheckResult *(*CheckFunc)(DiscordCheck *self, EbHost *host, EbConfigSection *settings,
                                    GCancellable *cancellable);

typedef struct {
    const EbCheckInfo *info;
    const char *cost;
    CheckFunc run;
    DiscordStartupPart part;
} Row;

#define DISCORD_TYPE_CHECK (discord_check_get_type())
G_DECLARE_FINAL_TYPE(DiscordCheck, discord_check, DISCORD, CHECK, GObject)

struct _DiscordCheck {
    GObject parent_instance;
    const Row *row;   /* static */
    char *token_name; /* (nullable) */
    char *channel_id; /* (nullable) */
};

static void discord_check_iface_init(EbDoctorCheckInterface *iface);
G_DEFINE_FINAL_TYPE_WITH_CODE(DiscordCheck, discord_check, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(EB_TYPE_DOCTOR_CHECK, discord_check_iface_init))

static void
discord_check_finalize(GObject *object)
{
    DiscordCheck *self = DISCORD_CHECK(object);

    g_free(self->token_name);
    g_free(self->channel_id);
    G_OBJECT_CLASS(discord_check_parent_class)->finalize(object);
}

static void
discord_check_class_init(DiscordCheckClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = discord_check_finalize;
}

static void
discord_check_init(DiscordCheck *self)
{
}

/* --- the token --- */

/* (transfer full) (nullable): value of @key in file @path; NULL without an error: it is not there */
static EbSecret *
read_token_from(EbHost *host, const char *path, const char *key, const char *name, GError **error)
{
    g_autoptr(GError) problem = NULL;
    gsize length = 0;
    char *text = eb_host_read_file(host, path, &length, &problem);
    g_autoptr(GPtrArray) entries = NULL;
    const char *value;
    g_autofree char *copy = NULL;

    if (text == NULL) {
        if (!g_error_matches(problem, EB_ERROR, EB_ERROR_NOT_FOUND))
            g_propagate_error(error, g_steal_pointer(&problem));
        return NULL;
    }
    entries = eb_env_file_parse(text, length, &problem);
    explicit_bzero(text, length);
    g_free(text);
    if (entries == NULL) {
        g_propagate_prefixed_error(error, g_steal_pointer(&problem), "%s: ", path);
        return NULL;
    }
    value = eb_env_file_lookup(entries, key);
    if (value == NULL || *value == '\0')
        return NULL;
    copy = g_strdup(value);
    return eb_secret_new_take(name, copy, strlen(copy), error);
}

/* (transfer full) (nullable): the token, where the env-file store has it */
static EbSecret *
read_token(DiscordCheck *self, EbHost *host, EbConfigSection *settings, GError **error)
{
    g_autofree char *state_dir = eb_config_section_get_string(settings, "state_dir", "/var/lib/errand-box", NULL);
    g_autofree char *own = g_build_filename(state_dir != NULL ? state_dir : "/var/lib/errand-box", "creds.env", NULL);
    g_autofree char *named = eb_config_section_get_string(settings, "credentials.file", NULL, NULL);
    g_autofree char *key = eb_env_file_key_for_credential(self->token_name);
    const char *const usual[] = {own, "/etc/errand-box/creds.env", NULL};
    const char *const one[] = {named, NULL};
    const char *const *places = named != NULL ? one : usual;
    g_autofree char *list = g_strjoinv(" or ", (char **)places);
    g_autoptr(GError) first = NULL;

    for (guint i = 0; places[i] != NULL; i++) {
        g_autoptr(GError) problem = NULL;
        EbSecret *token = read_token_from(host, places[i], key, self->token_name, &problem);
        if (token != NULL)
            return token;
        if (problem != NULL && first == NULL)
            first = g_steal_pointer(&problem);
    }
    if (first != NULL)
        g_propagate_error(error, g_steal_pointer(&first));
    else
        eb_set_error(error, EB_ERROR_NOT_FOUND, "discord.no-token", "no %s is stored in %s: errand-box creds set %s",
                     self->token_name, list, self->token_name);
    return NULL;
}

/* --- asking --- */

/* Discord's own words for an error, kept as an answer of a fixture. */
static gboolean
is_refusal(JsonObject *answer, GError **error)
{
    const gint64 code = eb_json_get_int(answer, "code", -1);
    const char *message = eb_json_get_string(answer, "message");

    if (code < 0 || message == NULL || json_object_has_member(answer, "id"))
        return FALSE;
    if (g_str_has_prefix(message, "401"))
        eb_set_error(error, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", "%s", message);
    else
        eb_set_error(error, g_str_has_prefix(message, "Unknown") ? EB_ERROR_NOT_FOUND : EB_ERROR_DENIED, NULL, "%s",
                     message);
    return TRUE;
}

static JsonNode *
get_from_fixture(const char *path, gpointer user_data, GError **error)
{
    g_autofree char *file = g_strconcat(FIXTURE_API, path, ".json", NULL);
    gsize length = 0;
    g_autofree char *text = eb_host_read_file(user_data, file, &length, error);
    g_autoptr(JsonNode) node = text != NULL ? eb_json_parse(text, length, &EB_JSON_LIMITS_SMALL, error) : NULL;

    if (node == NULL || is_refusal(eb_json_node_object(node), error))
        return NULL;
    return g_steal_pointer(&node);
}

typedef struct {
    GAsyncResult *result; /* (nullable) (owned) */
    GCancellable *inner;
} Wait;

static void
answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    ((Wait *)user_data)->result = g_object_ref(result);
}

/* The doctor gives up, in its own thread: the request is cancelled in this one. */
static gboolean
given_up(GCancellable *cancellable, gpointer user_data)
{
    g_cancellable_cancel(((Wait *)user_data)->inner);
    return G_SOURCE_REMOVE;
}

/* Runs in a thread of the doctor, so it has a context of its own, which ends with it. */
static DiscordStartup *
ask_discord(DiscordCheck *self, EbSecret *token, GCancellable *cancellable, GError **error)
{
    g_autoptr(DiscordSite) site = discord_site_new(g_getenv(DISCORD_MOCK_ENV), token, error);
    g_autoptr(GMainContext) context = NULL;
    g_autoptr(DiscordRest) rest = NULL;
    g_autoptr(GCancellable) inner = g_cancellable_new();
    GSource *watch = NULL;
    Wait wait = {.inner = inner};
    DiscordStartup *startup;

    if (site == NULL)
        return NULL;
    context = g_main_context_new();
    g_main_context_push_thread_default(context);
    rest = discord_rest_new(site, token);
    if (cancellable != NULL) {
        watch = g_cancellable_source_new(cancellable);
        g_source_set_callback(watch, G_SOURCE_FUNC(given_up), &wait, NULL);
        g_source_attach(watch, context);
    }
    discord_startup_check_until_async(rest, self->channel_id, self->row->part, inner, answered, &wait);
    while (wait.result == NULL)
        g_main_context_iteration(context, TRUE);
    startup = discord_startup_check_finish(wait.result, error);
    g_clear_object(&wait.result);
    if (watch != NULL) {
        g_source_destroy(watch);
        g_source_unref(watch);
    }
    discord_rest_close(rest);
    g_clear_object(&rest);
    while (g_main_context_iteration(context, FALSE)) {
        /* what closing left to be done */
    }
    g_main_context_pop_thread_default(context);
    return startup;
}

/* --- results --- */

static EbCheckResult *
fine(DiscordCheck *self, const DiscordStartup *startup)
{
    g_autofree char *invite = NULL;

    switch (self->row->part) {
    case DISCORD_STARTUP_TOKEN:
        return eb_check_result_new(EB_CHECK_OK, "the bot is %s (%s)", startup->user_name, startup->user_id);
    case DISCORD_STARTUP_APPLICATION:
        invite = discord_invite_url(startup->application_id);
        return eb_check_result_new(EB_CHECK_OK, "it may; invite the bot with %s", invite);
    case DISCORD_STARTUP_CHANNEL:
        return eb_check_result_new(EB_CHECK_OK, "#%s of server %s", startup->channel_name, startup->guild_id);
    default:
        return eb_check_result_new(EB_CHECK_OK, "all eight are granted%s%s", startup->note != NULL ? "; " : "",
                                   startup->note != NULL ? startup->note : "");
    }
}

static EbCheckResult *
failed(DiscordCheck *self, const GError *error)
{
    static const char *const IDS[] = {"E-70", "E-71", "E-72", "E-73"};
    DiscordStartupPart part;

    if (error->code == EB_ERROR_CANCELLED || error->code == EB_ERROR_TIMEOUT)
        return eb_check_result_new(EB_CHECK_SKIPPED, "Discord did not answer in time");
    if (g_strcmp0(eb_error_get_reason(error), "discord.mock-url") == 0)
        return eb_check_result_new(EB_CHECK_FAIL, "%s", error->message);
    if (!discord_startup_blame(error, &part))
        return eb_check_result_new(EB_CHECK_SKIPPED, "Discord could not be asked: %s", error->message);
    if (part != self->row->part)
        return eb_check_result_new(EB_CHECK_SKIPPED, "not before %s is settled", IDS[part]);
    return eb_check_result_new(EB_CHECK_FAIL, "%s", error->message);
}

static EbCheckResult *
check_startup(DiscordCheck *self, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSecret) token = NULL;
    g_autoptr(DiscordStartup) startup = NULL;

    if (self->channel_id == NULL || self->token_name == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "Discord is not configured: there is no [plugin.chat-discord]");
    token = read_token(self, host, settings, &error);
    if (token == NULL)
        return failed(self, error);
    if (eb_host_is_fixture(host))
        startup = discord_startup_check_with(get_from_fixture, host, self->channel_id, self->row->part, &error);
    else
        startup = ask_discord(self, token, cancellable, &error);
    return startup != NULL ? fine(self, startup) : failed(self, error);
}

/* Does a text of NAME=VALUE parts set the variable to something? */
static gboolean
sets_mock(const char *text, gsize length)
{
    const gsize name_length = strlen(DISCORD_MOCK_ENV "=");

    for (gsize i = 0; i + name_length < length; i++)
        if (memcmp(text + i, DISCORD_MOCK_ENV "=", name_length) == 0 && !g_ascii_isspace(text[i + name_length]) &&
            text[i + name_length] != '\0' && text[i + name_length] != '"')
            return TRUE;
    return FALSE;
}

/* (transfer full) (nullable): a unit of the service, or what adds to one, that sets the variable */
static char *
find_in_units(EbHost *host, const char *dir, guint depth)
{
    g_auto(GStrv) names = eb_host_list_dir(host, dir, NULL);

    for (guint i = 0; names != NULL && names[i] != NULL; i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        g_autofree char *text = NULL;
        gsize length = 0;
        if (depth == 0 && !g_str_has_prefix(names[i], "errand-box"))
            continue;
        if (depth == 0 && g_str_has_suffix(names[i], ".d")) {
            char *found = find_in_units(host, path, 1);
            if (found != NULL)
                return found;
            continue;
        }
        text = eb_host_read_file(host, path, &length, NULL);
        if (text != NULL && sets_mock(text, length))
            return g_steal_pointer(&path);
    }
    return NULL;
}

static EbCheckResult *
check_mock(DiscordCheck *self, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    g_autofree char *own = eb_host_read_file(host, "/proc/self/environ", &length, &error);
    g_autofree char *unit = find_in_units(host, UNIT_DIR, 0);

    if (unit != NULL)
        return eb_check_result_new(EB_CHECK_DEGRADED, "%s sets %s. Cost: %s", unit, DISCORD_MOCK_ENV, self->row->cost);
    if (own == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "%s", error->message);
    if (sets_mock(own, length))
        return eb_check_result_new(EB_CHECK_DEGRADED, "this program's environment has %s. Cost: %s", DISCORD_MOCK_ENV,
                                   self->row->cost);
    return eb_check_result_new(EB_CHECK_OK, "%s is nowhere set", DISCORD_MOCK_ENV);
}

/* --- checks --- */

static const Row ROWS[] = {
    {&DC_INFO_E_70, DC_COST_E_70, check_startup, DISCORD_STARTUP_TOKEN},
    {&DC_INFO_E_71, DC_COST_E_71, check_startup, DISCORD_STARTUP_APPLICATION},
    {&DC_INFO_E_72, DC_COST_E_72, check_startup, DISCORD_STARTUP_CHANNEL},
    {&DC_INFO_E_73, DC_COST_E_73, check_startup, DISCORD_STARTUP_PERMISSIONS},
    {&DC_INFO_E_74, DC_COST_E_74, check_mock, DISCORD_STARTUP_TOKEN},
};

static const EbCheckInfo *
get_info(EbDoctorCheck *check)
{
    return DISCORD_CHECK(check)->row->info;
}

static EbCheckResult *
run(EbDoctorCheck *check, EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    DiscordCheck *self = DISCORD_CHECK(check);

    return self->row->run(self, host, settings, cancellable);
}

static void
discord_check_iface_init(EbDoctorCheckInterface *iface)
{
    iface->get_info = get_info;
    iface->run = run;
}

GPtrArray *
discord_checks_list(const char *token_name, const char *channel_id)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_object_unref);

    for (gsize i = 0; i < G_N_ELEMENTS(ROWS); i++) {
        DiscordCheck *check = g_object_new(DISCORD_TYPE_CHECK, NULL);
        check->row = &ROWS[i];
        check->token_name = g_strdup(token_name);
        check->channel_id = g_strdup(channel_id);
        g_ptr_array_add(list, check);
    }
    return list;
}
