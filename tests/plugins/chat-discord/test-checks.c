/* SPDX-License-Identifier: MIT */
#include "discord-checks.h"
#include "discord-permissions.h"
#include "standin-rig.h"

#include <string.h>

/* E-70 to E-74 against hosts that make them speak up and hosts that do not, and against the stand-in. */

static EbConfigSection *
settings_new(void)
{
    return eb_config_section_new("service");
}

static EbCheckResult *
run_on(EbDoctorCheck *check, const char *side)
{
    g_autofree char *tree =
        g_build_filename(g_getenv("EB_FIXTURES"), "doctor", eb_doctor_check_get_info(check)->id, side, NULL);
    g_autoptr(EbHost) host = NULL;
    g_autoptr(EbConfigSection) settings = settings_new();

    g_assert_true(g_file_test(tree, G_FILE_TEST_IS_DIR));
    host = eb_host_new_fixture(tree);
    return eb_doctor_check_run(check, host, settings, NULL);
}

static void
test_fixtures(void)
{
    static const struct {
        EbCheckStatus status;
        const char *fire, *clear;
    } wanted[] = {
        {EB_CHECK_FAIL, "Reset Token", "the bot is errand-box (100000000000000002)"},
        {EB_CHECK_FAIL, "Message Content Intent", "client_id=100000000000000002&scope=bot+applications.commands"},
        {EB_CHECK_FAIL, "there is no channel 100000000000000010", "#errands of server 100000000000000001"},
        {EB_CHECK_FAIL, "lacks in channel 100000000000000010: Add Reactions: grant", "all eight"},
        {EB_CHECK_DEGRADED, "test.conf sets ERRAND_DISCORD_MOCK_URL. Cost: ", "nowhere set"},
    };
    g_autoptr(GPtrArray) checks = discord_checks_list("chat-token", DISCORD_STANDIN_CHANNEL);

    g_assert_cmpuint(checks->len, ==, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < checks->len; i++) {
        g_autoptr(EbCheckResult) fire = run_on(checks->pdata[i], "fire");
        g_autoptr(EbCheckResult) clear = run_on(checks->pdata[i], "clear");
        g_autofree char *id = g_strdup_printf("E-%u", 70 + i);
        g_test_message("%s: %s | %s", id, fire->observed, clear->observed);
        g_assert_cmpstr(eb_doctor_check_get_info(checks->pdata[i])->id, ==, id);
        g_assert_cmpint(fire->status, ==, wanted[i].status);
        g_assert_nonnull(strstr(fire->observed, wanted[i].fire));
        g_assert_cmpint(clear->status, ==, EB_CHECK_OK);
        g_assert_nonnull(strstr(clear->observed, wanted[i].clear));
    }
}

/* What is not there is not judged: no configuration, no token, no host. */
static void
test_skipped(void)
{
    g_autoptr(GPtrArray) unconfigured = discord_checks_list(NULL, NULL);
    g_autoptr(GPtrArray) checks = discord_checks_list("chat-token", DISCORD_STANDIN_CHANNEL);
    g_autofree char *tree = eb_test_temp_dir("empty-host");
    g_autoptr(EbHost) host = eb_host_new_fixture(tree);
    g_autoptr(EbConfigSection) settings = settings_new();
    g_autofree char *creds = g_build_filename(tree, "etc/errand-box/creds.env", NULL);

    for (guint i = 0; i < checks->len; i++) {
        g_autoptr(EbCheckResult) none = eb_doctor_check_run(unconfigured->pdata[i], host, settings, NULL);
        g_autoptr(EbCheckResult) empty = eb_doctor_check_run(checks->pdata[i], host, settings, NULL);
        g_assert_cmpint(none->status, ==, EB_CHECK_SKIPPED);
        /* A chat that was asked for and cannot be: the service refuses to start like this. */
        g_assert_cmpint(empty->status, ==, i == 0 ? EB_CHECK_FAIL : EB_CHECK_SKIPPED);
        if (i < 4)
            g_assert_nonnull(strstr(none->observed, "not configured"));
        if (i > 0 && i < 4)
            g_assert_cmpstr(empty->observed, ==, "not before E-70 is settled");
        if (i == 0)
            g_assert_nonnull(strstr(empty->observed, "no chat-token is stored"));
    }
    /* [plugin.credentials] file names the one place. */
    g_autoptr(EbConfigSection) elsewhere = settings_new();
    eb_config_section_set(elsewhere, "credentials.file", g_variant_new_string("/srv/own.env"), "test", 0);
    g_autoptr(EbCheckResult) absent = eb_doctor_check_run(checks->pdata[0], host, elsewhere, NULL);
    g_assert_cmpint(absent->status, ==, EB_CHECK_FAIL);
    g_assert_nonnull(strstr(absent->observed, "is stored in /srv/own.env: errand-box creds set chat-token"));
    g_autofree char *own = g_build_filename(tree, "srv/own.env", NULL);
    eb_test_write_file(own, "ERRAND_CHAT_TOKEN=mock-token\n");
    g_autoptr(EbCheckResult) there = eb_doctor_check_run(checks->pdata[0], host, elsewhere, NULL);
    g_assert_null(strstr(there->observed, "is stored"));
    /* A token, and a Discord that gives no answers. */
    eb_test_write_file(creds, "ERRAND_CHAT_TOKEN=mock-token\n");
    for (guint i = 0; i < 4; i++) {
        g_autoptr(EbCheckResult) deaf = eb_doctor_check_run(checks->pdata[i], host, settings, NULL);
        g_assert_cmpint(deaf->status, ==, EB_CHECK_SKIPPED);
        g_assert_nonnull(strstr(deaf->observed, "could not be asked"));
        g_assert_null(strstr(deaf->observed, "mock-token"));
    }
}

/* --- the real way: a thread of its own, the REST client, the stand-in --- */

typedef struct {
    EbDoctorCheck *check;
    EbHost *host;
    EbConfigSection *settings;
    GCancellable *cancellable;
    EbCheckResult *result;
    gboolean done;
} Job;

static gboolean
job_done(gpointer user_data)
{
    ((Job *)user_data)->done = TRUE;
    return G_SOURCE_REMOVE;
}

static gpointer
job_thread(gpointer user_data)
{
    Job *job = user_data;

    job->result = eb_doctor_check_run(job->check, job->host, job->settings, job->cancellable);
    g_main_context_invoke(NULL, job_done, job);
    return NULL;
}

/* (transfer full) */
static EbCheckResult *
run_real(const char *state_dir, guint index, guint cancel_after_ms)
{
    g_autoptr(GPtrArray) checks = discord_checks_list("chat-token", DISCORD_STANDIN_CHANNEL);
    g_autoptr(EbHost) host = eb_host_new_real();
    g_autoptr(EbConfigSection) settings = settings_new();
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Job job = {checks->pdata[index], host, settings, cancellable, NULL, FALSE};
    GThread *thread;

    eb_config_section_set(settings, "state_dir", g_variant_new_string(state_dir), "test", 0);
    thread = g_thread_new("check", job_thread, &job);
    if (cancel_after_ms > 0) {
        eb_test_run_for(cancel_after_ms);
        g_cancellable_cancel(cancellable);
    }
    eb_test_run_until_true(&job.done);
    g_thread_join(thread);
    return job.result;
}

static char *
state_dir_with_token(const char *token)
{
    char *dir = eb_test_temp_dir("state");
    g_autofree char *path = g_build_filename(dir, "creds.env", NULL);
    g_autofree char *text = g_strdup_printf("ERRAND_CHAT_TOKEN=%s\n", token);

    eb_test_write_file(path, text);
    return dir;
}

static void
test_real(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autofree char *dir = state_dir_with_token("mock-token");
    g_autofree char *invite = discord_invite_url(DISCORD_STANDIN_APPLICATION);
    g_autoptr(JsonObject) changed = NULL;

    g_setenv(DISCORD_MOCK_ENV, discord_standin_get_api(rig->standin), TRUE);
    for (guint i = 0; i < 4; i++) {
        g_autoptr(EbCheckResult) result = run_real(dir, i, 0);
        g_assert_cmpstr(eb_check_status_to_string(result->status), ==, "ok");
        if (i == 1)
            g_assert_nonnull(strstr(result->observed, invite));
    }
    changed = rig_call(rig, "overwrite", "{\"deny\":\"64\"}");
    for (guint i = 2; i < 4; i++) {
        g_autoptr(EbCheckResult) result = run_real(dir, i, 0);
        g_assert_cmpint(result->status, ==, i == 3 ? EB_CHECK_FAIL : EB_CHECK_OK);
    }
    g_unsetenv(DISCORD_MOCK_ENV);
}

/* A fault is told by the check that is about it, and those behind it name that one. */
static void
test_blame(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autofree char *dir = state_dir_with_token("mock-wrong");
    g_autoptr(JsonObject) changed = NULL;
    static const EbCheckStatus statuses[] = {EB_CHECK_FAIL, EB_CHECK_SKIPPED, EB_CHECK_SKIPPED, EB_CHECK_SKIPPED};

    g_setenv(DISCORD_MOCK_ENV, discord_standin_get_api(rig->standin), TRUE);
    for (guint i = 0; i < G_N_ELEMENTS(statuses); i++) {
        g_autoptr(EbCheckResult) result = run_real(dir, i, 0);
        g_assert_cmpint(result->status, ==, statuses[i]);
        if (i > 0)
            g_assert_cmpstr(result->observed, ==, "not before E-70 is settled");
        g_assert_null(strstr(result->observed, "mock-wrong"));
    }
    g_unsetenv(DISCORD_MOCK_ENV);
}

/* The doctor's deadline ends it, whatever Discord does. */
static void
test_deadline(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autofree char *dir = state_dir_with_token("mock-token");
    g_autoptr(JsonObject) fault =
        rig_call(rig, "fault", "{\"method\":\"GET\",\"path\":\"/users/@me\",\"kind\":\"hang\",\"count\":9}");
    g_autoptr(EbCheckResult) result = NULL;

    g_setenv(DISCORD_MOCK_ENV, discord_standin_get_api(rig->standin), TRUE);
    result = run_real(dir, 0, 200);
    g_assert_cmpint(result->status, ==, EB_CHECK_SKIPPED);
    g_assert_cmpstr(result->observed, ==, "Discord did not answer in time");
    g_unsetenv(DISCORD_MOCK_ENV);
}

/* A stand-in that is none, or a real token: refused before anything is sent. */
static void
test_bad_mock(void)
{
    g_autofree char *dir = state_dir_with_token("MTE4MDAwMDAwMDAwMDAwMDAwMQ.x.y");
    g_autoptr(EbCheckResult) result = NULL;

    g_setenv(DISCORD_MOCK_ENV, "http://127.0.0.1:9", TRUE);
    result = run_real(dir, 0, 0);
    g_assert_cmpint(result->status, ==, EB_CHECK_FAIL);
    g_assert_null(strstr(result->observed, "MTE4"));
    g_unsetenv(DISCORD_MOCK_ENV);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/checks/fixtures", test_fixtures);
    g_test_add_func("/discord/checks/skipped", test_skipped);
    g_test_add_func("/discord/checks/real", test_real);
    g_test_add_func("/discord/checks/blame", test_blame);
    g_test_add_func("/discord/checks/deadline", test_deadline);
    g_test_add_func("/discord/checks/bad-mock", test_bad_mock);
    return g_test_run();
}
