/* SPDX-License-Identifier: MIT */
/* What the service hears: messages once and in order, through gaps; what becomes of threads, the channel, the server. */
#include "transport-fixture.h"

#include <string.h>

#define ALICE DISCORD_STANDIN_ALICE

static void
wait_message(Fixture *fixture, const char *thread, const char *text)
{
    g_autofree char *pattern = g_strdup_printf("^message %s " ALICE " %s$", thread, text);

    fixture_wait_told(fixture, pattern);
    g_assert_cmpuint(fixture_count_told(fixture, pattern), ==, 1);
}

static void
wait_state(Fixture *fixture, const char *thread, const char *state)
{
    g_autofree char *pattern = g_strdup_printf("^thread-state %s %s$", thread, state);
    fixture_wait_told(fixture, pattern);
}

/* The place in which @pattern was told first. */
static guint
position(Fixture *fixture, const char *pattern)
{
    for (guint i = 0; i < fixture->told->len; i++)
        if (g_regex_match_simple(pattern, fixture->told->pdata[i], 0, 0))
            return i;
    g_error("%s was never told", pattern);
}

/* --- messages --- */

static void
test_message(Fixture *fixture, gconstpointer data)
{
    g_autofree char *id = fixture_say(fixture, NULL, "site: make it blue");
    g_autofree char *seen = g_strdup_printf("^seen - %s$", id);

    wait_message(fixture, "-", "site: make it blue");
    fixture_wait_told(fixture, seen);
    g_assert_cmpuint(position(fixture, "^message"), <, position(fixture, seen));
    const EbChatMessage *message = fixture->messages->pdata[0];
    g_assert_cmpstr(message->id, ==, id);
    g_assert_cmpstr(message->author_id, ==, ALICE);
    g_assert_false(message->replayed);
    g_assert_cmpint(message->sent_unix_ms, >, 0);
}

/* Another channel, another bot, a webhook, and what Discord itself says. */
static void
test_not_ours(Fixture *fixture, gconstpointer data)
{
    g_autofree char *elsewhere = fixture_say(fixture, DISCORD_STANDIN_OTHER_CHANNEL, "not for us");
    g_autoptr(JsonObject) bot =
        fixture_call(fixture, "say", "{\"user\":\"%s\",\"content\":\"beep\"}", DISCORD_STANDIN_OTHER_BOT);
    g_autoptr(JsonObject) hook = fixture_call(fixture, "say", "{\"webhook\":\"hook\",\"content\":\"hook\"}");
    g_autoptr(JsonObject) pin = fixture_call(fixture, "say", "{\"type\":6,\"content\":\"\"}");
    g_autofree char *last = fixture_say(fixture, NULL, "for us");

    wait_message(fixture, "-", "for us");
    g_assert_cmpuint(fixture_count_told(fixture, "^message"), ==, 1);
    /* What is none of ours was seen all the same: nobody reads it back. */
    g_assert_cmpuint(fixture_count_told(fixture, "^seen - "), >=, 3);
    g_assert_cmpuint(fixture_count_told(fixture, "not for us"), ==, 0);
    g_assert_cmpuint(fixture_count(fixture, "requests", "{\"path\":\"/channels/%s$\"}", DISCORD_STANDIN_OTHER_CHANNEL),
                     ==, 0);
}

/* In a thread a bot is heard: whether it may speak is the core's to say. */
static void
test_bot_in_thread(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autoptr(JsonObject) said = fixture_call(
        fixture, "say", "{\"channel\":\"%s\",\"user\":\"%s\",\"content\":\"beep\"}", thread, DISCORD_STANDIN_OTHER_BOT);

    fixture_wait_told(fixture, "^message .* beep$");
    const EbChatMessage *message = fixture->messages->pdata[fixture->messages->len - 1];
    g_assert_true(message->author_bot);
    g_assert_cmpstr(message->thread, ==, thread);
}

/* Threads are told apart by their channel: one of another channel is none of ours, whatever it is called. */
static void
test_identity(Fixture *fixture, gconstpointer data)
{
    g_autofree char *first = fixture_thread(fixture, "A");
    g_autofree char *second = fixture_thread(fixture, "B");
    g_autoptr(JsonObject) foreign =
        fixture_call(fixture, "thread", "{\"channel\":\"%s\",\"name\":\"A\"}", DISCORD_STANDIN_OTHER_CHANNEL);
    const char *foreign_id = eb_json_get_string(foreign, "id");

    g_assert_nonnull(foreign_id);
    g_autofree char *strange = fixture_say(fixture, foreign_id, "in the foreign one");
    g_autofree char *in_first = fixture_say(fixture, first, "in A");
    g_autofree char *in_second = fixture_say(fixture, second, "in B");
    wait_message(fixture, first, "in A");
    wait_message(fixture, second, "in B");
    g_assert_cmpuint(fixture_count_told(fixture, "foreign one"), ==, 0);
    /* A command, too, is of the thread it is given in. */
    fixture_wait_count(fixture, 2, "commands", "{}");
    g_autoptr(JsonObject) command = fixture_call(fixture, "command", "{\"channel\":\"%s\",\"name\":\"stop\"}", second);
    g_autofree char *action = g_strdup_printf("^action %s [0-9]+ stop$", second);
    fixture_wait_told(fixture, action);
    g_assert_cmpuint(fixture_count_told(fixture, "^action"), ==, 1);
}

/* A thread nobody told of: asked about once, and what was said meanwhile is told in order. */
static void
test_unknown_thread(Fixture *fixture, gconstpointer data)
{
    g_autoptr(JsonObject) deaf =
        fixture_call(fixture, "event-fault", "{\"type\":\"THREAD_CREATE\",\"kind\":\"drop\",\"count\":100}");
    g_autoptr(JsonObject) opened = fixture_call(fixture, "thread", "{\"name\":\"quiet\"}");
    g_autofree char *thread = g_strdup(eb_json_get_string(opened, "id"));
    g_autoptr(JsonObject) other =
        fixture_call(fixture, "thread", "{\"channel\":\"%s\",\"name\":\"quiet\"}", DISCORD_STANDIN_OTHER_CHANNEL);
    g_autofree char *foreign = g_strdup(eb_json_get_string(other, "id"));

    for (guint i = 0; i < 3; i++) {
        g_autofree char *text = g_strdup_printf("word %u", i);
        g_autofree char *ours = fixture_say(fixture, thread, text);
        g_autofree char *theirs = fixture_say(fixture, foreign, "foreign");
    }
    wait_message(fixture, thread, "word 2");
    g_assert_cmpuint(position(fixture, "word 0$"), <, position(fixture, "word 1$"));
    g_assert_cmpuint(position(fixture, "word 1$"), <, position(fixture, "word 2$"));
    g_assert_cmpuint(fixture_count(fixture, "requests", "{\"method\":\"GET\",\"path\":\"/channels/%s$\"}", thread), ==,
                     1);
    fixture_wait_count(fixture, 1, "requests", "{\"method\":\"GET\",\"path\":\"/channels/%s$\"}", foreign);
    g_autofree char *again = fixture_say(fixture, foreign, "foreign");
    g_autofree char *marker = fixture_say(fixture, NULL, "marker");
    wait_message(fixture, "-", "marker");
    g_assert_cmpuint(fixture_count(fixture, "requests", "{\"method\":\"GET\",\"path\":\"/channels/%s$\"}", foreign), ==,
                     1);
    g_assert_cmpuint(fixture_count_told(fixture, "foreign$"), ==, 0);
}

static void
test_edit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *id = fixture_say(fixture, NULL, "see https://example.org");
    g_autofree char *edited = g_strdup_printf("^edited - %s see it$", id);

    wait_message(fixture, "-", "see https://example.org");
    g_autoptr(JsonObject) preview = fixture_call(fixture, "unfurl", "{\"message\":\"%s\"}", id);
    g_autoptr(JsonObject) change = fixture_call(fixture, "edit", "{\"message\":\"%s\",\"content\":\"see it\"}", id);
    /* The preview of what was changed comes later, and with the time of that change. */
    g_autoptr(JsonObject) late = fixture_call(fixture, "unfurl", "{\"message\":\"%s\"}", id);
    g_autofree char *last = fixture_say(fixture, NULL, "marker");
    wait_message(fixture, "-", "marker");
    g_assert_cmpuint(fixture_count_told(fixture, "^edited"), ==, 1);
    g_assert_cmpuint(fixture_count_told(fixture, edited), ==, 1);
}

static void
test_withdrawn(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autofree char *in_thread = fixture_say(fixture, thread, "no");
    g_autofree char *first = fixture_say(fixture, NULL, "one");
    g_autofree char *second = fixture_say(fixture, NULL, "two");
    g_autoptr(JsonObject) one =
        fixture_call(fixture, "delete", "{\"channel\":\"%s\",\"message\":\"%s\"}", thread, in_thread);
    g_autoptr(JsonObject) bulk = fixture_call(fixture, "delete-bulk", "{\"messages\":[\"%s\",\"%s\"]}", first, second);
    g_autofree char *thread_line = g_strdup_printf("^withdrawn %s %s$", thread, in_thread);
    g_autofree char *first_line = g_strdup_printf("^withdrawn - %s$", first);
    g_autofree char *second_line = g_strdup_printf("^withdrawn - %s$", second);

    fixture_wait_told(fixture, second_line);
    g_assert_cmpuint(fixture_count_told(fixture, thread_line), ==, 1);
    g_assert_cmpuint(fixture_count_told(fixture, first_line), ==, 1);
    g_assert_cmpuint(fixture_count_told(fixture, "^withdrawn"), ==, 3);
}

/* What cannot be read says what it is; what is forwarded is quoted. */
static void
test_kinds(Fixture *fixture, gconstpointer data)
{
    g_autoptr(JsonObject) sticker = fixture_call(fixture, "say", "{\"content\":\"\",\"sticker\":\"wave\"}");
    g_autoptr(JsonObject) poll = fixture_call(fixture, "say", "{\"content\":\"\",\"poll\":\"tea?\"}");
    g_autoptr(JsonObject) forward = fixture_call(fixture, "say", "{\"content\":\"\",\"forward\":\"what he said\"}");

    fixture_wait_told(fixture, "forwarded message");
    g_assert_cmpuint(fixture->messages->len, ==, 3);
    g_assert_cmpstr(((const EbChatMessage *)fixture->messages->pdata[0])->note, ==, "a sticker");
    g_assert_cmpstr(((const EbChatMessage *)fixture->messages->pdata[1])->note, ==, "a poll");
    g_assert_cmpstr(((const EbChatMessage *)fixture->messages->pdata[2])->text, ==,
                    "(forwarded message)\n> what he said");
}

/* Whoever has to be mentioned gets the words without the mention, in the channel alone. */
static void
test_mention(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autofree char *plain = fixture_say(fixture, NULL, "just talking");
    g_autofree char *asked = fixture_say(fixture, NULL, "<@" DISCORD_STANDIN_APPLICATION "> do  it");
    g_autofree char *inside = fixture_say(fixture, thread, "<@" DISCORD_STANDIN_APPLICATION "> go on");

    wait_message(fixture, thread, "<@" DISCORD_STANDIN_APPLICATION "> go on");
    wait_message(fixture, "-", "do  it");
    wait_message(fixture, "-", "just talking");
    for (guint i = 0; i < fixture->messages->len; i++) {
        const EbChatMessage *message = fixture->messages->pdata[i];
        gboolean mentioned = strcmp(message->id, asked) == 0 || strcmp(message->id, inside) == 0;
        g_assert_true(message->mentions_us == mentioned);
    }
    g_assert_true(fixture->policy->start_on_mention);
}

/* --- before anybody listens --- */

static void
test_held(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(fixture_start(fixture, FIXTURE_TOKEN, &error));
    g_autofree char *first = fixture_say(fixture, NULL, "early");
    g_autofree char *second = fixture_say(fixture, NULL, "bird");
    fixture_wait_count(fixture, 2, "messages", "{}");
    eb_test_run_for(200);
    g_assert_cmpuint(fixture->told->len, ==, 0);
    fixture_attach(fixture);
    g_assert_cmpuint(fixture->told->len, ==, 0);
    wait_message(fixture, "-", "bird");
    g_assert_cmpuint(position(fixture, "^connection up"), ==, 0);
    g_assert_cmpuint(position(fixture, "early$"), <, position(fixture, "bird$"));
}

/* --- gaps --- */

static void
test_cut(Fixture *fixture, gconstpointer data)
{
    g_autofree char *first = fixture_say(fixture, NULL, "before");

    wait_message(fixture, "-", "before");
    g_autoptr(JsonObject) cut = fixture_call(fixture, "refuse", "{\"seconds\":2,\"drop\":true}");
    fixture_wait_told(fixture, "^connection down");
    for (guint i = 0; i < 3; i++) {
        g_autofree char *text = g_strdup_printf("gap %u", i);
        g_autofree char *id = fixture_say(fixture, NULL, text);
    }
    g_assert_cmpuint(fixture_count_told(fixture, "gap"), ==, 0);
    wait_message(fixture, "-", "gap 2");
    fixture_wait_told(fixture, "^connection up connected again");
    g_assert_cmpuint(fixture_count_told(fixture, "^message - [0-9]+ gap"), ==, 3);
    g_assert_cmpuint(position(fixture, "gap 0$"), <, position(fixture, "gap 1$"));
    g_assert_cmpuint(position(fixture, "gap 1$"), <, position(fixture, "gap 2$"));
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^identify$\"}"), ==, 1);
}

/* The session is lost: whoever listens is told that there may be something to read back, and finds it. */
static void
test_lost_session(Fixture *fixture, gconstpointer data)
{
    g_autofree char *before = fixture_say(fixture, NULL, "before");
    g_autoptr(GError) error = NULL;

    wait_message(fixture, "-", "before");
    g_autoptr(JsonObject) forgotten = fixture_call(fixture, "forget-sessions", "{}");
    g_autoptr(JsonObject) cut = fixture_call(fixture, "refuse", "{\"seconds\":1,\"drop\":true}");
    fixture_wait_told(fixture, "^connection down");
    g_autofree char *missed = fixture_say(fixture, NULL, "missed");
    fixture_forget_told(fixture);
    fixture_wait_told(fixture, "^connection up connected$");
    g_autoptr(GPtrArray) found = fixture_read_back(fixture, NULL, before, 100, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(found->len, ==, 1);
    g_assert_cmpstr(((const EbChatMessage *)found->pdata[0])->id, ==, missed);
    g_assert_cmpuint(fixture_count(fixture, "gateway", "{\"what\":\"^identify$\"}"), ==, 2);
}

/* What is said while Discord is away is shown when it is back, in order and once. */
static void
test_posts_in_gap(Fixture *fixture, gconstpointer data)
{
    EbTestResult done[3] = {0};

    g_autoptr(JsonObject) fault = fixture_call(fixture, "fault",
                                               "{\"method\":\"POST\",\"path\":\"/messages$\",\"kind\":\"502\","
                                               "\"count\":3}");
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *text = g_strdup_printf("part %u", i);
        g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, text);
        post->final = TRUE;
        eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, eb_test_result_ready, &done[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *id =
            eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
    }
    g_autoptr(GPtrArray) seen = g_ptr_array_new();
    g_autoptr(JsonObject) list = fixture_call(fixture, "messages", "{\"author\":\"bot\"}");
    JsonArray *items = eb_json_get_array(list, "items");
    g_assert_cmpuint(json_array_get_length(items), ==, 3);
    for (guint i = 0; i < 3; i++) {
        g_autofree char *text = g_strdup_printf("part %u", i);
        g_assert_cmpstr(eb_json_get_string(eb_json_array_object(items, i), "content"), ==, text);
    }
}

/* Whatever Discord answers: every part arrives, once and in order, in each thread. */
static void
test_faults(Fixture *fixture, gconstpointer data)
{
    static const char *const kinds[] = {"429-user", "500", "lost", "reset", "502", "half", "429-shared"};
    g_autofree char *first = fixture_thread(fixture, "A");
    g_autofree char *second = fixture_thread(fixture, "B");
    const char *const threads[] = {first, second};
    EbTestResult done[40] = {0};

    g_autoptr(JsonObject) lifted =
        fixture_call(fixture, "bucket", "{\"bucket\":\"/channels/{c}/messages\",\"limit\":1000,\"window_ms\":1000}");
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(JsonObject) fault =
            fixture_call(fixture, "fault",
                         "{\"method\":\"POST\",\"path\":\"/messages$\",\"kind\":\"%s\",\"skip\":%u,\"seconds\":0.2}",
                         kinds[i], 3 + 4 * i);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *text = g_strdup_printf("part %02u", i / 2);
        g_autoptr(EbChatPost) post = eb_chat_post_new(threads[i % 2], EB_CHAT_POST_TEXT, text);
        post->final = TRUE;
        eb_chat_transport_post_async(EB_CHAT_TRANSPORT(fixture->transport), post, NULL, eb_test_result_ready, &done[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *id =
            eb_chat_transport_post_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
    }
    for (guint n = 0; n < 2; n++) {
        g_autoptr(JsonObject) list =
            fixture_call(fixture, "messages", "{\"channel\":\"%s\",\"author\":\"bot\"}", threads[n]);
        JsonArray *items = eb_json_get_array(list, "items");
        g_assert_cmpuint(json_array_get_length(items), ==, G_N_ELEMENTS(done) / 2);
        for (guint i = 0; i < G_N_ELEMENTS(done) / 2; i++) {
            g_autofree char *text = g_strdup_printf("part %02u", i);
            g_assert_cmpstr(eb_json_get_string(eb_json_array_object(items, i), "content"), ==, text);
        }
    }
    g_assert_cmpint(discord_standin_stat(fixture->standin, "faults"), ==, G_N_ELEMENTS(kinds));
}

/* --- threads --- */

static void
test_thread_states(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) shut =
        fixture_call(fixture, "change-thread", "{\"channel\":\"%s\",\"archived\":true}", thread);

    wait_state(fixture, thread, "archived");
    g_autofree char *said = fixture_say(fixture, thread, "hello again");
    wait_state(fixture, thread, "open");
    wait_message(fixture, thread, "hello again");
    /* A new name is no news. */
    g_autoptr(JsonObject) renamed =
        fixture_call(fixture, "change-thread", "{\"channel\":\"%s\",\"name\":\"new\"}", thread);
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", thread);
    wait_state(fixture, thread, "deleted");
    g_assert_cmpuint(fixture_count_told(fixture, "^thread-state"), ==, 3);
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_TEXT, "late");
    g_assert_null(fixture_post(fixture, post, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.thread-gone", thread);
    g_assert_cmpuint(fixture_count(fixture, "refusals", "{}"), ==, 0);
}

/* The message that began it all is deleted: its thread lives on. */
static void
test_orphan(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autofree char *withdrawn = g_strdup_printf("^withdrawn - %s$", thread);
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete", "{\"message\":\"%s\"}", thread);

    fixture_wait_told(fixture, withdrawn);
    g_autofree char *said = fixture_text(fixture, thread, NULL, "still here");
    g_autofree char *answer = fixture_say(fixture, thread, "so am I");
    wait_message(fixture, thread, "so am I");
    g_assert_cmpuint(fixture_count_told(fixture, "^thread-state"), ==, 0);
}

/* --- the channel, the server, the token --- */

/* A permission is taken away and given back while we run. */
static void
test_permissions(Fixture *fixture, gconstpointer data)
{
    fixture_forget_told(fixture);
    /* CREATE_PUBLIC_THREADS */
    g_autoptr(JsonObject) denied =
        fixture_call(fixture, "overwrite", "{\"channel\":\"%s\",\"deny\":\"34359738368\"}", FIXTURE_CHANNEL);
    fixture_wait_told(fixture, "^connection down .*[Tt]hreads");
    g_autoptr(JsonObject) given = fixture_call(fixture, "overwrite", "{\"channel\":\"%s\"}", FIXTURE_CHANNEL);
    fixture_wait_told(fixture, "^connection up ");
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 0);
}

static void
test_guild(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");

    fixture_forget_told(fixture);
    g_autoptr(JsonObject) outage = fixture_call(fixture, "guild", "{\"state\":\"outage\"}");
    fixture_wait_told(fixture, "^connection down .*outage");
    g_assert_cmpuint(fixture_count_told(fixture, "^thread-state"), ==, 0);
    g_autoptr(JsonObject) back = fixture_call(fixture, "guild", "{\"state\":\"back\"}");
    fixture_wait_told(fixture, "^connection up ");
    fixture_forget_told(fixture);
    g_autoptr(JsonObject) removed = fixture_call(fixture, "guild", "{\"state\":\"removed\"}");
    fixture_wait_told(fixture, "^connection down .*invite it again");
    wait_state(fixture, thread, "lost");
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 0);
}

static void
test_channel_deleted(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autoptr(JsonObject) gone = fixture_call(fixture, "delete-channel", "{\"channel\":\"%s\"}", FIXTURE_CHANNEL);

    fixture_wait_told(fixture, "^failed");
    eb_test_assert_error(fixture->failure, EB_ERROR_CONFIG, "discord.channel-deleted", "channel_id");
    wait_state(fixture, thread, "deleted");
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 1);
}

/* Discord tells of it as of a deleted channel. */
static void
test_channel_hidden(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");

    fixture_forget_told(fixture);
    /* VIEW_CHANNEL */
    g_autoptr(JsonObject) hidden =
        fixture_call(fixture, "overwrite", "{\"channel\":\"%s\",\"deny\":\"1024\"}", FIXTURE_CHANNEL);
    fixture_wait_told(fixture, "^connection down .*cannot see channel");
    g_autoptr(JsonObject) shown = fixture_call(fixture, "overwrite", "{\"channel\":\"%s\"}", FIXTURE_CHANNEL);
    fixture_wait_told(fixture, "^connection up ");
    g_autofree char *posted = fixture_text(fixture, thread, NULL, "still here");
    g_assert_nonnull(posted);
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 0);
}

static void
test_token_revoked(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbChatPost) post = eb_chat_post_new(NULL, EB_CHAT_POST_TEXT, "hello?");
    g_autoptr(JsonObject) revoked = fixture_call(fixture, "revoke-token", "{\"revoked\":true}");

    g_assert_null(fixture_post(fixture, post, &error));
    fixture_wait_told(fixture, "^failed");
    eb_test_assert_error(fixture->failure, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", "creds set chat-token");
    guint asked = fixture_count(fixture, "requests", "{}");
    g_clear_error(&error);
    g_assert_null(fixture_post(fixture, post, &error));
    g_assert_cmpuint(fixture_count(fixture, "requests", "{}"), ==, asked);
    g_assert_cmpuint(fixture_count_told(fixture, "^failed"), ==, 1);
}

/* --- commands and questions, as far as the transport passes them on --- */

static void
test_command(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");

    fixture_wait_count(fixture, 2, "commands", "{}");
    g_autoptr(JsonObject) command =
        fixture_call(fixture, "command", "{\"channel\":\"%s\",\"name\":\"status\"}", thread);
    const char *id = eb_json_get_string(command, "id");
    g_autofree char *line = g_strdup_printf("^action %s %s status$", thread, id);
    g_autoptr(EbChatPost) post = eb_chat_post_new(thread, EB_CHAT_POST_ANSWER, "all is well");
    g_autoptr(GError) error = NULL;

    fixture_wait_told(fixture, line);
    post->reply_to = g_strdup(id);
    post->final = TRUE;
    g_autofree char *answer = fixture_post(fixture, post, &error);
    g_assert_no_error(error);
    fixture_wait_count(fixture, 1, "interactions", "{\"id\":\"%s\",\"text\":\"^all is well$\"}", id);
    /* Nothing to react to. */
    g_assert_true(fixture_react(fixture, thread, id, "\u2705", &error));
    g_assert_no_error(error);
    g_assert_cmpuint(fixture_count(fixture, "refusals", "{}"), ==, 0);
    /* In another channel it is refused, politely. */
    g_autoptr(JsonObject) strange =
        fixture_call(fixture, "command", "{\"channel\":\"%s\",\"name\":\"status\"}", DISCORD_STANDIN_OTHER_CHANNEL);
    fixture_wait_count(fixture, 1, "interactions", "{\"id\":\"%s\",\"text\":\"does not work in this channel\"}",
                       eb_json_get_string(strange, "id"));
    g_assert_cmpuint(fixture_count_told(fixture, "^action"), ==, 1);
}

static void
test_question(Fixture *fixture, gconstpointer data)
{
    g_autofree char *thread = fixture_thread(fixture, "talk");
    g_autoptr(EbChatQuestion) question = eb_chat_question_new(thread, "run make?");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autofree char *by = NULL;

    question->id = g_strdup("q-1");
    eb_chat_question_add_choice(question, "yes", "Allow", "allow_once");
    eb_chat_question_add_choice(question, "no", "Reject", "reject_once");
    eb_chat_transport_ask_async(EB_CHAT_TRANSPORT(fixture->transport), question, 60000, NULL, eb_test_result_ready,
                                &done);
    fixture_wait_count(fixture, 1, "messages", "{\"channel\":\"%s\",\"components\":true}", thread);
    g_autoptr(JsonObject) list = fixture_call(fixture, "messages", "{\"channel\":\"%s\",\"components\":true}", thread);
    const char *message = eb_json_get_string(eb_json_array_object(eb_json_get_array(list, "items"), 0), "id");
    g_autoptr(JsonObject) pressed =
        fixture_call(fixture, "press", "{\"channel\":\"%s\",\"message\":\"%s\",\"label\":\"Allow\"}", thread, message);
    g_autofree char *choice =
        eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(fixture->transport), eb_test_result_wait(&done), &by, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(choice, ==, "yes");
    g_assert_cmpstr(by, ==, ALICE);
}

#define ADD(path, func) g_test_add("/discord/events/" path, Fixture, NULL, fixture_set_up, func, fixture_close)

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    ADD("message", test_message);
    ADD("not-ours", test_not_ours);
    ADD("bot-in-thread", test_bot_in_thread);
    ADD("identity", test_identity);
    ADD("unknown-thread", test_unknown_thread);
    ADD("edit", test_edit);
    ADD("withdrawn", test_withdrawn);
    ADD("kinds", test_kinds);
    g_test_add("/discord/events/mention", Fixture, FIXTURE_ON_MENTION, fixture_set_up, test_mention, fixture_close);
    g_test_add("/discord/events/held", Fixture, NULL, fixture_open, test_held, fixture_close);
    ADD("cut", test_cut);
    ADD("lost-session", test_lost_session);
    ADD("posts-in-gap", test_posts_in_gap);
    ADD("faults", test_faults);
    ADD("thread-states", test_thread_states);
    ADD("orphan", test_orphan);
    ADD("permissions", test_permissions);
    ADD("guild", test_guild);
    ADD("channel-deleted", test_channel_deleted);
    ADD("channel-hidden", test_channel_hidden);
    ADD("token-revoked", test_token_revoked);
    ADD("command", test_command);
    ADD("question", test_question);
    return g_test_run();
}
