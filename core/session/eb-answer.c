/* SPDX-License-Identifier: MIT */
#include "core/session/eb-answer.h"

#include <string.h>

/* Longer texts are something else. */
#define MAX_ANSWER_BYTES 400
/* Digits of a number that can be a choice at all. */
#define MAX_DIGITS 6

static gboolean
is_number(const char *text, guint64 *number)
{
    gsize digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0 || !(*rest == '\0' || ((*rest == '.' || *rest == ')') && rest[1] == '\0')))
        return FALSE;
    *number = digits <= MAX_DIGITS ? g_ascii_strtoull(text, NULL, 10) : G_MAXUINT64;
    return TRUE;
}

EbAnswerMatch
eb_answer_match(const char *text, GPtrArray *labels, guint *index)
{
    if (strlen(text) > MAX_ANSWER_BYTES || !g_utf8_validate(text, -1, NULL))
        return EB_ANSWER_NONE;
    g_autofree char *stripped = g_strstrip(g_strdup(text));
    g_autofree char *wanted = g_utf8_casefold(stripped, -1);
    guint matches = 0;
    for (guint i = 0; i < labels->len && *wanted != '\0'; i++) {
        g_autofree char *valid = g_utf8_make_valid(labels->pdata[i], -1);
        g_autofree char *label = g_utf8_casefold(g_strstrip(valid), -1);
        if (!g_str_equal(label, wanted))
            continue;
        *index = i;
        matches++;
    }
    guint64 number = 0;
    gboolean numbered = is_number(stripped, &number);
    /* A choice that is called like the number of another one. */
    if (matches == 1 && numbered && number >= 1 && number <= labels->len && number - 1 != *index)
        return EB_ANSWER_UNCLEAR;
    if (matches > 0)
        return matches == 1 ? EB_ANSWER_CHOICE : EB_ANSWER_UNCLEAR;
    if (!numbered)
        return EB_ANSWER_NONE;
    if (number < 1 || number > labels->len)
        return EB_ANSWER_UNCLEAR;
    *index = (guint)number - 1;
    return EB_ANSWER_CHOICE;
}
