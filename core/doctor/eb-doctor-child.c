/* SPDX-License-Identifier: MIT */
#include "core/doctor/eb-doctor-child.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "core/base/eb-line-framer.h"
#include "core/base/eb-source.h"
#include "core/base/eb-spawn.h"
#include "core/base/eb-unix.h"
#include "core/doctor/eb-doctor-worker.h"

/* What the last check may need beyond its deadline and grace until its line is here, on a busy machine. */
#define SLACK_MS (400 * EB_DOCTOR_SLOWER)
/* From its last line to its end. */
#define END_MS (500 * EB_DOCTOR_SLOWER)
/* Of what it writes to stderr: the last bytes are kept, beyond the bound nothing more is read. */
#define SAID_MAX 512
#define STDERR_MAX (4 * 1024 * 1024)
/* Read in one go, so that a flood leaves room for the other processes. */
#define CHUNK (64 * 1024)

typedef struct {
    EbDoctorOutcome *outcome;
    EbChild *process;
    EbLineFramer *framer;
    int result_fd, stderr_fd;
    GSource *result_source, *stderr_source, *timer;
    GString *said;
    gsize stderr_bytes;
    gint64 end; /* monotonic microseconds */
    guint limit_ms;
    gboolean ended; /* told everything */
} Child;

void
eb_doctor_outcome_free(EbDoctorOutcome *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->infos);
    g_ptr_array_unref(self->results);
    g_free(self->problem);
    g_free(self->fault);
    g_free(self);
}

EbDoctorOutcome *
eb_doctor_outcome_new(void)
{
    EbDoctorOutcome *self = g_new0(EbDoctorOutcome, 1);

    self->infos = g_ptr_array_new_with_free_func((GDestroyNotify)eb_doctor_info_free);
    self->results = g_ptr_array_new_with_free_func((GDestroyNotify)eb_doctor_line_free);
    return self;
}

const EbDoctorLine *
eb_doctor_outcome_result(const EbDoctorOutcome *self, const char *id)
{
    for (guint i = 0; i < self->results->len; i++) {
        const EbDoctorLine *line = self->results->pdata[i];
        if (strcmp(line->id, id) == 0)
            return line;
    }
    return NULL;
}

static void
child_free(gpointer data)
{
    Child *child = data;

    eb_clear_source(&child->result_source);
    eb_clear_source(&child->stderr_source);
    eb_clear_source(&child->timer);
    g_clear_object(&child->process);
    g_clear_pointer(&child->framer, eb_line_framer_free);
    eb_fd_clear(&child->result_fd);
    eb_fd_clear(&child->stderr_fd);
    g_string_free(child->said, TRUE);
    eb_doctor_outcome_free(child->outcome);
    g_free(child);
}

/* The first fault is the one that counts: what follows comes from the kill. */
static void G_GNUC_PRINTF(2, 3) child_stop(Child *child, const char *format, ...)
{
    va_list args;

    if (child->outcome->fault == NULL && !child->ended) {
        va_start(args, format);
        child->outcome->fault = g_strdup_vprintf(format, args);
        va_end(args);
    }
    eb_clear_source(&child->result_source);
    eb_child_kill(child->process, SIGKILL);
}

static gboolean
on_late(gpointer user_data)
{
    Child *child = user_data;

    eb_clear_source(&child->timer);
    child_stop(child, "did not come back within %u ms", child->limit_ms);
    return G_SOURCE_REMOVE;
}

static void
child_set_timer(Child *child, guint ms)
{
    gint64 left = (child->end - g_get_monotonic_time()) / 1000;

    eb_clear_source(&child->timer);
    child->limit_ms = (guint)CLAMP(left, 1, (gint64)ms);
    child->timer = g_timeout_source_new(child->limit_ms);
    g_source_set_callback(child->timer, on_late, child, NULL);
    g_source_attach(child->timer, g_main_context_get_thread_default());
}

static gboolean
has_info(const EbDoctorOutcome *outcome, const char *id)
{
    for (guint i = 0; i < outcome->infos->len; i++)
        if (strcmp(((const EbCheckInfo *)outcome->infos->pdata[i])->id, id) == 0)
            return TRUE;
    return FALSE;
}

static void
child_begin(Child *child)
{
    guint longest = 0;

    for (guint i = 0; i < child->outcome->infos->len; i++)
        longest = MAX(longest, eb_doctor_deadline_ms(((EbCheckInfo *)child->outcome->infos->pdata[i])->deadline_ms));
    child->outcome->described = TRUE;
    child_set_timer(child, longest + EB_DOCTOR_GRACE_MS + SLACK_MS);
}

/* FALSE: it may not say this, or not now. @line: (transfer full) */
static gboolean
child_take(Child *child, EbDoctorLine *taken)
{
    g_autoptr(EbDoctorLine) line = taken;
    EbDoctorOutcome *outcome = child->outcome;

    switch (line->kind) {
    case EB_DOCTOR_LINE_CHECK:
        if (outcome->described || outcome->infos->len >= EB_DOCTOR_MAX_CHECKS || has_info(outcome, line->info->id))
            return FALSE;
        g_ptr_array_add(outcome->infos, g_steal_pointer(&line->info));
        return TRUE;
    case EB_DOCTOR_LINE_BEGIN:
        if (outcome->described)
            return FALSE;
        child_begin(child);
        return TRUE;
    case EB_DOCTOR_LINE_RESULT:
        if (!outcome->described || !has_info(outcome, line->id) || eb_doctor_outcome_result(outcome, line->id) != NULL)
            return FALSE;
        g_ptr_array_add(outcome->results, g_steal_pointer(&line));
        return TRUE;
    case EB_DOCTOR_LINE_PROBLEM:
        if (outcome->problem != NULL)
            return FALSE;
        outcome->problem = g_steal_pointer(&line->text);
        return TRUE;
    case EB_DOCTOR_LINE_END:
        child->ended = TRUE;
        child_set_timer(child, END_MS);
        return TRUE;
    }
    return FALSE;
}

/* FALSE: stopped. */
static gboolean
child_take_bytes(Child *child, const char *bytes, gsize length)
{
    EbLineStatus status;
    const char *text;
    gsize size;

    eb_line_framer_push(child->framer, bytes, length);
    while ((status = eb_line_framer_next(child->framer, &text, &size)) != EB_LINE_NONE) {
        EbDoctorLine *line = status == EB_LINE_READY ? eb_doctor_line_parse(text, size, NULL) : NULL;
        if (line == NULL || child->ended || !child_take(child, line)) {
            child_stop(child, "wrote what is no answer of a check");
            return FALSE;
        }
    }
    return TRUE;
}

/* Bytes read; 0 when none are there now, -1 at the end, also when what came stopped the child. */
static gssize
child_read(Child *child)
{
    char bytes[CHUNK];
    ssize_t n = read(child->result_fd, bytes, sizeof bytes);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return n > 0 && child_take_bytes(child, bytes, (gsize)n) ? n : -1;
}

static gboolean
on_result(int fd, GIOCondition condition, gpointer user_data)
{
    Child *child = user_data;

    if (child_read(child) >= 0)
        return G_SOURCE_CONTINUE;
    eb_clear_source(&child->result_source);
    return G_SOURCE_REMOVE;
}

static gssize
child_read_said(Child *child)
{
    char bytes[CHUNK];
    ssize_t n = read(child->stderr_fd, bytes, sizeof bytes);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0 || child->stderr_bytes > STDERR_MAX)
        return -1;
    g_string_append_len(child->said, bytes, n);
    if (child->said->len > SAID_MAX)
        g_string_erase(child->said, 0, (gssize)(child->said->len - SAID_MAX));
    child->stderr_bytes += (gsize)n;
    return n;
}

static gboolean
on_stderr(int fd, GIOCondition condition, gpointer user_data)
{
    Child *child = user_data;

    if (child_read_said(child) >= 0)
        return G_SOURCE_CONTINUE;
    eb_clear_source(&child->stderr_source);
    eb_fd_clear(&child->stderr_fd);
    return G_SOURCE_REMOVE;
}

/* The last line it wrote may say why: an assertion, a message of the C library. */
static void
child_add_said(Child *child)
{
    g_autofree char *text = g_strndup(child->said->str, child->said->len);
    g_autofree char *masked = NULL;
    g_autofree char *escaped = NULL;
    char *fault = child->outcome->fault, *last;

    g_strchomp(text);
    last = strrchr(text, '\n');
    masked = eb_log_mask_text(last != NULL ? last + 1 : text, -1);
    escaped = eb_log_escape(masked, -1, 200);
    if (*escaped == '\0')
        return;
    child->outcome->fault = g_strdup_printf("%s (its last words: %s)", fault, escaped);
    g_free(fault);
}

static void
on_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    Child *child = g_task_get_task_data(task);
    int status = 0;

    eb_child_wait_finish(child->process, result, &status, NULL);
    eb_clear_source(&child->timer);
    /* What it left behind may hold the pipe open: what is in it now is all that counts. */
    while (child->result_source != NULL && child->outcome->fault == NULL && child_read(child) > 0)
        ;
    while (child->stderr_source != NULL && child_read_said(child) > 0)
        ;
    if (child->outcome->fault == NULL && !child->ended) {
        g_autofree char *how = eb_child_describe_status(status);
        child->outcome->fault = g_str_has_prefix(how, "killed") ? g_strconcat("was ", how, NULL) : g_strdup(how);
    }
    if (child->outcome->fault != NULL)
        child_add_said(child);
    if (!g_task_return_error_if_cancelled(task))
        g_task_return_pointer(task, g_steal_pointer(&child->outcome), (GDestroyNotify)eb_doctor_outcome_free);
}

static void
on_cancelled(GCancellable *cancellable, gpointer user_data)
{
    Child *child = g_task_get_task_data(G_TASK(user_data));

    child_stop(child, "was not waited for");
}

/* A pipe whose read end does not block here; -1 when there is none. */
static int
make_pipe(int *write_end)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *write_end = ends[1];
    return ends[0];
}

static EbChild *
start(Child *child, const EbDoctorChildSpec *spec, GError **error)
{
    g_autoptr(EbSpawn) spawn = eb_spawn_new_fd(spec->program_fd, "errand-box");
    g_auto(GStrv) environment = g_get_environ();
    int result_end = -1, stderr_end = -1;

    child->result_fd = make_pipe(&result_end);
    child->stderr_fd = make_pipe(&stderr_end);
    if (result_end >= 0)
        eb_spawn_take_fd(spawn, result_end, EB_DOCTOR_WORKER_FD);
    if (stderr_end >= 0)
        eb_spawn_take_fd(spawn, stderr_end, STDERR_FILENO);
    if (result_end < 0 || stderr_end < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "doctor.pipe", "no pipe for a process of the doctor: %s",
                     g_strerror(errno));
        return NULL;
    }
    for (guint i = 0; spec->arguments[i] != NULL; i++)
        eb_spawn_add_arg(spawn, spec->arguments[i]);
    /* The same program with the same settings: some of them are in the environment. */
    for (guint i = 0; environment[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(environment[i], "=", 2);
        if (pair[0] != NULL && pair[1] != NULL)
            eb_spawn_add_env(spawn, pair[0], pair[1]);
    }
    return eb_spawn_start(spawn, error);
}

static GSource *
watch(int fd, GUnixFDSourceFunc func, Child *child)
{
    GSource *source = g_unix_fd_source_new(fd, G_IO_IN);

    g_source_set_callback(source, G_SOURCE_FUNC(func), child, NULL);
    g_source_attach(source, g_main_context_get_thread_default());
    return source;
}

void
eb_doctor_child_run_async(const EbDoctorChildSpec *spec, GCancellable *cancellable, GAsyncReadyCallback callback,
                          gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, user_data);
    g_autoptr(GError) error = NULL;
    Child *child = g_new0(Child, 1);

    child->result_fd = child->stderr_fd = -1;
    child->outcome = eb_doctor_outcome_new();
    child->framer = eb_line_framer_new(EB_DOCTOR_LINE_MAX, EB_LINE_OVERFLOW_STOP);
    child->said = g_string_new(NULL);
    child->end = spec->end;
    g_task_set_source_tag(task, eb_doctor_child_run_async);
    g_task_set_task_data(task, child, child_free);
    child->process = start(child, spec, &error);
    if (child->process == NULL) {
        g_task_return_error(task, g_steal_pointer(&error));
        return;
    }
    child->result_source = watch(child->result_fd, on_result, child);
    child->stderr_source = watch(child->stderr_fd, on_stderr, child);
    child_set_timer(child, EB_DOCTOR_LOAD_MS);
    if (cancellable != NULL)
        g_signal_connect_object(cancellable, "cancelled", G_CALLBACK(on_cancelled), task, 0);
    if (g_cancellable_is_cancelled(cancellable))
        on_cancelled(cancellable, task);
    eb_child_wait_async(child->process, NULL, on_ended, g_steal_pointer(&task));
}

EbDoctorOutcome *
eb_doctor_child_run_finish(GAsyncResult *result, GError **error)
{
    EbDoctorOutcome *outcome = g_task_propagate_pointer(G_TASK(result), error);

    if (outcome == NULL)
        eb_error_convert(error, NULL, NULL);
    return outcome;
}
