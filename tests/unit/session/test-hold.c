/* SPDX-License-Identifier: MIT */
/* When new sessions are refused, and how often people are told so. */
#include "core/session/eb-session-hold.h"
#include "eb-test.h"

#include <string.h>

#define SECOND ((gint64)G_USEC_PER_SEC)
#define START (1000 * SECOND)

static void
hold(EbSessionHold *hold, EbHoldSource source, EbErrorCode code, const char *why, gint64 now_us)
{
    g_autoptr(GError) error = why != NULL ? eb_error_new(code, "test.why", "%s", why) : NULL;
    eb_session_hold_set(hold, source, error, now_us);
}

static void
test_refusal(void)
{
    g_autoptr(EbSessionHold) h = eb_session_hold_new();
    g_autoptr(GError) error = NULL;
    g_assert_true(eb_session_hold_check(h, &error));
    g_assert_null(eb_session_hold_describe(h));
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_DEGRADED, "E-33 project directory: mode 0755", START);
    g_assert_false(eb_session_hold_check(h, &error));
    eb_test_assert_error(error, EB_ERROR_DEGRADED, "session.hold", "E-33 project directory: mode 0755");
    g_clear_error(&error);
    /* Each source has its say; the first one gives the code. */
    hold(h, EB_HOLD_WATCHDOG, EB_ERROR_UNAVAILABLE, "incusd does not answer", START);
    g_assert_false(eb_session_hold_check(h, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "session.hold", NULL);
    g_autofree char *both = eb_session_hold_describe(h);
    g_assert_cmpstr(both, ==, "incusd does not answer; E-33 project directory: mode 0755");
    hold(h, EB_HOLD_WATCHDOG, EB_ERROR_UNAVAILABLE, NULL, START);
    g_assert_true(eb_session_hold_is_held(h));
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_DEGRADED, NULL, START);
    g_assert_false(eb_session_hold_is_held(h));
}

static void
test_reason_is_bounded(void)
{
    g_autoptr(EbSessionHold) h = eb_session_hold_new();
    g_autofree char *endless = g_strnfill(100000, 'x');
    g_autoptr(GError) lines = eb_error_new(EB_ERROR_QUOTA, "test.why", "one\ntwo\033[31m");
    g_autoptr(GError) why = eb_error_new(EB_ERROR_QUOTA, "test.why", "%s", endless);
    g_assert_true(eb_session_hold_set(h, EB_HOLD_SPACE, why, START));
    /* The same again is no news, however it was cut. */
    g_assert_false(eb_session_hold_set(h, EB_HOLD_SPACE, why, START));
    g_autofree char *text = eb_session_hold_describe(h);
    g_assert_cmpuint(strlen(text), <=, EB_HOLD_MAX_REASON + 8);
    g_assert_true(eb_session_hold_set(h, EB_HOLD_SPACE, lines, START));
    g_autofree char *line = eb_session_hold_describe(h);
    g_assert_null(strpbrk(line, "\n\033"));
    g_assert_false(eb_session_hold_set(h, EB_HOLD_DOCTOR, NULL, START));
}

static void
expect(EbSessionHold *h, gint64 at_us, EbHoldNotice wanted, gint64 wanted_wait_us)
{
    gint64 wait_us = 0;
    g_assert_cmpint(eb_session_hold_next(h, at_us, &wait_us), ==, wanted);
    g_assert_cmpint(wait_us, ==, wanted_wait_us);
}

static void
test_notices(void)
{
    g_autoptr(EbSessionHold) h = eb_session_hold_new();
    expect(h, START, EB_HOLD_NOTICE_NONE, -1);
    hold(h, EB_HOLD_SPACE, EB_ERROR_QUOTA, "full", START);
    expect(h, START, EB_HOLD_NOTICE_NONE, EB_HOLD_SETTLE_US);
    /* Another reason meanwhile is no second beginning. */
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_DEGRADED, "E-08", START + SECOND);
    expect(h, START + 2 * SECOND, EB_HOLD_NOTICE_BEGUN, -1);
    expect(h, START + 3 * SECOND, EB_HOLD_NOTICE_NONE, -1);
    hold(h, EB_HOLD_SPACE, EB_ERROR_QUOTA, NULL, START + 10 * SECOND);
    expect(h, START + 20 * SECOND, EB_HOLD_NOTICE_NONE, -1);
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_DEGRADED, NULL, START + 20 * SECOND);
    expect(h, START + 21 * SECOND, EB_HOLD_NOTICE_NONE, SECOND);
    expect(h, START + 22 * SECOND, EB_HOLD_NOTICE_OVER, -1);
}

static void
test_a_blink_is_not_told(void)
{
    g_autoptr(EbSessionHold) h = eb_session_hold_new();
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_FAILED, "E-11", START);
    expect(h, START, EB_HOLD_NOTICE_NONE, EB_HOLD_SETTLE_US);
    hold(h, EB_HOLD_DOCTOR, EB_ERROR_FAILED, NULL, START + SECOND);
    expect(h, START + SECOND, EB_HOLD_NOTICE_NONE, -1);
    expect(h, START + 10 * SECOND, EB_HOLD_NOTICE_NONE, -1);
}

/* An hour of coming and going every ten seconds, and then it is over. */
static void
test_flapping(void)
{
    g_autoptr(EbSessionHold) h = eb_session_hold_new();
    guint told = 0;
    gboolean believed = FALSE;
    gint64 wait_us, now_us = START;
    for (guint i = 0; i < 360; i++) {
        hold(h, EB_HOLD_WATCHDOG, EB_ERROR_UNAVAILABLE, i % 2 == 0 ? "incusd does not answer" : NULL, now_us);
        for (guint j = 0; j < 10; j++, now_us += SECOND) {
            EbHoldNotice notice = eb_session_hold_next(h, now_us, &wait_us);
            if (notice == EB_HOLD_NOTICE_NONE)
                continue;
            g_assert_cmpint(notice == EB_HOLD_NOTICE_BEGUN, !=, believed);
            believed = notice == EB_HOLD_NOTICE_BEGUN;
            told++;
        }
    }
    g_assert_cmpuint(told, >=, 2);
    g_assert_cmpuint(told, <=, EB_HOLD_MAX_NOTICES + 3600 / (EB_HOLD_NOTICE_US / SECOND));
    /* What people believe in the end is what is. */
    if (believed) {
        g_assert_cmpint(eb_session_hold_next(h, now_us + EB_HOLD_NOTICE_US, &wait_us), ==, EB_HOLD_NOTICE_OVER);
        g_assert_cmpint(wait_us, ==, -1);
    }
    /* After a quiet time a pair is free again. */
    now_us += 3 * EB_HOLD_NOTICE_US;
    hold(h, EB_HOLD_SPACE, EB_ERROR_QUOTA, "full", now_us);
    expect(h, now_us + EB_HOLD_SETTLE_US, EB_HOLD_NOTICE_BEGUN, -1);
    hold(h, EB_HOLD_SPACE, EB_ERROR_QUOTA, NULL, now_us + 10 * SECOND);
    expect(h, now_us + 10 * SECOND + EB_HOLD_SETTLE_US, EB_HOLD_NOTICE_OVER, -1);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/hold/refusal", test_refusal);
    g_test_add_func("/hold/reason-is-bounded", test_reason_is_bounded);
    g_test_add_func("/hold/notices", test_notices);
    g_test_add_func("/hold/a-blink-is-not-told", test_a_blink_is_not_told);
    g_test_add_func("/hold/flapping", test_flapping);
    return g_test_run();
}
