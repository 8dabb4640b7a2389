/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-creds.h"

#include <string.h>

EbCredential *
eb_cli_creds_lookup(EbCli *cli, const EbExtension *store, const char *name, GError **error)
{
    EbCredentialStore *object = EB_CREDENTIAL_STORE(store->object);
    g_auto(EbCliWait) wait = {0};

    eb_credential_store_lookup_async(object, name, NULL, eb_cli_wait_ready, &wait);
    return eb_credential_store_lookup_finish(object, eb_cli_wait_result(cli, &wait), error);
}

char **
eb_cli_creds_names(EbCli *cli, const EbExtension *store, GError **error)
{
    EbCredentialStore *object = EB_CREDENTIAL_STORE(store->object);
    g_auto(EbCliWait) wait = {0};

    eb_credential_store_list_async(object, NULL, eb_cli_wait_ready, &wait);
    return eb_credential_store_list_finish(object, eb_cli_wait_result(cli, &wait), error);
}

gboolean
eb_cli_creds_put(EbCli *cli, const EbExtension *store, const char *name, const EbCredential *credential, GError **error)
{
    EbCredentialStore *object = EB_CREDENTIAL_STORE(store->object);
    g_auto(EbCliWait) wait = {0};

    eb_credential_store_put_credential_async(object, name, credential, NULL, eb_cli_wait_ready, &wait);
    return eb_credential_store_put_credential_finish(object, eb_cli_wait_result(cli, &wait), error);
}

gboolean
eb_cli_creds_remove(EbCli *cli, const EbExtension *store, const char *name, GError **error)
{
    EbCredentialStore *object = EB_CREDENTIAL_STORE(store->object);
    g_auto(EbCliWait) wait = {0};

    eb_credential_store_remove_async(object, name, NULL, eb_cli_wait_ready, &wait);
    return eb_credential_store_remove_finish(object, eb_cli_wait_result(cli, &wait), error);
}

void
eb_cli_creds_print_json(EbCli *cli, const char *member, JsonArray *list)
{
    if (!eb_cli_get_json(cli)) {
        json_array_unref(list);
        return;
    }
    JsonObject *root = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_object_set_array_member(root, member, list);
    json_node_take_object(node, root);
    eb_cli_print_json(cli, node);
}

/* --- times --- */

char *
eb_cli_creds_time(gint64 unix_seconds)
{
    g_autoptr(GDateTime) time = unix_seconds > 0 ? g_date_time_new_from_unix_utc(unix_seconds) : NULL;

    return time != NULL ? g_date_time_format_iso8601(time) : NULL;
}

gint64
eb_cli_creds_parse_expiry(const char *text, gint64 now, GError **error)
{
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autofree char *midnight = g_strconcat(text, "T00:00:00Z", NULL);
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(strchr(text, 'T') != NULL ? text : midnight, utc);
    guint64 ms = 0;
    gint64 expires = 0;

    if (time != NULL)
        expires = g_date_time_to_unix(time);
    else if (eb_config_parse_duration(text, &ms, NULL) && ms < (guint64)G_MAXINT64 / 2)
        expires = now + (gint64)(ms / 1000);
    if (expires > now)
        return expires;
    g_autofree char *shown = eb_log_escape(text, -1, 40);
    eb_set_error(error, EB_ERROR_INVALID, "creds.expires",
                 "--expires \"%s\" is no time to come (for example 30d, or 2027-01-31T12:00:00Z)", shown);
    return 0;
}

/* "3 days", for people */
static char *
span(gint64 seconds)
{
    if (seconds >= 2 * 86400)
        return g_strdup_printf("%" G_GINT64_FORMAT " days", seconds / 86400);
    if (seconds >= 2 * 3600)
        return g_strdup_printf("%" G_GINT64_FORMAT " hours", seconds / 3600);
    return g_strdup_printf("%" G_GINT64_FORMAT " min", seconds / 60);
}

/* --- creds list --- */

/* What is known of one name in one store. */
typedef struct {
    const EbExtension *store;
    const char *name;
    const char *where;
    const EbCredential *credential; /* (nullable): it cannot be read */
    const GError *error;            /* (nullable) */
    const char *instead;            /* (nullable): the store that is used instead, or ends the search */
    gboolean broken;                /* it ends the search, since it cannot be read */
} Row;

/* What is known of the stores before one. */
typedef struct {
    GHashTable *seen;   /* (element-type utf8): names they have */
    const char *broken; /* (nullable): the first that cannot be read */
    JsonArray *problems;
} Before;

static void
print_row(EbCli *cli, const Row *row, gint64 now)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (row->credential != NULL && row->credential->changed_unix > 0) {
        g_autofree char *age = span(MAX(now - row->credential->changed_unix, 0));
        g_string_append_printf(text, ", set %s ago", age);
    }
    if (row->credential != NULL && row->credential->expires_unix > 0) {
        gint64 left = row->credential->expires_unix - now;
        g_autofree char *in = span(ABS(left));
        g_string_append_printf(text, left > 0 ? ", expires in %s" : ", EXPIRED %s ago", in);
    }
    if (row->broken)
        g_string_append_printf(text, ", not used: %s, which is asked first, cannot be read", row->instead);
    else if (row->instead != NULL)
        g_string_append(text, ", not used: an earlier store has it");
    if (row->error != NULL)
        g_string_append_printf(text, ", NOT READABLE: %s", row->error->message);
    eb_cli_print(cli, "%-20s %s%s\n", row->name, row->where, text->str);
}

static void
set_time(JsonObject *object, const char *member, gint64 unix_seconds)
{
    g_autofree char *text = eb_cli_creds_time(unix_seconds);

    if (text != NULL)
        json_object_set_string_member(object, member, text);
    else
        json_object_set_null_member(object, member);
}

static void
add_row(JsonArray *found, const Row *row, gint64 now)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "name", row->name);
    json_object_set_string_member(object, "store", row->store->name);
    json_object_set_string_member(object, "where", row->where);
    set_time(object, "changed", row->credential != NULL ? row->credential->changed_unix : 0);
    set_time(object, "expires", row->credential != NULL ? row->credential->expires_unix : 0);
    json_object_set_boolean_member(object, "expired",
                                   row->credential != NULL && eb_renewal_is_over(row->credential->expires_unix, now));
    json_object_set_boolean_member(object, "used", row->instead == NULL && row->error == NULL);
    if (row->error != NULL)
        json_object_set_string_member(object, "error", row->error->message);
    json_array_add_object_element(found, object);
}

/* For the doctor: only a store that is closed to whoever asks may be well for others. */
static void
add_problem(JsonArray *problems, const char *store, const GError *error)
{
    JsonObject *object = json_object_new();
    const char *reason = eb_error_get_reason(error);

    json_object_set_string_member(object, "store", store);
    json_object_set_string_member(object, "reason", reason != NULL ? reason : "");
    json_object_set_string_member(object, "error", error->message);
    json_array_add_object_element(problems, object);
}

static int
list_store(EbCli *cli, const EbExtension *store, Before *before, JsonArray *found)
{
    g_autofree char *where = eb_credential_store_describe(EB_CREDENTIAL_STORE(store->object));
    gint64 now = g_get_real_time() / G_USEC_PER_SEC;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = eb_cli_creds_names(cli, store, &error);
    const char *broken = before->broken;
    int code = EB_EXIT_OK;

    if (names == NULL) {
        before->broken = broken != NULL ? broken : store->name;
        add_problem(before->problems, store->name, error);
        return eb_cli_fail(cli, store->name, error);
    }
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) local = NULL;
        g_autoptr(EbCredential) credential = eb_cli_creds_lookup(cli, store, *name, &local);
        const char *place = credential != NULL && *credential->source != '\0' ? credential->source : where;
        const char *earlier = g_hash_table_lookup(before->seen, *name);
        Row row = {store,
                   *name,
                   place,
                   credential,
                   local,
                   earlier != NULL ? earlier : broken,
                   earlier == NULL && broken != NULL};
        if (local != NULL)
            code = EB_EXIT_FAILED;
        add_row(found, &row, now);
        if (!eb_cli_get_json(cli))
            print_row(cli, &row, now);
        if (earlier == NULL)
            g_hash_table_insert(before->seen, g_strdup(*name), (gpointer)store->name);
    }
    return code;
}

int
eb_cli_creds_list(EbCli *cli, GPtrArray *stores)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *wanted = eb_cli_args_value(eb_cli_get_args(cli), "store");
    JsonArray *found = json_array_new();
    Before before = {seen, NULL, json_array_new()};
    int code = EB_EXIT_OK;

    for (guint i = 0; i < stores->len; i++) {
        const EbExtension *store = stores->pdata[i];
        if (wanted != NULL && strcmp(wanted, store->name) != 0)
            continue;
        int one = list_store(cli, store, &before, found);
        code = code == EB_EXIT_OK ? one : code;
    }
    if (code == EB_EXIT_OK && json_array_get_length(found) == 0)
        eb_cli_note(cli, "no credential is kept here (errand-box creds set NAME)");
    if (!eb_cli_get_json(cli)) {
        json_array_unref(found);
        json_array_unref(before.problems);
        return code;
    }
    JsonObject *root = json_object_new();
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);
    json_object_set_array_member(root, "credentials", found);
    json_object_set_array_member(root, "problems", before.problems);
    json_node_take_object(node, root);
    eb_cli_print_json(cli, node);
    return code;
}
