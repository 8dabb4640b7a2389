/* SPDX-License-Identifier: MIT */
#include "core/selftest/eb-selftest-strays.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Long enough for a process that the kernel was told to kill with its parent, on a busy host. */
#define GRACE_US (3 * G_USEC_PER_SEC)
/* A child is known a moment after it was started. */
#define SETTLE_US (G_USEC_PER_SEC)
#define MAX_STRAYS 256

struct _EbSelftestStrays {
    GMutex lock;
    GHashTable *known;    /* (set of pid) */
    GHashTable *since;    /* (pid -> gint64 us, allocated), at most MAX_STRAYS */
    GHashTable *reported; /* (set of pid) */
};

typedef struct {
    int pid, parent;
    char state;
    char name[64];
} Process;

EbSelftestStrays *
eb_selftest_strays_new(void)
{
    EbSelftestStrays *self = g_new0(EbSelftestStrays, 1);

    g_mutex_init(&self->lock);
    self->known = g_hash_table_new(NULL, NULL);
    self->since = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    self->reported = g_hash_table_new(NULL, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    return self;
}

void
eb_selftest_strays_free(EbSelftestStrays *self)
{
    if (self == NULL)
        return;
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    g_hash_table_unref(self->known);
    g_hash_table_unref(self->since);
    g_hash_table_unref(self->reported);
    g_mutex_clear(&self->lock);
    g_free(self);
}

void
eb_selftest_strays_know(EbSelftestStrays *self, int pid, gboolean known)
{
    g_mutex_lock(&self->lock);
    if (known)
        g_hash_table_add(self->known, GINT_TO_POINTER(pid));
    else
        g_hash_table_remove(self->known, GINT_TO_POINTER(pid));
    g_mutex_unlock(&self->lock);
}

static gboolean
is_known(EbSelftestStrays *self, int pid)
{
    g_mutex_lock(&self->lock);
    gboolean known = g_hash_table_contains(self->known, GINT_TO_POINTER(pid));
    g_mutex_unlock(&self->lock);
    return known;
}

static gboolean
read_process(const char *number, Process *process)
{
    g_autofree char *path = g_strdup_printf("/proc/%s/stat", number);
    g_autofree char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return FALSE;
    /* The name is anything between the first "(" and the last ")". */
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    guint64 pid = 0;
    if (open == NULL || close == NULL || close < open ||
        !g_ascii_string_to_unsigned(number, 10, 1, G_MAXINT, &pid, NULL))
        return FALSE;
    process->pid = (int)pid;
    g_snprintf(process->name, sizeof process->name, "%.*s", (int)(close - open - 1), open + 1);
    return sscanf(close + 1, " %c %d", &process->state, &process->parent) == 2;
}

static void
judge(EbSelftestStrays *self, const Process *process, GPtrArray *found)
{
    gpointer key = GINT_TO_POINTER(process->pid);
    gint64 now_us = g_get_monotonic_time();
    gint64 *since = g_hash_table_lookup(self->since, key);

    if (since == NULL) {
        if (g_hash_table_size(self->since) < MAX_STRAYS)
            g_hash_table_insert(self->since, key, g_memdup2(&now_us, sizeof now_us));
        return;
    }
    if (process->state == 'Z') {
        if (now_us - *since > SETTLE_US && waitpid(process->pid, NULL, WNOHANG) == process->pid)
            g_hash_table_remove(self->since, key);
    } else if (now_us - *since > GRACE_US && g_hash_table_add(self->reported, key)) {
        g_autofree char *name = eb_log_escape(process->name, -1, 64);
        g_ptr_array_add(found, g_strdup_printf("process: %d (%s) outlived its service", process->pid, name));
    }
}

GPtrArray *
eb_selftest_strays_look(EbSelftestStrays *self)
{
    GPtrArray *found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;
    int own = getpid();

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        Process process;
        if (!g_ascii_isdigit(*name) || !read_process(name, &process) || process.parent != own)
            continue;
        if (is_known(self, process.pid))
            g_hash_table_remove(self->since, GINT_TO_POINTER(process.pid));
        else
            judge(self, &process, found);
    }
    return found;
}

void
eb_selftest_strays_end(EbSelftestStrays *self)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, self->since);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        int pid = GPOINTER_TO_INT(key);
        g_autofree char *number = g_strdup_printf("%d", pid);
        Process process;
        /* Our own child until it is waited for: the number is still its. */
        if (!read_process(number, &process) || process.parent != getpid() || is_known(self, pid))
            continue;
        int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
        if (fd < 0)
            continue;
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0u);
        waitpid(pid, NULL, 0);
        close(fd);
    }
}
