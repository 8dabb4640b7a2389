/* SPDX-License-Identifier: MIT */
#include "discord-threads.h"
#include "eb-test.h"

#include <string.h>

#define CHANNEL "1180000000000000001"
#define OTHER "1180000000000000002"
#define THREAD "1180000000000000010"
#define STRANGER "1180000000000000011"
#define STRANGE "{\"id\":\"" STRANGER "\",\"parent_id\":\"" OTHER "\",\"thread_metadata\":{\"archived\":"

static JsonNode *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    JsonNode *node = eb_json_parse(text, strlen(text), NULL, &error);

    g_assert_no_error(error);
    return node;
}

static const char *
note(DiscordThreads *threads, const char *text)
{
    g_autoptr(JsonNode) node = parse(text);
    return discord_threads_note(threads, eb_json_node_object(node));
}

/* Its parent decides, and nothing else: neither its own id nor its guild. */
static void
test_parent(void)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);

    g_assert_cmpint(discord_threads_place(threads, CHANNEL), ==, DISCORD_PLACE_CHANNEL);
    g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_UNKNOWN);
    g_assert_cmpint(discord_threads_place(threads, NULL), ==, DISCORD_PLACE_UNKNOWN);
    note(threads, "{\"id\":\"" THREAD "\",\"parent_id\":\"" CHANNEL "\",\"thread_metadata\":{\"archived\":false}}");
    note(threads, "{\"id\":\"" STRANGER "\",\"parent_id\":\"" OTHER "\",\"thread_metadata\":{\"archived\":false}}");
    note(threads, "{\"id\":\"" OTHER "\",\"parent_id\":\"" CHANNEL "\",\"type\":0}");
    g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_THREAD);
    g_assert_cmpint(discord_threads_place(threads, STRANGER), ==, DISCORD_PLACE_OTHER);
    g_assert_cmpint(discord_threads_place(threads, OTHER), ==, DISCORD_PLACE_OTHER);
    /* The channel is what it is, whatever an object of that id says. */
    note(threads, "{\"id\":\"" CHANNEL "\",\"parent_id\":\"" OTHER "\",\"thread_metadata\":{}}");
    g_assert_cmpint(discord_threads_place(threads, CHANNEL), ==, DISCORD_PLACE_CHANNEL);
}

static void
test_states(void)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);
    const char *open = "{\"id\":\"" THREAD "\",\"parent_id\":\"" CHANNEL "\",\"thread_metadata\":{\"archived\":false}}";
    const char *shut = "{\"id\":\"" THREAD "\",\"parent_id\":\"" CHANNEL "\",\"thread_metadata\":{\"archived\":true}}";

    g_assert_null(note(threads, open));
    g_assert_null(note(threads, open));
    g_assert_cmpstr(note(threads, shut), ==, "archived");
    g_assert_null(note(threads, shut));
    g_assert_cmpstr(note(threads, open), ==, "open");
    g_assert_null(note(threads, STRANGE "false}}"));
    g_assert_null(note(threads, STRANGE "true}}"));
    g_assert_true(discord_threads_remove(threads, THREAD));
    g_assert_false(discord_threads_remove(threads, THREAD));
    g_assert_false(discord_threads_remove(threads, STRANGER));
    g_assert_false(discord_threads_remove(threads, NULL));
    g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_UNKNOWN);
}

static void
test_claims(void)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);

    discord_threads_claim(threads, THREAD);
    discord_threads_claim(threads, CHANNEL);
    discord_threads_claim(threads, "main");
    discord_threads_claim(threads, NULL);
    discord_threads_refuse(threads, STRANGER);
    discord_threads_refuse(threads, CHANNEL);
    g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_THREAD);
    g_assert_cmpint(discord_threads_place(threads, STRANGER), ==, DISCORD_PLACE_OTHER);
    g_assert_cmpint(discord_threads_place(threads, CHANNEL), ==, DISCORD_PLACE_CHANNEL);
    g_assert_cmpuint(discord_threads_get_size(threads), ==, 2);
    g_autoptr(GPtrArray) list = discord_threads_list(threads);
    g_assert_cmpuint(list->len, ==, 1);
    g_assert_cmpstr(list->pdata[0], ==, THREAD);
    note(threads, "{\"id\":\"" OTHER "\",\"type\":0}");
    discord_threads_forget_refused(threads);
    g_assert_cmpint(discord_threads_place(threads, STRANGER), ==, DISCORD_PLACE_UNKNOWN);
    g_assert_cmpint(discord_threads_place(threads, OTHER), ==, DISCORD_PLACE_OTHER);
    g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_THREAD);
}

static void
test_broken(void)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);
    static const char *const texts[] = {
        "{}",
        "{\"id\":7}",
        "{\"id\":\"x\"}",
        "{\"id\":null,\"thread_metadata\":[]}",
        "{\"id\":\"99999999999999999999\",\"parent_id\":\"" CHANNEL "\",\"thread_metadata\":{}}",
    };

    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_null(note(threads, texts[i]));
    discord_threads_note_all(threads, NULL);
    g_autoptr(JsonNode) mixed = parse("[1,null,{\"id\":\"" OTHER "\"},[],\"x\"]");
    discord_threads_note_all(threads, json_node_get_array(mixed));
    g_assert_cmpuint(discord_threads_get_size(threads), ==, 1);
}

/* What is spoken in stays, what was not heard of for longest makes room. */
static void
test_bound(void)
{
    g_autoptr(DiscordThreads) threads = discord_threads_new(CHANNEL);

    discord_threads_claim(threads, THREAD);
    for (guint i = 0; i < DISCORD_THREADS_MAX + 100; i++) {
        g_autofree char *id = g_strdup_printf("1190000000000%06u", i);
        discord_threads_refuse(threads, id);
        g_assert_cmpint(discord_threads_place(threads, THREAD), ==, DISCORD_PLACE_THREAD);
    }
    g_assert_cmpuint(discord_threads_get_size(threads), ==, DISCORD_THREADS_MAX);
    g_assert_cmpint(discord_threads_place(threads, "1190000000000000000"), ==, DISCORD_PLACE_UNKNOWN);
    g_assert_cmpint(discord_threads_place(threads, "1190000000000008000"), ==, DISCORD_PLACE_OTHER);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/threads/parent", test_parent);
    g_test_add_func("/discord/threads/states", test_states);
    g_test_add_func("/discord/threads/claims", test_claims);
    g_test_add_func("/discord/threads/broken", test_broken);
    g_test_add_func("/discord/threads/bound", test_bound);
    return g_test_run();
}
