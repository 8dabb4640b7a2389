/* SPDX-License-Identifier: MIT */
/* Sessions: those of the running service over its control socket, those of finished tries from their directories. */
#include "core/base/eb-account.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-try-store.h"
#include "core/cli/eb-try.h"

#include <string.h>
#include <unistd.h>

static void
append_array(JsonArray *to, JsonNode *from)
{
    JsonArray *list = eb_json_get_array(eb_json_node_object(from), "sessions");

    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++)
        json_array_add_element(to, json_node_copy(json_array_get_element(list, i)));
}

static const char *
text_of(JsonObject *object, const char *member)
{
    const char *text = eb_json_get_string(object, member);
    return text != NULL ? text : "-";
}

static int
list(EbCli *cli, EbConfig *config)
{
    g_autoptr(GError) error = NULL;
    const char *state_dir = eb_config_get_state_dir(config);
    g_autoptr(EbControlClient) client = eb_control_client_new(state_dir, &error);
    JsonArray *sessions = json_array_new();
    g_autoptr(JsonNode) root = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();

    json_object_set_array_member(object, "sessions", sessions);
    json_node_take_object(root, object);
    if (client != NULL) {
        g_autoptr(JsonNode) served = eb_cli_call(cli, client, "sessions.list", NULL, EB_CONTROL_DEADLINE_MS, &error);
        if (served == NULL)
            return eb_cli_fail(cli, "sessions list", error);
        append_array(sessions, served);
    } else if (!g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE)) {
        return eb_cli_fail(cli, "sessions list", error);
    }
    g_clear_error(&error);
    /* Databases are opened as the account, so that nothing of root's stays beside them. */
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), &error);
    if (account == NULL || !eb_account_become(account, &error))
        return eb_cli_fail(cli, "sessions list", error);
    g_auto(GStrv) roots = eb_try_roots(state_dir);
    /* A list that is not whole is no success: "no sessions" would be believed. */
    int code = EB_EXIT_OK;
    for (char **at = roots; *at != NULL; at++) {
        const int one = eb_try_store_list(cli, *at, client == NULL ? NULL : "try", sessions);
        code = one > code ? one : code;
    }
    if (client == NULL) {
        const int one = eb_try_store_list(cli, state_dir, NULL, sessions);
        code = one > code ? one : code;
    }
    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, g_steal_pointer(&root));
        return code;
    }
    for (guint i = 0; i < json_array_get_length(sessions); i++) {
        JsonObject *row = eb_json_array_object(sessions, i);
        gint64 tokens = eb_json_get_int(eb_json_get_object(row, "used"), "tokens", 0);
        g_autofree char *used = tokens > 0 ? g_strdup_printf(" %" G_GINT64_FORMAT " tokens", tokens) : g_strdup("");
        eb_cli_print(cli, "%-14s %-9s %-16s %-18s %s%s%s\n", text_of(row, "id"), text_of(row, "state"),
                     text_of(row, "project"), text_of(row, "agent"), text_of(row, "last_activity"), used,
                     eb_json_get_bool(row, "pinned", FALSE) ? " pinned" : "");
    }
    return code;
}

static JsonNode *
id_params(const char *id)
{
    JsonObject *object = json_object_new();
    json_object_set_string_member(object, "id", id);
    return eb_control_object(object);
}

static void
print_events(EbCli *cli, JsonNode *node)
{
    JsonArray *events = eb_json_get_array(eb_json_node_object(node), "events");
    gint64 left_out = eb_json_get_int(eb_json_node_object(node), "left_out", 0);

    if (left_out > 0 && !eb_cli_get_json(cli))
        eb_cli_print(cli, "(%" G_GINT64_FORMAT " earlier events are not shown)\n", left_out);
    for (guint i = 0; events != NULL && i < json_array_get_length(events); i++) {
        JsonNode *event = json_array_get_element(events, i);
        JsonObject *object = eb_json_node_object(event);
        if (eb_cli_get_json(cli)) {
            eb_cli_print_json(cli, json_node_copy(event));
            continue;
        }
        g_autofree char *text = eb_log_escape(text_of(object, "text"), -1, 2000);
        eb_cli_print(cli, "%s %s %s\n", text_of(object, "at"), text_of(object, "event"), text);
    }
}

static char *
target_of(JsonObject *row)
{
    const char *host = eb_json_get_string(row, "host");
    const char *provider = eb_json_get_string(row, "provider");
    gint64 port = eb_json_get_int(row, "port", 0);

    if (host == NULL)
        return g_strdup(provider != NULL ? provider : "-");
    return port > 0 ? g_strdup_printf("%s:%" G_GINT64_FORMAT, host, port) : g_strdup(host);
}

static void
print_connection(EbCli *cli, JsonObject *row)
{
    g_autofree char *target = target_of(row);
    gint64 lost = eb_json_get_int(row, "lost", 0);

    eb_cli_print(cli, "%-20s %-8s %-40s %-18s %10" G_GINT64_FORMAT " %10" G_GINT64_FORMAT " %7" G_GINT64_FORMAT " %s\n",
                 text_of(row, "at"), text_of(row, "kind"), target, text_of(row, "decision"),
                 eb_json_get_int(row, "bytes_up", 0), eb_json_get_int(row, "bytes_down", 0),
                 eb_json_get_int(row, "ms", 0), text_of(row, "rule"));
    if (lost > 0)
        eb_cli_print(cli, "  (%" G_GINT64_FORMAT " rows are missing before this one)\n", lost);
}

/* No success when rows were changed or taken out: a script must not go by what it read then. */
static int
print_chain(EbCli *cli, JsonObject *chain)
{
    gint64 broken = eb_json_get_int(chain, "broken_at", 0);
    gint64 rows = eb_json_get_int(chain, "rows", 0), pruned = eb_json_get_int(chain, "pruned", 0);

    if (!eb_cli_get_json(cli) && broken == 0 && rows == 0 && pruned == 0)
        eb_cli_print(cli, "no connection is recorded\n");
    else if (!eb_cli_get_json(cli) && broken == 0)
        eb_cli_print(cli, "%" G_GINT64_FORMAT " rows, %" G_GINT64_FORMAT " older ones pruned; the chain is whole\n",
                     rows, pruned);
    if (broken == 0)
        return EB_EXIT_OK;
    g_autoptr(GError) error = eb_error_new(EB_ERROR_INTEGRITY, "egress.broken",
                                           "the egress audit is not what was written, from row %" G_GINT64_FORMAT
                                           " on: %s (the log of the service has the head of each session that ended)",
                                           broken, text_of(chain, "why"));
    return eb_cli_fail(cli, "sessions logs", error);
}

static int
print_egress(EbCli *cli, JsonNode *node)
{
    JsonArray *events = eb_json_get_array(eb_json_node_object(node), "events");
    gint64 left_out = eb_json_get_int(eb_json_node_object(node), "left_out", 0);
    int code = EB_EXIT_OK;

    if (!eb_cli_get_json(cli)) {
        eb_cli_print(cli, "%-20s %-8s %-40s %-18s %10s %10s %7s %s\n", "at", "kind", "target", "decision", "up", "down",
                     "ms", "rule");
        if (left_out > 0)
            eb_cli_print(cli, "(%" G_GINT64_FORMAT " earlier rows are not shown)\n", left_out);
    }
    for (guint i = 0; events != NULL && i < json_array_get_length(events); i++) {
        JsonNode *event = json_array_get_element(events, i);
        JsonObject *row = eb_json_node_object(event);
        if (eb_cli_get_json(cli))
            eb_cli_print_json(cli, json_node_copy(event));
        if (g_strcmp0(eb_json_get_string(row, "event"), "chain") == 0)
            code = print_chain(cli, row);
        else if (!eb_cli_get_json(cli))
            print_connection(cli, row);
    }
    return code;
}

/* One session of the service. NULL with EB_ERROR_NOT_FOUND or EB_ERROR_UNAVAILABLE: it may be one of a try. */
static JsonNode *
ask_service(EbCli *cli, EbConfig *config, const char *verb, const char *id, GError **error)
{
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), error);
    g_autofree char *method = g_strconcat("sessions.", verb, NULL);

    if (client == NULL)
        return NULL;
    return eb_cli_call(cli, client, method, id_params(id), 2 * EB_CONTROL_DEADLINE_MS, error);
}

static int
one(EbCli *cli, EbConfig *config, const char *verb, const char *id)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = ask_service(cli, config, verb, id, &error);

    if (node == NULL && (g_error_matches(error, EB_ERROR, EB_ERROR_NOT_FOUND) ||
                         g_error_matches(error, EB_ERROR, EB_ERROR_UNAVAILABLE))) {
        g_autoptr(GError) other = NULL;
        g_autofree char *root = eb_try_find_root(eb_config_get_state_dir(config), id, &other);
        if (root != NULL) {
            g_clear_error(&error);
            node = eb_try_store_do(cli, root, verb, id, &error);
        }
    }
    if (node == NULL) {
        g_autofree char *what = g_strdup_printf("sessions %s", strcmp(verb, "egress") == 0 ? "logs" : verb);
        return eb_cli_fail(cli, what, error);
    }
    if (strcmp(verb, "egress") == 0)
        return print_egress(cli, node);
    if (strcmp(verb, "logs") == 0)
        print_events(cli, node);
    else if (strcmp(verb, "show") == 0 || eb_cli_get_json(cli))
        eb_cli_print_json(cli, g_steal_pointer(&node));
    return EB_EXIT_OK;
}

/* One more host for a session, or one less: the running service does it, since its brokers go by it. */
static int
host(EbCli *cli, EbConfig *config, const char *verb, const char *id, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), &error);
    g_autofree char *method = g_strconcat("sessions.", verb, NULL);
    g_autofree char *what = g_strconcat("sessions ", verb, NULL);
    JsonNode *params = id_params(id);
    g_autoptr(JsonNode) node = NULL;

    json_object_set_string_member(json_node_get_object(params), "host", name);
    if (client == NULL)
        json_node_unref(params);
    else
        node = eb_cli_call(cli, client, method, params, 2 * EB_CONTROL_DEADLINE_MS, &error);
    if (node == NULL)
        return eb_cli_fail(cli, what, error);
    if (eb_cli_get_json(cli))
        eb_cli_print_json(cli, g_steal_pointer(&node));
    else if (strcmp(verb, "allow") == 0)
        eb_cli_print(cli, "%s may reach %s until it is removed or this is taken back\n", id, name);
    else
        eb_cli_print(cli, "%s: taken back for %s; what the configuration allows stays allowed\n", name, id);
    return EB_EXIT_OK;
}

static int
prune(EbCli *cli, EbConfig *config)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), &error);
    g_auto(GStrv) roots = NULL;
    guint removed = 0, kept = 0;

    if (account == NULL || !eb_account_check_caller(account, &error))
        return eb_cli_fail(cli, "sessions prune", error);
    roots = eb_try_roots(eb_config_get_state_dir(config));
    for (char **root = roots; *root != NULL; root++) {
        g_autoptr(GError) local = NULL;
        if (eb_try_store_remove_root(*root, &local)) {
            removed++;
        } else {
            kept++;
            if (!g_error_matches(local, EB_ERROR, EB_ERROR_LOCKED))
                eb_cli_fail(cli, *root, local);
        }
    }
    if (!eb_cli_get_json(cli)) {
        eb_cli_print(cli, "%u removed, %u in use or kept\n", removed, kept);
        return EB_EXIT_OK;
    }
    JsonObject *object = json_object_new();
    json_object_set_int_member(object, "removed", removed);
    json_object_set_int_member(object, "kept", kept);
    eb_cli_print_json(cli, eb_control_object(object));
    return EB_EXIT_OK;
}

int
eb_cmd_sessions(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbCliArgs *args = eb_cli_get_args(cli);
    const char *verb = eb_cli_args_get_verb(args);
    const char *id = eb_cli_args_operands(args)[0];
    EbConfig *config = eb_cli_get_config(cli, &error);

    if (config == NULL)
        return eb_cli_fail(cli, "sessions", error);
    if (strcmp(verb, "prune") == 0)
        return prune(cli, config);
    if (strcmp(verb, "") == 0 || strcmp(verb, "list") == 0)
        return list(cli, config);
    if (strcmp(verb, "allow") == 0 || strcmp(verb, "deny") == 0)
        return host(cli, config, verb, id, eb_cli_args_operands(args)[1]);
    if (strcmp(verb, "remove") == 0 && !eb_cli_args_flag(args, "yes"))
        return eb_cli_refuse(cli, "sessions remove: this cannot be taken back (add --yes)");
    if (eb_cli_args_flag(args, "egress") && strcmp(verb, "logs") != 0)
        return eb_cli_refuse(cli, "sessions: --egress belongs to logs");
    return one(cli, config, eb_cli_args_flag(args, "egress") ? "egress" : verb, id);
}
