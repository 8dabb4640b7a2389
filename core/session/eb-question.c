/* SPDX-License-Identifier: MIT */
#include "core/session/eb-question.h"

#include "core/acp/eb-acp-types.h"

#include <string.h>

#define MAX_LABEL_BYTES 200
#define MAX_CHOICE_BYTES 64
/* Of the tool call in a body; it was shown already when the body is read. */
#define MAX_DATA_BYTES ((gsize)64 * 1024)

static void
option_free(gpointer data)
{
    EbQuestionOption *option = data;
    g_free(option->choice);
    g_free(option->option);
    g_free(option->label);
    g_free(option->kind);
    g_free(option);
}

EbQuestionText *
eb_question_text_new(const char *thread, const char *title)
{
    EbQuestionText *self = g_new0(EbQuestionText, 1);
    self->thread = g_strdup(thread);
    self->title = g_strdup(title);
    self->options = g_ptr_array_new_with_free_func(option_free);
    return self;
}

void
eb_question_text_free(EbQuestionText *self)
{
    if (self == NULL)
        return;
    g_free(self->thread);
    g_free(self->title);
    g_ptr_array_unref(self->options);
    g_clear_pointer(&self->data, json_object_unref);
    g_free(self);
}

const EbQuestionOption *
eb_question_text_find(const EbQuestionText *self, const char *choice)
{
    for (guint i = 0; choice != NULL && i < self->options->len; i++)
        if (g_str_equal(((EbQuestionOption *)self->options->pdata[i])->choice, choice))
            return self->options->pdata[i];
    return NULL;
}

const EbQuestionOption *
eb_question_text_find_option(const EbQuestionText *self, const char *option)
{
    for (guint i = 0; option != NULL && i < self->options->len; i++)
        if (g_str_equal(((EbQuestionOption *)self->options->pdata[i])->option, option))
            return self->options->pdata[i];
    return NULL;
}

const EbQuestionOption *
eb_question_text_refusal(const EbQuestionText *self)
{
    static const char *const kinds[] = {"reject_once", "reject_always"};
    for (guint k = 0; k < G_N_ELEMENTS(kinds); k++)
        for (guint i = 0; i < self->options->len; i++)
            if (g_strcmp0(((EbQuestionOption *)self->options->pdata[i])->kind, kinds[k]) == 0)
                return self->options->pdata[i];
    return NULL;
}

const char *
eb_question_option_outcome(const EbQuestionOption *self)
{
    if (self->kind != NULL && g_str_has_prefix(self->kind, "allow"))
        return "allowed";
    return self->kind != NULL && g_str_has_prefix(self->kind, "reject") ? "rejected" : "answered";
}

static char *
choice_id(const EbQuestionText *self, const char *id, guint index)
{
    gboolean plain = id != NULL && *id != '\0' && strlen(id) <= MAX_CHOICE_BYTES;
    for (const char *at = id; plain && *at != '\0'; at++)
        plain = g_ascii_isalnum(*at) || strchr("._:-", *at) != NULL;
    plain = plain && eb_question_text_find(self, id) == NULL;
    return plain ? g_strdup(id) : g_strdup_printf("option-%u", index + 1);
}

static void
add_option(EbQuestionText *self, char *choice, const char *id, const char *label, const char *kind)
{
    EbQuestionOption *option = g_new0(EbQuestionOption, 1);
    option->choice = choice;
    option->option = g_strdup(id);
    option->label = g_strdup(label);
    option->kind = g_strdup(kind);
    g_ptr_array_add(self->options, option);
}

void
eb_question_text_add_options(EbQuestionText *self, GPtrArray *options)
{
    for (guint i = 0; i < options->len && self->options->len < EB_QUESTION_MAX_OPTIONS; i++) {
        const EbAcpOption *option = options->pdata[i];
        g_autofree char *label = eb_log_escape(option->name != NULL ? option->name : option->id, -1, MAX_LABEL_BYTES);
        add_option(self, choice_id(self, option->id, i), option->id, label, option->kind);
    }
}

/* --- the body --- */

char *
eb_question_text_write(const EbQuestionText *self)
{
    g_autoptr(JsonObject) body = json_object_new();
    json_object_set_string_member(body, "thread", self->thread);
    json_object_set_string_member(body, "title", self->title);
    JsonArray *options = json_array_new();
    for (guint i = 0; i < self->options->len; i++) {
        const EbQuestionOption *option = self->options->pdata[i];
        JsonObject *object = json_object_new();
        json_object_set_string_member(object, "choice", option->choice);
        json_object_set_string_member(object, "option", option->option);
        json_object_set_string_member(object, "label", option->label);
        if (option->kind != NULL)
            json_object_set_string_member(object, "kind", option->kind);
        json_array_add_object_element(options, object);
    }
    json_object_set_array_member(body, "options", options);
    g_autoptr(JsonNode) node = json_node_new(JSON_NODE_OBJECT);
    if (self->data != NULL) {
        json_node_set_object(node, self->data);
        if (eb_acp_json_weight(node, MAX_DATA_BYTES) <= MAX_DATA_BYTES)
            json_object_set_object_member(body, "data", json_object_ref(self->data));
    }
    json_node_set_object(node, body);
    return eb_json_write(node, NULL);
}

static gboolean
read_option(EbQuestionText *self, JsonObject *object)
{
    const char *choice = eb_json_get_string(object, "choice");
    const char *option = eb_json_get_string(object, "option");
    const char *label = eb_json_get_string(object, "label");
    if (choice == NULL || option == NULL || label == NULL || self->options->len >= EB_QUESTION_MAX_OPTIONS ||
        eb_question_text_find(self, choice) != NULL)
        return FALSE;
    add_option(self, g_strdup(choice), option, label, eb_json_get_string(object, "kind"));
    return TRUE;
}

EbQuestionText *
eb_question_text_read(const char *body, GError **error)
{
    gsize length = strlen(body);
    g_autoptr(JsonNode) node = length <= EB_QUESTION_MAX_BODY ? eb_json_parse(body, length, NULL, error) : NULL;
    if (node == NULL && length <= EB_QUESTION_MAX_BODY)
        return NULL;
    JsonObject *object = node != NULL ? eb_json_node_object(node) : NULL;
    const char *thread = eb_json_get_string(object, "thread");
    const char *title = eb_json_get_string(object, "title");
    JsonArray *options = eb_json_get_array(object, "options");
    g_autoptr(EbQuestionText) self = NULL;
    gboolean whole = thread != NULL && title != NULL && options != NULL && json_array_get_length(options) > 0;
    if (whole)
        self = eb_question_text_new(thread, title);
    for (guint i = 0; whole && i < json_array_get_length(options); i++)
        whole = read_option(self, eb_json_array_object(options, i));
    if (!whole) {
        eb_set_error(error, EB_ERROR_INTEGRITY, "question.body", "the question that is kept cannot be read");
        return NULL;
    }
    JsonObject *data = eb_json_get_object(object, "data");
    self->data = data != NULL ? json_object_ref(data) : NULL;
    return g_steal_pointer(&self);
}

/* --- what it would do --- */

/* The command, when nothing else of @input changes what is done. (transfer none) (nullable) */
static const char *
whole_command(JsonObject *input)
{
    static const char *const idle[] = {"command", "description", "timeout", NULL};
    JsonObjectIter iter;
    const char *member;
    if (input == NULL)
        return NULL;
    json_object_iter_init(&iter, input);
    while (json_object_iter_next(&iter, &member, NULL))
        if (!g_strv_contains(idle, member))
            return NULL;
    return eb_json_get_string(input, "command");
}

char *
eb_question_input(const EbAcpTool *tool, EbRedactSet *secrets)
{
    if (tool->raw_input == NULL || JSON_NODE_HOLDS_NULL(tool->raw_input))
        return NULL;
    JsonObject *input = JSON_NODE_HOLDS_OBJECT(tool->raw_input) ? json_node_get_object(tool->raw_input) : NULL;
    const char *command = whole_command(input);
    g_autofree char *raw = command != NULL ? g_strdup(command) : eb_json_write(tool->raw_input, NULL);
    g_autofree char *text = eb_redact_set_mask(secrets, raw, -1);
    g_autofree char *title = eb_redact_set_mask(secrets, tool->title != NULL ? tool->title : "", -1);
    if (*text == '\0' || (strlen(title) <= MAX_LABEL_BYTES && strstr(title, text) != NULL))
        return NULL;
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return eb_acp_cut(valid, EB_QUESTION_MAX_INPUT);
}

/* --- the same question --- */

/* Each part with its length before it, so that no part can pose as another. */
static void
feed(GChecksum *sum, const char *part)
{
    g_autofree char *head = g_strdup_printf("%" G_GSSIZE_FORMAT ":", part != NULL ? (gssize)strlen(part) : -1);
    g_checksum_update(sum, (const guchar *)head, -1);
    if (part != NULL)
        g_checksum_update(sum, (const guchar *)part, -1);
}

static void
feed_node(GChecksum *sum, JsonNode *node)
{
    g_autofree char *text = node != NULL ? eb_json_write(node, NULL) : NULL;
    feed(sum, text);
}

static gboolean
is_cut(const char *text)
{
    return text != NULL && g_str_has_suffix(text, EB_ACP_CUT_MARK);
}

/* FALSE when not everything of it is there. */
static gboolean
feed_tool(GChecksum *sum, const EbAcpTool *tool)
{
    guint n_diffs = tool->diffs != NULL ? tool->diffs->len : 0;
    guint n_locations = tool->locations != NULL ? tool->locations->len : 0;
    if (n_diffs >= EB_ACP_MAX_DIFFS || n_locations >= EB_ACP_MAX_LOCATIONS || is_cut(tool->title) ||
        is_cut(tool->output) ||
        (tool->raw_input != NULL && eb_acp_json_weight(tool->raw_input, EB_ACP_MAX_RAW / 2) > EB_ACP_MAX_RAW / 2))
        return FALSE;
    feed(sum, tool->kind);
    feed(sum, tool->title);
    feed(sum, tool->output);
    feed_node(sum, tool->raw_input);
    for (guint i = 0; i < n_locations; i++)
        feed(sum, tool->locations->pdata[i]);
    feed(sum, NULL);
    for (guint i = 0; i < n_diffs; i++) {
        const EbAcpDiff *diff = tool->diffs->pdata[i];
        if (is_cut(diff->old_text) || is_cut(diff->new_text) || is_cut(diff->path))
            return FALSE;
        feed(sum, diff->path);
        feed(sum, diff->old_text);
        feed(sum, diff->new_text);
    }
    feed(sum, NULL);
    return TRUE;
}

char *
eb_question_digest(const EbAcpTool *tool, JsonObject *request, GPtrArray *options)
{
    static const char *const members[] = {"kind", "title", "rawInput", "content", "locations"};
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    if ((tool != NULL && !feed_tool(sum, tool)) || options->len >= EB_ACP_MAX_OPTIONS)
        return g_strdup("");
    /* What the request itself says stands in it uncut. */
    JsonObject *call = eb_json_get_object(request, "toolCall");
    for (gsize i = 0; i < G_N_ELEMENTS(members); i++)
        feed_node(sum, eb_json_get_node(call, members[i]));
    for (guint i = 0; i < options->len; i++) {
        const EbAcpOption *option = options->pdata[i];
        feed(sum, option->id);
        feed(sum, option->name);
        feed(sum, option->kind);
    }
    return g_strdup(g_checksum_get_string(sum));
}

char *
eb_question_resume_text(const char *title, const EbQuestionOption *answer, gboolean in_time)
{
    const char *outcome = eb_question_option_outcome(answer);
    if (g_str_equal(outcome, "rejected"))
        return g_strdup_printf("You were interrupted by a restart while you waited for an answer. You had asked for "
                               "permission: %s\nA person refused it (\"%s\"). Do not do it; go on without it.",
                               title, answer->label);
    return g_strdup_printf("You were interrupted by a restart while you waited for an answer. You had asked for "
                           "permission: %s\nA person answered: \"%s\". It has not been done yet. %s Go on.",
                           title, answer->label,
                           in_time ? "Ask for exactly the same again and that answer counts, once; anything else is "
                                     "asked anew."
                                   : "The answer is too old to count by now: when you still need it, ask again.");
}
