/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-try-store.h"
#include "core/cli/eb-try.h"
#include "core/control/eb-control.h"
#include "core/daemon/eb-daemon.h"
#include "core/session/eb-session-manager.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A terminal has one thread; the name it has in the session layer. */
#define THREAD "main"
#define PLUGIN_START_MS 30000
#define PLUGIN_STOP_MS 5000

typedef struct {
    EbCli *cli;
    EbPluginRegistry *registry;
    EbChatTransport *console;
    EbSessionManager *manager; /* (nullable) */
    gboolean opened;           /* there was one: what failed then was shown */
    GCancellable *starting;
    GAsyncResult *result; /* of the step that is waited for */
    gboolean step_done;
    gboolean over;       /* the turn ended, or will never begin */
    gboolean turn_ended; /* its end was shown by the session */
    char *session;       /* (nullable): id for --resume */
    char *stop_reason;   /* (nullable) */
    GError *error;       /* (nullable) */
    guint interrupts;
    gboolean told_to_end; /* SIGTERM, SIGHUP, or nobody reads any more */
    GSource *signals[3];
} Try;

static void
step_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Try *self = user_data;

    g_set_object(&self->result, result);
    self->step_done = TRUE;
}

static GAsyncResult *
wait_step(Try *self)
{
    eb_cli_wait(self->cli, &self->step_done);
    self->step_done = FALSE;
    return self->result;
}

/* --- what ends it --- */

static void
turn_ended(EbSessionManager *manager, const char *session, const char *thread, const char *stop_reason, GError *error,
           gpointer user_data)
{
    Try *self = user_data;

    if (self->turn_ended)
        return;
    self->turn_ended = TRUE;
    self->session = g_strdup(session);
    self->stop_reason = g_strdup(stop_reason);
    if (error != NULL && self->error == NULL)
        self->error = g_error_copy(error);
    self->over = TRUE;
}

static void
session_ended(EbSessionManager *manager, const char *session, const char *thread, const char *reason, GError *error,
              gpointer user_data)
{
    Try *self = user_data;

    if (error != NULL && self->error == NULL && !self->turn_ended)
        self->error = g_error_copy(error);
    self->over = TRUE;
}

static void
end_early(Try *self)
{
    self->told_to_end = TRUE;
    self->over = TRUE;
    g_cancellable_cancel(self->starting);
}

/* Ctrl-C: the turn, then the session, then everything at once; the next start sweeps what is left then. */
static gboolean
interrupted(gpointer user_data)
{
    Try *self = user_data;

    self->interrupts++;
    if (self->interrupts >= 3)
        _exit(EB_EXIT_FAILED);
    if (self->manager == NULL || self->over) {
        end_early(self);
        return G_SOURCE_CONTINUE;
    }
    g_signal_emit_by_name(self->console, "interrupt", THREAD, self->interrupts);
    if (self->interrupts == 2)
        end_early(self);
    return G_SOURCE_CONTINUE;
}

static gboolean
told_to_end(gpointer user_data)
{
    Try *self = user_data;

    if (self->told_to_end)
        _exit(EB_EXIT_FAILED);
    end_early(self);
    return G_SOURCE_CONTINUE;
}

static void
connection_changed(EbChatTransport *console, gboolean up, const char *detail, gpointer user_data)
{
    Try *self = user_data;

    if (!up)
        end_early(self);
}

static GSource *
watch_signal(int signum, GSourceFunc func, Try *self)
{
    GSource *source = g_unix_signal_source_new(signum);

    g_source_set_callback(source, func, self, NULL);
    g_source_attach(source, NULL);
    return source;
}

/* --- the steps --- */

/* Where this try keeps its lock, database and session: a new directory, or that of the one to go on with. */
static char *
make_root(EbConfig *config, const EbTryRequest *request, GError **error)
{
    const char *state_dir = eb_config_get_state_dir(config);
    g_autofree char *dir = g_build_filename(state_dir, EB_TRY_DIR, NULL);

    if (request->session != NULL)
        return eb_try_find_root(state_dir, request->session, error);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        eb_set_error(error, EB_ERROR_DENIED, "try.dir", "%s: %s", dir, g_strerror(errno));
        return NULL;
    }
    g_autofree char *name = g_strdup_printf("%08x%08x", g_random_int(), g_random_int());
    return g_build_filename(dir, name, NULL);
}

static gboolean
start_plugins(Try *self, GError **error)
{
    eb_plugin_registry_tell_failures(self->registry);
    eb_plugin_registry_start_async(self->registry, PLUGIN_START_MS, self->starting, step_done, self);
    if (!eb_plugin_registry_start_finish(self->registry, wait_step(self), error))
        return FALSE;
    return eb_daemon_check_backend(eb_cli_get_config(self->cli, NULL), self->registry, error);
}

static gboolean
open_manager(Try *self, const char *root, GError **error)
{
    eb_session_manager_open_async(eb_cli_get_config(self->cli, NULL), eb_cli_get_paths(self->cli, NULL), self->registry,
                                  root, self->starting, step_done, self);
    self->manager = eb_session_manager_open_finish(wait_step(self), error);
    if (self->manager == NULL)
        return FALSE;
    g_signal_connect(self->manager, "turn-ended", G_CALLBACK(turn_ended), self);
    g_signal_connect(self->manager, "session-ended", G_CALLBACK(session_ended), self);
    /* A trial run: gaps are told and do not refuse it; the service is strict. */
    eb_session_manager_set_accept_all_degraded(self->manager, TRUE);
    eb_session_manager_attach_transport(self->manager, "console", self->console);
    return TRUE;
}

/* The terminal's one message is the command's operand. */
static void
say_prompt(Try *self, const EbTryRequest *request)
{
    EbChatMessage *message = eb_chat_message_new("prompt", NULL, "console", request->prompt);

    message->author_name = g_strdup(g_get_user_name());
    message->mentions_us = TRUE;
    message->sent_unix_ms = g_get_real_time() / 1000;
    message->extra = json_object_new();
    eb_control_set_text(message->extra, "agent", request->agent);
    eb_control_set_text(message->extra, "model", request->model);
    /* A root has one session; the one to go on with keeps its project. */
    if (request->session != NULL)
        json_object_set_boolean_member(message->extra, "resume", TRUE);
    else
        eb_control_set_text(message->extra, "project", request->project);
    g_signal_emit_by_name(self->console, "message", message);
    eb_chat_message_unref(message);
}

static void
posted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_free(eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(source), result, NULL));
}

/* A start that failed has no turn, and its end still has to be told. */
static void
post_end(Try *self)
{
    EbChatPost *post = eb_chat_post_new(THREAD, EB_CHAT_POST_END, "");

    post->data = json_object_new();
    eb_control_set_text(post->data, "stop_reason", self->error != NULL ? "error" : "cancelled");
    if (self->error != NULL)
        eb_control_set_text(post->data, "error", self->error->message);
    json_object_set_object_member(post->data, "ms", eb_try_no_times());
    eb_chat_transport_post_async(self->console, post, NULL, posted, NULL);
    eb_chat_post_unref(post);
}

static void
close_all(Try *self)
{
    g_autoptr(GError) error = NULL;

    if (self->manager != NULL) {
        eb_session_manager_close_async(self->manager, NULL, step_done, self);
        if (!eb_session_manager_close_finish(self->manager, wait_step(self), &error))
            eb_cli_fail(self->cli, "the guest was not ended cleanly", error);
        g_signal_handlers_disconnect_by_data(self->manager, self);
        self->opened = TRUE;
        g_clear_object(&self->manager);
    }
    if (!self->turn_ended && eb_cli_get_json(self->cli))
        post_end(self);
    eb_plugin_registry_stop_async(self->registry, PLUGIN_STOP_MS, NULL, step_done, self);
    eb_plugin_registry_stop_finish(self->registry, wait_step(self), NULL);
}

/* What the session failed with was shown by the terminal's transport; with --json stderr says it once more. */
static int
outcome(Try *self)
{
    if (self->error != NULL && self->opened && !eb_cli_get_json(self->cli))
        return (int)eb_cli_exit_code(self->error);
    if (self->error != NULL)
        return eb_cli_fail(self->cli, "try", self->error);
    if (g_strcmp0(self->stop_reason, "end_turn") == 0)
        return EB_EXIT_OK;
    g_autofree char *why = eb_log_escape(self->stop_reason != NULL ? self->stop_reason : "interrupted", -1, 60);
    g_autofree char *text = g_strdup_printf("the turn did not end normally: %s", why);
    eb_cli_fail(self->cli, text, NULL);
    return EB_EXIT_FAILED;
}

static gboolean
has_session(const char *root, const char *session)
{
    g_autofree char *path = session != NULL ? g_build_filename(root, "sessions", session, NULL) : NULL;
    return path != NULL && g_file_test(path, G_FILE_TEST_IS_DIR);
}

static void
clear(Try *self)
{
    for (gsize i = 0; i < G_N_ELEMENTS(self->signals); i++) {
        g_source_destroy(self->signals[i]);
        g_source_unref(self->signals[i]);
    }
    g_signal_handlers_disconnect_by_data(self->console, self);
    g_clear_object(&self->result);
    g_clear_object(&self->starting);
    g_clear_error(&self->error);
    g_free(self->session);
    g_free(self->stop_reason);
}

int
eb_try_run(EbCli *cli, EbPluginRegistry *registry, EbChatTransport *console, const EbTryRequest *request)
{
    Try self = {.cli = cli, .registry = registry, .console = console, .starting = g_cancellable_new()};
    g_autofree char *root = NULL;

    self.signals[0] = watch_signal(SIGINT, interrupted, &self);
    self.signals[1] = watch_signal(SIGTERM, told_to_end, &self);
    self.signals[2] = watch_signal(SIGHUP, told_to_end, &self);
    g_signal_connect(console, "connection", G_CALLBACK(connection_changed), &self);

    root = make_root(eb_cli_get_config(cli, NULL), request, &self.error);
    if (root != NULL && start_plugins(&self, &self.error) && !self.over && open_manager(&self, root, &self.error) &&
        !self.over) {
        say_prompt(&self, request);
        eb_cli_wait(cli, &self.over);
    }
    close_all(&self);
    int code = outcome(&self);
    if (root != NULL && request->session == NULL && !has_session(root, self.session)) {
        /* Nothing to go on with: it never came to a session. */
        g_autoptr(GError) left = NULL;
        g_clear_pointer(&self.session, g_free);
        if (!eb_try_store_remove_root(root, &left) && left->code != EB_ERROR_DENIED)
            eb_cli_fail(cli, root, left);
    }
    if (self.session != NULL && !eb_cli_get_json(cli))
        fprintf(stderr, "errand-box: to go on: errand-box try --resume %s PROMPT\n", self.session);
    clear(&self);
    return code;
}
