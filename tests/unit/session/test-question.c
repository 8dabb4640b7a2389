/* SPDX-License-Identifier: MIT */
/* What answers a question, when two questions are the same, and what becomes of prompts: all without a session. */
#include "core/acp/eb-acp-types.h"
#include "core/session/eb-answer.h"
#include "core/session/eb-prompt.h"
#include "core/session/eb-question.h"
#include "eb-test.h"

#include <string.h>

/* --- answers by text --- */

static void
match(const char *text, EbAnswerMatch expected, guint expected_index)
{
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    static const char *const names[] = {"Allow", "Always allow", "Reject", "7", "Straße", "Twice", "twice"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_ptr_array_add(labels, (gpointer)names[i]);
    guint index = 99;
    g_assert_cmpint(eb_answer_match(text, labels, &index), ==, expected);
    if (expected == EB_ANSWER_CHOICE)
        g_assert_cmpuint(index, ==, expected_index);
}

static void
test_answers(void)
{
    match("1", EB_ANSWER_CHOICE, 0);
    match(" 2 ", EB_ANSWER_CHOICE, 1);
    match("3.", EB_ANSWER_CHOICE, 2);
    match("3)", EB_ANSWER_CHOICE, 2);
    match("003", EB_ANSWER_CHOICE, 2);
    match("allow", EB_ANSWER_CHOICE, 0);
    match("ALWAYS ALLOW\n", EB_ANSWER_CHOICE, 1);
    match("STRASSE", EB_ANSWER_CHOICE, 4);
    /* Called like the number of another one. */
    match("7", EB_ANSWER_UNCLEAR, 0);
    match("0", EB_ANSWER_UNCLEAR, 0);
    match("8", EB_ANSWER_UNCLEAR, 0);
    match("4294967297", EB_ANSWER_UNCLEAR, 0);
    match("18446744073709551617", EB_ANSWER_UNCLEAR, 0);
    match("twice", EB_ANSWER_UNCLEAR, 0);
    match("", EB_ANSWER_NONE, 0);
    match("  ", EB_ANSWER_NONE, 0);
    match("1 please", EB_ANSWER_NONE, 0);
    match("-1", EB_ANSWER_NONE, 0);
    match("1..", EB_ANSWER_NONE, 0);
    match("yes, allow it", EB_ANSWER_NONE, 0);
    match("allow\xff", EB_ANSWER_NONE, 0);
    g_autofree char *long_text = g_strnfill(100000, '1');
    match(long_text, EB_ANSWER_NONE, 0);
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    guint index = 0;
    g_assert_cmpint(eb_answer_match("1", none, &index), ==, EB_ANSWER_UNCLEAR);
    /* A choice called like the number of another one is no way to be taken for that. */
    g_autoptr(GPtrArray) posing = g_ptr_array_new();
    g_ptr_array_add(posing, (gpointer) "Refuse");
    g_ptr_array_add(posing, (gpointer) "1");
    g_assert_cmpint(eb_answer_match("1", posing, &index), ==, EB_ANSWER_UNCLEAR);
    g_assert_cmpint(eb_answer_match("2", posing, &index), ==, EB_ANSWER_CHOICE);
    g_assert_cmpuint(index, ==, 1);
}

/* --- the same question --- */

static JsonObject *
object_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, strlen(text), NULL, &error);
    g_assert_no_error(error);
    return json_object_ref(eb_json_node_object(node));
}

static GPtrArray *
options_of(const char *text)
{
    g_autoptr(JsonObject) object = object_of(text);
    return eb_acp_options_decode(eb_json_get_array(object, "options"));
}

#define OPTIONS                                                                                                        \
    "\"options\":[{\"optionId\":\"y\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"                                    \
    "{\"optionId\":\"n\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]"

static char *
digest_of(const char *request)
{
    g_autoptr(JsonObject) object = object_of(request);
    g_autoptr(GPtrArray) options = options_of(request);
    return eb_question_digest(NULL, object, options);
}

static void
test_same_request(void)
{
    static const char first[] = "{\"toolCall\":{\"toolCallId\":\"1\",\"title\":\"make\",\"kind\":\"execute\","
                                "\"status\":\"pending\",\"rawInput\":{\"command\":\"make\"}}," OPTIONS "}";
    /* The id and the state of the call, and what is meant for programs, are not the question. */
    static const char same[] = "{\"toolCall\":{\"toolCallId\":\"2\",\"title\":\"make\",\"kind\":\"execute\","
                               "\"rawInput\":{\"command\":\"make\"},\"_meta\":{\"x\":1}}," OPTIONS "}";
    static const char *const different[] = {
        "{\"toolCall\":{\"title\":\"make \",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\"}}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"edit\",\"rawInput\":{\"command\":\"make\"}}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make -j\"}}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\",\"cwd\":\"/"
        "\"}}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\"}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\"},\"content\":[{"
        "\"type\":"
        "\"diff\",\"path\":\"/a\",\"oldText\":\"1\",\"newText\":\"2\"}]}," OPTIONS "}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\"},\"locations\":[{"
        "\"path\":"
        "\"/b\"}]}," OPTIONS "}",
        /* the options stand for something else */
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\"}},\"options\":["
        "{\"optionId\":\"y\",\"name\":\"Allow\",\"kind\":\"allow_always\"},"
        "{\"optionId\":\"n\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]}",
        "{\"toolCall\":{\"title\":\"make\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"make\"}},\"options\":["
        "{\"optionId\":\"n\",\"name\":\"Reject\",\"kind\":\"reject_once\"},"
        "{\"optionId\":\"y\",\"name\":\"Allow\",\"kind\":\"allow_once\"}]}",
    };
    g_autofree char *one = digest_of(first);
    g_autofree char *two = digest_of(same);
    g_assert_cmpstr(one, ==, two);
    g_assert_cmpuint(strlen(one), ==, 64);
    for (gsize i = 0; i < G_N_ELEMENTS(different); i++) {
        g_autofree char *other = digest_of(different[i]);
        g_assert_cmpstr(one, !=, other);
    }
}

static EbAcpDiff
diff_of(const char *path, const char *before, const char *after)
{
    return (EbAcpDiff){(char *)path, (char *)before, (char *)after};
}

static char *
digest_of_tool(const char *title, const char *output, EbAcpDiff *diff, JsonNode *input)
{
    g_autoptr(JsonObject) request = object_of("{\"toolCall\":{}," OPTIONS "}");
    g_autoptr(GPtrArray) options = options_of("{" OPTIONS "}");
    g_autoptr(GPtrArray) diffs = g_ptr_array_new();
    g_ptr_array_add(diffs, diff);
    EbAcpTool tool = {.title = (char *)title, .output = (char *)output, .diffs = diffs, .raw_input = input};
    return eb_question_digest(&tool, request, options);
}

/* What was told of the call before the question counts too; and what was cut is never the same. */
static void
test_same_tool(void)
{
    EbAcpDiff one = diff_of("/a", NULL, "x");
    EbAcpDiff empty = diff_of("/a", "", "x");
    EbAcpDiff moved = diff_of("/ax", NULL, "");
    EbAcpDiff cut = diff_of("/a", NULL, "x" EB_ACP_CUT_MARK);
    g_autofree char *a = digest_of_tool("edit", NULL, &one, NULL);
    g_autofree char *again = digest_of_tool("edit", NULL, &one, NULL);
    g_autofree char *b = digest_of_tool("edit", NULL, &empty, NULL);
    g_autofree char *c = digest_of_tool("edit", NULL, &moved, NULL);
    g_autofree char *d = digest_of_tool("edit", "out", &one, NULL);
    g_assert_cmpstr(a, ==, again);
    g_assert_cmpstr(a, !=, b);
    g_assert_cmpstr(a, !=, c);
    g_assert_cmpstr(a, !=, d);
    g_autofree char *cut_diff = digest_of_tool("edit", NULL, &cut, NULL);
    g_autofree char *cut_output = digest_of_tool("edit", "out" EB_ACP_CUT_MARK, &one, NULL);
    g_autofree char *large = g_strnfill(EB_ACP_MAX_RAW, 'x');
    g_autoptr(JsonNode) input = json_node_init_string(json_node_alloc(), large);
    g_autofree char *large_input = digest_of_tool("edit", NULL, &one, input);
    g_assert_cmpstr(cut_diff, ==, "");
    g_assert_cmpstr(cut_output, ==, "");
    g_assert_cmpstr(large_input, ==, "");
}

static char *
input_of(const char *title, const char *raw, EbRedactSet *secrets)
{
    g_autoptr(JsonNode) node = eb_json_parse(raw, strlen(raw), NULL, NULL);
    EbAcpTool tool = {.title = (char *)title, .raw_input = node};
    return eb_question_input(&tool, secrets);
}

static void
test_input(void)
{
    g_autoptr(EbRedactSet) secrets = eb_redact_set_new();
    char value[] = "pass\"word\\0123";
    g_autoptr(EbSecret) secret = eb_secret_new_take("key", value, strlen(value), NULL);
    g_assert_true(eb_redact_set_add(secrets, secret));
    /* A title that says it all needs no more. */
    g_assert_null(input_of("make", "{\"command\":\"make\"}", secrets));
    g_assert_null(input_of("make", "null", secrets));
    g_autofree char *command = input_of("make …", "{\"command\":\"make && rm -rf /\"}", secrets);
    g_assert_cmpstr(command, ==, "make && rm -rf /");
    g_autofree char *beside = input_of("git", "{\"command\":\"git\",\"args\":[\"push\",\"--force\"]}", secrets);
    g_assert_nonnull(strstr(beside, "[\"push\",\"--force\"]"));
    g_autofree char *idle = input_of("wipe", "{\"command\":\"rm x\",\"description\":\"d\",\"timeout\":5}", secrets);
    g_assert_cmpstr(idle, ==, "rm x");
    g_autofree char *json =
        input_of("edit", "{\"path\":\"/a\",\"n\":1,\"pass\\\"word\\\\0123\":[\"x pass\\\"word\\\\0123\"]}", secrets);
    g_assert_nonnull(strstr(json, "\"path\":\"/a\""));
    g_assert_null(strstr(json, "0123"));
    g_autofree char *tail = g_strnfill(10000, 'x');
    g_autofree char *raw = g_strdup_printf("{\"command\":\"%s\"}", tail);
    g_autofree char *cut = input_of("x", raw, secrets);
    g_assert_cmpuint(strlen(cut), <=, EB_QUESTION_MAX_INPUT);
    g_assert_true(g_str_has_suffix(cut, EB_ACP_CUT_MARK));
    /* A title that is cut where it is shown does not say it all. */
    g_autofree char *long_title = g_strnfill(400, 'x');
    g_autofree char *long_raw = g_strdup_printf("{\"command\":\"%s\"}", long_title);
    g_autofree char *whole = input_of(long_title, long_raw, secrets);
    g_assert_cmpstr(whole, ==, long_title);
}

/* --- bodies --- */

static void
test_body(void)
{
    g_autoptr(EbQuestionText) text = eb_question_text_new("thread-1", "🔧 `execute` `make`");
    g_autoptr(GPtrArray) options =
        options_of("{\"options\":[{\"optionId\":\"a b\",\"name\":\"Allow\\u001b[1m\",\"kind\":\"allow_once\"},"
                   "{\"optionId\":\"option-1\",\"name\":\"No\",\"kind\":\"reject_once\"},{\"optionId\":\"maybe\"}]}");
    eb_question_text_add_options(text, options);
    text->data = object_of("{\"title\":\"make\"}");
    g_autofree char *body = eb_question_text_write(text);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbQuestionText) read = eb_question_text_read(body, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(read->title, ==, text->title);
    g_assert_cmpuint(read->options->len, ==, 3);
    const EbQuestionOption *first = read->options->pdata[0];
    g_assert_cmpstr(first->choice, ==, "option-1");
    g_assert_cmpstr(first->option, ==, "a b");
    g_assert_null(strchr(first->label, 0x1b));
    /* The agent's own "option-1" is not taken for ours. */
    g_assert_cmpstr(((EbQuestionOption *)read->options->pdata[1])->choice, ==, "option-2");
    g_assert_true(eb_question_text_find(read, "option-1") == first);
    g_assert_cmpstr(eb_question_option_outcome(first), ==, "allowed");
    g_assert_cmpstr(eb_question_text_refusal(read)->label, ==, "No");
    g_assert_cmpstr(eb_question_option_outcome(read->options->pdata[2]), ==, "answered");
    g_assert_null(eb_question_text_find(read, NULL));
    g_assert_cmpstr(eb_json_get_string(read->data, "title"), ==, "make");
    /* What is too large of the call is left out. */
    g_autofree char *large = g_strnfill(200000, 'x');
    json_object_set_string_member(text->data, "output", large);
    g_autofree char *small = eb_question_text_write(text);
    g_assert_cmpuint(strlen(small), <, 2000);
    static const char *const bad[] = {
        "", "[]", "{}", "{\"thread\":\"t\",\"title\":\"x\",\"options\":[{}]}",
        "{\"thread\":\"t\",\"title\":\"x\",\"options\":[{\"choice\":\"a\",\"option\":\"a\","
        "\"label\":\"a\"},{\"choice\":\"a\",\"option\":\"b\",\"label\":\"b\"}]}"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_clear_error(&error);
        g_assert_null(eb_question_text_read(bad[i], &error));
        g_assert_nonnull(error);
    }
}

static void
test_no_refusal(void)
{
    g_autoptr(EbQuestionText) text = eb_question_text_new("t", "x");
    g_autoptr(GPtrArray) options =
        options_of("{\"options\":[{\"optionId\":\"y\",\"kind\":\"allow_once\"},{\"optionId\":\"z\"}]}");
    eb_question_text_add_options(text, options);
    g_assert_null(eb_question_text_refusal(text));
}

static void
test_resume_text(void)
{
    EbQuestionOption yes = {.label = (char *)"Allow", .kind = (char *)"allow_once"};
    EbQuestionOption no = {.label = (char *)"Reject", .kind = (char *)"reject_once"};
    g_autofree char *allowed = eb_question_resume_text("make", &yes, TRUE);
    g_autofree char *late = eb_question_resume_text("make", &yes, FALSE);
    g_autofree char *refused = eb_question_resume_text("make", &no, TRUE);
    g_assert_nonnull(strstr(allowed, "Allow"));
    g_assert_nonnull(strstr(allowed, "counts, once"));
    g_assert_nonnull(strstr(late, "too old"));
    g_assert_nonnull(strstr(refused, "refused it"));
    g_assert_null(strstr(refused, "counts"));
}

/* --- prompts --- */

static void
test_outcomes(void)
{
    g_assert_cmpint(eb_prompt_outcome_of_turn("end_turn", FALSE), ==, EB_PROMPT_DONE);
    g_assert_cmpint(eb_prompt_outcome_of_turn("max_tokens", FALSE), ==, EB_PROMPT_DONE);
    g_assert_cmpint(eb_prompt_outcome_of_turn("max_turn_requests", FALSE), ==, EB_PROMPT_DONE);
    g_assert_cmpint(eb_prompt_outcome_of_turn("cancelled", FALSE), ==, EB_PROMPT_INTERRUPTED);
    g_assert_cmpint(eb_prompt_outcome_of_turn("cancelled", TRUE), ==, EB_PROMPT_INTERRUPTED);
    g_assert_cmpint(eb_prompt_outcome_of_turn("refusal", FALSE), ==, EB_PROMPT_FAILED);
    g_assert_cmpint(eb_prompt_outcome_of_turn("error", FALSE), ==, EB_PROMPT_FAILED);
    g_assert_cmpint(eb_prompt_outcome_of_turn("end_turn", TRUE), ==, EB_PROMPT_FAILED);
    g_assert_cmpint(eb_prompt_outcome_of_turn(NULL, FALSE), ==, EB_PROMPT_DONE);
    g_assert_false(eb_prompt_outcome_is_final(EB_PROMPT_WAITING));
    g_assert_false(eb_prompt_outcome_is_final(EB_PROMPT_WORKING));
    g_assert_true(eb_prompt_outcome_is_final(EB_PROMPT_REFUSED));
    g_assert_cmpstr(eb_prompt_outcome_to_string(EB_PROMPT_INTERRUPTED), ==, "interrupted");
}

static void
test_prompt(void)
{
    g_autoptr(EbPrompt) prompt = eb_prompt_new("m", "a", "");
    g_autoptr(GError) error = NULL;
    g_assert_false(eb_prompt_check(prompt, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "prompt.size", NULL);
    prompt->message = eb_chat_message_new("m", NULL, "a", "");
    g_assert_false(eb_prompt_has_attachments(prompt));
    eb_chat_message_add_attachment(prompt->message, "1", "a.png", "image/png", 10, NULL);
    g_assert_true(eb_prompt_check(prompt, NULL));
    g_autoptr(EbPrompt) copy = eb_prompt_copy(prompt);
    g_assert_true(eb_prompt_has_attachments(copy));
    g_assert_cmpint(copy->received_us, ==, prompt->received_us);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/question/answers", test_answers);
    g_test_add_func("/question/same-request", test_same_request);
    g_test_add_func("/question/same-tool", test_same_tool);
    g_test_add_func("/question/input", test_input);
    g_test_add_func("/question/body", test_body);
    g_test_add_func("/question/no-refusal", test_no_refusal);
    g_test_add_func("/question/resume-text", test_resume_text);
    g_test_add_func("/question/outcomes", test_outcomes);
    g_test_add_func("/question/prompt", test_prompt);
    return g_test_run();
}
