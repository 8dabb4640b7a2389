/* SPDX-License-Identifier: MIT */
/* What the doctor's reports mean for the service, and how much room is enough. */
#include "core/daemon/eb-daemon-health-rules.h"
#include "core/daemon/eb-daemon-space.h"
#include "eb-test.h"

#include <string.h>

#define NOW G_GINT64_CONSTANT(1700000000000)
#define MIB ((guint64)1024 * 1024)

/* Takes rows "{...},{...}" as a whole report, or a part of one. */
static gboolean
take(EbHealthRules *rules, const char *rows, gboolean whole, GError **error)
{
    g_autofree char *text = g_strdup_printf("{\"schema\":1,\"checks\":[%s]}", rows);
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);

    g_assert_nonnull(node);
    return eb_health_rules_take(rules, node, whole, NOW, error);
}

/* (transfer full): one row; @extra: further members, each after a comma */
static char *
row(const char *id, const char *status, const char *extra)
{
    return g_strdup_printf(
        "{\"id\":\"%s\",\"title\":\"title of %s\",\"status\":\"%s\",\"observed\":\"seen by %s. Cost: "
        "something\",\"remedy\":\"mend %s\"%s}",
        id, id, status, id, id, extra);
}

static void
take_one(EbHealthRules *rules, const char *id, const char *status, const char *extra)
{
    g_autofree char *text = row(id, status, extra);
    g_assert_true(take(rules, text, FALSE, NULL));
}

/* As the service asks: what is suspect comes once more. */
static void
take_sure(EbHealthRules *rules, const char *id, const char *status, const char *extra)
{
    take_one(rules, id, status, extra);
    take_one(rules, id, status, extra);
}

static void
assert_holds(EbHealthRules *rules, EbErrorCode code, const char *text)
{
    g_autoptr(GError) why = eb_health_rules_hold(rules);
    eb_test_assert_error(why, code, NULL, text);
}

static void
assert_free(EbHealthRules *rules)
{
    g_autoptr(GError) why = eb_health_rules_hold(rules);
    g_assert_no_error(why);
}

static void
test_gate(void)
{
    const char *const accepted[] = {"E-05", NULL};
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(accepted);
    g_autoptr(EbProbeReport) probe = eb_probe_report_new("x 1", "socket");
    g_autofree char *first = row("E-05", "degraded", ""), *second = row("E-17", "degraded", ""),
                    *third = row("E-66", "degraded", ""), *fine = row("E-01", "ok", ""),
                    *failed = row("E-11", "fail", ""), *low = row("E-39", "degraded", ",\"hold\":\"fail\"");
    g_autofree char *all = g_strjoin(",", fine, first, failed, second, low, third, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_true(take(rules, all, TRUE, &error));
    eb_probe_report_add(probe, "memory-limit", TRUE, "E-90", NULL);
    eb_probe_report_add(probe, "apparmor", FALSE, "E-17", "no AppArmor");
    eb_probe_report_add(probe, "disk-quota", FALSE, "E-05", "dir");
    eb_probe_report_add(probe, "odd", FALSE, NULL, NULL);
    g_assert_false(eb_health_rules_gate(rules, probe, "/etc/x.toml", &error));
    eb_test_assert_error(
        error, EB_ERROR_DEGRADED, "health.degraded",
        "E-17 title of E-17 (seen by E-17); E-66 title of E-66 (seen by E-66); odd odd (not enforced)");
    /* Whole, in one line, and once each. */
    g_assert_nonnull(strstr(error->message, "[service] of /etc/x.toml: accept_degraded = "
                                            "[\"E-05\", \"E-17\", \"E-66\", \"odd\"]"));
    g_assert_null(strchr(error->message, '\n'));
    g_assert_null(strstr(error->message, "E-39"));
    /* With them accepted, what fails holds, but does not refuse. */
    const char *const more[] = {"E-05", "E-17", "E-66", "odd", NULL};
    g_autoptr(EbHealthRules) other = eb_health_rules_new(more);
    g_assert_true(take(other, all, TRUE, NULL));
    g_assert_true(eb_health_rules_gate(other, probe, "/etc/x.toml", NULL));
    assert_holds(other, EB_ERROR_UNAVAILABLE, "E-11 title of E-11: seen by E-11 (to do: mend E-11)");
}

static void
test_hold_and_clear(void)
{
    const char *const accepted[] = {"E-17", NULL};
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(accepted);

    take_one(rules, "E-17", "degraded", "");
    take_one(rules, "E-33", "ok", "");
    assert_free(rules);
    take_sure(rules, "E-33", "degraded", "");
    assert_holds(rules, EB_ERROR_DEGRADED, "E-33 title of E-33: seen by E-33 (to do: mend E-33)");
    /* An accepted id is accepted as degraded, not as failing. */
    take_sure(rules, "E-17", "fail", "");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-17 title of E-17: seen by E-17 (to do: mend E-17); E-33");
    take_one(rules, "E-33", "ok", "");
    take_one(rules, "E-17", "degraded", "");
    assert_free(rules);
    /* What others are asked for is not forgotten; what a whole report does not name is. */
    take_sure(rules, "E-33", "fail", "");
    take_one(rules, "E-01", "ok", "");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-33");
    g_autofree char *fine = row("E-01", "ok", "");
    g_assert_true(take(rules, fine, TRUE, NULL));
    assert_free(rules);
    /* "never": somebody else watches it. */
    take_one(rules, "E-40", "fail", ",\"hold\":\"never\"");
    assert_free(rules);
}

static void
test_running_low(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);
    g_autofree char *first = NULL, *second = NULL, *third = NULL;

    /* So it was when the service started. */
    take_one(rules, "E-57", "degraded", ",\"hold\":\"fail\"");
    g_assert_null(eb_health_rules_warn(rules));
    take_one(rules, "E-39", "ok", ",\"hold\":\"fail\"");
    g_assert_null(eb_health_rules_warn(rules));
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    first = eb_health_rules_warn(rules);
    g_assert_cmpstr(first, ==, "E-39 title of E-39: seen by E-39");
    assert_free(rules);
    /* Told once; then it holds; then it must be good twice. */
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    second = eb_health_rules_warn(rules);
    g_assert_null(second);
    take_sure(rules, "E-39", "fail", ",\"hold\":\"fail\"");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-39");
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-39");
    take_sure(rules, "E-39", "fail", ",\"hold\":\"fail\"");
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-39");
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    assert_free(rules);
    take_one(rules, "E-39", "ok", ",\"hold\":\"fail\"");
    take_one(rules, "E-39", "degraded", ",\"hold\":\"fail\"");
    third = eb_health_rules_warn(rules);
    g_assert_nonnull(third);
}

/* A check that is good the next time held nothing. */
static void
test_suspects(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);

    take_one(rules, "E-33", "ok", "");
    take_one(rules, "E-22", "skipped", "");
    take_one(rules, "E-33", "fail", "");
    take_one(rules, "E-22", "degraded", "");
    take_one(rules, "E-40", "fail", ",\"hold\":\"never\"");
    assert_free(rules);
    g_auto(GStrv) ids = eb_health_rules_suspects(rules);
    g_autofree char *text = g_strjoinv(" ", ids);
    g_assert_cmpstr(text, ==, "E-33 E-22");
    take_one(rules, "E-33", "ok", "");
    take_one(rules, "E-22", "degraded", "");
    assert_holds(rules, EB_ERROR_DEGRADED, "E-22");
    g_auto(GStrv) none = eb_health_rules_suspects(rules);
    g_assert_null(none[0]);
    take_one(rules, "E-33", "fail", "");
    g_autoptr(GError) why = eb_health_rules_hold(rules);
    g_assert_null(strstr(why->message, "E-33"));
}

static void
test_watched(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);

    take_one(rules, "E-01", "ok", "");
    take_one(rules, "E-11", "ok", ",\"watch\":true");
    take_one(rules, "x-acme-disk", "fail", "");
    g_auto(GStrv) ids = eb_health_rules_watched(rules);
    g_autofree char *text = g_strjoinv(" ", ids);
    g_assert_cmpstr(text, ==, "E-11 x-acme-disk");
}

static void
test_many_are_counted(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);

    for (guint i = 10; i < 20; i++) {
        g_autofree char *id = g_strdup_printf("E-%u", i);
        take_one(rules, id, "degraded", "");
    }
    assert_holds(rules, EB_ERROR_DEGRADED, "; and 7 more (errand-box doctor)");
}

static void
test_doctor_failed(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);
    g_autoptr(GError) hangs = eb_error_new(EB_ERROR_TIMEOUT, "doctor.hangs", "the doctor\ndid not come back");

    /* Not known is not good enough to begin with, and no reason to change one's mind later. */
    g_assert_true(eb_health_rules_note_failure(rules, hangs));
    g_assert_false(eb_health_rules_note_failure(rules, hangs));
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "the doctor does not work: the doctor\\x0adid not come back");
    g_assert_true(eb_health_rules_gate(rules, NULL, "/etc/x.toml", NULL));
    take_one(rules, "E-01", "ok", "");
    g_assert_true(eb_health_rules_note_failure(rules, NULL));
    assert_free(rules);
    g_assert_true(eb_health_rules_note_failure(rules, hangs));
    assert_free(rules);
    take_one(rules, "E-33", "fail", "");
    assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-33");
    g_assert_nonnull(eb_health_rules_get_failure(rules));
}

static void
test_rubbish(void)
{
    static const char *const reports[] = {
        "null",
        "[]",
        "{}",
        "{\"schema\":2,\"checks\":[]}",
        "{\"schema\":1}",
        "{\"schema\":1,\"checks\":{}}",
        "{\"schema\":1,\"checks\":[1]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"E-01\"}]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"E-01\",\"status\":\"well\"}]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"\",\"status\":\"ok\"}]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"-x\",\"status\":\"ok\"}]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"E 1\",\"status\":\"ok\"}]}",
        "{\"schema\":1,\"checks\":[{\"id\":\"E-01\",\"status\":\"ok\"},{\"id\":5,\"status\":\"ok\"}]}",
    };
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);

    take_one(rules, "E-33", "fail", "");
    for (gsize i = 0; i < G_N_ELEMENTS(reports); i++) {
        g_autoptr(JsonNode) node = eb_json_parse(reports[i], strlen(reports[i]), NULL, NULL);
        g_autoptr(GError) error = NULL;
        g_assert_false(eb_health_rules_take(rules, node, TRUE, NOW, &error));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, "health.report", NULL);
        /* Nothing was taken, nothing forgotten. */
        assert_holds(rules, EB_ERROR_UNAVAILABLE, "E-33");
    }
}

static void
test_bounds(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);
    g_autoptr(GString) rows = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < EB_HEALTH_MAX_CHECKS; i++)
        g_string_append_printf(rows, "%s{\"id\":\"E-%u\",\"status\":\"ok\"}", i > 0 ? "," : "", i);
    g_assert_true(take(rules, rows->str, FALSE, NULL));
    /* The table is full, in one report or by and by. */
    g_assert_false(take(rules, "{\"id\":\"F-1\",\"status\":\"fail\"}", FALSE, &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "health.report", NULL);
    g_clear_error(&error);
    g_string_append(rows, ",{\"id\":\"F-1\",\"status\":\"fail\"}");
    g_assert_false(take(rules, rows->str, TRUE, &error));
    eb_test_assert_error(error, EB_ERROR_PROTOCOL, "health.report", NULL);
    assert_free(rules);
    /* Long texts, and such as would break a line. */
    g_autofree char *endless = g_strnfill(20000, 'y');
    g_autofree char *loud = g_strdup_printf(
        "{\"id\":\"E-1\",\"status\":\"fail\",\"title\":\"%s\",\"observed\":\"a\\nb\\u001b[2J%s\",\"remedy\":\"%s\"}",
        endless, endless, endless);
    g_assert_true(take(rules, loud, FALSE, NULL));
    g_assert_true(take(rules, loud, FALSE, NULL));
    g_autoptr(GError) why = eb_health_rules_hold(rules);
    g_assert_cmpuint(strlen(why->message), <, 2 * EB_HEALTH_MAX_TEXT + 200);
    g_assert_null(strpbrk(why->message, "\n\033"));
}

static void
test_json(void)
{
    g_autoptr(EbHealthRules) rules = eb_health_rules_new(NULL);

    take_one(rules, "E-01", "ok", "");
    take_one(rules, "E-02", "skipped", "");
    take_one(rules, "E-33", "degraded", "");
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_ARRAY);
    json_node_take_array(node, eb_health_rules_to_json(rules));
    g_autofree char *text = eb_json_write(node, NULL);
    g_assert_cmpstr(text, ==,
                    "[{\"id\":\"E-33\",\"title\":\"title of E-33\",\"status\":\"degraded\",\"observed\":\"seen by "
                    "E-33\",\"remedy\":\"mend E-33\",\"accepted\":false,\"holds\":true,\"since\":\"2023-11-14T22:13:"
                    "20Z\"}]");
}

/* --- space --- */

static void
test_space_levels(void)
{
    static const struct {
        EbSpaceLevel before;
        guint64 free; /* MiB, of 1000 that are needed */
        EbSpaceLevel wanted;
    } cases[] = {
        {EB_SPACE_FINE, 5000, EB_SPACE_FINE}, {EB_SPACE_FINE, 2000, EB_SPACE_FINE},
        {EB_SPACE_FINE, 1999, EB_SPACE_LOW},  {EB_SPACE_FINE, 1000, EB_SPACE_LOW},
        {EB_SPACE_FINE, 999, EB_SPACE_FULL},  {EB_SPACE_FINE, 0, EB_SPACE_FULL},
        {EB_SPACE_LOW, 2000, EB_SPACE_LOW},   {EB_SPACE_LOW, 2499, EB_SPACE_LOW},
        {EB_SPACE_LOW, 2500, EB_SPACE_FINE},  {EB_SPACE_LOW, 1000, EB_SPACE_LOW},
        {EB_SPACE_LOW, 999, EB_SPACE_FULL},   {EB_SPACE_FULL, 1000, EB_SPACE_FULL},
        {EB_SPACE_FULL, 1249, EB_SPACE_FULL}, {EB_SPACE_FULL, 1250, EB_SPACE_LOW},
        {EB_SPACE_FULL, 2499, EB_SPACE_LOW},  {EB_SPACE_FULL, 2500, EB_SPACE_FINE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(eb_space_judge(cases[i].before, cases[i].free * MIB, 1000 * MIB), ==, cases[i].wanted);
    /* So much has to go, and then it is fine again. */
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        EbSpace space = {.free = cases[i].free * MIB, .level = cases[i].wanted};
        guint64 relief = eb_space_relief(&space, 1000 * MIB);
        g_assert_cmpint(relief == 0, ==, space.level == EB_SPACE_FINE);
        g_assert_cmpint(eb_space_judge(space.level, space.free + relief, 1000 * MIB), ==, EB_SPACE_FINE);
    }
    g_assert_cmpint(eb_space_judge(EB_SPACE_FULL, G_MAXUINT64, G_MAXUINT64 / 2), ==, EB_SPACE_LOW);
}

/* Whatever comes, a little to and fro around a bound changes the level once at most. */
static void
test_space_is_steady(void)
{
    for (guint run = 0; run < 200; run++) {
        guint64 around = (guint64)g_test_rand_int_range(100, 3000), changes = 0;
        EbSpaceLevel level = eb_space_judge(EB_SPACE_FINE, around * MIB, 1000 * MIB);
        for (guint i = 0; i < 100; i++) {
            EbSpaceLevel next =
                eb_space_judge(level, (around + (guint64)g_test_rand_int_range(0, 100)) * MIB, 1000 * MIB);
            changes += next != level;
            level = next;
        }
        g_assert_cmpuint(changes, <=, 1);
    }
}

static void
test_space_words(void)
{
    char path[] = "/var/lib/errand-box";
    EbSpace space = {.path = path, .free = 200 * MIB, .total = 20480 * MIB};
    g_autofree char *text = eb_space_describe(&space, 1024 * MIB);

    g_assert_cmpstr(text, ==, "200 MiB of 20.0 GiB are free below /var/lib/errand-box, new sessions need 1.0 GiB");
}

/* Inodes run out as well, and say so. */
static void
test_space_inodes(void)
{
    static const struct {
        guint64 free, files;
        EbSpaceLevel before, wanted;
    } CASES[] = {
        {0, 0, EB_SPACE_FINE, EB_SPACE_FINE}, /* btrfs */
        {9999, 1000000, EB_SPACE_FINE, EB_SPACE_FULL},  {10000, 1000000, EB_SPACE_FINE, EB_SPACE_LOW},
        {20000, 1000000, EB_SPACE_FINE, EB_SPACE_FINE}, {20000, 1000000, EB_SPACE_LOW, EB_SPACE_LOW},
        {999, 20000, EB_SPACE_FINE, EB_SPACE_FULL},     {2000, 20000, EB_SPACE_FINE, EB_SPACE_FINE},
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        EbSpace space = {.free = 9000 * MIB, .files_free = CASES[i].free, .files = CASES[i].files};
        eb_space_judge_all(&space, CASES[i].before, 1000 * MIB);
        g_assert_cmpint(space.level, ==, CASES[i].wanted);
        g_assert_cmpint(space.files_short, ==, CASES[i].wanted != EB_SPACE_FINE);
        g_assert_cmpuint(eb_space_relief(&space, 1000 * MIB), ==, CASES[i].wanted != EB_SPACE_FINE ? 1 : 0);
    }
    char path[] = "/srv";
    EbSpace space = {.path = path, .files_free = 12, .files = 20000, .files_short = TRUE};
    g_autofree char *text = eb_space_describe(&space, 1000 * MIB);
    g_assert_cmpstr(text, ==, "12 of 20000 inodes are free below /srv, new sessions need 1000");
}

typedef struct {
    GPtrArray *spaces;
    GError *error;
    gboolean done;
} Reading;

static void
on_read(GObject *source, GAsyncResult *result, gpointer data)
{
    Reading *reading = data;
    reading->spaces = eb_space_read_finish(result, &reading->error);
    reading->done = TRUE;
}

static void
test_space_read(void)
{
    g_autoptr(EbWorker) worker = eb_worker_new("test-space", 0);
    g_autofree char *dir = eb_test_temp_dir("space");
    const char *paths[] = {dir, dir, "/nonexistent/place", "/proc", NULL};
    Reading reading = {0};

    eb_space_read_async(worker, paths, on_read, &reading);
    eb_test_run_until_true(&reading.done);
    g_assert_no_error(reading.error);
    /* Each file system once; what is not there is left out. */
    g_assert_cmpuint(reading.spaces->len, ==, 2);
    const EbSpace *first = reading.spaces->pdata[0];
    g_assert_cmpstr(first->path, ==, dir);
    g_assert_cmpuint(first->free, >, 0);
    g_assert_cmpuint(first->free, <=, first->total);
    g_ptr_array_unref(reading.spaces);

    const char *odd[] = {"/proc/self/status/x", NULL};
    Reading failed = {0};
    eb_space_read_async(worker, odd, on_read, &failed);
    eb_test_run_until_true(&failed.done);
    eb_test_assert_error(failed.error, EB_ERROR_FAILED, "space.read", "/proc/self/status/x");
    g_clear_error(&failed.error);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/health/gate", test_gate);
    g_test_add_func("/health/hold-and-clear", test_hold_and_clear);
    g_test_add_func("/health/running-low", test_running_low);
    g_test_add_func("/health/suspects", test_suspects);
    g_test_add_func("/health/watched", test_watched);
    g_test_add_func("/health/many-are-counted", test_many_are_counted);
    g_test_add_func("/health/doctor-failed", test_doctor_failed);
    g_test_add_func("/health/rubbish", test_rubbish);
    g_test_add_func("/health/bounds", test_bounds);
    g_test_add_func("/health/json", test_json);
    g_test_add_func("/space/levels", test_space_levels);
    g_test_add_func("/space/steady", test_space_is_steady);
    g_test_add_func("/space/words", test_space_words);
    g_test_add_func("/space/space-inodes", test_space_inodes);
    g_test_add_func("/space/read", test_space_read);
    return g_test_run();
}
