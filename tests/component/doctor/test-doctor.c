/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/doctor/eb-doctor.h"
#include "tests/lib/eb-test.h"

/* The run itself, with checks that behave, hang, or break their promise. */

static GMutex hang_lock;
static GCond hang_changed;
static guint hanging;
static gboolean hang_over;

static EbCheckResult *
run_ok(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_autofree char *value = eb_config_section_get_string(settings, "state_dir", "unset", NULL);

    return eb_check_result_new(EB_CHECK_OK, "state_dir %s", value);
}

static EbCheckResult *
run_degraded(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    EbCheckResult *result = eb_check_result_new(EB_CHECK_DEGRADED, "half \033[31mred\033[0m");

    eb_check_result_set_remedy(result, "more precise");
    return result;
}

/* Deaf to its cancellable, until the test lets it go. */
static EbCheckResult *
run_hang(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    g_mutex_lock(&hang_lock);
    hanging++;
    while (!hang_over)
        g_cond_wait(&hang_changed, &hang_lock);
    hanging--;
    g_cond_broadcast(&hang_changed);
    g_mutex_unlock(&hang_lock);
    return eb_check_result_new(EB_CHECK_OK, "too late");
}

/* Slow, and polite: ends when it is cancelled and says what it knows. */
static EbCheckResult *
run_slow(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    while (!g_cancellable_is_cancelled(cancellable))
        g_usleep(5 * 1000);
    return eb_check_result_new(EB_CHECK_SKIPPED, "stopped half way");
}

static EbCheckResult *
run_nothing(EbHost *host, EbConfigSection *settings, GCancellable *cancellable)
{
    return NULL;
}

static const char *const READS[] = {"/nowhere", NULL};
#define INFO(name)                                                                                                     \
    {                                                                                                                  \
        .id = name, .title = "title of " name, .expected = "better", .remedy = "mend it", .reads = READS,              \
        .deadline_ms = 100                                                                                             \
    }
static const EbCheckInfo INFO_OK = INFO("E-17"), INFO_DEGRADED = INFO("E-05"), INFO_HANG = INFO("x-acme-hang"),
                         INFO_SLOW = INFO("E-100"), INFO_NOTHING = INFO("E-20");

static void
add(GPtrArray *list, const char *plugin, const EbCheckInfo *info, EbCheckFunc run)
{
    EbExtension *extension = g_new0(EbExtension, 1);

    extension->plugin = plugin;
    extension->name = info->id;
    extension->object = G_OBJECT(eb_simple_check_new(info, run));
    g_ptr_array_add(list, extension);
}

static void
extension_free(gpointer data)
{
    EbExtension *extension = data;

    g_object_unref(extension->object);
    g_free(extension);
}

static GPtrArray *
make_checks(gboolean hang)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(extension_free);

    add(list, "doctor-checks", &INFO_OK, run_ok);
    add(list, "doctor-checks", &INFO_DEGRADED, run_degraded);
    add(list, "doctor-checks", &INFO_SLOW, run_slow);
    add(list, "doctor-checks", &INFO_NOTHING, run_nothing);
    if (hang)
        add(list, "acme", &INFO_HANG, run_hang);
    return list;
}

static const EbDoctorRow *
find(EbDoctorReport *report, const char *id)
{
    for (guint i = 0; i < report->rows->len; i++)
        if (strcmp(((EbDoctorRow *)report->rows->pdata[i])->info->id, id) == 0)
            return report->rows->pdata[i];
    g_error("no row %s", id);
    return NULL;
}

static EbHost *
make_host(void)
{
    g_autofree char *tree = eb_test_temp_dir("doctor-host");

    return eb_host_new_fixture(tree);
}

/* A check that hangs is named with its plugin, and all others report. */
static void
test_hang(void)
{
    g_autoptr(GPtrArray) list = make_checks(TRUE);
    g_autoptr(EbHost) host = make_host();
    g_autoptr(EbConfigSection) settings = eb_config_section_new("service");
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorReport) report = NULL;

    eb_config_section_set(settings, "state_dir", g_variant_new_string("/srv/errand"), "test", 1);
    report = eb_doctor_run(list, host, settings, NULL, NULL, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(report->rows->len, ==, 5);
    g_assert_cmpint(find(report, "x-acme-hang")->result->status, ==, EB_CHECK_FAIL);
    g_assert_nonnull(strstr(find(report, "x-acme-hang")->result->observed, "acme"));
    g_assert_cmpstr(find(report, "E-17")->result->observed, ==, "state_dir /srv/errand");
    g_assert_cmpstr(find(report, "E-100")->result->observed, ==, "stopped half way");
    g_assert_cmpint(find(report, "E-20")->result->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpuint(report->ok, ==, 1);
    g_assert_cmpuint(report->degraded, ==, 1);
    g_assert_cmpuint(report->fail, ==, 1);
    g_assert_cmpuint(report->skipped, ==, 2);
    g_assert_cmpint(eb_doctor_exit_code(report, FALSE), ==, 1);

    /* Let it end: its late result must go nowhere. */
    g_mutex_lock(&hang_lock);
    hang_over = TRUE;
    g_cond_broadcast(&hang_changed);
    while (hanging > 0)
        g_cond_wait(&hang_changed, &hang_lock);
    g_mutex_unlock(&hang_lock);
    g_assert_cmpint(find(report, "x-acme-hang")->result->status, ==, EB_CHECK_FAIL);
}

/* By number, ours before others'. */
static void
test_order(void)
{
    static const char *const ORDER[] = {"E-05", "E-17", "E-20", "E-100", "x-acme-hang"};
    g_autoptr(GPtrArray) list = make_checks(TRUE);
    g_autoptr(EbHost) host = make_host();
    g_autoptr(EbDoctorReport) report = eb_doctor_run(list, host, NULL, NULL, NULL, NULL, NULL);

    for (guint i = 0; i < G_N_ELEMENTS(ORDER); i++)
        g_assert_cmpstr(((EbDoctorRow *)report->rows->pdata[i])->info->id, ==, ORDER[i]);
}

static void
count_done(const EbCheckInfo *info, const EbCheckResult *result, guint ms, gpointer user_data)
{
    g_assert_cmpstr(info->id, ==, "E-05");
    g_assert_cmpint(result->status, ==, EB_CHECK_DEGRADED);
    ++*(guint *)user_data;
}

static void
test_ids(void)
{
    static const char *const ONE[] = {"E-05", "x-of-another-plugin", NULL};
    guint done = 0;
    g_autoptr(GPtrArray) list = make_checks(FALSE);
    g_autoptr(EbHost) host = make_host();
    g_autoptr(GError) error = NULL;
    g_autoptr(EbDoctorReport) report = eb_doctor_run(list, host, NULL, ONE, count_done, &done, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(report->rows->len, ==, 1);
    g_assert_cmpint(eb_doctor_exit_code(report, FALSE), ==, 0);
    g_assert_cmpint(eb_doctor_exit_code(report, TRUE), ==, 3);
    g_assert_cmpuint(done, ==, 1);
}

static void
test_output(void)
{
    static const char *const ONE[] = {"E-05", NULL};
    g_autoptr(GPtrArray) list = make_checks(FALSE);
    g_autoptr(EbHost) host = make_host();
    g_autoptr(EbDoctorReport) report = eb_doctor_run(list, host, NULL, ONE, NULL, NULL, NULL);
    g_autofree char *plain = eb_doctor_report_to_text(report, FALSE, FALSE);
    g_autofree char *color = eb_doctor_report_to_text(report, TRUE, FALSE);
    g_autoptr(JsonNode) node = eb_doctor_report_to_json(report);
    JsonObject *row;

    /* What a check saw may come from anywhere: no escape of it reaches a terminal. */
    g_assert_null(strchr(plain, '\033'));
    g_assert_null(strstr(color, "\033[31mred"));
    g_assert_nonnull(strstr(plain, "more precise"));
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(node), "schema", 0), ==, 1);
    row = eb_json_array_object(eb_json_get_array(eb_json_node_object(node), "checks"), 0);
    g_assert_cmpstr(eb_json_get_string(row, "id"), ==, "E-05");
    g_assert_cmpstr(eb_json_get_string(row, "status"), ==, "degraded");
    g_assert_cmpstr(eb_json_get_string(row, "remedy"), ==, "more precise");
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(eb_json_node_object(node), "summary"), "degraded", 0), ==, 1);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/doctor/hang", test_hang);
    g_test_add_func("/doctor/order", test_order);
    g_test_add_func("/doctor/ids", test_ids);
    g_test_add_func("/doctor/output", test_output);
    return g_test_run();
}
