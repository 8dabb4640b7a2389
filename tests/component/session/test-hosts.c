/* SPDX-License-Identifier: MIT */
/* Hosts that a broker refuses: what people are told and asked, who may allow, and what a rule of one session lives through. */
#include "core/session/eb-session-manager-private.h"
#include "core/session/eb-session-private.h"
#include "eb-session-fixture.h"

#include <string.h>

#define LASTING (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_BUSY)
#define OWNER "author-1"

static const char *const everybody[] = {"*", NULL};
static const char *const operators[] = {"operator", NULL};
static const char *const nobody[] = {NULL};
static const EbChatPolicy policy = {.allowed = (char **)(gpointer)everybody,
                                    .blocked = (char **)(gpointer)nobody,
                                    .operators = (char **)(gpointer)operators};
static const EbChatPolicy no_operators = {.allowed = (char **)(gpointer)everybody,
                                          .blocked = (char **)(gpointer)nobody};

static EbSessionFixture *
talking(const char *dir, const char *settings, const EbChatPolicy *who)
{
    EbSessionFixture *f = eb_session_fixture_new(dir, settings, LASTING);
    f->chat->answer = g_strdup("");
    eb_session_fixture_open(f);
    eb_session_manager_set_policy(f->manager, "fake", who);
    eb_session_fixture_turn(f, "t", "hello", NULL);
    return f;
}

static void
refuse(EbSessionFixture *f, const char *host, guint port, const char *code)
{
    g_signal_emit_by_name(eb_session_fixture_live(f, "t"), "host-refused", host, port, code);
}

static gboolean
reaches(EbSessionFixture *f, const char *host)
{
    EbSession *session = eb_session_fixture_live(f, "t");
    return session->guest->rules->allow != NULL &&
           g_strv_contains((const char *const *)session->guest->rules->allow, host);
}

static gboolean
was_told(EbSessionFixture *f, const char *host)
{
    return f->told != NULL && f->told->allow != NULL && g_strv_contains((const char *const *)f->told->allow, host);
}

static char *
shown_hosts(EbSessionFixture *f)
{
    EbSessionRecord *record = eb_session_get_record(eb_session_fixture_live(f, "t"));
    g_autoptr(JsonNode) node = eb_session_manager_show_json(f->manager, record->id, NULL);
    JsonArray *hosts = eb_json_get_array(eb_json_node_object(node), "hosts");
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < json_array_get_length(hosts); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "",
                               eb_json_get_string(eb_json_array_object(hosts, i), "host"));
    return g_string_free(text, FALSE);
}

static void
wait_asks(EbSessionFixture *f, guint n)
{
    for (guint i = 0; eb_fake_chat_open_asks(f->chat) != n && i < 5000; i++)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(eb_fake_chat_open_asks(f->chat), ==, n);
}

typedef struct {
    EbSessionFixture *f;
    const char *host;
} Told;

static gboolean
is_told(gpointer user_data)
{
    Told *told = user_data;
    return was_told(told->f, told->host);
}

static void
wait_told(EbSessionFixture *f, const char *host)
{
    Told told = {f, host};
    eb_test_run_until(is_told, &told);
    g_assert_true(reaches(f, host));
}

/* A guest, or a broker that its guest took over, writes what a chat would read as more than a name. */
static void
test_marks(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, "[egress]\nports = [443, 80]\n", &policy);
    guint notices = eb_fake_chat_count(f->chat, EB_CHAT_POST_NOTICE);
    refuse(f, "[new](https://evil.test) @everyone", 0, "provider-unknown");
    refuse(f, "<@123>`", 443, "provider-host");
    refuse(f, "**evil**.test", 443, "host-not-allowed");
    refuse(f, "openai-2", 0, "provider-unknown");
    for (guint i = 0; eb_fake_chat_count(f->chat, EB_CHAT_POST_NOTICE) < notices + 3 && i < 5000; i++)
        g_main_context_iteration(NULL, TRUE);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_cmpuint(f->chat->asked, ==, 0);
    g_assert_null(strstr(said, "evil"));
    g_assert_null(strstr(said, "<@"));
    g_assert_null(strstr(said, "everyone"));
    g_assert_nonnull(strstr(said, "the model provider with a name that is none"));
    g_assert_nonnull(strstr(said, "openai-2"));
}

static void
test_one_line_a_host(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, "[egress]\nports = [443, 80]\n", &policy);
    refuse(f, "a.test", 443, "host-not-allowed");
    wait_asks(f, 1);
    refuse(f, "a.test", 443, "host-not-allowed");
    refuse(f, "A.test.", 80, "host-not-allowed");
    refuse(f, "b.test", 80, "host-not-allowed");
    wait_asks(f, 2);
    g_assert_cmpuint(f->chat->asked, ==, 2);
    g_assert_nonnull(strstr(eb_fake_chat_ask(f->chat, 0)->shown->text, "a.test"));
    /* None of these can be allowed: told, not asked. */
    guint notices = eb_fake_chat_count(f->chat, EB_CHAT_POST_NOTICE);
    refuse(f, "10.0.0.1", 443, "internal-address");
    refuse(f, "c.test", 22, "host-not-allowed");
    refuse(f, "anthropic", 0, "nonce-refused");
    for (guint i = 0; eb_fake_chat_count(f->chat, EB_CHAT_POST_NOTICE) < notices + 3 && i < 5000; i++)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(f->chat->asked, ==, 2);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(said, "internal"));
    g_assert_nonnull(strstr(said, "port 22"));
    g_assert_nonnull(strstr(said, "a key that is not this session's"));
}

static void
test_who_may(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, NULL, &policy);
    refuse(f, "a.test", 443, "host-not-allowed");
    wait_asks(f, 1);
    g_assert_false(eb_fake_chat_press(f->chat, 0, "session", OWNER));
    g_assert_false(eb_fake_chat_press(f->chat, 0, "once", OWNER));
    g_assert_false(eb_fake_chat_press(f->chat, 0, "ask", "stranger"));
    g_assert_false(reaches(f, "a.test"));
    /* The owner asks, the operators are notified and decide. */
    g_assert_true(eb_fake_chat_press(f->chat, 0, "ask", OWNER));
    wait_asks(f, 1);
    EbFakeAsk *second = eb_fake_chat_ask(f->chat, 1);
    g_assert_cmpuint(second->shown->notify->len, ==, 1);
    g_assert_cmpstr(second->shown->notify->pdata[0], ==, "operator");
    g_assert_false(eb_fake_chat_press(f->chat, 1, "session", OWNER));
    g_assert_false(eb_fake_chat_press(f->chat, 1, "leave", OWNER));
    g_assert_true(eb_fake_chat_press(f->chat, 1, "session", "operator"));
    wait_told(f, "a.test");
    g_autofree char *hosts = shown_hosts(f);
    g_assert_cmpstr(hosts, ==, "a.test");
}

static void
test_owners_may(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, "[egress]\nwho_allows = \"owners\"\n", &policy);
    refuse(f, "a.test", 443, "host-not-allowed");
    wait_asks(f, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "session", OWNER));
    wait_told(f, "a.test");
}

static void
test_nobody_may(void)
{
    static const char *const settings[] = {"[egress]\nwho_allows = \"nobody\"\n", NULL};
    const EbChatPolicy *const who[] = {&policy, &no_operators};
    for (guint i = 0; i < 2; i++) {
        g_autoptr(EbSessionFixture) f = talking(NULL, settings[i], who[i]);
        refuse(f, "a.test", 443, "host-not-allowed");
        for (guint n = 0; eb_fake_chat_count(f->chat, EB_CHAT_POST_NOTICE) == 0 && n < 5000; n++)
            g_main_context_iteration(NULL, TRUE);
        g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
        g_assert_nonnull(strstr(said, "errand-box sessions allow SESSION HOST"));
        g_assert_cmpuint(f->chat->asked, ==, 0);
    }
}

/* Once is the turn: this one, or the next; and nothing of it is written down. */
static void
test_once(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, NULL, &policy);
    refuse(f, "a.test", 443, "host-not-allowed");
    wait_asks(f, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "once", "operator"));
    wait_told(f, "a.test");
    eb_session_fixture_turn(f, "t", "again", NULL);
    g_assert_false(reaches(f, "a.test"));
    g_assert_false(was_told(f, "a.test"));
    g_assert_cmpuint(eb_session_get_record(eb_session_fixture_live(f, "t"))->hosts->len, ==, 0);
}

static void
allowed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    eb_session_manager_allow_host_finish(EB_SESSION_MANAGER(source), result, &error);
    *(char **)user_data = g_strdup(error != NULL ? eb_error_get_reason(error) : "");
}

static char *
allow(EbSessionFixture *f, const char *id, const char *host)
{
    char *reason = NULL;
    eb_session_manager_allow_host_async(f->manager, id, host, allowed, &reason);
    while (reason == NULL)
        g_main_context_iteration(NULL, TRUE);
    return reason;
}

static void
assert_refused(EbSessionFixture *f, const char *id, const char *host, const char *expected)
{
    g_autofree char *reason = allow(f, id, host);
    g_test_message("%s", host);
    g_assert_cmpstr(reason, ==, expected);
}

static void
test_at_a_terminal(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, "[egress]\nallow = [\"all.test\"]\nallow_internal = true\n", &policy);
    g_autofree char *id = g_strdup(eb_session_get_record(eb_session_fixture_live(f, "t"))->id);
    g_autoptr(GError) error = NULL;
    assert_refused(f, id, "A.Test.", "");
    g_assert_true(reaches(f, "a.test"));
    g_assert_true(reaches(f, "all.test"));
    assert_refused(f, id, "*.test", "host.invalid");
    assert_refused(f, id, "https://a.test/", "host.invalid");
    assert_refused(f, id, "a.test:22", "host.port");
    assert_refused(f, id, "10.0.0.1", "host.internal");
    assert_refused(f, id, "::1", "host.internal");
    assert_refused(f, id, "localhost", "host.internal");
    assert_refused(f, id, "169.254.169.254", "host.internal");
    assert_refused(f, id, "2130706433", "host.invalid");
    assert_refused(f, "nosuch", "b.test", "session.unknown");
    for (guint i = 1; i < EB_SESSION_RULES_MAX_HOSTS; i++) {
        g_autofree char *host = g_strdup_printf("h%u.test", i);
        g_autofree char *reason = allow(f, id, host);
        g_assert_cmpstr(reason, ==, "");
    }
    assert_refused(f, id, "one-more.test", "host.too-many");
    g_assert_true(eb_session_manager_deny_host(f->manager, id, "a.test", &error));
    g_assert_false(reaches(f, "a.test"));
    g_assert_false(eb_session_manager_deny_host(f->manager, id, "a.test", &error));
    g_assert_cmpstr(eb_error_get_reason(error), ==, "host.not-allowed");
}

/* B43: a rule of one session is there after everything was restarted, and nowhere else. */
static void
test_restart(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, NULL, &policy);
    g_autofree char *dir = g_strdup(f->dir);
    g_autofree char *id = g_strdup(eb_session_get_record(eb_session_fixture_live(f, "t"))->id);
    assert_refused(f, id, "a.test", "");
    refuse(f, "b.test", 443, "host-not-allowed");
    wait_asks(f, 1);
    eb_session_fixture_close(f);
    eb_session_fixture_open(f);
    eb_session_manager_set_policy(f->manager, "fake", &policy);
    /* Its question is still there, and is answered while the session sleeps. */
    wait_asks(f, 1);
    g_assert_cmpuint(f->chat->taken_up, ==, 1);
    g_assert_cmpuint(f->chat->asked, ==, 1);
    g_assert_true(eb_fake_chat_press(f->chat, 0, "session", "operator"));
    eb_session_fixture_turn(f, "t", "again", NULL);
    g_assert_true(reaches(f, "a.test"));
    g_assert_true(reaches(f, "b.test"));
    /* Told before: not told again. */
    refuse(f, "b.test", 443, "host-not-allowed");
    g_assert_cmpuint(f->chat->asked, ==, 1);
    /* Another session has nothing of it. */
    eb_session_fixture_turn(f, "u", "hello", "{\"project\": \"other\"}");
    EbSession *other = eb_session_fixture_live(f, "u");
    g_assert_cmpuint(eb_session_get_record(other)->hosts->len, ==, 0);
    g_assert_false(other->guest->rules->allow != NULL &&
                   g_strv_contains((const char *const *)other->guest->rules->allow, "a.test"));
}

static void
test_pace(void)
{
    g_autoptr(EbSessionFixture) f = talking(NULL, NULL, &policy);
    for (guint i = 0; i < 100; i++) {
        g_autofree char *host = g_strdup_printf("h%u.test", i);
        refuse(f, host, 443, "host-not-allowed");
    }
    wait_asks(f, EB_HOST_LINES_BURST);
    eb_session_fixture_turn(f, "t", "again", NULL);
    g_assert_cmpuint(f->chat->asked, ==, EB_HOST_LINES_BURST);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_NOTICE);
    g_autofree char *expected =
        g_strdup_printf("%d more refusals are not told", 100 - EB_HOST_LINES_BURST - EB_HOST_MAX_WAITING);
    g_assert_nonnull(strstr(said, expected));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/hosts/marks", test_marks);
    g_test_add_func("/hosts/one-line-a-host", test_one_line_a_host);
    g_test_add_func("/hosts/who-may", test_who_may);
    g_test_add_func("/hosts/owners-may", test_owners_may);
    g_test_add_func("/hosts/nobody-may", test_nobody_may);
    g_test_add_func("/hosts/once", test_once);
    g_test_add_func("/hosts/at-a-terminal", test_at_a_terminal);
    g_test_add_func("/hosts/restart", test_restart);
    g_test_add_func("/hosts/pace", test_pace);
    return g_test_run();
}
