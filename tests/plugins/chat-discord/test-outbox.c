/* SPDX-License-Identifier: MIT */
/* What goes into one thread: in order, none lost, none twice, whatever the service answers in between. */
#include "discord-outbox.h"
#include "scripted-server.h"

#define LIMITED(headers_, body_) ((ScriptedAnswer){.status = 429, .headers = headers_, .body = body_})
#define ERROR_BODY(code) "{\"message\":\"no\",\"code\":" code "}"
/* Waits of the REST client pass so many times as fast. */
#define SPEED 50

typedef struct {
    ScriptedServer *server;
    DiscordRest *rest;
    DiscordOutbox *outbox;
    GString *done; /* "0 ok 17;" in the order of the callbacks */
    GString *gone;
    guint n_done;
} Fixture;

static gboolean told_of_waiting;

/* The one place that tells when an item is kept until the service is back. */
static GLogWriterOutput
watch_log(GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
    for (gsize i = 0; i < n_fields; i++)
        if (g_str_equal(fields[i].key, "MESSAGE") && g_str_has_prefix(fields[i].value, "posts into 5 wait"))
            told_of_waiting = TRUE;
    return g_log_writer_default(level, fields, n_fields, user_data);
}

static void
on_gone(DiscordOutbox *outbox, const char *state, gpointer user_data)
{
    Fixture *fixture = user_data;
    g_string_append_printf(fixture->gone, "%s;", state);
}

static void
setup(Fixture *fixture, gconstpointer data)
{
    fixture->server = scripted_server_new();
    fixture->rest = discord_rest_new(fixture->server->site, fixture->server->token);
    discord_rest_set_speed(fixture->rest, SPEED);
    fixture->outbox = discord_outbox_new(fixture->rest, "5");
    told_of_waiting = FALSE;
    fixture->done = g_string_new(NULL);
    fixture->gone = g_string_new(NULL);
    g_signal_connect(fixture->outbox, "gone", G_CALLBACK(on_gone), fixture);
}

static void
teardown(Fixture *fixture, gconstpointer data)
{
    discord_outbox_close(fixture->outbox);
    discord_rest_close(fixture->rest);
    eb_test_drain();
    g_object_add_weak_pointer(G_OBJECT(fixture->outbox), (gpointer *)&fixture->outbox);
    g_object_unref(fixture->outbox);
    g_assert_null(fixture->outbox);
    g_object_add_weak_pointer(G_OBJECT(fixture->rest), (gpointer *)&fixture->rest);
    g_object_unref(fixture->rest);
    g_assert_null(fixture->rest);
    g_string_free(fixture->done, TRUE);
    g_string_free(fixture->gone, TRUE);
    scripted_server_free(fixture->server);
}

typedef struct {
    Fixture *fixture;
    guint index;
} Call;

static void
note(Fixture *fixture, Call *call, const char *id, const GError *error)
{
    fixture->n_done++;
    if (error == NULL)
        g_string_append_printf(fixture->done, "%u ok %s;", call->index, id != NULL ? id : "-");
    else
        g_string_append_printf(fixture->done, "%u %s;", call->index, eb_error_get_reason(error));
    g_free(call);
}

static void
on_created(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Call *call = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = discord_outbox_create_finish(DISCORD_OUTBOX(source), result, &error);
    g_assert_true((id == NULL) == (error != NULL));
    note(call->fixture, call, id, error);
}

static void
on_edited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Call *call = user_data;
    g_autoptr(GError) error = NULL;
    gboolean good = discord_outbox_edit_finish(DISCORD_OUTBOX(source), result, &error);
    g_assert_true(good == (error == NULL));
    note(call->fixture, call, NULL, error);
}

static void
on_called(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Call *call = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = discord_outbox_call_finish(DISCORD_OUTBOX(source), result, &error);
    note(call->fixture, call, NULL, error);
}

static Call *
make_call(Fixture *fixture, guint index)
{
    Call *call = g_new(Call, 1);
    *call = (Call){fixture, index};
    return call;
}

static JsonObject *
text_body(const char *text)
{
    JsonObject *body = json_object_new();
    json_object_set_string_member(body, "content", text);
    return body;
}

static void
create(Fixture *fixture, guint index)
{
    g_autofree char *text = g_strdup_printf("part %u", index);
    discord_outbox_create_async(fixture->outbox, text_body(text), NULL, NULL, on_created, make_call(fixture, index));
}

static void
edit(Fixture *fixture, guint index, const char *message_id, const char *text)
{
    discord_outbox_edit_async(fixture->outbox, message_id, text_body(text), NULL, on_edited, make_call(fixture, index));
}

static void
react(Fixture *fixture, guint index)
{
    discord_outbox_call_async(fixture->outbox,
                              discord_request_new("PUT", "/channels/{c}/messages/{m}/reactions", "5",
                                                  "/channels/5/messages/1/reactions/x/@me"),
                              NULL, on_called, make_call(fixture, index));
}

typedef struct {
    Fixture *fixture;
    guint count;
} Awaited;

static gboolean
are_done(gpointer user_data)
{
    Awaited *awaited = user_data;
    return awaited->fixture->n_done >= awaited->count;
}

static void
wait_done(Fixture *fixture, guint count)
{
    Awaited awaited = {fixture, count};
    eb_test_run_until(are_done, &awaited);
    g_assert_cmpuint(fixture->n_done, ==, count);
}

/* (transfer full) */
static char *
sent_text(Fixture *fixture, guint index, const char *member)
{
    const ScriptedRequest *request = scripted_server_get(fixture->server, index);
    g_autoptr(JsonNode) node = eb_json_parse(request->body, request->body_length, NULL, NULL);
    return g_strdup(eb_json_get_string(eb_json_node_object(node), member));
}

static void
assert_sent(Fixture *fixture, guint index, const char *content)
{
    g_autofree char *text = sent_text(fixture, index, "content");
    g_assert_cmpstr(text, ==, content);
}

static void
test_order(Fixture *fixture, gconstpointer data)
{
    create(fixture, 0);
    react(fixture, 1);
    edit(fixture, 2, "9", "new");
    create(fixture, 3);
    g_assert_cmpuint(discord_outbox_get_queued(fixture->outbox), ==, 4);
    wait_done(fixture, 4);
    g_autofree char *lines = scripted_server_lines(fixture->server);
    g_assert_cmpstr(lines, ==,
                    "POST /channels/5/messages;PUT /channels/5/messages/1/reactions/x/@me;"
                    "PATCH /channels/5/messages/9;POST /channels/5/messages;");
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;1 ok -;2 ok -;3 ok 4;");
    g_assert_cmpuint(fixture->server->most, ==, 1);
    g_assert_cmpuint(discord_outbox_get_queued(fixture->outbox), ==, 0);
}

/* Every create and edit forbids mentions, a given list is kept, and each message has a nonce of its own. */
static void
test_bodies(Fixture *fixture, gconstpointer data)
{
    JsonObject *body = text_body("x");
    JsonObject *allowed = json_object_new();
    JsonArray *users = json_array_new();
    json_array_add_string_element(users, "77");
    json_object_set_array_member(allowed, "users", users);
    json_object_set_object_member(body, "allowed_mentions", allowed);
    JsonObject *reference = json_object_new();
    json_object_set_string_member(reference, "message_id", "3");
    json_object_set_object_member(body, "message_reference", reference);
    create(fixture, 0);
    edit(fixture, 1, "9", "new");
    discord_outbox_create_async(fixture->outbox, body, NULL, NULL, on_created, make_call(fixture, 2));
    wait_done(fixture, 3);
    g_autofree char *first = sent_text(fixture, 0, "nonce");
    g_autofree char *second = sent_text(fixture, 2, "nonce");
    g_assert_cmpuint(strlen(first), <=, 25);
    g_assert_cmpuint(strlen(first), >=, 20);
    g_assert_cmpstr(first, !=, second);
    g_assert_nonnull(strstr(scripted_server_get(fixture->server, 0)->body, "\"enforce_nonce\":true"));
    for (guint i = 0; i < 2; i++)
        g_assert_nonnull(strstr(scripted_server_get(fixture->server, i)->body, "\"allowed_mentions\":{\"parse\":[]}"));
    g_assert_null(strstr(scripted_server_get(fixture->server, 1)->body, "nonce"));
    const char *third = scripted_server_get(fixture->server, 2)->body;
    g_assert_nonnull(strstr(third, "\"allowed_mentions\":{\"users\":[\"77\"]}"));
    g_assert_nonnull(strstr(third, "\"message_reference\":{\"message_id\":\"3\",\"fail_if_not_exists\":false}"));
}

/* B30: whatever 429 comes at the third part, all parts arrive, in order, once. */
static void
test_limited_in_the_middle(Fixture *fixture, gconstpointer data)
{
    const ScriptedAnswer limits[] = {
        LIMITED("X-RateLimit-Scope: user\nRetry-After: 1",
                "{\"message\":\"x\",\"retry_after\":1.337,\"global\":false}"),
        LIMITED("X-RateLimit-Global: true\nX-RateLimit-Scope: global\nRetry-After: 2",
                "{\"message\":\"x\",\"retry_after\":0.25,\"global\":true}"),
        LIMITED("X-RateLimit-Scope: shared", "{\"message\":\"x\",\"retry_after\":3.5,\"global\":false}"),
        LIMITED("Server: cloudflare", "<html><title>Error 1015</title></html>"),
        LIMITED("Server: cloudflare\nRetry-After: 61", ""),
    };
    for (guint i = 0; i < G_N_ELEMENTS(limits); i++) {
        guint before = fixture->server->requests->len;
        guint done = fixture->n_done;
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "{\"id\":\"a\"}"});
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "{\"id\":\"b\"}"});
        scripted_server_push(fixture->server, limits[i]);
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "{\"id\":\"c\"}"});
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "{\"id\":\"d\"}"});
        g_string_truncate(fixture->done, 0);
        for (guint part = 0; part < 4; part++)
            create(fixture, part);
        wait_done(fixture, done + 4);
        g_assert_cmpstr(fixture->done->str, ==, "0 ok a;1 ok b;2 ok c;3 ok d;");
        assert_sent(fixture, before + 2, "part 2");
        assert_sent(fixture, before + 3, "part 2");
        assert_sent(fixture, before + 4, "part 3");
        g_assert_cmpuint(fixture->server->requests->len, ==, before + 5);
        g_autofree char *nonce = sent_text(fixture, before + 2, "nonce");
        g_autofree char *again = sent_text(fixture, before + 3, "nonce");
        g_assert_cmpstr(nonce, ==, again);
    }
}

/* After a 5xx, and after a connection that broke when the message may have arrived: sent again with its nonce. */
static void
test_repeats_with_nonce(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 502, .body = "<html>bad gateway</html>"});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 0});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .cut = TRUE, .body = "{\"id\":"});
    create(fixture, 0);
    create(fixture, 1);
    wait_done(fixture, 2);
    g_assert_cmpuint(fixture->server->requests->len, ==, 5);
    g_autofree char *nonce = sent_text(fixture, 0, "nonce");
    for (guint i = 0; i < 4; i++) {
        g_autofree char *again = sent_text(fixture, i, "nonce");
        g_assert_cmpstr(again, ==, nonce);
        assert_sent(fixture, i, "part 0");
    }
    g_autofree char *other = sent_text(fixture, 4, "nonce");
    g_assert_cmpstr(other, !=, nonce);
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;1 ok 2;");
}

/* What can never be shown is given up alone. */
static void
test_permanent_errors(Fixture *fixture, gconstpointer data)
{
    static const struct {
        guint status;
        const char *body;
        const char *reason;
    } cases[] = {
        {400, ERROR_BODY("50006"), "discord.50006"},   {400, ERROR_BODY("50035"), "discord.50035"},
        {403, ERROR_BODY("50013"), "discord.50013"},   {404, ERROR_BODY("10008"), "discord.10008"},
        {400, ERROR_BODY("200000"), "discord.200000"}, {413, "", "discord.http-413"},
        {404, "<html>", "discord.http-404"},
    };
    g_autoptr(GString) expected = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = cases[i].status, .body = cases[i].body});
        create(fixture, i);
        g_string_append_printf(expected, "%u %s;", i, cases[i].reason);
    }
    create(fixture, 99);
    g_string_append(expected, "99 ok 1;");
    wait_done(fixture, G_N_ELEMENTS(cases) + 1);
    g_assert_cmpstr(fixture->done->str, ==, expected->str);
    g_assert_cmpstr(fixture->gone->str, ==, "");
    g_assert_cmpuint(fixture->server->requests->len, ==, G_N_ELEMENTS(cases) + 1);
}

/* A reply to what cannot be replied to is said all the same. */
static void
test_reply_impossible(Fixture *fixture, gconstpointer data)
{
    JsonObject *body = text_body("answer");
    JsonObject *reference = json_object_new();
    json_object_set_string_member(reference, "message_id", "3");
    json_object_set_object_member(body, "message_reference", reference);
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("50035")});
    discord_outbox_create_async(fixture->outbox, body, NULL, NULL, on_created, make_call(fixture, 0));
    wait_done(fixture, 1);
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;");
    assert_sent(fixture, 1, "answer");
    g_assert_null(strstr(scripted_server_get(fixture->server, 1)->body, "message_reference"));
}

static void
test_edits_coalesce(Fixture *fixture, gconstpointer data)
{
    create(fixture, 0);
    edit(fixture, 1, "9", "one");
    edit(fixture, 2, "8", "other");
    edit(fixture, 3, "9", "two");
    create(fixture, 4);
    edit(fixture, 5, "9", "three");
    g_assert_cmpuint(discord_outbox_get_queued(fixture->outbox), ==, 4);
    wait_done(fixture, 6);
    g_autofree char *lines = scripted_server_lines(fixture->server);
    g_assert_cmpstr(lines, ==,
                    "POST /channels/5/messages;PATCH /channels/5/messages/9;PATCH /channels/5/messages/8;"
                    "POST /channels/5/messages;");
    assert_sent(fixture, 1, "three");
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;1 ok -;3 ok -;5 ok -;2 ok -;4 ok 4;");
}

/* One that is under way is not changed: the later one follows it. */
static void
test_edit_under_way(Fixture *fixture, gconstpointer data)
{
    edit(fixture, 0, "9", "one");
    scripted_server_wait(fixture->server, 1);
    edit(fixture, 1, "9", "two");
    edit(fixture, 2, "9", "three");
    wait_done(fixture, 3);
    g_assert_cmpuint(fixture->server->requests->len, ==, 2);
    assert_sent(fixture, 0, "one");
    assert_sent(fixture, 1, "three");
}

/* An edit that waits for the service to come back is replaced too. */
static void
test_edit_kept(Fixture *fixture, gconstpointer data)
{
    for (guint i = 0; i < 4; i++)
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 503, .body = ""});
    edit(fixture, 0, "9", "one");
    eb_test_run_until_true(&told_of_waiting);
    edit(fixture, 1, "9", "two");
    discord_outbox_resume(fixture->outbox);
    wait_done(fixture, 2);
    g_assert_cmpuint(fixture->server->requests->len, ==, 5);
    assert_sent(fixture, 4, "two");
}

static void
test_unreachable(Fixture *fixture, gconstpointer data)
{
    scripted_server_refuse(fixture->server);
    create(fixture, 0);
    create(fixture, 1);
    eb_test_run_until_true(&told_of_waiting);
    g_assert_cmpuint(fixture->n_done, ==, 0);
    g_assert_cmpuint(discord_outbox_get_queued(fixture->outbox), ==, 2);
    scripted_server_return(fixture->server);
    discord_outbox_resume(fixture->outbox);
    wait_done(fixture, 2);
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;1 ok 2;");
}

/* Without anybody telling: it asks again by itself. */
static void
test_probes(Fixture *fixture, gconstpointer data)
{
    for (guint i = 0; i < 4; i++)
        scripted_server_push(fixture->server, (ScriptedAnswer){.status = 500, .body = ""});
    create(fixture, 0);
    wait_done(fixture, 1);
    g_assert_cmpuint(fixture->server->requests->len, ==, 5);
    g_assert_cmpstr(fixture->done->str, ==, "0 ok 1;");
}

static void
test_deleted(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 404, .body = ERROR_BODY("10003")});
    create(fixture, 0);
    edit(fixture, 1, "9", "x");
    create(fixture, 2);
    wait_done(fixture, 3);
    create(fixture, 3);
    wait_done(fixture, 4);
    discord_outbox_resume(fixture->outbox);
    create(fixture, 4);
    wait_done(fixture, 5);
    g_assert_cmpstr(fixture->gone->str, ==, "deleted;");
    g_assert_cmpstr(fixture->done->str, ==,
                    "0 discord.10003;1 discord.10003;2 discord.10003;3 discord.10003;4 discord.10003;");
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
}

static void
test_lost_and_back(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 403, .body = ERROR_BODY("50001")});
    create(fixture, 0);
    create(fixture, 1);
    wait_done(fixture, 2);
    create(fixture, 2);
    wait_done(fixture, 3);
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
    g_assert_cmpstr(fixture->gone->str, ==, "lost;");
    discord_outbox_resume(fixture->outbox);
    create(fixture, 3);
    wait_done(fixture, 4);
    g_assert_cmpstr(fixture->done->str, ==, "0 discord.50001;1 discord.50001;2 discord.50001;3 ok 1;");
}

static void
test_unarchives(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("50083")});
    edit(fixture, 0, "9", "x");
    wait_done(fixture, 1);
    g_autofree char *lines = scripted_server_lines(fixture->server);
    g_assert_cmpstr(lines, ==, "PATCH /channels/5/messages/9;PATCH /channels/5;PATCH /channels/5/messages/9;");
    g_assert_cmpstr(scripted_server_get(fixture->server, 1)->body, ==, "{\"archived\":false}");
    g_assert_cmpstr(fixture->done->str, ==, "0 ok -;");
    g_assert_cmpstr(fixture->gone->str, ==, "");
}

/* Once: a thread that is archived again at once is not fought over. */
static void
test_unarchives_once(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("50083")});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("50083")});
    edit(fixture, 0, "9", "x");
    create(fixture, 1);
    wait_done(fixture, 2);
    g_assert_cmpstr(fixture->done->str, ==, "0 discord.50083;1 ok 1;");
    g_assert_cmpuint(fixture->server->requests->len, ==, 4);
}

static void
test_locked(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("160005")});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 400, .body = ERROR_BODY("50083")});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 403, .body = ERROR_BODY("50013")});
    create(fixture, 0);
    edit(fixture, 1, "9", "x");
    create(fixture, 2);
    wait_done(fixture, 3);
    g_assert_cmpstr(fixture->done->str, ==, "0 discord.160005;1 discord.50013;2 ok 1;");
    g_assert_cmpstr(fixture->gone->str, ==, "archived;archived;");
}

static void
test_bound(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    for (guint i = 0; i < DISCORD_OUTBOX_MAX; i++)
        create(fixture, i);
    scripted_server_wait(fixture->server, 1);
    create(fixture, 7777);
    wait_done(fixture, 1);
    g_assert_cmpstr(fixture->done->str, ==, "7777 discord.outbox-full;");
    edit(fixture, 8888, "9", "x");
    wait_done(fixture, 2);
    discord_outbox_close(fixture->outbox);
    wait_done(fixture, DISCORD_OUTBOX_MAX + 2);
    create(fixture, 9999);
    wait_done(fixture, DISCORD_OUTBOX_MAX + 3);
    g_assert_true(g_str_has_suffix(fixture->done->str, ";9999 discord.closed;"));
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
}

static void
test_bound_of_bytes(Fixture *fixture, gconstpointer data)
{
    gsize size = DISCORD_OUTBOX_MAX_BYTES / 2 + 1;
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_malloc0(size), size);
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_ptr_array_add(files, eb_chat_file_new("a.bin", NULL, bytes));
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    create(fixture, 0);
    discord_outbox_create_async(fixture->outbox, text_body(""), files, NULL, on_created, make_call(fixture, 1));
    discord_outbox_create_async(fixture->outbox, text_body(""), files, NULL, on_created, make_call(fixture, 2));
    wait_done(fixture, 1);
    g_assert_cmpstr(fixture->done->str, ==, "2 discord.outbox-full;");
    discord_outbox_close(fixture->outbox);
    wait_done(fixture, 3);
}

static void
test_cancel(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GCancellable) waiting = g_cancellable_new();
    g_autoptr(GCancellable) flying = g_cancellable_new();
    g_autoptr(GCancellable) before = g_cancellable_new();
    scripted_server_push(fixture->server, (ScriptedAnswer){.hang = TRUE});
    discord_outbox_create_async(fixture->outbox, text_body("a"), NULL, flying, on_created, make_call(fixture, 0));
    discord_outbox_create_async(fixture->outbox, text_body("b"), NULL, waiting, on_created, make_call(fixture, 1));
    create(fixture, 2);
    scripted_server_wait(fixture->server, 1);
    g_cancellable_cancel(waiting);
    wait_done(fixture, 1);
    g_assert_cmpstr(fixture->done->str, ==, "1 discord.cancelled;");
    g_cancellable_cancel(flying);
    wait_done(fixture, 3);
    g_assert_cmpstr(fixture->done->str, ==, "1 discord.cancelled;0 discord.cancelled;2 ok 1;");
    g_cancellable_cancel(before);
    discord_outbox_create_async(fixture->outbox, text_body("c"), NULL, before, on_created, make_call(fixture, 3));
    wait_done(fixture, 4);
    g_assert_cmpuint(fixture->server->requests->len, ==, 2);
}

/* One of several that an edit answers for: the others are none the worse. */
static void
test_cancel_coalesced(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    create(fixture, 0);
    edit(fixture, 1, "9", "one");
    discord_outbox_edit_async(fixture->outbox, "9", text_body("two"), cancellable, on_edited, make_call(fixture, 2));
    g_cancellable_cancel(cancellable);
    wait_done(fixture, 3);
    g_assert_cmpstr(fixture->done->str, ==, "2 discord.cancelled;0 ok 1;1 ok -;");
    assert_sent(fixture, 1, "two");
}

/* A call that its own limit holds up for minutes gives way in the end. */
static void
test_call_patience(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server,
                         LIMITED("X-RateLimit-Scope: user\nX-RateLimit-Remaining: 4\nX-RateLimit-Reset-After: 1",
                                 "{\"message\":\"x\",\"retry_after\":600,\"global\":false}"));
    DiscordRequest *request = discord_request_new("PATCH", "/channels/{c}#name", "5", "/channels/5");
    request->patience_ms = 300;
    discord_outbox_call_async(fixture->outbox, request, NULL, on_called, make_call(fixture, 0));
    create(fixture, 1);
    wait_done(fixture, 2);
    g_assert_cmpstr(fixture->done->str, ==, "0 discord.patience;1 ok 1;");
}

static void
test_unauthorized(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server,
                         (ScriptedAnswer){.status = 401, .body = "{\"message\":\"401: Unauthorized\"}"});
    for (guint i = 0; i < 20; i++)
        create(fixture, i);
    wait_done(fixture, 20);
    g_assert_cmpuint(fixture->server->requests->len, ==, 1);
    g_assert_true(g_str_has_prefix(fixture->done->str, "0 discord.unauthorized;1 discord.unauthorized;"));
}

static void
test_answer_without_id(Fixture *fixture, gconstpointer data)
{
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "{\"id\":7}"});
    scripted_server_push(fixture->server, (ScriptedAnswer){.status = 200, .body = "[]"});
    create(fixture, 0);
    create(fixture, 1);
    wait_done(fixture, 2);
    g_assert_cmpstr(fixture->done->str, ==, "0 discord.answer;1 discord.answer;");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_log_set_writer_func(watch_log, NULL, NULL);
#define ADD(name, function) g_test_add("/discord/outbox/" name, Fixture, NULL, setup, function, teardown)
    ADD("order", test_order);
    ADD("bodies", test_bodies);
    ADD("limited-in-the-middle", test_limited_in_the_middle);
    ADD("repeats-with-nonce", test_repeats_with_nonce);
    ADD("permanent-errors", test_permanent_errors);
    ADD("reply-impossible", test_reply_impossible);
    ADD("edits-coalesce", test_edits_coalesce);
    ADD("edit-under-way", test_edit_under_way);
    ADD("edit-kept", test_edit_kept);
    ADD("unreachable", test_unreachable);
    ADD("probes", test_probes);
    ADD("deleted", test_deleted);
    ADD("lost-and-back", test_lost_and_back);
    ADD("unarchives", test_unarchives);
    ADD("unarchives-once", test_unarchives_once);
    ADD("locked", test_locked);
    ADD("bound", test_bound);
    ADD("bound-of-bytes", test_bound_of_bytes);
    ADD("cancel", test_cancel);
    ADD("cancel-coalesced", test_cancel_coalesced);
    ADD("call-patience", test_call_patience);
    ADD("unauthorized", test_unauthorized);
    ADD("answer-without-id", test_answer_without_id);
    return g_test_run();
}
