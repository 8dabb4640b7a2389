/* SPDX-License-Identifier: MIT */
/* What is shown of each state: a line that says what is so and what to type, and JSON of a stable shape. */
#include "core/provision/eb-backend-remedy.h"
#include "core/watchdog/eb-watchdog-view.h"
#include "tests/lib/eb-test.h"

#define S ((gint64)G_USEC_PER_SEC)
#define NOW (5000 * S)

static EbWatchdogRules rules;
static EbWatchdogView view;

static void
begin(EbWatchdogServiceState service, EbWatchdogBackendState backend)
{
    EbWatchdogLimits limits = EB_WATCHDOG_LIMITS;

    limits.supervised = TRUE;
    eb_watchdog_rules_init(&rules, &limits, NOW - 100 * S, 0);
    rules.service = service;
    rules.backend = backend;
    rules.service_since_us = NOW - 7 * S;
    rules.backend_since_us = NOW - 9 * S;
    view = (EbWatchdogView){.rules = &rules, .now_us = NOW};
}

static void
assert_service(const char *text)
{
    g_autofree char *line = eb_watchdog_view_service(&view);
    g_assert_cmpstr(line, ==, text);
}

static void
assert_backend(const char *text)
{
    g_autofree char *line = eb_watchdog_view_backend(&view);
    g_assert_cmpstr(line, ==, text);
}

static void
test_service(void)
{
    begin(EB_WATCHDOG_SERVICE_UP, EB_WATCHDOG_BACKEND_OK);
    assert_service("the service answers");
    rules.service_pid = 12;
    assert_service("the service (process 12) answers");
    rules.service = EB_WATCHDOG_SERVICE_STARTING;
    assert_service("the service (process 12) is starting");
    rules.service = EB_WATCHDOG_SERVICE_ENDING;
    assert_service("the service (process 12) is ending");
    rules.service = EB_WATCHDOG_SERVICE_DEAD;
    assert_service("the service died; its guests are ended when it does not come back (errand-box up)");
    rules.service = EB_WATCHDOG_SERVICE_STOPPED;
    assert_service("the service does not run (errand-box up)");
    rules.service = EB_WATCHDOG_SERVICE_UNKNOWN;
    assert_service("how the service is cannot be seen");
}

static void
test_hangs(void)
{
    begin(EB_WATCHDOG_SERVICE_HANGS, EB_WATCHDOG_BACKEND_OK);
    rules.service_pid = 12;
    rules.silent_since_us = NOW - 63 * S;
    assert_service("the service (process 12) takes connections and does not answer for 63 s: it is ended, and its "
                   "supervisor starts it again");
    view.process_detail = "its process was stopped by a signal";
    view.once = TRUE;
    assert_service(
        "the service (process 12) takes connections and does not answer for 63 s, its process was stopped by a "
        "signal");
    view.once = FALSE;
    view.process_detail = NULL;
    rules.limits.supervised = FALSE;
    rules.silent_since_us = 0;
    rules.quiet_since_us = NOW - 605 * S;
    assert_service("the service (process 12) holds its lock and takes no connections for 605 s: nothing would start it "
                   "again, so it is left alone: errand-box down, then errand-box up");
    rules.limits.supervised = TRUE;
    for (guint i = 0; i < EB_WATCHDOG_ENDS; i++)
        rules.ended_us[i] = NOW - (i + 1) * 200 * S;
    assert_service(
        "the service (process 12) holds its lock and takes no connections for 605 s: it was ended three times "
        "within the hour and is left alone now: errand-box down, then errand-box up");
}

static void
test_backend(void)
{
    begin(EB_WATCHDOG_SERVICE_UP, EB_WATCHDOG_BACKEND_OK);
    assert_backend("the container backend answers");
    rules.backend = EB_WATCHDOG_BACKEND_UNKNOWN;
    assert_backend("the container backend was not seen yet");
    rules.backend = EB_WATCHDOG_BACKEND_WEDGED;
    assert_backend("the container backend takes connections and has not answered for 9 s");
    view.remedy = "systemctl restart incus";
    assert_backend("the container backend takes connections and has not answered for 9 s: systemctl restart incus");
    rules.backend = EB_WATCHDOG_BACKEND_DOWN;
    view.backend_detail = "no such file";
    assert_backend("the container backend cannot be reached for 9 s (no such file): systemctl restart incus");
}

static void
test_json(void)
{
    g_autoptr(GDateTime) at = g_date_time_new_utc(2026, 1, 2, 3, 4, 5);

    begin(EB_WATCHDOG_SERVICE_DEAD, EB_WATCHDOG_BACKEND_DOWN);
    view.guests_ended = 3;
    view.services_ended = 1;
    g_autoptr(JsonNode) node = eb_watchdog_view_json(&view, at);
    json_object_set_int_member(eb_json_node_object(node), "pid", 1);
    g_autofree char *text = eb_json_write(node, NULL);
    g_assert_cmpstr(
        text, ==,
        "{\"schema\":1,\"at\":\"2026-01-02T03:04:05Z\",\"pid\":1,\"service\":{\"state\":\"dead\",\"since_s\":7,"
        "\"detail\":\"the service died; its guests are ended when it does not come back (errand-box up)\"},"
        "\"backend\":{\"state\":\"down\",\"since_s\":9,"
        "\"detail\":\"the container backend cannot be reached for 9 s\"},"
        "\"guests_ended\":3,\"restarts\":1,\"last_error\":null}");
    g_autoptr(JsonNode) report = eb_watchdog_view_report(&view, "incus");
    g_autofree char *params = eb_json_write(report, NULL);
    g_assert_cmpstr(
        params, ==,
        "{\"target\":\"incus\",\"state\":\"down\",\"detail\":\"the container backend cannot be reached for 9 s\","
        "\"seconds\":9}");
}

static void
test_remedy(void)
{
    g_autoptr(EbSupervisor) systemd = eb_supervisor_new_systemd("systemctl");
    g_autofree char *by_systemd = eb_backend_remedy("incus", systemd);
    g_autofree char *by_setup = eb_backend_remedy("incus", NULL);

    g_assert_cmpstr(by_systemd, ==, "systemctl restart incus");
    g_assert_cmpstr(by_setup, ==, "errand-box setup --stop-daemons, then errand-box setup");
    g_assert_null(eb_backend_remedy("something-else", systemd));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/watchdog/view/service", test_service);
    g_test_add_func("/watchdog/view/hangs", test_hangs);
    g_test_add_func("/watchdog/view/backend", test_backend);
    g_test_add_func("/watchdog/view/json", test_json);
    g_test_add_func("/watchdog/view/remedy", test_remedy);
    return g_test_run();
}
