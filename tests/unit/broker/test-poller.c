/* SPDX-License-Identifier: MIT */
/* The poller in its context's place: its own events, the context's, and descriptors it knows nothing of. */
#include "core/broker/eb-poller.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <glib-unix.h>

#include "eb-test.h"

typedef struct {
    GMainContext *context;
    GMainLoop *loop;
    EbPoller *poller;
    EbWatch watch;
    EbWatch other;
    int pair[2];
    int second[2];
    guint n_events;
    guint n_requeued;
    guint n_idle;
    guint32 events;
} Fixture;

static void
set_up(Fixture *self, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    self->context = g_main_context_new();
    self->loop = g_main_loop_new(self->context, FALSE);
    self->poller = eb_poller_new(self->context, &error);
    g_assert_no_error(error);
    eb_poller_wait_for_context(self->poller, self->context);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, self->pair), ==, 0);
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, self->second), ==, 0);
}

static void
tear_down(Fixture *self, gconstpointer data)
{
    eb_poller_free(self->poller);
    g_main_loop_unref(self->loop);
    g_main_context_unref(self->context);
    for (int i = 0; i < 2; i++) {
        close(self->pair[i]);
        close(self->second[i]);
    }
}

static void
count_event(EbWatch *watch, guint32 events)
{
    Fixture *self = watch->data;

    self->n_events++;
    self->events |= events;
    g_main_loop_quit(self->loop);
}

static void
write_byte(int fd)
{
    g_assert_cmpint(write(fd, "x", 1), ==, 1);
}

static gpointer
write_from_thread(gpointer data)
{
    Fixture *self = data;

    write_byte(self->pair[1]);
    return NULL;
}

static void
test_sleeps_until_event(Fixture *self, gconstpointer data)
{
    GThread *thread;

    g_assert_true(eb_poller_add(self->poller, &self->watch, self->pair[0], EPOLLIN, count_event, self));
    for (guint i = 1; i <= 3; i++) {
        thread = g_thread_new("writer", write_from_thread, self);
        g_main_loop_run(self->loop);
        g_thread_join(thread);
        g_assert_cmpuint(self->n_events, ==, i);
    }
    g_assert_cmpuint(self->events, ==, EPOLLIN);
    eb_poller_remove(self->poller, &self->watch);
}

static gboolean
on_idle(gpointer data)
{
    Fixture *self = data;

    self->n_idle++;
    g_main_loop_quit(self->loop);
    return G_SOURCE_REMOVE;
}

static gpointer
attach_from_thread(gpointer data)
{
    Fixture *self = data;
    g_autoptr(GSource) source = g_idle_source_new();

    g_source_set_callback(source, on_idle, self, NULL);
    g_source_attach(source, self->context);
    return NULL;
}

/* A resolver's thread hands its answer over like this. */
static void
test_woken_by_thread(Fixture *self, gconstpointer data)
{
    for (guint i = 1; i <= 3; i++) {
        GThread *thread = g_thread_new("attacher", attach_from_thread, self);

        g_main_loop_run(self->loop);
        g_thread_join(thread);
        g_assert_cmpuint(self->n_idle, ==, i);
    }
    g_assert_cmpuint(self->n_events, ==, 0);
}

static gboolean
on_timeout(gpointer data)
{
    return on_idle(data);
}

static void
test_timeouts(Fixture *self, gconstpointer data)
{
    g_autoptr(GSource) source = g_timeout_source_new(5);

    g_source_set_callback(source, on_timeout, self, NULL);
    g_source_attach(source, self->context);
    g_main_loop_run(self->loop);
    g_assert_cmpuint(self->n_idle, ==, 1);
}

static gboolean
on_foreign_fd(int fd, GIOCondition condition, gpointer data)
{
    char byte;

    g_assert_cmpint(read(fd, &byte, 1), ==, 1);
    return on_idle(data);
}

/* A descriptor that is not the poller's: GLib waits then, and the poller's own events come all the same. */
static void
test_foreign_descriptor(Fixture *self, gconstpointer data)
{
    g_autoptr(GSource) source = g_unix_fd_source_new(self->second[0], G_IO_IN);

    g_source_set_callback(source, G_SOURCE_FUNC(on_foreign_fd), self, NULL);
    g_source_attach(source, self->context);
    g_assert_true(eb_poller_add(self->poller, &self->watch, self->pair[0], EPOLLIN, count_event, self));
    write_byte(self->second[1]);
    g_main_loop_run(self->loop);
    g_assert_cmpuint(self->n_idle, ==, 1);
    write_byte(self->pair[1]);
    g_main_loop_run(self->loop);
    g_assert_cmpuint(self->n_events, ==, 1);
    /* The foreign one has gone: the poller waits again. */
    write_byte(self->pair[1]);
    g_main_loop_run(self->loop);
    g_assert_cmpuint(self->n_events, ==, 2);
    eb_poller_remove(self->poller, &self->watch);
}

/* Found ready only after waiting, and of more weight than the poller: it runs between an event's arrival and its use. */
typedef struct {
    GSource source;
    Fixture *fixture;
} Between;

static gboolean
between_prepare(GSource *source, int *timeout)
{
    *timeout = -1;
    return FALSE;
}

static gboolean
between_check(GSource *source)
{
    return TRUE;
}

static gboolean
between_dispatch(GSource *source, GSourceFunc callback, gpointer data)
{
    Fixture *self = ((Between *)source)->fixture;

    eb_poller_remove(self->poller, &self->watch);
    eb_poller_remove(self->poller, &self->other);
    memset(&self->watch, 0xff, sizeof self->watch);
    memset(&self->other, 0xff, sizeof self->other);
    return on_idle(self);
}

static void
test_removed_after_fetch(Fixture *self, gconstpointer data)
{
    static GSourceFuncs funcs = {.prepare = between_prepare, .check = between_check, .dispatch = between_dispatch};
    g_autoptr(GSource) between = g_source_new(&funcs, sizeof(Between));

    g_assert_true(eb_poller_add(self->poller, &self->watch, self->pair[0], EPOLLIN, count_event, self));
    g_assert_true(eb_poller_add(self->poller, &self->other, self->second[0], EPOLLIN, count_event, self));
    ((Between *)between)->fixture = self;
    g_source_set_priority(between, G_PRIORITY_HIGH);
    g_source_attach(between, self->context);
    write_byte(self->pair[1]);
    write_byte(self->second[1]);
    g_main_loop_run(self->loop);
    while (g_main_context_iteration(self->context, FALSE))
        continue;
    g_assert_cmpuint(self->n_idle, ==, 1);
    g_assert_cmpuint(self->n_events, ==, 0);
}

static void
requeue_thrice(EbWatch *watch, guint32 events)
{
    Fixture *self = watch->data;

    if (events == 0)
        self->n_requeued++;
    if (self->n_requeued < 3)
        eb_poller_requeue(self->poller, watch);
    else
        g_main_loop_quit(self->loop);
}

static void
test_requeue(Fixture *self, gconstpointer data)
{
    g_assert_true(eb_poller_add(self->poller, &self->watch, self->pair[0], EPOLLIN, requeue_thrice, self));
    write_byte(self->pair[1]);
    g_main_loop_run(self->loop);
    g_assert_cmpuint(self->n_requeued, ==, 3);
    eb_poller_remove(self->poller, &self->watch);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*run)(Fixture *self, gconstpointer data);
    } TESTS[] = {
        {"/broker/poller/sleeps-until-event", test_sleeps_until_event},
        {"/broker/poller/woken-by-thread", test_woken_by_thread},
        {"/broker/poller/timeouts", test_timeouts},
        {"/broker/poller/foreign-descriptor", test_foreign_descriptor},
        {"/broker/poller/removed-after-fetch", test_removed_after_fetch},
        {"/broker/poller/requeue", test_requeue},
    };

    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(TESTS); i++)
        g_test_add(TESTS[i].path, Fixture, NULL, set_up, TESTS[i].run, tear_down);
    return g_test_run();
}
