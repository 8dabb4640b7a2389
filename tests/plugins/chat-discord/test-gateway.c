/* SPDX-License-Identifier: MIT */
#include <glib/gstdio.h>
#include <string.h>

#include "discord-gateway-saved.h"
#include "gateway-peer.h"

/* Everything that was logged by anything, at any level, in this program. */
static GString *logged;

static GLogWriterOutput
keep_log(GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    g_assert_false(level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR));
    for (gsize i = 0; i < n_fields; i++) {
        if (fields[i].length < 0)
            g_string_append_printf(logged, "%s=%s\n", fields[i].key, (const char *)fields[i].value);
    }
    return G_LOG_WRITER_HANDLED;
}

static void
keep_old_log(const char *domain, GLogLevelFlags level, const char *message, gpointer user_data)
{
    g_string_append_printf(logged, "%s: %s\n", domain, message);
    if (level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR))
        g_printerr("%s: %s\n", domain, message);
    g_assert_false(level & (G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR));
}

static gboolean
sockets_are(gpointer user_data)
{
    GatewayPeer **pair = user_data;
    return pair[0]->n_sockets >= GPOINTER_TO_UINT(pair[1]);
}

static void
wait_sockets(GatewayPeer *peer, guint count)
{
    gpointer pair[2] = {peer, GUINT_TO_POINTER(count)};
    eb_test_run_until(sockets_are, pair);
}

static gboolean
told_are(gpointer user_data)
{
    GatewayPeer **pair = user_data;
    return pair[0]->n_told >= GPOINTER_TO_UINT(pair[1]);
}

static void
wait_events(GatewayPeer *peer, guint count)
{
    gpointer pair[2] = {peer, GUINT_TO_POINTER(count)};
    eb_test_run_until(told_are, pair);
}

static void
expect_resume(GatewayPeer *peer, guint count, gint64 seq)
{
    g_autofree char *expected = g_strdup_printf("{\"op\":6,\"d\":{\"token\":\"" PEER_TOKEN "\",\"session_id\":"
                                                "\"session1\",\"seq\":%" G_GINT64_FORMAT "}}",
                                                seq);
    g_assert_cmpstr(gateway_peer_wait_received(peer, count), ==, expected);
    g_assert_cmpstr(peer->paths->pdata[peer->paths->len - 1], ==, "/ws/resume");
}

static void
test_identify(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    gateway_peer_bring_up(peer, NULL);
    g_assert_cmpstr(peer->received->pdata[0], ==,
                    "{\"op\":2,\"d\":{\"token\":\"" PEER_TOKEN "\",\"intents\":34305,\"properties\":{\"os\":\"linux\","
                    "\"browser\":\"errand-box\",\"device\":\"errand-box\"}}}");
    gateway_peer_event(peer, 2, "MESSAGE_CREATE", "one");
    gateway_peer_event(peer, 3, "NOBODY_KNOWS", "two");
    gateway_peer_send(peer, "{\"op\":55,\"d\":{}}");
    gateway_peer_send(peer, "{\"op\":0,\"t\":\"NOT_AN_OBJECT\",\"s\":4,\"d\":[1]}");
    const char *binary = "{\"op\":0,\"t\":\"BINARY\",\"d\":{}}";
    soup_websocket_connection_send_binary(peer->socket, binary, strlen(binary));
    gateway_peer_wait_told(peer, "MESSAGE_CREATE NOBODY_KNOWS BINARY");
    g_assert_cmpuint(peer->n_asked, ==, 1);
}

/* Cut, and what happened meanwhile is sent again: in order, once, with no IDENTIFY. */
static void
test_resume(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    gateway_peer_bring_up(peer, NULL);
    gateway_peer_event(peer, 2, "A", "2");
    gateway_peer_wait_told(peer, "A");
    gateway_peer_cut(peer);
    gateway_peer_wait_told(peer, "down");
    expect_resume(peer, 2, 2);
    gateway_peer_event(peer, 3, "B", "3");
    gateway_peer_event(peer, 4, "C", "4");
    gateway_peer_send(peer, "{\"op\":0,\"t\":\"RESUMED\",\"s\":5,\"d\":{\"_trace\":[]}}");
    gateway_peer_wait_told(peer, "B C ready-1");
    g_assert_true(discord_gateway_is_up(peer->gateway));
    gateway_peer_send(peer, "{\"op\":7,\"d\":null}");
    gateway_peer_wait_told(peer, "down");
    expect_resume(peer, 3, 5);
    g_assert_cmpuint(peer->last_close, ==, 4000);
    g_assert_cmpuint(peer->n_asked, ==, 1);
}

/* The socket stays open and takes what is written; nobody answers. */
static void
test_half_open(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    peer->interval = 200;
    gateway_peer_bring_up(peer, NULL);
    peer->deaf = TRUE;
    gateway_peer_wait_told(peer, "down");
    peer->deaf = FALSE;
    peer->interval = 2000; /* a machine under load answers in less */
    expect_resume(peer, 2, 1);
    gateway_peer_send(peer, "{\"op\":0,\"t\":\"RESUMED\",\"s\":2,\"d\":{}}");
    gateway_peer_wait_told(peer, "ready-1");
    /* The answer that was owed to the dead connection is not asked of this one: it lives through several beats. */
    guint beats = peer->n_beats;
    while (peer->n_beats < beats + 3)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpstr(peer->told->str, ==, "");
    g_assert_cmpuint(peer->n_sockets, ==, 2);
}

static void
send_guild(GatewayPeer *peer, gint64 seq, gsize size)
{
    g_autoptr(GString) text = g_string_sized_new(size + 200);
    g_string_append_printf(text,
                           "{\"t\":\"GUILD_CREATE\",\"s\":%" G_GINT64_FORMAT ",\"op\":0,\"d\":{\"id\":\"1\","
                           "\"members\":[\"\"",
                           seq);
    while (text->len < size)
        g_string_append(text, ",{\"user\":{\"id\":\"1234567890123456789\"}}");
    g_string_append(text, "],\"content\":\"end\"}}");
    gateway_peer_send(peer, text->str);
}

static void
test_large(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    gateway_peer_bring_up(peer, NULL);
    send_guild(peer, 2, 300 * 1024);
    send_guild(peer, 3, 4 * 1024 * 1024);
    gateway_peer_wait_told(peer, "GUILD_CREATE GUILD_CREATE");
    g_assert_cmpstr(peer->contents->pdata[1], ==, "end");
    g_assert_cmpuint(peer->n_sockets, ==, 1);
}

static void
send_fragments(GatewayPeer *peer, const char *text, gsize part)
{
    gsize length = strlen(text);
    for (gsize at = 0; at < length || at == 0; at += part) {
        gsize size = MIN(part, length - at);
        guint8 header[10] = {(guint8)((at == 0 ? 1 : 0) | (at + part >= length ? 0x80 : 0)), 127};
        gsize header_length = 2;
        if (size < 126) {
            header[1] = (guint8)size;
        } else {
            for (guint i = 0; i < 8; i++)
                header[2 + i] = (guint8)((guint64)size >> (56 - 8 * i));
            header_length = 10;
        }
        if (size >= 126 && size < 65536) {
            header[1] = 126;
            header[2] = (guint8)(size >> 8);
            header[3] = (guint8)size;
            header_length = 4;
        }
        gateway_peer_raw(peer, header, header_length);
        gateway_peer_raw(peer, text + at, size);
    }
}

static void
test_fragments(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    const char *text = "{\"op\":0,\"t\":\"PIECES\",\"s\":2,\"d\":{\"content\":\"h\xc3\xa9llo\"}}";

    gateway_peer_bring_up(peer, NULL);
    send_fragments(peer, text, 1);
    send_fragments(peer, text, 7);
    send_fragments(peer, text, 1000);
    gateway_peer_wait_told(peer, "PIECES PIECES PIECES");
    g_assert_cmpstr(peer->contents->pdata[0], ==, "h\xc3\xa9llo");
    g_assert_cmpuint(peer->n_sockets, ==, 1);
}

/* Too long, in one frame or in many: the connection ends, the session does not. */
static void
test_too_long(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    g_autofree char *filler = g_strnfill(9 * 1024 * 1024, 'x');
    g_autofree char *text =
        g_strdup_printf("{\"op\":0,\"t\":\"BIG\",\"s\":2,\"d\":{\"content\":\"%s%s\"}}", filler, filler);

    gateway_peer_bring_up(peer, NULL);
    send_fragments(peer, text, 4 * 1024 * 1024);
    gateway_peer_wait_told(peer, "down");
    expect_resume(peer, 2, 1);
    gateway_peer_send(peer, "{\"op\":0,\"t\":\"RESUMED\",\"s\":1,\"d\":{}}");
    gateway_peer_wait_told(peer, "ready-1");
    send_fragments(peer, text, 20 * 1024 * 1024);
    gateway_peer_wait_told(peer, "down");
    expect_resume(peer, 3, 1);
    g_assert_cmpuint(peer->n_told, ==, 0);
}

static void
test_garbage(void)
{
    static const struct {
        const char *bytes;
        gsize length;
    } frames[] = {
        {"\x81\x07garbage", 9},        /* no JSON */
        {"\x81\x02{}\x81\x01\xff", 7}, /* not UTF-8 */
        {"\xf1\x02{}", 4},             /* reserved bits */
        {"\x81\x82xxxx{}", 8},         /* masked by a server */
        {"\x80\x02{}", 4},             /* a continuation of nothing */
        {"\x83\x02{}", 4},             /* an opcode there is not */
        {"\x88\x01x", 3},              /* half a close code */
        {"HTTP/1.1 400 Bad Request\r\nServer: cloudflare\r\nContent-Type: text/html\r\n\r\n<html>no such thing "
         "here</html>",
         104},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(frames); i++) {
        g_autoptr(GatewayPeer) peer = gateway_peer_new();
        gateway_peer_bring_up(peer, NULL);
        gateway_peer_raw(peer, frames[i].bytes, frames[i].length);
        gateway_peer_wait_told(peer, "down");
        expect_resume(peer, 2, 1);
    }
}

static void
test_give_up(void)
{
    static const struct {
        gushort code;
        EbErrorCode error;
        const char *text;
    } cases[] = {
        {4004, EB_ERROR_UNAUTHENTICATED, "creds set chat-token"},
        {4014, EB_ERROR_CONFIG, "Message Content"},
        {4013, EB_ERROR_CONFIG, "update errand-box"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GatewayPeer) peer = gateway_peer_new();
        gateway_peer_make(peer, NULL);
        discord_gateway_start(peer->gateway);
        gateway_peer_wait_received(peer, 1);
        soup_websocket_connection_close(peer->socket, cases[i].code, "no");
        gateway_peer_wait_told(peer, "failed");
        eb_test_assert_error(peer->failed, cases[i].error, NULL, cases[i].text);
        eb_test_run_for(1500);
        g_assert_cmpuint(peer->n_sockets, ==, 1);
    }
}

/* A gateway elsewhere, a redirect to one: no connection is made there, let alone the token sent. */
static void
test_elsewhere(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    g_free(peer->gateway_url);
    peer->gateway_url = g_strdup_printf("ws://localhost:%u/ws", peer->port);
    gateway_peer_make(peer, NULL);
    discord_gateway_start(peer->gateway);
    gateway_peer_wait_told(peer, "failed");
    eb_test_assert_error(peer->failed, EB_ERROR_CONFIG, "discord.gateway-url", NULL);
    g_assert_cmpuint(peer->n_sockets, ==, 0);

    g_autoptr(GatewayPeer) target = gateway_peer_new();
    g_autoptr(GatewayPeer) leading = gateway_peer_new();
    g_autofree char *location = g_strdup_printf("http://127.0.0.1:%u/ws?v=10&encoding=json", target->port);
    leading->refuse = 302;
    leading->refuse_location = location;
    gateway_peer_make(leading, NULL);
    discord_gateway_start(leading->gateway);
    eb_test_run_for(1500);
    g_assert_cmpuint(target->n_sockets, ==, 0);
    leading->refuse = 502;
    eb_test_run_for(1500);
    g_assert_null(leading->failed);
    leading->refuse = 0;
    gateway_peer_wait_received(leading, 1);
}

static char *
state_file(void)
{
    static guint n;
    g_autofree char *dir = eb_test_temp_dir("gateway");
    return g_strdup_printf("%s/gateway-%u.json", dir, n++);
}

static void
test_restart(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    g_autofree char *path = state_file();
    g_autofree char *text = NULL;
    GStatBuf status;

    gateway_peer_bring_up(peer, path);
    gateway_peer_event(peer, 2, "A", "2");
    gateway_peer_event(peer, 3, "B", "3");
    gateway_peer_wait_told(peer, "A B");
    gateway_peer_stop(peer);
    g_assert_cmpuint(peer->last_close, ==, 4000);
    g_assert_cmpint(g_stat(path, &status), ==, 0);
    g_assert_cmpint(status.st_mode & 07777, ==, 0600);
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_nonnull(strstr(text, "\"seq\":3"));
    g_assert_null(strstr(text, PEER_TOKEN));

    gateway_peer_make(peer, path);
    discord_gateway_start(peer->gateway);
    expect_resume(peer, 2, 3);
    gateway_peer_event(peer, 4, "C", "4");
    gateway_peer_send(peer, "{\"op\":0,\"t\":\"RESUMED\",\"s\":5,\"d\":{}}");
    gateway_peer_wait_told(peer, "C ready-1");
    g_assert_cmpuint(peer->n_asked, ==, 1);
    gateway_peer_stop(peer);

    /* It does not want the session any more: a new one, after a while. */
    gateway_peer_make(peer, path);
    discord_gateway_start(peer->gateway);
    expect_resume(peer, 3, 5);
    gateway_peer_send(peer, "{\"op\":9,\"d\":false}");
    g_assert_true(g_str_has_prefix(gateway_peer_wait_received(peer, 4), "{\"op\":2,"));
    gateway_peer_ready(peer);
    gateway_peer_wait_told(peer, "ready-0");
}

/* Without a stop: what was handled is in the file soon after, and the IDENTIFY before it was sent. */
static void
test_killed(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    g_autofree char *path = state_file();
    g_autofree char *early = NULL;
    g_autofree char *text = NULL;

    gateway_peer_make(peer, path);
    discord_gateway_start(peer->gateway);
    gateway_peer_wait_received(peer, 1);
    g_assert_true(g_file_get_contents(path, &early, NULL, NULL));
    g_assert_nonnull(strstr(early, "\"identified\":[1"));
    g_assert_null(strstr(early, "session1"));
    gateway_peer_ready(peer);
    gateway_peer_event(peer, 2, "A", "2");
    gateway_peer_wait_told(peer, "ready-0 A");
    do {
        g_clear_pointer(&text, g_free);
        g_main_context_iteration(NULL, TRUE);
        g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    } while (strstr(text, "\"seq\":2") == NULL);
    gateway_peer_let_go(peer);
}

static void
test_odd_files(void)
{
    g_autofree char *garbage = state_file();
    g_autofree char *directory = state_file();
    g_autofree char *large = state_file();
    g_autofree char *nowhere = g_strconcat(garbage, "/below/a/file", NULL);
    g_autofree char *filler = g_strnfill(DISCORD_GATEWAY_SAVED_MAX + 1, ' ');
    const char *paths[] = {garbage, directory, large, nowhere};

    eb_test_write_file(garbage, "\xff\xfe nonsense");
    eb_test_write_file(large, filler);
    g_assert_cmpint(g_mkdir(directory, 0700), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GatewayPeer) peer = gateway_peer_new();
        gateway_peer_bring_up(peer, paths[i]);
        gateway_peer_event(peer, 2, "A", "2");
        gateway_peer_wait_told(peer, "A");
    }
}

static gboolean
wants(const DiscordGatewayFrame *frame, const char *text, gpointer user_data)
{
    DiscordPeek peeks[] = {{"content", ""}, {"author.id", ""}};
    discord_gateway_frame_peek(text, frame, peeks, G_N_ELEMENTS(peeks));
    return g_str_equal(frame->type, "WANTED") && g_str_equal(peeks[0].text, "yes") && peeks[1].text[0] == '\0';
}

/* What nobody wants is left out, and counts as handled. */
static void
test_filter(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    gateway_peer_make(peer, NULL);
    discord_gateway_set_filter(peer->gateway, wants, NULL);
    discord_gateway_start(peer->gateway);
    gateway_peer_wait_received(peer, 1);
    gateway_peer_ready(peer);
    gateway_peer_event(peer, 2, "WANTED", "yes");
    gateway_peer_event(peer, 3, "WANTED", "no");
    gateway_peer_event(peer, 4, "UNWANTED", "yes");
    gateway_peer_event(peer, 5, "WANTED", "yes");
    gateway_peer_send(peer,
                      "{\"op\":0,\"t\":\"WANTED\",\"s\":6,\"d\":{\"content\":\"yes\",\"author\":{\"id\":\"1\"}}}");
    gateway_peer_wait_told(peer, "ready-0 WANTED WANTED");
    gateway_peer_cut(peer);
    gateway_peer_wait_told(peer, "down");
    expect_resume(peer, 2, 6);
}

/* More at once than is taken: closed and resumed as often as needed; every event once, in order. */
static void
test_flood(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();
    const guint many = 20000;
    guint sent = 1;
    guint sockets = 0;

    gateway_peer_bring_up(peer, NULL);
    while (peer->n_told < many) {
        if (peer->n_sockets != sockets && (sockets == 0 || peer->received->len == peer->n_sockets)) {
            if (sockets > 0) {
                g_autoptr(JsonNode) node =
                    eb_json_parse(peer->received->pdata[peer->received->len - 1],
                                  strlen(peer->received->pdata[peer->received->len - 1]), NULL, NULL);
                JsonObject *data = eb_json_get_object(eb_json_node_object(node), "d");
                g_assert_cmpint(eb_json_get_int(eb_json_node_object(node), "op", -1), ==, 6);
                sent = (guint)eb_json_get_int(data, "seq", 0);
            }
            sockets = peer->n_sockets;
            for (guint seq = sent + 1; seq <= many + 1; seq++) {
                g_autofree char *content = g_strdup_printf("%u", seq);
                gateway_peer_event(peer, seq, "E", content);
            }
            if (sockets > 1)
                gateway_peer_send(peer, "{\"op\":0,\"t\":\"RESUMED\",\"d\":{}}");
        }
        g_main_context_iteration(NULL, TRUE);
    }
    g_assert_cmpuint(peer->n_told, ==, many);
    for (guint i = 0; i < many; i++) {
        g_autofree char *content = g_strdup_printf("%u", i + 2);
        g_assert_cmpstr(peer->contents->pdata[i], ==, content);
    }
    g_assert_cmpuint(peer->n_sockets, >, 1);
    for (guint i = 1; i < peer->received->len; i++)
        g_assert_true(g_str_has_prefix(peer->received->pdata[i], "{\"op\":6,"));
}

/* Whoever handles events is slow: heartbeats are not. */
static void
test_slow_handler(void)
{
    g_autoptr(GatewayPeer) peer = gateway_peer_new();

    peer->interval = 1000;
    peer->slow_ms = 20;
    gateway_peer_bring_up(peer, NULL);
    for (guint i = 0; i < 200; i++)
        gateway_peer_event(peer, i + 2, "SLOW", "x");
    wait_events(peer, 200);
    g_assert_cmpuint(peer->n_sockets, ==, 1);
    g_assert_cmpuint(peer->n_beats, >=, 3);
}

static void
test_stop_any_time(void)
{
    for (guint stage = 0; stage < 5; stage++) {
        g_autoptr(GatewayPeer) peer = gateway_peer_new();
        g_autofree char *path = state_file();
        peer->mute = stage == 3;
        gateway_peer_make(peer, path);
        if (stage > 0)
            discord_gateway_start(peer->gateway);
        for (guint i = 0; stage == 2 && i < 5; i++)
            g_main_context_iteration(NULL, FALSE);
        if (stage == 3)
            wait_sockets(peer, 1);
        if (stage == 4)
            gateway_peer_wait_received(peer, 1);
        gateway_peer_stop(peer);
        /* And let go without a stop. */
        gateway_peer_make(peer, path);
        discord_gateway_start(peer->gateway);
        for (guint i = 0; i < stage; i++)
            g_main_context_iteration(NULL, FALSE);
        gateway_peer_let_go(peer);
    }
}

static void
test_bad_token(void)
{
    static const char *const tokens[] = {"mock with blanks", "mock\n", "mock\xc3\xa9"};
    for (gsize i = 0; i <= G_N_ELEMENTS(tokens); i++) {
        g_autoptr(GatewayPeer) peer = gateway_peer_new();
        g_autofree char *longest = g_strnfill(5000, 'm');
        g_autofree char *text = g_strdup(i < G_N_ELEMENTS(tokens) ? tokens[i] : longest);
        g_autoptr(EbSecret) token = eb_secret_new_take("chat-token", text, strlen(text), NULL);
        g_autoptr(EbSecret) good = g_steal_pointer(&peer->token);
        peer->token = eb_secret_ref(token);
        gateway_peer_make(peer, NULL);
        discord_gateway_start(peer->gateway);
        gateway_peer_wait_told(peer, "failed");
        eb_test_assert_error(peer->failed, EB_ERROR_CONFIG, "discord.token", "creds set chat-token");
        g_assert_cmpuint(peer->n_asked, ==, 0);
    }
}

/* Last of all: nothing that ran in this program logged the token, libsoup's debug messages included. */
static void
test_log(void)
{
    g_assert_cmpuint(logged->len, >, 1000);
    g_assert_nonnull(strstr(logged->str, "gateway lost"));
    g_assert_null(strstr(logged->str, PEER_TOKEN));
}

int
main(int argc, char **argv)
{
    logged = g_string_new(NULL);
    g_setenv("G_MESSAGES_DEBUG", "all", TRUE);
    eb_test_init(&argc, &argv);
    g_log_set_writer_func(keep_log, NULL, NULL);
    g_log_set_default_handler(keep_old_log, NULL);
    g_test_add_func("/discord/gateway/identify", test_identify);
    g_test_add_func("/discord/gateway/resume", test_resume);
    g_test_add_func("/discord/gateway/half-open", test_half_open);
    g_test_add_func("/discord/gateway/large", test_large);
    g_test_add_func("/discord/gateway/fragments", test_fragments);
    g_test_add_func("/discord/gateway/too-long", test_too_long);
    g_test_add_func("/discord/gateway/garbage", test_garbage);
    g_test_add_func("/discord/gateway/give-up", test_give_up);
    g_test_add_func("/discord/gateway/elsewhere", test_elsewhere);
    g_test_add_func("/discord/gateway/restart", test_restart);
    g_test_add_func("/discord/gateway/killed", test_killed);
    g_test_add_func("/discord/gateway/odd-files", test_odd_files);
    g_test_add_func("/discord/gateway/filter", test_filter);
    g_test_add_func("/discord/gateway/flood", test_flood);
    g_test_add_func("/discord/gateway/slow-handler", test_slow_handler);
    g_test_add_func("/discord/gateway/stop-any-time", test_stop_any_time);
    g_test_add_func("/discord/gateway/bad-token", test_bad_token);
    g_test_add_func("/discord/gateway/log", test_log);
    return g_test_run();
}
