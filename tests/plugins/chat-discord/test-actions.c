/* SPDX-License-Identifier: MIT */
#include "discord-commands.h"
#include "standin-rig.h"

#include <string.h>

#define ALICE DISCORD_STANDIN_ALICE
#define EPHEMERAL "{\"ephemeral\":true}"
#define LONG_MS 600000

static const EbChatOption allow_options[] = {{.name = "person", .summary = "who", .required = TRUE, .person = TRUE}};
static const EbChatOption cat_options[] = {{.name = "path", .summary = "which file"}};
static const EbChatCommand commands[] = {
    {.name = "stop", .summary = "ends the session"},
    {.name = "allow", .summary = "lets somebody join in", .options = allow_options, .n_options = 1},
    {.name = "cat", .summary = "shows a file", .options = cat_options, .n_options = 1},
};

static gboolean
register_commands(Rig *rig, const EbChatCommand *list, gsize n, GError **error)
{
    g_auto(EbTestResult) done = {0};
    gboolean changed = FALSE;

    discord_commands_register_async(rig->rest, DISCORD_STANDIN_APPLICATION, DISCORD_STANDIN_GUILD, list, n, NULL,
                                    eb_test_result_ready, &done);
    return discord_commands_register_finish(rig->rest, eb_test_result_wait(&done), &changed, error) && changed;
}

static Rig *
rig_with_commands(gboolean in_thread)
{
    Rig *rig = rig_new(0, in_thread);
    g_autoptr(GError) error = NULL;

    g_assert_true(register_commands(rig, commands, G_N_ELEMENTS(commands), &error));
    g_assert_no_error(error);
    return rig;
}

/* (transfer full): id of the interaction */
static char *
give(Rig *rig, const char *name, const char *options)
{
    g_autoptr(JsonObject) done =
        rig_call(rig, "command", "{\"channel\":\"%s\",\"user\":\"" ALICE "\",\"name\":\"%s\",\"options\":%s}",
                 rig->thread != NULL ? rig->thread : DISCORD_STANDIN_CHANNEL, name, options);

    return g_strdup(eb_json_get_string(done, "id"));
}

static EbChatMessage *
wait_action(Rig *rig, guint index)
{
    while (rig->actions->len <= index)
        g_main_context_iteration(NULL, TRUE);
    return rig->actions->pdata[index];
}

typedef struct {
    EbTestResult result;
} Answering;

static Answering *
answer(Rig *rig, const char *id, const char *text)
{
    Answering *self = g_new0(Answering, 1);
    g_autoptr(EbChatPost) post = eb_chat_post_new(DISCORD_STANDIN_CHANNEL, EB_CHAT_POST_ANSWER, text);

    discord_interactions_answer_async(rig->interactions, id, post, rig->outbox, NULL, eb_test_result_ready,
                                      &self->result);
    return self;
}

static char *
answer_end(Rig *rig, Answering *self, GError **error)
{
    char *id = discord_interactions_answer_finish(rig->interactions, eb_test_result_wait(&self->result), error);

    g_assert_cmpuint(self->result.calls, ==, 1);
    eb_test_result_clear(&self->result);
    g_free(self);
    return id;
}

static void
check_manners(Rig *rig)
{
    g_assert_cmpuint(rig_count(rig, "pings", "{}"), ==, 0);
    g_assert_cmpuint(rig_count(rig, "violations", "{}"), ==, 0);
    g_assert_cmpint(discord_standin_stat(rig->standin, "limited"), ==, 0);
}

static void
test_answered(void)
{
    g_autoptr(Rig) rig = rig_with_commands(TRUE);
    g_autofree char *id = give(rig, "allow", "{\"person\":\"" DISCORD_STANDIN_BOB "\"}");
    EbChatMessage *action = wait_action(rig, 0);
    g_autoptr(GError) error = NULL;
    g_autofree char *message = NULL;

    /* Acknowledged before anybody heard of it. */
    g_assert_cmpuint(rig_count(rig, "interactions", "{\"acked\":true}"), ==, 1);
    g_assert_cmpstr(action->id, ==, id);
    g_assert_cmpstr(action->thread, ==, rig->thread);
    g_assert_cmpstr(action->author_id, ==, ALICE);
    g_assert_cmpstr(action->text, ==, "");
    g_assert_cmpint(action->sent_unix_ms, >, 0);
    g_assert_cmpstr(eb_json_get_string(action->extra, "command"), ==, "allow");
    g_assert_cmpstr(eb_json_get_string(eb_json_get_object(action->extra, "options"), "person"), ==,
                    DISCORD_STANDIN_BOB);
    g_assert_true(discord_interactions_knows(rig->interactions, id));
    message = answer_end(rig, answer(rig, id, "@everyone <@" DISCORD_STANDIN_BOB "> may join"), &error);
    g_assert_no_error(error);
    g_assert_nonnull(message);
    rig_wait(rig, "interactions", "{\"answered\":true,\"text\":\"may join\"}", 1);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":true,\"text\":\"may join\"}"), ==, 1);
    check_manners(rig);
}

/* Several posts answer one command, in their order, whenever they come. */
static void
test_many_answers(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = give(rig, "cat", "{\"path\":\"x\"}");
    Answering *parts[5];

    g_assert_null(wait_action(rig, 0)->thread);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *text = g_strdup_printf("part %u", i);
        parts[i] = answer(rig, id, text);
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *message = answer_end(rig, parts[i], &error);
        g_assert_no_error(error);
    }
    g_assert_cmpuint(rig_count(rig, "interactions", "{\"text\":\"^part 0\\npart 1\\npart 2\\npart 3\\npart 4$\"}"), ==,
                     1);
    g_assert_cmpuint(rig_count(rig, "messages", EPHEMERAL), ==, 5);
    check_manners(rig);
}

/* More than can wait: the rest are plain messages, none is lost. */
static void
test_waiting_bound(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = give(rig, "stop", "{}");
    Answering *parts[DISCORD_INTERACTIONS_MAX_WAITING + 4];

    wait_action(rig, 0);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *text = g_strdup_printf("piece %u", i);
        parts[i] = answer(rig, id, text);
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *message = answer_end(rig, parts[i], &error);
        g_assert_no_error(error);
    }
    /* One is under way, as many as may wait do. */
    g_assert_cmpuint(rig_count(rig, "messages", EPHEMERAL), ==, DISCORD_INTERACTIONS_MAX_WAITING + 1);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":false,\"text\":\"piece\"}"), ==, 3);
    check_manners(rig);
}

static void
test_silence(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = NULL;
    g_autofree char *message = NULL;

    discord_interactions_set_times(rig->interactions, 200, LONG_MS);
    id = give(rig, "stop", "{}");
    wait_action(rig, 0);
    rig_wait(rig, "interactions", "{\"answered\":true,\"text\":\"No answer came.*`!stop`\"}", 1);
    message = answer_end(rig, answer(rig, id, "ended"), NULL);
    g_assert_nonnull(message);
    rig_wait(rig, "interactions", "{\"answered\":true,\"text\":\"^ended$\"}", 1);
    check_manners(rig);
}

/* After a quarter of an hour Discord takes no answer: it is said in the channel. */
static void
test_too_late(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = give(rig, "stop", "{}");
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    g_autoptr(JsonObject) aged = NULL;

    wait_action(rig, 0);
    aged = rig_call(rig, "age-interaction", "{\"id\":\"%s\",\"seconds\":1000}", id);
    first = answer_end(rig, answer(rig, id, "ended at last"), NULL);
    second = answer_end(rig, answer(rig, id, "and more"), NULL);
    g_assert_nonnull(first);
    g_assert_nonnull(second);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"author\":\"bot\",\"ephemeral\":false,\"text\":\"ended at last\"}"),
                     ==, 1);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"author\":\"bot\",\"ephemeral\":false,\"text\":\"and more\"}"), ==,
                     1);
    g_assert_cmpuint(rig_count(rig, "refusals", "{\"code\":50027}"), ==, 1); /* it is not asked for twice */
    check_manners(rig);
}

/* The same by our own clock: the token is not used any more. */
static void
test_life_over(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = NULL;
    g_autofree char *message = NULL;

    discord_interactions_set_times(rig->interactions, 100, 200);
    id = give(rig, "stop", "{}");
    wait_action(rig, 0);
    rig_wait(rig, "interactions", "{\"text\":\"No answer came\"}", 1);
    eb_test_run_for(300);
    message = answer_end(rig, answer(rig, id, "too late"), NULL);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":false,\"text\":\"too late\"}"), ==, 1);
    check_manners(rig);
}

/* Discord does not take the first sign of life. A command just given runs and is answered in the open; an old one, told
   again after a long gap, does not run: the person was told long ago that it failed. */
static void
test_not_acknowledged(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = NULL;
    g_autofree char *message = NULL;
    g_autoptr(JsonObject) aged = NULL;
    g_autoptr(JsonObject) twin = NULL;
    JsonObject *seen;

    rig->deaf = TRUE;
    id = give(rig, "stop", "{}");
    while (rig->interactions_seen->len < 1)
        g_main_context_iteration(NULL, TRUE);
    aged = rig_call(rig, "age-interaction", "{\"id\":\"%s\",\"seconds\":10}", id);
    rig_hear(rig);
    wait_action(rig, 0);
    message = answer_end(rig, answer(rig, id, "ended"), NULL);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"author\":\"bot\",\"ephemeral\":false,\"text\":\"^ended$\"}"), ==,
                     1);
    /* The same, but given two minutes ago by its id. */
    seen = json_node_get_object(rig->interactions_seen->pdata[0]);
    {
        const guint64 now = g_ascii_strtoull(id, NULL, 10);
        g_autofree char *old = g_strdup_printf("%" G_GUINT64_FORMAT, now - ((G_GUINT64_CONSTANT(120000)) << 22));
        json_object_set_string_member(seen, "id", old);
        discord_interactions_handle(rig->interactions, seen, NULL);
    }
    rig_wait(rig, "refusals", "{\"code\":10062}", 2);
    eb_test_run_for(100);
    g_assert_cmpuint(rig->actions->len, ==, 1);
    check_manners(rig);
}

static void
test_unknown(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *message = answer_end(rig, answer(rig, "100000000000000777", "hello"), NULL);
    g_autoptr(EbChatPost) post = eb_chat_post_new(DISCORD_STANDIN_CHANNEL, EB_CHAT_POST_ANSWER, "nowhere to go");
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(message);
    g_assert_false(discord_interactions_knows(rig->interactions, "100000000000000777"));
    g_assert_false(discord_interactions_knows(rig->interactions, NULL));
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":false,\"text\":\"hello\"}"), ==, 1);
    discord_interactions_answer_async(rig->interactions, "1", post, NULL, NULL, eb_test_result_ready, &done);
    g_assert_null(discord_interactions_answer_finish(rig->interactions, eb_test_result_wait(&done), &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "discord.interaction", NULL);
}

/* Two threads: a command in one is no concern of the other. Elsewhere it does nothing. */
static void
test_places(void)
{
    g_autoptr(Rig) rig = rig_with_commands(TRUE);
    g_autofree char *first = g_steal_pointer(&rig->thread);
    g_autofree char *in_channel = NULL;
    g_autofree char *in_thread = NULL;
    g_autofree char *elsewhere = NULL;

    in_channel = give(rig, "stop", "{}");
    g_assert_null(wait_action(rig, 0)->thread);
    rig->thread = g_strdup(first);
    in_thread = give(rig, "stop", "{}");
    g_assert_cmpstr(wait_action(rig, 1)->thread, ==, first);
    g_free(rig->thread);
    rig->thread = g_strdup(DISCORD_STANDIN_OTHER_CHANNEL);
    elsewhere = give(rig, "stop", "{}");
    rig_wait(rig, "interactions",
             "{\"channel\":\"" DISCORD_STANDIN_OTHER_CHANNEL "\",\"acked\":true,\"text\":\"Not here\"}", 1);
    g_assert_cmpuint(
        rig_count(rig, "messages", "{\"channel\":\"" DISCORD_STANDIN_OTHER_CHANNEL "\",\"ephemeral\":true}"), ==, 1);
    g_assert_cmpuint(rig->actions->len, ==, 2);
    check_manners(rig);
}

/* What is not ours, or says one place and comes from another. */
static void
test_foreign(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    static const struct {
        const char *member, *value;
    } changes[] = {{"application_id", "100000000000000666"}, {"guild_id", "100000000000000666"}};
    g_autofree char *id = NULL;
    guint requests;

    rig->deaf = TRUE;
    id = give(rig, "stop", "{}");
    while (rig->interactions_seen->len < 1)
        g_main_context_iteration(NULL, TRUE);
    requests = rig_count(rig, "requests", "{\"method\":\"POST\"}");
    for (gsize i = 0; i < G_N_ELEMENTS(changes); i++) {
        JsonObject *data = json_node_get_object(rig->interactions_seen->pdata[0]);
        g_autofree char *before = g_strdup(eb_json_get_string(data, changes[i].member));
        json_object_set_string_member(data, changes[i].member, changes[i].value);
        discord_interactions_handle(rig->interactions, data, NULL);
        json_object_set_string_member(data, changes[i].member, before);
    }
    eb_test_run_for(100);
    g_assert_cmpuint(rig_count(rig, "requests", "{\"method\":\"POST\"}"), ==, requests);
    /* Of this channel, told as of a thread. */
    discord_interactions_handle(rig->interactions, json_node_get_object(rig->interactions_seen->pdata[0]),
                                RIG_THREAD_OTHER);
    rig_wait(rig, "interactions", "{\"acked\":true,\"text\":\"does not work here\"}", 1);
    g_assert_cmpuint(rig->actions->len, ==, 0);
    check_manners(rig);
}

static void
test_told_twice(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autoptr(JsonObject) fault =
        rig_call(rig, "event-fault", "{\"type\":\"INTERACTION_CREATE\",\"kind\":\"duplicate\",\"count\":1}");
    g_autofree char *id = give(rig, "stop", "{}");

    while (rig->interactions_seen->len < 2)
        g_main_context_iteration(NULL, TRUE);
    wait_action(rig, 0);
    eb_test_run_for(100);
    g_assert_cmpuint(rig->actions->len, ==, 1);
    g_assert_cmpuint(rig_count(rig, "refusals", "{}"), ==, 0);
    check_manners(rig);
}

/* More commands than are remembered: the oldest is answered in the open. */
static void
test_table_bound(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *oldest = NULL;
    g_autofree char *message = NULL;

    for (guint i = 0; i <= DISCORD_INTERACTIONS_MAX; i++) {
        g_autofree char *id = give(rig, "stop", "{}");
        wait_action(rig, i);
        if (i == 0)
            oldest = g_steal_pointer(&id);
    }
    g_assert_cmpuint(discord_interactions_get_open(rig->interactions), ==, DISCORD_INTERACTIONS_MAX);
    g_assert_false(discord_interactions_knows(rig->interactions, oldest));
    message = answer_end(rig, answer(rig, oldest, "long ago"), NULL);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":false,\"text\":\"long ago\"}"), ==, 1);
    check_manners(rig);
}

static void
test_files_and_nothing(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_autofree char *id = give(rig, "cat", "{}");
    g_autoptr(EbChatPost) post = eb_chat_post_new(DISCORD_STANDIN_CHANNEL, EB_CHAT_POST_ANSWER, "");
    g_autoptr(GBytes) bytes = g_bytes_new_static("hello", 5);
    g_auto(EbTestResult) done = {0};
    g_autofree char *with_file = NULL;
    g_autofree char *empty = NULL;
    g_autoptr(GError) error = NULL;

    wait_action(rig, 0);
    post->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(post->files, eb_chat_file_new("x.txt", "text/plain", bytes));
    discord_interactions_answer_async(rig->interactions, id, post, rig->outbox, NULL, eb_test_result_ready, &done);
    with_file = discord_interactions_answer_finish(rig->interactions, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":true,\"attachments\":true}"), ==, 1);
    empty = answer_end(rig, answer(rig, id, " \n"), &error);
    g_assert_no_error(error);
    g_assert_cmpuint(rig_count(rig, "messages", "{\"ephemeral\":true,\"text\":\"^Done.$\"}"), ==, 1);
    check_manners(rig);
}

/* A component of somebody else's making, as an older version of the bot could have left. */
static void
test_foreign_button(void)
{
    g_autoptr(Rig) rig = rig_with_commands(FALSE);
    g_auto(EbTestResult) posted = {0};
    g_autofree char *message = NULL;
    g_autoptr(GError) error = NULL;
    const char *text = "{\"content\":\"old\",\"components\":[{\"type\":1,\"components\":[{\"type\":2,\"style\":2,"
                       "\"label\":\"x\",\"custom_id\":\"other\"}]}]}";
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);

    discord_outbox_create_async(rig->outbox, json_node_dup_object(node), NULL, NULL, eb_test_result_ready, &posted);
    message = discord_outbox_create_finish(rig->outbox, eb_test_result_wait(&posted), &error);
    g_assert_no_error(error);
    rig_press(rig, message, ALICE, "x");
    rig_wait(rig, "messages", "{\"ephemeral\":true,\"text\":\"no longer open\"}", 1);
    rig_wait(rig, "messages", "{\"text\":\"^old$\",\"components\":false}", 1);
    g_assert_cmpuint(rig->actions->len, ==, 0);
    check_manners(rig);
}

static void
test_registered(void)
{
    g_autoptr(Rig) rig = rig_new(0, FALSE);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonObject) fault = NULL;

    g_assert_true(register_commands(rig, commands, G_N_ELEMENTS(commands), &error));
    g_assert_cmpuint(rig_count(rig, "commands", "{}"), ==, 3);
    /* The same again changes nothing; another table does. */
    g_assert_false(register_commands(rig, commands, G_N_ELEMENTS(commands), &error));
    g_assert_no_error(error);
    g_assert_cmpint(discord_standin_stat(rig->standin, "command_overwrites"), ==, 1);
    g_assert_true(register_commands(rig, commands, 2, &error));
    g_assert_cmpuint(rig_count(rig, "commands", "{}"), ==, 2);
    g_assert_cmpint(discord_standin_stat(rig->standin, "command_overwrites"), ==, 2);
    fault = rig_call(rig, "fault", "{\"method\":\"GET\",\"path\":\"/commands\",\"kind\":\"50013\",\"count\":1}");
    g_assert_false(register_commands(rig, commands, 1, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "discord.50013", "invite it again with https://discord.com/oauth2/");
    check_manners(rig);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/actions/answered", test_answered);
    g_test_add_func("/discord/actions/many-answers", test_many_answers);
    g_test_add_func("/discord/actions/waiting-bound", test_waiting_bound);
    g_test_add_func("/discord/actions/silence", test_silence);
    g_test_add_func("/discord/actions/too-late", test_too_late);
    g_test_add_func("/discord/actions/life-over", test_life_over);
    g_test_add_func("/discord/actions/not-acknowledged", test_not_acknowledged);
    g_test_add_func("/discord/actions/unknown", test_unknown);
    g_test_add_func("/discord/actions/places", test_places);
    g_test_add_func("/discord/actions/foreign", test_foreign);
    g_test_add_func("/discord/actions/told-twice", test_told_twice);
    g_test_add_func("/discord/actions/table-bound", test_table_bound);
    g_test_add_func("/discord/actions/files-and-nothing", test_files_and_nothing);
    g_test_add_func("/discord/actions/foreign-button", test_foreign_button);
    g_test_add_func("/discord/actions/registered", test_registered);
    return g_test_run();
}
