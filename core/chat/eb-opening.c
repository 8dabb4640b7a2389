/* SPDX-License-Identifier: MIT */
#include "core/chat/eb-opening.h"

#include <string.h>

typedef struct {
    const char *name;
    const char *letter;
    const char *example;
    gsize offset; /* of its field in EbOpening */
} EbOpeningOption;

static const EbOpeningOption options[] = {
    {"model", "m", "--model gpt-5", G_STRUCT_OFFSET(EbOpening, model)},
    {"agent", "a", "--agent codex", G_STRUCT_OFFSET(EbOpening, agent)},
};

void
eb_opening_free(EbOpening *self)
{
    if (self == NULL)
        return;
    g_free(self->project);
    g_free(self->model);
    g_free(self->agent);
    g_free(self->prompt);
    g_free(self);
}

static const char *
skip_space(const char *at)
{
    while (*at != '\0' && g_unichar_isspace(g_utf8_get_char(at)))
        at = g_utf8_next_char(at);
    return at;
}

static gboolean
is_end(const char *at)
{
    return *at == '\0' || g_unichar_isspace(g_utf8_get_char(at));
}

/* --- the name --- */

/* The length of the name at @at, 0 when none stands there. */
static gsize
measure_name(const char *at)
{
    gsize length = 0;
    if (!g_ascii_isalnum(at[0]) && at[0] != '_')
        return 0;
    while (g_ascii_isalnum(at[length]) || (at[length] != '\0' && strchr("._-", at[length]) != NULL))
        length++;
    if (length > EB_OPENING_MAX_PROJECT || at[length] != ':')
        return 0;
    char next = at[length + 1];
    if (next == ':' || next == '\\' || next == '=' || g_ascii_isdigit(next) || g_str_has_prefix(at + length + 1, "//"))
        return 0;
    return length;
}

/* --- the options --- */

/* What is before the name of an option: "--", "-", or the dash a phone makes of "--". */
static gsize
measure_dashes(const char *at, gboolean *brief)
{
    *brief = FALSE;
    if (g_str_has_prefix(at, "--"))
        return 2;
    if (g_str_has_prefix(at, "\xe2\x80\x94") || g_str_has_prefix(at, "\xe2\x80\x93"))
        return 3;
    *brief = at[0] == '-';
    return at[0] == '-' ? 1 : 0;
}

static gsize
measure_word(const char *at)
{
    gsize length = 0;
    while (g_ascii_isalnum(at[length]) || at[length] == '-' || at[length] == '_')
        length++;
    return length;
}

static const EbOpeningOption *
find_option(const char *word, gsize length, gboolean brief)
{
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++) {
        const char *name = brief ? options[i].letter : options[i].name;
        if (strlen(name) == length && g_ascii_strncasecmp(name, word, length) == 0)
            return &options[i];
    }
    return NULL;
}

static gboolean
take_value(const EbOpeningOption *option, const char **at, char **field, GError **error)
{
    const char *value = **at == '=' ? *at + 1 : skip_space(*at);
    gsize length = 0;
    while (value[length] != '\0' && g_ascii_isgraph(value[length]))
        length++;
    if (length == 0 || *value == '-' || !is_end(value + length)) {
        eb_set_error(error, EB_ERROR_INVALID, "opening.option",
                     "after --%s comes the name of one, in plain letters: write %s and then what is to be done",
                     option->name, option->example);
        return FALSE;
    }
    if (length > EB_OPENING_MAX_VALUE) {
        eb_set_error(error, EB_ERROR_INVALID, "opening.option", "the name after --%s is too long (%d bytes at most)",
                     option->name, EB_OPENING_MAX_VALUE);
        return FALSE;
    }
    if (*field != NULL) {
        eb_set_error(error, EB_ERROR_INVALID, "opening.option", "--%s stands there twice: write it once", option->name);
        return FALSE;
    }
    *field = g_strndup(value, length);
    *at = value + length;
    return TRUE;
}

typedef enum { STEP_NONE, STEP_TAKEN, STEP_OVER, STEP_FAILED } EbOpeningStep;

/* Takes one option at *@at. STEP_OVER: "--" alone: what follows is the prompt. */
static EbOpeningStep
take_option(EbOpening *self, const char **at, GError **error)
{
    gboolean brief;
    gsize dashes = measure_dashes(*at, &brief);
    if (dashes == 0)
        return STEP_NONE;
    const char *word = *at + dashes;
    gsize length = measure_word(word);
    if (length == 0 && dashes == 2 && is_end(word)) {
        *at = skip_space(word);
        return STEP_OVER;
    }
    const EbOpeningOption *option = find_option(word, length, brief);
    gboolean bounded = is_end(word + length) || word[length] == '=';
    if (option != NULL && bounded) {
        *at = word + length;
        return take_value(option, at, (char **)G_STRUCT_MEMBER_P(self, option->offset), error) ? STEP_TAKEN
                                                                                               : STEP_FAILED;
    }
    /* A list ("- a", "-5", "-x") is a prompt; a typing mistake in an option is not. A dash of text needs no letter. */
    if (dashes != 2 || length == 0 || !g_ascii_isalpha(*word) || !bounded)
        return STEP_NONE;
    g_autofree char *shown = g_strndup(word, MIN(length, 40));
    eb_set_error(error, EB_ERROR_INVALID, "opening.option",
                 "there is no --%s here, only --model NAME and --agent NAME; when it belongs to what is to be done, "
                 "write -- before it",
                 shown);
    return STEP_FAILED;
}

EbOpening *
eb_opening_parse(const char *text, GError **error)
{
    g_return_val_if_fail(text != NULL, NULL);
    g_autoptr(EbOpening) self = g_new0(EbOpening, 1);
    const char *at = skip_space(text);
    EbOpeningStep step = STEP_TAKEN;
    while (step == STEP_TAKEN) {
        gsize length = self->project == NULL ? measure_name(at) : 0;
        if (length > 0) {
            self->project = g_strndup(at, length);
            at = skip_space(at + length + 1);
            continue;
        }
        step = take_option(self, &at, error);
        if (step == STEP_FAILED)
            return NULL;
        at = skip_space(at);
    }
    self->prompt = g_strdup(at);
    g_strchomp(self->prompt);
    return g_steal_pointer(&self);
}

/* --- the title --- */

char *
eb_opening_title(const EbOpening *self, guint max_characters)
{
    g_return_val_if_fail(self != NULL && max_characters >= 16, NULL);
    g_autoptr(GString) title = g_string_new(self->project);
    if (title->len > 0)
        g_string_append(title, ": ");
    gsize begin = title->len;
    gboolean space = FALSE;
    for (const char *at = skip_space(self->prompt); *at != '\0' && *at != '\n' && *at != '\r';
         at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        GUnicodeType type = g_unichar_type(c);
        if (g_unichar_isspace(c) || type == G_UNICODE_CONTROL) {
            space = TRUE;
            continue;
        }
        /* Bidi overrides, joiners and the like: a title is a plain line. */
        if (type == G_UNICODE_FORMAT || type == G_UNICODE_SURROGATE || type == G_UNICODE_UNASSIGNED)
            continue;
        if (space && title->len > begin)
            g_string_append_c(title, ' ');
        space = FALSE;
        g_string_append_unichar(title, c);
    }
    if (title->len == begin)
        g_string_append(title, begin > 0 ? "files" : "errand");
    if (g_utf8_strlen(title->str, -1) <= max_characters)
        return g_string_free(g_steal_pointer(&title), FALSE);
    g_autofree char *cut = g_utf8_substring(title->str, 0, max_characters - 1);
    g_strchomp(cut);
    return g_strconcat(cut, "\xe2\x80\xa6", NULL);
}
