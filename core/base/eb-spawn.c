/* SPDX-License-Identifier: MIT */
#include "core/base/eb-spawn.h"
#include "core/base/eb-source.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib-unix.h>

#include "core/base/eb-unix.h"

/* First number the child's own descriptors are parked at while they are put in place: above any target. */
#define PARK_FD 64
#define MAX_TARGET (PARK_FD - 1)

struct _EbSpawn {
    char *program;  /* (nullable) (owned) */
    int program_fd; /* (unowned) */
    GPtrArray *argv;
    GPtrArray *env;
    char *cwd; /* (nullable) (owned) */
    gboolean keep;
    guint n_fds;
    struct {
        int source; /* (owned) */
        int target;
    } fds[EB_SPAWN_MAX_FDS];
};

static EbSpawn *
spawn_new(const char *program, int program_fd, const char *name)
{
    EbSpawn *self = g_new0(EbSpawn, 1);

    self->program = g_strdup(program);
    self->program_fd = program_fd;
    self->argv = g_ptr_array_new_with_free_func(g_free);
    self->env = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(self->argv, g_strdup(name));
    return self;
}

EbSpawn *
eb_spawn_new(const char *program)
{
    g_return_val_if_fail(g_path_is_absolute(program), NULL);
    return spawn_new(program, -1, program);
}

EbSpawn *
eb_spawn_new_fd(int program_fd, const char *name)
{
    g_return_val_if_fail(program_fd >= 0, NULL);
    return spawn_new(NULL, program_fd, name);
}

void
eb_spawn_free(EbSpawn *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < self->n_fds; i++)
        eb_fd_clear(&self->fds[i].source);
    g_ptr_array_unref(self->argv);
    g_ptr_array_unref(self->env);
    g_free(self->program);
    g_free(self->cwd);
    g_free(self);
}

void
eb_spawn_add_arg(EbSpawn *self, const char *argument)
{
    g_ptr_array_add(self->argv, g_strdup(argument));
}

void
eb_spawn_add_env(EbSpawn *self, const char *name, const char *value)
{
    g_ptr_array_add(self->env, g_strconcat(name, "=", value, NULL));
}

void
eb_spawn_pass_env(EbSpawn *self, const char *name)
{
    const char *value = g_getenv(name);

    if (value != NULL)
        eb_spawn_add_env(self, name, value);
}

void
eb_spawn_take_fd(EbSpawn *self, int fd, int target)
{
    g_return_if_fail(fd >= 0 && target >= 0 && target <= MAX_TARGET);
    g_return_if_fail(self->n_fds < EB_SPAWN_MAX_FDS);
    self->fds[self->n_fds].source = fd;
    self->fds[self->n_fds].target = target;
    self->n_fds++;
}

void
eb_spawn_set_cwd(EbSpawn *self, const char *directory)
{
    g_free(self->cwd);
    self->cwd = g_strdup(directory);
}

void
eb_spawn_set_keep_on_parent_death(EbSpawn *self)
{
    self->keep = TRUE;
}

static void
child_fail(int report_fd)
{
    int code = errno;
    ssize_t written = write(report_fd, &code, sizeof code);

    (void)written;
    _exit(127);
}

static void
child_reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Puts every descriptor at its place: first all above the targets, so that none overwrites another. */
static gboolean
child_place_fds(EbSpawn *self, int *report_fd, int *program_fd)
{
    int parked[EB_SPAWN_MAX_FDS];
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    *report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, PARK_FD);
    if (null_fd < 0 || *report_fd < 0)
        return FALSE;
    if (*program_fd >= 0) {
        *program_fd = fcntl(*program_fd, F_DUPFD_CLOEXEC, PARK_FD);
        if (*program_fd < 0)
            return FALSE;
    }
    for (guint i = 0; i < self->n_fds; i++) {
        parked[i] = fcntl(self->fds[i].source, F_DUPFD_CLOEXEC, PARK_FD);
        if (parked[i] < 0)
            return FALSE;
    }
    for (int fd = 0; fd <= 2; fd++) {
        if (dup2(null_fd, fd) < 0)
            return FALSE;
    }
    /* Whatever else is open goes at the exec, also what a library forgot to mark. */
    if (syscall(SYS_close_range, 3u, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */) != 0)
        return FALSE;
    for (guint i = 0; i < self->n_fds; i++) {
        if (dup2(parked[i], self->fds[i].target) < 0)
            return FALSE;
    }
    return TRUE;
}

/* Runs between fork and exec in a copy of a threaded process: async-signal-safe calls only. */
static void
child_run(EbSpawn *self, char **argv, char **env, pid_t parent, int report_fd)
{
    int program_fd = self->program_fd;

    child_reset_signals();
    /* What a terminal sends to the group of its foreground, Ctrl-C above all, is for the parent to act on. */
    setsid();
    if (!self->keep) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
            child_fail(report_fd);
        /* The parent may have ended before the line above. */
        if (getppid() != parent)
            _exit(127);
    }
    if (!child_place_fds(self, &report_fd, &program_fd))
        child_fail(report_fd);
    if (self->cwd != NULL && chdir(self->cwd) != 0)
        child_fail(report_fd);
    if (program_fd >= 0)
        syscall(SYS_execveat, program_fd, "", argv, env, 0x1000 /* AT_EMPTY_PATH */);
    else
        execve(self->program, argv, env);
    child_fail(report_fd);
}

static EbChild *eb_child_new_take(pid_t pid, int pid_fd);

EbChild *
eb_spawn_start(EbSpawn *self, GError **error)
{
    eb_autofd int report_read = -1;
    eb_autofd int report_write = -1;
    int report[2], code = 0;
    pid_t parent = getpid(), pid;
    ssize_t got;
    int pid_fd;

    if (pipe2(report, O_CLOEXEC) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "spawn.pipe", "cannot start %s: %s", (char *)self->argv->pdata[0],
                     g_strerror(errno));
        return NULL;
    }
    report_read = report[0];
    report_write = report[1];
    if (self->argv->len == 0 || self->argv->pdata[self->argv->len - 1] != NULL)
        g_ptr_array_add(self->argv, NULL);
    if (self->env->len == 0 || self->env->pdata[self->env->len - 1] != NULL)
        g_ptr_array_add(self->env, NULL);
    pid = fork();
    if (pid == 0)
        child_run(self, (char **)self->argv->pdata, (char **)self->env->pdata, parent, report_write);
    if (pid < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "spawn.fork", "cannot start %s: %s", (char *)self->argv->pdata[0],
                     g_strerror(errno));
        return NULL;
    }
    eb_fd_clear(&report_write);
    for (guint i = 0; i < self->n_fds; i++)
        eb_fd_clear(&self->fds[i].source);
    self->n_fds = 0;
    /* Not yet waited for, so the number is still the child's. */
    pid_fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    /* Ends at the exec, within a millisecond: the descriptor is close-on-exec. */
    do {
        got = read(report_read, &code, sizeof code);
    } while (got < 0 && errno == EINTR);
    if (got == 0 && pid_fd >= 0)
        return eb_child_new_take(pid, pid_fd);
    if (pid_fd < 0) {
        code = errno;
        kill(pid, SIGKILL);
    }
    waitpid(pid, NULL, 0);
    eb_fd_clear(&pid_fd);
    eb_set_error(error, code == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_FAILED, "spawn.exec", "cannot run %s: %s",
                 (char *)self->argv->pdata[0], g_strerror(code));
    return NULL;
}

/* --- the child --- */

struct _EbChild {
    GObject parent_instance;
    pid_t pid;
    int pid_fd;      /* (owned); -1 when it has ended */
    GSource *source; /* (owned) (nullable) */
    GList *waiters;  /* (element-type GTask) (owned) */
    gboolean ended;
    int status;
};

G_DEFINE_FINAL_TYPE(EbChild, eb_child, G_TYPE_OBJECT)

static void
child_stop_watching(EbChild *self)
{
    eb_clear_source(&self->source);
}

static void
child_reap(EbChild *self)
{
    siginfo_t info = {0};

    if (self->ended || waitid((idtype_t)P_PIDFD, (id_t)self->pid_fd, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0)
        return;
    self->ended = TRUE;
    if (info.si_code == CLD_EXITED)
        self->status = (info.si_status & 0xff) << 8;
    else
        self->status = (info.si_status & 0x7f) | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    eb_fd_clear(&self->pid_fd);
}

static gboolean
child_on_ready(int fd, GIOCondition condition, gpointer user_data)
{
    g_autoptr(EbChild) self = g_object_ref(EB_CHILD(user_data));
    GList *waiters;

    child_reap(self);
    if (!self->ended)
        return G_SOURCE_CONTINUE;
    child_stop_watching(self);
    waiters = g_steal_pointer(&self->waiters);
    for (GList *link = waiters; link != NULL; link = link->next) {
        g_task_return_int(link->data, self->status);
        g_object_unref(link->data);
    }
    g_list_free(waiters);
    return G_SOURCE_REMOVE;
}

static EbChild *
eb_child_new_take(pid_t pid, int pid_fd)
{
    EbChild *self = g_object_new(EB_TYPE_CHILD, NULL);

    self->pid = pid;
    self->pid_fd = pid_fd;
    self->source = g_unix_fd_source_new(pid_fd, G_IO_IN);
    g_source_set_callback(self->source, G_SOURCE_FUNC(child_on_ready), self, NULL);
    g_source_attach(self->source, g_main_context_get_thread_default());
    return self;
}

static void
eb_child_finalize(GObject *object)
{
    EbChild *self = EB_CHILD(object);

    child_stop_watching(self);
    if (!self->ended) {
        siginfo_t info;

        /* Killed, it ends at once; reaping it here leaves no zombie behind. */
        eb_child_kill(self, SIGKILL);
        waitid((idtype_t)P_PIDFD, (id_t)self->pid_fd, &info, WEXITED);
        eb_fd_clear(&self->pid_fd);
    }
    G_OBJECT_CLASS(eb_child_parent_class)->finalize(object);
}

static void
eb_child_class_init(EbChildClass *klass)
{
    G_OBJECT_CLASS(klass)->finalize = eb_child_finalize;
}

static void
eb_child_init(EbChild *self)
{
    self->pid_fd = -1;
}

pid_t
eb_child_get_pid(EbChild *self)
{
    return self->pid;
}

gboolean
eb_child_is_running(EbChild *self)
{
    return !self->ended;
}

gboolean
eb_child_kill(EbChild *self, int signal_number)
{
    if (self->ended)
        return TRUE;
    return syscall(SYS_pidfd_send_signal, self->pid_fd, signal_number, NULL, 0u) == 0 || errno == ESRCH;
}

static void
child_on_wait_cancelled(GCancellable *cancellable, gpointer user_data)
{
    GTask *task = user_data;
    EbChild *self = g_task_get_source_object(task);
    GList *link = g_list_find(self->waiters, task);

    if (link == NULL)
        return;
    self->waiters = g_list_delete_link(self->waiters, link);
    g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "the wait was cancelled");
    g_object_unref(task);
}

void
eb_child_wait_async(EbChild *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    g_autoptr(GTask) task = g_task_new(self, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_child_wait_async);
    if (self->ended) {
        g_task_return_int(task, self->status);
        return;
    }
    if (g_cancellable_is_cancelled(cancellable)) {
        g_task_return_new_error(task, EB_ERROR, EB_ERROR_CANCELLED, "the wait was cancelled");
        return;
    }
    self->waiters = g_list_append(self->waiters, g_object_ref(task));
    if (cancellable != NULL)
        g_signal_connect_object(cancellable, "cancelled", G_CALLBACK(child_on_wait_cancelled), task, 0);
}

gboolean
eb_child_wait_finish(EbChild *self, GAsyncResult *result, int *status, GError **error)
{
    g_autoptr(GError) local = NULL;
    gssize value = g_task_propagate_int(G_TASK(result), &local);

    if (local != NULL) {
        g_propagate_error(error, g_steal_pointer(&local));
        return FALSE;
    }
    if (status != NULL)
        *status = (int)value;
    return TRUE;
}

char *
eb_child_describe_status(int status)
{
    if (WIFEXITED(status))
        return g_strdup_printf("exited with code %d", WEXITSTATUS(status));
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        return name != NULL ? g_strdup_printf("killed by SIG%s", name)
                            : g_strdup_printf("killed by signal %d", WTERMSIG(status));
    }
    return g_strdup_printf("ended with status %d", status);
}
