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

static const char *const reads[] = {"/etc/motd", "unix:{backend.socket}", "run:uname", "{gone}/x", NULL};
static const EbCheckInfo info = {.id = "x-test", .title = "t", .expected = "e", .remedy = "r", .reads = reads};

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

/* Asks for what @settings name as the thing to try. */
static EbCheckResult *
run_tries(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *what = eb_config_section_get_string(settings, "try", NULL, NULL);
    const char *const uname[] = {"/usr/bin/uname", NULL};
    const char *const id[] = {"id", NULL};
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    g_auto(GStrv) names = NULL;
    EbHostSpace space;
    int code;

    if (g_str_equal(what, "uname"))
        text = eb_host_run(host, uname, 5000, &code, &error);
    else if (g_str_equal(what, "id"))
        text = eb_host_run(host, id, 5000, &code, &error);
    else if (g_str_has_prefix(what, "unix:"))
        eb_host_connect_unix(host, what + 5, 100, &error);
    else if (g_str_has_prefix(what, "http:"))
        text = eb_host_unix_http_get(host, what + 5, "/", 100, &error);
    else if (g_str_has_prefix(what, "space:"))
        eb_host_space(host, what + 6, &space, &error);
    else if (g_str_has_prefix(what, "list:"))
        names = eb_host_list_dir(host, what + 5, &error);
    else
        eb_host_exists(host, what);
    return eb_check_result_new(EB_CHECK_OK, "%s", error != NULL ? error->message : "seen");
}

static void
test_reads(void)
{
    static const struct {
        const char *what;
        gboolean declared;
    } table[] = {
        {"uname", TRUE},       {"id", FALSE},          {"/etc/motd", TRUE},    {"/etc/motd/below", TRUE},
        {"/etc/motd2", FALSE}, {"/etc", FALSE},        {"unix:/run/s", TRUE},  {"http:/run/s", TRUE},
        {"/run/s", TRUE},      {"unix:/run/t", FALSE}, {"http:/run/t", FALSE}, {"unix:/etc/motd", FALSE},
        {"/x", FALSE},         {"space:/", FALSE},     {"list:/etc", FALSE},   {"list:/etc/motd", TRUE},
    };
    g_autoptr(EbDoctorCheck) check = eb_simple_check_new(&info, run_tries);
    g_autoptr(EbHost) host = eb_host_new_real();

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(EbConfigSection) settings = eb_config_section_new("service");
        g_autoptr(EbCheckResult) result = NULL;

        eb_config_section_set(settings, "backend.socket", g_variant_new_string("/run/s"), NULL, 0);
        eb_config_section_set(settings, "try", g_variant_new_string(table[i].what), NULL, 0);
        result = eb_doctor_check_run(check, host, settings, NULL);
        g_assert_cmpint(result->status, ==, table[i].declared ? EB_CHECK_OK : EB_CHECK_SKIPPED);
        if (!table[i].declared)
            g_assert_nonnull(strstr(result->observed, "which it does not declare"));
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
    g_test_add_func("/sdk/doctor-check/reads", test_reads);
    g_test_add_func("/sdk/doctor-check/no-result", test_no_result);
    return g_test_run();
}
