/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/doctor/eb-doctor-line.h"
#include "eb-test.h"

static void
test_check(void)
{
    g_autofree char *many = g_strnfill(10000, 'x');
    const char *reads[EB_DOCTOR_READS_MAX + 10];
    EbCheckInfo info = {.id = "x-acme", .title = "a\033[1m\nb", .expected = many, .remedy = "\xff", .reads = reads};
    g_autofree char *text = NULL;
    g_autoptr(EbDoctorLine) line = NULL;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(reads) - 1; i++)
        reads[i] = "/etc";
    reads[G_N_ELEMENTS(reads) - 1] = NULL;
    info.deadline_ms = G_MAXUINT;
    text = eb_doctor_line_check(&info);
    g_assert_cmpuint(strlen(text), <, EB_DOCTOR_LINE_MAX);
    g_assert_true(strchr(text, '\n') == text + strlen(text) - 1);
    line = eb_doctor_line_parse(text, strlen(text) - 1, &error);
    g_assert_no_error(error);
    g_assert_cmpint(line->kind, ==, EB_DOCTOR_LINE_CHECK);
    g_assert_cmpstr(line->info->title, ==, "a\\x1b[1m\\x0ab");
    g_assert_cmpuint(strlen(line->info->expected), <=, EB_DOCTOR_TEXT_MAX + 3);
    g_assert_cmpuint(g_strv_length((char **)line->info->reads), ==, EB_DOCTOR_READS_MAX);
    g_assert_cmpuint(line->info->deadline_ms, ==, 3600000);
    g_assert_null(line->info->doc);
}

/* The longest a check can say, every byte of which JSON has to escape, fits into a line. */
static void
test_longest(void)
{
    g_autofree char *quotes = g_strnfill(EB_DOCTOR_TEXT_MAX, '"');
    g_autofree char *path = g_strnfill(1000, '"');
    const char *reads[EB_DOCTOR_READS_MAX + 1] = {NULL};
    const EbCheckInfo info = {
        .id = quotes, .title = quotes, .expected = quotes, .remedy = quotes, .doc = quotes, .reads = reads};
    g_autofree char *text = NULL;

    for (guint i = 0; i < EB_DOCTOR_READS_MAX; i++)
        reads[i] = path;
    text = eb_doctor_line_check(&info);
    g_assert_cmpuint(strlen(text), <, 2 * EB_DOCTOR_LINE_MAX);
}

static void
test_result(void)
{
    g_autoptr(EbCheckResult) result = eb_check_result_new(EB_CHECK_SKIPPED, "\033]0;x\a");
    g_autofree char *text = eb_doctor_line_result("E-05", result, 7);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorLine) line = eb_doctor_line_parse(text, strlen(text) - 1, &error);

    g_assert_no_error(error);
    g_assert_cmpint(line->result->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpstr(line->result->observed, ==, "\\x1b]0;x\\x07");
    g_assert_null(line->result->remedy);
    g_assert_cmpuint(line->ms, ==, 7);
}

static void
test_refused(void)
{
    static const char *const TEXTS[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"line\":1}",
        "{\"line\":\"chek\"}",
        "{\"line\":\"check\"}",
        "{\"line\":\"check\",\"id\":\"\",\"title\":\"t\"}",
        "{\"line\":\"check\",\"id\":[],\"title\":\"t\"}",
        "{\"line\":\"result\",\"id\":\"E-05\",\"status\":\"fine\",\"observed\":\"\"}",
        "{\"line\":\"result\",\"id\":\"E-05\",\"status\":\"ok\"}",
        "{\"line\":\"result\",\"status\":\"ok\",\"observed\":\"\"}",
        "{\"line\":\"problem\"}",
        "{\"line\":\"end\"} x",
        "{\"line\":\"end\",\"x\":[[[[[]]]]]}",
        "{\"line\":\"end\",\"x\":\"\xff\"}",
    };
    g_autofree char *long_text = g_strnfill(EB_DOCTOR_LINE_MAX + 1, ' ');

    for (guint i = 0; i < G_N_ELEMENTS(TEXTS); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_doctor_line_parse(TEXTS[i], strlen(TEXTS[i]), &error));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, "doctor.line", NULL);
    }
    memcpy(long_text, "{\"line\":\"end\"}", 14);
    g_assert_null(eb_doctor_line_parse(long_text, EB_DOCTOR_LINE_MAX + 1, NULL));
    g_autoptr(EbDoctorLine) fits = eb_doctor_line_parse(long_text, EB_DOCTOR_LINE_MAX, NULL);
    g_assert_nonnull(fits);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/doctor-line/check", test_check);
    g_test_add_func("/doctor-line/longest", test_longest);
    g_test_add_func("/doctor-line/result", test_result);
    g_test_add_func("/doctor-line/refused", test_refused);
    return g_test_run();
}
