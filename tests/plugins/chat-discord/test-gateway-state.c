/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "discord-gateway-close.h"
#include "gateway-rig.h"

#define HELLO "{\"op\":10,\"d\":{\"heartbeat_interval\":41250}}"
#define ACK "{\"op\":11,\"d\":null}"

static void
test_first_connection(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    g_assert_cmpstr(rig->url, ==, RIG_URL "/?v=10&encoding=json");
    g_assert_cmpint(discord_gateway_state_get_phase(rig->state), ==, DISCORD_GATEWAY_UP);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"s\":2,\"d\":{}}"), ==,
                    DISCORD_GATEWAY_EVENT);
    rig_expect(rig, "");
}

/* The first beat comes after a part of the interval, every further one after all of it, with the last sequence number. */
static void
test_heartbeat(void)
{
    gint64 first_least = G_MAXINT64;
    gint64 first_most = 0;

    for (guint32 seed = 0; seed < 50; seed++) {
        g_autoptr(Rig) rig = rig_new(seed);
        rig_until_greeting(rig);
        rig_receive(rig, HELLO);
        rig_expect(rig, "save");
        discord_gateway_state_saved(rig->state, rig->now);
        rig_expect(rig, "identify");
        /* Beats come before READY too: the number of an earlier session is not told. */
        rig_receive(rig, "{\"op\":0,\"t\":\"READY\",\"s\":1,\"d\":{\"session_id\":\"abc\"}}");
        gint64 first = rig_wait(rig);
        rig_expect(rig, "beat1");
        first_least = MIN(first_least, first);
        first_most = MAX(first_most, first);
        g_assert_cmpint(first, <=, 41250);
        rig_receive(rig, ACK);
        rig_receive(rig, "{\"op\":0,\"t\":\"X\",\"s\":42,\"d\":{}}");
        g_assert_cmpint(rig_wait(rig), ==, 41250);
        rig_expect(rig, "beat42");
    }
    g_assert_cmpint(first_least, <, 10000);
    g_assert_cmpint(first_most, >, 30000);
}

static void
test_beat_before_ready(void)
{
    g_autoptr(Rig) rig = rig_new(3);

    rig_until_greeting(rig);
    rig_receive(rig, "{\"op\":10,\"d\":{\"heartbeat_interval\":1000}}");
    discord_gateway_state_saved(rig->state, rig->now);
    rig_expect(rig, "save identify");
    rig_wait(rig);
    rig_expect(rig, "beat-1");
}

/* A half-open socket takes what is written to it: only the answer counts. */
static void
test_zombie(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    rig_receive(rig, "{\"op\":0,\"t\":\"X\",\"s\":5,\"d\":{}}");
    rig_wait(rig);
    rig_expect(rig, "beat5");
    g_assert_cmpint(rig_wait(rig), ==, 41250);
    rig_expect(rig, "close-4000 down");
    g_assert_cmpint(rig_wait(rig), ==, 0);
    rig_expect(rig, "connect");
    g_assert_cmpstr(rig->url, ==, RIG_RESUME "/?v=10&encoding=json");
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "resume-abc-5");
    /* The ACK that the dead connection owed is none of the new one's (Psycheros#42). */
    rig_wait(rig);
    rig_expect(rig, "beat5");
    g_assert_cmpint(discord_gateway_state_get_phase(rig->state), ==, DISCORD_GATEWAY_RESUMING);
}

/* The service was stopped for minutes: the ACK may lie in the socket, so it is read before judging. */
static void
test_late_beat(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    rig_wait(rig);
    rig_expect(rig, "beat1");
    rig_pass(rig, 300000);
    discord_gateway_state_tick(rig->state, rig->now);
    rig_expect(rig, "");
    rig_receive(rig, ACK);
    g_assert_cmpint(rig_wait(rig), ==, DISCORD_HEART_GRACE);
    rig_expect(rig, "beat1");
    /* Without one it is over after the grace, which is given once. */
    rig_pass(rig, 300000);
    discord_gateway_state_tick(rig->state, rig->now);
    rig_expect(rig, "");
    rig_pass(rig, 300000);
    discord_gateway_state_tick(rig->state, rig->now);
    rig_expect(rig, "close-4000 down");
}

static void
test_asked_beats(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    rig_receive(rig, "{\"op\":1,\"d\":null}");
    rig_expect(rig, "beat1");
    /* Answering a flood would break the limit of 120 a minute: room is left for our own. */
    for (guint i = 0; i < 500; i++)
        rig_receive(rig, "{\"op\":1}");
    g_assert_cmpuint(rig->sends, ==, DISCORD_SENDS_ASKED);
    rig_expect(rig, rig->done->str);
    rig_wait(rig);
    g_assert_cmpuint(rig->sends, ==, DISCORD_SENDS_ASKED + 1);
    rig_receive(rig, ACK);
    rig_wait(rig);
    rig_receive(rig, ACK);
    rig_wait(rig);
    g_assert_cmpint(discord_gateway_state_get_phase(rig->state), ==, DISCORD_GATEWAY_UP);
    rig_receive(rig, "{\"op\":1}");
    g_assert_cmpuint(rig->sends, ==, DISCORD_SENDS_ASKED + 4);
}

static void
test_odd_payloads(void)
{
    static const char *const ignored[] = {
        "{}",
        "{\"op\":99,\"d\":{}}",
        "{\"op\":\"0\",\"t\":\"X\",\"s\":4}",
        "{\"op\":-1}",
        "{\"op\":2.5}",
        "{\"op\":11}",
        "{\"op\":4294967297}",
        "{\"d\":{\"op\":7}}",
        "{\"x\":[{\"op\":9}],\"op\":8}",
    };
    static const char *const faults[] = {"", "[]", "{", "nonsense", "{\"op\":0,}", "\"op\"", "null", "{\"op\":10}"};
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    for (gsize i = 0; i < G_N_ELEMENTS(ignored); i++) {
        g_assert_cmpint(rig_receive(rig, ignored[i]), ==, DISCORD_GATEWAY_NO_EVENT);
        rig_expect(rig, "");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autoptr(Rig) other = rig_new(1);
        rig_until_up(other);
        rig_receive(other, faults[i]);
        rig_expect(other, "close-4000 down");
    }
    /* Events that are not known are told: whoever handles them decides; odd numbers change nothing. */
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":\"NEW_THING\",\"s\":7,\"d\":1}"), ==, DISCORD_GATEWAY_EVENT);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":null,\"s\":-4,\"d\":1}"), ==, DISCORD_GATEWAY_EVENT);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"s\":99999999999999999999}"), ==, DISCORD_GATEWAY_EVENT);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"s\":3}"), ==, DISCORD_GATEWAY_EVENT);
    rig_receive(rig, "{\"op\":1}");
    rig_expect(rig, "beat7");
}

static void
test_frame(void)
{
    static const char text[] =
        " { \"a\\\"\" : [ {\"t\":\"NO\"} , \"\\\\\" ] , \"t\" : \"MESSAGE_CREATE\" ,\n\"s\": 12 , "
        "\"d\" : {\"content\":\"\\\"channel_id\\\":\\\"1\\\"}\",\"x\":{\"channel_id\":\"2\"},"
        "\"channel_id\":\"333\",\"e\":\"a\\u0041\"}, \"op\":0 }";
    g_autoptr(GError) error = NULL;
    DiscordGatewayFrame frame;
    DiscordPeek peeks[] = {{"channel_id", "x"}, {"x.channel_id", "x"},  {"e", "x"},
                           {"content", "x"},    {"none", "x"},          {"x", "x"},
                           {"x.none", "x"},     {"x.channel_id.y", "x"}};

    g_assert_true(discord_gateway_frame_read(text, strlen(text), &frame, &error));
    g_assert_cmpint(frame.op, ==, 0);
    g_assert_cmpint(frame.seq, ==, 12);
    g_assert_cmpstr(frame.type, ==, "MESSAGE_CREATE");
    g_autoptr(JsonNode) data = discord_gateway_frame_parse(text, &frame);
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(data), "channel_id"), ==, "333");
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(data), "e"), ==, "aA");
    discord_gateway_frame_peek(text, &frame, peeks, G_N_ELEMENTS(peeks));
    g_assert_cmpstr(peeks[0].text, ==, "333");
    g_assert_cmpstr(peeks[1].text, ==, "2");
    for (gsize i = 2; i < G_N_ELEMENTS(peeks); i++)
        g_assert_cmpstr(peeks[i].text, ==, "");

    g_assert_true(discord_gateway_frame_read("{\"op\":3}", 8, &frame, &error));
    g_assert_null(discord_gateway_frame_parse("{\"op\":3}", &frame));
    discord_gateway_frame_peek("{\"op\":3}", &frame, peeks, G_N_ELEMENTS(peeks));
    g_assert_cmpstr(peeks[0].text, ==, "");
    g_assert_cmpint(frame.seq, ==, -1);
    g_assert_cmpstr(frame.type, ==, "");

    /* A name longer than any there is must not be taken for one that begins with it. */
    const char *longest = "{\"op\":0,\"t\":\"MESSAGE_CREATEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEEE\"}";
    g_assert_true(discord_gateway_frame_read(longest, strlen(longest), &frame, &error));
    g_assert_cmpstr(frame.type, ==, "");

    g_autoptr(GString) deep = g_string_new("{\"d\":");
    for (guint i = 0; i < DISCORD_GATEWAY_MAX_DEPTH; i++)
        g_string_append_c(deep, '[');
    for (guint i = 0; i < DISCORD_GATEWAY_MAX_DEPTH; i++)
        g_string_append_c(deep, ']');
    g_string_append_c(deep, '}');
    g_assert_false(discord_gateway_frame_read(deep->str, deep->len, &frame, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "json.depth", NULL);
    g_clear_error(&error);

    g_autoptr(GString) big = g_string_new("{\"d\":\"");
    while (big->len <= DISCORD_GATEWAY_MAX_FRAME)
        g_string_append_c(big, 'x');
    g_string_append(big, "\"}");
    g_assert_false(discord_gateway_frame_read(big->str, big->len, &frame, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "json.size", NULL);
}

/* --- losing and coming back --- */

static void
test_reconnect(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    rig_receive(rig, "{\"op\":7,\"d\":null}");
    rig_expect(rig, "close-4000 down");
    g_assert_cmpint(rig_wait(rig), ==, 0);
    rig_expect(rig, "connect");
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "resume-abc-1");
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":\"MESSAGE_CREATE\",\"s\":4,\"d\":{}}"), ==,
                    DISCORD_GATEWAY_EVENT);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":\"RESUMED\",\"s\":5,\"d\":{}}"), ==, DISCORD_GATEWAY_RESUMED);
    g_assert_cmpuint(rig->identifies, ==, 1);
    g_assert_cmpint(rig_receive(rig, "{\"op\":0,\"t\":\"RESUMED\",\"s\":6,\"d\":{}}"), ==, DISCORD_GATEWAY_NO_EVENT);
}

/* Op 7 may be the very first thing that is said. */
static void
test_reconnect_before_hello(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_greeting(rig);
    rig_receive(rig, "{\"op\":7,\"d\":null}");
    rig_expect(rig, "close-4000");
    rig_wait(rig);
    rig_expect(rig, "ask");
    /* A second time at once is not at full speed. */
    for (guint i = 0; i < 200; i++) {
        rig_info(rig, 1000, 1000);
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, "{\"op\":7}");
        gint64 before = rig->now.mono;
        rig_wait(rig);
        g_assert_cmpint(rig->now.mono - before, <=, DISCORD_BACKOFF_MAX);
    }
    g_assert_cmpuint(rig->identifies, ==, 0);
    g_assert_cmpint(rig->now.mono, >, 1000000 + 150 * 30000);
}

static void
test_invalid_session(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    rig_until_up(rig);
    rig_receive(rig, "{\"op\":9,\"d\":true}");
    rig_expect(rig, "close-4000 down");
    gint64 waited = rig_wait(rig);
    g_assert_cmpint(waited, >=, 1000);
    g_assert_cmpint(waited, <=, 5000);
    rig_expect(rig, "connect");
    g_assert_cmpstr(rig->url, ==, RIG_RESUME "/?v=10&encoding=json");
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "resume-abc-1");
    rig_receive(rig, "{\"op\":9,\"d\":false}");
    rig_expect(rig, "close-4000");
    /* Session and URL are forgotten (twilight#1942), the main URL is known and used, in 1 to 5 s. */
    waited = rig_wait(rig);
    g_assert_cmpint(waited, >=, 1000);
    g_assert_cmpint(waited, <=, 5000);
    while (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_WAITING)
        waited += rig_wait(rig);
    rig_expect(rig, "connect");
    g_assert_cmpstr(rig->url, ==, RIG_URL "/?v=10&encoding=json");
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "save");
}

/* A session that cannot be resumed any more answers each RESUME with a broken connection (discord-api-docs#1619). */
static void
test_bricked_session(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    guint resumes = 0;

    rig_until_up(rig);
    rig_pass(rig, 60000);
    discord_gateway_state_closed(rig->state, 1006, NULL, rig->now);
    rig_expect(rig, "down");
    while (resumes < 10) {
        rig_wait(rig);
        if (g_str_has_prefix(rig->done->str, "connect") && g_str_equal(rig->url, RIG_URL "/?v=10&encoding=json"))
            break;
        rig_expect(rig, "connect");
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        rig_expect(rig, "resume-abc-1");
        resumes++;
        discord_gateway_state_closed(rig->state, 1006, NULL, rig->now);
        rig_expect(rig, "");
    }
    g_assert_cmpuint(resumes, ==, DISCORD_GATEWAY_RESUMES_MAX);
    discord_gateway_state_connected(rig->state, rig->now);
    rig_expect(rig, "connect");
    rig_receive(rig, HELLO);
    rig_expect(rig, "save");
}

/* RESUMED and closed again at once, for ever (discordeno#3907): not more often than the other way. */
static void
test_short_resumes(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    guint resumes = 0;

    rig_until_up(rig);
    rig_pass(rig, 60000);
    discord_gateway_state_closed(rig->state, 1006, NULL, rig->now);
    while (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_WAITING && resumes < 10) {
        rig_wait(rig);
        if (g_str_equal(rig->url, RIG_URL "/?v=10&encoding=json") && rig->connects > 1)
            break;
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        rig_receive(rig, "{\"op\":0,\"t\":\"RESUMED\",\"s\":5,\"d\":{}}");
        rig_pass(rig, 1000);
        discord_gateway_state_closed(rig->state, 4000, NULL, rig->now);
        rig_take(rig);
        resumes++;
    }
    g_assert_cmpuint(resumes, ==, DISCORD_GATEWAY_RESUMES_MAX);
}

/* openclaw#125813: the network is away; the session is dead by the time it is back. */
static void
test_long_outage(void)
{
    g_autoptr(Rig) rig = rig_new(1);
    gint64 start;

    rig_until_up(rig);
    rig_pass(rig, 60000);
    discord_gateway_state_closed(rig->state, 0, "no route", rig->now);
    rig_expect(rig, "down");
    start = rig->now.mono;
    rig_wait(rig);
    rig_expect(rig, "connect");
    g_assert_cmpstr(rig->url, ==, RIG_RESUME "/?v=10&encoding=json");
    discord_gateway_state_closed(rig->state, 0, "no such host", rig->now);
    /* The URL to resume at did not work: the session is tried at the main one. */
    rig_wait(rig);
    rig_expect(rig, "connect");
    g_assert_cmpstr(rig->url, ==, RIG_URL "/?v=10&encoding=json");
    while (rig->now.mono - start < 11 * 3600 * 1000) {
        g_autoptr(GError) error = eb_error_new(EB_ERROR_UNAVAILABLE, "discord.unreachable", "no such host");
        if (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_CONNECTING)
            discord_gateway_state_closed(rig->state, 0, "no such host", rig->now);
        else if (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_ASKING)
            discord_gateway_state_untold(rig->state, error, rig->now);
        g_assert_cmpint(rig_wait(rig), <=, DISCORD_BACKOFF_MAX);
    }
    /* Back again: a new session, no RESUME. */
    while (discord_gateway_state_get_phase(rig->state) != DISCORD_GATEWAY_ASKING) {
        if (discord_gateway_state_get_phase(rig->state) == DISCORD_GATEWAY_CONNECTING)
            discord_gateway_state_closed(rig->state, 0, NULL, rig->now);
        rig_wait(rig);
    }
    g_string_truncate(rig->done, 0);
    rig_info(rig, 999, 1000);
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, HELLO);
    rig_expect(rig, "connect save");
}

/* ms until @what is done; heartbeats on the way are answered. */
static gint64
wait_until(Rig *rig, const char *what)
{
    gint64 ms = 0;
    g_string_truncate(rig->done, 0);
    while (strstr(rig->done->str, what) == NULL) {
        g_string_truncate(rig->done, 0);
        ms += rig_wait(rig);
        if (strstr(rig->done->str, "beat") != NULL)
            rig_receive(rig, ACK);
    }
    g_string_truncate(rig->done, 0);
    return ms;
}

static void
test_timeouts(void)
{
    g_autoptr(Rig) rig = rig_new(1);

    discord_gateway_state_start(rig->state, rig->now);
    rig_expect(rig, "ask");
    g_assert_cmpint(rig_wait(rig), ==, DISCORD_GATEWAY_ASK_MS);
    rig_expect(rig, "");
    rig_wait(rig);
    rig_expect(rig, "ask");
    rig_info(rig, 1000, 0);
    rig_expect(rig, "connect");
    g_assert_cmpint(rig_wait(rig), ==, DISCORD_GATEWAY_CONNECT_MS);
    rig_expect(rig, "close-4000");
    rig_wait(rig);
    rig_expect(rig, "ask");
    rig_info(rig, 1000, 0);
    discord_gateway_state_connected(rig->state, rig->now);
    rig_expect(rig, "connect");
    g_assert_cmpint(rig_wait(rig), ==, DISCORD_GATEWAY_HELLO_MS);
    rig_expect(rig, "close-4000");
    rig_wait(rig);
    rig_info(rig, 1000, 0);
    discord_gateway_state_connected(rig->state, rig->now);
    rig_receive(rig, "{\"op\":10,\"d\":{\"heartbeat_interval\":600000}}");
    rig_expect(rig, "ask connect save");
    /* A disk that hangs does not keep us away. */
    g_assert_cmpint(wait_until(rig, "identify"), ==, DISCORD_GATEWAY_READY_MS);
    g_assert_cmpint(wait_until(rig, "close-4000"), ==, DISCORD_GATEWAY_READY_MS);
}

static void
test_close_codes(void)
{
    static const struct {
        guint code;
        const char *what;
    } cases[] = {
        {0, "resume"},      {1001, "resume"},   {1005, "resume"},   {1006, "resume"},   {1000, "identify"},
        {1011, "resume"},   {1012, "resume"},   {3000, "resume"},   {4000, "resume"},   {4001, "later"},
        {4002, "later"},    {4003, "identify"}, {4004, "fail"},     {4005, "identify"}, {4006, "resume"},
        {4007, "identify"}, {4008, "wait"},     {4009, "identify"}, {4010, "fail"},     {4011, "fail"},
        {4012, "fail"},     {4013, "fail"},     {4014, "fail"},     {4015, "resume"},   {4999, "resume"},
        {65535, "resume"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Rig) rig = rig_new((guint32)i);
        rig_until_up(rig);
        rig_pass(rig, 60000);
        discord_gateway_state_closed(rig->state, cases[i].code, NULL, rig->now);
        if (g_str_equal(cases[i].what, "fail")) {
            rig_expect(rig, "down fail");
            g_assert_cmpint(discord_gateway_state_get_due(rig->state), ==, G_MAXINT64);
            continue;
        }
        rig_expect(rig, "down");
        gint64 waited = rig_wait(rig);
        rig_expect(rig, "connect");
        discord_gateway_state_connected(rig->state, rig->now);
        rig_receive(rig, HELLO);
        gboolean anew = g_str_equal(cases[i].what, "identify") || g_str_equal(cases[i].what, "wait");
        rig_expect(rig, anew ? "save" : "resume-abc-1");
        g_assert_cmpstr(rig->url, ==, anew ? RIG_URL "/?v=10&encoding=json" : RIG_RESUME "/?v=10&encoding=json");
        if (g_str_equal(cases[i].what, "later"))
            g_assert_cmpint(waited, >=, 5000);
        else if (g_str_equal(cases[i].what, "wait"))
            g_assert_cmpint(waited, >=, 60000);
        else
            g_assert_cmpint(waited, <=, 1000);
    }
}

static void
test_remedies(void)
{
    static const struct {
        guint code;
        EbErrorCode error;
        const char *text;
    } cases[] = {
        {4004, EB_ERROR_UNAUTHENTICATED, "errand-box creds set chat-token"},
        {4004, EB_ERROR_UNAUTHENTICATED, "developer portal"},
        {4010, EB_ERROR_CONFIG, "4010"},
        {4011, EB_ERROR_CONFIG, "a bot of its own"},
        {4012, EB_ERROR_CONFIG, "update errand-box"},
        {4013, EB_ERROR_CONFIG, "update errand-box"},
        {4014, EB_ERROR_CONFIG, "Message Content"},
        {4014, EB_ERROR_CONFIG, "developer portal"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Rig) rig = rig_new(1);
        rig_until_greeting(rig);
        discord_gateway_state_closed(rig->state, cases[i].code, NULL, rig->now);
        rig_expect(rig, "fail");
        eb_test_assert_error(rig->error, cases[i].error, NULL, cases[i].text);
        g_assert_null(strchr(rig->error->message, '\n'));
        /* Nothing that comes now changes that. */
        discord_gateway_state_tick(rig->state, rig->now);
        discord_gateway_state_start(rig->state, rig->now);
        discord_gateway_state_connected(rig->state, rig->now);
        rig_info(rig, 1, 1);
        rig_receive(rig, HELLO);
        rig_expect(rig, "");
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/gateway-state/first-connection", test_first_connection);
    g_test_add_func("/discord/gateway-state/heartbeat", test_heartbeat);
    g_test_add_func("/discord/gateway-state/beat-before-ready", test_beat_before_ready);
    g_test_add_func("/discord/gateway-state/zombie", test_zombie);
    g_test_add_func("/discord/gateway-state/late-beat", test_late_beat);
    g_test_add_func("/discord/gateway-state/asked-beats", test_asked_beats);
    g_test_add_func("/discord/gateway-state/odd-payloads", test_odd_payloads);
    g_test_add_func("/discord/gateway-state/frame", test_frame);
    g_test_add_func("/discord/gateway-state/reconnect", test_reconnect);
    g_test_add_func("/discord/gateway-state/reconnect-before-hello", test_reconnect_before_hello);
    g_test_add_func("/discord/gateway-state/invalid-session", test_invalid_session);
    g_test_add_func("/discord/gateway-state/bricked-session", test_bricked_session);
    g_test_add_func("/discord/gateway-state/short-resumes", test_short_resumes);
    g_test_add_func("/discord/gateway-state/long-outage", test_long_outage);
    g_test_add_func("/discord/gateway-state/timeouts", test_timeouts);
    g_test_add_func("/discord/gateway-state/close-codes", test_close_codes);
    g_test_add_func("/discord/gateway-state/remedies", test_remedies);
    return g_test_run();
}
