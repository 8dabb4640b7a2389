/* SPDX-License-Identifier: MIT */
/* What was said while nobody listened: in order, once, and told when it is too late or too much. */
#include "eb-router-fixture.h"

#include "core/session/eb-router-private.h"

#include <string.h>

static EbRouterFixture *
fixture(void)
{
    EbRouterFixture *r = eb_router_fixture_new(NULL, NULL);
    eb_router_fixture_open(r);
    UNTIL(r->chat->reads >= 1 && r->chat->held_reads->len == 0);
    return r;
}

static gboolean
reacted(EbRouterFixture *r, const char *id, const char *all)
{
    return g_str_equal(eb_fake_service_reaction(r->chat, id), all);
}

static guint
count_told(EbRouterFixture *r, const char *thread, const char *part)
{
    guint count = 0;
    for (guint i = 0; i < r->chat->posts->len; i++) {
        const EbChatPost *post = r->chat->posts->pdata[i];
        count += g_strcmp0(post->thread, thread) == 0 && strstr(post->text, part) != NULL;
    }
    return count;
}

static const char *
begin(EbRouterFixture *r, const char *text)
{
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, text);
    UNTIL(reacted(r, id, "wait done"));
    return id;
}

static gboolean
agent_has(EbRouterFixture *r, const char *text)
{
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    return g_strv_contains((const char *const *)prompts, text);
}

static void
assert_prompts(EbRouterFixture *r, const char *wanted)
{
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_autofree char *all = g_strjoinv("|", prompts);
    g_assert_cmpstr(all, ==, wanted);
}

/* What people said before we came is not for us; what they said while we were away is. */
static void
test_first_contact(void)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(NULL, NULL);
    const char *before = eb_fake_service_say(r->chat, NULL, OWNER, "say before");
    eb_router_fixture_open(r);
    UNTIL(r->chat->reads == 1);
    UNTIL(eb_router_fixture_count_open(r) == 0);
    eb_router_fixture_close(r);
    EbChatMessage *away = eb_fake_service_add(r->chat, NULL, OWNER, "say away");
    eb_router_fixture_open(r);
    UNTIL(reacted(r, away->id, "wait done"));
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, before), ==, "");
    assert_prompts(r, "say away");
}

/* Also in a channel where nobody had ever said anything. */
static void
test_empty_channel(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    UNTIL(eb_router_fixture_count_open(r) == 0);
    eb_router_fixture_close(r);
    EbChatMessage *away = eb_fake_service_add(r->chat, NULL, OWNER, "say away");
    eb_router_fixture_open(r);
    UNTIL(reacted(r, away->id, "wait done"));
}

/* B24: a gap of the connection. What is said live meanwhile comes after what was missed, and nothing comes twice. */
static void
test_gap(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    eb_fake_service_connect(r->chat, FALSE);
    const char *missed[] = {
        eb_fake_service_say(r->chat, thread, OWNER, "say two"),
        eb_fake_service_say(r->chat, thread, OWNER, "say three"),
        eb_fake_service_say(r->chat, NULL, OWNER, "say elsewhere"),
        eb_fake_service_say(r->chat, thread, OWNER, "!allow " FRIEND),
    };
    r->chat->hold_reads = TRUE;
    eb_fake_service_connect(r->chat, TRUE);
    const char *live = eb_fake_service_say(r->chat, thread, FRIEND, "say four");
    /* Redelivered as well, as after a resume. */
    eb_fake_service_tell(r->chat, r->chat->history->pdata[1]);
    const char *other = eb_fake_service_say(r->chat, NULL, OWNER, "!status");
    UNTIL(r->chat->held_reads->len == 2);
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, live), ==, "");
    eb_fake_service_release(r->chat);
    UNTIL(reacted(r, live, "wait done"));
    UNTIL(reacted(r, missed[2], "wait done"));
    UNTIL(eb_fake_service_answer_to(r->chat, other) != NULL);
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_true(reacted(r, missed[0], "wait done") && reacted(r, missed[1], "wait done"));
    g_assert_cmpuint(count_told(r, thread, "may speak to the agent here from now on"), ==, 1);
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_autofree char *all = g_strjoinv("|", prompts);
    g_assert_nonnull(strstr(all, "say one|say two|say three|say four"));
    g_assert_cmpuint(g_strv_length(prompts), ==, 5);
    /* Once more, with nothing missed. */
    eb_fake_service_connect(r->chat, TRUE);
    const char *last = eb_fake_service_say(r->chat, thread, OWNER, "say five");
    UNTIL(reacted(r, last, "wait done"));
    g_auto(GStrv) after = eb_router_fixture_prompts(r);
    g_assert_cmpuint(g_strv_length(after), ==, 6);
}

/* A command of the chat is answered at once, whatever is being read. */
static void
test_actions_do_not_wait(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    r->chat->hold_reads = TRUE;
    eb_fake_service_connect(r->chat, TRUE);
    g_autofree char *id = g_strdup(eb_fake_service_command(r->chat, thread, OWNER, "status", NULL));
    UNTIL(eb_fake_service_answer_to(r->chat, id) != NULL);
    eb_fake_service_release(r->chat);
}

static void
test_changed_while_waiting(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    r->chat->hold_reads = TRUE;
    eb_fake_service_connect(r->chat, TRUE);
    const char *edited = eb_fake_service_say(r->chat, thread, OWNER, "say draft");
    g_autofree char *gone = g_strdup(eb_fake_service_say(r->chat, thread, OWNER, "say nothing"));
    eb_fake_service_edit(r->chat, edited, "say final");
    eb_fake_service_withdraw(r->chat, gone);
    eb_fake_service_release(r->chat);
    UNTIL(reacted(r, edited, "wait done"));
    assert_prompts(r, "say one|say final");
}

/* What is too old is not done any more, and one answer in its place says so; to those alone who would be heard. */
static void
test_late(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    eb_router_fixture_close(r);
    gint64 old_ms = g_get_real_time() / 1000 - (gint64)r->chat->policy.late_ms - 60000;
    const char *texts[] = {"say two", "say three", "!stop"};
    EbChatMessage *last = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        last = eb_fake_service_add(r->chat, thread, OWNER, texts[i]);
        last->sent_unix_ms = old_ms;
    }
    EbChatMessage *uninvited = eb_fake_service_add(r->chat, thread, FRIEND, "say let me");
    uninvited->sent_unix_ms = old_ms;
    EbChatMessage *channel = eb_fake_service_add(r->chat, NULL, OWNER, "say elsewhere");
    channel->sent_unix_ms = old_ms;
    EbChatMessage *stranger = eb_fake_service_add(r->chat, NULL, STRANGER, "say elsewhere");
    stranger->sent_unix_ms = old_ms;
    EbChatMessage *recent = eb_fake_service_add(r->chat, thread, OWNER, "say four");
    eb_router_fixture_open(r);
    UNTIL(eb_fake_service_answer_to(r->chat, channel->id) != NULL);
    UNTIL(eb_fake_service_answer_to(r->chat, last->id) != NULL);
    UNTIL(reacted(r, recent->id, "wait done"));
    g_assert_nonnull(strstr(eb_fake_service_answer_to(r->chat, channel->id), "I saw this only now, too late"));
    g_assert_nonnull(strstr(eb_fake_service_answer_to(r->chat, last->id), "I saw 3 messages only now"));
    g_assert_cmpuint(count_told(r, thread, "only now"), ==, 1);
    g_assert_null(eb_fake_service_answer_to(r->chat, stranger->id));
    assert_prompts(r, "say one|say four");
    UNTIL(eb_router_fixture_count_open(r) == 0);
    /* Not told again. */
    guint told = count_told(r, thread, "only now");
    eb_router_fixture_restart(r);
    const char *on = eb_fake_service_say(r->chat, thread, OWNER, "say five");
    UNTIL(reacted(r, on, "wait done"));
    g_assert_cmpuint(count_told(r, thread, "only now"), ==, told);
}

/* More than may wait: what finds no room is read, in its order, each once. */
static void
test_overflow(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    r->chat->hold_reads = TRUE;
    eb_fake_service_connect(r->chat, TRUE);
    UNTIL(r->chat->held_reads->len == 2);
    guint first = r->chat->history->len;
    for (guint i = 0; i < EB_CATCHUP_MAX_WAITING + 50; i++)
        eb_fake_service_say(r->chat, thread, OWNER, "!!! x");
    eb_fake_service_release(r->chat);
    for (guint i = first; i < r->chat->history->len; i++) {
        EbChatMessage *message = r->chat->history->pdata[i];
        UNTIL(reacted(r, message->id, "done"));
    }
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

/* There is an end to what is read, and people hear of it. */
static void
test_cap(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    eb_fake_service_connect(r->chat, FALSE);
    guint first = r->chat->history->len;
    for (guint i = 0; i < EB_CATCHUP_MAX_READ + 5; i++)
        eb_fake_service_say(r->chat, thread, OWNER, "!!! x");
    eb_fake_service_connect(r->chat, TRUE);
    UNTIL(count_told(r, thread, "more than 1000 messages were written here") == 1);
    for (guint i = first; i < first + EB_CATCHUP_MAX_READ; i++) {
        EbChatMessage *message = r->chat->history->pdata[i];
        UNTIL(reacted(r, message->id, "done"));
    }
    const char *on = eb_fake_service_say(r->chat, thread, OWNER, "say two");
    UNTIL(reacted(r, on, "wait done"));
    EbChatMessage *left = r->chat->history->pdata[first + EB_CATCHUP_MAX_READ];
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, left->id), ==, "");
}

static void
fail_reads(EbRouterFixture *r, guint n)
{
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(r->chat->read_errors,
                        eb_error_new(EB_ERROR_UNAVAILABLE, "fake.down", "the service does not answer"));
}

static void
test_read_fails(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    UNTIL(eb_router_fixture_count_open(r) == 0);
    eb_fake_service_connect(r->chat, FALSE);
    const char *missed = eb_fake_service_say(r->chat, NULL, OWNER, "say missed");
    fail_reads(r, 1);
    eb_fake_service_connect(r->chat, TRUE);
    UNTIL(reacted(r, missed, "wait done"));
    /* For good: what is live goes on, and what was missed comes when it can be read. */
    eb_fake_service_connect(r->chat, FALSE);
    const char *thread = eb_fake_service_thread(r->chat);
    const char *later = eb_fake_service_say(r->chat, NULL, OWNER, "say later");
    fail_reads(r, 6);
    eb_fake_service_connect(r->chat, TRUE);
    const char *live = eb_fake_service_say(r->chat, thread, OWNER, "say live");
    UNTIL(reacted(r, live, "wait done"));
    UNTIL(r->chat->read_errors->len == 0);
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, later), ==, "");
    eb_fake_service_connect(r->chat, TRUE);
    UNTIL(reacted(r, later, "wait done"));
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_assert_cmpuint(g_strv_length(prompts), ==, 3);
}

/* A thread that is gone takes its session along, and keeps nothing else back. */
static void
test_thread_gone(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    g_autofree char *gone = g_strdup(begin(r, "say one"));
    const char *thread = begin(r, "say two");
    eb_fake_service_connect(r->chat, FALSE);
    g_hash_table_remove(r->chat->threads, gone);
    const char *missed = eb_fake_service_say(r->chat, thread, OWNER, "say three");
    eb_fake_service_connect(r->chat, TRUE);
    UNTIL(reacted(r, missed, "wait done"));
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", gone) == NULL);
}

/* A shutdown in the middle: what waited is done afterwards, in order; what was worked on is told and carries its end. */
static void
test_restart(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say one");
    const char *working = eb_fake_service_say(r->chat, thread, OWNER, "wait");
    const char *two = eb_fake_service_say(r->chat, thread, OWNER, "say two");
    const char *three = eb_fake_service_say(r->chat, thread, OWNER, "!then say three");
    UNTIL(eb_router_fixture_count_open(r) == 3);
    UNTIL(agent_has(r, "wait"));
    eb_router_fixture_close(r);
    EbChatMessage *away = eb_fake_service_add(r->chat, thread, OWNER, "say four");
    eb_router_fixture_open(r);
    UNTIL(reacted(r, away->id, "wait done"));
    g_assert_true(g_str_has_suffix(eb_fake_service_reaction(r->chat, two), "done"));
    g_assert_true(g_str_has_suffix(eb_fake_service_reaction(r->chat, three), "done"));
    g_assert_false(g_str_has_suffix(eb_fake_service_reaction(r->chat, working), "wait"));
    assert_prompts(r, "say one|wait|say two|say three|say four");
}

/* Changed before it is even known who gets it: the first words are nowhere. */
static void
test_changed_at_once(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say x");
    eb_fake_service_say(r->chat, thread, OWNER, "gate open");
    UNTIL(agent_has(r, "gate open"));
    const char *then = eb_fake_service_say(r->chat, thread, OWNER, "!then say draft");
    const char *plain = eb_fake_service_say(r->chat, thread, OWNER, "say rough");
    const char *gone = eb_fake_service_say(r->chat, thread, OWNER, "!then say nothing");
    eb_fake_service_edit(r->chat, then, "!then say final");
    eb_fake_service_edit(r->chat, plain, "say fair");
    eb_fake_service_withdraw(r->chat, gone);
    UNTIL(eb_router_fixture_count_open(r) == 3);
    eb_router_fixture_open_gate(r, "open");
    UNTIL(reacted(r, then, "wait done"));
    UNTIL(reacted(r, plain, "wait done"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_true(agent_has(r, "say final"));
    g_assert_true(agent_has(r, "say fair"));
    g_assert_false(agent_has(r, "say draft"));
    g_assert_false(agent_has(r, "say rough"));
    g_assert_false(agent_has(r, "say nothing"));
}

static gboolean
is_away(EbRouterFixture *r, const char *thread)
{
    return g_hash_table_contains(r->chat->archived, thread) && eb_router_fixture_count_open(r) == 0;
}

static gboolean
is_stopping(EbRouterFixture *r, const char *thread)
{
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", thread);
    return session == NULL || eb_session_is_ending(session);
}

static void
run_sql(EbRouterFixture *r, const char *sql)
{
    g_autofree char *path = g_build_filename(r->session->dir, "state", "state.db", NULL);
    sqlite3 *db = NULL;
    g_assert_cmpint(sqlite3_open(path, &db), ==, SQLITE_OK);
    g_assert_cmpint(sqlite3_exec(db, sql, NULL, NULL, NULL), ==, SQLITE_OK);
    sqlite3_close(db);
}

/* !stop is carried out by the next run when the first ended over it, wherever that was. */
static void
test_stop_over_restart(void)
{
    g_autoptr(EbRouterFixture) r = fixture();
    const char *thread = begin(r, "say x");
    eb_fake_service_say(r->chat, thread, OWNER, "gate never");
    UNTIL(agent_has(r, "gate never"));
    eb_fake_service_say(r->chat, thread, OWNER, "!stop");
    UNTIL(is_stopping(r, thread));
    eb_router_fixture_close(r);
    g_hash_table_remove_all(r->chat->archived);
    eb_router_fixture_open(r);
    UNTIL(is_away(r, thread));
    eb_router_fixture_close(r);
    /* As a kill leaves it: the session is one that sleeps. */
    run_sql(r, "UPDATE message SET state = 'started' WHERE body = '!stop';"
               "UPDATE session SET end_reason = 'crashed'");
    g_hash_table_remove_all(r->chat->archived);
    eb_router_fixture_open(r);
    UNTIL(is_away(r, thread));
    g_assert_null(eb_session_manager_find_record(r->session->manager, "chat", thread, FALSE));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/catchup/first-contact", test_first_contact);
    g_test_add_func("/catchup/empty-channel", test_empty_channel);
    g_test_add_func("/catchup/gap", test_gap);
    g_test_add_func("/catchup/actions-do-not-wait", test_actions_do_not_wait);
    g_test_add_func("/catchup/changed-while-waiting", test_changed_while_waiting);
    g_test_add_func("/catchup/late", test_late);
    g_test_add_func("/catchup/overflow", test_overflow);
    g_test_add_func("/catchup/cap", test_cap);
    g_test_add_func("/catchup/read-fails", test_read_fails);
    g_test_add_func("/catchup/thread-gone", test_thread_gone);
    g_test_add_func("/catchup/restart", test_restart);
    g_test_add_func("/catchup/changed-at-once", test_changed_at_once);
    g_test_add_func("/catchup/stop-over-restart", test_stop_over_restart);
    return g_test_run();
}
