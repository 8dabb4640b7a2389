/* SPDX-License-Identifier: MIT */
/* Which kills are made, and what is a mark. */
#include "core/selftest/eb-selftest-plan.h"
#include "eb-test.h"

#include <string.h>

static guint
n_targets(void)
{
    guint n;
    eb_selftest_targets(&n);
    return n;
}

static void
test_every_place_comes_once_a_round(void)
{
    guint n = n_targets();
    g_autoptr(EbSelftestPlan) plan = eb_selftest_plan_new(2 * n, 7);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    EbSelftestKill kill;

    for (guint i = 0; i < n; i++) {
        g_assert_true(eb_selftest_plan_next(plan, &kill));
        g_assert_cmpuint(kill.number, ==, i);
        g_assert_cmpuint(kill.delay_us, ==, 0);
        g_assert_true(g_hash_table_add(seen, (gpointer)kill.target));
    }
    guint later = 0, at_once = 0;
    for (guint i = 0; i < n; i++) {
        g_assert_true(eb_selftest_plan_next(plan, &kill));
        g_assert_cmpuint(kill.delay_us, <=, EB_SELFTEST_MAX_DELAY_US);
        g_assert_false(g_hash_table_add(seen, (gpointer)kill.target));
        *(kill.delay_us == 0 ? &at_once : &later) += 1;
    }
    g_assert_cmpuint(later, >, n / 3);
    g_assert_cmpuint(at_once, >, 0);
    g_assert_false(eb_selftest_plan_next(plan, &kill));
}

static void
test_the_same_seed_gives_the_same_plan(void)
{
    g_autoptr(EbSelftestPlan) one = eb_selftest_plan_new(300, 42);
    g_autoptr(EbSelftestPlan) same = eb_selftest_plan_new(300, 42);
    g_autoptr(EbSelftestPlan) other = eb_selftest_plan_new(300, 43);
    guint different = 0;

    for (guint i = 0; i < 300; i++) {
        EbSelftestKill a, b, c;
        g_assert_true(eb_selftest_plan_next(one, &a) && eb_selftest_plan_next(same, &b) &&
                      eb_selftest_plan_next(other, &c));
        g_assert_true(a.target == b.target);
        g_assert_cmpuint(a.delay_us, ==, b.delay_us);
        different += a.target != c.target;
    }
    g_assert_cmpuint(different, >, 200);
}

static void
test_targets_are_unique_and_cover_every_group(void)
{
    guint n;
    const EbSelftestTarget *targets = eb_selftest_targets(&n);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) groups = g_hash_table_new(g_str_hash, g_str_equal);
    static const char *const wanted[] = {"start", "launch", "turn", "stop", "delete", "close"};

    for (guint i = 0; i < n; i++) {
        g_assert_true(g_hash_table_add(
            seen, g_strdup_printf("%s %s", eb_selftest_way_to_string(targets[i].way), targets[i].step)));
        g_hash_table_add(groups, (gpointer)eb_selftest_target_group(&targets[i]));
    }
    g_assert_cmpuint(g_hash_table_size(groups), ==, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++)
        g_assert_true(g_hash_table_contains(groups, wanted[i]));
}

/* Every mark of the product is a place where it is killed: one that is added without a row here is noticed. */
static void
test_every_mark_of_the_source_is_a_target(void)
{
    static const char *const files[] = {
        "core/daemon/eb-daemon.c",
        "core/session/eb-launch-op.c",
        "core/session/eb-router.c",
        "core/session/eb-router-dispatch.c",
        "core/session/eb-session.c",
        "core/session/eb-session-agent.c",
        "core/session/eb-session-manager-end.c",
        "core/session/eb-session-manager-open.c",
        "core/session/eb-session-prepare.c",
        "core/session/eb-session-questions.c",
        "core/session/eb-session-sweep.c",
        "core/session/eb-session-turn.c",
        "plugins/incus/incus-launch.c",
        "plugins/incus/incus-stop.c",
    };
    g_autoptr(GRegex) mark = g_regex_new("eb_log_step\\(\"([a-z.-]+)\"", 0, 0, NULL);
    guint n, found = 0;
    const EbSelftestTarget *targets = eb_selftest_targets(&n);

    for (guint f = 0; f < G_N_ELEMENTS(files); f++) {
        g_autofree char *path = g_build_filename(g_getenv("EB_TEST_SOURCE_ROOT"), files[f], NULL);
        g_autofree char *text = NULL;
        g_autoptr(GMatchInfo) match = NULL;
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
        for (g_regex_match(mark, text, 0, &match); g_match_info_matches(match); g_match_info_next(match, NULL)) {
            g_autofree char *step = g_match_info_fetch(match, 1);
            /* what is read from these is no step */
            gboolean known = strcmp(step, "message.told") == 0 || strcmp(step, "launch.late") == 0;
            for (guint i = 0; i < n && !known; i++)
                known = strcmp(targets[i].step, step) == 0;
            if (!known)
                g_error("%s: the step %s is no target", files[f], step);
            found++;
        }
    }
    g_assert_cmpuint(found, >, 30);
}

static void
test_marks_are_told_from_what_looks_like_one(void)
{
    g_autofree char *step = NULL;
    g_autofree char *subject = NULL;
    static const char *const none[] = {
        "",
        "2026-11-30T11:37:05Z info eb-daemon: ready",
        "2026-11-30T11:37:05Z debug eb-session: debug eb-step: launch.lock session=abc",
        "2026-11-30T11:37:05Z warning eb-step: launch.lock session=abc",
        "debug eb-step: launch.lock session=abc",
        "2026-11-30T11:37:05Z debug eb-step: ",
    };

    g_assert_true(eb_selftest_read_mark("2026-11-30T11:37:05.1Z debug eb-step: launch.lock session=l57bmttn9n0t", &step,
                                        &subject));
    g_assert_cmpstr(step, ==, "launch.lock");
    g_assert_cmpstr(subject, ==, "l57bmttn9n0t");
    g_free(step);
    g_free(subject);
    g_assert_true(eb_selftest_read_mark("2026-11-30T11:37:05.1Z debug eb-step: start.ready", &step, &subject));
    g_assert_cmpstr(step, ==, "start.ready");
    g_assert_null(subject);
    for (guint i = 0; i < G_N_ELEMENTS(none); i++) {
        g_clear_pointer(&step, g_free);
        g_assert_false(eb_selftest_read_mark(none[i], &step, &subject));
        g_assert_null(step);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/selftest/plan/round", test_every_place_comes_once_a_round);
    g_test_add_func("/selftest/plan/seed", test_the_same_seed_gives_the_same_plan);
    g_test_add_func("/selftest/plan/targets", test_targets_are_unique_and_cover_every_group);
    g_test_add_func("/selftest/plan/source", test_every_mark_of_the_source_is_a_target);
    g_test_add_func("/selftest/plan/marks", test_marks_are_told_from_what_looks_like_one);
    return g_test_run();
}
