/* SPDX-License-Identifier: MIT */
/* What people write first, and what they order: nothing is lost, and what was taken apart is within its bounds. */
#include "core/chat/eb-command-parse.h"
#include "core/chat/eb-opening.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

static void
check_value(const char *value)
{
    if (value != NULL)
        g_assert(*value != '\0' && strlen(value) <= EB_OPENING_MAX_VALUE && strpbrk(value, " \n\t") == NULL);
}

static void
check_opening(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbOpening) opening = eb_opening_parse(text, &error);
    g_assert((opening != NULL) == (error == NULL));
    if (opening == NULL)
        return;
    /* The prompt is a piece of the text, unchanged. */
    g_assert(strstr(text, opening->prompt) != NULL);
    check_value(opening->model);
    check_value(opening->agent);
    if (opening->project != NULL) {
        gsize size = strlen(opening->project);
        g_assert(size >= 1 && size <= EB_OPENING_MAX_PROJECT && strchr(".-", opening->project[0]) == NULL);
        for (gsize i = 0; i < size; i++)
            g_assert(g_ascii_isalnum(opening->project[i]) || strchr("._-", opening->project[i]) != NULL);
    }
    g_autofree char *title = eb_opening_title(opening, 100);
    g_assert(*title != '\0' && g_utf8_validate(title, -1, NULL) && g_utf8_strlen(title, -1) <= 100);
    g_assert(strpbrk(title, "\n\r\t") == NULL);
}

static void
check_command(const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCommand) command = NULL;
    EbCommandParse got = eb_command_parse_text(text, &command, &error);
    g_assert((command != NULL) == (got == EB_COMMAND_PARSE_OK));
    g_assert((error != NULL) == (got == EB_COMMAND_PARSE_INVALID));
    if (command == NULL)
        return;
    for (gsize i = 0; i < command->spec->n_options; i++) {
        const char *value = command->values[i];
        g_assert(value != NULL || !command->spec->options[i].required);
        if (value != NULL && command->spec->options[i].person)
            g_assert(strlen(value) >= 5 && strlen(value) <= 25 && strspn(value, "0123456789") == strlen(value));
    }
}

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    g_autofree char *raw = g_strndup((const char *)bytes, length);
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    check_opening(text);
    check_command(text);
    return 0;
}
