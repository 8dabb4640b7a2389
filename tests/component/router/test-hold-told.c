/* SPDX-License-Identifier: MIT */
/* What people see while no new sessions are taken. */
#include "eb-router-fixture.h"

#include "core/session/eb-session-hold.h"
#include "core/session/eb-session-manager-private.h"

#include <string.h>

static gboolean
told(EbRouterFixture *r, const char *thread, EbChatPostKind kind, const char *part)
{
    g_autofree char *text = eb_fake_service_text(r->chat, thread, kind);
    return strstr(text, part) != NULL;
}

static gboolean
reacted(EbRouterFixture *r, const char *id, const char *all)
{
    return g_str_equal(eb_fake_service_reaction(r->chat, id), all);
}

static guint
count_notices(EbRouterFixture *r, const char *thread, const char *part)
{
    guint count = 0;
    for (guint i = 0; i < r->chat->posts->len; i++) {
        const EbChatPost *post = r->chat->posts->pdata[i];
        count += post->kind == EB_CHAT_POST_NOTICE && g_strcmp0(post->thread, thread) == 0 && post->text != NULL &&
                 strstr(post->text, part) != NULL;
    }
    return count;
}

static void
hold(EbRouterFixture *r, EbHoldSource source, const char *why)
{
    g_autoptr(GError) error = why != NULL ? eb_error_new(EB_ERROR_QUOTA, "test.why", "%s", why) : NULL;
    eb_session_manager_set_hold(r->session->manager, source, error);
}

static void
test_refused_and_told(void)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(NULL, NULL);
    eb_router_fixture_open(r);
    const char *live = eb_fake_service_say(r->chat, NULL, OWNER, "web: say hello");
    UNTIL(reacted(r, live, "wait done"));
    const char *asleep = eb_fake_service_say(r->chat, NULL, OWNER, "docs: say hello");
    UNTIL(reacted(r, asleep, "wait done"));
    eb_session_end(eb_session_manager_find_live(r->session->manager, "chat", asleep), EB_SESSION_END_IDLE, NULL);
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", asleep) == NULL);
    guint threads = g_hash_table_size(r->chat->threads);

    hold(r, EB_HOLD_SPACE, "200 MB are free, 1 GiB is needed");
    hold(r, EB_HOLD_DOCTOR, "E-11 incusd runs: nobody listens");
    /* No thread for what is refused; the reason stands where it was asked. */
    const char *fresh = eb_fake_service_say(r->chat, NULL, OWNER, "app: say hello");
    UNTIL(reacted(r, fresh, "cross"));
    UNTIL(told(r, NULL, EB_CHAT_POST_ERROR,
               "no session can start just now: 200 MB are free, 1 GiB is needed; E-11 incusd runs: nobody listens"));
    g_assert_cmpuint(g_hash_table_size(r->chat->threads), ==, threads);
    const char *again = eb_fake_service_say(r->chat, asleep, OWNER, "say again");
    UNTIL(reacted(r, again, "cross"));
    UNTIL(told(r, asleep, EB_CHAT_POST_ERROR, "no session can start just now"));
    /* What runs goes on, and hears of it once. */
    const char *more = eb_fake_service_say(r->chat, live, OWNER, "say more");
    UNTIL(reacted(r, more, "wait done"));
    UNTIL(told(r, live, EB_CHAT_POST_NOTICE, "new sessions are paused: 200 MB are free"));
    g_assert_true(told(r, live, EB_CHAT_POST_NOTICE, "This one goes on."));

    hold(r, EB_HOLD_DOCTOR, NULL);
    g_assert_false(eb_session_manager_check_hold(r->session->manager, NULL));
    hold(r, EB_HOLD_SPACE, NULL);
    const char *last = eb_fake_service_say(r->chat, asleep, OWNER, "say last");
    UNTIL(reacted(r, last, "wait done"));
    UNTIL(count_notices(r, live, "new sessions can start again") == 1);
    g_assert_cmpuint(count_notices(r, live, "new sessions are paused"), ==, 1);
    /* Where somebody was refused it is told too, but for what is live again by itself. */
    UNTIL(count_notices(r, NULL, "new sessions can start again") == 1);
    g_assert_cmpuint(count_notices(r, asleep, "can start again"), ==, 0);
}

/* What had its thread before it began waits, and starts when it is over. */
static void
test_queue_waits(void)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(NULL, "[limits]\nmax_live_sessions = 1\n");
    eb_router_fixture_open(r);
    const char *first = eb_fake_service_say(r->chat, NULL, OWNER, "web: say hello");
    UNTIL(reacted(r, first, "wait done"));
    const char *second = eb_fake_service_say(r->chat, NULL, OWNER, "docs: say hello");
    UNTIL(told(r, second, EB_CHAT_POST_NOTICE, "waiting for a free session"));
    r->chat->late_to_open = TRUE;
    const char *third = eb_fake_service_say(r->chat, NULL, OWNER, "app: say hello");
    UNTIL(r->chat->held_opens->len == 1);

    hold(r, EB_HOLD_WATCHDOG, "incusd does not answer");
    eb_fake_service_release(r->chat);
    eb_session_end(eb_session_manager_find_live(r->session->manager, "chat", first), EB_SESSION_END_IDLE, NULL);
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", first) == NULL);
    UNTIL(told(r, second, EB_CHAT_POST_NOTICE, "This one starts when that is over."));
    UNTIL(told(r, third, EB_CHAT_POST_NOTICE, "This one starts when that is over."));
    g_assert_true(reacted(r, second, "wait"));

    hold(r, EB_HOLD_WATCHDOG, NULL);
    UNTIL(reacted(r, second, "wait done"));
    eb_session_end(eb_session_manager_find_live(r->session->manager, "chat", second), EB_SESSION_END_IDLE, NULL);
    UNTIL(reacted(r, third, "wait done"));
}

/* Nobody waits for ever: the queue's own limit ends it, with the reason. */
static void
test_queue_gives_up(void)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(NULL, "[limits]\nmax_queue_wait = \"1s\"\n");
    eb_router_fixture_open(r);
    r->chat->late_to_open = TRUE;
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, "web: say hello");
    UNTIL(r->chat->held_opens->len == 1);
    hold(r, EB_HOLD_WATCHDOG, "incusd does not answer");
    eb_fake_service_release(r->chat);
    UNTIL(told(r, id, EB_CHAT_POST_ERROR, "waited 1 s for a free session and gave up: incusd does not answer"));
    UNTIL(reacted(r, id, "wait cross"));
}

/* However many places there are where people were refused, so many are told. */
static void
test_many_refused(void)
{
    g_autoptr(EbRouterFixture) r = eb_router_fixture_new(NULL, NULL);
    eb_router_fixture_open(r);
    hold(r, EB_HOLD_WATCHDOG, "incusd does not answer");
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, "web: say hello");
    UNTIL(reacted(r, id, "cross"));
    for (guint i = 0; i < 2 * EB_HOLD_MAX_REFUSED; i++) {
        g_autofree char *thread = g_strdup_printf("thread-%u", i);
        eb_session_manager_note_refused(r->session->manager, "chat", thread);
        g_hash_table_replace(r->chat->threads, g_strdup(thread), g_strdup(thread));
    }
    UNTIL(eb_session_hold_is_told(r->session->manager->hold));
    guint before = r->chat->posts->len;
    hold(r, EB_HOLD_WATCHDOG, NULL);
    UNTIL(count_notices(r, NULL, "new sessions can start again") == 1);
    UNTIL(r->chat->posts->len == before + EB_HOLD_MAX_REFUSED);
    eb_test_drain();
    g_assert_cmpuint(r->chat->posts->len, ==, before + EB_HOLD_MAX_REFUSED);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/hold-told/refused-and-told", test_refused_and_told);
    g_test_add_func("/hold-told/queue-waits", test_queue_waits);
    g_test_add_func("/hold-told/queue-gives-up", test_queue_gives_up);
    g_test_add_func("/hold-told/many-refused", test_many_refused);
    return g_test_run();
}
