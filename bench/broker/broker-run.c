/* SPDX-License-Identifier: MIT */
/*
 * Runs one session's broker in the foreground, as the service would: for the bench and for trying things by hand.
 *
 *   broker-run RUN_DIR RULES.json
 *
 * RULES: {"allow": [...], "ports": [...], "allow_internal": bool, "ca": "file",
 *         "providers": [{"name", "kind", "base_url", "key_file", "nonce_file"}]}
 * Prints a line of JSON for every signal when AUDIT is set in the environment.
 */
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/eb-unix.h"
#include "core/broker/eb-broker-ctl.h"

static GMainLoop *loop;
static EbBrokerCtl *broker;
static gboolean show;

static EbSecret *
secret_from(const char *label, const char *path)
{
    g_autoptr(GError) error = NULL;
    eb_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    EbSecret *secret = fd >= 0 ? eb_secret_new_from_fd(label, fd, &error) : NULL;

    if (secret == NULL)
        g_error("%s: %s", path, error != NULL ? error->message : "cannot be opened");
    return secret;
}

static EbBrokerRules *
rules_from(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    g_autoptr(JsonNode) node = NULL;
    g_autoptr(GStrvBuilder) allow = g_strv_builder_new();
    EbBrokerRules *rules = eb_broker_rules_new("bench");
    JsonObject *root;
    JsonArray *list;
    gsize length;

    if (!g_file_get_contents(path, &text, &length, &error))
        g_error("%s", error->message);
    node = eb_json_parse(text, length, &EB_JSON_LIMITS_SMALL, &error);
    if (node == NULL)
        g_error("%s", error->message);
    root = eb_json_node_object(node);
    rules->proxy = TRUE;
    rules->allow_internal = eb_json_get_bool(root, "allow_internal", FALSE);
    list = eb_json_get_array(root, "allow");
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++)
        g_strv_builder_add(allow, eb_json_array_string(list, i));
    rules->allow = g_strv_builder_end(allow);
    list = eb_json_get_array(root, "ports");
    rules->n_ports = list != NULL ? json_array_get_length(list) : 0;
    rules->ports = g_new0(guint16, rules->n_ports + 1);
    for (guint i = 0; i < rules->n_ports; i++)
        rules->ports[i] = (guint16)json_array_get_int_element(list, i);
    if (eb_json_get_string(root, "ca") != NULL) {
        g_autofree char *pem = NULL;

        if (!g_file_get_contents(eb_json_get_string(root, "ca"), &pem, &length, &error))
            g_error("%s", error->message);
        rules->ca_pem = g_bytes_new(pem, length);
    }
    list = eb_json_get_array(root, "providers");
    for (guint i = 0; list != NULL && i < json_array_get_length(list); i++) {
        JsonObject *provider = eb_json_array_object(list, i);
        g_autoptr(EbSecret) key = secret_from("key", eb_json_get_string(provider, "key_file"));
        g_autoptr(EbSecret) nonce = secret_from("nonce", eb_json_get_string(provider, "nonce_file"));

        eb_broker_rules_add_provider(rules, eb_json_get_string(provider, "name"), eb_json_get_string(provider, "kind"),
                                     eb_json_get_string(provider, "base_url"), key, nonce);
    }
    return rules;
}

static void
on_audit(EbBrokerCtl *ctl, JsonObject *row, gpointer user_data)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *text = NULL;

    if (!show)
        return;
    json_node_set_object(node, row);
    text = eb_json_write(node, NULL);
    g_print("%s\n", text);
}

static void
on_denied(EbBrokerCtl *ctl, const char *host, guint port, const char *code, gpointer user_data)
{
    g_print("denied %s %u %s\n", host, port, code);
}

static void
on_provider_error(EbBrokerCtl *ctl, const char *provider, guint status, const char *text, gpointer user_data)
{
    g_print("provider %s: %u %s\n", provider, status, text);
}

static void
on_died(EbBrokerCtl *ctl, gboolean restarted, const char *why, gpointer user_data)
{
    g_print("died: %s%s\n", why, restarted ? ", replaced" : "");
}

static void
on_started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;

    broker = eb_broker_ctl_start_finish(result, &error);
    if (broker == NULL)
        g_error("%s", error->message);
    g_signal_connect(broker, "audit", G_CALLBACK(on_audit), NULL);
    g_signal_connect(broker, "denied", G_CALLBACK(on_denied), NULL);
    g_signal_connect(broker, "provider-error", G_CALLBACK(on_provider_error), NULL);
    g_signal_connect(broker, "died", G_CALLBACK(on_died), NULL);
    g_print("ready pid %d\n", eb_broker_ctl_get_pid(broker));
}

static void
on_stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_main_loop_quit(loop);
}

static gboolean
on_signal(gpointer user_data)
{
    if (broker == NULL)
        g_main_loop_quit(loop);
    else
        eb_broker_ctl_stop_async(broker, NULL, on_stopped, NULL);
    return G_SOURCE_REMOVE;
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPaths) paths = NULL;
    EbBrokerRules *rules;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3) {
        g_printerr("usage: broker-run RUN_DIR RULES.json\n");
        return 2;
    }
    show = g_getenv("AUDIT") != NULL;
    paths = eb_paths_new(&error);
    if (paths == NULL)
        g_error("%s", error->message);
    loop = g_main_loop_new(NULL, FALSE);
    rules = rules_from(argv[2]);
    eb_broker_ctl_start_async(paths, argv[1], rules, 10000, NULL, on_started, NULL);
    eb_broker_rules_free(rules);
    g_unix_signal_add(SIGTERM, on_signal, NULL);
    g_unix_signal_add(SIGINT, on_signal, NULL);
    g_main_loop_run(loop);
    g_clear_object(&broker);
    return 0;
}
