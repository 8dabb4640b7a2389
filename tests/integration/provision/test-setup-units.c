/* SPDX-License-Identifier: MIT */
/* The steps "units" and "start" under a real s6, and taking both back; the rest of setup is not needed for them. */
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-units.h"
#include "tests/lib/eb-test.h"

typedef struct {
    char *dir;
    char *scan;
    char *config_file;
    EbConfig *config;
    EbPaths *paths;
    GSubprocess *svscan;
} Fixture;

static gboolean
is_scanned(const char *scan_dir)
{
    g_autoptr(EbSupervisor) found = eb_supervisor_find(scan_dir, NULL);

    return found != NULL;
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    g_autofree char *incus = NULL;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;

    fixture->dir = eb_test_temp_dir("units");
    g_chmod(fixture->dir, 0755);
    fixture->scan = g_build_filename(fixture->dir, "scan", NULL);
    fixture->config_file = g_build_filename(fixture->dir, "a box.toml", NULL);
    incus = g_build_filename(fixture->dir, "i", NULL);
    g_setenv("INCUS_DIR", incus, TRUE);
    g_setenv(EB_SUPERVISOR_S6_VARIABLE, fixture->scan, TRUE);
    g_mkdir(fixture->scan, 0755);
    text = g_strdup_printf("[service]\naccount = \"daemon\"\nstate_dir = \"%s/s\"\nproject_root = \"%s/p\"\n",
                           fixture->dir, fixture->dir);
    eb_test_write_file(fixture->config_file, text);
    fixture->paths = eb_paths_new(&error);
    g_assert_no_error(error);
    fixture->config = eb_config_load(fixture->config_file, eb_paths_get_data_dir(fixture->paths), &error);
    g_assert_no_error(error);
    fixture->svscan = g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_SILENCE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, &error,
                                       "s6-svscan", fixture->scan, NULL);
    g_assert_no_error(error);
    for (guint tries = 0; !is_scanned(fixture->scan); tries++) {
        g_assert_cmpuint(tries, <, EB_TEST_DEADLINE_MS / 20);
        g_usleep(20 * 1000);
    }
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_subprocess_send_signal(fixture->svscan, SIGTERM);
    g_subprocess_wait(fixture->svscan, NULL, NULL);
    g_object_unref(fixture->svscan);
    g_object_unref(fixture->config);
    g_object_unref(fixture->paths);
    g_free(fixture->dir);
    g_free(fixture->scan);
    g_free(fixture->config_file);
}

static EbSetup *
begin(Fixture *fixture, const char *config_file, gboolean plan)
{
    EbSetupOptions options = {
        .config = fixture->config, .paths = fixture->paths, .config_file = config_file, .plan = plan};
    EbSetup *setup = eb_setup_new(&options);
    g_autoptr(GError) error = NULL;

    eb_setup_begin(setup, &error);
    g_assert_no_error(error);
    return setup;
}

/* What a look at @step finds to change. */
static guint
look(EbSetup *setup, const EbSetupStep *step, EbFindings *findings)
{
    g_autoptr(GError) error = NULL;

    eb_findings_reset(findings);
    g_assert_true(step->check(setup, findings, &error));
    g_assert_no_error(error);
    return findings->changes->len;
}

static void
apply(EbSetup *setup, const EbSetupStep *step)
{
    g_autoptr(GError) error = NULL;
    EbFindings findings = {0};

    g_assert_cmpuint(look(setup, step, &findings), >, 0);
    g_assert_true(step->apply(setup, &findings, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(look(setup, step, &findings), ==, 0);
    g_ptr_array_unref(findings.changes);
    g_ptr_array_unref(findings.notes);
}

static void
take_back(EbSetup *setup, const EbSetupStep *step)
{
    g_autoptr(GPtrArray) entries = eb_setup_ledger_list(setup->ledger, step->id);
    EbFindings findings = {0};

    g_assert_cmpuint(entries->len, >, 0);
    eb_findings_reset(&findings);
    for (guint i = 0; i < entries->len; i++) {
        g_autoptr(GError) error = NULL;
        EbUndone undone = step->undo(setup, entries->pdata[i], &findings, &error);
        g_assert_no_error(error);
        if (undone != EB_UNDO_DONE)
            g_test_message("%s", (const char *)findings.notes->pdata[findings.notes->len - 1]);
        g_assert_cmpint(undone, ==, EB_UNDO_DONE);
    }
    g_ptr_array_unref(findings.changes);
    g_ptr_array_unref(findings.notes);
}

static char *
list_tree(Fixture *fixture)
{
    /* Not what s6-svscan keeps for itself, nor the ledger. */
    const char *argv[] = {"find", fixture->dir, "-not", "-path", "*/.s6-svscan*", "-not", "-path", "*/i-setup*", NULL};
    char *text = NULL;

    g_assert_true(eb_run(argv, 30000, &text, NULL));
    return text;
}

static void
test_whole(Fixture *fixture, gconstpointer data)
{
    g_autofree char *before = list_tree(fixture);
    g_autoptr(EbSetup) setup = begin(fixture, fixture->config_file, FALSE);
    g_autoptr(EbSetup) plan = begin(fixture, fixture->config_file, TRUE);
    g_autoptr(EbSetup) other = begin(fixture, "/etc/other.toml", FALSE);
    g_autoptr(EbSupervisor) supervisor = eb_supervisor_find(fixture->scan, NULL);
    g_auto(EbUnitStatus) status = {0};
    g_autoptr(GError) error = NULL;
    EbFindings findings = {0};

    apply(setup, &eb_setup_step_units);
    apply(setup, &eb_setup_step_start);
    /* Nothing else of setup was done, so the service refuses: setup says so, and s6 leaves it down. */
    g_assert_nonnull(strstr(setup->start_problem, "errand-box setup"));
    g_assert_true(eb_supervisor_query(supervisor, EB_SETUP_UNIT_SERVICE, &status, &error));
    g_assert_cmpint(status.state, ==, EB_UNIT_FAILED);
    g_assert_cmpint(status.exit_code, ==, 2);
    g_assert_cmpstr(status.config, ==, fixture->config_file);

    /* Another configuration does not take the service over. */
    eb_findings_reset(&findings);
    g_assert_false(eb_setup_step_units.check(other, &findings, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "provision.unit", fixture->config_file);
    g_ptr_array_unref(findings.changes);
    g_ptr_array_unref(findings.notes);

    /* A plan says what it would take back, and takes nothing. */
    g_autofree char *made = list_tree(fixture);
    eb_setup_ledger_free(plan->ledger);
    plan->ledger = eb_setup_ledger_load(plan->ledger_dir, NULL);
    take_back(plan, &eb_setup_step_start);
    take_back(plan, &eb_setup_step_units);
    g_autofree char *kept = list_tree(fixture);
    g_assert_cmpstr(made, ==, kept);

    take_back(setup, &eb_setup_step_start);
    take_back(setup, &eb_setup_step_units);
    g_autofree char *after = list_tree(fixture);
    g_assert_cmpstr(before, ==, after);
}

/* What others put in the place of the link is left alone. */
static void
test_in_the_way(Fixture *fixture, gconstpointer data)
{
    g_autofree char *place = g_build_filename(fixture->scan, EB_SETUP_UNIT_SERVICE, NULL);
    g_autoptr(EbSetup) setup = begin(fixture, fixture->config_file, FALSE);
    g_autoptr(GError) error = NULL;
    EbFindings findings = {0};

    g_assert_cmpint(symlink("/nonexistent", place), ==, 0);
    eb_findings_reset(&findings);
    g_assert_false(eb_setup_step_start.check(setup, &findings, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "provision.unit", "is in the way");
    g_ptr_array_unref(findings.changes);
    g_ptr_array_unref(findings.notes);
}

int
main(int argc, char **argv)
{
    g_autofree char *svscan = eb_run_find("s6-svscan");

    eb_test_init(&argc, &argv);
    if (geteuid() != 0 || svscan == NULL) {
        g_print("1..0 # SKIP needs root and s6\n");
        return 0;
    }
    g_test_add("/setup-units/whole", Fixture, NULL, set_up, test_whole, tear_down);
    g_test_add("/setup-units/in-the-way", Fixture, NULL, set_up, test_in_the_way, tear_down);
    return g_test_run();
}
