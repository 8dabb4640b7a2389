/* SPDX-License-Identifier: MIT */
/* One errand on this terminal: in this process, or with --service in the running service. */
#include "core/cli/eb-cli-commands.h"
#include "core/cli/eb-cli-enter.h"
#include "core/cli/eb-try.h"
#include "core/daemon/eb-daemon.h"
#include "core/session/eb-project-name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The name a terminal's plugin provides its transport by. */
#define CONSOLE_TRANSPORT "console"
#define MAX_PROMPT (512 * 1024)

JsonObject *
eb_try_no_times(void)
{
    static const char *const parts[] = {"guest", "agent", "turn"};
    JsonObject *ms = json_object_new();

    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        json_object_set_int_member(ms, parts[i], 0);
    return ms;
}

int
eb_try_fail(EbCli *cli, const GError *error)
{
    int code = eb_cli_fail(cli, "try", error);

    if (eb_cli_get_json(cli)) {
        JsonObject *end = json_object_new();
        JsonNode *node = json_node_new(JSON_NODE_OBJECT);
        g_autofree char *text = eb_log_mask_text(error->message, -1);
        json_object_set_string_member(end, "event", "end");
        json_object_set_string_member(end, "stop_reason", "error");
        json_object_set_string_member(end, "error", text);
        json_object_set_object_member(end, "ms", eb_try_no_times());
        json_node_take_object(node, end);
        eb_cli_print_json(cli, node);
    }
    return code;
}

/* Words joined by blanks, or all of stdin for "-". */
static char *
read_prompt(EbCliArgs *args, GError **error)
{
    const char *const *words = eb_cli_args_operands(args);
    g_autoptr(GString) text = g_string_new(NULL);
    char chunk[4096];
    size_t got;

    if (strcmp(words[0], "-") != 0 || words[1] != NULL)
        g_string_append(text, *words++);
    else
        words++;
    for (; *words != NULL; words++)
        g_string_append_printf(text, " %s", *words);
    while (text->len == 0 && (got = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        do {
            g_string_append_len(text, chunk, (gssize)got);
        } while (text->len <= MAX_PROMPT && (got = fread(chunk, 1, sizeof chunk, stdin)) > 0);
    }
    if (text->len > MAX_PROMPT || !g_utf8_validate_len(text->str, text->len, NULL)) {
        eb_set_error(error, EB_ERROR_INVALID, "try.prompt", "a prompt is UTF-8 text of at most %d KiB",
                     MAX_PROMPT / 1024);
        return NULL;
    }
    g_strstrip(text->str);
    if (*text->str == '\0') {
        eb_set_error(error, EB_ERROR_INVALID, "try.prompt", "the prompt is empty");
        return NULL;
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* A terminal has these two properties; what they mean is the transport's business. */
static gboolean
set_up_console(EbCli *cli, GObject *console, GError **error)
{
    GObjectClass *klass = G_OBJECT_GET_CLASS(console);
    const char *policy = eb_cli_args_value(eb_cli_get_args(cli), "permissions");

    if (g_object_class_find_property(klass, "events") == NULL ||
        g_object_class_find_property(klass, "permissions") == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "try.console", "the transport \"" CONSOLE_TRANSPORT "\" is no terminal");
        return FALSE;
    }
    g_object_set(console, "events", eb_cli_get_json(cli), NULL);
    if (policy != NULL)
        g_object_set(console, "permissions", policy, NULL);
    return TRUE;
}

static gboolean
check_request(EbConfig *config, const EbTryRequest *request, gboolean service, EbCliArgs *args, GError **error)
{
    const char *policy = eb_cli_args_value(args, "permissions");
    static const char *const policies[] = {"ask", "allow", "reject", NULL};

    if (policy != NULL && !g_strv_contains(policies, policy)) {
        eb_set_error(error, EB_ERROR_INVALID, "try.permissions", "--permissions is ask, allow or reject");
        return FALSE;
    }
    if (!service && eb_cli_args_value(args, "session") != NULL) {
        eb_set_error(error, EB_ERROR_INVALID, "try.session", "--session goes with --service (here it is --resume)");
        return FALSE;
    }
    if (service && eb_cli_args_value(args, "resume") != NULL) {
        eb_set_error(error, EB_ERROR_INVALID, "try.session",
                     "--resume is for a try of its own (--service has --session)");
        return FALSE;
    }
    if (!eb_project_name_check(request->project, error))
        return FALSE;
    return request->agent == NULL || eb_config_get_agent(config, request->agent, error) != NULL;
}

static EbPluginRegistry *
load_plugins(EbCli *cli, EbConfig *config, gboolean service, EbChatTransport **console, GError **error)
{
    g_autofree char *backend = g_strconcat("container-backend:", eb_config_get_session(config)->backend, NULL);
    const char *const own[] = {"chat-transport:" CONSOLE_TRANSPORT, "credential-store", backend, NULL};
    const char *const served[] = {"chat-transport:" CONSOLE_TRANSPORT, NULL};
    EbPluginRegistry *registry = eb_cli_get_registry(cli, service ? served : own, NULL, NULL, error);

    if (registry == NULL)
        return NULL;
    GObject *transport = eb_plugin_registry_find(registry, EB_EXTENSION_CHAT_TRANSPORT, CONSOLE_TRANSPORT, NULL);
    if (transport == NULL) {
        eb_set_error(error, EB_ERROR_CONFIG, "try.console",
                     "no plugin provides the terminal as a transport (see errand-box plugin list)");
        return NULL;
    }
    if (!set_up_console(cli, transport, error))
        return NULL;
    *console = EB_CHAT_TRANSPORT(transport);
    return service || eb_daemon_check_backend(config, registry, error) ? registry : NULL;
}

int
eb_cmd_try(EbCli *cli, int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    EbCliArgs *args = eb_cli_get_args(cli);
    gboolean service = eb_cli_args_flag(args, "service");
    const char *project = eb_cli_args_value(args, "project");
    EbTryRequest request = {
        .project = project != NULL ? project : EB_TRY_PROJECT,
        .agent = eb_cli_args_value(args, "agent"),
        .model = eb_cli_args_value(args, "model"),
        .session = eb_cli_args_value(args, service ? "session" : "resume"),
    };
    EbChatTransport *console = NULL;
    EbConfig *config = eb_cli_get_config(cli, &error);
    g_autofree char *prompt = config != NULL ? read_prompt(args, &error) : NULL;

    request.prompt = prompt;
    if (prompt == NULL || !check_request(config, &request, service, args, &error))
        return eb_try_fail(cli, error);
    EbPluginRegistry *registry = load_plugins(cli, config, service, &console, &error);
    if (registry == NULL)
        return eb_try_fail(cli, error);
    if (service)
        return eb_try_run_in_service(cli, registry, console, &request);
    g_autoptr(EbCredentials) credentials = eb_cli_enter(cli, config, registry, &error);
    if (credentials == NULL)
        return eb_try_fail(cli, error);
    return eb_try_run(cli, registry, console, &request);
}
