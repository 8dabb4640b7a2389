/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-try.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    EbCli *cli;
    EbChatTransport *console;
    EbControlClient *client;
    gboolean over;
    char *session;     /* (nullable) */
    char *stop_reason; /* (nullable) */
    GError *error;     /* (nullable) */
    guint interrupts;
    gboolean shown; /* the service posted how it ended */
} Served;

typedef struct {
    EbJsonrpc *peer;
    JsonNode *id;
} Answer;

static void
posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_free(eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, NULL));
}

static void
notified(EbJsonrpc *peer, const char *method, JsonNode *params, gpointer user_data)
{
    Served *self = user_data;
    JsonObject *object = eb_json_node_object(params);

    if (strcmp(method, "post") == 0) {
        EbChatPost *post = eb_control_post_from_json(object);
        if (post == NULL)
            return;
        self->shown = self->shown || post->kind == EB_CHAT_POST_ERROR || post->kind == EB_CHAT_POST_END;
        eb_chat_transport_post_async(self->console, post, NULL, posted, NULL);
        eb_chat_post_unref(post);
    } else if (strcmp(method, "ended") == 0 && !self->over) {
        const char *error = eb_json_get_string(object, "error");
        gint64 code = eb_json_get_int(object, "code", EB_ERROR_FAILED);
        self->session = g_strdup(eb_json_get_string(object, "session"));
        self->stop_reason = g_strdup(eb_json_get_string(object, "stop_reason"));
        if (error != NULL)
            self->error =
                eb_error_new(code >= EB_ERROR_FAILED && code <= EB_ERROR_LOCKED ? (EbErrorCode)code : EB_ERROR_FAILED,
                             "control.error", "%s", error);
        self->over = TRUE;
    }
}

static void
answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answer *answer = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *choice = eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(source), result, NULL, &error);

    if (choice != NULL) {
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "choice", choice);
        eb_jsonrpc_reply(answer->peer, answer->id, eb_control_object(object));
    } else {
        eb_jsonrpc_reply_error(answer->peer, answer->id, error->domain == EB_ERROR ? error->code : EB_ERROR_FAILED,
                               error->message);
    }
    g_object_unref(answer->peer);
    json_node_unref(answer->id);
    g_free(answer);
}

static gboolean
asked(EbJsonrpc *peer, const char *method, JsonNode *params, JsonNode *id, gpointer user_data)
{
    Served *self = user_data;
    guint timeout_ms = 0;
    EbChatQuestion *question =
        strcmp(method, "ask") == 0 ? eb_control_question_from_json(eb_json_node_object(params), &timeout_ms) : NULL;

    if (question == NULL)
        return FALSE;
    Answer *answer = g_new0(Answer, 1);
    answer->peer = g_object_ref(peer);
    answer->id = json_node_copy(id);
    eb_chat_transport_ask_async(self->console, question, timeout_ms, NULL, answered, answer);
    eb_chat_question_unref(question);
    return TRUE;
}

static void
lost(EbJsonrpc *peer, GError *error, gpointer user_data)
{
    Served *self = user_data;

    if (self->over)
        return;
    self->error =
        eb_error_new(EB_ERROR_UNAVAILABLE, "control.lost", "the service went away (errand-box sessions list)");
    self->over = TRUE;
}

static void
interrupt_sent(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(JsonNode) node = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, NULL, NULL);
}

static gboolean
interrupted(gpointer user_data)
{
    Served *self = user_data;
    JsonObject *params = json_object_new();

    if (++self->interrupts >= 3)
        _exit(EB_EXIT_FAILED);
    json_object_set_int_member(params, "count", self->interrupts);
    eb_jsonrpc_call_async(eb_control_client_get_peer(self->client), "interrupt", eb_control_object(params),
                          EB_CONTROL_DEADLINE_MS, NULL, interrupt_sent, NULL);
    return G_SOURCE_CONTINUE;
}

static gboolean
send_prompt(Served *self, const EbTryRequest *request, GError **error)
{
    JsonObject *params = json_object_new();

    eb_control_set_text(params, "text", request->prompt);
    eb_control_set_text(params, "session", request->session);
    eb_control_set_text(params, "agent", request->agent);
    eb_control_set_text(params, "model", request->model);
    if (request->session == NULL)
        eb_control_set_text(params, "project", request->project);
    g_autoptr(JsonNode) result =
        eb_cli_call(self->cli, self->client, "prompt", eb_control_object(params), EB_CONTROL_DEADLINE_MS, error);
    return result != NULL;
}

static void
stopped(GObject *source, GAsyncResult *result, gpointer user_data)
{
    gboolean *done = user_data;

    eb_plugin_registry_stop_finish(EB_PLUGIN_REGISTRY(source), result, NULL);
    *done = TRUE;
}

static void
started(GObject *source, GAsyncResult *result, gpointer user_data)
{
    gboolean *done = user_data;

    eb_plugin_registry_start_finish(EB_PLUGIN_REGISTRY(source), result, NULL);
    *done = TRUE;
}

static int
outcome(Served *self)
{
    if (self->error != NULL && self->shown && !eb_cli_get_json(self->cli))
        return (int)eb_cli_exit_code(self->error);
    if (self->error != NULL)
        return self->shown ? eb_cli_fail(self->cli, "try", self->error) : eb_try_fail(self->cli, self->error);
    if (g_strcmp0(self->stop_reason, "end_turn") == 0)
        return EB_EXIT_OK;
    eb_cli_fail(self->cli, "the turn did not end normally", NULL);
    return EB_EXIT_FAILED;
}

int
eb_try_run_in_service(EbCli *cli, EbPluginRegistry *registry, EbChatTransport *console, const EbTryRequest *request)
{
    g_autoptr(GError) error = NULL;
    EbConfig *config = eb_cli_get_config(cli, NULL);
    g_autoptr(EbControlClient) client = eb_control_client_new(eb_config_get_state_dir(config), &error);
    Served self = {.cli = cli, .console = console, .client = client};
    gboolean plugins_started = FALSE, plugins_stopped = FALSE;

    if (client == NULL)
        return eb_try_fail(cli, error);
    eb_plugin_registry_start_async(registry, EB_CONTROL_DEADLINE_MS, NULL, started, &plugins_started);
    eb_cli_wait(cli, &plugins_started);
    EbJsonrpc *peer = eb_control_client_get_peer(client);
    g_signal_connect(peer, "notification", G_CALLBACK(notified), &self);
    g_signal_connect(peer, "request", G_CALLBACK(asked), &self);
    g_signal_connect(peer, "closed", G_CALLBACK(lost), &self);
    g_autoptr(GSource) signal_source = g_unix_signal_source_new(SIGINT);
    g_source_set_callback(signal_source, interrupted, &self, NULL);
    g_source_attach(signal_source, NULL);

    if (send_prompt(&self, request, &self.error))
        eb_cli_wait(cli, &self.over);
    self.over = TRUE;
    g_source_destroy(signal_source);
    g_signal_handlers_disconnect_by_data(peer, &self);
    eb_plugin_registry_stop_async(registry, EB_CONTROL_DEADLINE_MS, NULL, stopped, &plugins_stopped);
    eb_cli_wait(cli, &plugins_stopped);
    int code = outcome(&self);
    if (self.session != NULL && code != EB_EXIT_REFUSED && !eb_cli_get_json(cli))
        fprintf(stderr, "errand-box: to go on: errand-box try --service --session %s PROMPT\n", self.session);
    g_free(self.session);
    g_free(self.stop_reason);
    g_clear_error(&self.error);
    return code;
}
