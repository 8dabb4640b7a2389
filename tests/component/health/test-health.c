/* SPDX-License-Identifier: MIT */
/* The service and its host's weaknesses: real sessions, a doctor that says what the test wants, a small file system. */
#include "tests/component/session/eb-session-fixture.h"

#include "core/daemon/eb-daemon-health.h"
#include "core/session/eb-session-hold.h"

#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FINE "{\"id\":\"E-33\",\"title\":\"project directory\",\"status\":\"ok\",\"watch\":true}"
#define BAD                                                                                                            \
    "{\"id\":\"E-33\",\"title\":\"project directory\",\"status\":\"degraded\",\"observed\":\"mode 0755\",\"remedy\":"  \
    "\"chmod 700\",\"watch\":true}"
#define FAILS "{\"id\":\"E-11\",\"title\":\"incusd runs\",\"status\":\"fail\",\"observed\":\"nobody listens\"}"

typedef struct {
    EbSessionFixture *session;
    EbDaemonHealth *health;
    char *dir;
    char *doctor; /* a script that does what "say" tells it */
    EbConfig *config;
} Fixture;

/* What the doctor does from now on, as shell. */
static void
doctor_does(Fixture *f, const char *shell)
{
    g_autofree char *path = g_build_filename(f->dir, "say", NULL);
    g_assert_true(g_file_set_contents(path, shell, -1, NULL));
}

static void
doctor_says(Fixture *f, const char *rows)
{
    g_autofree char *shell = g_strdup_printf("echo '{\"schema\":1,\"checks\":[%s]}'\n", rows);
    doctor_does(f, shell);
}

static void
on_known(GObject *source, GAsyncResult *result, gpointer data)
{
    eb_daemon_health_known_finish(EB_DAEMON_HEALTH(source), result);
    *(gboolean *)data = TRUE;
}

/* The manager's places, with what is looked at how often. */
static EbConfig *
make_config(Fixture *f, const char *settings)
{
    EbConfig *manager = f->session->config;
    g_autofree char *path = g_build_filename(f->dir, "health.toml", NULL);
    g_autofree char *text =
        g_strdup_printf("[service]\nstate_dir = \"%s\"\nproject_root = \"%s\"\n%s", eb_config_get_state_dir(manager),
                        eb_config_get_project_root(manager), settings != NULL ? settings : "");
    g_autoptr(GError) error = NULL;

    eb_test_write_file(path, text);
    EbConfig *config = eb_config_load(path, EB_TEST_DATA_DIR, &error);
    g_assert_no_error(error);
    return config;
}

/* @settings: (nullable): of [service]; the doctor begins with @shell. */
static Fixture *
fixture_new(const char *settings, const char *shell)
{
    Fixture *f = g_new0(Fixture, 1);
    gboolean known = FALSE;

    f->dir = eb_test_temp_dir("health");
    f->doctor = g_build_filename(f->dir, "doctor.sh", NULL);
    g_autofree char *script = g_strdup_printf("#!/bin/sh\necho run >>'%s/runs'\n. '%s/say'\n", f->dir, f->dir);
    eb_test_write_file(f->doctor, script);
    g_assert_cmpint(chmod(f->doctor, 0755), ==, 0);
    doctor_does(f, shell);
    f->session = eb_session_fixture_new(NULL, NULL, EB_CHAT_CAP_STRUCTURED);
    eb_session_fixture_open(f->session);
    f->config = make_config(f, settings);
    f->health = eb_daemon_health_new(f->config, NULL, NULL, f->doctor);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    eb_daemon_health_start(f->health, cancellable);
    eb_daemon_health_known_async(f->health, on_known, &known);
    eb_test_run_until_true(&known);
    return f;
}

static void
fixture_free(Fixture *f)
{
    eb_daemon_health_detach(f->health);
    g_object_unref(f->health);
    g_object_unref(f->config);
    eb_session_fixture_free(f->session);
    g_free(f->dir);
    g_free(f->doctor);
    g_free(f);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Fixture, fixture_free)

static gboolean
is_held(gpointer data)
{
    return !eb_session_manager_check_hold(((Fixture *)data)->session->manager, NULL);
}

static gboolean
is_free(gpointer data)
{
    return !is_held(data);
}

static void
assert_hold(Fixture *f, const char *part)
{
    g_autofree char *why = eb_session_manager_describe_hold(f->session->manager);
    g_assert_nonnull(why);
    if (strstr(why, part) == NULL)
        g_error("\"%s\" is not in \"%s\"", part, why);
}

typedef struct {
    JsonObject *health;
    GError *error;
    gboolean done;
} Answer;

static void
on_checked(GObject *source, GAsyncResult *result, gpointer data)
{
    Answer *answer = data;
    answer->health = eb_daemon_health_check_finish(EB_DAEMON_HEALTH(source), result, &answer->error);
    answer->done = TRUE;
}

/* (transfer full) */
static JsonObject *
check(Fixture *f)
{
    Answer answer = {0};
    eb_daemon_health_check_async(f->health, NULL, on_checked, &answer);
    eb_test_run_until_true(&answer.done);
    g_assert_no_error(answer.error);
    return answer.health;
}

static void
test_gate(void)
{
    g_autoptr(Fixture) f = fixture_new(NULL, "echo '{\"schema\":1,\"checks\":[" BAD "," FAILS "]}'\nexit 1\n");
    g_autoptr(GError) error = NULL;

    g_assert_false(eb_daemon_health_gate(f->health, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_DEGRADED, "health.degraded",
                         "E-33 project directory (mode 0755). Put it right");
    g_assert_null(strstr(error->message, "E-11"));
}

/* It begins on hold, and the runs that follow by themselves end that. */
static void
test_fails_then_works(void)
{
    g_autoptr(Fixture) f = fixture_new("doctor_interval = \"1s\"\n", "");

    doctor_says(f, FAILS);
    g_assert_true(eb_daemon_health_gate(f->health, NULL, NULL));
    eb_daemon_health_attach(f->health, f->session->manager);
    /* It printed nothing at all: nobody knows. */
    assert_hold(f, "the doctor exited with code 0 without a report");
    eb_session_fixture_turn(f->session, NULL, "say hello", NULL);
    g_assert_cmpuint(f->session->turns_ended, ==, 0);
    eb_test_assert_error(f->session->end_error, EB_ERROR_UNAVAILABLE, "session.hold", "no session can start just now");
    while (TRUE) {
        g_autofree char *why = eb_session_manager_describe_hold(f->session->manager);
        if (strstr(why, "E-11 incusd runs: nobody listens") != NULL)
            break;
        g_main_context_iteration(NULL, TRUE);
    }
    doctor_says(f, "{\"id\":\"E-11\",\"title\":\"incusd runs\",\"status\":\"ok\"}");
    eb_test_run_until(is_free, f);
    eb_session_fixture_turn(f->session, NULL, "say hello", NULL);
    g_assert_cmpuint(f->session->turns_ended, ==, 1);
}

/* A doctor that breaks changes nothing of what was known, and is named. */
static void
test_doctor_breaks(void)
{
    static const char *const ways[] = {"kill -SEGV $$", "echo rubbish", "echo '{\"schema\":1,\"checks\":[{}]}'",
                                       "head -c 3000000 /dev/zero"};
    g_autoptr(Fixture) f = fixture_new(NULL, "echo '{\"schema\":1,\"checks\":[" FINE "]}'\n");

    eb_daemon_health_attach(f->health, f->session->manager);
    g_assert_true(is_free(f));
    for (gsize i = 0; i < G_N_ELEMENTS(ways); i++) {
        doctor_does(f, ways[i]);
        g_autoptr(JsonObject) broken = check(f);
        g_assert_nonnull(eb_json_get_string(broken, "doctor_error"));
        g_assert_true(is_free(f));
    }
    doctor_says(f, BAD);
    g_autoptr(JsonObject) bad = check(f);
    g_assert_null(eb_json_get_string(bad, "doctor_error"));
    g_assert_cmpstr(eb_json_get_string(bad, "hold"), ==, "E-33 project directory: mode 0755 (to do: chmod 700)");
    doctor_does(f, ways[0]);
    g_autoptr(JsonObject) again = check(f);
    assert_hold(f, "E-33");
    g_assert_nonnull(strstr(eb_json_get_string(again, "doctor_error"), "SIGSEGV"));
    doctor_says(f, FINE);
    g_autoptr(JsonObject) fine = check(f);
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(fine, "checks")), ==, 0);
    g_assert_true(is_free(f));
}

/* A check that only took too long is asked for again, and holds nothing. */
static void
test_blink(void)
{
    g_autoptr(Fixture) f = fixture_new(NULL, "echo '{\"schema\":1,\"checks\":[" FINE "]}'\n");
    g_autofree char *once = g_strdup_printf("if [ -e '%s/seen' ]; then echo '{\"schema\":1,\"checks\":[" FINE
                                            "]}'; else : >'%s/seen'; echo '{\"schema\":1,\"checks\":[" BAD "]}'; fi",
                                            f->dir, f->dir);

    eb_daemon_health_attach(f->health, f->session->manager);
    doctor_does(f, once);
    g_autoptr(JsonObject) health = check(f);
    g_autofree char *seen = g_build_filename(f->dir, "seen", NULL);
    g_assert_true(g_file_test(seen, G_FILE_TEST_EXISTS));
    g_assert_null(eb_json_get_string(health, "hold"));
    g_assert_cmpuint(json_array_get_length(eb_json_get_array(health, "checks")), ==, 0);
}

static guint
count_runs(Fixture *f)
{
    g_autofree char *path = g_build_filename(f->dir, "runs", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(path, &text, &length, NULL));
    return (guint)length / 4;
}

/* However many ask at once, there is one doctor at a time, and only so many wait for it. */
static void
test_many_ask(void)
{
    g_autoptr(Fixture) f = fixture_new(NULL, "echo '{\"schema\":1,\"checks\":[" FINE "]}'\n");
    Answer answers[EB_HEALTH_MAX_WAITS + 1] = {0};
    guint before = count_runs(f);

    eb_daemon_health_attach(f->health, f->session->manager);
    for (guint i = 0; i < G_N_ELEMENTS(answers); i++)
        eb_daemon_health_check_async(f->health, NULL, on_checked, &answers[i]);
    for (guint i = 0; i < G_N_ELEMENTS(answers); i++)
        eb_test_run_until_true(&answers[i].done);
    eb_test_assert_error(answers[EB_HEALTH_MAX_WAITS].error, EB_ERROR_BUSY, "health.busy", NULL);
    g_clear_error(&answers[EB_HEALTH_MAX_WAITS].error);
    for (guint i = 0; i < EB_HEALTH_MAX_WAITS; i++) {
        g_assert_no_error(answers[i].error);
        json_object_unref(answers[i].health);
    }
    /* The one that ran when they asked, and one for all who asked meanwhile. */
    g_assert_cmpuint(count_runs(f) - before, ==, 2);
}

static void
test_watchdog(void)
{
    g_autoptr(Fixture) f = fixture_new(NULL, "echo '{\"schema\":1,\"checks\":[" FINE "]}'\n");
    g_autoptr(JsonObject) report = json_object_new();
    g_autofree char *loud = g_strnfill(5000, 'x');
    g_autoptr(GError) error = NULL;

    eb_daemon_health_attach(f->health, f->session->manager);
    g_assert_false(eb_daemon_health_report(f->health, report, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "health.watchdog", NULL);
    json_object_set_string_member(report, "state", "wedged");
    g_assert_true(eb_daemon_health_report(f->health, report, NULL));
    assert_hold(f, "takes connections and does not answer");
    json_object_set_string_member(report, "state", "down");
    json_object_set_string_member(report, "detail", loud);
    g_assert_true(eb_daemon_health_report(f->health, report, NULL));
    assert_hold(f, "xxxxxxxxxx");
    g_autofree char *why = eb_session_manager_describe_hold(f->session->manager);
    g_assert_cmpuint(strlen(why), <, 600);
    json_object_set_string_member(report, "state", "ok");
    g_assert_true(eb_daemon_health_report(f->health, report, NULL));
    g_assert_true(is_free(f));
}

/* A small file system below the state directory: warned, refused with the numbers, and let go with some more. */
static void
test_small_disk(void)
{
    g_autoptr(Fixture) f = fixture_new("min_free = \"8MiB\"\n", "echo '{\"schema\":1,\"checks\":[" FINE "]}'\n");
    const char *root = eb_config_get_project_root(f->session->config);

    eb_daemon_health_attach(f->health, f->session->manager);
    eb_session_fixture_turn(f->session, NULL, "say hello", NULL);
    g_assert_cmpuint(f->session->turns_ended, ==, 1);
    if (mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=32m,mode=0700") < 0) {
        g_test_skip("cannot mount a small file system here");
        return;
    }
    g_autofree char *filler = g_build_filename(root, "filler", NULL);
    g_autofree char *most = g_strnfill(20 * 1024 * 1024, 'x'), *more = g_strnfill(7 * 1024 * 1024, 'y');
    g_assert_true(g_file_set_contents(filler, most, 20 * 1024 * 1024, NULL));
    g_autofree char *said = NULL;
    do {
        g_autoptr(JsonObject) health = check(f);
        g_free(said);
        said = eb_fake_chat_said(f->session->chat, EB_CHAT_POST_NOTICE);
    } while (strstr(said, "disk space is running low: 1") == NULL);
    g_assert_nonnull(strstr(said, " MiB of 32 MiB are free below "));
    g_assert_true(is_free(f));
    g_autofree char *second = g_build_filename(root, "more", NULL);
    g_assert_true(g_file_set_contents(second, more, 7 * 1024 * 1024, NULL));
    while (is_free(f)) {
        g_autoptr(JsonObject) health = check(f);
    }
    assert_hold(f, "the disk is nearly full: ");
    assert_hold(f, "new sessions need 8 MiB");
    g_assert_cmpint(unlink(filler), ==, 0);
    while (is_held(f)) {
        g_autoptr(JsonObject) health = check(f);
    }
    g_assert_cmpint(umount2(root, MNT_DETACH), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/health/gate", test_gate);
    g_test_add_func("/health/fails-then-works", test_fails_then_works);
    g_test_add_func("/health/doctor-breaks", test_doctor_breaks);
    g_test_add_func("/health/blink", test_blink);
    g_test_add_func("/health/many-ask", test_many_ask);
    g_test_add_func("/health/watchdog", test_watchdog);
    g_test_add_func("/health/small-disk", test_small_disk);
    return g_test_run();
}
