/* SPDX-License-Identifier: MIT */
/* A service as a child: started, watched by its log, asked over its control socket, killed at a mark. */
#include "core/selftest/eb-selftest-private.h"

#include "core/base/eb-source.h"
#include "core/base/eb-unix.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MAX_LOG_LINE (64 * 1024)
#define END_MS 10000
/* Of a supervisor: whose child believes to be told by it. */
static const char *const NOT_PASSED[] = {
    "NOTIFY_SOCKET",  "WATCHDOG_USEC", "WATCHDOG_PID",   "LISTEN_FDS",        "LISTEN_PID",
    "LISTEN_FDNAMES", "INVOCATION_ID", "JOURNAL_STREAM", "ERRAND_BOX_CONFIG", NULL};

EbSelftestService *
eb_selftest_service_new(EbSelftestRun *run, const char *root, const char *config)
{
    EbSelftestService *self = g_new0(EbSelftestService, 1);

    self->run = run;
    self->context = g_main_context_ref_thread_default();
    self->root = g_strdup(root);
    self->config = g_strdup(config);
    self->log_fd = -1;
    g_queue_init(&self->lines);
    self->marks = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    self->touched = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->late = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->opened = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    self->removed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return self;
}

static void
forget_life(EbSelftestService *self)
{
    g_clear_object(&self->client);
    if (self->child != NULL)
        eb_selftest_run_know(self->run, (int)eb_child_get_pid(self->child), FALSE);
    g_clear_object(&self->child);
    eb_clear_source(&self->log_source);
    eb_fd_clear(&self->log_fd);
    g_clear_pointer(&self->framer, eb_line_framer_free);
}

void
eb_selftest_service_free(EbSelftestService *self)
{
    if (self == NULL)
        return;
    forget_life(self);
    g_queue_clear_full(&self->lines, g_free);
    g_hash_table_unref(self->marks);
    g_hash_table_unref(self->touched);
    g_hash_table_unref(self->told);
    g_hash_table_unref(self->late);
    g_hash_table_unref(self->opened);
    g_hash_table_unref(self->removed);
    g_main_context_unref(self->context);
    g_free(self->root);
    g_free(self->config);
    g_free(self);
}

/* --- its log --- */

static void
kill_now(EbSelftestService *self)
{
    if (self->delay_us > 0)
        g_usleep(self->delay_us);
    self->armed = NULL;
    if (self->child == NULL)
        return;
    if (self->freeze)
        self->frozen = eb_child_kill(self->child, SIGSTOP);
    else
        self->killed = eb_child_kill(self->child, SIGKILL);
}

static gboolean
is_session_step(const char *step)
{
    return g_str_has_prefix(step, "launch.") || g_str_has_prefix(step, "turn.") || g_str_has_prefix(step, "stop.") ||
           g_str_has_prefix(step, "remove.") || g_str_equal(step, "message.given");
}

/* @step, @subject: (transfer full) */
static void
note_mark(EbSelftestService *self, char *step, char *subject)
{
    if (self->armed != NULL && strcmp(self->armed, step) == 0)
        kill_now(self);
    if (subject != NULL && is_session_step(step))
        g_hash_table_add(self->touched, g_strdup(subject));
    if (strcmp(step, "turn.prompt") == 0 && subject != NULL)
        g_hash_table_add(self->opened, g_strdup(subject));
    else if (strcmp(step, "remove.done") == 0 && subject != NULL)
        g_hash_table_add(self->removed, g_strdup(subject));
    else if (strcmp(step, "message.told") == 0 && subject != NULL)
        g_hash_table_add(self->told, g_strdup(subject));
    else if (strcmp(step, "launch.late") == 0 && subject != NULL)
        g_hash_table_add(self->late, g_strdup(subject));
    else if (strcmp(step, "start.ready") == 0)
        self->ready = TRUE;
    g_hash_table_replace(self->marks, step, subject != NULL ? subject : g_strdup(""));
}

static void
note_line(EbSelftestService *self, const char *line)
{
    char *step, *subject;

    if (eb_selftest_read_mark(line, &step, &subject))
        note_mark(self, step, subject);
    g_queue_push_tail(&self->lines, g_strdup(line));
    if (self->lines.length > EB_SELFTEST_LOG_LINES)
        g_free(g_queue_pop_head(&self->lines));
}

static gboolean
on_log(int fd, GIOCondition condition, gpointer data)
{
    EbSelftestService *self = data;
    char buffer[16384];
    const char *line;
    gsize length;
    ssize_t got = read(fd, buffer, sizeof buffer);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (got <= 0) {
        eb_line_framer_end(self->framer);
        g_clear_pointer(&self->log_source, g_source_unref);
    } else {
        eb_line_framer_push(self->framer, buffer, (gsize)got);
    }
    while (eb_line_framer_next(self->framer, &line, &length) != EB_LINE_NONE)
        note_line(self, line);
    return got > 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

void
eb_selftest_service_drain(EbSelftestService *self)
{
    while (g_main_context_iteration(self->context, FALSE))
        ;
}

char *
eb_selftest_service_log(EbSelftestService *self)
{
    GString *text = g_string_new(NULL);

    for (GList *link = self->lines.head; link != NULL; link = link->next)
        g_string_append_printf(text, "%s\n", (char *)link->data);
    return g_string_free(text, FALSE);
}

/* --- its life --- */

static void
on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    EbSelftestService *self = user_data;

    /* A later life has another child. */
    if (eb_child_wait_finish(EB_CHILD(source), result, NULL, NULL) && EB_CHILD(source) == self->child)
        self->dead = TRUE;
}

static EbSpawn *
prepare(EbSelftestService *self, int log_fd)
{
    EbSpawn *spawn = eb_spawn_new("/proc/self/exe");
    g_auto(GStrv) names = g_listenv();

    eb_spawn_add_arg(spawn, "--config");
    eb_spawn_add_arg(spawn, self->config);
    eb_spawn_add_arg(spawn, "-vv");
    eb_spawn_add_arg(spawn, "serve");
    for (char **name = names; *name != NULL; name++)
        if (!g_strv_contains(NOT_PASSED, *name))
            eb_spawn_pass_env(spawn, *name);
    eb_spawn_take_fd(spawn, log_fd, STDERR_FILENO);
    return spawn;
}

gboolean
eb_selftest_service_start(EbSelftestService *self, GError **error)
{
    int ends[2];

    forget_life(self);
    g_hash_table_remove_all(self->marks);
    g_hash_table_remove_all(self->touched);
    self->ready = self->dead = self->frozen = self->killed = self->answers = FALSE;
    self->armed = NULL;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || fcntl(ends[1], F_SETFL, 0) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "selftest.pipe", "a pipe: %s", g_strerror(errno));
        return FALSE;
    }
    self->log_fd = ends[0];
    self->framer = eb_line_framer_new(MAX_LOG_LINE, EB_LINE_OVERFLOW_CUT);
    self->log_source = g_unix_fd_source_new(self->log_fd, G_IO_IN | G_IO_HUP);
    g_source_set_callback(self->log_source, G_SOURCE_FUNC(on_log), self, NULL);
    g_source_attach(self->log_source, self->context);
    g_autoptr(EbSpawn) spawn = prepare(self, ends[1]);
    self->started_us = g_get_monotonic_time();
    self->child = eb_spawn_start(spawn, error);
    if (self->child == NULL)
        return FALSE;
    eb_selftest_run_know(self->run, (int)eb_child_get_pid(self->child), TRUE);
    eb_child_wait_async(self->child, NULL, on_ended, self);
    return TRUE;
}

void
eb_selftest_service_arm(EbSelftestService *self, const char *step, guint delay_us, gboolean freeze)
{
    self->armed = step;
    self->delay_us = delay_us;
    self->freeze = freeze;
    self->frozen = self->killed = FALSE;
}

static gboolean
on_late(gpointer data)
{
    gboolean *late = data;
    *late = TRUE;
    return G_SOURCE_CONTINUE;
}

/* Any time the cancellable changes, too. */
gboolean
eb_selftest_service_wait(EbSelftestService *self, EbSelftestDone done, gpointer data, guint ms)
{
    gboolean late = FALSE;
    GSource *timer = g_timeout_source_new(ms);
    GSource *cancelled = g_cancellable_source_new(self->run->cancellable);

    g_source_set_callback(timer, on_late, &late, NULL);
    g_source_attach(timer, self->context);
    g_source_set_dummy_callback(cancelled);
    g_source_attach(cancelled, self->context);
    while (!done(self, data) && !self->dead && !late && !g_cancellable_is_cancelled(self->run->cancellable))
        g_main_context_iteration(self->context, TRUE);
    eb_clear_source(&timer);
    eb_clear_source(&cancelled);
    return done(self, data);
}

static gboolean
is_gone(EbSelftestService *self, gpointer data)
{
    return self->dead;
}

gboolean
eb_selftest_service_wait_killed(EbSelftestService *self, guint ms)
{
    return eb_selftest_service_wait(self, is_gone, NULL, ms) && self->killed;
}

static gboolean
is_frozen(EbSelftestService *self, gpointer data)
{
    return self->frozen;
}

gboolean
eb_selftest_service_wait_frozen(EbSelftestService *self, guint ms)
{
    return eb_selftest_service_wait(self, is_frozen, NULL, ms);
}

void
eb_selftest_service_kill_frozen(EbSelftestService *self)
{
    self->killed = self->child != NULL && eb_child_kill(self->child, SIGKILL);
}

static gboolean
has_mark(EbSelftestService *self, gpointer step)
{
    return g_hash_table_contains(self->marks, step);
}

gboolean
eb_selftest_service_wait_mark(EbSelftestService *self, const char *step, guint ms)
{
    return eb_selftest_service_wait(self, has_mark, (gpointer)step, ms);
}

typedef struct {
    gboolean over;
    int status;
} End;

static void
on_end(GObject *source, GAsyncResult *result, gpointer user_data)
{
    End *end = user_data;

    eb_child_wait_finish(EB_CHILD(source), result, &end->status, NULL);
    end->over = TRUE;
}

gboolean
eb_selftest_service_end(EbSelftestService *self, int signum, guint ms, int *status)
{
    End end = {FALSE, -1};
    gint64 until_us = g_get_monotonic_time() + (gint64)ms * 1000;

    if (self->child == NULL)
        return TRUE;
    /* Not by the run's cancellable: what was begun is ended in any case. */
    eb_child_wait_async(self->child, NULL, on_end, &end);
    eb_child_kill(self->child, signum);
    while (!end.over) {
        if (until_us > 0 && g_get_monotonic_time() > until_us) {
            eb_child_kill(self->child, SIGKILL);
            until_us = 0;
        }
        if (!g_main_context_iteration(self->context, FALSE))
            g_usleep(2000);
    }
    eb_selftest_service_drain(self);
    forget_life(self);
    if (status != NULL)
        *status = end.status;
    return until_us > 0;
}

/* --- its control socket --- */

static gboolean
on_ask(EbJsonrpc *peer, const char *method, JsonNode *params, JsonNode *id, gpointer user_data)
{
    EbSelftestService *self = user_data;
    guint timeout_ms = 0;

    if (strcmp(method, "ask") != 0)
        return FALSE;
    EbChatQuestion *question = eb_control_question_from_json(eb_json_node_object(params), &timeout_ms);
    if (question == NULL)
        return FALSE;
    if (self->answers && question->choices->len > 0) {
        const EbChatChoice *choice = question->choices->pdata[0];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "choice", choice->id);
        eb_jsonrpc_reply(peer, id, eb_control_object(object));
    }
    eb_chat_question_unref(question);
    return TRUE;
}

static EbControlClient *
connect_client(EbSelftestService *self, GError **error)
{
    if (self->client != NULL && !eb_jsonrpc_is_closed(eb_control_client_get_peer(self->client)))
        return self->client;
    g_clear_object(&self->client);
    self->client = eb_control_client_new(self->root, error);
    if (self->client != NULL)
        g_signal_connect(eb_control_client_get_peer(self->client), "request", G_CALLBACK(on_ask), self);
    return self->client;
}

typedef struct {
    gboolean over;
    JsonNode *answer;
    GError *error;
} Call;

static void
on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Call *call = user_data;

    call->answer = eb_control_client_call_finish(EB_CONTROL_CLIENT(source), result, &call->error);
    call->over = TRUE;
}

JsonNode *
eb_selftest_service_call(EbSelftestService *self, const char *method, JsonObject *params, guint ms, GError **error)
{
    Call call = {0};
    g_autoptr(JsonNode) node = eb_control_object(params);

    if (connect_client(self, error) == NULL)
        return NULL;
    eb_control_client_call_async(self->client, method, g_steal_pointer(&node), ms, on_answer, &call);
    while (!call.over) /* it has a deadline, and fails when the service dies */
        g_main_context_iteration(self->context, TRUE);
    if (call.error != NULL)
        g_propagate_error(error, call.error);
    return call.answer;
}

static void
on_answer_of_nobody(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(JsonNode) answer = eb_control_client_call_finish(EB_CONTROL_CLIENT(source), result, NULL);
}

void
eb_selftest_service_send(EbSelftestService *self, const char *method, JsonObject *params)
{
    g_autoptr(JsonNode) node = eb_control_object(params);

    if (connect_client(self, NULL) != NULL)
        eb_control_client_call_async(self->client, method, g_steal_pointer(&node), END_MS, on_answer_of_nobody, NULL);
}
