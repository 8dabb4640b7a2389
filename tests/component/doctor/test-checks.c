/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/cli/eb-cli-args.h"
#include "core/doctor/eb-doctor-catalogue.h"
#include "core/doctor/eb-doctor.h"
#include "discord-checks.h"
#include "doctor-checks.h"
#include "tests/lib/eb-test.h"

/* Every check of the catalogue against two hosts: one that makes it speak up, one that does not. */

static GPtrArray *checks;

/* The channel that the fixtures of Discord's checks know. */
#define FIXTURE_CHANNEL "100000000000000010"

/* ".eb/settings" of a fixture: KEY=VALUE lines; [a,b] is a list. */
static EbConfigSection *
read_settings(const char *tree)
{
    EbConfigSection *settings = eb_config_section_new("doctor");
    g_autofree char *path = g_build_filename(tree, ".eb/settings", NULL);
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return settings;
    lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) pair = g_strsplit(lines[i], "=", 2);
        if (g_strv_length(pair) != 2)
            continue;
        if (pair[1][0] == '[') {
            g_auto(GStrv) items = NULL;
            pair[1][strlen(pair[1]) - 1] = '\0';
            items = g_strsplit(pair[1] + 1, ",", -1);
            eb_config_section_set(settings, pair[0], g_variant_new_strv((const char *const *)items, -1), path, i + 1);
        } else {
            eb_config_section_set(settings, pair[0], g_variant_new_string(pair[1]), path, i + 1);
        }
    }
    return settings;
}

static EbCheckResult *
run_on(EbDoctorCheck *check, const char *side)
{
    const EbCheckInfo *info = eb_doctor_check_get_info(check);
    g_autofree char *tree = g_build_filename(g_getenv("EB_FIXTURES"), "doctor", info->id, side, NULL);
    g_autoptr(EbHost) host = NULL;
    g_autoptr(EbConfigSection) settings = NULL;

    if (!g_file_test(tree, G_FILE_TEST_IS_DIR))
        g_error("%s has no fixture %s", info->id, tree);
    host = eb_host_new_fixture(tree);
    settings = read_settings(tree);
    return eb_doctor_check_run(check, host, settings, NULL);
}

/* (transfer full): trees of @info whose names begin with @side: "fire", and further ways to make it speak: "fire-x". */
static GPtrArray *
list_sides(const EbCheckInfo *info, const char *side)
{
    g_autofree char *path = g_build_filename(g_getenv("EB_FIXTURES"), "doctor", info->id, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    GPtrArray *sides = g_ptr_array_new_with_free_func(g_free);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        if (g_str_has_prefix(name, side))
            g_ptr_array_add(sides, g_strdup(name));
    if (sides->len == 0)
        g_error("%s has no fixture %s", info->id, side);
    return sides;
}

static void
assert_remedy(const char *id, const char *remedy)
{
    g_auto(GStrv) parts = g_strsplit(remedy, "`", -1);

    g_assert_cmpuint(g_strv_length(parts) % 2, ==, 1);
    for (guint j = 0; parts[j] != NULL; j++) {
        g_autoptr(GError) error = NULL;
        if (j % 2 == 0) {
            if (strstr(parts[j], "errand-box ") != NULL && strstr(parts[j], "install errand-box ") == NULL)
                g_error("%s: a command outside of ``: %s", id, parts[j]);
        } else if (!eb_cli_check_line(parts[j], &error)) {
            g_error("%s: %s: %s", id, parts[j], error->message);
        }
    }
    if (strstr(remedy, "errand-box doctor") != NULL)
        g_error("%s: the remedy leads back to where its reader comes from: %s", id, remedy);
}

static void
test_fixtures(gconstpointer data)
{
    EbDoctorCheck *check = EB_DOCTOR_CHECK((gpointer)data);
    const EbCheckInfo *info = eb_doctor_check_get_info(check);
    g_autoptr(GPtrArray) fires = list_sides(info, "fire");
    g_autoptr(GPtrArray) clears = list_sides(info, "clear");

    for (guint i = 0; i < fires->len; i++) {
        g_autoptr(EbCheckResult) fire = run_on(check, fires->pdata[i]);
        if (fire->status != EB_CHECK_FAIL && fire->status != EB_CHECK_DEGRADED)
            g_error("%s: %s: %s", (char *)fires->pdata[i], eb_check_status_to_string(fire->status), fire->observed);
        g_assert_cmpstr(fire->observed, !=, "");
        /* An operator who is to accept a gap must read what it costs. */
        if (fire->status == EB_CHECK_DEGRADED && strstr(fire->observed, "Cost: ") == NULL)
            g_error("%s: degraded without a cost: %s", (char *)fires->pdata[i], fire->observed);
        if (fire->remedy != NULL)
            assert_remedy(info->id, fire->remedy);
    }
    for (guint i = 0; i < clears->len; i++) {
        g_autoptr(EbCheckResult) clear = run_on(check, clears->pdata[i]);
        if (clear->status != EB_CHECK_OK)
            g_error("%s: %s: %s", (char *)clears->pdata[i], eb_check_status_to_string(clear->status), clear->observed);
    }
}

/* Nothing of the host is there: no check may claim that all is well, crash, or take the fixture for the real host. */
static void
test_empty_host(void)
{
    g_autofree char *tree = eb_test_temp_dir("empty-host");
    g_autoptr(EbHost) host = eb_host_new_fixture(tree);
    g_autoptr(EbConfigSection) settings = eb_config_section_new("doctor");
    static const char *const FINE[] = {"E-29", "E-31", "E-49", "E-77",
                                       "E-80", "E-81", NULL}; /* nothing there is what they want */

    for (guint i = 0; i < checks->len; i++) {
        EbDoctorCheck *check = checks->pdata[i];
        g_autoptr(EbCheckResult) result = eb_doctor_check_run(check, host, settings, NULL);
        const char *id = eb_doctor_check_get_info(check)->id;
        if (result->status == EB_CHECK_OK && !g_strv_contains(FINE, id))
            g_error("%s is content with nothing: %s", id, result->observed);
    }
}

/* Every command that a remedy names is one that the program takes, and leads on. */
static void
test_remedies(void)
{
    for (guint i = 0; i < checks->len; i++) {
        const EbCheckInfo *info = eb_doctor_check_get_info(checks->pdata[i]);
        assert_remedy(info->id, info->remedy);
    }
    for (const EbDoctorEntry *entry = eb_doctor_entries(); entry->id != NULL; entry++)
        assert_remedy(entry->id, entry->remedy);
}

static void
test_declared(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    g_assert_cmpuint(checks->len, >=, 75);
    for (guint i = 0; i < checks->len; i++) {
        const EbCheckInfo *info = eb_doctor_check_get_info(checks->pdata[i]);
        g_assert_true(g_hash_table_add(seen, (gpointer)info->id));
        g_assert_nonnull(info->reads[0]);
        g_assert_cmpstr(info->title, !=, "");
        g_assert_cmpstr(info->expected, !=, "");
        g_assert_cmpstr(info->remedy, !=, "");
    }
}

int
main(int argc, char **argv)
{
    int result;

    eb_test_init(&argc, &argv);
    checks = dc_list();
    g_ptr_array_extend_and_steal(checks, discord_checks_list("chat-token", FIXTURE_CHANNEL));
    for (guint i = 0; i < checks->len; i++) {
        g_autofree char *path =
            g_strdup_printf("/doctor-checks/fixture/%s", eb_doctor_check_get_info(checks->pdata[i])->id);
        g_test_add_data_func(path, checks->pdata[i], test_fixtures);
    }
    g_test_add_func("/doctor-checks/empty-host", test_empty_host);
    g_test_add_func("/doctor-checks/remedies", test_remedies);
    g_test_add_func("/doctor-checks/declared", test_declared);
    result = g_test_run();
    g_ptr_array_unref(checks);
    return result;
}
