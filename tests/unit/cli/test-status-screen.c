/* SPDX-License-Identifier: MIT */
/* One screen of `status`, whatever is in the document; and what `up` makes of logs and exit codes. */
#include <string.h>

#include "core/cli/eb-cli-service.h"
#include "core/cli/eb-status-screen.h"
#include "tests/lib/eb-test.h"

#define NOW 1796000000

static char *
screen_of(const char *json)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, &error);

    g_assert_no_error(error);
    return eb_status_screen(eb_json_node_object(node), NOW);
}

static glong
columns_of(const char *line)
{
    glong n = 0;

    for (; *line != '\0'; line = g_utf8_next_char(line))
        n += g_unichar_iswide(g_utf8_get_char(line)) ? 2 : 1;
    return n;
}

static void
assert_fits(const char *screen)
{
    g_auto(GStrv) lines = g_strsplit(screen, "\n", -1);

    g_assert_true(g_utf8_validate(screen, -1, NULL));
    g_assert_cmpuint(g_strv_length(lines), <=, EB_STATUS_LINES + 1);
    for (guint i = 0; lines[i] != NULL; i++)
        g_assert_cmpint(columns_of(lines[i]), <=, EB_STATUS_COLUMNS);
}

static void
test_running(void)
{
    g_autofree char *screen = screen_of(
        "{\"running\":true,\"live\":2,\"max_live\":4,\"idle\":5,\"known\":9,\"turns\":1,\"max_turns\":2,"
        "\"waiting_sessions\":1,\"waiting_turns\":3,\"version\":\"0.1.0\",\"pid\":77,\"uptime_s\":7500,"
        "\"instance\":\"abc\",\"supervisor\":{\"kind\":\"systemd\",\"ours\":true,\"state\":\"ready\"},"
        "\"transports\":[{\"name\":\"console\",\"state\":\"quiet\"},"
        "{\"name\":\"discord\",\"state\":\"up\",\"detail\":\"connected\",\"seconds\":61}],"
        "\"backend\":{\"name\":\"incus\",\"answers\":true,\"version\":\"6.0.4\",\"ms\":3},"
        "\"pools\":[{\"name\":\"errand\",\"driver\":\"btrfs\",\"used\":1073741824,\"total\":4294967296}],"
        "\"health\":{\"hold\":\"E-07: no "
        "space\",\"checks\":[{\"id\":\"E-05\",\"status\":\"degraded\",\"accepted\":true},"
        "{\"id\":\"E-17\",\"status\":\"degraded\",\"accepted\":false},{\"id\":\"E-07\",\"status\":\"fail\"}]},"
        "\"watchdog\":{\"running\":true,\"at\":\"2026-11-30T00:53:10Z\",\"service\":{\"state\":\"up\"},"
        "\"backend\":{\"state\":\"ok\"}},\"last_errors\":[\"one\",\"two\",\"three\",\"four\"]}");

    assert_fits(screen);
    g_assert_cmpstr(screen, ==,
                    "service    running for 2 h 5 min, version 0.1.0, pid 77, instance abc, systemd\n"
                    "sessions   2 of 4 live, 5 idle, 9 known; 1 of 2 turns at work\n"
                    "queue      1 sessions and 3 turns waiting\n"
                    "on hold    no new sessions: E-07: no space\n"
                    "chat       discord: up: connected (for 61 s)\n"
                    "incus      answers in 3 ms, version 6.0.4\n"
                    "pool       errand (btrfs): 1.0\xc2\xa0GiB of 4.0\xc2\xa0GiB used\n"
                    "watchdog   running; it saw 10 s ago: service up, incus ok\n"
                    "failing    E-07 (errand-box doctor)\n"
                    "degraded   E-17; E-05 (accepted) (errand-box doctor)\n"
                    "error      two\n"
                    "error      three\n"
                    "error      four\n");
}

static void
test_down(void)
{
    g_autofree char *screen = screen_of(
        "{\"running\":false,\"why\":\"it ended and its supervisor leaves it so\",\"last_error\":\"the service does not "
        "start: no credential chat-token\",\"log\":\"journalctl -u errand-boxd\",\"next\":\"errand-box "
        "up\",\"supervisor\":{\"kind\":\"s6\",\"ours\":true,"
        "\"state\":\"failed\",\"since\":\"2026-11-30T00:50:20Z\",\"exit_code\":2,\"exit_means\":\"exit 2: refused\"},"
        "\"backend\":{\"name\":\"incus\",\"answers\":false,\"error\":\"nobody answers\"}}");
    g_autofree char *bare = screen_of("{}");

    assert_fits(screen);
    g_assert_cmpstr(screen, ==,
                    "service    not running: it ended and its supervisor leaves it so\n"
                    "s6         failed for 3 min; exit 2: refused\n"
                    "last error the service does not start: no credential chat-token\n"
                    "log        journalctl -u errand-boxd\n"
                    "next       errand-box up\n"
                    "incus      nobody answers\n"
                    "watchdog   not running\n");
    g_assert_cmpstr(bare, ==,
                    "service    not running: nobody started it\n"
                    "next       errand-box up\n"
                    "watchdog   not running\n");
}

/* Long, wide and hostile texts, many of everything: one screen all the same. */
static void
test_fits(void)
{
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    JsonObject *object = json_object_new();
    JsonObject *health = json_object_new();
    JsonArray *errors = json_array_new();
    JsonArray *chats = json_array_new();
    JsonArray *checks = json_array_new();
    g_autofree char *wide = g_strnfill(3000, 'x');
    GString *hostile = g_string_new("\x1b[2J\r\n");

    for (guint i = 0; i < 300; i++)
        g_string_append(hostile, "\xe6\xbc\xa2 ");
    for (guint i = 0; i < 100; i++) {
        JsonObject *chat = json_object_new();
        JsonObject *check = json_object_new();
        json_object_set_string_member(chat, "name", wide);
        json_object_set_string_member(chat, "state", "down");
        json_object_set_string_member(chat, "detail", hostile->str);
        json_array_add_object_element(chats, chat);
        json_object_set_string_member(check, "id", "E-05");
        json_object_set_string_member(check, "status", i % 2 == 0 ? "fail" : "degraded");
        json_array_add_object_element(checks, check);
        json_array_add_string_element(errors, i % 2 == 0 ? wide : hostile->str);
    }
    json_object_set_boolean_member(object, "running", TRUE);
    json_object_set_array_member(object, "transports", chats);
    json_object_set_array_member(object, "last_errors", errors);
    json_object_set_array_member(health, "checks", checks);
    json_object_set_string_member(health, "hold", hostile->str);
    json_object_set_object_member(object, "health", health);
    json_object_set_string_member(object, "instance", wide);
    JsonObject *backend = json_object_new();
    json_object_set_string_member(backend, "name", wide);
    json_object_set_object_member(object, "backend", backend);
    g_autofree char *screen = eb_status_screen(object, NOW);
    assert_fits(screen);
    g_assert_null(strchr(screen, '\x1b'));
    g_assert_nonnull(strstr(screen, "…"));
    json_node_take_object(node, object);
    g_string_free(hostile, TRUE);
}

static void
test_duration(void)
{
    static const struct {
        gint64 seconds;
        const char *text;
    } CASES[] = {{-5, "0 s"},       {0, "0 s"},          {119, "119 s"},          {120, "2 min"},
                 {7199, "119 min"}, {7200, "2 h 0 min"}, {172799, "47 h 59 min"}, {200000, "2 d 7 h"}};

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *text = eb_status_duration(CASES[i].seconds);
        g_assert_cmpstr(text, ==, CASES[i].text);
    }
}

static void
test_last_error(void)
{
    g_autofree char *found = eb_cli_service_last_error("2026-11-30 10:00:00  errand-box: the first\nready\n"
                                                       "2026-11-30 10:00:01  errand-box: the \x1b[1msecond\nmore\n");
    g_assert_cmpstr(found, ==, "the \\x1b[1msecond");
    g_assert_null(eb_cli_service_last_error("ready\n"));
    g_assert_null(eb_cli_service_last_error(NULL));
}

static void
test_words(void)
{
    g_autofree char *refused = eb_cli_service_exit_means(2, 0);
    g_autofree char *killed = eb_cli_service_exit_means(-1, 9);
    g_autofree char *never = eb_cli_service_exit_means(-1, 0);
    g_autofree char *odd = eb_cli_service_exit_means(203, 0);

    g_assert_nonnull(strstr(refused, "exit 2: it refused"));
    g_assert_nonnull(strstr(killed, "signal 9"));
    g_assert_cmpstr(never, ==, "it has not run yet");
    g_assert_cmpstr(odd, ==, "exit 203");
    g_assert_true(eb_cli_service_same_config(NULL, NULL));
    g_assert_true(eb_cli_service_same_config("/a/../b.toml", "/b.toml"));
    g_assert_false(eb_cli_service_same_config("/b.toml", NULL));
    g_assert_false(eb_cli_service_same_config("/b.toml", "/c.toml"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/status/running", test_running);
    g_test_add_func("/status/down", test_down);
    g_test_add_func("/status/fits", test_fits);
    g_test_add_func("/status/duration", test_duration);
    g_test_add_func("/service/last-error", test_last_error);
    g_test_add_func("/service/words", test_words);
    return g_test_run();
}
