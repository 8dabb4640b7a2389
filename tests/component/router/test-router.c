/* SPDX-License-Identifier: MIT */
/* What people see of the router: threads, roles, commands, reactions, with real sessions behind it. */
#include "eb-router-fixture.h"

#include "core/session/eb-router-private.h"
#include "core/state/eb-transcript.h"

#include <string.h>

static EbRouterFixture *
fixture(const char *settings)
{
    EbRouterFixture *r = eb_router_fixture_new(NULL, settings);
    eb_router_fixture_open(r);
    return r;
}

static gboolean
reacted(EbRouterFixture *r, const char *id, const char *all)
{
    return g_str_equal(eb_fake_service_reaction(r->chat, id), all);
}

static gboolean
told(EbRouterFixture *r, const char *thread, EbChatPostKind kind, const char *part)
{
    g_autofree char *text = eb_fake_service_text(r->chat, thread, kind);
    return strstr(text, part) != NULL;
}

static gboolean
answered(EbRouterFixture *r, const char *id, const char *part)
{
    const char *text = eb_fake_service_answer_to(r->chat, id);
    return text != NULL && strstr(text, part) != NULL;
}

static guint
count_kind(EbRouterFixture *r, const char *thread, EbChatPostKind kind)
{
    guint count = 0;
    for (guint i = 0; i < r->chat->posts->len; i++) {
        const EbChatPost *post = r->chat->posts->pdata[i];
        count += post->kind == kind && g_strcmp0(post->thread, thread) == 0;
    }
    return count;
}

/* Begins a session with @text and waits for its first turn. Returns its thread. */
static const char *
begin(EbRouterFixture *r, const char *text)
{
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, text);
    UNTIL(reacted(r, id, "wait done"));
    UNTIL(count_kind(r, id, EB_CHAT_POST_END) == 1);
    return id;
}

static void
test_opening(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, "web: --agent test say hello\nand more");
    UNTIL(reacted(r, id, "wait done"));
    g_assert_cmpstr(g_hash_table_lookup(r->chat->threads, id), ==, "web: say hello");
    g_assert_true(told(r, id, EB_CHAT_POST_TEXT, "hello and more"));
    g_assert_cmpuint(eb_fake_service_count(r->chat, NULL), ==, 0);
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", id);
    g_assert_cmpstr(eb_session_get_record(session)->project, ==, "web");
    g_assert_cmpstr(eb_session_get_record(session)->owner, ==, OWNER);
    /* A reply goes to the same agent; told twice it is one. */
    const char *reply = eb_fake_service_say(r->chat, id, OWNER, "history");
    eb_fake_service_tell(r->chat, r->chat->history->pdata[r->chat->history->len - 1]);
    UNTIL(reacted(r, reply, "wait done"));
    g_assert_true(told(r, id, EB_CHAT_POST_TEXT, "before: 1"));
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_assert_cmpuint(g_strv_length(prompts), ==, 2);
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_cmpuint(r->chat->n_commands, ==, EB_COMMAND_N - 1);
}

/* Nothing is opened for what cannot be begun, and the person reads why. */
static void
test_opening_refused(void)
{
    static const char *const wrong[][2] = {
        {"--model", "write --model gpt-5 and then"},
        {"web:", "what is to be done in web?"},
        {"--agent nobody do it", "nobody"},
    };
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        const char *id = eb_fake_service_say(r->chat, NULL, OWNER, wrong[i][0]);
        UNTIL(reacted(r, id, "cross"));
        g_assert_true(answered(r, id, wrong[i][1]));
    }
    EbChatMessage *sticker = eb_fake_service_add(r->chat, NULL, OWNER, "");
    sticker->note = g_strdup("a sticker");
    eb_fake_service_tell(r->chat, sticker);
    UNTIL(reacted(r, sticker->id, "cross"));
    g_assert_true(answered(r, sticker->id, "I cannot read a sticker: say it in words"));
    g_assert_cmpuint(r->chat->opened, ==, 0);
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

static void
test_one_project_once(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *first = begin(r, "web: say x");
    const char *second = eb_fake_service_say(r->chat, NULL, FRIEND, "web: say y");
    UNTIL(reacted(r, second, "cross"));
    g_autofree char *link = g_strdup_printf("web has a live session already, in <#%s>", first);
    g_assert_true(answered(r, second, link));
    g_assert_cmpuint(r->chat->opened, ==, 1);
    /* Nor does one that sleeps wake up beside it. */
    eb_fake_service_say(r->chat, first, OWNER, "!stop");
    UNTIL(g_hash_table_contains(r->chat->archived, first));
    const char *next = begin(r, "web: say z");
    g_signal_emit_by_name(r->chat, "thread-state", next, "archived");
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", next) == NULL);
    const char *third = begin(r, "web: say z");
    const char *asleep = eb_fake_service_say(r->chat, next, OWNER, "say more");
    UNTIL(reacted(r, asleep, "cross"));
    g_autofree char *other = g_strdup_printf("web has a live session already, in <#%s>", third);
    g_assert_true(answered(r, asleep, other));
}

/* Whoever may not speak here, and what is not meant for us, meets silence, and leaves no trace. */
static void
test_silence(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    guint posts = r->chat->posts->len;
    const char *ids[] = {
        eb_fake_service_say(r->chat, NULL, BLOCKED, "say x"),
        eb_fake_service_say(r->chat, NULL, STRANGER, "say x"),
        eb_fake_service_say(r->chat, thread, STRANGER, "say x"),
        eb_fake_service_say(r->chat, thread, BLOCKED, "!stop"),
        eb_fake_service_say(r->chat, NULL, STRANGER, "!help"),
        eb_fake_service_say(r->chat, NULL, OWNER, ""),
        eb_fake_service_say(r->chat, NULL, OWNER, "!unknown"),
        eb_fake_service_say(r->chat, thread, OWNER, "!unknown words"),
        eb_fake_service_say(r->chat, NULL, OWNER, "!!! among us"),
        eb_fake_service_say(r->chat, "77777", OWNER, "in a thread that is not ours"),
    };
    EbChatMessage *bot = eb_fake_service_add(r->chat, NULL, OWNER, "I am a bot");
    bot->author_bot = TRUE;
    eb_fake_service_tell(r->chat, bot);
    r->chat->policy.start_on_mention = TRUE;
    const char *unmentioned = eb_fake_service_say(r->chat, NULL, OWNER, "not meant for anybody");
    /* Each is behind the ones before it. */
    EbChatMessage *mention = eb_fake_service_add(r->chat, NULL, OWNER, "say mentioned");
    mention->mentions_us = TRUE;
    eb_fake_service_tell(r->chat, mention);
    UNTIL(reacted(r, mention->id, "wait done"));
    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++)
        g_assert_cmpstr(eb_fake_service_reaction(r->chat, ids[i]), ==, "");
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, unmentioned), ==, "");
    g_assert_cmpuint(r->chat->opened, ==, 2);
    for (guint i = posts; i < r->chat->posts->len; i++)
        g_assert_cmpstr(((EbChatPost *)r->chat->posts->pdata[i])->thread, ==, mention->id);
    const char *help = eb_fake_service_say(r->chat, NULL, OWNER, "!help");
    UNTIL(answered(r, help, "a thread with an agent opens"));
}

static void
test_invitation(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    const char *one = eb_fake_service_say(r->chat, thread, FRIEND, "say let me");
    UNTIL(reacted(r, one, "cross"));
    g_assert_true(answered(r, one, "its owner <@" OWNER "> can let you in with `!allow <@" FRIEND ">`"));
    guint posts = r->chat->posts->len;
    const char *two = eb_fake_service_say(r->chat, thread, FRIEND, "say let me");
    UNTIL(reacted(r, two, "cross"));
    g_assert_cmpuint(r->chat->posts->len, ==, posts);
    const char *denied = eb_fake_service_say(r->chat, thread, FRIEND, "!allow <@" FRIEND ">");
    UNTIL(answered(r, denied, "only the owner"));
    const char *stop = eb_fake_service_say(r->chat, thread, FRIEND, "!stop");
    UNTIL(answered(r, stop, "only the owner"));
    const char *stranger = eb_fake_service_say(r->chat, thread, OWNER, "!allow " STRANGER);
    UNTIL(answered(r, stranger, "may not use this service at all"));
    const char *allow = eb_fake_service_say(r->chat, thread, OWNER, "!allow <@!" FRIEND ">");
    UNTIL(answered(r, allow, "may speak to the agent here from now on"));
    const char *again = eb_fake_service_say(r->chat, thread, OWNER, "!allow <@" FRIEND ">");
    UNTIL(answered(r, again, "may speak here already (guest)"));
    const char *three = eb_fake_service_say(r->chat, thread, FRIEND, "say invited");
    UNTIL(reacted(r, three, "wait done"));
    /* Guests are kept over a restart, and wake the session by posting. */
    eb_router_fixture_restart(r);
    const char *four = eb_fake_service_say(r->chat, thread, FRIEND, "say later");
    UNTIL(reacted(r, four, "wait done"));
    const char *guests = eb_fake_service_say(r->chat, thread, FRIEND, "!guests");
    UNTIL(answered(r, guests, "owner: <@" OWNER ">\n- <@" FRIEND ">"));
    const char *deny = eb_fake_service_command(r->chat, thread, OPERATOR, "deny", "{\"person\":\"" FRIEND "\"}");
    g_autofree char *deny_id = g_strdup(deny);
    UNTIL(answered(r, deny_id, "may not speak to the agent here any more"));
    const char *five = eb_fake_service_say(r->chat, thread, FRIEND, "say out");
    UNTIL(reacted(r, five, "cross"));
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_assert_cmpuint(g_strv_length(prompts), ==, 3);
}

typedef struct {
    const char *text, *part;
} Answer;

static void
test_commands(void)
{
    static const Answer in_thread[] = {
        {"!help", "`!stop`"},
        {"!help stop", "For example: `!stop`"},
        {"!help stopp", "there is no command \"stopp\"; there are:\n"},
        {"!status", "- project: web"},
        {"!agent", "`test` (works here)"},
        {"!interrupt", "nothing runs that could be broken off"},
        {"!steer x", "no turn"},
        {"!queue", "nothing waits"},
        {"!pwd", "the project is `web`"},
        {"!ls", "hello.txt"},
        {"!cat hello.txt", "```\nhi there\n```"},
        {"!cat nothing.txt", "nothing.txt"},
        {"!cat ../../state/state.db", "state.db"},
        {"!file hello.txt", "`hello.txt`"},
        {"!model", "this agent offers no choice"},
        {"!compact", "compact"},
        {"!guests", "nobody was invited"},
        {"!steer", "!steer TEXT lacks something"},
        {"!stop it now", "takes nothing after it"},
    };
    static const Answer in_channel[] = {
        {"!status", "- sessions that run: 1"},
        {"!agent", "- `test`"},
        {"!stop", "belongs into the thread"},
    };
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "web: say x");
    g_autofree char *file = g_build_filename(r->session->dir, "projects", "web", "hello.txt", NULL);
    eb_test_write_file(file, "hi there\n");
    for (gsize i = 0; i < G_N_ELEMENTS(in_thread); i++) {
        const char *id = eb_fake_service_say(r->chat, thread, OWNER, in_thread[i].text);
        g_test_message("%s", in_thread[i].text);
        UNTIL(eb_fake_service_answer_to(r->chat, id) != NULL);
        g_assert_nonnull(strstr(eb_fake_service_answer_to(r->chat, id), in_thread[i].part));
    }
    for (gsize i = 0; i < G_N_ELEMENTS(in_channel); i++) {
        const char *id = eb_fake_service_say(r->chat, NULL, OPERATOR, in_channel[i].text);
        g_test_message("%s", in_channel[i].text);
        UNTIL(answered(r, id, in_channel[i].part));
    }
    const EbChatPost *sent = NULL;
    for (guint i = 0; i < r->chat->posts->len; i++)
        if (((EbChatPost *)r->chat->posts->pdata[i])->files != NULL)
            sent = r->chat->posts->pdata[i];
    g_assert_nonnull(sent);
    EbChatFile *uploaded = sent->files->pdata[0];
    g_assert_cmpstr(uploaded->name, ==, "hello.txt");
    g_assert_cmpuint(g_bytes_get_size(uploaded->bytes), ==, 9);
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

/* The slash forms: the same commands, answered to the action; whoever may not is answered alike. */
static void
test_actions(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "web: say x");
    g_autofree char *status = g_strdup(eb_fake_service_command(r->chat, thread, FRIEND, "status", NULL));
    UNTIL(answered(r, status, "- project: web"));
    g_autofree char *blocked = g_strdup(eb_fake_service_command(r->chat, thread, BLOCKED, "status", NULL));
    UNTIL(answered(r, blocked, "you may not use this here"));
    g_autofree char *stranger = g_strdup(eb_fake_service_command(r->chat, NULL, STRANGER, "stop", NULL));
    UNTIL(answered(r, stranger, "you may not use this here"));
    g_autofree char *elsewhere = g_strdup(eb_fake_service_command(r->chat, NULL, OWNER, "stop", NULL));
    UNTIL(answered(r, elsewhere, "belongs into the thread"));
    g_autofree char *unknown = g_strdup(eb_fake_service_command(r->chat, thread, OWNER, "nonsense", NULL));
    UNTIL(answered(r, unknown, "there is no such command"));
    g_autofree char *then =
        g_strdup(eb_fake_service_command(r->chat, thread, OWNER, "then", "{\"text\":\"say by slash\"}"));
    UNTIL(told(r, thread, EB_CHAT_POST_TEXT, "by slash"));
    g_assert_true(answered(r, then, "the agent gets it when it is done"));
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, then), ==, "");
    g_autofree char *stop = g_strdup(eb_fake_service_command(r->chat, thread, OWNER, "stop", NULL));
    UNTIL(g_hash_table_contains(r->chat->archived, thread));
    g_assert_true(answered(r, stop, "ending the session"));
}

/* B28: a command is for the thread it is given in. */
static void
test_stop(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *other = begin(r, "one: say x");
    const char *thread = begin(r, "two: say x");
    eb_fake_service_say(r->chat, thread, OWNER, "!stop");
    UNTIL(g_hash_table_contains(r->chat->archived, thread));
    g_assert_null(eb_session_manager_find_live(r->session->manager, "chat", thread));
    g_assert_nonnull(eb_session_manager_find_live(r->session->manager, "chat", other));
    g_assert_cmpuint(g_hash_table_size(r->chat->archived), ==, 1);
    /* It is not continued; whoever tries is told once. */
    const char *one = eb_fake_service_say(r->chat, thread, OWNER, "say more");
    UNTIL(reacted(r, one, "cross"));
    g_assert_true(answered(r, one, "is not continued: begin a new one in the channel"));
    const char *two = eb_fake_service_say(r->chat, thread, OWNER, "say more");
    UNTIL(reacted(r, two, "cross"));
    g_assert_null(eb_fake_service_answer_to(r->chat, two));
    /* One that sleeps can be ended as well. */
    eb_router_fixture_restart(r);
    const char *stop = eb_fake_service_say(r->chat, other, OWNER, "!stop");
    UNTIL(answered(r, stop, "the session was ended"));
    UNTIL(g_hash_table_contains(r->chat->archived, other));
    const char *again = eb_fake_service_say(r->chat, other, OWNER, "!stop");
    UNTIL(answered(r, again, "this session was ended"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

static gboolean
agent_has(EbRouterFixture *r, const char *text)
{
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    return g_strv_contains((const char *const *)prompts, text);
}

static void
test_changes(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    const char *gate = eb_fake_service_say(r->chat, thread, OWNER, "gate open");
    UNTIL(agent_has(r, "gate open"));
    const char *edited = eb_fake_service_say(r->chat, thread, OWNER, "say draft");
    const char *then = eb_fake_service_say(r->chat, thread, OWNER, "!then say another draft");
    const char *gone = eb_fake_service_say(r->chat, thread, OWNER, "say nothing");
    const char *queue = eb_fake_service_say(r->chat, thread, OWNER, "!queue");
    UNTIL(answered(r, queue, "3. <@" OWNER ">: `say nothing`"));
    eb_fake_service_edit(r->chat, edited, "say final");
    eb_fake_service_edit(r->chat, then, "!then say finally");
    eb_fake_service_withdraw(r->chat, gone);
    eb_fake_service_edit(r->chat, gate, "gate other");
    UNTIL(told(r, thread, EB_CHAT_POST_NOTICE, "the agent has that message already, as it was before"));
    eb_fake_service_withdraw(r->chat, gate);
    UNTIL(told(r, thread, EB_CHAT_POST_NOTICE, "was taken back, but this agent cannot be told"));
    eb_router_fixture_open_gate(r, "open");
    UNTIL(reacted(r, edited, "wait done"));
    UNTIL(reacted(r, then, "wait done"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_true(agent_has(r, "say final"));
    g_assert_true(agent_has(r, "say finally"));
    g_assert_false(agent_has(r, "say nothing"));
    g_assert_false(agent_has(r, "say draft"));
}

static void
test_interrupt(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    const char *wait = eb_fake_service_say(r->chat, thread, OWNER, "wait");
    UNTIL(told(r, thread, EB_CHAT_POST_TEXT, "waiting") || agent_has(r, "wait"));
    const char *interrupt = eb_fake_service_say(r->chat, thread, OWNER, "!interrupt");
    UNTIL(reacted(r, wait, "wait stop"));
    g_assert_true(answered(r, interrupt, "breaking off"));
    const char *crash = eb_fake_service_say(r->chat, thread, OWNER, "crash");
    UNTIL(reacted(r, crash, "wait cross"));
    const char *retry = eb_fake_service_say(r->chat, thread, OWNER, "say again");
    UNTIL(reacted(r, retry, "wait done"));
}

static void
test_aside(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    const char *aside = eb_fake_service_say(r->chat, thread, FRIEND, "!!! lunch?");
    UNTIL(reacted(r, aside, "done"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_assert_false(agent_has(r, "lunch?"));
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", thread);
    g_auto(EbTestResult) done = {0};
    eb_transcript_read_async(r->session->manager->parts->store, eb_session_get_record(session)->id, NULL,
                             eb_test_result_ready, &done);
    g_autoptr(GPtrArray) events =
        eb_transcript_read_finish(r->session->manager->parts->store, eb_test_result_wait(&done), NULL);
    guint found = 0;
    for (guint i = 0; i < events->len; i++) {
        g_autofree char *text = eb_json_write(events->pdata[i], NULL);
        found += strstr(text, "lunch?") != NULL && strstr(text, "\"aside\"") != NULL && strstr(text, FRIEND) != NULL;
    }
    g_assert_cmpuint(found, ==, 1);
}

/* A question is answered in words by who may, and by nobody else. */
static void
test_answers(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    const char *ask = eb_fake_service_say(r->chat, thread, OWNER, "ask");
    UNTIL(r->chat->asking->len == 1);
    const char *friend = eb_fake_service_say(r->chat, thread, FRIEND, "1");
    UNTIL(reacted(r, friend, "cross"));
    const char *unclear = eb_fake_service_say(r->chat, thread, OWNER, "7");
    UNTIL(eb_router_fixture_count_open(r) == 1);
    g_assert_cmpstr(eb_fake_service_reaction(r->chat, unclear), ==, "");
    eb_fake_service_say(r->chat, thread, OWNER, "allow");
    UNTIL(reacted(r, ask, "wait done"));
    g_assert_true(told(r, thread, EB_CHAT_POST_TEXT, "outcome yes"));
    g_assert_false(agent_has(r, "allow"));
    g_assert_false(agent_has(r, "7"));
}

static void
test_thread_states(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    guint posts = r->chat->posts->len;
    g_hash_table_add(r->chat->archived, g_strdup(thread));
    g_signal_emit_by_name(r->chat, "thread-state", thread, "archived");
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", thread) == NULL);
    g_assert_cmpuint(r->chat->posts->len, ==, posts);
    g_assert_true(g_hash_table_contains(r->chat->archived, thread));
    const char *more = eb_fake_service_say(r->chat, thread, OWNER, "history");
    UNTIL(reacted(r, more, "wait done"));
    g_assert_true(told(r, thread, EB_CHAT_POST_TEXT, "before: 1"));
    /* A thread somebody deleted takes its session with it, and nothing else. */
    const char *other = begin(r, "say y");
    g_hash_table_remove(r->chat->threads, thread);
    g_signal_emit_by_name(r->chat, "thread-state", thread, "deleted");
    UNTIL(eb_session_manager_find_live(r->session->manager, "chat", thread) == NULL);
    const char *on = eb_fake_service_say(r->chat, other, OWNER, "say on");
    UNTIL(reacted(r, on, "wait done"));
}

/* A chat that opens no thread for a while keeps nobody's prompt; one that never will says so. */
static void
test_no_thread(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    GError *busy = eb_error_new(EB_ERROR_QUOTA, "fake.threads", "too many threads are open");
    eb_error_set_retry(busy, 1);
    g_ptr_array_add(r->chat->open_errors, busy);
    const char *id = eb_fake_service_say(r->chat, NULL, OWNER, "say at last");
    UNTIL(reacted(r, id, "wait done"));
    g_assert_true(answered(r, id, "no thread can be opened just now (too many threads are open): I try again"));
    g_assert_true(told(r, id, EB_CHAT_POST_TEXT, "at last"));
    g_assert_cmpuint(r->chat->opened, ==, 2);
    g_ptr_array_add(r->chat->open_errors, eb_error_new(EB_ERROR_DENIED, "fake.denied", "threads are forbidden here"));
    const char *no = eb_fake_service_say(r->chat, NULL, OWNER, "say no");
    UNTIL(reacted(r, no, "wait cross"));
    g_assert_true(answered(r, no, "no thread could be opened: threads are forbidden here"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
}

/* What is changed or taken back while its thread is being opened. */
static void
test_changed_while_opening(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    r->chat->late_to_open = TRUE;
    const char *edited = eb_fake_service_say(r->chat, NULL, OWNER, "web: say draft");
    g_autofree char *gone = g_strdup(eb_fake_service_say(r->chat, NULL, OWNER, "say nothing"));
    UNTIL(r->chat->held_opens->len == 2);
    eb_fake_service_edit(r->chat, edited, "web: say final");
    eb_fake_service_withdraw(r->chat, gone);
    eb_fake_service_release(r->chat);
    UNTIL(reacted(r, edited, "wait done"));
    UNTIL(eb_router_fixture_count_open(r) == 0);
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_autofree char *all = g_strjoinv("|", prompts);
    g_assert_cmpstr(all, ==, "say final");
    g_assert_null(eb_session_manager_find_live(r->session->manager, "chat", gone));
}

static char *
read_transcript(EbRouterFixture *r, const char *thread)
{
    EbStore *store = r->session->manager->parts->store;
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", thread);
    g_auto(EbTestResult) done = {0};
    eb_session_flush_log(session);
    eb_transcript_read_async(store, eb_session_get_record(session)->id, NULL, eb_test_result_ready, &done);
    g_autoptr(GPtrArray) events = eb_transcript_read_finish(store, eb_test_result_wait(&done), NULL);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < events->len; i++) {
        g_autofree char *text = eb_json_write(events->pdata[i], NULL);
        g_string_append_printf(all, "%s\n", text);
    }
    return g_string_free(g_steal_pointer(&all), FALSE);
}

/* A message that is deleted leaves its place in the transcript, and none of its words. */
static void
test_withdrawn_words(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    g_autofree char *gone = g_strdup(eb_fake_service_say(r->chat, thread, OWNER, "env my-secret-plan"));
    UNTIL(reacted(r, gone, "wait done"));
    g_autofree char *before = read_transcript(r, thread);
    g_assert_nonnull(strstr(before, "my-secret-plan"));
    eb_fake_service_withdraw(r->chat, gone);
    g_autofree char *after = NULL;
    do {
        g_free(after);
        after = read_transcript(r, thread);
    } while (strstr(after, "my-secret-plan") != NULL); /* the test's own timeout ends it */
    g_assert_nonnull(strstr(after, "\"withdrawn\":true"));
    g_assert_nonnull(strstr(after, "say x"));
}

/* Whom it tells is kept for so many, then it is begun anew. */
static void
test_told_bound(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    g_strfreev(r->chat->policy.allowed);
    r->chat->policy.allowed = g_strsplit("*", ",", 0);
    const char *thread = begin(r, "say x");
    for (guint i = 0; i <= EB_ROUTER_MAX_TOLD; i++) {
        g_autofree char *author = g_strdup_printf("%u", 20000 + i);
        const char *id = eb_fake_service_say(r->chat, thread, author, "say let me");
        if (i % 50 == 0 || i == EB_ROUTER_MAX_TOLD)
            UNTIL(reacted(r, id, "cross"));
    }
    const char *first = eb_fake_service_say(r->chat, thread, "20000", "say let me");
    UNTIL(reacted(r, first, "cross"));
    g_assert_true(answered(r, first, "you are not invited"));
    const char *again = eb_fake_service_say(r->chat, thread, "20000", "say let me");
    UNTIL(reacted(r, again, "cross"));
    g_assert_null(eb_fake_service_answer_to(r->chat, again));
}

static EbChatMessage *
add_file(EbRouterFixture *r, const char *id, const char *name, const char *content)
{
    EbChatMessage *message = eb_fake_service_add(r->chat, NULL, OWNER, "");
    eb_chat_message_add_attachment(message, id, name, "text/plain", content != NULL ? strlen(content) : 10, NULL);
    if (content != NULL)
        g_hash_table_replace(r->chat->files, g_strdup(id), g_strdup(content));
    return message;
}

/* Files alone are a prompt, whose thread is named after them; one that is missing is told of. */
static void
test_files_alone(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    EbChatMessage *message = add_file(r, "5", "plan.pdf", "the plan");
    eb_fake_service_tell(r->chat, message);
    UNTIL(reacted(r, message->id, "wait done"));
    g_assert_cmpstr(g_hash_table_lookup(r->chat->threads, message->id), ==, "plan.pdf");
    EbChatMessage *gone = add_file(r, "6", "gone.pdf", NULL);
    eb_fake_service_tell(r->chat, gone);
    UNTIL(told(r, gone->id, EB_CHAT_POST_NOTICE, "gone.pdf"));
    g_auto(GStrv) prompts = eb_router_fixture_prompts(r);
    g_autofree char *all = g_strjoinv("|", prompts);
    g_assert_nonnull(strstr(all, "attachments/plan.pdf"));
}

/* A text that the chat made a file of, because it was long, is read as if it had been written. */
static void
test_pasted(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    EbChatMessage *message = add_file(r, "5", "message.txt", "web: --agent test say all of this");
    eb_fake_service_tell(r->chat, message);
    UNTIL(reacted(r, message->id, "wait done"));
    g_assert_cmpstr(g_hash_table_lookup(r->chat->threads, message->id), ==, "web: say all of this");
    g_assert_true(agent_has(r, "say all of this"));
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", message->id);
    g_assert_cmpstr(eb_session_get_record(session)->project, ==, "web");
    /* One that cannot be had is a file like any other. */
    EbChatMessage *gone = add_file(r, "6", "message.txt", NULL);
    eb_fake_service_tell(r->chat, gone);
    UNTIL(told(r, gone->id, EB_CHAT_POST_NOTICE, "message.txt"));
    g_assert_cmpstr(g_hash_table_lookup(r->chat->threads, gone->id), ==, "message.txt");
    EbChatMessage *wrong = add_file(r, "7", "message.txt", "--modle x and so on");
    eb_fake_service_tell(r->chat, wrong);
    UNTIL(reacted(r, wrong->id, "cross"));
    g_assert_true(answered(r, wrong->id, "there is no --modle here"));
}

/* B33: a session that is stuck keeps no other from beginning, and its people can end it. */
static void
test_stuck_neighbour(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *stuck = eb_fake_service_say(r->chat, NULL, OWNER, "deaf");
    UNTIL(agent_has(r, "deaf"));
    const char *other = begin(r, "say fine");
    g_assert_true(told(r, other, EB_CHAT_POST_TEXT, "fine"));
    const char *help = eb_fake_service_say(r->chat, stuck, OWNER, "!help");
    UNTIL(answered(r, help, "`!stop`"));
    eb_fake_service_say(r->chat, stuck, OWNER, "!stop");
    UNTIL(g_hash_table_contains(r->chat->archived, stuck));
    g_assert_cmpuint(eb_fake_backend_count(r->session->backend), ==, 1);
}

/* B47: a session whose directories are gone can still be asked about and ended. */
static void
test_lost_state(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = begin(r, "say x");
    g_autofree char *state = g_build_filename(r->session->dir, "state", "sessions", NULL);
    eb_test_remove_tree(state);
    const char *help = eb_fake_service_say(r->chat, thread, OWNER, "!help");
    UNTIL(answered(r, help, "`!stop`"));
    const char *stop = eb_fake_service_say(r->chat, thread, OWNER, "!stop");
    UNTIL(answered(r, stop, "ending the session"));
    UNTIL(g_hash_table_contains(r->chat->archived, thread));
    const char *fresh = begin(r, "say y");
    g_assert_true(told(r, fresh, EB_CHAT_POST_TEXT, "y"));
}

/* B18: ten at once wait their turn, each hears where it stands, all are done. */
static void
test_ten_at_once(void)
{
    g_autoptr(EbRouterFixture) r = fixture("[limits]\nmax_live_sessions = 10\nmax_concurrent_turns = 1\n");
    const char *ids[10];
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        ids[i] = eb_fake_service_say(r->chat, NULL, OWNER, "gate open");
    guint waiting;
    do {
        g_main_context_iteration(NULL, FALSE);
        waiting = 0;
        for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
            waiting += told(r, ids[i], EB_CHAT_POST_NOTICE, "waiting for a free turn, position");
    } while (waiting < G_N_ELEMENTS(ids) - 1);
    eb_router_fixture_open_gate(r, "open");
    for (guint i = 0; i < G_N_ELEMENTS(ids); i++)
        UNTIL(reacted(r, ids[i], "wait done"));
}

/* While a session ends, so much is kept for it and no more. */
static void
test_held(void)
{
    g_autoptr(EbRouterFixture) r = fixture(NULL);
    const char *thread = eb_fake_service_say(r->chat, NULL, OWNER, "deaf");
    UNTIL(agent_has(r, "deaf"));
    EbSession *session = eb_session_manager_find_live(r->session->manager, "chat", thread);
    eb_session_end(session, EB_SESSION_END_IDLE, NULL);
    const char *last = NULL;
    for (guint i = 0; i <= EB_ROUTER_MAX_HELD; i++)
        last = eb_fake_service_say(r->chat, thread, OWNER, "say later");
    UNTIL(reacted(r, last, "cross"));
    g_assert_true(answered(r, last, "the session here is just ending"));
    UNTIL(agent_has(r, "say later"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/router/opening", test_opening);
    g_test_add_func("/router/opening-refused", test_opening_refused);
    g_test_add_func("/router/one-project-once", test_one_project_once);
    g_test_add_func("/router/silence", test_silence);
    g_test_add_func("/router/invitation", test_invitation);
    g_test_add_func("/router/commands", test_commands);
    g_test_add_func("/router/actions", test_actions);
    g_test_add_func("/router/stop", test_stop);
    g_test_add_func("/router/changes", test_changes);
    g_test_add_func("/router/interrupt", test_interrupt);
    g_test_add_func("/router/aside", test_aside);
    g_test_add_func("/router/answers", test_answers);
    g_test_add_func("/router/thread-states", test_thread_states);
    g_test_add_func("/router/no-thread", test_no_thread);
    g_test_add_func("/router/files-alone", test_files_alone);
    g_test_add_func("/router/changed-while-opening", test_changed_while_opening);
    g_test_add_func("/router/withdrawn-words", test_withdrawn_words);
    g_test_add_func("/router/told-bound", test_told_bound);
    g_test_add_func("/router/pasted", test_pasted);
    g_test_add_func("/router/stuck-neighbour", test_stuck_neighbour);
    g_test_add_func("/router/lost-state", test_lost_state);
    g_test_add_func("/router/ten-at-once", test_ten_at_once);
    g_test_add_func("/router/held", test_held);
    return g_test_run();
}
