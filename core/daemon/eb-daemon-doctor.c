/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-daemon"
#include "core/daemon/eb-daemon-doctor.h"

#include "core/base/eb-source.h"
#include "core/base/eb-spawn.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of its standard error: enough for the reason. */
#define MAX_WORDS 2000
/* Read in one turn of the loop. */
#define CHUNK (64 * 1024)

typedef struct {
    int fd;
    gsize max;
    GByteArray *bytes; /* at most max + 1: one more tells that it was too long */
    GSource *source;   /* (nullable): NULL = it was read to its end */
} Stream;

typedef struct {
    EbChild *child;
    Stream out, words;
    GSource *deadline, *cancelled; /* (nullable) */
    GError *failure;               /* (nullable): why it was killed */
    guint deadline_ms;
} Run;

static void
stream_close(Stream *stream)
{
    eb_clear_source(&stream->source);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static void
run_free(gpointer data)
{
    Run *run = data;

    stream_close(&run->out);
    stream_close(&run->words);
    g_byte_array_unref(run->out.bytes);
    g_byte_array_unref(run->words.bytes);
    eb_clear_source(&run->deadline);
    eb_clear_source(&run->cancelled);
    g_clear_error(&run->failure);
    g_clear_object(&run->child);
    g_free(run);
}

/* FALSE at the end. What is beyond the bound is read and dropped, so that nobody waits for us. */
static gboolean
stream_read(Stream *stream)
{
    guint8 buffer[CHUNK];
    ssize_t got = read(stream->fd, buffer, sizeof buffer);
    gsize room = stream->max + 1 - stream->bytes->len;

    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    g_byte_array_append(stream->bytes, buffer, (guint)MIN((gsize)got, room));
    return got > 0;
}

static gboolean
on_readable(int fd, GIOCondition condition, gpointer user_data)
{
    Stream *stream = user_data;

    if (stream_read(stream))
        return G_SOURCE_CONTINUE;
    g_clear_pointer(&stream->source, g_source_unref);
    return G_SOURCE_REMOVE;
}

static gboolean
stream_open(Stream *stream, gsize max, int *other, GError **error)
{
    int ends[2];

    if (!g_unix_open_pipe(ends, FD_CLOEXEC, error)) {
        eb_error_convert(error, "doctor.start", "the doctor cannot be started");
        return FALSE;
    }
    stream->fd = ends[0];
    stream->max = max;
    *other = ends[1];
    g_unix_set_fd_nonblocking(stream->fd, TRUE, NULL);
    stream->source = g_unix_fd_source_new(stream->fd, G_IO_IN | G_IO_HUP | G_IO_ERR);
    g_source_set_callback(stream->source, G_SOURCE_FUNC(on_readable), stream, NULL);
    g_source_attach(stream->source, g_main_context_get_thread_default());
    return TRUE;
}

/* What is in the pipe of a process that has ended; something it left behind may hold it open for ever. */
static void
stream_drain(Stream *stream)
{
    gsize before;

    if (stream->source == NULL)
        return;
    do {
        before = stream->bytes->len;
        if (!stream_read(stream))
            break;
    } while (stream->bytes->len > before);
    stream_close(stream);
}

/* (transfer full): what it said last, one line */
static char *
last_words(Run *run)
{
    if (run->words.bytes->len == 0)
        return g_strdup("");
    g_autofree char *text = g_strndup((const char *)run->words.bytes->data, run->words.bytes->len);
    g_strchomp(text);
    const char *line = strrchr(text, '\n');

    return eb_log_escape(line != NULL ? line + 1 : text, -1, 300);
}

static JsonNode *
read_report(Run *run, int status, GError **error)
{
    g_autofree char *how = eb_child_describe_status(status);
    g_autofree char *words = last_words(run);
    JsonNode *node;

    if (run->out.bytes->len > EB_DAEMON_DOCTOR_MAX_OUTPUT) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "doctor.output", "the doctor printed more than %d bytes",
                     EB_DAEMON_DOCTOR_MAX_OUTPUT);
        return NULL;
    }
    /* 1: something fails, which is in the report. */
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 1) || run->out.bytes->len == 0) {
        eb_set_error(error, EB_ERROR_FAILED, "doctor.died", "the doctor %s without a report%s%s", how,
                     *words != '\0' ? ": " : "", words);
        return NULL;
    }
    node = eb_json_parse((const char *)run->out.bytes->data, run->out.bytes->len, &EB_JSON_LIMITS_SMALL, error);
    if (node == NULL)
        g_prefix_error(error, "what the doctor printed cannot be read: ");
    return node;
}

static void
on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    Run *run = g_task_get_task_data(task);
    GError *error = NULL;
    JsonNode *report = NULL;
    int status = 0;

    stream_drain(&run->out);
    stream_drain(&run->words);
    eb_clear_source(&run->deadline);
    eb_clear_source(&run->cancelled);
    if (run->failure != NULL)
        error = g_steal_pointer(&run->failure);
    else if (eb_child_wait_finish(EB_CHILD(source), result, &status, &error))
        report = read_report(run, status, &error);
    if (report != NULL)
        g_task_return_pointer(task, report, (GDestroyNotify)json_node_unref);
    else
        g_task_return_error(task, error);
}

static gboolean
on_deadline(gpointer data)
{
    Run *run = data;

    g_clear_pointer(&run->deadline, g_source_unref);
    if (run->failure == NULL)
        eb_set_error(&run->failure, EB_ERROR_TIMEOUT, "doctor.hangs", "the doctor did not come back within %u ms",
                     run->deadline_ms);
    eb_child_kill(run->child, SIGKILL);
    return G_SOURCE_REMOVE;
}

static gboolean
on_cancelled(GCancellable *cancellable, gpointer data)
{
    Run *run = data;

    if (run->failure == NULL)
        eb_set_error(&run->failure, EB_ERROR_CANCELLED, "doctor.cancelled", "the doctor is not wanted any more");
    eb_child_kill(run->child, SIGKILL);
    g_clear_pointer(&run->cancelled, g_source_unref);
    return G_SOURCE_REMOVE;
}

static EbSpawn *
describe_child(const char *program, const char *config_file, const char *const *ids)
{
    /* Where the daemon is, where the configuration and the credentials are; the rest is set by tests alone. */
    static const char *const PASSED[] = {"INCUS_DIR",
                                         "ERRAND_BOX_CONFIG",
                                         "ERRAND_BOX_S6_SCANDIR",
                                         "CREDENTIALS_DIRECTORY",
                                         "ERRAND_DISCORD_MOCK_URL",
                                         "ASAN_OPTIONS",
                                         "LSAN_OPTIONS",
                                         "UBSAN_OPTIONS"};
    EbSpawn *spawn = eb_spawn_new(program);

    if (config_file != NULL) {
        eb_spawn_add_arg(spawn, "--config");
        eb_spawn_add_arg(spawn, config_file);
    }
    eb_spawn_add_arg(spawn, "--json");
    eb_spawn_add_arg(spawn, "doctor");
    /* Not those that ask the chat: they would use up what it allows our token, and we know how it is. */
    eb_spawn_add_arg(spawn, "--service");
    for (guint i = 0; ids != NULL && ids[i] != NULL; i++) {
        eb_spawn_add_arg(spawn, "--check");
        eb_spawn_add_arg(spawn, ids[i]);
    }
    eb_spawn_add_env(spawn, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    eb_spawn_add_env(spawn, "LANG", "C.UTF-8");
    eb_spawn_add_env(spawn, "GIO_USE_VFS", "local");
    eb_spawn_add_env(spawn, "GSETTINGS_BACKEND", "memory");
    for (gsize i = 0; i < G_N_ELEMENTS(PASSED); i++)
        eb_spawn_pass_env(spawn, PASSED[i]);
    return spawn;
}

void
eb_daemon_doctor_run_async(EbPaths *paths, const char *program, const char *config_file, const char *const *ids,
                           guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                           gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    g_autoptr(EbSpawn) spawn =
        describe_child(program != NULL ? program : eb_paths_get_program_path(paths, "errand-box"), config_file, ids);
    GError *error = NULL;
    Run *run = g_new0(Run, 1);
    int out = -1, words = -1;

    run->out.fd = run->words.fd = -1;
    run->deadline_ms = deadline_ms;
    run->out.bytes = g_byte_array_new();
    run->words.bytes = g_byte_array_new();
    g_task_set_source_tag(task, eb_daemon_doctor_run_async);
    g_task_set_check_cancellable(task, FALSE);
    g_task_set_task_data(task, run, run_free);
    if (stream_open(&run->out, EB_DAEMON_DOCTOR_MAX_OUTPUT, &out, &error)) {
        eb_spawn_take_fd(spawn, out, STDOUT_FILENO);
        if (stream_open(&run->words, MAX_WORDS, &words, &error))
            eb_spawn_take_fd(spawn, words, STDERR_FILENO);
    }
    run->child = error == NULL ? eb_spawn_start(spawn, &error) : NULL;
    if (run->child == NULL) {
        g_task_return_error(task, error);
        return;
    }
    run->deadline = g_timeout_source_new(deadline_ms);
    g_source_set_callback(run->deadline, on_deadline, run, NULL);
    g_source_attach(run->deadline, g_main_context_get_thread_default());
    if (cancellable != NULL) {
        run->cancelled = g_cancellable_source_new(cancellable);
        g_source_set_callback(run->cancelled, G_SOURCE_FUNC(on_cancelled), run, NULL);
        g_source_attach(run->cancelled, g_main_context_get_thread_default());
    }
    eb_child_wait_async(run->child, NULL, on_ended, g_steal_pointer(&task));
}

JsonNode *
eb_daemon_doctor_run_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_daemon_doctor_run_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
