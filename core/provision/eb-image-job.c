/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_MS 200
#define HEARTBEAT_S 5
#define MAX_OUTPUT (64 * 1024)
#define MAX_TAIL 600 /* of the output, in an error message */
#define MAX_LINES 6
#define KILL_MS 10000
#define REMOVE_DEADLINE_S 300

typedef struct {
    EbImageProgress progress;
    gpointer progress_data;
    char *stage;
    guint seconds;
    gboolean done;
} Report;

static gboolean
deliver_report(gpointer data)
{
    Report *report = data;
    report->progress(report->stage, report->seconds, report->done, report->progress_data);
    return G_SOURCE_REMOVE;
}

static void
free_report(gpointer data)
{
    Report *report = data;
    g_free(report->stage);
    g_free(report);
}

static void
send_report(EbImageJob *self, gboolean done)
{
    if (self->progress == NULL || self->stage == NULL)
        return;
    Report *report = g_new0(Report, 1);
    report->progress = self->progress;
    report->progress_data = self->progress_data;
    report->stage = g_strdup(self->stage);
    report->seconds = (guint)((g_get_monotonic_time() - self->stage_start) / G_USEC_PER_SEC);
    report->done = done;
    g_main_context_invoke_full(self->context, G_PRIORITY_DEFAULT, deliver_report, report, free_report);
}

void
eb_image_job_clear(EbImageJob *self)
{
    g_clear_object(&self->cancellable);
    g_clear_pointer(&self->context, g_main_context_unref);
    g_clear_pointer(&self->log_path, g_free);
    g_clear_pointer(&self->stage, g_free);
}

void
eb_image_job_begin(EbImageJob *self, const char *stage)
{
    send_report(self, TRUE);
    g_free(self->stage);
    self->stage = g_strdup(stage);
    self->stage_start = g_get_monotonic_time();
    send_report(self, FALSE);
}

/* A group of its own: a terminal's Ctrl-C is for us, who end the program and then take back what it made. */
static void
set_apart(gpointer data)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* What was printed from byte @from on; the end of it when it is too long. By descriptor: the file may be gone. */
static char *
read_log(int log, off_t from, gsize limit)
{
    struct stat info;

    if (fstat(log, &info) != 0 || info.st_size <= from)
        return g_strdup("");
    gsize size = MIN((gsize)(info.st_size - from), limit);
    g_autofree char *text = g_malloc(size);
    ssize_t got = pread(log, text, size, info.st_size - (off_t)size);
    return g_utf8_make_valid(text, got > 0 ? got : 0);
}

static off_t
log_size(int log)
{
    struct stat info;
    return fstat(log, &info) == 0 ? info.st_size : 0;
}

/* The one child of unshare, which is the init of the namespace; 0 when it is not there yet. */
static pid_t
first_child(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", (int)pid, (int)pid);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? (pid_t)g_ascii_strtoll(text, NULL, 10) : 0;
}

/* Kills the namespace's init first: unshare is reaped after it, and it only after everything in the namespace. What the
 * program made can be removed then, for nobody adds to it. */
static void
kill_all(pid_t pid, int pidfd)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    pid_t child = first_child(pid);
    int init = child > 0 ? (int)syscall(SYS_pidfd_open, child, 0) : -1;

    /* Only unshare reaps it: while it is still the child, the descriptor is that of no other process. */
    if (init >= 0 && first_child(pid) == child && syscall(SYS_pidfd_send_signal, init, SIGKILL, NULL, 0) == 0)
        poll(&wait, 1, KILL_MS);
    if (init >= 0)
        close(init);
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* TRUE when it ended by itself; otherwise it has been killed and @error says why. */
static gboolean
watch(EbImageJob *self, pid_t pid, int pidfd, const char *program, guint deadline_s, GError **error)
{
    struct pollfd wait = {.fd = pidfd, .events = POLLIN};
    gint64 end = g_get_monotonic_time() + (gint64)deadline_s * G_USEC_PER_SEC;
    gint64 beat = g_get_monotonic_time() + HEARTBEAT_S * G_USEC_PER_SEC;

    while (poll(&wait, 1, POLL_MS) <= 0) {
        gint64 now = g_get_monotonic_time();
        gboolean cancelled = g_cancellable_is_cancelled(self->cancellable);
        if (cancelled)
            eb_set_error(error, EB_ERROR_CANCELLED, "image.cancelled", "the image build was cancelled");
        else if (now >= end)
            eb_set_error(error, EB_ERROR_TIMEOUT, "image.deadline", "%s did not end within %u s", program, deadline_s);
        if (cancelled || now >= end) {
            kill_all(pid, pidfd);
            return FALSE;
        }
        if (now >= beat) {
            send_report(self, FALSE);
            beat = now + HEARTBEAT_S * G_USEC_PER_SEC;
        }
    }
    return TRUE;
}

static GSubprocess *
spawn(const char *const *argv, int log, GError **error)
{
    static const char *const alone[] = {"unshare", "--mount",      "--propagation",     "private", "--pid",
                                        "--fork",  "--mount-proc", "--kill-child=KILL", "--",      NULL};
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);

    for (gsize i = 0; alone[i] != NULL; i++)
        g_ptr_array_add(words, (gpointer)alone[i]);
    for (gsize i = 0; argv[i] != NULL; i++)
        g_ptr_array_add(words, (gpointer)argv[i]);
    g_ptr_array_add(words, NULL);
    g_subprocess_launcher_take_stdout_fd(launcher, fcntl(log, F_DUPFD_CLOEXEC, 3));
    g_subprocess_launcher_take_stderr_fd(launcher, fcntl(log, F_DUPFD_CLOEXEC, 3));
    g_subprocess_launcher_take_stdin_fd(launcher, open("/dev/null", O_RDONLY | O_CLOEXEC));
    g_subprocess_launcher_set_child_setup(launcher, set_apart, NULL, NULL);
    GSubprocess *process = g_subprocess_launcher_spawnv(launcher, (const char *const *)words->pdata, error);
    if (process == NULL)
        eb_error_convert(error, "image.spawn", NULL);
    return process;
}

/* How it ended and the last lines it printed. */
static void
set_step_error(EbImageJob *self, GSubprocess *process, const char *program, int log, off_t from, GError **error)
{
    g_autofree char *raw = read_log(log, from, MAX_TAIL);
    g_auto(GStrv) lines = g_strsplit_set(raw, "\r\n", -1);
    g_autoptr(GPtrArray) last = g_ptr_array_new();

    for (gsize i = g_strv_length(lines); i > 0 && last->len < MAX_LINES; i--)
        if (*g_strstrip(lines[i - 1]) != '\0')
            g_ptr_array_insert(last, 0, lines[i - 1]);
    g_ptr_array_add(last, NULL);
    g_autofree char *joined = g_strjoinv("; ", (char **)last->pdata);
    g_autofree char *shown = eb_log_escape(last->len > 1 ? joined : "it printed nothing", -1, MAX_TAIL);
    const char *stage = self->stage != NULL ? self->stage : "image";
    if (g_subprocess_get_if_signaled(process))
        eb_set_error(error, EB_ERROR_FAILED, "image.step", "%s: %s was ended by signal %d: %s", stage, program,
                     g_subprocess_get_term_sig(process), shown);
    else
        eb_set_error(error, EB_ERROR_FAILED, "image.step", "%s: %s ended with %d: %s", stage, program,
                     g_subprocess_get_exit_status(process), shown);
}

static gboolean
run_logged(EbImageJob *self, const char *const *argv, int log, guint deadline_s, char **output, GError **error)
{
    off_t before = log_size(log);
    g_autoptr(GSubprocess) process = spawn(argv, log, error);

    if (process == NULL)
        return FALSE;
    const char *identifier = g_subprocess_get_identifier(process);
    pid_t pid = identifier != NULL ? (pid_t)g_ascii_strtoll(identifier, NULL, 10) : 0;
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    gboolean ended = pidfd < 0 || watch(self, pid, pidfd, argv[0], deadline_s, error);
    if (pidfd >= 0)
        close(pidfd);
    /* It is at its end, or was killed: this returns at once. */
    g_subprocess_wait(process, NULL, NULL);
    if (!ended)
        return FALSE;
    if (g_subprocess_get_if_exited(process) && g_subprocess_get_exit_status(process) == 0) {
        if (output != NULL)
            *output = read_log(log, before, MAX_OUTPUT);
        return TRUE;
    }
    set_step_error(self, process, argv[0], log, before, error);
    return FALSE;
}

gboolean
eb_image_job_run(EbImageJob *self, const char *const *argv, guint deadline_s, char **output, GError **error)
{
    int log = open(self->log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (log < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.log", "%s: %s", self->log_path, g_strerror(errno));
        return FALSE;
    }
    gboolean done = run_logged(self, argv, log, deadline_s, output, error);
    close(log);
    return done;
}

void
eb_image_job_remove_tree(const char *path)
{
    EbImageJob job = {.log_path = (char *)"/dev/null", .stage = (char *)"clean-up"};
    const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", path, NULL};
    g_autoptr(GError) problem = NULL;

    if (!eb_image_job_run(&job, argv, REMOVE_DEADLINE_S, NULL, &problem))
        g_debug("%s stays behind: %s", path, problem->message);
}
