/* SPDX-License-Identifier: MIT */
/* Starts that fail or die at every step leave nothing. */
#include "eb-session-fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

/* The errand starts and fails with @code and @reason; nothing is left; @ms is bounded by the test's own deadline. */
static void
fails(EbSessionFixture *f, const char *extra, EbErrorCode code, const char *reason, const char *text)
{
    guint ended = f->sessions_ended;
    eb_fake_chat_forget(f->chat);
    eb_fake_chat_say(f->chat, NULL, "say x", extra);
    eb_session_fixture_wait_ended(f, ended + 1);
    eb_test_assert_error(f->end_error, code, reason, text);
    eb_session_fixture_assert_nothing(f);
    EbChatPost *error = eb_fake_chat_last(f->chat, EB_CHAT_POST_ERROR);
    g_assert_nonnull(error);
    g_assert_null(strchr(error->text, '\n'));
    EbChatPost *end = eb_fake_chat_last(f->chat, EB_CHAT_POST_END);
    g_assert_cmpstr(eb_json_get_string(end->data, "stop_reason"), ==, "error");
    g_assert_cmpint(eb_json_get_int(end->data, "code", -1), ==, code);
}

static void
test_each_step_fails(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    for (int state = EB_LAUNCH_CHECK; state <= EB_LAUNCH_READY; state++) {
        f->fail_state = state;
        fails(f, "{\"project\":\"web\"}", EB_ERROR_FAILED, "test.step",
              eb_launch_state_to_string((EbLaunchState)state));
    }
    f->fail_state = -1;
    eb_session_fixture_turn(f, NULL, "say fine", "{\"project\":\"web\"}");
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
}

static void
test_backend_and_broker_fail(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    f->fail_broker = TRUE;
    fails(f, NULL, EB_ERROR_FAILED, NULL, "broker does not start");
    f->fail_broker = FALSE;
    f->backend->fail_launch = TRUE;
    fails(f, NULL, EB_ERROR_QUOTA, NULL, "pool is full");
    f->backend->half_launch = TRUE;
    fails(f, NULL, EB_ERROR_QUOTA, NULL, "pool is full");
    f->backend->fail_launch = f->backend->half_launch = FALSE;
    f->backend->fail_exec = TRUE;
    fails(f, NULL, EB_ERROR_UNAVAILABLE, NULL, "no exec today");
}

static void
test_bad_input(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    fails(f, "{\"agent\":\"tset\"}", EB_ERROR_NOT_FOUND, NULL, "test");
    fails(f, "{\"project\":\"../up\"}", EB_ERROR_INVALID, "project.name", "no project name");
    fails(f, "{\"project\":\"a/b\"}", EB_ERROR_INVALID, "project.name", NULL);
    fails(f, "{\"project\":\"h\xc3\xa9\"}", EB_ERROR_INVALID, "project.name", NULL);
    fails(f, "{\"agent\":\"big\"}", EB_ERROR_CONFIG, "agent.memory-floor", "at least 4 GiB");
    fails(f, "{\"agent\":\"foreign\"}", EB_ERROR_CONFIG, "provider.kind", "of kind openai");
    fails(f, "{\"provider\":\"other\"}", EB_ERROR_CONFIG, "provider.unknown", "other");
    fails(f, "{\"agent\":\"missing\"}", EB_ERROR_NOT_FOUND, "agent.not-installed", "not installed in the guest image");
    fails(f, "{\"agent\":\"no-launcher\"}", EB_ERROR_FAILED, "agent.launcher", "its launcher is not there");
    fails(f, "{\"agent\":\"no-workspace\"}", EB_ERROR_FAILED, "agent.launcher", "cannot enter /workspace");
    fails(f, "{\"agent\":\"crash\"}", EB_ERROR_FAILED, "agent.exited", "cannot find my own feet");
    f->no_key = TRUE;
    fails(f, NULL, EB_ERROR_UNAUTHENTICATED, "credential.missing", "env-file /nowhere");
    f->no_key = FALSE;
}

static void
test_silent_agent(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, "startup = \"5s\"\n", STRUCTURED);
    eb_session_fixture_open(f);
    fails(f, "{\"agent\":\"hang\"}", EB_ERROR_TIMEOUT, NULL, NULL);
}

static void
test_degraded(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    f->backend->degraded = TRUE;
    eb_session_fixture_open(f);
    g_auto(EbTestResult) checked = {0};
    g_autoptr(GError) error = NULL;
    eb_session_manager_check_async(f->manager, NULL, eb_test_result_ready, &checked);
    g_assert_null(eb_session_manager_check_finish(f->manager, eb_test_result_wait(&checked), &error));
    eb_test_assert_error(error, EB_ERROR_DEGRADED, "backend.degraded", "E-05");
    fails(f, NULL, EB_ERROR_DEGRADED, "backend.degraded", "E-05: disk-quota (files have no quota)");
    eb_session_manager_set_accept_all_degraded(f->manager, TRUE);
    eb_session_fixture_turn(f, NULL, "say x", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    g_autofree char *notices = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notices, "NOT ENFORCED ON THIS HOST: E-05"));
}

static void
test_project_root_missing(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    g_autofree char *projects = g_build_filename(f->dir, "projects", NULL);
    g_autofree char *aside = g_build_filename(f->dir, "aside", NULL);
    g_assert_cmpint(rename(projects, aside), ==, 0);
    eb_fake_chat_say(f->chat, NULL, "say x", NULL);
    eb_session_fixture_wait_ended(f, 1);
    eb_test_assert_error(f->end_error, EB_ERROR_CONFIG, "session.directory", "projects directory");
    g_assert_cmpint(rename(aside, projects), ==, 0);
    /* A link where the project should be is not followed. */
    g_autofree char *link = g_build_filename(projects, "web", NULL);
    g_assert_cmpint(symlink("/etc", link), ==, 0);
    eb_fake_chat_say(f->chat, NULL, "say x", "{\"project\":\"web\"}");
    eb_session_fixture_wait_ended(f, 2);
    eb_test_assert_error(f->end_error, EB_ERROR_DENIED, "session.directory", "web");
    g_assert_cmpint(unlink(link), ==, 0);
    eb_session_fixture_assert_nothing(f);
}

static void
test_interrupted_start(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "say x", "{\"agent\":\"hang\"}");
    while (f->backend->launched == 0)
        g_main_context_iteration(NULL, TRUE);
    g_signal_emit_by_name(f->chat, "interrupt", NULL, 1);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpstr(f->end_reason, ==, "stopped");
    eb_session_fixture_assert_nothing(f);
}

/* A child runs the manager and is killed by SIGKILL as it enters each step; the next run finds nothing left of it. */
static void
test_killed_at_each_step(void)
{
    for (int state = EB_LAUNCH_CHECK; state <= EB_LAUNCH_READY; state++) {
        g_autofree char *dir = eb_test_temp_dir("killed");
        g_autofree char *number = g_strdup_printf("%d", state);
        g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
        const char *argv[] = {self, "--child", dir, number, NULL};
        g_autoptr(GError) error = NULL;
        int status = 0;
        g_assert_true(
            g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL, &status, &error));
        g_assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        g_autoptr(EbSessionFixture) f = eb_session_fixture_new(dir, NULL, STRUCTURED);
        if (state > EB_LAUNCH_GUEST)
            g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 1);
        eb_session_fixture_open(f);
        g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
        g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 0);
        /* The message was written down before: it is done now, in a session that starts from the beginning. */
        eb_session_fixture_wait_turns(f, 1);
        g_assert_cmpstr(f->stop_reason, ==, "end_turn");
        g_assert_cmpuint(eb_session_fixture_count_dirs(f), ==, 1);
    }
}

static int
run_child(const char *dir, int state)
{
    EbSessionFixture *f = eb_session_fixture_new(dir, NULL, STRUCTURED);
    f->kill_state = state;
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "say x", "{\"project\":\"web\"}");
    eb_session_fixture_wait_turns(f, 1);
    return 0;
}

/* A guest of a run that still lives is left alone, and one of another installation too. */
static void
test_sweep_spares_others(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    g_autofree char *foreign = g_build_filename(f->backend->dir, "eb-foreign", NULL);
    eb_test_write_file(foreign, "aaaaaaaaaaaa\nbbbbbbbbbbbb\ncccccccccccc");
    eb_session_fixture_open(f);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 1);
    g_autofree char *dead = g_build_filename(f->backend->dir, "eb-dead", NULL);
    g_autofree char *living = g_build_filename(f->backend->dir, "eb-living", NULL);
    g_autofree char *dead_labels = g_strdup_printf("aaaaaaaaaaaa\nbbbbbbbbbbbb\n%s", f->manager->parts->home_id);
    g_autofree char *living_labels = g_strdup_printf("aaaaaaaaaaaa\ndddddddddddd\n%s", f->manager->parts->home_id);
    eb_test_write_file(dead, dead_labels);
    eb_test_write_file(living, living_labels);
    g_autoptr(EbDirLock) lock = eb_dir_lock_take(f->manager->parts->locks_dir, "run-dddddddddddd.lock", NULL);
    g_assert_nonnull(lock);
    g_signal_emit_by_name(f->backend, "instance-event", EB_INSTANCE_EVENT_BACKEND_BACK, NULL);
    while (eb_fake_backend_count(f->backend) == 3)
        g_main_context_iteration(NULL, TRUE);
    eb_test_drain();
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 2);
    g_assert_false(g_file_test(dead, G_FILE_TEST_EXISTS));
    g_assert_true(g_file_test(living, G_FILE_TEST_EXISTS));
}

static void
test_backend_away_at_open(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    f->backend->fail_list = TRUE;
    eb_session_fixture_open(f);
    g_autoptr(JsonNode) status = eb_session_manager_status_json(f->manager);
    g_assert_false(eb_json_get_bool(json_node_get_object(status), "swept", TRUE));
}

int
main(int argc, char **argv)
{
    gboolean child = argc == 4 && g_str_equal(argv[1], "--child");
    g_autofree char *dir = child ? g_strdup(argv[2]) : NULL;
    int state = child ? atoi(argv[3]) : -1;
    if (child)
        argc = 1;
    eb_test_init(&argc, &argv);
    if (child)
        return run_child(dir, state);
    g_test_add_func("/launch/each-step-fails", test_each_step_fails);
    g_test_add_func("/launch/backend-and-broker-fail", test_backend_and_broker_fail);
    g_test_add_func("/launch/bad-input", test_bad_input);
    g_test_add_func("/launch/silent-agent", test_silent_agent);
    g_test_add_func("/launch/degraded", test_degraded);
    g_test_add_func("/launch/project-root-missing", test_project_root_missing);
    g_test_add_func("/launch/interrupted-start", test_interrupted_start);
    g_test_add_func("/launch/killed-at-each-step", test_killed_at_each_step);
    g_test_add_func("/launch/sweep-spares-others", test_sweep_spares_others);
    g_test_add_func("/launch/backend-away-at-open", test_backend_away_at_open);
    return g_test_run();
}
