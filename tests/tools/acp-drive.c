/* SPDX-License-Identifier: MIT */

/*
 * acp-drive: runs an ACP agent on this machine through the client of the service and prints what it says, one JSON
 * object a line. For trying agents by hand and for tests that compare agents.
 */

#include "core/acp/eb-acp-client.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define INITIALIZE_MS 60000
#define OPEN_MS 90000
#define SETTING_MS 30000

static char *opt_cwd;
static char *opt_load;
static char *opt_resume;
static char *opt_model;
static char *opt_mode;
static char *opt_permission;
static char **opt_prompts;
static char **opt_command;
static int opt_cancel_after = -1;
static int opt_abort = 15000;
static gboolean opt_raw;

static const GOptionEntry entries[] = {
    {"cwd", 0, 0, G_OPTION_ARG_STRING, &opt_cwd, "Working directory of the session", "DIR"},
    {"load", 0, 0, G_OPTION_ARG_STRING, &opt_load, "Load this session", "ID"},
    {"resume", 0, 0, G_OPTION_ARG_STRING, &opt_resume, "Resume this session", "ID"},
    {"model", 0, 0, G_OPTION_ARG_STRING, &opt_model, "Choose the model", "MODEL"},
    {"mode", 0, 0, G_OPTION_ARG_STRING, &opt_mode, "Choose the mode", "MODE"},
    {"permission", 0, 0, G_OPTION_ARG_STRING, &opt_permission, "allow (default), reject, cancel, or hold", "HOW"},
    {"cancel-after", 0, 0, G_OPTION_ARG_INT, &opt_cancel_after, "Cancel each turn after this time", "MS"},
    {"abort", 0, 0, G_OPTION_ARG_INT, &opt_abort, "Wait this long for the end of a cancelled turn", "MS"},
    {"prompt", 0, 0, G_OPTION_ARG_STRING_ARRAY, &opt_prompts, "A prompt; more than one is a further turn", "TEXT"},
    {"raw", 0, 0, G_OPTION_ARG_NONE, &opt_raw, "Print the updates as they came as well", NULL},
    {G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_STRING_ARRAY, &opt_command, NULL, "-- COMMAND [ARG...]"},
    {NULL, 0, 0, 0, NULL, NULL, NULL}};

typedef struct {
    GMainLoop *loop;
    GSubprocess *process;
    EbAcpClient *client;
    GPtrArray *held; /* (element-type EbAcpPermission) left open */
    guint next_prompt;
    GSource *cancel;
    gint64 start;
    int status;
    gboolean closed;
    gboolean exited;
} Drive;

static void next_turn(Drive *drive);

static void
say(Drive *drive, const char *event, ...)
{
    g_autoptr(JsonObject) object = json_object_new();
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    g_autofree char *text = NULL;
    const char *key;
    va_list list;

    json_object_set_string_member(object, "event", event);
    va_start(list, event);
    while ((key = va_arg(list, const char *)) != NULL) {
        const char *value = va_arg(list, const char *);

        if (value != NULL)
            json_object_set_string_member(object, key, value);
    }
    va_end(list);
    json_object_set_int_member(object, "ms", (g_get_monotonic_time() - drive->start) / 1000);
    json_node_set_object(node, object);
    text = eb_json_write(node, NULL);
    puts(text); /* not g_print(), which loses what the locale cannot show */
    fflush(stdout);
}

static void
stop(Drive *drive, int status)
{
    drive->status = MAX(drive->status, status);
    if (drive->client != NULL)
        eb_acp_client_close(drive->client);
    if (drive->closed && drive->exited)
        g_main_loop_quit(drive->loop);
}

static void
fail(Drive *drive, const char *what, GError *error)
{
    g_autofree char *tail = eb_acp_client_get_stderr_tail(drive->client);

    say(drive, "error", "what", what, "reason", eb_error_get_reason(error), "message", error->message, "stderr", tail,
        NULL);
    stop(drive, 1);
}

static const char *
kind_name(EbAcpUpdateKind kind)
{
    static const char *const names[] = {"text", "thought", "user", "tool",  "plan",   "commands",
                                        "mode", "config",  "info", "usage", "notice", "other"};

    return names[kind];
}

static void
on_update(EbAcpClient *client, EbAcpUpdate *update, gpointer user_data)
{
    Drive *drive = user_data;
    g_autofree char *used = update->used >= 0 ? g_strdup_printf("%" G_GINT64_FORMAT, update->used) : NULL;
    g_autofree char *diffs = NULL;
    g_autofree char *raw = NULL;
    const EbAcpTool *tool = update->tool;

    if (tool != NULL)
        diffs = g_strdup_printf("%u", tool->diffs->len);
    if (opt_raw) {
        g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);

        json_node_set_object(node, update->raw);
        raw = eb_json_write(node, NULL);
    }
    say(drive, kind_name(update->kind), "name", update->name, "text", update->text, "late", update->late ? "yes" : NULL,
        "replay", update->replay ? "yes" : NULL, "used", used, "tool", tool != NULL ? tool->id : NULL, "title",
        tool != NULL ? tool->title : NULL, "kind", tool != NULL ? tool->kind : NULL, "status",
        tool != NULL ? tool->status : NULL, "output", tool != NULL ? tool->output : NULL, "diffs", diffs, "raw", raw,
        NULL);
}

static void
on_permission(EbAcpClient *client, EbAcpPermission *permission, gpointer user_data)
{
    Drive *drive = user_data;
    GPtrArray *options = eb_acp_permission_get_options(permission);
    g_autoptr(GString) offered = g_string_new(NULL);
    const char *wanted = g_strcmp0(opt_permission, "reject") == 0 ? "reject_once" : "allow_once";
    const char *chosen = NULL;

    for (guint i = 0; i < options->len; i++) {
        const EbAcpOption *option = g_ptr_array_index(options, i);

        g_string_append_printf(offered, "%s%s(%s)", i > 0 ? " " : "", option->id, option->kind);
        if (chosen == NULL && strcmp(option->kind, wanted) == 0)
            chosen = option->id;
    }
    say(drive, "permission", "title", eb_acp_permission_get_tool(permission)->title, "options", offered->str, NULL);
    if (g_strcmp0(opt_permission, "hold") == 0)
        g_ptr_array_add(drive->held, g_object_ref(permission));
    else
        eb_acp_permission_answer(permission, g_strcmp0(opt_permission, "cancel") == 0 ? NULL : chosen, NULL);
}

static void
on_noise(EbAcpClient *client, const char *line, gpointer user_data)
{
    say(user_data, "noise", "text", line, NULL);
}

static void
on_stderr(EbAcpClient *client, const char *line, gpointer user_data)
{
    say(user_data, "stderr", "text", line, NULL);
}

static void
on_closed(EbAcpClient *client, const GError *error, gpointer user_data)
{
    Drive *drive = user_data;

    drive->closed = TRUE;
    say(drive, "closed", "message", error != NULL ? error->message : NULL, NULL);
    if (drive->exited)
        g_main_loop_quit(drive->loop);
}

static void
on_exit_status(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autofree char *how = NULL;

    g_subprocess_wait_finish(drive->process, result, NULL);
    drive->exited = TRUE;
    how = g_subprocess_get_if_exited(drive->process)
              ? g_strdup_printf("exited with status %d", g_subprocess_get_exit_status(drive->process))
              : g_strdup_printf("was killed by signal %d", g_subprocess_get_term_sig(drive->process));
    say(drive, "exit", "how", how, NULL);
    if (drive->closed)
        g_main_loop_quit(drive->loop);
    else
        eb_acp_client_agent_ended(drive->client, how);
}

static gboolean
on_cancel_time(gpointer user_data)
{
    Drive *drive = user_data;

    g_clear_pointer(&drive->cancel, g_source_unref);
    say(drive, "cancel", NULL);
    eb_acp_client_cancel(drive->client, (guint)opt_abort);
    return G_SOURCE_REMOVE;
}

static void
on_turn(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbAcpTurn) turn = eb_acp_client_prompt_finish(drive->client, result, &error);
    g_autofree char *code = NULL;

    if (drive->cancel != NULL) {
        g_source_destroy(drive->cancel);
        g_clear_pointer(&drive->cancel, g_source_unref);
    }
    if (turn == NULL) {
        fail(drive, "prompt", error);
        return;
    }
    code = turn->error_code != 0 ? g_strdup_printf("%" G_GINT64_FORMAT, turn->error_code) : NULL;
    say(drive, "end", "stop_reason", turn->stop_reason, "error", turn->error, "code", code, "empty",
        turn->empty ? "yes" : NULL, NULL);
    next_turn(drive);
}

static void
next_turn(Drive *drive)
{
    g_autoptr(JsonArray) blocks = NULL;
    JsonObject *block;

    if (opt_prompts == NULL || opt_prompts[drive->next_prompt] == NULL) {
        stop(drive, 0);
        return;
    }
    blocks = json_array_new();
    block = json_object_new();
    json_object_set_string_member(block, "type", "text");
    json_object_set_string_member(block, "text", opt_prompts[drive->next_prompt++]);
    json_array_add_object_element(blocks, block);
    eb_acp_client_prompt_async(drive->client, blocks, NULL, on_turn, drive);
    if (opt_cancel_after >= 0) {
        drive->cancel = g_timeout_source_new((guint)opt_cancel_after);
        g_source_set_callback(drive->cancel, on_cancel_time, drive, NULL);
        g_source_attach(drive->cancel, NULL);
    }
}

static void
on_mode(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autoptr(GError) error = NULL;

    if (eb_acp_client_set_mode_finish(drive->client, result, &error)) {
        say(drive, "mode-set", "mode", opt_mode, NULL);
        next_turn(drive);
    } else {
        fail(drive, "mode", error);
    }
}

static void
set_mode(Drive *drive)
{
    if (opt_mode != NULL)
        eb_acp_client_set_mode_async(drive->client, opt_mode, SETTING_MS, NULL, on_mode, drive);
    else
        next_turn(drive);
}

static void
on_model(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autoptr(GError) error = NULL;

    if (eb_acp_client_set_model_finish(drive->client, result, &error)) {
        say(drive, "model-set", "model", opt_model, NULL);
        set_mode(drive);
    } else {
        fail(drive, "model", error);
    }
}

static void
on_open(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autoptr(GError) error = NULL;
    guint replayed = 0;
    g_autofree char *id = eb_acp_client_open_finish(drive->client, result, &replayed, &error);
    g_autofree char *count = g_strdup_printf("%u", replayed);

    if (id == NULL) {
        fail(drive, "open", error);
        return;
    }
    say(drive, "session", "id", id, "replayed", count, NULL);
    if (opt_model != NULL)
        eb_acp_client_set_model_async(drive->client, opt_model, SETTING_MS, NULL, on_model, drive);
    else
        set_mode(drive);
}

static void
on_initialized(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Drive *drive = user_data;
    g_autoptr(GError) error = NULL;
    const EbAcpAgentInfo *info = eb_acp_client_initialize_finish(drive->client, result, &error);
    const EbAcpOpen how = opt_load != NULL     ? EB_ACP_OPEN_LOAD
                          : opt_resume != NULL ? EB_ACP_OPEN_RESUME
                                               : EB_ACP_OPEN_NEW;

    if (info == NULL) {
        fail(drive, "initialize", error);
        return;
    }
    say(drive, "initialized", "agent", info->name, "version", info->version, "load", info->load ? "yes" : NULL,
        "resume", info->resume ? "yes" : NULL, "steer", info->steer ? "yes" : NULL, NULL);
    eb_acp_client_open_async(drive->client, how, opt_load != NULL ? opt_load : opt_resume, opt_cwd, OPEN_MS, NULL,
                             on_open, drive);
}

int
main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("-- COMMAND [ARG...]");
    g_autoptr(GSubprocessLauncher) launcher = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *here = g_get_current_dir();
    Drive drive = {.start = g_get_monotonic_time()};

    signal(SIGPIPE, SIG_IGN);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || opt_command == NULL) {
        g_printerr("acp-drive: %s\n", error != NULL ? error->message : "no command (see --help)");
        return 2;
    }
    if (opt_cwd == NULL)
        opt_cwd = g_strdup(here);
    launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                                         G_SUBPROCESS_FLAGS_STDERR_PIPE);
    drive.process = g_subprocess_launcher_spawnv(launcher, (const char *const *)opt_command, &error);
    if (drive.process == NULL) {
        g_printerr("acp-drive: %s\n", error->message);
        return 2;
    }
    drive.loop = g_main_loop_new(NULL, FALSE);
    drive.held = g_ptr_array_new_with_free_func(g_object_unref);
    drive.client =
        eb_acp_client_new(g_subprocess_get_stdin_pipe(drive.process), g_subprocess_get_stdout_pipe(drive.process),
                          g_subprocess_get_stderr_pipe(drive.process));
    g_signal_connect(drive.client, "update", G_CALLBACK(on_update), &drive);
    g_signal_connect(drive.client, "permission", G_CALLBACK(on_permission), &drive);
    g_signal_connect(drive.client, "noise", G_CALLBACK(on_noise), &drive);
    g_signal_connect(drive.client, "stderr", G_CALLBACK(on_stderr), &drive);
    g_signal_connect(drive.client, "closed", G_CALLBACK(on_closed), &drive);
    g_subprocess_wait_async(drive.process, NULL, on_exit_status, &drive);
    eb_acp_client_initialize_async(drive.client, INITIALIZE_MS, NULL, on_initialized, &drive);
    g_main_loop_run(drive.loop);
    g_ptr_array_unref(drive.held);
    g_clear_object(&drive.client);
    g_clear_object(&drive.process);
    g_main_loop_unref(drive.loop);
    return drive.status;
}
