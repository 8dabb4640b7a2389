/* SPDX-License-Identifier: MIT */
#include "core/base/eb-jsonrpc.h"

#include <gio/gunixinputstream.h>
#include <gio/gunixoutputstream.h>
#include <glib-unix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A peer under test and the raw ends of its pipes. */
typedef struct {
    EbJsonrpc *rpc;
    int to_peer;   /* what is written here the peer reads */
    int from_peer; /* what the peer wrote */
    GPtrArray *events;
    GPtrArray *ids; /* (element-type JsonNode) of requests left open */
    guint closed;
    gboolean answer;
} Fixture;

static gboolean
on_request(EbJsonrpc *rpc, const char *method, JsonNode *params, JsonNode *id, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_autofree char *key = eb_jsonrpc_id_text(id);

    g_ptr_array_add(fixture->events, g_strdup_printf("request %s %s", method, key));
    if (!g_str_has_prefix(method, "known"))
        return FALSE;
    if (fixture->answer)
        eb_jsonrpc_reply(rpc, id, NULL);
    else
        g_ptr_array_add(fixture->ids, json_node_copy(id));
    return TRUE;
}

static void
on_notification(EbJsonrpc *rpc, const char *method, JsonNode *params, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_autofree char *text = params != NULL ? eb_json_write(params, NULL) : g_strdup("-");

    g_ptr_array_add(fixture->events, g_strdup_printf("notification %s %s", method, text));
}

static void
on_noise(EbJsonrpc *rpc, const char *line, gpointer user_data)
{
    g_assert_true(g_utf8_validate(line, -1, NULL));
    g_assert_cmpuint(strlen(line), <, 600);
    g_ptr_array_add(((Fixture *)user_data)->events, g_strdup_printf("noise %s", line));
}

static void
on_closed(EbJsonrpc *rpc, const GError *error, gpointer user_data)
{
    Fixture *fixture = user_data;

    fixture->closed++;
    g_ptr_array_add(fixture->events,
                    g_strdup_printf("closed %s", error != NULL ? eb_error_get_reason(error) : "normally"));
}

static void
set_up_limits(Fixture *fixture, const EbJsonrpcLimits *limits)
{
    int in[2];
    int out[2];
    g_autoptr(GInputStream) input = NULL;
    g_autoptr(GOutputStream) output = NULL;

    g_assert_true(g_unix_open_pipe(in, FD_CLOEXEC, NULL));
    g_assert_true(g_unix_open_pipe(out, FD_CLOEXEC, NULL));
    fixture->to_peer = in[1];
    fixture->from_peer = out[0];
    g_assert_true(g_unix_set_fd_nonblocking(fixture->from_peer, TRUE, NULL));
    input = g_unix_input_stream_new(in[0], TRUE);
    output = g_unix_output_stream_new(out[1], TRUE);
    fixture->events = g_ptr_array_new_with_free_func(g_free);
    fixture->ids = g_ptr_array_new_with_free_func((GDestroyNotify)json_node_unref);
    fixture->answer = TRUE;
    fixture->rpc = eb_jsonrpc_new(input, output, limits);
    g_signal_connect(fixture->rpc, "request", G_CALLBACK(on_request), fixture);
    g_signal_connect(fixture->rpc, "notification", G_CALLBACK(on_notification), fixture);
    g_signal_connect(fixture->rpc, "noise", G_CALLBACK(on_noise), fixture);
    g_signal_connect(fixture->rpc, "closed", G_CALLBACK(on_closed), fixture);
    eb_jsonrpc_start(fixture->rpc);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    set_up_limits(fixture, data != NULL ? data : &EB_JSONRPC_LIMITS_AGENT);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    g_clear_object(&fixture->rpc);
    if (fixture->to_peer >= 0)
        close(fixture->to_peer);
    if (fixture->from_peer >= 0)
        close(fixture->from_peer);
    while (g_main_context_iteration(NULL, FALSE)) {
    }
    g_ptr_array_unref(fixture->events);
    g_ptr_array_unref(fixture->ids);
}

static void
feed(Fixture *fixture, const char *text)
{
    const gsize length = strlen(text);

    g_assert_cmpint(write(fixture->to_peer, text, length), ==, (gssize)length);
}

static gboolean
on_alarm(gpointer user_data)
{
    g_error("the test waits for ever for: %s", (const char *)user_data);
    return G_SOURCE_REMOVE;
}

/* Turns the loop until @events has @n entries. */
static void
wait_events(Fixture *fixture, guint n)
{
    g_autoptr(GSource) alarm = g_timeout_source_new_seconds(20);

    g_source_set_callback(alarm, on_alarm, (gpointer) "events", NULL);
    g_source_attach(alarm, NULL);
    while (fixture->events->len < n)
        g_main_context_iteration(NULL, TRUE);
    g_source_destroy(alarm);
}

static const char *
event(Fixture *fixture, guint index)
{
    g_assert_cmpuint(index, <, fixture->events->len);
    return g_ptr_array_index(fixture->events, index);
}

/* (transfer full): the next line the peer wrote. */
static char *
peer_line(Fixture *fixture)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GSource) alarm = g_timeout_source_new_seconds(20);

    g_source_set_callback(alarm, on_alarm, (gpointer) "a line", NULL);
    g_source_attach(alarm, NULL);
    for (;;) {
        char c;

        if (read(fixture->from_peer, &c, 1) == 1) {
            if (c == '\n')
                break;
            g_string_append_c(line, c);
            continue;
        }
        g_main_context_iteration(NULL, FALSE);
    }
    g_source_destroy(alarm);
    return g_string_free(g_steal_pointer(&line), FALSE);
}

/* Turns the loop until the peer has closed its writing side. */
static void
wait_end(Fixture *fixture)
{
    g_autoptr(GSource) alarm = g_timeout_source_new_seconds(20);
    char c;

    g_source_set_callback(alarm, on_alarm, (gpointer) "the end", NULL);
    g_source_attach(alarm, NULL);
    while (read(fixture->from_peer, &c, 1) != 0)
        g_main_context_iteration(NULL, FALSE);
    g_source_destroy(alarm);
}

/* One call and what became of it. */
typedef struct {
    gboolean done;
    JsonNode *result;
    JsonObject *error_object;
    GError *error;
} Outcome;

static void
on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Outcome *outcome = user_data;

    g_assert_false(outcome->done);
    outcome->result = eb_jsonrpc_call_finish(EB_JSONRPC(source), result, &outcome->error_object, &outcome->error);
    g_assert_true((outcome->result == NULL) == (outcome->error != NULL));
    outcome->done = TRUE;
}

static void
wait_outcome(Outcome *outcome)
{
    g_autoptr(GSource) alarm = g_timeout_source_new_seconds(20);

    g_source_set_callback(alarm, on_alarm, (gpointer) "an answer", NULL);
    g_source_attach(alarm, NULL);
    while (!outcome->done)
        g_main_context_iteration(NULL, TRUE);
    g_source_destroy(alarm);
}

static void
outcome_clear(Outcome *outcome)
{
    g_clear_pointer(&outcome->result, json_node_unref);
    g_clear_pointer(&outcome->error_object, json_object_unref);
    g_clear_error(&outcome->error);
    outcome->done = FALSE;
}

static void
test_call(Fixture *fixture, gconstpointer data)
{
    Outcome first = {0};
    Outcome second = {0};
    g_autofree char *sent = NULL;
    g_autofree char *sent_second = NULL;

    eb_jsonrpc_call_async(fixture->rpc, "one", NULL, 0, NULL, on_answer, &first);
    eb_jsonrpc_call_async(fixture->rpc, "two", json_node_init_null(json_node_alloc()), 5000, NULL, on_answer, &second);
    sent = peer_line(fixture);
    sent_second = peer_line(fixture);
    g_assert_cmpstr(sent, ==, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"one\"}");
    g_assert_cmpstr(sent_second, ==, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"two\",\"params\":null}");
    feed(fixture, "{\"result\":{\"x\":7},\"id\":2.0,\"jsonrpc\":\"2.0\"}\r\n\n{\"id\":1,\"jsonrpc\":\"2.0\",\"error\":"
                  "{\"code\":401,\"message\":\"no key\",\"data\":[1]}}\n");
    wait_outcome(&first);
    wait_outcome(&second);
    g_assert_error(first.error, EB_ERROR, EB_ERROR_FAILED);
    g_assert_cmpstr(eb_error_get_reason(first.error), ==, "jsonrpc.error");
    g_assert_cmpstr(first.error->message, ==, "no key");
    g_assert_cmpint(eb_json_get_int(first.error_object, "code", 0), ==, 401);
    g_assert_no_error(second.error);
    g_assert_cmpint(eb_json_get_int(eb_json_node_object(second.result), "x", 0), ==, 7);
    g_assert_cmpuint(fixture->events->len, ==, 0);
    outcome_clear(&first);
    outcome_clear(&second);
}

/* Every id comes back with its own type; both sides' ids are unrelated. */
static void
test_request_ids(Fixture *fixture, gconstpointer data)
{
    static const char *const ids[] = {"0", "1", "\"0\"", "\"a b\"", "null", "-3", "9007199254740993", "1.5"};

    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autofree char *request =
            g_strdup_printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"known\",\"params\":{}}\n", ids[i]);
        g_autofree char *expected = g_strdup_printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}", ids[i]);
        g_autofree char *reply = NULL;

        feed(fixture, request);
        reply = peer_line(fixture);
        g_assert_cmpstr(reply, ==, expected);
    }
}

static void
test_unknown_request(Fixture *fixture, gconstpointer data)
{
    g_autofree char *reply = NULL;

    feed(fixture, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"fs/read_text_file\"}\n");
    reply = peer_line(fixture);
    g_assert_cmpstr(reply, ==,
                    "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32601,\"message\":\"method not found\"}}");
}

static void
test_noise(Fixture *fixture, gconstpointer data)
{
    feed(fixture, "Loaded cached credentials.\n"
                  "\n"
                  "\x1b[2K\x1b[1G\n"
                  "[1,2]\n"
                  "\"text\"\n"
                  "{\"level\":30,\"id\":1,\"msg\":\"log\"}\n"
                  "{\"half\": \n"
                  "\x1b]0;title\x07\x1b[?25l{\"method\":\"a\"}\n"
                  "\xef\xbb\xbf{\"method\":\"b\",\"params\":{\"t\":\"one\xe2\x80\xa8two\"}}\n"
                  "{\"method\":\"c\",\"params\":[\"\xb0\xa1 cp949\"]}\n"
                  "{\"id\":{},\"method\":\"known\"}\n"
                  "recv {\"jsonrpc\":\"2.0\",\"method\":\"quoted\"}\n"
                  "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n"
                  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"parse\"}}\n"
                  "{\"method\":\"end\"}");
    close(fixture->to_peer);
    fixture->to_peer = -1;
    wait_events(fixture, 15);
    g_assert_cmpstr(event(fixture, 0), ==, "noise Loaded cached credentials.");
    g_assert_cmpstr(event(fixture, 1), ==, "noise [1,2]");
    g_assert_cmpstr(event(fixture, 2), ==, "noise \"text\"");
    g_assert_true(g_str_has_prefix(event(fixture, 3), "noise {\"level\""));
    g_assert_true(g_str_has_prefix(event(fixture, 4), "noise {\"half\""));
    g_assert_cmpstr(event(fixture, 5), ==, "notification a -");
    g_assert_cmpstr(event(fixture, 6), ==, "notification b {\"t\":\"one\xe2\x80\xa8two\"}");
    g_assert_true(g_str_has_prefix(event(fixture, 7), "noise {\"method\":\"c\""));
    g_assert_cmpstr(event(fixture, 8), ==, "notification c [\"\xef\xbf\xbd\xef\xbf\xbd cp949\"]");
    g_assert_true(g_str_has_prefix(event(fixture, 9), "noise {\"id\":{}"));
    g_assert_true(g_str_has_prefix(event(fixture, 10), "noise recv"));
    g_assert_true(g_str_has_prefix(event(fixture, 11), "noise {\"jsonrpc\":\"2.0\",\"id\":77"));
    g_assert_true(g_str_has_prefix(event(fixture, 12), "noise {\"jsonrpc\":\"2.0\",\"id\":null"));
    g_assert_cmpstr(event(fixture, 13), ==, "notification end -");
    g_assert_cmpstr(event(fixture, 14), ==, "closed normally");
}

/* A banner without a newline must not swallow the answer behind it. */
static void
test_answer_behind_text(Fixture *fixture, gconstpointer data)
{
    Outcome outcome = {0};

    eb_jsonrpc_call_async(fixture->rpc, "initialize", NULL, 0, NULL, on_answer, &outcome);
    feed(fixture, "{loading} {\"a\":1} ... {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"ok\":true}}\n");
    wait_outcome(&outcome);
    g_assert_no_error(outcome.error);
    g_assert_true(eb_json_get_bool(eb_json_node_object(outcome.result), "ok", FALSE));
    outcome_clear(&outcome);
}

static void
test_split_everywhere(Fixture *fixture, gconstpointer data)
{
    const char *text = "{\"method\":\"m\",\"params\":{\"t\":\"\xf0\x9f\x98\x80\xe2\x80\xa8\"}}\r\n";

    for (gsize i = 0; text[i] != '\0'; i++) {
        g_assert_cmpint(write(fixture->to_peer, text + i, 1), ==, 1);
        while (g_main_context_iteration(NULL, FALSE)) {
        }
    }
    wait_events(fixture, 1);
    g_assert_cmpstr(event(fixture, 0), ==, "notification m {\"t\":\"\xf0\x9f\x98\x80\xe2\x80\xa8\"}");
    g_assert_cmpuint(fixture->events->len, ==, 1);
}

static void
test_deadline_and_cancel(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    Outcome slow = {0};
    Outcome given_up = {0};
    g_autofree char *line = NULL;

    eb_jsonrpc_set_cancel_method(fixture->rpc, "$/cancel_request");
    eb_jsonrpc_call_async(fixture->rpc, "slow", NULL, 20, NULL, on_answer, &slow);
    wait_outcome(&slow);
    g_assert_error(slow.error, EB_ERROR, EB_ERROR_TIMEOUT);
    g_free(peer_line(fixture));
    line = peer_line(fixture);
    g_assert_cmpstr(line, ==, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}}");
    eb_jsonrpc_call_async(fixture->rpc, "other", NULL, 0, cancellable, on_answer, &given_up);
    g_cancellable_cancel(cancellable);
    wait_outcome(&given_up);
    g_assert_error(given_up.error, EB_ERROR, EB_ERROR_CANCELLED);
    /* The late answer is nobody's. */
    feed(fixture, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    wait_events(fixture, 1);
    g_assert_true(g_str_has_prefix(event(fixture, 0), "noise "));
    outcome_clear(&slow);
    outcome_clear(&given_up);
}

static void
test_end_fails_calls(Fixture *fixture, gconstpointer data)
{
    Outcome outcomes[3] = {0};
    Outcome after = {0};

    for (guint i = 0; i < 3; i++)
        eb_jsonrpc_call_async(fixture->rpc, "x", NULL, 0, NULL, on_answer, &outcomes[i]);
    close(fixture->to_peer);
    fixture->to_peer = -1;
    for (guint i = 0; i < 3; i++) {
        wait_outcome(&outcomes[i]);
        g_assert_error(outcomes[i].error, EB_ERROR, EB_ERROR_UNAVAILABLE);
        g_assert_cmpstr(eb_error_get_reason(outcomes[i].error), ==, "jsonrpc.closed");
        outcome_clear(&outcomes[i]);
    }
    wait_events(fixture, 1);
    g_assert_cmpuint(fixture->closed, ==, 1);
    eb_jsonrpc_call_async(fixture->rpc, "x", NULL, 0, NULL, on_answer, &after);
    wait_outcome(&after);
    g_assert_error(after.error, EB_ERROR, EB_ERROR_UNAVAILABLE);
    outcome_clear(&after);
}

/* The peer stopped reading: what it still says is heard, then everything ends. */
static void
test_write_error(Fixture *fixture, gconstpointer data)
{
    Outcome outcome = {0};

    close(fixture->from_peer);
    fixture->from_peer = -1;
    eb_jsonrpc_call_async(fixture->rpc, "x", NULL, 0, NULL, on_answer, &outcome);
    feed(fixture, "{\"method\":\"last words\"}\n");
    wait_outcome(&outcome);
    g_assert_error(outcome.error, EB_ERROR, EB_ERROR_UNAVAILABLE);
    wait_events(fixture, 2);
    g_assert_cmpstr(event(fixture, 0), ==, "notification last words -");
    g_assert_cmpstr(event(fixture, 1), ==, "closed jsonrpc.write");
    outcome_clear(&outcome);
}

static const EbJsonrpcLimits tiny = {
    .max_line = 200, .max_depth = 4, .max_calls = 2, .max_requests = 2, .max_write_queue = 100000};

static void
test_line_limit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *big = g_strnfill(300, 'x');
    Outcome outcome = {0};

    eb_jsonrpc_call_async(fixture->rpc, "x", NULL, 0, NULL, on_answer, &outcome);
    feed(fixture, big);
    wait_outcome(&outcome);
    g_assert_error(outcome.error, EB_ERROR, EB_ERROR_UNAVAILABLE);
    g_assert_nonnull(strstr(outcome.error->message, "200 bytes"));
    wait_events(fixture, 1);
    g_assert_cmpstr(event(fixture, 0), ==, "closed jsonrpc.line-too-long");
    outcome_clear(&outcome);
}

static void
test_depth_is_noise(Fixture *fixture, gconstpointer data)
{
    feed(fixture, "{\"method\":\"deep\",\"params\":[[[[[[1]]]]]]}\n{\"method\":\"flat\"}\n");
    wait_events(fixture, 2);
    g_assert_true(g_str_has_prefix(event(fixture, 0), "noise "));
    g_assert_cmpstr(event(fixture, 1), ==, "notification flat -");
}

static void
test_request_limit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *refused = NULL;
    g_autofree char *answered = NULL;

    fixture->answer = FALSE;
    feed(fixture, "{\"id\":0,\"method\":\"known\"}\n{\"id\":1,\"method\":\"known\"}\n{\"id\":2,\"method\":\"known\"}\n"
                  "{\"id\":0,\"method\":\"known\"}\n");
    refused = peer_line(fixture);
    g_assert_nonnull(strstr(refused, "\"id\":2,\"error\":{\"code\":-32000"));
    wait_events(fixture, 3);
    g_assert_true(g_str_has_prefix(event(fixture, 2), "noise ")); /* id 0 is open already */
    eb_jsonrpc_reply(fixture->rpc, g_ptr_array_index(fixture->ids, 0), NULL);
    answered = peer_line(fixture);
    g_assert_cmpstr(answered, ==, "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");
    feed(fixture, "{\"id\":0,\"method\":\"known again\"}\n");
    wait_events(fixture, 4);
    g_assert_cmpstr(event(fixture, 3), ==, "request known again 0");
}

static void
test_call_limit(Fixture *fixture, gconstpointer data)
{
    Outcome outcomes[3] = {0};

    for (guint i = 0; i < 3; i++)
        eb_jsonrpc_call_async(fixture->rpc, "x", NULL, 0, NULL, on_answer, &outcomes[i]);
    wait_outcome(&outcomes[2]);
    g_assert_error(outcomes[2].error, EB_ERROR, EB_ERROR_BUSY);
    eb_jsonrpc_close(fixture->rpc, TRUE);
    for (guint i = 0; i < 3; i++) {
        wait_outcome(&outcomes[i]);
        outcome_clear(&outcomes[i]);
    }
    g_assert_cmpuint(fixture->closed, ==, 1);
}

/* A peer that does not read: the queue ends at its bound, not at the end of memory. */
static void
test_write_limit(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = g_strnfill(10000, 'x');

    for (guint i = 0; i < 40 && !eb_jsonrpc_is_closed(fixture->rpc); i++)
        eb_jsonrpc_notify(fixture->rpc, "n", json_node_init_string(json_node_alloc(), text));
    wait_events(fixture, 1);
    g_assert_cmpstr(event(fixture, 0), ==, "closed jsonrpc.write-queue");
}

static void
test_close_ends_writing(Fixture *fixture, gconstpointer data)
{
    g_autofree char *line = NULL;

    eb_jsonrpc_notify(fixture->rpc, "bye", NULL);
    eb_jsonrpc_close(fixture->rpc, FALSE);
    line = peer_line(fixture);
    g_assert_cmpstr(line, ==, "{\"jsonrpc\":\"2.0\",\"method\":\"bye\"}");
    wait_end(fixture);
    feed(fixture, "{\"method\":\"still heard\"}\n");
    wait_events(fixture, 1);
    g_assert_cmpstr(event(fixture, 0), ==, "notification still heard -");
}

#define ADD(path, limits, function) g_test_add("/base/jsonrpc/" path, Fixture, limits, set_up, function, tear_down)

int
main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    g_test_init(&argc, &argv, NULL);
    ADD("call", NULL, test_call);
    ADD("request-ids", NULL, test_request_ids);
    ADD("unknown-request", NULL, test_unknown_request);
    ADD("noise", NULL, test_noise);
    ADD("answer-behind-text", NULL, test_answer_behind_text);
    ADD("split-everywhere", NULL, test_split_everywhere);
    ADD("deadline-and-cancel", NULL, test_deadline_and_cancel);
    ADD("end-fails-calls", NULL, test_end_fails_calls);
    ADD("write-error", NULL, test_write_error);
    ADD("line-limit", &tiny, test_line_limit);
    ADD("depth-is-noise", &tiny, test_depth_is_noise);
    ADD("request-limit", &tiny, test_request_limit);
    ADD("call-limit", &tiny, test_call_limit);
    ADD("write-limit", &tiny, test_write_limit);
    ADD("close-ends-writing", NULL, test_close_ends_writing);
    return g_test_run();
}
