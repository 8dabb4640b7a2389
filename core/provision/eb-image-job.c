/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-image-job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POLL_MS 200
#define HEARTBEAT_S 5
#define MAX_OUTPUT (64 * 1024)
#define MAX_TAIL 600 /* of the output, in an error message */
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

static void
die_with_parent(gpointer data)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

/* What was printed from byte @from on; the end of it when it is too long. */
static char *
read_log(const char *path, goffset from, gsize limit)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    if (!g_file_get_contents(path, &text, &length, NULL) || from >= (goffset)length)
        return g_strdup("");
    const char *start = text + from;
    gsize size = length - (gsize)from;
    if (size > limit)
        start += size - limit;
    return g_utf8_make_valid(start, -1);
}

static goffset
log_size(const char *path)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GFileInfo) info =
        g_file_query_info(file, G_FILE_ATTRIBUTE_STANDARD_SIZE, G_FILE_QUERY_INFO_NONE, NULL, NULL);
    return info != NULL ? g_file_info_get_size(info) : 0;
}

/* TRUE when it ended by itself; otherwise it has been killed and @error says why. */
static gboolean
watch(EbImageJob *self, int pidfd, const char *program, guint deadline_s, GError **error)
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
            syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
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
spawn(EbImageJob *self, const char *const *argv, GError **error)
{
    static const char *const alone[] = {"unshare", "--mount",      "--propagation",     "private", "--pid",
                                        "--fork",  "--mount-proc", "--kill-child=KILL", "--",      NULL};
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    int log = open(self->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (log < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.log", "%s: %s", self->log_path, g_strerror(errno));
        return NULL;
    }
    for (gsize i = 0; alone[i] != NULL; i++)
        g_ptr_array_add(words, (gpointer)alone[i]);
    for (gsize i = 0; argv[i] != NULL; i++)
        g_ptr_array_add(words, (gpointer)argv[i]);
    g_ptr_array_add(words, NULL);
    g_subprocess_launcher_take_stdout_fd(launcher, log);
    g_subprocess_launcher_take_stderr_fd(launcher, fcntl(log, F_DUPFD_CLOEXEC, 3));
    g_subprocess_launcher_take_stdin_fd(launcher, open("/dev/null", O_RDONLY | O_CLOEXEC));
    g_subprocess_launcher_set_child_setup(launcher, die_with_parent, NULL, NULL);
    GSubprocess *process = g_subprocess_launcher_spawnv(launcher, (const char *const *)words->pdata, error);
    if (process == NULL)
        eb_error_convert(error, "image.spawn", NULL);
    return process;
}

gboolean
eb_image_job_run(EbImageJob *self, const char *const *argv, guint deadline_s, char **output, GError **error)
{
    goffset before = log_size(self->log_path);
    g_autoptr(GSubprocess) process = spawn(self, argv, error);

    if (process == NULL)
        return FALSE;
    const char *identifier = g_subprocess_get_identifier(process);
    gint64 pid = identifier != NULL ? g_ascii_strtoll(identifier, NULL, 10) : 0;
    int pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0) : -1;
    gboolean ended = pidfd < 0 || watch(self, pidfd, argv[0], deadline_s, error);
    if (pidfd >= 0)
        close(pidfd);
    /* It is at its end, or was killed: this returns at once. */
    g_subprocess_wait(process, NULL, NULL);
    if (!ended)
        return FALSE;
    if (g_subprocess_get_if_exited(process) && g_subprocess_get_exit_status(process) == 0) {
        if (output != NULL)
            *output = read_log(self->log_path, before, MAX_OUTPUT);
        return TRUE;
    }
    g_autofree char *tail = read_log(self->log_path, before, MAX_TAIL);
    g_strdelimit(g_strstrip(tail), "\n", ' ');
    eb_set_error(error, EB_ERROR_FAILED, "image.step", "%s: %s failed: %s", self->stage, argv[0], tail);
    return FALSE;
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
