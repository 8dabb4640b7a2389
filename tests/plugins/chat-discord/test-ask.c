/* SPDX-License-Identifier: MIT */
#include "standin-rig.h"

#include <string.h>

#define ALICE DISCORD_STANDIN_ALICE
#define BOB DISCORD_STANDIN_BOB
#define EPHEMERAL "{\"ephemeral\":true}"
#define LONG_MS 600000

typedef struct {
    EbTestResult result;
    GCancellable *cancellable;
    EbChatQuestion *question;
} Asking;

static EbChatQuestion *
question_new(const char *thread, const char *id, const char *answerer)
{
    EbChatQuestion *question =
        eb_chat_question_new(thread != NULL ? thread : DISCORD_STANDIN_CHANNEL, "The agent asks: run `make test`");

    eb_chat_question_add_choice(question, "yes", "Allow once", "allow_once");
    eb_chat_question_add_choice(question, "no", "Reject", "reject_once");
    question->id = g_strdup(id);
    if (answerer != NULL) {
        question->answerers = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(question->answerers, g_strdup(answerer));
    }
    return question;
}

static Asking *
ask(Rig *rig, EbChatQuestion *question, guint timeout_ms)
{
    Asking *asking = g_new0(Asking, 1);

    asking->cancellable = g_cancellable_new();
    asking->question = question;
    discord_ask_open_async(rig->ask, rig->outbox, question, timeout_ms, asking->cancellable, eb_test_result_ready,
                           &asking->result);
    return asking;
}

static void
asking_free(Asking *asking)
{
    g_assert_cmpuint(asking->result.calls, ==, 1);
    eb_test_result_clear(&asking->result);
    g_object_unref(asking->cancellable);
    eb_chat_question_unref(asking->question);
    g_free(asking);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Asking, asking_free)

static char *
finish(Rig *rig, Asking *asking, char **by, GError **error)
{
    return discord_ask_open_finish(rig->ask, eb_test_result_wait(&asking->result), by, error);
}

/* (transfer full): id of the message that asks, once it is shown */
static char *
shown(Rig *rig, const char *question)
{
    const guint before = rig->asked->len;

    while (rig->asked->len == before)
        g_main_context_iteration(NULL, TRUE);
    g_assert_true(g_str_has_prefix(rig->asked->pdata[before], question));
    return g_strdup(strchr(rig->asked->pdata[before], ' ') + 1);
}

static void
check_closed(Rig *rig, const char *message, const char *text)
{
    g_autofree char *filters = g_strdup_printf("{\"id\":\"%s\",\"text\":\"%s\",\"components\":false}", message, text);

    rig_wait(rig, "messages", filters, 1);
}

/* What no test may end with: a body that pinged, that Discord refuses, or a request that a limit did not allow. */
static void
check_manners(Rig *rig)
{
    g_assert_cmpuint(rig_count(rig, "pings", "{}"), ==, 0);
    g_assert_cmpuint(rig_count(rig, "violations", "{}"), ==, 0);
    g_assert_cmpint(discord_standin_stat(rig->standin, "limited"), ==, 0);
    g_assert_cmpuint(discord_ask_get_open(rig->ask), ==, 0);
}

static void
test_answered(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-1", ALICE), LONG_MS);
    g_autofree char *message = shown(rig, "p-1 ");
    g_autofree char *by = NULL;
    g_autofree char *choice = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_cmpuint(discord_ask_get_open(rig->ask), ==, 1);
    rig_press(rig, message, ALICE, "Allow once");
    choice = finish(rig, asking, &by, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(choice, ==, "yes");
    g_assert_cmpstr(by, ==, ALICE);
    check_closed(rig, message, "Allow once.*, by <@" ALICE ">");
    rig_wait(rig, "interactions", "{\"acked\":true}", 1);
    g_assert_cmpuint(rig_count(rig, "messages", EPHEMERAL), ==, 0);
    check_manners(rig);
}

static void
test_refused(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-2", ALICE), LONG_MS);
    g_autofree char *message = shown(rig, "p-2 ");
    g_autofree char *by = NULL;
    g_autofree char *choice = NULL;

    rig_press(rig, message, BOB, "Allow once");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"You may not answer\"}", 1);
    g_assert_cmpuint(asking->result.calls, ==, 0);
    g_assert_cmpuint(discord_ask_get_open(rig->ask), ==, 1);
    /* Invited meanwhile: the list is read at each press. */
    g_ptr_array_add(asking->question->answerers, g_strdup(BOB));
    rig_press(rig, message, BOB, "Reject");
    choice = finish(rig, asking, &by, NULL);
    g_assert_cmpstr(choice, ==, "no");
    g_assert_cmpstr(by, ==, BOB);
    check_closed(rig, message, "Reject");
    check_manners(rig);
}

/* Two presses before anybody looks, of one person and of another. */
/* One may answer, and still not by every choice. */
static void
test_choice_of_some(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-3", ALICE), LONG_MS);
    EbChatChoice *allow = asking->question->choices->pdata[0];
    g_autofree char *message = shown(rig, "p-3 ");
    g_autofree char *by = NULL;
    g_autofree char *choice = NULL;

    g_ptr_array_add(asking->question->answerers, g_strdup(BOB));
    allow->answerers = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(allow->answerers, g_strdup(BOB));
    rig_press(rig, message, ALICE, "Allow once");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"You may not answer\"}", 1);
    g_assert_cmpuint(asking->result.calls, ==, 0);
    rig_press(rig, message, BOB, "Allow once");
    choice = finish(rig, asking, &by, NULL);
    g_assert_cmpstr(choice, ==, allow->id);
    g_assert_cmpstr(by, ==, BOB);
    check_manners(rig);
}

static void
test_pressed_twice(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-3", NULL), LONG_MS);
    g_autofree char *message = shown(rig, "p-3 ");
    g_autofree char *by = NULL;
    g_autofree char *choice = NULL;

    rig->deaf = TRUE;
    rig_press(rig, message, ALICE, "Reject");
    rig_press(rig, message, ALICE, "Reject");
    rig_press(rig, message, BOB, "Allow once");
    while (rig->interactions_seen->len < 3)
        g_main_context_iteration(NULL, TRUE);
    rig_hear(rig);
    choice = finish(rig, asking, &by, NULL);
    g_assert_cmpstr(choice, ==, "no");
    g_assert_cmpstr(by, ==, ALICE);
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"no longer open\"}", 2);
    check_closed(rig, message, "Reject.*, by <@" ALICE ">");
    /* The same interactions told again, as after a RESUME, do nothing more. */
    rig_hear(rig);
    eb_test_drain();
    eb_test_run_for(100);
    g_assert_cmpuint(rig_count(rig, "messages", EPHEMERAL), ==, 2);
    check_manners(rig);
}

static void
test_timeout(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-4", ALICE), 400);
    g_autofree char *message = shown(rig, "p-4 ");
    g_autoptr(GError) error = NULL;

    g_assert_null(finish(rig, asking, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, "discord.question", NULL);
    check_closed(rig, message, "No answer in time");
    rig_press(rig, message, ALICE, "q:p-4:0");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"no longer open\"}", 1);
    check_manners(rig);
}

static void
test_withdrawn(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-5", ALICE), LONG_MS);
    g_autofree char *message = shown(rig, "p-5 ");
    g_autoptr(GError) error = NULL;

    asking->question->outcome = g_strdup("answered: @everyone `x`");
    g_cancellable_cancel(asking->cancellable);
    g_assert_null(finish(rig, asking, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    check_closed(rig, message, "answered: @.everyone `x`");
    check_manners(rig);
}

/* The service goes down: buttons stay. It comes up: a press that came first waits for its question. */
static void
test_restart(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autofree char *message = NULL;
    g_autofree char *by = NULL;
    g_autofree char *choice = NULL;
    g_autoptr(Asking) again = NULL;
    EbChatQuestion *question;

    {
        g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-6", ALICE), LONG_MS);
        g_autoptr(GError) error = NULL;
        message = shown(rig, "p-6 ");
        g_cancellable_cancel(asking->cancellable);
        g_assert_null(finish(rig, asking, NULL, &error));
        eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    }
    rig_restart(rig, LONG_MS);
    rig_press(rig, message, BOB, "Allow once");
    rig_press(rig, message, ALICE, "Allow once");
    rig_press(rig, message, ALICE, "Reject");
    rig_wait(rig, "interactions", "{\"acked\":true}", 3);
    g_assert_cmpuint(rig_count(rig, "messages", EPHEMERAL), ==, 0);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"text\":\"The agent asks\",\"components\":true}"), ==, 1);
    question = question_new(rig->thread, "p-6", ALICE);
    question->message_id = g_strdup(message);
    again = ask(rig, question, LONG_MS);
    choice = finish(rig, again, &by, NULL);
    g_assert_cmpstr(choice, ==, "yes");
    g_assert_cmpstr(by, ==, ALICE);
    check_closed(rig, message, "Allow once.*, by <@" ALICE ">");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"it asks for you\"}", 1);
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"no longer open\"}", 1);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"text\":\"The agent asks\"}"), ==, 1);
    check_manners(rig);
}

/* A question that nobody takes up again. */
static void
test_orphan(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autofree char *message = NULL;

    {
        g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-7", ALICE), LONG_MS);
        message = shown(rig, "p-7 ");
        g_cancellable_cancel(asking->cancellable);
        g_assert_null(finish(rig, asking, NULL, NULL));
    }
    rig_restart(rig, 300);
    rig_press(rig, message, ALICE, "Allow once");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"no longer open\"}", 1);
    check_closed(rig, message, "The agent asks");
    check_manners(rig);
}

/* Expired while the service was down: taken up and withdrawn at once. */
static void
test_expired_while_down(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autofree char *message = NULL;

    {
        g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-8", ALICE), LONG_MS);
        message = shown(rig, "p-8 ");
        g_cancellable_cancel(asking->cancellable);
        g_assert_null(finish(rig, asking, NULL, NULL));
    }
    rig_restart(rig, LONG_MS);
    {
        EbChatQuestion *question = question_new(rig->thread, "p-8", ALICE);
        g_autoptr(Asking) again = NULL;
        question->message_id = g_strdup(message);
        question->outcome = g_strdup("expired: refused");
        again = ask(rig, question, LONG_MS);
        g_cancellable_cancel(again->cancellable);
        g_assert_null(finish(rig, again, NULL, NULL));
    }
    check_closed(rig, message, "expired: refused");
    check_manners(rig);
}

/* Somebody deletes the message: the question stays open for an answer by text, and what comes later is shown. */
static void
test_deleted(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-9", ALICE), LONG_MS);
    g_autofree char *message = shown(rig, "p-9 ");
    g_autoptr(JsonObject) deleted =
        rig_call(rig, "delete", "{\"channel\":\"%s\",\"message\":\"%s\"}", rig->thread, message);
    g_auto(EbTestResult) posted = {0};
    g_autofree char *id = NULL;
    JsonObject *body = json_object_new();

    eb_test_drain();
    g_assert_cmpuint(discord_ask_get_open(rig->ask), ==, 1);
    asking->question->outcome = g_strdup("answered: Allow once");
    g_cancellable_cancel(asking->cancellable);
    g_assert_null(finish(rig, asking, NULL, NULL));
    json_object_set_string_member(body, "content", "going on");
    discord_outbox_create_async(rig->outbox, body, NULL, NULL, eb_test_result_ready, &posted);
    id = discord_outbox_create_finish(rig->outbox, eb_test_result_wait(&posted), NULL);
    g_assert_nonnull(id);
    check_manners(rig);
}

/* Discord is slow and takes the first sign of life no more: the press acts all the same. */
static void
test_late(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-10", ALICE), LONG_MS);
    g_autofree char *message = shown(rig, "p-10 ");
    g_autofree char *choice = NULL;

    rig->deaf = TRUE;
    rig_press(rig, message, ALICE, "Allow once");
    while (rig->interactions_seen->len < 1)
        g_main_context_iteration(NULL, TRUE);
    {
        g_autoptr(JsonObject) aged =
            rig_call(rig, "age-interaction", "{\"id\":\"%s\",\"seconds\":60}",
                     eb_json_get_string(json_node_get_object(rig->interactions_seen->pdata[0]), "id"));
    }
    rig_hear(rig);
    choice = finish(rig, asking, NULL, NULL);
    g_assert_cmpstr(choice, ==, "yes");
    check_closed(rig, message, "Allow once");
    g_assert_cmpuint(rig_count(rig, "refusals", "{\"code\":10062}"), ==, 1);
}

/* Withdrawn while it waits to be sent: it is not sent any more, or shows what came of it. */
static void
test_withdrawn_unsent(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-11", ALICE), LONG_MS);
    g_autoptr(GError) error = NULL;

    asking->question->outcome = g_strdup("expired: refused");
    g_cancellable_cancel(asking->cancellable);
    g_assert_null(finish(rig, asking, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    eb_test_run_for(300);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"text\":\"The agent asks\",\"components\":true}"), ==, 0);
    check_manners(rig);
}

static void
test_no_access(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    g_autoptr(JsonObject) gone = rig_call(rig, "delete-channel", "{\"channel\":\"%s\"}", rig->thread);
    g_autoptr(Asking) asking = ask(rig, question_new(rig->thread, "p-12", ALICE), LONG_MS);
    g_autoptr(GError) error = NULL;

    g_assert_null(finish(rig, asking, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
    g_assert_cmpuint(discord_ask_get_open(rig->ask), ==, 0);
}

static void
test_refused_questions(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    EbChatQuestion *empty = eb_chat_question_new(rig->thread, "?");
    g_autoptr(Asking) none = ask(rig, empty, LONG_MS);
    g_autoptr(Asking) bad = ask(rig, question_new(rig->thread, "Not:An:Id", NULL), LONG_MS);
    g_autoptr(GError) none_error = NULL;
    g_autoptr(GError) bad_error = NULL;

    g_assert_null(finish(rig, none, NULL, &none_error));
    eb_test_assert_error(none_error, EB_ERROR_INVALID, "discord.question", NULL);
    g_assert_null(finish(rig, bad, NULL, &bad_error));
    eb_test_assert_error(bad_error, EB_ERROR_INVALID, "discord.question", NULL);
    check_manners(rig);
}

static void
note_press(DiscordPressResult result, gpointer user_data)
{
    guint *counts = user_data;

    counts[result]++;
}

static void
test_bounds(void)
{
    g_autoptr(Rig) rig = rig_new(LONG_MS, FALSE);
    g_autoptr(GPtrArray) askings = g_ptr_array_new_with_free_func((GDestroyNotify)asking_free);
    guint counts[3] = {0};

    for (guint i = 0; i <= DISCORD_ASK_MAX; i++) {
        g_autofree char *id = g_strdup_printf("q-%u", i);
        EbChatQuestion *question = question_new(NULL, id, NULL);
        question->message_id = g_strdup("100000000000000500");
        g_ptr_array_add(askings, ask(rig, question, LONG_MS));
    }
    {
        g_autoptr(GError) error = NULL;
        g_assert_null(finish(rig, askings->pdata[DISCORD_ASK_MAX], NULL, &error));
        eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.questions", NULL);
    }
    {
        g_autoptr(Asking) twice = ask(rig, question_new(NULL, "q-7", NULL), LONG_MS);
        g_autoptr(GError) error = NULL;
        g_assert_null(finish(rig, twice, NULL, &error));
        eb_test_assert_error(error, EB_ERROR_EXISTS, "discord.question", NULL);
    }
    for (guint i = 0; i < DISCORD_ASK_MAX_PARKED + 5; i++)
        discord_ask_press(rig->ask, "nobody-knows", 0, ALICE, note_press, counts);
    g_assert_cmpuint(counts[DISCORD_PRESS_CLOSED], ==, 5);
    discord_ask_press(rig->ask, "q-3", 9, ALICE, note_press, counts);
    g_assert_cmpuint(counts[DISCORD_PRESS_CLOSED], ==, 6);
    for (guint i = 0; i < DISCORD_ASK_MAX; i++) {
        Asking *asking = askings->pdata[i];
        g_cancellable_cancel(asking->cancellable);
        g_assert_null(finish(rig, asking, NULL, NULL));
    }
    discord_ask_set_settle_ms(rig->ask, 1);
    while (counts[DISCORD_PRESS_CLOSED] < DISCORD_ASK_MAX_PARKED + 6)
        g_main_context_iteration(NULL, TRUE);
    discord_ask_press(rig->ask, "nobody-knows", 0, ALICE, note_press, counts);
    g_assert_cmpuint(counts[DISCORD_PRESS_CLOSED], ==, DISCORD_ASK_MAX_PARKED + 7);
}

/* As many choices, as long as they can be. */
static void
test_large(void)
{
    g_autoptr(Rig) rig = rig_new(0, TRUE);
    EbChatQuestion *question = eb_chat_question_new(rig->thread, "Which @everyone?\n```");
    g_autoptr(Asking) asking = NULL;
    g_autofree char *message = NULL;
    g_autofree char *choice = NULL;

    question->id = g_strdup("0123456789-0123456789-0123456789-0123456");
    for (guint i = 0; i < 30; i++) {
        g_autofree char *id = g_strdup_printf("c%u", i);
        g_autofree char *label = g_strdup_printf("choice %u %0200d", i, 0);
        eb_chat_question_add_choice(question, id, label, NULL);
    }
    asking = ask(rig, question, LONG_MS);
    message = shown(rig, question->id);
    rig_press(rig, message, ALICE, "choice 24");
    choice = finish(rig, asking, NULL, NULL);
    g_assert_cmpstr(choice, ==, "c24");
    check_closed(rig, message, "choice 24");
    g_assert_cmpuint(rig_count(rig, "refusals", "{}"), ==, 0);
    check_manners(rig);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/ask/answered", test_answered);
    g_test_add_func("/discord/ask/refused", test_refused);
    g_test_add_func("/discord/ask/choice-of-some", test_choice_of_some);
    g_test_add_func("/discord/ask/pressed-twice", test_pressed_twice);
    g_test_add_func("/discord/ask/timeout", test_timeout);
    g_test_add_func("/discord/ask/withdrawn", test_withdrawn);
    g_test_add_func("/discord/ask/restart", test_restart);
    g_test_add_func("/discord/ask/orphan", test_orphan);
    g_test_add_func("/discord/ask/expired-while-down", test_expired_while_down);
    g_test_add_func("/discord/ask/deleted", test_deleted);
    g_test_add_func("/discord/ask/late", test_late);
    g_test_add_func("/discord/ask/withdrawn-unsent", test_withdrawn_unsent);
    g_test_add_func("/discord/ask/no-access", test_no_access);
    g_test_add_func("/discord/ask/refused-questions", test_refused_questions);
    g_test_add_func("/discord/ask/bounds", test_bounds);
    g_test_add_func("/discord/ask/large", test_large);
    return g_test_run();
}
