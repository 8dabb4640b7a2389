/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-tools.h"
#include "eb-test.h"

#include <string.h>

/* (transfer full): the object in @text, with ' for ". */
static JsonObject *
object(const char *text)
{
    g_autofree char *json = g_strdup(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = NULL;

    g_strdelimit(json, "'", '"');
    node = eb_json_parse(json, strlen(json), NULL, &error);
    g_assert_no_error(error);
    return json_object_ref(json_node_get_object(node));
}

static void
test_updates(void)
{
    static const struct {
        const char *json;
        EbAcpUpdateKind kind;
        const char *text;
        gboolean content;
    } cases[] = {
        {"{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':'a'}}", EB_ACP_UPDATE_TEXT, "a", TRUE},
        {"{'sessionUpdate':'agent_message_chunk','content':{'type':'text','text':''}}", EB_ACP_UPDATE_TEXT, "", FALSE},
        {"{'sessionUpdate':'agent_message_chunk','content':{'type':'image','data':'x'}}", EB_ACP_UPDATE_TEXT, NULL,
         FALSE},
        {"{'sessionUpdate':'agent_message_chunk','content':'bare'}", EB_ACP_UPDATE_TEXT, "bare", TRUE},
        {"{'sessionUpdate':'agent_message_chunk','content':7}", EB_ACP_UPDATE_TEXT, NULL, FALSE},
        {"{'sessionUpdate':'agent_thought_chunk','content':{'type':'resource_link','uri':'file:///x'}}",
         EB_ACP_UPDATE_THOUGHT, "file:///x", TRUE},
        {"{'sessionUpdate':'user_message_chunk','content':{'type':'resource','resource':{'text':'r'}}}",
         EB_ACP_UPDATE_USER, "r", FALSE},
        {"{'sessionUpdate':'plan','entries':[]}", EB_ACP_UPDATE_PLAN, NULL, TRUE},
        {"{'sessionUpdate':'session_info_update'}", EB_ACP_UPDATE_INFO, NULL, FALSE},
        {"{'sessionUpdate':'notice','title':'T'}", EB_ACP_UPDATE_NOTICE, "T", FALSE},
        {"{'sessionUpdate':'_kage/compaction','kept':1}", EB_ACP_UPDATE_OTHER, NULL, FALSE},
        {"{'sessionUpdate':null}", EB_ACP_UPDATE_OTHER, NULL, FALSE},
        {"{}", EB_ACP_UPDATE_OTHER, NULL, FALSE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonObject) json = object(cases[i].json);
        g_autoptr(EbAcpUpdate) update = eb_acp_update_decode("s", json);

        g_assert_cmpint(update->kind, ==, cases[i].kind);
        g_assert_cmpstr(update->text, ==, cases[i].text);
        g_assert_cmpint(eb_acp_update_is_content(update), ==, cases[i].content);
        g_assert_true(update->raw == json);
        g_assert_nonnull(update->name);
    }
}

static void
test_usage(void)
{
    static const struct {
        const char *json;
        gint64 used, size;
        double cost;
    } cases[] = {
        {"{'sessionUpdate':'usage_update','used':10,'size':20,'cost':{'amount':0.25,'currency':'USD'}}", 10, 20, 0.25},
        {"{'sessionUpdate':'usage_update','used':null,'size':null,'cost':null}", -1, -1, -1},
        {"{'sessionUpdate':'usage_update','used':1e300,'size':-5}", -1, -1, -1},
        {"{'sessionUpdate':'usage_update','used':12.0,'size':'x','cost':{'amount':2}}", 12, -1, 2},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonObject) json = object(cases[i].json);
        g_autoptr(EbAcpUpdate) update = eb_acp_update_decode(NULL, json);

        g_assert_cmpint(update->used, ==, cases[i].used);
        g_assert_cmpint(update->size, ==, cases[i].size);
        g_assert_cmpfloat(update->cost, ==, cases[i].cost);
    }
}

static void
test_capabilities(void)
{
    g_autoptr(JsonObject) both =
        object("{'protocolVersion':1,'agentCapabilities':{'loadSession':{},'steer':false,'sessionCapabilities':"
               "{'resume':{},'list':true,'close':null}}}");
    g_autoptr(JsonObject) none = object("{'protocolVersion':1,'agentCapabilities':null,'agentInfo':'x'}");
    g_autoptr(JsonObject) newer = object("{'protocolVersion':2}");
    g_autoptr(GError) error = NULL;
    EbAcpAgentInfo info = {0};

    g_assert_true(eb_acp_agent_info_decode(both, &info, NULL));
    g_assert_true(info.load && info.resume && info.list);
    g_assert_false(info.close || info.steer);
    eb_acp_agent_info_clear(&info);
    g_assert_true(eb_acp_agent_info_decode(none, &info, NULL));
    g_assert_null(info.name);
    eb_acp_agent_info_clear(&info);
    g_assert_false(eb_acp_agent_info_decode(newer, &info, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "acp.version", "version 2");
    g_assert_false(eb_acp_agent_info_decode(NULL, &info, NULL));
}

static void
test_errors(void)
{
    static const struct {
        const char *json;
        EbErrorCode code;
        const char *reason;
        const char *text;
    } cases[] = {
        {"{'code':-32000,'message':'Authentication required'}", EB_ERROR_UNAUTHENTICATED, "acp.auth-required",
         "-32000"},
        {"{'code':-32002,'message':'x','data':'gone'}", EB_ERROR_NOT_FOUND, "acp.not-found", "x: gone"},
        {"{'code':-32601,'message':'m'}", EB_ERROR_NOT_SUPPORTED, "acp.method-not-found", "m"},
        {"{'code':-32800,'message':'m'}", EB_ERROR_CANCELLED, "acp.cancelled", "m"},
        {"{'code':401,'message':'m','data':{'error':{'message':'deep'}}}", EB_ERROR_FAILED, "acp.agent-error",
         "m: deep"},
        {"{'code':'x','data':{}}", EB_ERROR_FAILED, "acp.agent-error", "no reason given"},
        {"{'message':'same','data':'same'}", EB_ERROR_FAILED, "acp.agent-error", "0: same"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonObject) json = object(cases[i].json);
        g_autoptr(GError) error = eb_acp_error_from("session/new", json);

        eb_test_assert_error(error, cases[i].code, cases[i].reason, cases[i].text);
    }
}

static void
test_cut(void)
{
    static const char *const emoji = "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80";

    for (gsize max = 0; max < 24; max++) {
        g_autofree char *cut = eb_acp_cut(emoji, max);

        g_assert_true(g_utf8_validate(cut, -1, NULL));
        if (max >= 16)
            g_assert_cmpstr(cut, ==, emoji);
        else
            g_assert_cmpuint(strlen(cut), <=, MAX(max, strlen(EB_ACP_CUT_MARK)));
    }
    g_assert_null(eb_acp_cut(NULL, 5));
}

static void
test_bounded_copy(void)
{
    g_autoptr(JsonObject) json =
        object("{'a':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx','b':[1,2,{'c':null}],'d':true}");
    g_autoptr(JsonNode) node = json_node_init_object(json_node_alloc(), json);
    g_autoptr(JsonNode) same = eb_acp_json_bounded_copy(node, 10000);
    const gsize weight = eb_acp_json_weight(node, 100000);

    g_assert_true(json_node_get_object(same) == json);
    for (gsize max = 0; max < weight; max += 7) {
        g_autoptr(JsonNode) less = eb_acp_json_bounded_copy(node, max);

        g_assert_true(JSON_NODE_HOLDS_OBJECT(less));
        g_assert_cmpuint(eb_acp_json_weight(less, 100000), <=, max + 200);
    }
    /* The original is not touched. */
    g_assert_cmpuint(eb_acp_json_weight(node, 100000), ==, weight);
}

static void
test_tools_turns(void)
{
    g_autoptr(EbAcpTools) tools = eb_acp_tools_new();
    g_autoptr(JsonObject) announced = object("{'toolCallId':'1','title':'First','status':'pending'}");
    g_autoptr(JsonObject) done = object("{'toolCallId':'1','status':'completed','rawOutput':'out'}");
    g_autoptr(JsonObject) backwards = object("{'toolCallId':'1','status':'in_progress'}");
    EbAcpTool *tool;

    eb_acp_tools_begin_turn(tools);
    eb_acp_tool_free(eb_acp_tools_upsert(tools, announced, TRUE));
    eb_acp_tool_free(eb_acp_tools_upsert(tools, done, FALSE));
    tool = eb_acp_tools_upsert(tools, announced, TRUE); /* late in the same turn: still done */
    g_assert_cmpstr(tool->status, ==, "completed");
    g_assert_cmpstr(tool->output, ==, "out");
    eb_acp_tool_free(tool);
    tool = eb_acp_tools_upsert(tools, backwards, FALSE); /* told so: believed */
    g_assert_cmpstr(tool->status, ==, "in_progress");
    eb_acp_tool_free(tool);
    eb_acp_tool_free(eb_acp_tools_upsert(tools, done, FALSE));
    eb_acp_tools_begin_turn(tools);
    tool = eb_acp_tools_upsert(tools, announced, TRUE); /* the id again in another turn: another call */
    g_assert_cmpstr(tool->status, ==, "pending");
    g_assert_cmpstr(tool->output, ==, NULL);
    eb_acp_tool_free(tool);
    g_assert_cmpuint(eb_acp_tools_get_count(tools), ==, 1);
}

/* Where the text of a call's output is looked for. */
static void
test_tool_output(void)
{
    static const struct {
        const char *json;
        const char *output;
    } cases[] = {
        {"{'content':[{'type':'content','content':{'type':'text','text':'a'}},{'type':'text','text':'b'}]}", "a\nb"},
        {"{'content':[],'rawOutput':'raw'}", "raw"},
        {"{'content':[{'type':'diff','path':'x','newText':'n'}],'rawOutput':{'output':'inside'}}", "inside"},
        {"{'rawOutput':{'stdout':'','stderr':'problem'}}", "problem"},
        {"{'kind':'execute','rawOutput':'plain','content':[{'type':'content','content':{'type':'text','text':'```x```'}"
         "}]}",
         "plain"},
        {"{'kind':'read','rawOutput':'plain','content':[{'type':'content','content':{'type':'text','text':'shown'}}]}",
         "shown"},
        {"{'content':null,'rawOutput':null}", NULL},
        {"{'content':'bare'}", "bare"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(JsonObject) json = object(cases[i].json);
        g_autoptr(EbAcpTool) tool = eb_acp_tool_new("t");

        eb_acp_tool_merge(tool, json);
        g_assert_cmpstr(tool->output, ==, cases[i].output);
    }
}

/* Far more calls, ids and bytes than are kept. */
static void
test_tools_bounds(void)
{
    g_autoptr(EbAcpTools) tools = eb_acp_tools_new();
    g_autofree char *big = g_strnfill(300000, 'z');
    g_autoptr(JsonObject) unfinished = object("{'toolCallId':'keep','title':'Keep','status':'in_progress'}");
    EbAcpTool *tool;

    eb_acp_tool_free(eb_acp_tools_upsert(tools, unfinished, TRUE));
    for (guint i = 0; i < EB_ACP_MAX_TOOLS + 500; i++) {
        g_autofree char *id = g_strdup_printf("t%u", i);
        JsonObject *call = json_object_new();

        json_object_set_string_member(call, "toolCallId", id);
        json_object_set_string_member(call, "status", "completed");
        json_object_set_string_member(call, "title", big);
        json_object_set_string_member(call, "rawOutput", big);
        json_object_set_string_member(call, "rawInput", big);
        eb_acp_tool_free(eb_acp_tools_upsert(tools, call, TRUE));
        json_object_unref(call);
        g_assert_cmpuint(eb_acp_tools_get_count(tools), <=, EB_ACP_MAX_TOOLS);
        g_assert_cmpuint(eb_acp_tools_get_bytes(tools), <=, EB_ACP_MAX_TOOL_BYTES);
    }
    tool = eb_acp_tools_upsert(tools, unfinished, FALSE);
    g_assert_cmpstr(tool->title, ==, "Keep"); /* finished ones went first */
    eb_acp_tool_free(tool);
}

/* Every encoding against its exact text: what an agent of any strictness takes. */
static void
test_encode(void)
{
    g_autoptr(JsonArray) blocks = json_array_new();
    const struct {
        JsonNode *node;
        const char *expected;
    } cases[] = {
        {eb_acp_encode_open(NULL, "/w"), "{\"cwd\":\"/w\",\"mcpServers\":[]}"},
        {eb_acp_encode_open("s", "/w"), "{\"sessionId\":\"s\",\"cwd\":\"/w\",\"mcpServers\":[]}"},
        {eb_acp_encode_prompt("s", blocks, NULL), "{\"sessionId\":\"s\",\"prompt\":[]}"},
        {eb_acp_encode_prompt("s", blocks, "steer"), "{\"sessionId\":\"s\",\"prompt\":[],\"delivery\":\"steer\"}"},
        {eb_acp_encode_session("s", "modeId", "m", NULL), "{\"sessionId\":\"s\",\"modeId\":\"m\"}"},
        {eb_acp_encode_outcome(NULL), "{\"outcome\":{\"outcome\":\"cancelled\"}}"},
        {eb_acp_encode_outcome("x"), "{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"x\"}}"},
    };
    g_autoptr(JsonNode) initialize = eb_acp_encode_initialize();
    JsonObject *params = json_node_get_object(initialize);
    JsonObject *capabilities = eb_json_get_object(params, "clientCapabilities");

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = eb_json_write(cases[i].node, NULL);

        g_assert_cmpstr(text, ==, cases[i].expected);
        json_node_unref(cases[i].node);
    }
    g_assert_cmpint(eb_json_get_int(params, "protocolVersion", 0), ==, 1);
    g_assert_false(eb_json_get_bool(capabilities, "terminal", TRUE));
    g_assert_false(eb_json_get_bool(eb_json_get_object(capabilities, "fs"), "writeTextFile", TRUE));
    g_assert_null(eb_json_get_node(capabilities, "subagents"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/acp/types/updates", test_updates);
    g_test_add_func("/acp/types/usage", test_usage);
    g_test_add_func("/acp/types/capabilities", test_capabilities);
    g_test_add_func("/acp/types/errors", test_errors);
    g_test_add_func("/acp/types/cut", test_cut);
    g_test_add_func("/acp/types/bounded-copy", test_bounded_copy);
    g_test_add_func("/acp/tools/turns", test_tools_turns);
    g_test_add_func("/acp/tools/output", test_tool_output);
    g_test_add_func("/acp/tools/bounds", test_tools_bounds);
    g_test_add_func("/acp/types/encode", test_encode);
    return g_test_run();
}
