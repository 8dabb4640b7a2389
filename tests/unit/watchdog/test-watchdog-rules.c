/* SPDX-License-Identifier: MIT */
/* What the watchdog concludes: a world of three switches (lock, service, backend) and a clock that the test moves. */
#include "core/watchdog/eb-watchdog-rules.h"
#include "tests/lib/eb-test.h"

#define S ((gint64)G_USEC_PER_SEC)

/* The world, and what was done to it. */
typedef struct {
    EbWatchdogRules rules;
    gint64 now, boot;
    EbWatchdogLock lock;
    EbWatchdogAnswer service;
    EbWatchdogAnswer backend;
    gint64 pid;
    guint service_looks, backend_looks;
    guint sweeps, ends, reports;
    gboolean sweep_fails, end_fails;
    gint64 swept_at, ended_at, reported_at; /* the last */
    guint service_changes, backend_changes;
} World;

static void
world_begin(World *world, gboolean supervised)
{
    EbWatchdogLimits limits = EB_WATCHDOG_LIMITS;

    *world = (World){.now = 1000 * S,
                     .boot = 5000 * S,
                     .lock = EB_WATCHDOG_LOCK_HELD,
                     .service = EB_WATCHDOG_ANSWER_GIVEN,
                     .backend = EB_WATCHDOG_ANSWER_GIVEN,
                     .pid = 100};
    limits.supervised = supervised;
    eb_watchdog_rules_init(&world->rules, &limits, world->now, world->boot);
}

static void
look_at_service(World *world)
{
    gint64 took = world->service == EB_WATCHDOG_ANSWER_SILENT ? EB_WATCHDOG_LIMITS.deadline * 1000 : 1000;
    EbWatchdogLook look = {.begun_us = world->now,
                           .ended_us = world->now + took,
                           .lock = world->lock,
                           .answer = world->service,
                           .pid = world->service == EB_WATCHDOG_ANSWER_NONE ? 0 : world->pid};

    world->service_looks++;
    world->service_changes += eb_watchdog_rules_service(&world->rules, &look);
    if (look.answer != EB_WATCHDOG_ANSWER_GIVEN ||
        !eb_watchdog_rules_has_report(&world->rules, look.pid, look.ended_us))
        return;
    eb_watchdog_rules_reported(&world->rules, world->rules.backend, look.pid, look.ended_us);
    world->reports++;
    world->reported_at = look.ended_us;
}

static void
look_at_backend(World *world)
{
    gint64 took = world->backend == EB_WATCHDOG_ANSWER_SILENT ? EB_WATCHDOG_LIMITS.deadline * 1000 : 1000;
    EbWatchdogLook look = {.begun_us = world->now, .ended_us = world->now + took, .answer = world->backend};

    world->backend_looks++;
    world->backend_changes += eb_watchdog_rules_backend(&world->rules, &look);
}

static void
wake(World *world)
{
    guint actions = eb_watchdog_rules_wake(&world->rules, world->now, world->boot);

    if (actions & EB_WATCHDOG_LOOK_BACKEND)
        look_at_backend(world);
    if (actions & EB_WATCHDOG_LOOK_SERVICE)
        look_at_service(world);
    if (actions & EB_WATCHDOG_SWEEP_GUESTS) {
        world->sweeps++;
        world->swept_at = world->now;
        eb_watchdog_rules_swept(&world->rules, !world->sweep_fails, world->now);
    }
    if (actions & EB_WATCHDOG_END_SERVICE) {
        world->ends++;
        world->ended_at = world->now;
        eb_watchdog_rules_ended(&world->rules, !world->end_fails, world->now);
    }
}

/* Lets @seconds pass as the watchdog lives them: it sleeps until it wants to wake. */
static void
pass(World *world, gint64 seconds)
{
    gint64 until = world->now + seconds * S;

    while (TRUE) {
        gint64 next = eb_watchdog_rules_next(&world->rules, world->now);
        g_assert_cmpint(next, >=, world->now);
        if (next > until)
            break;
        world->boot += MAX(next - world->now, 1000);
        world->now += MAX(next - world->now, 1000);
        wake(world);
    }
    world->boot += MAX(until - world->now, 0);
    world->now = MAX(until, world->now);
}

static void
test_well(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 600);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
    g_assert_cmpint(world.rules.service_pid, ==, 100);
    g_assert_cmpuint(world.sweeps + world.ends, ==, 0);
    /* Told once that all is well, and then nothing. */
    g_assert_cmpuint(world.reports, ==, 1);
    g_assert_cmpuint(world.service_changes, ==, 1);
    g_assert_cmpuint(world.backend_changes, ==, 1);
    g_assert_cmpuint(world.service_looks, >=, 119);
    g_assert_cmpuint(world.service_looks, <=, 122);
    g_assert_cmpuint(world.backend_looks, <=, 122);
}

/* Wherever between two looks it wedges, it is seen, and told, within 30 seconds. */
static void
test_wedged(void)
{
    for (guint offset = 0; offset < 12; offset++) {
        World world;

        world_begin(&world, TRUE);
        pass(&world, 60 + offset);
        gint64 wedged = world.now;
        world.backend = EB_WATCHDOG_ANSWER_SILENT;
        pass(&world, 30);
        g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
        g_assert_cmpuint(world.reports, >=, 2);
        g_assert_cmpint(world.rules.told_state, ==, EB_WATCHDOG_BACKEND_WEDGED);
        g_assert_cmpint(world.rules.backend_since_us, >=, wedged);
        g_assert_cmpint(world.rules.backend_since_us, <=, wedged + 6 * S);
        /* Said again and again while it lasts, so that the service can drop a word that is old. */
        guint reports = world.reports;
        pass(&world, 60);
        g_assert_cmpuint(world.reports, >=, reports + 3);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
        world.backend = EB_WATCHDOG_ANSWER_GIVEN;
        pass(&world, 12);
        g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
        g_assert_cmpint(world.rules.told_state, ==, EB_WATCHDOG_BACKEND_OK);
        g_assert_cmpuint(world.sweeps + world.ends, ==, 0);
    }
}

static void
test_one_miss_is_none(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    for (guint i = 0; i < 20; i++) {
        EbWatchdogLook miss = {.begun_us = world.now, .ended_us = world.now + 4 * S, .answer = i % 2};
        EbWatchdogLook good = {.begun_us = world.now, .ended_us = world.now + 1, .answer = EB_WATCHDOG_ANSWER_GIVEN};
        g_assert_false(eb_watchdog_rules_backend(&world.rules, &miss));
        g_assert_false(eb_watchdog_rules_backend(&world.rules, &good));
    }
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
}

static void
test_down(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    world.backend = EB_WATCHDOG_ANSWER_NONE;
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_DOWN);
    /* From one ill state to the other, by two looks as well. */
    world.backend = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
    world.backend = EB_WATCHDOG_ANSWER_NONE;
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_DOWN);
    world.backend = EB_WATCHDOG_ANSWER_GIVEN;
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
}

/* Ill from the start: known without ever having been well. */
static void
test_ill_from_the_start(void)
{
    World world;

    world_begin(&world, TRUE);
    world.backend = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 30);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
    g_assert_cmpuint(world.reports, >=, 1);
}

/* Comes and goes: after the third time it has to answer for a minute before anybody is told that it is well. */
static void
test_flapping(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    for (guint i = 0; i < EB_WATCHDOG_FLAPS; i++) {
        world.backend = EB_WATCHDOG_ANSWER_SILENT;
        pass(&world, 20);
        g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
        world.backend = EB_WATCHDOG_ANSWER_GIVEN;
        pass(&world, 20);
    }
    guint changes = world.backend_changes;
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
    for (guint i = 0; i < 10; i++) {
        world.backend = EB_WATCHDOG_ANSWER_SILENT;
        pass(&world, 20);
        world.backend = EB_WATCHDOG_ANSWER_GIVEN;
        pass(&world, 20);
    }
    g_assert_cmpuint(world.backend_changes, ==, changes);
    pass(&world, 70);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
    /* An hour later it is a failure like any other. */
    pass(&world, 3600);
    world.backend = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 20);
    world.backend = EB_WATCHDOG_ANSWER_GIVEN;
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
}

/* A service that was started again knows nothing of what its predecessor was told. */
static void
test_new_service_is_told(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    g_assert_cmpuint(world.reports, ==, 1);
    world.pid = 101;
    pass(&world, 10);
    g_assert_cmpuint(world.reports, ==, 2);
    g_assert_cmpint(world.rules.told_pid, ==, 101);
    /* And people see which one it is, though it never was seen to be gone. */
    g_assert_cmpuint(world.service_changes, ==, 2);
    g_assert_cmpint(world.rules.service_pid, ==, 101);
}

static void
test_dead(void)
{
    for (guint offset = 0; offset < 12; offset++) {
        World world;

        world_begin(&world, TRUE);
        pass(&world, 60 + offset);
        gint64 died = world.now;
        world.lock = EB_WATCHDOG_LOCK_FREE;
        world.service = EB_WATCHDOG_ANSWER_NONE;
        pass(&world, 30);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_DEAD);
        g_assert_cmpint(world.rules.service_pid, ==, 0);
        g_assert_cmpuint(world.sweeps, ==, 1);
        g_assert_cmpint(world.swept_at - died, >=, 10 * S);
        g_assert_cmpint(world.swept_at - died, <=, 16 * S);
        /* What a dead run had asked for may come to be later. */
        pass(&world, 130);
        g_assert_cmpuint(world.sweeps, ==, 3);
        g_assert_cmpuint(world.ends, ==, 0);
        /* And once it lives it is left alone. */
        world.lock = EB_WATCHDOG_LOCK_HELD;
        world.service = EB_WATCHDOG_ANSWER_GIVEN;
        pass(&world, 300);
        g_assert_cmpuint(world.sweeps, ==, 3);
    }
}

static void
test_sweep_fails(void)
{
    World world;

    world_begin(&world, TRUE);
    world.lock = EB_WATCHDOG_LOCK_FREE;
    world.service = EB_WATCHDOG_ANSWER_NONE;
    world.sweep_fails = TRUE;
    pass(&world, 50);
    g_assert_cmpuint(world.sweeps, >=, 3);
    g_assert_cmpuint(world.sweeps, <=, 5);
}

/* One that takes long is not begun a second time. */
static void
test_one_sweep_at_a_time(void)
{
    EbWatchdogRules rules;
    EbWatchdogLook gone = {.begun_us = S, .ended_us = S, .lock = EB_WATCHDOG_LOCK_FREE};
    guint begun = 0;

    eb_watchdog_rules_init(&rules, &EB_WATCHDOG_LIMITS, S, S);
    for (gint64 now = S; now < 200 * S; now += S) {
        guint actions = eb_watchdog_rules_wake(&rules, now, now);
        if (actions & EB_WATCHDOG_LOOK_SERVICE)
            eb_watchdog_rules_service(&rules, &gone);
        begun += (actions & EB_WATCHDOG_SWEEP_GUESTS) != 0;
        eb_watchdog_rules_next(&rules, now);
    }
    g_assert_cmpuint(begun, ==, 1);
}

/* Restarts and upgrades: nobody holds the lock for some seconds, then it starts for a while. */
static void
test_restart(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    for (guint i = 0; i < 5; i++) {
        world.service = EB_WATCHDOG_ANSWER_NONE;
        pass(&world, 6);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_ENDING);
        world.lock = i % 2 == 0 ? EB_WATCHDOG_LOCK_ABSENT : EB_WATCHDOG_LOCK_FREE;
        pass(&world, 10);
        g_assert_cmpint(world.rules.service, ==, i % 2 == 0 ? EB_WATCHDOG_SERVICE_STOPPED : EB_WATCHDOG_SERVICE_DEAD);
        world.lock = EB_WATCHDOG_LOCK_HELD;
        pass(&world, 100);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_STARTING);
        world.service = EB_WATCHDOG_ANSWER_GIVEN;
        world.pid++;
        pass(&world, 10);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    }
    g_assert_cmpuint(world.sweeps + world.ends, ==, 0);
}

/* A start may take long; one without an end is a hang. */
static void
test_hangs_in_start(void)
{
    World world;

    world_begin(&world, TRUE);
    world.service = EB_WATCHDOG_ANSWER_NONE;
    pass(&world, 590);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_STARTING);
    g_assert_cmpuint(world.ends, ==, 0);
    pass(&world, 20);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_HANGS);
    g_assert_cmpuint(world.ends, ==, 1);
}

static void
test_hangs(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    gint64 hung = world.now;
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 55);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpuint(world.ends, ==, 0);
    guint looks = world.service_looks;
    pass(&world, 35);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_HANGS);
    g_assert_cmpuint(world.ends, ==, 1);
    g_assert_cmpint(world.ended_at - hung, >=, 60 * S);
    g_assert_cmpint(world.ended_at - hung, <=, 90 * S);
    /* Its queue of connections is not filled by us. */
    g_assert_cmpuint(world.service_looks - looks, <=, 3);
    /* Its successor is another process and is measured anew, also when it takes connections at once. */
    world.pid = 200;
    pass(&world, 50);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_STARTING);
    world.service = EB_WATCHDOG_ANSWER_GIVEN;
    pass(&world, 20);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpuint(world.ends, ==, 1);
    g_assert_cmpuint(world.sweeps, ==, 0);
}

/* An answer now and then: slow, not hung. */
static void
test_slow(void)
{
    World world;

    world_begin(&world, TRUE);
    for (guint i = 0; i < 20; i++) {
        world.service = EB_WATCHDOG_ANSWER_SILENT;
        pass(&world, 50);
        world.service = EB_WATCHDOG_ANSWER_GIVEN;
        pass(&world, 20);
        g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    }
    g_assert_cmpuint(world.ends, ==, 0);
}

/* Nobody would start it again: it is shown, and never ended. */
static void
test_hangs_alone(void)
{
    World world;

    world_begin(&world, FALSE);
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 4000);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_HANGS);
    g_assert_cmpuint(world.ends, ==, 0);
    g_assert_false(eb_watchdog_rules_gave_up(&world.rules, world.now));
}

/* It hangs again and again: three times an hour and no more. */
static void
test_gives_up(void)
{
    World world;

    world_begin(&world, TRUE);
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 1800);
    g_assert_cmpuint(world.ends, ==, EB_WATCHDOG_ENDS);
    g_assert_true(eb_watchdog_rules_gave_up(&world.rules, world.now));
    pass(&world, 3000);
    g_assert_cmpuint(world.ends, >, EB_WATCHDOG_ENDS);
    /* An end that could not be sent is tried again, at the same distance. */
    world_begin(&world, TRUE);
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    world.end_fails = TRUE;
    pass(&world, 1000);
    g_assert_cmpuint(world.ends, >, EB_WATCHDOG_ENDS);
    g_assert_false(eb_watchdog_rules_gave_up(&world.rules, world.now));
}

/* A state directory that cannot be looked at says neither that the service lives nor that it died. */
static void
test_lock_unknown(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    world.lock = EB_WATCHDOG_LOCK_UNKNOWN;
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 400);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UNKNOWN);
    world.service = EB_WATCHDOG_ANSWER_NONE;
    pass(&world, 1000);
    g_assert_cmpuint(world.sweeps + world.ends, ==, 0);
    /* An answer needs no lock to be believed. */
    world.service = EB_WATCHDOG_ANSWER_GIVEN;
    pass(&world, 20);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
}

/* A program that restores a backup holds the lock for hours: neither ended nor swept away under. */
static void
test_lock_of_others(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    world.service = EB_WATCHDOG_ANSWER_NONE;
    world.lock = EB_WATCHDOG_LOCK_ABSENT;
    pass(&world, 6);
    world.lock = EB_WATCHDOG_LOCK_OTHER;
    pass(&world, 7200);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_STOPPED);
    g_assert_cmpuint(world.sweeps + world.ends, ==, 0);
    world.lock = EB_WATCHDOG_LOCK_ABSENT;
    pass(&world, 20);
    g_assert_cmpuint(world.sweeps, ==, 1);
}

/* The machine slept for a night in the middle of everything: nothing of before it counts. */
static void
test_suspended(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    world.service = world.backend = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 3);
    for (guint i = 0; i < 30; i++) {
        world.boot += 8 * 3600 * S; /* and the monotonic clock stood still */
        pass(&world, 3);
    }
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
    g_assert_cmpuint(world.ends, ==, 0);
    pass(&world, 15);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_WEDGED);
    world.service = EB_WATCHDOG_ANSWER_NONE;
    world.lock = EB_WATCHDOG_LOCK_FREE;
    pass(&world, 10);
    world.boot += 3600 * S;
    gint64 woke = world.now;
    pass(&world, 30);
    g_assert_cmpuint(world.sweeps, ==, 1);
    g_assert_cmpint(world.swept_at - woke, >=, 10 * S);
}

/* The watchdog itself was stopped or starved: what it missed is not held against anybody. */
static void
test_kept_from_looking(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    for (guint i = 0; i < 50; i++) {
        /* A look begun before, which ends after a long pause without an answer. */
        EbWatchdogLook late = {
            .begun_us = world.now, .lock = EB_WATCHDOG_LOCK_HELD, .answer = EB_WATCHDOG_ANSWER_SILENT, .pid = 100};
        eb_watchdog_rules_next(&world.rules, world.now);
        world.now += 600 * S;
        world.boot += 600 * S;
        late.ended_us = world.now;
        eb_watchdog_rules_wake(&world.rules, world.now, world.boot);
        g_assert_false(eb_watchdog_rules_service(&world.rules, &late));
        g_assert_false(eb_watchdog_rules_backend(&world.rules, &late));
    }
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpint(world.rules.backend, ==, EB_WATCHDOG_BACKEND_OK);
    /* What did answer counts. */
    EbWatchdogLook good = {
        .begun_us = world.now - S, .ended_us = world.now, .answer = EB_WATCHDOG_ANSWER_GIVEN, .pid = 300};
    eb_watchdog_rules_service(&world.rules, &good);
    g_assert_cmpint(world.rules.service_pid, ==, 300);
}

/* A clock that goes back by itself makes nobody dead. */
static void
test_clock_back(void)
{
    World world;

    world_begin(&world, TRUE);
    pass(&world, 20);
    world.service = EB_WATCHDOG_ANSWER_SILENT;
    pass(&world, 20);
    world.now -= 900 * S;
    world.boot -= 900 * S;
    wake(&world);
    g_assert_cmpint(world.rules.service, ==, EB_WATCHDOG_SERVICE_UP);
    g_assert_cmpuint(world.ends + world.sweeps, ==, 0);
    /* And it goes on looking. */
    world.service = EB_WATCHDOG_ANSWER_GIVEN;
    guint looks = world.service_looks;
    pass(&world, 1000);
    g_assert_cmpuint(world.service_looks, >, looks);
}

static void
test_names(void)
{
    g_assert_cmpstr(eb_watchdog_service_state_to_string(EB_WATCHDOG_SERVICE_HANGS), ==, "hangs");
    g_assert_cmpstr(eb_watchdog_service_state_to_string(EB_WATCHDOG_SERVICE_STOPPED), ==, "stopped");
    g_assert_cmpstr(eb_watchdog_service_state_to_string(99), ==, "unknown");
    g_assert_cmpstr(eb_watchdog_backend_state_to_string(EB_WATCHDOG_BACKEND_WEDGED), ==, "wedged");
    g_assert_cmpstr(eb_watchdog_backend_state_to_string(EB_WATCHDOG_BACKEND_DOWN), ==, "down");
    g_assert_cmpstr(eb_watchdog_backend_state_to_string(99), ==, "unknown");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/watchdog/rules/well", test_well);
    g_test_add_func("/watchdog/rules/wedged", test_wedged);
    g_test_add_func("/watchdog/rules/one-miss-is-none", test_one_miss_is_none);
    g_test_add_func("/watchdog/rules/down", test_down);
    g_test_add_func("/watchdog/rules/ill-from-the-start", test_ill_from_the_start);
    g_test_add_func("/watchdog/rules/flapping", test_flapping);
    g_test_add_func("/watchdog/rules/new-service-is-told", test_new_service_is_told);
    g_test_add_func("/watchdog/rules/dead", test_dead);
    g_test_add_func("/watchdog/rules/sweep-fails", test_sweep_fails);
    g_test_add_func("/watchdog/rules/one-sweep-at-a-time", test_one_sweep_at_a_time);
    g_test_add_func("/watchdog/rules/restart", test_restart);
    g_test_add_func("/watchdog/rules/hangs-in-start", test_hangs_in_start);
    g_test_add_func("/watchdog/rules/hangs", test_hangs);
    g_test_add_func("/watchdog/rules/slow", test_slow);
    g_test_add_func("/watchdog/rules/hangs-alone", test_hangs_alone);
    g_test_add_func("/watchdog/rules/gives-up", test_gives_up);
    g_test_add_func("/watchdog/rules/lock-unknown", test_lock_unknown);
    g_test_add_func("/watchdog/rules/lock-of-others", test_lock_of_others);
    g_test_add_func("/watchdog/rules/suspended", test_suspended);
    g_test_add_func("/watchdog/rules/kept-from-looking", test_kept_from_looking);
    g_test_add_func("/watchdog/rules/clock-back", test_clock_back);
    g_test_add_func("/watchdog/rules/names", test_names);
    return g_test_run();
}
