/* SPDX-License-Identifier: MIT */
/* An agent that says far more than a chat can show: everything is bounded by the chat, nothing by the agent. */
#include "core/acp/eb-acp-tools.h"
#include "core/acp/eb-acp-types.h"
#include "core/render/eb-coalescer.h"
#include "core/render/eb-renderer.h"
#include "eb-test.h"
#include "render-chat.h"
#include "talkative.h"

#include <string.h>
#include <sys/resource.h>

#define UPDATES 100000
#define MAX_RSS_KIB (64 * 1024)

typedef struct {
    RenderChat *chat;
    EbRedactSet *secrets;
    EbRenderer *renderer;
    EbCoalescer *coalescer;
    EbAcpTools *tools;
} Agent;

static void
begin(Agent *self, guint delay_ms)
{
    char bytes[] = TALKATIVE_SECRET;
    g_autoptr(EbSecret) secret = eb_secret_new_take("key", bytes, strlen(bytes), NULL);
    self->chat = render_chat_new(EB_CHAT_CAP_EDIT | EB_CHAT_CAP_FILES, 2000, 1500);
    self->chat->delay_ms = delay_ms;
    self->secrets = eb_redact_set_new();
    eb_redact_set_add(self->secrets, secret);
    self->renderer = eb_renderer_new("t", self->secrets);
    self->coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(self->chat));
    self->tools = eb_acp_tools_new();
}

static void
end(Agent *self)
{
    g_clear_object(&self->coalescer);
    eb_test_drain();
    eb_renderer_free(self->renderer);
    eb_redact_set_unref(self->secrets);
    eb_acp_tools_free(self->tools);
    g_object_unref(self->chat);
}

static void
receive(Agent *self, const char *json)
{
    g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, NULL);
    g_assert_nonnull(node);
    JsonObject *object = eb_json_node_object(node);
    g_autoptr(EbAcpUpdate) update = eb_acp_update_decode("s", object);
    if (update->kind == EB_ACP_UPDATE_TOOL)
        update->tool = eb_acp_tools_upsert(self->tools, object,
                                           g_strcmp0(eb_json_get_string(object, "sessionUpdate"), "tool_call") == 0);
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_update(self->renderer, update, posts);
    for (guint i = 0; i < posts->len; i++)
        eb_coalescer_push(self->coalescer, posts->pdata[i]);
}

static void
assert_bounds(Agent *self)
{
    struct rusage usage;
    g_assert_cmpuint(eb_coalescer_get_queued(self->coalescer), <=, EB_COALESCER_MAX_POSTS);
    getrusage(RUSAGE_SELF, &usage);
#ifndef __SANITIZE_ADDRESS__
    g_assert_cmpint(usage.ru_maxrss, <, MAX_RSS_KIB);
#endif
}

static void
assert_masked(Agent *self)
{
    guint masked = 0;
    for (guint i = 0; i < self->chat->messages->len; i++) {
        const RenderMessage *message = self->chat->messages->pdata[i];
        g_assert_null(strstr(message->text, "0123456789abcdef"));
        g_assert_true(message->file == NULL || strstr(message->file, "0123456789abcdef") == NULL);
        masked += strstr(message->text, "[key]") != NULL;
    }
    g_assert_cmpuint(masked, >, 0);
}

static void
flush(Agent *self)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) posts = g_ptr_array_new();
    eb_renderer_end_span(self->renderer, posts);
    for (guint i = 0; i < posts->len; i++)
        eb_coalescer_push(self->coalescer, posts->pdata[i]);
    eb_coalescer_flush_async(self->coalescer, EB_TEST_DEADLINE_MS, eb_test_result_ready, &done);
    g_assert_true(eb_coalescer_flush_finish(self->coalescer, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

/* The chat takes one call at a time: what is posted is what it had time for and what fits into the queue. */
static void
test_everything(void)
{
    Agent agent;
    begin(&agent, 1);
    for (guint i = 0; i < UPDATES; i++) {
        g_autofree char *json = talkative_update(i);
        receive(&agent, json);
        if (i % 10 == 0)
            g_main_context_iteration(NULL, FALSE);
        if (i % 1000 == 0)
            assert_bounds(&agent);
    }
    flush(&agent);
    assert_bounds(&agent);
    assert_masked(&agent);
    g_assert_cmpuint(agent.chat->calls, <, UPDATES / 10);
    g_assert_cmpuint(agent.chat->bytes, <, agent.chat->calls * (gsize)8000);
    end(&agent);
}

/* A chat that answers nothing gets one call, whatever the agent does meanwhile; then the queue, and what was left out. */
static void
test_silent_chat(void)
{
    Agent agent;
    begin(&agent, 0);
    agent.chat->hold = TRUE;
    for (guint i = 0; i < UPDATES; i++) {
        g_autofree char *json = talkative_update(i);
        receive(&agent, json);
        if (i % 1000 == 0)
            g_main_context_iteration(NULL, FALSE);
    }
    g_assert_cmpuint(agent.chat->calls, ==, 1);
    assert_bounds(&agent);
    render_chat_release(agent.chat);
    flush(&agent);
    assert_masked(&agent);
    g_assert_cmpuint(agent.chat->calls, <=, 2 * EB_COALESCER_MAX_POSTS);
    g_autofree char *screen = render_chat_screen(agent.chat);
    g_assert_nonnull(strstr(screen, "messages were left out: the chat could not keep up"));
    end(&agent);
}

/* One text without end: messages change at the chat's pace and then no more; the rest is in files. */
static void
test_one_text(void)
{
    Agent agent;
    begin(&agent, 1);
    for (guint i = 0; i < UPDATES; i++) {
        receive(&agent, "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"and then "
                        "there is more of the same to say\\n\"}}");
        if (i % 10 == 0)
            g_main_context_iteration(NULL, FALSE);
        if (i % 1000 == 0)
            assert_bounds(&agent);
    }
    flush(&agent);
    assert_bounds(&agent);
    /* Four megabytes in files of three quarters of one or more. */
    g_assert_cmpuint(agent.chat->messages->len, <=, 6 * 6);
    g_assert_cmpuint(agent.chat->bytes, >=, UPDATES * (gsize)42);
    end(&agent);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/talkative/everything", test_everything);
    g_test_add_func("/talkative/silent-chat", test_silent_chat);
    g_test_add_func("/talkative/one-text", test_one_text);
    return g_test_run();
}
