/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "discord-gateway-payload.h"
#include "discord-gateway-queue.h"
#include "gateway-rig.h"

#define HELLO "{\"op\":10,\"d\":{\"heartbeat_interval\":41250}}"
#define DAY_MS (24 * 3600 * 1000)

static guint
most_within(const gint64 *at, guint n, gint64 window)
{
    guint most = 0;
    for (guint i = 0, first = 0; i < n; i++) {
        while (at[i] - at[first] >= window)
            first++;
        most = MAX(most, i - first + 1);
    }
    return most;
}

/* Identifying whenever it is allowed stays within every window. */
static void
test_windows(void)
{
    static const struct {
        guint most;
        gint64 window;
    } windows[] = {{1, 5000}, {6, 60000}, {20, 600000}, {60, 3600000}, {DISCORD_IDENTIFY_KEPT, DAY_MS}};
    DiscordIdentifyBudget budget = {.n = 0};
    g_autoptr(GArray) at = g_array_new(FALSE, FALSE, sizeof(gint64));
    gint64 now = -5000;

    while (now < 3 * (gint64)DAY_MS) {
        gint64 wait = discord_identify_budget_wait(&budget, now);
        g_assert_cmpint(wait, <=, DAY_MS);
        now += wait;
        g_assert_cmpint(discord_identify_budget_wait(&budget, now), ==, 0);
        discord_identify_budget_note(&budget, now);
        g_array_append_val(at, now);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(windows); i++)
        g_assert_cmpuint(most_within((gint64 *)(gpointer)at->data, at->len, windows[i].window), <=, windows[i].most);
    g_assert_cmpuint(at->len, >=, 3 * DISCORD_IDENTIFY_KEPT);
    g_assert_cmpuint(budget.n, ==, DISCORD_IDENTIFY_KEPT);
}

static void
test_backoff(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    gint64 sum = 0;

    for (guint failures = 0; failures < 200; failures++) {
        for (guint i = 0; i < 20; i++) {
            gint64 pause = discord_backoff(failures, random);
            g_assert_cmpint(pause, >=, 0);
            g_assert_cmpint(pause, <=, failures < 7 ? 1000 << failures : DISCORD_BACKOFF_MAX);
            sum += failures >= 7 ? pause : 0;
        }
    }
    /* Jitter is over all of it: the mean is in the middle. */
    sum /= (gint64)193 * 20;
    g_assert_cmpint(sum, >, DISCORD_BACKOFF_MAX / 2 - 5000);
    g_assert_cmpint(sum, <, DISCORD_BACKOFF_MAX / 2 + 5000);
    g_assert_cmpint(discord_backoff(G_MAXUINT, random), <=, DISCORD_BACKOFF_MAX);
}

static void
test_none_left(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    discord_gateway_state_start(rig->state, rig->now);
    rig_expect(rig, "ask");
    rig_info(rig, 0, 3600000);
    rig_expect(rig, "");
    g_assert_nonnull(strstr(rig->log->str, "no new session for another 3600 s"));
    g_assert_cmpint(rig_wait(rig), ==, 3600000);
    rig_expect(rig, "ask");
    rig_info(rig, 1, 3600000);
    rig_expect(rig, "connect");
    g_assert_nonnull(strstr(rig->log->str, "1 of 1000 new sessions left"));
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    discord_gateway_state_saved(rig->state, rig->now);
    rig_expect(rig, "save identify");
    /* The last one is used up, as we count ourselves: even if nobody can be asked, the reset is waited for. */
    gint64 start = rig->now.mono;
    rig_receive(rig, "{\"op\":9,\"d\":false}");
    rig_expect(rig, "close-4000");
    while (rig->done->len == 0)
        rig_wait(rig);
    rig_expect(rig, "ask");
    g_assert_cmpint(rig->now.mono - start, >=, 3600000 - 1000);
}

/* An API that is away does not keep us from a gateway that is known. */
static void
test_api_away(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    g_autoptr(GError) away = eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable", "HTTP 503");
    g_autoptr(GError) refused = eb_error_new(EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", "401");

    rig_until_up(rig);
    rig_pass(rig, DISCORD_GATEWAY_SESSION_MS);
    discord_gateway_state_closed(rig->state, 4009, NULL, rig->now);
    rig_wait(rig);
    rig_expect(rig, "down ask");
    discord_gateway_state_untold(rig->state, away, rig->now);
    rig_expect(rig, "connect");
    discord_gateway_state_closed(rig->state, 0, NULL, rig->now);
    rig_wait(rig);
    rig_expect(rig, "ask");
    discord_gateway_state_untold(rig->state, refused, rig->now);
    rig_expect(rig, "fail");
    eb_test_assert_error(rig->error, EB_ERROR_UNAUTHENTICATED, "discord.unauthorized", "creds set chat-token");
}

static void
test_shards(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    DiscordGatewayInfo info = {(char *)RIG_URL, 2, 1000, 900, 0};

    discord_gateway_state_start(rig->state, rig->now);
    discord_gateway_state_told(rig->state, &info, rig->now);
    rig_expect(rig, "ask connect");
    g_assert_nonnull(strstr(rig->log->str, "2 shards"));
}

static void
test_info(void)
{
    static const char *const refused[] = {"{}", "[]", "{\"url\":\"\"}", "{\"url\":7}", "null"};
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_auto(DiscordGatewayInfo) info = {NULL};
        g_autoptr(JsonNode) node = eb_json_parse(refused[i], strlen(refused[i]), NULL, NULL);
        g_assert_false(discord_gateway_info_read(eb_json_node_object(node), &info, &error));
        eb_test_assert_error(error, EB_ERROR_PROTOCOL, NULL, NULL);
        g_clear_error(&error);
    }
    const char *text = "{\"url\":\"wss://x\",\"shards\":1,\"session_start_limit\":{\"total\":1000,\"remaining\":-7,"
                       "\"reset_after\":9223372036854775807,\"max_concurrency\":1}}";
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, NULL);
    g_auto(DiscordGatewayInfo) info = {NULL};
    g_assert_true(discord_gateway_info_read(eb_json_node_object(node), &info, &error));
    g_assert_cmpint(info.remaining, ==, -1);
    g_assert_cmpint(info.reset_after, ==, DAY_MS);
}

/* The token goes to Discord alone, whatever names the gateway. */
static void
test_url(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    DiscordGatewayInfo info = {(char *)"wss://gateway.discord.gg.evil.example", 1, 1000, 900, 0};

    discord_gateway_state_start(rig->state, rig->now);
    discord_gateway_state_told(rig->state, &info, rig->now);
    rig_expect(rig, "ask fail");
    eb_test_assert_error(rig->error, EB_ERROR_CONFIG, "discord.gateway-url", NULL);

    g_autoptr(Rig) other = rig_new(1);
    rig_until_greeting(other);
    rig_receive(other, HELLO);
    discord_gateway_state_saved(other->state, other->now);
    rig_receive(other, "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"abc\",\"resume_gateway_url\":"
                       "\"wss://evil.example\"}}");
    discord_gateway_state_closed(other->state, 1006, NULL, other->now);
    rig_expect(other, "save identify down");
    rig_wait(other);
    rig_expect(other, "connect");
    g_assert_cmpstr(other->url, ==, RIG_URL "/?v=10&encoding=json");
}

static void
test_ready_without_session(void)
{
    static const char *const readies[] = {
        "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{}}",
        "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"\"}}",
        "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"a\\nb\"}}",
        "{\"op\":0,\"t\":\"READY\",\"s\":1}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(readies); i++) {
        g_autoptr(Rig) rig = rig_new(1);
        rig_until_greeting(rig);
        rig_receive(rig, HELLO);
        discord_gateway_state_saved(rig->state, rig->now);
        g_assert_cmpint(rig_receive(rig, readies[i]), ==, DISCORD_GATEWAY_NO_EVENT);
        rig_expect(rig, "save identify close-4000");
    }
}

/* Longer than any there are: no session, no URL to resume at. */
static void
test_long_ready(void)
{
    g_autofree char *id = g_strnfill(DISCORD_SESSION_ID_MAX, 'x');
    g_autofree char *url = g_strdup_printf(RIG_RESUME "/%0*d", DISCORD_GATEWAY_URL_MAX, 0);

    for (guint more = 0; more < 2; more++) {
        g_autoptr(Rig) rig = rig_new(1);
        g_autofree char *ready = g_strdup_printf("{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"%s%s\","
                                                 "\"resume_gateway_url\":\"%s\"}}",
                                                 id, more > 0 ? "x" : "", url);
        rig_until_greeting(rig);
        rig_receive(rig, HELLO);
        discord_gateway_state_saved(rig->state, rig->now);
        g_assert_cmpint(rig_receive(rig, ready), ==, more > 0 ? DISCORD_GATEWAY_NO_EVENT : DISCORD_GATEWAY_READY);
        rig_expect(rig, more > 0 ? "save identify close-4000" : "save identify");
        discord_gateway_state_closed(rig->state, 1006, NULL, rig->now);
        rig_take(rig);
        rig_wait(rig);
        g_assert_cmpstr(rig->url, ==, RIG_URL "/?v=10&encoding=json");
    }
}

/* --- what is sent, what waits --- */

static EbSecret *
secret(const char *text)
{
    g_autofree char *bytes = g_strdup(text);
    return eb_secret_new_take("chat-token", bytes, strlen(bytes), NULL);
}

static void
test_payloads(void)
{
    g_autoptr(EbSecret) token = secret("a\"b\\c");
    g_autofree char *fitting = g_strnfill(DISCORD_GATEWAY_MAX_PAYLOAD - 100, 'x');
    g_autofree char *filler = g_strnfill(DISCORD_GATEWAY_MAX_PAYLOAD, 'x');
    g_autoptr(EbSecret) longest = secret(fitting);
    g_autoptr(EbSecret) too_long = secret(filler);
    g_autoptr(EbSecret) blank = secret("a b");
    g_auto(DiscordGatewayPayload) beat = {.length = 0};
    g_auto(DiscordGatewayPayload) resume = {.length = 0};
    g_auto(DiscordGatewayPayload) full = {.length = 0};
    g_auto(DiscordGatewayPayload) over = {.length = 0};
    g_auto(DiscordGatewayPayload) odd = {.length = 0};

    discord_gateway_payload_heartbeat(&beat, -1);
    g_assert_cmpstr(beat.text, ==, "{\"op\":1,\"d\":null}");
    discord_gateway_payload_resume(&resume, token, "s\"\n", DISCORD_GATEWAY_MAX_SEQ);
    g_assert_false(resume.bad);
    g_autoptr(JsonNode) node = eb_json_parse(resume.text, resume.length, NULL, NULL);
    JsonObject *data = eb_json_get_object(eb_json_node_object(node), "d");
    g_assert_cmpstr(eb_json_get_string(data, "token"), ==, "a\"b\\c");
    g_assert_cmpstr(eb_json_get_string(data, "session_id"), ==, "s\"\n");
    g_assert_cmpint(eb_json_get_int(data, "seq", -1), ==, DISCORD_GATEWAY_MAX_SEQ);
    discord_gateway_payload_resume(&full, longest, "s", 1);
    g_assert_false(full.bad);
    discord_gateway_payload_resume(&over, too_long, "s", 1);
    g_assert_true(over.bad);
    discord_gateway_payload_identify(&odd, blank, 1);
    g_assert_true(odd.bad);
    discord_gateway_payload_clear(&full);
    for (gsize i = 0; i < sizeof full.text; i++)
        g_assert_cmpint(full.text[i], ==, 0);
}

static void
push(DiscordGatewayQueue *queue, GBytes *payload)
{
    DiscordGatewayItem *item = g_new0(DiscordGatewayItem, 1);
    item->payload = payload != NULL ? g_bytes_ref(payload) : NULL;
    discord_gateway_queue_push(queue, item);
}

static void
drop_until_low(DiscordGatewayQueue *queue)
{
    while (!discord_gateway_queue_is_low(queue))
        discord_gateway_item_free(discord_gateway_queue_pop(queue));
}

static void
test_queue(void)
{
    DiscordGatewayQueue queue = {.bytes = 0};
    g_autofree char *filler = g_malloc0(1024 * 1024);
    g_autoptr(GBytes) payload = g_bytes_new_static(filler, 1024 * 1024);

    while (!discord_gateway_queue_is_full(&queue))
        push(&queue, NULL);
    g_assert_cmpuint(queue.items.length, ==, DISCORD_GATEWAY_QUEUE_MAX);
    drop_until_low(&queue);
    g_assert_cmpuint(queue.items.length, ==, DISCORD_GATEWAY_QUEUE_MAX / 2);
    discord_gateway_queue_clear(&queue);
    while (!discord_gateway_queue_is_full(&queue))
        push(&queue, payload);
    g_assert_cmpuint(queue.bytes, ==, DISCORD_GATEWAY_QUEUE_BYTES);
    g_assert_cmpuint(queue.items.length, <, 100);
    drop_until_low(&queue);
    g_assert_cmpuint(queue.bytes, ==, DISCORD_GATEWAY_QUEUE_BYTES / 2);
    discord_gateway_queue_clear(&queue);
    g_assert_cmpuint(queue.bytes, ==, 0);
    g_assert_null(discord_gateway_queue_pop(&queue));
}

/* --- the file --- */

static void
test_restart(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    rig_until_up(rig);
    guint epoch = discord_gateway_state_get_epoch(rig->state);
    rig_receive(rig, "{\"op\":0,\"t\":\"X\",\"s\":8,\"d\":{}}");
    rig_receive(rig, "{\"op\":0,\"t\":\"X\",\"s\":9,\"d\":{}}");

    /* Nothing was handled yet: there is nothing that RESUME could go on from. */
    g_autofree char *early = discord_gateway_state_write(rig->state, rig->now);
    g_assert_null(strstr(early, "session_id"));
    g_assert_true(discord_gateway_state_handled(rig->state, epoch, 1));
    g_assert_true(discord_gateway_state_handled(rig->state, epoch, 8));
    g_assert_false(discord_gateway_state_handled(rig->state, epoch, 8));
    g_assert_false(discord_gateway_state_handled(rig->state, epoch - 1, 100));
    discord_gateway_state_stop(rig->state, rig->now);
    rig_expect(rig, "close-4000 save");
    g_autofree char *text = discord_gateway_state_write(rig->state, rig->now);

    g_autoptr(Rig) next = rig_new(2);
    rig_pass(next, 30000);
    next->now.mono = 50;
    g_assert_true(discord_gateway_state_load(next->state, text, strlen(text), next->now));
    discord_gateway_state_start(next->state, next->now);
    rig_expect(next, "connect");
    g_assert_cmpstr(next->url, ==, RIG_RESUME "/?v=10&encoding=json");
    discord_gateway_state_connected(next->state, next->now);
    rig_receive(next, HELLO);
    rig_expect(next, "resume-abc-8");
    /* 9 was received before, but not handled: it is an event again. */
    g_assert_cmpint(rig_receive(next, "{\"op\":0,\"t\":\"X\",\"s\":9,\"d\":{}}"), ==, DISCORD_GATEWAY_EVENT);
    /* A session that does not come back after a restart is tried once. */
    discord_gateway_state_closed(next->state, 1006, NULL, next->now);
    rig_wait(next);
    rig_expect(next, "ask");
}

/* A service that dies after each start and is started again (claude-plugins-official#3140): a file and a clock. */
static void
test_crash_loop(void)
{
    g_autofree char *text = NULL;
    gint64 wall = G_GINT64_CONSTANT(1790000000000);
    const gint64 end = wall + DAY_MS;
    guint identifies = 0;

    while (wall < end) {
        g_autoptr(Rig) rig = rig_new((guint32)identifies);
        rig->now.wall = wall;
        rig->now.mono = 1000;
        if (text != NULL)
            g_assert_true(discord_gateway_state_load(rig->state, text, strlen(text), rig->now));
        discord_gateway_state_start(rig->state, rig->now);
        rig_take(rig);
        while (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_WAITING)
            rig_wait(rig);
        if (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_ASKING)
            rig_info(rig, 1000, 0);
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        g_assert_true(g_str_has_suffix(rig->done->str, "save "));
        g_free(text);
        text = discord_gateway_state_write(rig->state, rig->now);
        discord_gateway_state_saved(rig->state, rig->now);
        rig_take(rig);
        identifies += rig->identifies;
        wall = rig->now.wall + 100; /* it dies, and is back in 100 ms */
    }
    g_assert_cmpuint(identifies, <=, DISCORD_IDENTIFY_KEPT + 1);
    g_assert_cmpuint(identifies, >, 100);
}

/* A machine that forgets the time: the file is from the future at each start. It is held back all the same. */
static void
test_crash_loop_without_clock(void)
{
    g_autofree char *text = NULL;
    gint64 passed = 0;
    guint identifies = 0;

    while (passed < DAY_MS) {
        g_autoptr(Rig) rig = rig_new((guint32)identifies);
        /* Two days earlier each time. */
        rig->now = (DiscordGatewayClock){1000, G_GINT64_CONSTANT(100000000000000) - identifies * 2 * (gint64)DAY_MS};
        if (text != NULL)
            g_assert_true(discord_gateway_state_load(rig->state, text, strlen(text), rig->now));
        discord_gateway_state_start(rig->state, rig->now);
        while (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_WAITING)
            rig_wait(rig);
        rig_info(rig, 1000, 0);
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        g_free(text);
        text = discord_gateway_state_write(rig->state, rig->now);
        discord_gateway_state_saved(rig->state, rig->now);
        rig_take(rig);
        identifies += rig->identifies;
        passed += rig->now.mono;
    }
    g_assert_cmpuint(identifies, <, 1000);
}

static void
test_odd_files(void)
{
    static const struct {
        const char *text;
        gboolean ours;
    } files[] = {
        {"", FALSE},
        {"garbage", FALSE},
        {"[]", FALSE},
        {"{}", FALSE},
        {"{\"version\":2,\"session_id\":\"abc\",\"seq\":5,\"saved\":1790000000000,\"intents\":34305}", FALSE},
        {"{\"version\":1}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":0,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":-5,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":\"5\",\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"\",\"seq\":5,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"a b\",\"seq\":5,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"a\\\"\",\"seq\":5,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":7,\"seq\":5,\"saved\":1790000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":5,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":5,\"saved\":1790001000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":5,\"saved\":1780000000000,\"intents\":34305}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":5,\"saved\":1790000000000,\"intents\":1}", TRUE},
        {"{\"version\":1,\"session_id\":\"abc\",\"seq\":9223372036854775807,\"saved\":1790000000000,\"intents\":34305}",
         TRUE},
        {"{\"version\":1,\"identified\":[\"x\",null,{},-9223372036854775807,9223372036854775807,1.5]}", TRUE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autoptr(Rig) rig = rig_new(1);
        g_assert_cmpint(discord_gateway_state_load(rig->state, files[i].text, strlen(files[i].text), rig->now), ==,
                        files[i].ours);
        discord_gateway_state_start(rig->state, rig->now);
        while (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_WAITING)
            rig_wait(rig);
        rig_expect(rig, "ask");
    }
    /* The one that is right but for its URL is resumed where nothing is known: at the main one. */
    const char *text = "{\"version\":1,\"session_id\":\"abc\",\"seq\":5,\"saved\":1790000000000,\"intents\":34305,"
                       "\"resume_gateway_url\":\"https://evil.example\"}";
    g_autoptr(Rig) rig = rig_new(1);
    g_assert_true(discord_gateway_state_load(rig->state, text, strlen(text), rig->now));
    discord_gateway_state_start(rig->state, rig->now);
    rig_expect(rig, "ask");
    rig_info(rig, 1000, 0);
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "connect resume-abc-5");
}

static void
test_longest_file(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    DiscordIdentifyBudget budget = {.n = 0};
    DiscordIdentifyBudget again = {.n = 0};
    DiscordGatewaySession read = {0};
    g_autofree char *id = g_strnfill(DISCORD_SESSION_ID_MAX, 'x');
    g_autofree char *url = g_strnfill(DISCORD_GATEWAY_URL_MAX, 'y');
    DiscordGatewaySession session = {id, url, 5};

    for (guint i = 0; i < DISCORD_IDENTIFY_KEPT + 10; i++)
        discord_identify_budget_note(&budget, rig->now.mono - 300 + i);
    g_autofree char *text =
        discord_gateway_saved_write(&session, DISCORD_GATEWAY_MAX_SEQ, RIG_INTENTS, &budget, rig->now);
    g_assert_cmpuint(strlen(text), <, DISCORD_GATEWAY_SAVED_MAX);
    g_assert_true(discord_gateway_saved_read(text, strlen(text), RIG_INTENTS, rig->now, &read, &again));
    g_assert_cmpmem(budget.at, sizeof budget.at, again.at, sizeof again.at);
    g_assert_cmpstr(read.id, ==, id);
    g_assert_cmpstr(read.resume_url, ==, url);
    g_assert_cmpint(read.seq, ==, DISCORD_GATEWAY_MAX_SEQ);
    discord_gateway_session_clear(&read);
}

static void
test_stop(void)
{
    g_autoptr(Rig) idle = rig_new(1);
    discord_gateway_state_stop(idle->state, idle->now);
    rig_expect(idle, ""); /* what the file holds is not known: it is left */

    g_autoptr(Rig) rig = rig_new(1);
    rig_until_up(rig);
    discord_gateway_state_stop(rig->state, rig->now);
    discord_gateway_state_stop(rig->state, rig->now);
    rig_expect(rig, "close-4000 save");
    discord_gateway_state_closed(rig->state, 1006, NULL, rig->now);
    discord_gateway_state_tick(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "");
    g_assert_cmpint(discord_gateway_state_get_due(rig->state), ==, G_MAXINT64);
}

/* More events than can be handled: closed, and resumed when there is room; not a failure of the session's. */
static void
test_full(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    for (guint i = 0; i < 10; i++) {
        discord_gateway_state_full(rig->state, rig->now);
        rig_expect(rig, "close-4000 down");
        g_assert_cmpint(discord_gateway_state_get_due(rig->state), ==, G_MAXINT64);
        rig_pass(rig, 1000);
        discord_gateway_state_drained(rig->state, rig->now);
        rig_wait(rig);
        rig_expect(rig, "connect");
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        rig_expect(rig, "resume-abc-1");
        rig_receive(rig, "{\"op\":0,\"t\":\"RESUMED\",\"d\":{}}");
    }
    discord_gateway_state_drained(rig->state, rig->now);
    rig_expect(rig, "");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/gateway-budget/windows", test_windows);
    g_test_add_func("/discord/gateway-budget/backoff", test_backoff);
    g_test_add_func("/discord/gateway-budget/none-left", test_none_left);
    g_test_add_func("/discord/gateway-budget/api-away", test_api_away);
    g_test_add_func("/discord/gateway-budget/shards", test_shards);
    g_test_add_func("/discord/gateway-budget/info", test_info);
    g_test_add_func("/discord/gateway-budget/url", test_url);
    g_test_add_func("/discord/gateway-budget/ready-without-session", test_ready_without_session);
    g_test_add_func("/discord/gateway-budget/long-ready", test_long_ready);
    g_test_add_func("/discord/gateway-budget/payloads", test_payloads);
    g_test_add_func("/discord/gateway-budget/queue", test_queue);
    g_test_add_func("/discord/gateway-budget/restart", test_restart);
    g_test_add_func("/discord/gateway-budget/crash-loop", test_crash_loop);
    g_test_add_func("/discord/gateway-budget/crash-loop-without-clock", test_crash_loop_without_clock);
    g_test_add_func("/discord/gateway-budget/odd-files", test_odd_files);
    g_test_add_func("/discord/gateway-budget/longest-file", test_longest_file);
    g_test_add_func("/discord/gateway-budget/stop", test_stop);
    g_test_add_func("/discord/gateway-budget/full", test_full);
    return g_test_run();
}
