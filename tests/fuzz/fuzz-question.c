/* SPDX-License-Identifier: MIT */
#include "core/acp/eb-acp-types.h"
#include "core/session/eb-answer.h"
#include "core/session/eb-question.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

static void
check_body(const char *text)
{
    g_autoptr(EbQuestionText) read = eb_question_text_read(text, NULL);
    if (read == NULL)
        return;
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    for (guint i = 0; i < read->options->len; i++) {
        const EbQuestionOption *option = read->options->pdata[i];
        if (eb_question_text_find(read, option->choice) != option)
            g_error("two options are chosen by the same");
        g_ptr_array_add(labels, option->label);
    }
    const EbQuestionOption *refusal = eb_question_text_refusal(read);
    if (refusal != NULL && strcmp(eb_question_option_outcome(refusal), "rejected") != 0)
        g_error("a refusal that is none");
    guint index = G_MAXUINT;
    if (eb_answer_match(text, labels, &index) == EB_ANSWER_CHOICE && index >= labels->len)
        g_error("an answer that is no choice");
    g_autofree char *written = eb_question_text_write(read);
    g_autoptr(EbQuestionText) again = eb_question_text_read(written, NULL);
    if (again == NULL || again->options->len != read->options->len || strcmp(again->title, read->title) != 0)
        g_error("a body that does not survive");
}

static void
check_digest(const char *text, gsize length)
{
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, NULL);
    JsonObject *request = node != NULL ? eb_json_node_object(node) : NULL;
    g_autoptr(GPtrArray) options = eb_acp_options_decode(eb_json_get_array(request, "options"));
    g_autofree char *one = eb_question_digest(NULL, request, options);
    g_autofree char *two = eb_question_digest(NULL, request, options);
    if (strcmp(one, two) != 0 || (*one != '\0' && strlen(one) != 64))
        g_error("a digest that is none");
}

/* Whatever stands in the database or comes from an agent: no choice that was not offered, no two that are one. */
int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GPtrArray) labels = g_ptr_array_new();
    guint index = G_MAXUINT;
    g_ptr_array_add(labels, (gpointer) "Allow");
    g_ptr_array_add(labels, text);
    if (eb_answer_match(text, labels, &index) == EB_ANSWER_CHOICE && index >= labels->len)
        g_error("an answer that is no choice");
    check_body(text);
    check_digest(text, strlen(text));
    return 0;
}
