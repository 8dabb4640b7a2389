/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-doctor-facts.h"

#include "core/cli/eb-cli-call.h"

#include <string.h>

/* A plugin's process has four seconds to say what it checks (EB_DOCTOR_LOAD_MS). */
#define LIST_MS 1500
#define ASK_MS 1500

static void
set(EbConfigSection *settings, const char *key, const char *value)
{
    eb_config_section_set(settings, key, g_variant_new_string(value), "doctor", 0);
}

static void
add_credentials(EbCli *cli, EbConfigSection *settings)
{
    const char *named = eb_cli_get_config_file(cli);
    /* What is run stands in another directory. */
    g_autofree char *file = named != NULL ? g_canonicalize_filename(named, NULL) : NULL;
    const char *const with_config[] = {"/proc/self/exe", "--config", file, "--json", "creds", "list", NULL};
    const char *const plain[] = {"/proc/self/exe", "--json", "creds", "list", NULL};
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(GError) error = NULL;
    int code = -1;
    g_autofree char *text = eb_host_run(host, file != NULL ? with_config : plain, LIST_MS, &code, &error);
    g_autoptr(JsonNode) node =
        text != NULL && *text != '\0' ? eb_json_parse(text, strlen(text), &EB_JSON_LIMITS_SMALL, NULL) : NULL;

    if (eb_json_get_array(eb_json_node_object(node), "credentials") != NULL)
        set(settings, "credentials.list", text);
    if (error != NULL)
        set(settings, "credentials.problem", error->message);
    else if (code != EB_EXIT_OK)
        set(settings, "credentials.problem", "a store cannot be read here: `errand-box creds list` says why");
}

static void
add_service(EbCli *cli, EbConfig *config, EbConfigSection *settings)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbControlClient) client = eb_control_client_new_now(eb_config_get_state_dir(config), &error);
    g_autoptr(JsonNode) node = client != NULL ? eb_cli_call(cli, client, "doctor.facts", NULL, ASK_MS, &error) : NULL;

    if (eb_json_node_object(node) != NULL) {
        g_autofree char *text = eb_json_write(node, NULL);
        set(settings, "service.facts", text);
    } else {
        set(settings, "service.problem", error != NULL ? error->message : "its answer is not understood");
    }
}

void
eb_doctor_facts_add(EbCli *cli, EbConfig *config, EbConfigSection *settings)
{
    add_credentials(cli, settings);
    add_service(cli, config, settings);
}
