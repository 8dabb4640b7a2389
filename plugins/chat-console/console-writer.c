/* SPDX-License-Identifier: MIT */
#include "console-writer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* How often a writer that waits for room looks whether it should end. */
#define WAIT_MS 200

typedef struct {
    int fd;
    char *text; /* (nullable): NULL = a flush */
    gsize length;
    GTask *task; /* (nullable) */
    char *id;    /* (nullable) */
} Item;

struct _ConsoleWriter {
    GThread *thread;
    GMutex mutex;
    GCond wake;
    GQueue items;  /* (element-type Item) */
    gsize queued;  /* bytes in items */
    gsize dropped; /* bytes left out since the last note */
    gboolean ending;
    gboolean broken;
};

static void
item_finish(Item *item, GError *error)
{
    if (item->task != NULL && error != NULL)
        g_task_return_error(item->task, error);
    else if (item->task != NULL && item->text == NULL)
        g_task_return_boolean(item->task, TRUE);
    else if (item->task != NULL)
        g_task_return_pointer(item->task, g_steal_pointer(&item->id), g_free);
    else if (error != NULL)
        g_error_free(error);
    g_clear_object(&item->task);
    g_free(item->text);
    g_free(item->id);
    g_free(item);
}

static gboolean
is_ending(ConsoleWriter *self)
{
    g_mutex_lock(&self->mutex);
    gboolean ending = self->ending;
    g_mutex_unlock(&self->mutex);
    return ending;
}

/* 0, or an errno. */
static int
write_out(ConsoleWriter *self, int fd, const char *text, gsize length)
{
    for (gsize at = 0; at < length;) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (is_ending(self))
            return ECANCELED;
        if (poll(&ready, 1, WAIT_MS) <= 0)
            continue;
        ssize_t put = write(fd, text + at, length - at);
        if (put >= 0)
            at += (gsize)put;
        else if (errno != EINTR && errno != EAGAIN)
            return errno;
    }
    return 0;
}

static gpointer
run(gpointer data)
{
    ConsoleWriter *self = data;

    for (;;) {
        g_mutex_lock(&self->mutex);
        while (g_queue_is_empty(&self->items) && !self->ending)
            g_cond_wait(&self->wake, &self->mutex);
        Item *item = self->ending ? NULL : g_queue_pop_head(&self->items);
        g_mutex_unlock(&self->mutex);
        if (item == NULL)
            return NULL;
        int failed = item->text != NULL ? write_out(self, item->fd, item->text, item->length) : 0;
        g_mutex_lock(&self->mutex);
        self->queued -= item->length;
        if (failed != 0 && item->fd == STDOUT_FILENO)
            self->broken = TRUE;
        g_mutex_unlock(&self->mutex);
        item_finish(item, failed != 0 ? eb_error_new(EB_ERROR_UNAVAILABLE, "console.closed",
                                                     "the terminal cannot be written: %s", g_strerror(failed))
                                      : NULL);
    }
}

ConsoleWriter *
console_writer_new(void)
{
    ConsoleWriter *self = g_new0(ConsoleWriter, 1);

    g_mutex_init(&self->mutex);
    g_cond_init(&self->wake);
    g_queue_init(&self->items);
    self->thread = g_thread_new("console-writer", run, self);
    return self;
}

static void
push(ConsoleWriter *self, int fd, char *text, GTask *task, char *id)
{
    Item *item = g_new0(Item, 1);

    item->fd = fd;
    item->text = text;
    item->length = text != NULL ? strlen(text) : 0;
    item->task = task;
    item->id = id;
    self->queued += item->length;
    g_queue_push_tail(&self->items, item);
    g_cond_signal(&self->wake);
}

void
console_writer_write(ConsoleWriter *self, int fd, char *text, GTask *task, char *id)
{
    gsize length = strlen(text);

    g_mutex_lock(&self->mutex);
    gboolean full = self->queued + length > CONSOLE_WRITER_MAX_QUEUED;
    if (full) {
        self->dropped += length;
    } else {
        if (self->dropped > 0) {
            char *note = g_strdup_printf(
                "errand-box: %" G_GSIZE_FORMAT " bytes were left out, the terminal was too slow\n", self->dropped);
            push(self, STDERR_FILENO, note, NULL, NULL);
            self->dropped = 0;
        }
        push(self, fd, text, task, id);
    }
    g_mutex_unlock(&self->mutex);
    if (!full)
        return;
    if (task != NULL) {
        g_task_return_error(task, eb_error_new(EB_ERROR_QUOTA, "console.slow", "the terminal reads too slowly"));
        g_object_unref(task);
    }
    g_free(text);
    g_free(id);
}

void
console_writer_flush(ConsoleWriter *self, GTask *task)
{
    g_mutex_lock(&self->mutex);
    push(self, -1, NULL, task, NULL);
    g_mutex_unlock(&self->mutex);
}

gboolean
console_writer_is_broken(ConsoleWriter *self)
{
    g_mutex_lock(&self->mutex);
    gboolean broken = self->broken;
    g_mutex_unlock(&self->mutex);
    return broken;
}

void
console_writer_free(ConsoleWriter *self)
{
    Item *item;

    g_mutex_lock(&self->mutex);
    self->ending = TRUE;
    g_cond_signal(&self->wake);
    g_mutex_unlock(&self->mutex);
    g_thread_join(self->thread);
    while ((item = g_queue_pop_head(&self->items)) != NULL)
        item_finish(item, eb_error_new(EB_ERROR_CANCELLED, "console.closed", "the terminal was closed"));
    g_mutex_clear(&self->mutex);
    g_cond_clear(&self->wake);
    g_free(self);
}
