/* SPDX-License-Identifier: MIT */
/* What the service says: posts, threads, reactions; how it starts and ends. */
#include "discord-post.h"
#include "transport-fixture.h"

#include <string.h>

#define ACCEPTED "\u23f3"
#define DONE "\u2705"

/* --- start and end --- */

static void
test_start(Fixture *fixture, gconstpointer data)
{
    EbChatLimits limits = {0};
    EbChatCaps caps = eb_chat_transport_get_caps(EB_CHAT_TRANSPORT(fixture->transport), &limits);

    g_assert_cmpint(caps & EB_CHAT_CAP_STREAM, ==, 0);
    g_assert_cmpint(caps & EB_CHAT_CAP_HISTORY, !=, 0);
    g_assert_cmpuint(limits.max_text_units, ==, 2000);
    g_assert_true(limits.patient);
    g_autofree char *safe = limits.prepare("@everyone");
    g_assert_cmpstr(safe, !=, "@everyone");
    g_assert_cmpstr(fixture->policy->allowed[0], ==, DISCORD_STANDIN_ALICE);
    g_assert_cmpuint(fixture_count_told(fixture, "^connection up connected$"), ==, 1);
    /* Commands are offered once somebody says which. */
    fixture_wait_count(fixture, 2, "commands", "{}");
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^identify$\"}"), ==, 1);
}

static void
test_bad_token(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(fixture_start(fixture, "mock-of-somebody-else", &error));
    eb_test_assert_error(error, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", NULL);
    g_assert_null(strstr(error->message, "mock-of-somebody-else"));
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^connect$\"}"), ==, 0);
}

/* Without the variable this would go to Discord itself; with it, a token that may be real is refused. */
static void
test_real_token(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(fixture_start(fixture, "MTE4MDAwMDAw.Gabcde.abcdef", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.mock-url", NULL);
    g_assert_cmpuint(fixture_count(fixture, "requests", "{}"), ==, 0);
}

static void
test_no_channel(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) answer = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", FIXTURE_CHANNEL);

    g_assert_false(fixture_start(fixture, FIXTURE_TOKEN, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "discord.no-channel", FIXTURE_CHANNEL);
}

/* The gateway refuses what only an operator can change: the start says what. */
static void
test_gateway_refuses(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) strict = fixture_call(fixture, "gateway-config", "{\"identify\":\"4014\"}");

    g_assert_false(fixture_start(fixture, FIXTURE_TOKEN, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "Message Content");
    eb_test_run_for(300);
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^identify$\"}"), ==, 1);
}

/* An outage is no reason not to start: it goes on trying, and works when Discord is back. */
static void
test_outage(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) answer = fixture_call(fixture, "fault", "{\"kind\":\"500\",\"count\":1000}");

    discord_transport_set_start_ms(fixture->transport, 300);
    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    g_assert_no_error(error);
    fixture_attach(fixture);
    fixture_wait_told(fixture, "^connection down ");
    g_autoptr(JsonObject) cleared = fixture_call(fixture, "clear-faults", "{}");
    fixture_wait_told(fixture, "^connection up ");
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 0);
}

/* What waits is sent before the end, and the session is left so that it can be resumed. */
static void
test_stop(Fixture *fixture, gconstpointer data)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, "last words");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    post->final = TRUE;
    eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, eb_test_result_ready, &done);
    fixture_stop(fixture);
    g_autofree char *id =
        eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"text\":\"^last words$\"}"), ==, 1);
    /* Said while we are away: told after the restart, without a new session. */
    g_autofree char *missed = fixture_say(fixture, NULL, "while you were out");
    fixture_make_transport(fixture);
    fixture_forget_told(fixture);
    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    fixture_attach(fixture);
    fixture_wait_told(fixture, "^message - [0-9]+ while you were out$");
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^identify$\"}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^resume$\"}"), ==, 1);
}

/* --- posts --- */

static void
test_post(Fixture *fixture, gconstpointer data)
{
    g_autofree char *question = fixture_say(fixture, NULL, "hello");
    g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_ERROR, "it did not work");
    g_autoptr(GError) error = NULL;

    post->final = TRUE;
    post->reply_to = g_strdup(question);
    g_autofree char *id = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(
        fixture_count(fixture, "messages", "{\"id\":\"%s\",\"text\":\"^\u26a0\ufe0f it did not work$\"}", id), ==, 1);
    /* Answering what is gone is an answer all the same. */
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", question);
    g_autofree char *other = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(other, !=, id);
    /* Our own words come back by the gateway, and are none of somebody's. */
    g_autofree char *seen = g_strdup_printf("^seen - %s$", other);
    fixture_wait_told(fixture, seen);
    g_assert_cmpuint(fixture_count_told(fixture, "^message .*did not work"), ==, 0);
}

static void
test_edit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *first = fixture_text(fixture, NULL, "block", "one");
    g_autofree char *second = fixture_text(fixture, NULL, "block", "one, two");
    g_autofree char *other = fixture_text(fixture, NULL, "else", "other");

    g_assert_cmpstr(second, ==, first);
    g_assert_cmpstr(other, !=, first);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^one, two$\"}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^one$\"}"), ==, 0);
    /* Somebody deletes it: the next change is said anew. */
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", first);
    g_autofree char *third = fixture_text(fixture, NULL, "block", "one, two, three");
    g_assert_cmpstr(third, !=, first);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"text\":\"^one, two, three$\"}"), ==, 1);
}

/* Changes that come before the message is there find it. */
static void
test_edit_at_once(Fixture *fixture, gconstpointer data)
{
    EbTestResult done[3] = {0};
    g_autofree char *last = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *text = g_strdup_printf("state %u", i);
        g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, text);
        post->key = g_strdup("block");
        eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, eb_test_result_ready, &done[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *id =
            eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        if (last != NULL)
            g_assert_cmpstr(id, ==, last);
        g_free(last);
        last = g_steal_pointer(&id);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^state 2$\"}"), ==, 1);
}

/* Somebody deletes the message while changes of it are on their way: it is said anew, once. */
static void
test_edit_deleted(Fixture *fixture, gconstpointer data)
{
    g_autofree char *first = fixture_text(fixture, NULL, "block", "one");
    EbTestResult done[4] = {0};
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", first);

    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *text = g_strdup_printf("state %u", i);
        g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, text);
        g_autoptr(EbChatPost) other = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, "between");
        post->key = g_strdup("block");
        eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, eb_test_result_ready, &done[i]);
        /* Something in between, so that the changes are not made one. */
        other->key = g_strdup("other");
        eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), other, NULL, NULL, NULL);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *id =
            eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        g_assert_cmpstr(id, !=, first);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^state\"}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^state 3$\"}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\",\"text\":\"^between$\"}"), ==, 1);
}

static void
retract(Fixture *fixture, const char *key)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_NOTICE, "");
    g_autoptr(GError) error = NULL;

    post->key = g_strdup(key);
    post->retract = TRUE;
    g_autofree char *id = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
}

static void
test_retract(Fixture *fixture, gconstpointer data)
{
    g_autofree char *id = fixture_text(fixture, NULL, "waiting", "waiting, position 2");
    g_autofree char *other = fixture_text(fixture, NULL, "second", "waiting, position 3");

    retract(fixture, "waiting");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, 1);
    retract(fixture, "waiting");
    retract(fixture, "never there");
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", other);
    retract(fixture, "second");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, 0);
}

static void
test_notify(Fixture *fixture, gconstpointer data)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(
        NULL, EB_CHAT_POST_END, "@everyone <@" DISCORD_STANDIN_CAROL "> <@&" DISCORD_STANDIN_BOT_ROLE "> done");
    g_autoptr(GError) error = NULL;

    post->notify = g_strdup(DISCORD_STANDIN_BOB);
    post->final = TRUE;
    g_autofree char *id = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    g_autofree char *quiet = fixture_text(fixture, NULL, NULL, "@here <@" DISCORD_STANDIN_BOB ">");
    g_assert_cmpuint(fixture_count(fixture, "pings", "{}"), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"text\":\"^<@%s> @everyone\"}", DISCORD_STANDIN_BOB), ==, 1);
}

static void
test_long(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = g_strnfill(5000, 'x');
    g_autofree char *id = fixture_text(fixture, NULL, NULL, text);

    g_assert_cmpuint(
        fixture_count(fixture, "messages", "{\"id\":\"%s\",\"text\":\"3060 more characters did not fit\"}", id), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "refusals", "{}"), ==, 0);
}

static void
test_empty(Fixture *fixture, gconstpointer data)
{
    g_autofree char *id = fixture_text(fixture, NULL, NULL, " \n ");

    g_assert_cmpstr(id, ==, "");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"author\":\"bot\"}"), ==, 0);
}

static void
test_files(Fixture *fixture, gconstpointer data)
{
    g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_FILE, "here");
    g_autoptr(GBytes) bytes = g_bytes_new_static("line\n", 5);
    g_autoptr(GError) error = NULL;

    post->final = TRUE;
    post->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(post->files, eb_chat_file_new("a.txt", "text/plain", bytes));
    g_ptr_array_add(post->files, eb_chat_file_new("b.txt", "text/plain", bytes));
    g_autofree char *id = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"id\":\"%s\",\"attachments\":true}", id), ==, 1);
    for (guint i = 0; i < 10; i++)
        g_ptr_array_add(post->files, eb_chat_file_new("more.txt", "text/plain", bytes));
    g_assert_null(fixture_post(fixture, post, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.files", "12 files");
}

static void
test_busy(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "work");
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_BUSY, "");
    g_autoptr(GError) error = NULL;

    post->data = json_object_new();
    json_object_set_boolean_member(post->data, "busy", TRUE);
    g_autofree char *id = fixture_post(fixture, post, &error);
    g_autofree char *again = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    fixture_wait_count(fixture, 1, "threads", "{\"id\":\"%s\",\"typing\":1}", thread);
    fixture_wait_count(fixture, 1, "threads", "{\"id\":\"%s\",\"typing\":2}", thread);
    json_object_set_boolean_member(post->data, "busy", FALSE);
    g_autofree char *end = fixture_post(fixture, post, &error);
    g_assert_cmpstr(end, ==, "");
}

/* --- threads --- */

static char *
open_thread(Fixture *fixture, const char *message, const char *title, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_open_thread_async(EB_CHAT_TRANSPORT(fixture->transport), message, title, NULL,
                                        eb_test_result_ready, &done);
    return eb_chat_transport_open_thread_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done),
                                                error);
}

static void
test_threads(Fixture *fixture, gconstpointer data)
{
    g_autofree char *message = fixture_say(fixture, NULL, "site: make it blue");
    g_autoptr(GError) error = NULL;
    g_autofree char *thread = open_thread(fixture, message, "site:\\nmake it blue", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(thread, ==, message);
    /* Once more, as after a kill: the thread that is there. */
    g_autofree char *again = open_thread(fixture, message, "site: make it blue", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(again, ==, message);
    g_assert_cmpuint(fixture_count(fixture, "threads", "{}"), ==, 1);
    /* The message is deleted before its thread is made. */
    g_autofree char *hasty = fixture_say(fixture, NULL, "never mind");
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", hasty);
    g_autofree char *alone = open_thread(fixture, hasty, "never mind", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(alone, !=, hasty);
    g_assert_cmpuint(fixture_count(fixture, "threads", "{\"id\":\"%s\"}", alone), ==, 1);
    g_autofree char *said = fixture_text(fixture, alone, NULL, "here all the same");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"channel\":\"%s\",\"author\":\"bot\"}", alone), ==, 1);
}

/* Whoever waits for a thread hears why, and gets it. */
static void
test_thread_limit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *message = fixture_say(fixture, NULL, "wait for me");
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) fault =
        fixture_call(fixture, "fault",
                     "{\"method\":\"POST\",\"path\":\"/threads$\",\"kind\":\"429-user\",\"count\":1,\"seconds\":6}");
    g_autofree char *thread = open_thread(fixture, message, "wait for me", &error);

    g_assert_no_error(error);
    g_assert_cmpstr(thread, ==, message);
    g_assert_cmpuint(fixture_count(fixture, "messages",
                                   "{\"channel\":\"%s\",\"author\":\"bot\",\"text\":\"open a thread\"}",
                                   FIXTURE_CHANNEL),
                     ==, 1);
}

static gboolean
close_thread(Fixture *fixture, const char *thread, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_close_thread_async(EB_CHAT_TRANSPORT(fixture->transport), thread, NULL, eb_test_result_ready,
                                         &done);
    return eb_chat_transport_close_thread_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done),
                                                 error);
}

static void
test_close(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "short");
    g_autofree char *said = fixture_text(fixture, thread, NULL, "bye");
    g_autoptr(GError) error = NULL;

    g_assert_true(close_thread(fixture, thread, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(fixture_count(fixture, "threads", "{\"id\":\"%s\",\"archived\":true}", thread), ==, 1);
    g_assert_cmpuint(fixture_count(fixture, "threads", "{\"id\":\"%s\",\"locked\":true}", thread), ==, 0);
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", thread);
    g_assert_true(close_thread(fixture, thread, &error));
    g_assert_true(close_thread(fixture, NULL, &error));
    g_assert_no_error(error);
}

/* A thread that is gone ends what is said there, and nothing else. */
static void
test_thread_gone(Fixture *fixture, gconstpointer data)
{
    g_autofree char *first = fixture_thread(fixture, "first");
    g_autofree char *second = fixture_thread(fixture, "second");
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChatPost) post = eb_chat_post_new(first, EB_CHAT_POST_TEXT, "into the void");
    /* Nobody tells: the event is lost. */
    g_autoptr(JsonObject) deaf =
        fixture_call(fixture, "event-fault", "{\"type\":\"THREAD_DELETE\",\"kind\":\"drop\",\"count\":1}");
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", first);

    g_assert_null(fixture_post(fixture, post, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.10003", NULL);
    g_autofree char *state = g_strdup_printf("^thread-state %s deleted$", first);
    fixture_wait_told(fixture, state);
    guint asked = fixture_count(fixture, "requests", "{}");
    g_clear_error(&error);
    g_assert_null(fixture_post(fixture, post, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.thread-gone", first);
    g_assert_cmpuint(fixture_count(fixture, "requests", "{}"), ==, asked);
    g_autofree char *said = fixture_text(fixture, second, NULL, "still here");
    g_assert_cmpuint(fixture_count(fixture, "messages", "{\"channel\":\"%s\",\"author\":\"bot\"}", second), ==, 1);
    g_assert_cmpuint(fixture_count_told(fixture, "^thread-state"), ==, 1);
}

/* --- reactions --- */

static guint
count_reactions(Fixture *fixture, const char *message, const char *emoji)
{
    return fixture_count(fixture, "messages", "{\"id\":\"%s\",\"reaction\":\"%s\"}", message, emoji);
}

static void
test_reactions(Fixture *fixture, gconstpointer data)
{
    g_autofree char *message = fixture_say(fixture, NULL, "do it");
    g_autoptr(GError) error = NULL;

    g_assert_true(fixture_react(fixture, NULL, message, ACCEPTED, &error));
    g_assert_cmpuint(count_reactions(fixture, message, ACCEPTED), ==, 1);
    g_assert_true(fixture_react(fixture, NULL, message, DONE, &error));
    g_assert_cmpuint(count_reactions(fixture, message, ACCEPTED), ==, 0);
    g_assert_cmpuint(count_reactions(fixture, message, DONE), ==, 1);
    g_assert_true(fixture_react(fixture, NULL, message, NULL, &error));
    g_assert_cmpuint(count_reactions(fixture, message, DONE), ==, 0);
    /* What a run that was killed left is found. */
    g_assert_true(fixture_react(fixture, NULL, message, ACCEPTED, &error));
    fixture_stop(fixture);
    fixture_make_transport(fixture);
    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    g_assert_true(fixture_react(fixture, NULL, message, DONE, &error));
    g_assert_cmpuint(count_reactions(fixture, message, ACCEPTED), ==, 0);
    g_assert_cmpuint(count_reactions(fixture, message, DONE), ==, 1);
    /* A message that is gone needs none. */
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", message);
    g_assert_true(fixture_react(fixture, NULL, message, ACCEPTED, &error));
    g_assert_true(fixture_react(fixture, NULL, "m1", ACCEPTED, &error));
    g_assert_no_error(error);
}

/* Turns that end with the service: how they ended is seen before it is gone, at four reactions a second. */
static void
test_reactions_at_the_end(Fixture *fixture, gconstpointer data)
{
    EbTestResult done[5] = {0};
    char *messages[G_N_ELEMENTS(done)];
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        messages[i] = fixture_say(fixture, NULL, "do it");
        g_assert_true(fixture_react(fixture, NULL, messages[i], ACCEPTED, &error));
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++)
        eb_chat_transport_react_async(EB_CHAT_TRANSPORT(fixture->transport), NULL, messages[i], DONE, NULL,
                                      eb_test_result_ready, &done[i]);
    fixture_stop(fixture);
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_assert_cmpuint(count_reactions(fixture, messages[i], ACCEPTED), ==, 0);
        g_assert_cmpuint(count_reactions(fixture, messages[i], DONE), ==, 1);
        g_assert_true(eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(fixture->transport),
                                                     eb_test_result_wait(&done[i]), &error));
        eb_test_result_clear(&done[i]);
        g_free(messages[i]);
    }
}

/* Discord is away for a while: the reaction that was wanted last is there when it is back. */
static void
test_reactions_in_gap(Fixture *fixture, gconstpointer data)
{
    static const char *const wishes[] = {ACCEPTED, DONE};
    EbTestResult done[G_N_ELEMENTS(wishes)] = {0};
    g_autofree char *message = fixture_say(fixture, NULL, "do it");
    g_autoptr(JsonObject) fault =
        fixture_call(fixture, "fault", "{\"path\":\"/reactions/\",\"kind\":\"502\",\"count\":6}");

    for (guint i = 0; i < G_N_ELEMENTS(wishes); i++)
        eb_chat_transport_react_async(EB_CHAT_TRANSPORT(fixture->transport), NULL, message, wishes[i], NULL,
                                      eb_test_result_ready, &done[i]);
    for (guint i = 0; i < G_N_ELEMENTS(wishes); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(fixture->transport),
                                                     eb_test_result_wait(&done[i]), &error));
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(count_reactions(fixture, message, DONE), ==, 1);
    g_assert_cmpuint(count_reactions(fixture, message, ACCEPTED), ==, 0);
}

/* The end does not wait for a Discord that does not answer. */
static void
test_reactions_at_end(Fixture *fixture, gconstpointer data)
{
    g_autofree char *message = fixture_say(fixture, NULL, "do it");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) fault =
        fixture_call(fixture, "fault", "{\"path\":\"/reactions/\",\"kind\":\"502\",\"count\":1000}");

    eb_chat_transport_react_async(EB_CHAT_TRANSPORT(fixture->transport), NULL, message, DONE, NULL,
                                  eb_test_result_ready, &done);
    fixture_wait_count(fixture, 1, "requests", "{\"path\":\"/reactions/\"}");
    fixture_stop(fixture);
    g_assert_false(
        eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
}

/* Wishes that come faster than Discord takes them: the last one holds, and there is never more than one. */
static void
test_reactions_overtaken(Fixture *fixture, gconstpointer data)
{
    static const char *const wishes[] = {ACCEPTED, DONE, NULL, ACCEPTED, DONE};
    EbTestResult done[G_N_ELEMENTS(wishes)] = {0};
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autofree char *message = fixture_say(fixture, thread, "do it");
    g_autoptr(GError) failed = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(wishes); i++)
        eb_chat_transport_react_async(EB_CHAT_TRANSPORT(fixture->transport), thread, message, wishes[i], NULL,
                                      eb_test_result_ready, &done[i]);
    for (guint i = 0; i < G_N_ELEMENTS(wishes); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(eb_chat_transport_react_finish(EB_CHAT_TRANSPORT(fixture->transport),
                                                     eb_test_result_wait(&done[i]), &error));
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
    }
    g_assert_cmpuint(count_reactions(fixture, message, DONE), ==, 1);
    g_assert_cmpuint(count_reactions(fixture, message, ACCEPTED), ==, 0);
    g_assert_cmpuint(fixture_count(fixture, "requests", "{\"path\":\"/reactions/\"}"), <=, 3);
    /* Where nothing can be changed there is nothing to be done. */
    g_autoptr(JsonObject) shut =
        fixture_call(fixture, "change-thread", "{\"channel\":\"%s\",\"archived\":true}", thread);
    g_assert_true(fixture_react(fixture, thread, message, ACCEPTED, &failed));
    g_assert_no_error(failed);
}

#define ADD(path, func) g_test_add("/discord/transport/" path, Fixture, NULL, fixture_set_up, func, fixture_close)
#define ADD_CLOSED(path, func) g_test_add("/discord/transport/" path, Fixture, NULL, fixture_open, func, fixture_close)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("start", test_start);
    ADD_CLOSED("bad-token", test_bad_token);
    ADD_CLOSED("real-token", test_real_token);
    ADD_CLOSED("no-channel", test_no_channel);
    ADD_CLOSED("gateway-refuses", test_gateway_refuses);
    ADD_CLOSED("outage", test_outage);
    ADD("stop", test_stop);
    ADD("post", test_post);
    ADD("edit", test_edit);
    ADD("edit-at-once", test_edit_at_once);
    ADD("edit-deleted", test_edit_deleted);
    ADD("retract", test_retract);
    ADD("notify", test_notify);
    ADD("long", test_long);
    ADD("empty", test_empty);
    ADD("files", test_files);
    ADD("busy", test_busy);
    ADD("threads", test_threads);
    ADD("thread-limit", test_thread_limit);
    ADD("close", test_close);
    ADD("thread-gone", test_thread_gone);
    ADD("reactions", test_reactions);
    ADD("reactions-at-the-end", test_reactions_at_the_end);
    ADD("reactions-in-gap", test_reactions_in_gap);
    ADD("reactions-at-end", test_reactions_at_end);
    ADD("reactions-overtaken", test_reactions_overtaken);
    return g_test_run();
}
