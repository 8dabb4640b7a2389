/* SPDX-License-Identifier: MIT */
/* What a supervisor is told: datagrams to NOTIFY_SOCKET, and one newline on the pipe of s6. */
#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/eb-notify.h"
#include "tests/lib/eb-test.h"

static void
test_datagrams(void)
{
    g_autofree char *dir = eb_test_temp_dir("notify");
    g_autofree char *path = g_build_filename(dir, "s", NULL);
    g_autoptr(GSocket) socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_DATAGRAM, 0, NULL);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    static const char *const EXPECTED[] = {"READY=1", "STATUS=2\\x0aREADY=0", "EXTEND_TIMEOUT_USEC=30000000",
                                           "STOPPING=1"};

    g_assert_true(g_socket_bind(socket, address, FALSE, NULL));
    g_setenv("NOTIFY_SOCKET", path, TRUE);
    eb_notify_ready();
    eb_notify_status("%s", "2\nREADY=0"); /* one line, whatever is in it */
    eb_notify_extend(30000);
    eb_notify_stopping();
    g_unsetenv("NOTIFY_SOCKET");
    for (guint i = 0; i < G_N_ELEMENTS(EXPECTED); i++) {
        char text[256] = "";
        g_assert_cmpint(g_socket_receive(socket, text, sizeof text - 1, NULL, NULL), >, 0);
        g_assert_cmpstr(text, ==, EXPECTED[i]);
    }
}

static void
test_s6(void)
{
    g_autofree char *number = NULL;
    char text[8] = "";
    int ends[2];

    g_assert_cmpint(pipe(ends), ==, 0);
    number = g_strdup_printf("%d", ends[1]);
    g_setenv(EB_NOTIFY_FD_VARIABLE, number, TRUE);
    eb_notify_ready();
    eb_notify_ready();
    /* One line, and the end of the pipe: a descriptor kept open would be told of to nobody. */
    g_assert_cmpint(read(ends[0], text, sizeof text), ==, 1);
    g_assert_cmpstr(text, ==, "\n");
    g_assert_cmpint(read(ends[0], text, sizeof text), ==, 0);
    g_assert_null(g_getenv(EB_NOTIFY_FD_VARIABLE));
    close(ends[0]);
}

/* A number that is no pipe of a supervisor is not written to. */
static void
test_s6_nonsense(void)
{
    static const char *const NUMBERS[] = {"", "1", "x", "999", "70000", "-3"};
    g_autofree char *dir = eb_test_temp_dir("fd");
    g_autofree char *path = g_build_filename(dir, "file", NULL);
    g_autofree char *text = NULL;
    gsize length = 1;

    eb_test_write_file(path, "");
    FILE *file = fopen(path, "r+");
    g_autofree char *number = g_strdup_printf("%d", fileno(file));
    for (guint i = 0; i < G_N_ELEMENTS(NUMBERS); i++) {
        g_setenv(EB_NOTIFY_FD_VARIABLE, NUMBERS[i], TRUE);
        eb_notify_ready();
    }
    g_setenv(EB_NOTIFY_FD_VARIABLE, number, TRUE);
    eb_notify_ready();
    g_unsetenv(EB_NOTIFY_FD_VARIABLE);
    fclose(file);
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    g_assert_cmpuint(length, ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/notify/datagrams", test_datagrams);
    g_test_add_func("/notify/s6", test_s6);
    g_test_add_func("/notify/s6-nonsense", test_s6_nonsense);
    return g_test_run();
}
