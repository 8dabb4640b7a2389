/* SPDX-License-Identifier: MIT */
/*
 * errand-box-broker: the only way out of one session's guest. Started by the service with one end of a socket pair as
 * descriptor EB_BROKER_CONTROL_FD; everything it goes by arrives there, nothing by argument or environment.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gio/gio.h>

#include "core/base/eb-sandbox.h"
#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-broker-sandbox.h"
#include "core/broker/eb-broker.h"
#include "core/broker/eb-upstream-tls.h"

/* The service greets as soon as the process is there. */
#define HELLO_WAIT_MS 10000

static int
fail(const GError *error)
{
    g_printerr("errand-box-broker: %s\n", error->message);
    return 1;
}

static void
service_gone(gpointer user_data)
{
    g_main_loop_quit(user_data);
}

static gboolean
is_socket(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMainContext) context = NULL;
    g_autoptr(GMainLoop) loop = NULL;
    g_autoptr(GResolver) resolver = NULL;
    EbUpstreamTls *tls;
    g_autoptr(GBytes) ca = NULL;
    g_autofree char *lacking = NULL;
    EbBroker *broker;

    /* Before anything secret is received; an exec resets it. */
    if (!eb_sandbox_harden(&error))
        return fail(error);
    /* splice(2) has no MSG_NOSIGNAL. */
    signal(SIGPIPE, SIG_IGN);
    eb_log_setup(0, FALSE);
    if (argc != 1 || !is_socket(EB_BROKER_CONTROL_FD) || !is_socket(EB_BROKER_LISTENER_FD)) {
        g_printerr("errand-box-broker: started by errand-boxd alone (no arguments, sockets as descriptors %d and %d)\n",
                   EB_BROKER_CONTROL_FD, EB_BROKER_LISTENER_FD);
        return 2;
    }
    fcntl(EB_BROKER_CONTROL_FD, F_SETFD, FD_CLOEXEC);
    fcntl(EB_BROKER_LISTENER_FD, F_SETFD, FD_CLOEXEC);
    if (!eb_broker_link_receive_hello(EB_BROKER_CONTROL_FD, HELLO_WAIT_MS, &ca, &error))
        return fail(error);
    /* While files can still be opened freely and there is one thread. */
    tls = eb_upstream_tls_new(ca, &error);
    if (tls == NULL)
        return fail(error);
    resolver = g_resolver_get_default();
    if (!eb_broker_sandbox_enter(EB_BROKER_CONTROL_FD, &lacking, &error))
        return fail(error);
    /* The default context wakes itself through a descriptor on every change; one of our own knows its thread. */
    context = g_main_context_new();
    g_main_context_push_thread_default(context);
    broker = eb_broker_new(context, resolver, tls, &error);
    if (broker == NULL)
        return fail(error);
    eb_poller_wait_for_context(broker->poller, context);
    loop = g_main_loop_new(context, FALSE);
    broker->link = eb_broker_link_new(broker, EB_BROKER_CONTROL_FD, service_gone, loop);
    eb_broker_set_listener(broker, EB_BROKER_LISTENER_FD);
    eb_broker_link_send_ready(broker->link, lacking);
    g_main_loop_run(loop);
    /* The service is gone or wants the end: what is open ends with the process. */
    _exit(0);
}
