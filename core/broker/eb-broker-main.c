/* SPDX-License-Identifier: MIT */
/*
 * errand-box-broker: the only way out of one session's guest. Started by the service with one end of a socket pair as
 * descriptor EB_BROKER_CONTROL_FD; everything it goes by arrives there, nothing by argument or environment.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gio/gio.h>

#include "core/base/eb-sandbox.h"
#include "core/broker/eb-broker-link.h"
#include "core/broker/eb-broker-resolver.h"
#include "core/broker/eb-broker-sandbox.h"
#include "core/broker/eb-broker.h"

/* The service greets as soon as the process is there. */
#define HELLO_WAIT_MS 10000
/* Bytes of a bundle of certificates. */
#define MAX_BUNDLE (8u << 20)

static int
fail(const GError *error)
{
    g_printerr("errand-box-broker: %s\n", error->message);
    return 1;
}

static gboolean
write_all(int fd, const char *bytes, gsize length)
{
    while (length > 0) {
        ssize_t written = write(fd, bytes, length);

        if (written <= 0)
            return FALSE;
        bytes += written;
        length -= (gsize)written;
    }
    return TRUE;
}

/*
 * Certificates of an operator's own, beside those of the system: GTlsFileDatabase reads one file, so both go into one
 * that lives in memory. It stays open, because the file is read again with the first handshake, when no other can be
 * reached.
 */
static GTlsDatabase *
database_with(GBytes *ca, GError **error)
{
    static const char *const BUNDLES[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"};
    int fd = memfd_create("ca", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    gsize length;
    const char *bytes = g_bytes_get_data(ca, &length);
    gboolean good = fd >= 0;

    for (gsize i = 0; good && i < G_N_ELEMENTS(BUNDLES); i++) {
        g_autofree char *bundle = NULL;
        gsize bundle_length;

        if (!g_file_get_contents(BUNDLES[i], &bundle, &bundle_length, NULL) || bundle_length > MAX_BUNDLE)
            continue;
        good = write_all(fd, bundle, bundle_length) && write_all(fd, "\n", 1);
        break;
    }
    good = good && write_all(fd, bytes, length);
    if (!good || fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "broker.ca", "cannot keep the certificates");
        return NULL;
    }
    return g_tls_file_database_new(path, error);
}

/*
 * Loads the modules that are loaded on first use, while files can still be opened freely and there is one thread. The
 * system's certificates are left to the first handshake: many sessions never make one, and they are two megabytes.
 */
static gboolean
warm_up(GBytes *ca, GTlsDatabase **database, GError **error)
{
    if (!g_tls_backend_supports_tls(g_tls_backend_get_default())) {
        eb_set_error(error, EB_ERROR_UNAVAILABLE, "broker.no-tls",
                     "no TLS module is installed (package glib-networking)");
        return FALSE;
    }
    if (ca != NULL)
        *database = database_with(ca, error);
    return ca == NULL || *database != NULL;
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
    g_autoptr(GTlsDatabase) database = NULL;
    g_autoptr(GResolver) inner = NULL;
    g_autoptr(GResolver) judging = NULL;
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
    if (!warm_up(ca, &database, &error))
        return fail(error);
    inner = g_resolver_get_default();
    judging = eb_broker_resolver_new(inner);
    g_resolver_set_default(judging);
    if (!eb_broker_sandbox_enter(&lacking, &error))
        return fail(error);
    /* The default context wakes itself through a descriptor on every change; one of our own knows its thread. */
    context = g_main_context_new();
    g_main_context_push_thread_default(context);
    broker = eb_broker_new(context, inner, database, &error);
    if (broker == NULL)
        return fail(error);
    loop = g_main_loop_new(context, FALSE);
    broker->link = eb_broker_link_new(broker, EB_BROKER_CONTROL_FD, service_gone, loop);
    eb_broker_set_listener(broker, EB_BROKER_LISTENER_FD);
    eb_broker_link_send_ready(broker->link, lacking);
    g_main_loop_run(loop);
    /* The service is gone or wants the end: what is open ends with the process. */
    _exit(0);
}
