/* SPDX-License-Identifier: MIT */
/* What answers cost: transcripts in the shape of each kind of provider, whole, and cut at every byte. */
#include "core/broker/eb-usage-ask.h"
#include "eb-test.h"

#include <string.h>

typedef struct {
    const char *name;
    gboolean events;
    const char *text;
    guint64 in, out, cached, written;
    gboolean estimated;
    const char *model;
} Case;

#define CHUNK "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-5-mini\",\"choices\":"
#define ANTHROPIC_START                                                                                                \
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\","          \
    "\"role\":\"assistant\",\"model\":\"claude-sonnet-4-5\",\"content\":[],\"usage\":{\"input_tokens\":12,"            \
    "\"cache_creation_input_tokens\":500,\"cache_read_input_tokens\":8000,\"cache_creation\":"                         \
    "{\"ephemeral_5m_input_tokens\":500},\"output_tokens\":1}}}\n\n"
#define ANTHROPIC_SAYS                                                                                                 \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"             \
    "\"text_delta\",\"text\":\"Hello there\"}}\n\n"

static const Case CASES[] = {
    {"openai chat, streamed, usage asked for", TRUE,
     CHUNK "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}],\"usage\":null}\n\n" CHUNK
           "[{\"index\":0,\"delta\":{\"content\":\"lo\"},\"finish_reason\":null}],\"usage\":null}\n\n" CHUNK
           "[],\"usage\":{\"prompt_tokens\":1234,\"completion_tokens\":56,\"total_tokens\":1290,"
           "\"prompt_tokens_details\":{\"cached_tokens\":1024},\"completion_tokens_details\":"
           "{\"reasoning_tokens\":32}}}\n\ndata: [DONE]\n\n",
     1234, 56, 1024, 0, FALSE, "gpt-5-mini"},
    {"openai chat, streamed, usage not asked for", TRUE,
     CHUNK "[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hello\"}}]}\n\n" CHUNK
           "[{\"index\":0,\"delta\":{\"content\":\" \\u00e9\\n\"}}]}\n\ndata: [DONE]\n\n",
     99, 4, 0, 0, TRUE, "gpt-5-mini"},
    {"openai chat, whole", FALSE,
     "{\n  \"id\": \"x\",\n  \"model\": \"gpt-5-mini\",\n  \"choices\": [{\"message\": {\"role\": \"assistant\","
     " \"content\": \"\\\"usage\\\": {\\\"prompt_tokens\\\": 5}\"}}],\n  \"usage\": {\n    \"prompt_tokens\": 19,\n"
     "    \"completion_tokens\": 10,\n    \"total_tokens\": 29\n  }\n}\n",
     19, 10, 0, 0, FALSE, "gpt-5-mini"},
    {"openai responses, streamed", TRUE,
     "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"model\":\"gpt-5\","
     "\"background\":false,\"usage\":null}}\n\n"
     "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\n"
     "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"model\":"
     "\"gpt-5-2025-08-07\",\"output\":[{\"content\":[{\"text\":\"Hello\"}]}],\"usage\":{\"input_tokens\":3000,"
     "\"input_tokens_details\":{\"cached_tokens\":2048},\"output_tokens\":400,\"output_tokens_details\":"
     "{\"reasoning_tokens\":300},\"total_tokens\":3400}}}\n\n",
     3000, 400, 2048, 0, FALSE, "gpt-5-2025-08-07"},
    {"openai responses, whole", FALSE,
     "{\"id\":\"r\",\"object\":\"response\",\"model\":\"gpt-5\",\"output\":[],\"usage\":{\"input_tokens\":7,"
     "\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":8,\"total_tokens\":15}}",
     7, 8, 0, 0, FALSE, "gpt-5"},
    {"anthropic, streamed", TRUE,
     ANTHROPIC_START "event: ping\ndata: {\"type\": \"ping\"}\n\n" ANTHROPIC_SAYS
                     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":"
                     "\"input_json_delta\",\"partial_json\":\"{\\\"usage\\\":{\\\"output_tokens\\\":99999}}\"}}\n\n"
                     "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},"
                     "\"usage\":{\"output_tokens\":89}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
     8512, 89, 8000, 500, FALSE, "claude-sonnet-4-5"},
    {"anthropic, broken off", TRUE, ANTHROPIC_START ANTHROPIC_SAYS, 8512, 5, 8000, 500, TRUE, "claude-sonnet-4-5"},
    {"anthropic, whole, with a tool whose input looks like usage", FALSE,
     "{\"id\":\"m\",\"type\":\"message\",\"model\":\"claude-opus-4-1\",\"content\":[{\"type\":\"tool_use\","
     "\"input\":{\"usage\":{\"output_tokens\":77777}}}],\"usage\":{\"input_tokens\":100,\"output_tokens\":50}}",
     100, 50, 0, 0, FALSE, "claude-opus-4-1"},
    {"gemini, server-sent events", TRUE,
     "data: "
     "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hel\"}]}}],\"usageMetadata\":{\"promptTokenCount\":40,"
     "\"candidatesTokenCount\":1,\"thoughtsTokenCount\":100},\"modelVersion\":\"gemini-2.5-pro\"}\r\n\r\n"
     "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"lo\"}]}}],\"usageMetadata\":{\"promptTokenCount\":40,"
     "\"cachedContentTokenCount\":32,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":100},\"modelVersion\":"
     "\"gemini-2.5-pro\"}\r\n\r\n",
     40, 107, 32, 0, FALSE, "gemini-2.5-pro"},
    {"gemini, an array", FALSE,
     "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hel\"}]}}],\"usageMetadata\":{\"promptTokenCount\":40}}\n,"
     "\n"
     "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"lo\"}]}}],\"usageMetadata\":{\"promptTokenCount\":40,"
     "\"candidatesTokenCount\":7,\"toolUsePromptTokenCount\":3},\"modelVersion\":\"gemini-2.5-flash\"}]",
     43, 7, 0, 0, FALSE, "gemini-2.5-flash"},
    {"two lines of data in one event", TRUE,
     "data: {\"usage\":\ndata: {\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n", 3, 4, 0, 0, FALSE, ""},
    {"an event that breaks off does not spoil the next", TRUE,
     "data: {\"usage\":{\"x\":\"\n\ndata: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n", 3, 4, 0, 0,
     FALSE, ""},
    {"nobody counted, whole", FALSE, "{\"data\":[\"0123456789\"]}", 99, 7, 0, 0, TRUE, ""},
    {"a number that is no count, and one that nearly is", FALSE,
     "{\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":12.7}}", 99, 13, 0, 0, FALSE, ""},
    {"more digits than a count has", FALSE,
     "{\"usage\":{\"prompt_tokens\":99999999999999999999999,\"completion_tokens\":2}}", 1000000000000, 2, 0, 0, FALSE,
     ""},
    {"too deep to be usage", FALSE, "{\"a\":{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":5}}}", 99, 19, 0, 0,
     TRUE, ""},
};

static void
check(const Case *one, EbUsageScan *scan)
{
    EbUsage usage;

    eb_usage_scan_get(scan, 99, &usage);
    g_test_message("%s", one->name);
    g_assert_cmpuint(usage.tokens_in, ==, one->in);
    g_assert_cmpuint(usage.tokens_out, ==, one->out);
    g_assert_cmpuint(usage.tokens_cached, ==, one->cached);
    g_assert_cmpuint(usage.tokens_written, ==, one->written);
    g_assert_cmpint(usage.estimated, ==, one->estimated);
    g_assert_cmpstr(usage.model, ==, one->model);
}

static void
test_transcripts(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        gsize length = strlen(CASES[i].text);
        for (gsize at = 0; at <= length; at++) {
            EbUsageScan scan;
            eb_usage_scan_init(&scan, CASES[i].events);
            eb_usage_scan_run(&scan, CASES[i].text, at);
            eb_usage_scan_run(&scan, CASES[i].text + at, length - at);
            check(&CASES[i], &scan);
        }
        EbUsageScan slow;
        eb_usage_scan_init(&slow, CASES[i].events);
        for (gsize at = 0; at < length; at++)
            eb_usage_scan_run(&slow, CASES[i].text + at, 1);
        check(&CASES[i], &slow);
    }
}

/* While it streams the count only grows, so that a cap can be noticed on the way. */
static void
test_grows(void)
{
    EbUsageScan scan;
    EbUsage usage;
    guint64 before = 0;

    eb_usage_scan_init(&scan, TRUE);
    eb_usage_scan_run(&scan, ANTHROPIC_START, strlen(ANTHROPIC_START));
    for (guint i = 0; i < 1000; i++) {
        eb_usage_scan_run(&scan, ANTHROPIC_SAYS, strlen(ANTHROPIC_SAYS));
        eb_usage_scan_get(&scan, 0, &usage);
        g_assert_cmpuint(usage.tokens_out, >, before);
        before = usage.tokens_out;
    }
    g_assert_cmpuint(before, ==, 1 + (11 * 1000 + 2) / 3);
}

static void
test_requests(void)
{
    static const struct {
        const char *text;
        guint64 most;
        const char *model;
        gboolean background;
    } cases[] = {
        {"{\"model\":\"gpt-5\",\"messages\":[{\"role\":\"user\",\"content\":\"max_tokens\"}],\"max_completion_tokens\":"
         "512}",
         512, "gpt-5", FALSE},
        {"{\"model\":\"claude-x\",\"max_tokens\":4096,\"messages\":[]", 4096, "claude-x", FALSE},
        {"{\"contents\":[],\"generationConfig\":{\"maxOutputTokens\":77}}", 77, "", FALSE},
        {"{\"model\":\"gpt-5\",\"background\":true,\"input\":\"x\"}", 0, "gpt-5", TRUE},
        {"{\"messages\":[{\"max_tokens\":3,\"background\":true,\"model\":\"no\"}]}", 0, "", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        EbUsageScan scan;
        eb_usage_scan_init(&scan, FALSE);
        eb_usage_scan_run(&scan, cases[i].text, strlen(cases[i].text));
        g_assert_cmpuint(scan.max_tokens, ==, cases[i].most);
        g_assert_cmpstr(scan.model, ==, cases[i].model);
        g_assert_cmpint(scan.background, ==, cases[i].background);
    }
}

/* What a guest writes so that we read another request than its provider. */
static void
test_hiding_requests(void)
{
    static const struct {
        const char *path, *headers, *body;
        guint64 out;
        gboolean whole;
        const char *model;
        gboolean hidden;
    } cases[] = {
        {"/v1/messages", "", "{\"model\":\"m\",\"max_tokens\":5000,\"stream\":true}", 1000, FALSE, "m", FALSE},
        {"/v1/messages", "", "{\"model\":\"m\",\"max_tokens\":50,\"stream\":true}", 50, FALSE, "m", FALSE},
        {"/v1/messages", "", "{\"model\":\"m\",\"max_tokens\":5000}", 5000, TRUE, "m", FALSE},
        {"/v1/responses", "", "{\"model\":\"m\",\"stream\":true}", 1000, FALSE, "m", FALSE},
        {"/v1/responses", "", "{\"model\":\"m\"}", EB_USAGE_UNLIMITED, FALSE, "m", FALSE},
        {"/v1/embeddings", "", "{\"model\":\"m\"}", 0, FALSE, "m", FALSE},
        /* names written otherwise */
        {"/v1/messages", "", "{\"m\\u006fdel\":\"m\",\"max\\u005Ftokens\":5000}", 5000, TRUE, "m", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":1,\"max_\\u0074okens\":5000}", 5000, TRUE, "", FALSE},
        {"/v1/complete", "", "{\"max_tokens_to_sample\":5000}", 5000, TRUE, "", FALSE},
        {"/v1beta/models/g:generateContent", "", "{\"generation_config\":{\"max_output_tokens\":5000}}", 5000, TRUE,
         "g", FALSE},
        {"/v1/responses", "", "{\"b\\u0061ckground\":true}", 0, FALSE, "", TRUE},
        {"/v1/responses", "", "{\"background\":\"true\"}", 0, FALSE, "", TRUE},
        {"/v1/responses", "", "{\"background\":1}", 0, FALSE, "", TRUE},
        {"/v1/responses", "", "{\"background\":false,\"max_output_tokens\":7}", 7, TRUE, "", FALSE},
        /* numbers written otherwise */
        {"/v1/messages", "", "{\"max_tokens\":5e3}", 5000, TRUE, "", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":4999.5}", 5000, TRUE, "", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":0.5E+4 }", 10000, TRUE, "", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":5000e-9}", 5000, TRUE, "", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":-1}", EB_USAGE_UNLIMITED, FALSE, "", FALSE},
        /* many answers to one question */
        {"/v1/chat/completions", "", "{\"max_tokens\":100,\"n\":50}", 5000, TRUE, "", FALSE},
        {"/v1/completions", "", "{\"max_tokens\":100,\"n\":1,\"best_of\":20}", 2000, TRUE, "", FALSE},
        {"/v1beta/models/g:generateContent", "",
         "{\"generationConfig\":{\"candidateCount\":8,\"maxOutputTokens\":100}}", 800, TRUE, "g", FALSE},
        /* saying that it streams when it does not */
        {"/v1/messages", "", "{\"max_tokens\":5000,\"stream\":true,\"stream\":false}", 5000, TRUE, "", FALSE},
        {"/v1/messages", "", "{\"max_tokens\":5000,\"stream\":null,\"stream\":true}", 5000, TRUE, "", FALSE},
        {"/v1beta/models/g:generateContent?x=:streamGenerateContent", "",
         "{\"generationConfig\":{\"maxOutputTokens\":5000},\"stream\":true}", 5000, TRUE, "g", FALSE},
        {"/v1beta/models/g:streamGenerateContent?alt=sse", "", "{\"stream\":false}", 1000, FALSE, "g", FALSE},
        /* another model than it is priced by */
        {"/v1/messages", "", "{\"model\":\"cheap\",\"model\":\"dear\",\"max_tokens\":1}", 0, FALSE, "", TRUE},
        {"/v1/messages?x=/models/cheap", "", "{\"model\":\"dear\",\"max_tokens\":7}", 7, TRUE, "dear", FALSE},
        {"/v1beta/models/g:generateContent", "", "{\"model\":\"cheap\"}", EB_USAGE_UNLIMITED, FALSE, "g", FALSE},
        /* an answer, or a request, that is not read */
        {"/v1beta/models/g:generateContent?fields=candidates", "", "{}", 0, FALSE, "", TRUE},
        {"/v1beta/models/g:generateContent?a=b;%24f%69elds=candidates", "", "{}", 0, FALSE, "", TRUE},
        {"/v1beta/models/g:generateContent?$alt=proto", "", "{}", 0, FALSE, "", TRUE},
        {"/v1beta/models/g:streamGenerateContent?$alt=json;enum-encoding=int", "", "{}", 1000, FALSE, "g", FALSE},
        {"/v1/messages", "Content-Encoding: gzip\r\n", "{}", 0, FALSE, "", TRUE},
        {"/v1/messages", "Content-Type: application/x-www-form-urlencoded\r\n", "n=5", 0, FALSE, "", TRUE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *head = g_strdup_printf("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n",
                                                cases[i].path, cases[i].headers, strlen(cases[i].body));
        EbHttpFront front;
        EbHttpRequest request;
        EbRefusal refusal;
        gsize consumed;
        EbUsageAsk ask;
        gboolean whole;

        g_test_message("%s %s", cases[i].path, cases[i].body);
        eb_http_front_init(&front);
        g_assert_cmpint(eb_http_front_head(&front, head, strlen(head), &consumed, &request, &refusal), ==,
                        EB_HTTP_DONE);
        eb_usage_ask_init(&ask, &request, request.path);
        for (const char *at = cases[i].body; *at != '\0'; at++)
            eb_usage_ask_run(&ask, at, 1);
        g_assert_cmpint(eb_usage_ask_get_hidden(&ask) != NULL, ==, cases[i].hidden);
        if (!cases[i].hidden) {
            g_assert_cmpuint(eb_usage_ask_get_output(&ask, 1000, &whole), ==, cases[i].out);
            g_assert_cmpint(whole, ==, cases[i].whole);
            g_assert_cmpstr(ask.scan.model, ==, cases[i].model);
        }
        eb_http_request_clear(&request);
    }
}

static void
test_paths(void)
{
    static const struct {
        EbHttpMethod method;
        gboolean has_body;
        const char *path;
        EbUsagePath kind;
    } cases[] = {
        {EB_HTTP_POST, TRUE, "/v1/messages", EB_USAGE_PATH_COUNTED},
        {EB_HTTP_POST, TRUE, "/v1/messages/?beta=true", EB_USAGE_PATH_COUNTED},
        {EB_HTTP_POST, TRUE, "/v1/messages/count_tokens", EB_USAGE_PATH_FREE},
        {EB_HTTP_POST, TRUE, "/v1/messages?/count_tokens", EB_USAGE_PATH_COUNTED},
        {EB_HTTP_POST, TRUE, "/v1/messages/batches", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, FALSE, "/v1/models", EB_USAGE_PATH_FREE},
        {EB_HTTP_GET, FALSE, "/v1/responses", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, FALSE, "/v1/responses/resp_1?stream=true", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, FALSE, "/v1/chat/completions?limit=9", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, FALSE, "/v1/conversations/c/items", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, FALSE, "/v1/messages/batches/b/results", EB_USAGE_PATH_UNCOUNTED},
        {EB_HTTP_GET, TRUE, "/v1/chat/completions", EB_USAGE_PATH_COUNTED},
        {EB_HTTP_DELETE, TRUE, "/v1/responses", EB_USAGE_PATH_COUNTED},
        {EB_HTTP_DELETE, FALSE, "/v1/responses/resp_1", EB_USAGE_PATH_FREE},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%s", cases[i].path);
        g_assert_cmpint(eb_usage_judge_path(cases[i].method, cases[i].has_body, cases[i].path), ==, cases[i].kind);
    }
}

/* Bounded by its declaration: nothing grows with what is read. */
static void
test_deep(void)
{
    EbUsageScan scan;
    EbUsage usage;

    eb_usage_scan_init(&scan, FALSE);
    for (guint i = 0; i < 100000; i++)
        eb_usage_scan_run(&scan, "{\"usage\":[", 10);
    for (guint i = 0; i < 100000; i++)
        eb_usage_scan_run(&scan, "]}", 2);
    g_assert_cmpuint(scan.json.depth, ==, 0);
    eb_usage_scan_run(&scan, "{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}", 51);
    eb_usage_scan_get(&scan, 0, &usage);
    g_assert_cmpuint(usage.tokens_in, ==, 1);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/usage/transcripts", test_transcripts);
    g_test_add_func("/usage/grows", test_grows);
    g_test_add_func("/usage/requests", test_requests);
    g_test_add_func("/usage/hiding-requests", test_hiding_requests);
    g_test_add_func("/usage/paths", test_paths);
    g_test_add_func("/usage/deep", test_deep);
    return g_test_run();
}
