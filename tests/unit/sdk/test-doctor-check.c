/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

static EbCheckResult *
run_motd(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *text = eb_host_read_file(host, "/etc/motd", NULL, NULL);
    EbCheckResult *result;

    if (text != NULL)
        return eb_check_result_new(EB_CHECK_OK, "%" G_GSIZE_FORMAT " bytes", strlen(text));
    result = eb_check_result_new(EB_CHECK_FAIL, "no file");
    eb_check_result_set_remedy(result, "write %s", "it");
    eb_check_result_set_remedy(result, "write %s", "/etc/motd");
    return result;
}

static EbCheckResult *
run_nothing(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return NULL;
}

static const EbCheckInfo info = {.id = "x-test", .title = "t", .expected = "e", .remedy = "r"};

static void
test_simple(void)
{
    g_autofree char *dir = eb_test_temp_dir("check");
    g_autofree char *file = g_build_filename(dir, "etc/motd", NULL);
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&info, run_motd);
    g_autoptr(EbHost) host = eb_host_new_fixture(dir);
    g_autoptr(EbConfigSection) settings = eb_config_section_new("service");

    g_assert_true(eb_doctor_check_get_info(check) == &info);
    {
        g_autoptr(EbCheckResult) result = eb_doctor_check_run(check, host, settings, NULL);

        g_assert_cmpint(result->status, ==, EB_CHECK_FAIL);
        g_assert_cmpstr(result->remedy, ==, "write /etc/motd");
    }
    eb_test_write_file(file, "hello");
    {
        g_autoptr(EbCheckResult) result = eb_doctor_check_run(check, host, settings, NULL);

        g_assert_cmpint(result->status, ==, EB_CHECK_OK);
        g_assert_cmpstr(result->observed, ==, "5 bytes");
        g_assert_null(result->remedy);
    }
}

static void
test_no_result(void)
{
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&info, run_nothing);
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbCheckResult) result = eb_doctor_check_run(check, host, NULL, NULL);

    g_assert_cmpint(result->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpstr(eb_check_status_to_string(EB_CHECK_OK), ==, "ok");
    g_assert_cmpstr(eb_check_status_to_string(EB_CHECK_DEGRADED), ==, "degraded");
    g_assert_cmpstr(eb_check_status_to_string(EB_CHECK_FAIL), ==, "fail");
    g_assert_cmpstr(eb_check_status_to_string(EB_CHECK_SKIPPED), ==, "skipped");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/doctor-check/simple", test_simple);
    g_test_add_func("/sdk/doctor-check/no-result", test_no_result);
    return g_test_run();
}
