/* SPDX-License-Identifier: MIT */
/* What sessions need of model providers before anybody asks for one, and what the service says of its books. */
#include "check-context.h"
#include "check-credentials.h"
#include "doctor-checks.h"

#include <stdio.h>
#include <string.h>

#define RESOLVE_MS 2000
/* Sessions that one result names. */
#define MAX_NAMED 3

/* One provider of the configuration, taken apart from "NAME KIND KEY BASE_URL". */
typedef struct {
    char **parts;
    const char *name, *key, *url;
} Provider;

static gboolean
provider_read(const char *line, Provider *provider)
{
    provider->parts = g_strsplit(line, " ", 4);
    if (g_strv_length(provider->parts) != 4)
        return FALSE;
    provider->name = provider->parts[0];
    provider->key = provider->parts[2];
    provider->url = provider->parts[3];
    return TRUE;
}

static void add(GString *text, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
add(GString *text, const char *format, ...)
{
    va_list args;

    if (text->len > 0)
        g_string_append(text, "; ");
    va_start(args, format);
    g_string_append_vprintf(text, format, args);
    va_end(args);
}

/* --- where it is --- */

/* May somebody listen on @port, as of /proc/net/tcp or tcp6? Of a table that cannot be read, as that of a host with so many
 * connections that it is too long, nothing is known. */
static gboolean
may_listen(EbHost *host, const char *path, guint port)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = eb_host_read_file(host, path, NULL, &error);

    if (text == NULL)
        return !g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        char address[64];
        guint found, state;
        if (sscanf(lines[i], " %*u: %63[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", address, &found, &state) == 3 &&
            found == port && state == 0x0a)
            return TRUE;
    }
    return FALSE;
}

/* (transfer full) (nullable): what is wrong with its host; @dead: (inout): the name server does not answer */
static char *
judge_host(EbHost *host, const char *url, gboolean *dead)
{
    g_autoptr(GUri) uri = g_uri_parse(url, G_URI_FLAGS_NONE, NULL);
    const char *name = uri != NULL ? g_uri_get_host(uri) : NULL;
    g_autoptr(GInetAddress) address = name != NULL ? g_inet_address_new_from_string(name) : NULL;
    int port = uri != NULL ? g_uri_get_port(uri) : -1, code = 0;
    g_autoptr(GError) error = NULL;

    if (name == NULL)
        return g_strdup("its base URL is none");
    if (address != NULL) {
        gboolean known = eb_host_exists(host, "/proc/net/tcp");
        port = port > 0 ? port : g_str_has_prefix(url, "https") ? 443 : 80;
        if (!known || !g_inet_address_get_is_loopback(address) || may_listen(host, "/proc/net/tcp", (guint)port) ||
            may_listen(host, "/proc/net/tcp6", (guint)port))
            return NULL;
        return g_strdup_printf("nobody listens on %s port %d of this host", name, port);
    }
    if (*dead)
        return NULL;
    const char *argv[] = {"getent", "ahosts", name, NULL};
    g_autofree char *output = eb_host_run(host, argv, RESOLVE_MS, &code, &error);
    *dead = g_error_matches(error, EB_ERROR, EB_ERROR_TIMEOUT);
    if (*dead)
        return g_strdup_printf("its host %s was not found within %d s: no name server answers", name,
                               RESOLVE_MS / 1000);
    /* 2: getent's word for a name that is not found; without getent nothing is known. */
    return output != NULL && code == 2 ? g_strdup_printf("its host %s is not known to the name server", name) : NULL;
}

/* (transfer full) (nullable) */
static char *
judge_key(const DcCredentials *credentials, const char *key)
{
    JsonObject *found = dc_credentials_find(credentials, key);

    if (found != NULL)
        return dc_credential_is_over(credentials, found)
                   ? g_strdup_printf("its key %s expired at %s", key, eb_json_get_string(found, "expires"))
                   : NULL;
    /* A store that cannot be read here may have it. */
    if (credentials->list == NULL || credentials->problem != NULL)
        return NULL;
    return g_strdup_printf("no store has its key %s", key);
}

static EbCheckResult *
wrong_providers(const GString *wrong, const char *key)
{
    EbCheckResult *result = eb_check_result_new(EB_CHECK_FAIL, "cannot be used: %s", wrong->str);

    if (key != NULL)
        eb_check_result_set_remedy(result, "`errand-box creds set %s`", key);
    return result;
}

static EbCheckResult *
check_providers(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_auto(GStrv) lines = eb_config_section_get_strings(settings, "providers", NULL);
    g_autofree char *config = dc_setting(settings, "config.problem", NULL);
    g_autofree char *start = dc_setting(settings, "session.problem", NULL);
    g_auto(DcCredentials) credentials = {0};
    g_autoptr(GString) wrong = g_string_new(NULL);
    g_autofree char *missing = NULL;
    gboolean dead = FALSE;

    if (config != NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "not before the configuration can be used");
    if (lines == NULL || lines[0] == NULL) {
        EbCheckResult *none =
            eb_check_result_new(EB_CHECK_FAIL, "no model provider is configured, so no agent can work");
        eb_check_result_set_remedy(none, "add a [provider.NAME] table with kind, base_url and key");
        return none;
    }
    dc_credentials_read(settings, &credentials);
    for (guint i = 0; lines[i] != NULL && !g_cancellable_is_cancelled(cancellable); i++) {
        Provider provider = {0};
        if (provider_read(lines[i], &provider)) {
            g_autofree char *no_key = judge_key(&credentials, provider.key);
            g_autofree char *no_host = judge_host(host, provider.url, &dead);
            if (no_key != NULL)
                add(wrong, "%s: %s", provider.name, no_key);
            if (no_key != NULL && missing == NULL)
                missing = g_strdup(provider.key);
            if (no_host != NULL)
                add(wrong, "%s: %s", provider.name, no_host);
        }
        g_strfreev(provider.parts);
    }
    if (start != NULL)
        add(wrong, "a session that chooses nothing does not start: %s", start);
    if (wrong->len > 0)
        return wrong_providers(wrong, missing);
    if (credentials.list == NULL || credentials.problem != NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "their hosts are known; whether their keys are there is not: %s",
                                   credentials.problem != NULL ? credentials.problem : "the stores were not asked");
    return eb_check_result_new(EB_CHECK_OK, "%u, each with its key and a host that is known", g_strv_length(lines));
}

/* --- expiry --- */

static EbCheckResult *
check_expiry(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_auto(DcCredentials) credentials = {0};
    g_autoptr(GString) over = g_string_new(NULL);
    g_autoptr(GString) soon = g_string_new(NULL);
    g_autofree char *name = NULL;
    JsonArray *all;
    guint timed = 0;

    dc_credentials_read(settings, &credentials);
    all = eb_json_get_array(eb_json_node_object(credentials.list), "credentials");
    for (guint i = 0; all != NULL && i < json_array_get_length(all); i++) {
        JsonObject *one = eb_json_array_object(all, i);
        const char *what = eb_json_get_string(one, "name");
        gint64 end = dc_credential_end(one);
        if (what == NULL || end == 0 || !eb_json_get_bool(one, "used", FALSE))
            continue;
        timed++;
        if (end <= credentials.now)
            add(over, "%s expired at %s", what, eb_json_get_string(one, "expires"));
        else if (end - credentials.now < DC_EXPIRY_SOON)
            add(soon, "%s expires at %s", what, eb_json_get_string(one, "expires"));
        if (name == NULL && end - credentials.now < DC_EXPIRY_SOON)
            name = g_strdup(what);
    }
    if (name != NULL) {
        EbCheckResult *result = eb_check_result_new(over->len > 0 ? EB_CHECK_FAIL : EB_CHECK_DEGRADED, "%s%s%s",
                                                    over->str, over->len > 0 && soon->len > 0 ? "; " : "", soon->str);
        eb_check_result_set_remedy(
            result, "get a new value where it was issued, and put it in place: `errand-box creds set %s --expires 30d`",
            name);
        return result;
    }
    if (all == NULL || credentials.problem != NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "it cannot be known here: %s",
                                   credentials.problem != NULL ? credentials.problem : "the stores were not asked");
    return eb_check_result_new(EB_CHECK_OK, "of %u in the stores %u end, and none within a week",
                               json_array_get_length(all), timed);
}

/* --- books --- */

/* (transfer full) (nullable): what the running service says; @skip: (out): set with NULL */
static JsonNode *
service_facts(EbConfigSection *settings, EbCheckResult **skip)
{
    g_autofree char *text = dc_setting(settings, "service.facts", NULL);
    g_autofree char *problem = dc_setting(settings, "service.problem", NULL);
    JsonNode *node = text != NULL ? eb_json_parse(text, strlen(text), &EB_JSON_LIMITS_SMALL, NULL) : NULL;

    if (node == NULL)
        *skip = eb_check_result_new(EB_CHECK_SKIPPED, "the service alone can tell, and it does not answer%s%s",
                                    problem != NULL ? ": " : "", problem != NULL ? problem : "");
    return node;
}

static EbCheckResult *
check_audit(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *result = NULL;
    g_autoptr(JsonNode) facts = service_facts(settings, &result);
    JsonObject *audit = eb_json_get_object(eb_json_node_object(facts), "audit");
    JsonArray *broken = eb_json_get_array(audit, "broken");
    gint64 rows = eb_json_get_int(audit, "rows", 0), checked = eb_json_get_int(audit, "checked", 0);
    g_autoptr(GString) text = g_string_new(NULL);
    guint count = broken != NULL ? json_array_get_length(broken) : 0;

    if (facts == NULL)
        return result;
    if (broken == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "the service's answer is not understood");
    if (count == 0)
        return eb_check_result_new(EB_CHECK_OK,
                                   "%" G_GINT64_FORMAT " rows of %" G_GINT64_FORMAT
                                   " sessions: both ends of every chain fit, "
                                   "and so do the newest %" G_GINT64_FORMAT " rows",
                                   rows, eb_json_get_int(audit, "chains", 0), checked);
    for (guint i = 0; i < MIN(count, MAX_NAMED); i++) {
        JsonObject *one = eb_json_array_object(broken, i);
        add(text, "session %s from row %" G_GINT64_FORMAT " on: %s", eb_json_get_string(one, "session"),
            eb_json_get_int(one, "at", 0), eb_json_get_string(one, "why"));
    }
    result = eb_check_result_new(EB_CHECK_FAIL, "not what was written: %s%s", text->str,
                                 count > MAX_NAMED ? "; and more" : "");
    eb_check_result_set_remedy(
        result,
        "keep a copy of the database and the service's log, which has the hash each session's chain ended in; "
        "`errand-box sessions logs %s --egress` shows the rows",
        eb_json_get_string(eb_json_array_object(broken, 0), "session"));
    return result;
}

static EbCheckResult *
check_prices(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_auto(GStrv) chosen = eb_config_section_get_strings(settings, "budget.unpriced", NULL);
    g_autofree char *money = dc_setting(settings, "budget.money", NULL);
    g_auto(GStrv) providers = eb_config_section_get_strings(settings, "providers", NULL);
    EbCheckResult *result = NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    if (providers == NULL || providers[0] == NULL)
        return eb_check_result_new(EB_CHECK_SKIPPED, "no model provider is configured");
    if (money == NULL)
        return eb_check_result_new(EB_CHECK_OK, "no cap on money");
    for (guint i = 0; chosen != NULL && chosen[i] != NULL; i++)
        add(text, "%s, which sessions begin with", chosen[i]);
    g_autoptr(JsonNode) facts = service_facts(settings, &result);
    JsonArray *used = eb_json_get_array(eb_json_node_object(facts), "unpriced");
    for (guint i = 0; used != NULL && i < json_array_get_length(used); i++) {
        JsonObject *one = eb_json_array_object(used, i);
        add(text, "%s %s, which was used", eb_json_get_string(one, "provider"), eb_json_get_string(one, "model"));
    }
    if (text->len == 0 && facts == NULL)
        return result;
    g_clear_pointer(&result, eb_check_result_free);
    if (text->len == 0)
        return eb_check_result_new(EB_CHECK_OK, "every model that was used in 30 days has a price");
    return eb_check_result_new(EB_CHECK_DEGRADED, "without a price: %s", text->str);
}

const DcRow DC_PROVIDER_CHECKS[] = {
    DC_ROW(E_82, check_providers), DC_ROW(E_83, check_audit), DC_ROW(E_84, check_prices),
    DC_ROW(E_85, check_expiry),    {NULL, NULL, NULL},
};
