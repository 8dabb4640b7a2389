/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon.h"
#include "tests/lib/eb-test.h"

/* A daemon that hangs for now is tried again by the supervisor; what people must mend is not. */
static void
test_codes(void)
{
    g_autoptr(GError) late = eb_error_new(EB_ERROR_TIMEOUT, "incus.timeout", "GET /1.0: incusd did not answer in time");
    g_autoptr(GError) refused = eb_error_new(EB_ERROR_UNAVAILABLE, "incus.down", "nobody answers on the socket");
    g_autoptr(GError) first = eb_daemon_backend_error("incus", late);
    g_autoptr(GError) second = eb_daemon_backend_error("incus", refused);

    eb_test_assert_error(first, EB_ERROR_TIMEOUT, "backend.failed", "(errand-box doctor)");
    eb_test_assert_error(second, EB_ERROR_CONFIG, "backend.failed", "plugin \"incus\": nobody answers on the socket");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/backend-error/codes", test_codes);
    return g_test_run();
}
