/* SPDX-License-Identifier: MIT */
/* What an agent says, on its way to a chat: masked in pieces, split, compared. */
#include "core/base/eb-redactor.h"
#include "core/render/eb-diff.h"
#include "core/render/eb-text-split.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

#define SECRET "SECRETSECRET12"
#define REVERSED "21TERCESTERCES"

static void
check_split(const char *text, guint max)
{
    g_autoptr(GPtrArray) parts = eb_text_split(text, max);
    for (guint i = 0; i < parts->len; i++) {
        if (!g_utf8_validate(parts->pdata[i], -1, NULL))
            g_error("a part is no UTF-8");
        if (eb_text_units(parts->pdata[i], -1) > max)
            g_error("a part is too long");
    }
}

static void
check_redactor(EbRedactSet *set, const char *text, gsize step)
{
    g_autoptr(EbRedactor) redactor = eb_redactor_new(set);
    g_autoptr(GString) shown = g_string_new(NULL);
    for (const char *at = text; *at != '\0';) {
        const char *end = at;
        for (gsize i = 0; i < step && *end != '\0'; i++)
            end = g_utf8_next_char(end);
        g_autofree char *piece = g_strndup(at, (gsize)(end - at));
        g_autofree char *out = eb_redactor_feed(redactor, piece);
        if (!g_utf8_validate(out, -1, NULL))
            g_error("a shown piece is no UTF-8");
        g_string_append(shown, out);
        at = end;
    }
    g_autofree char *rest = eb_redactor_flush(redactor);
    g_string_append(shown, rest);
    if (strstr(shown->str, SECRET) != NULL || strstr(shown->str, REVERSED) != NULL)
        g_error("a secret came through");
}

static void
check_diff(const char *before, const char *after)
{
    guint added = 0;
    guint removed = 0;
    g_autofree char *diff = eb_diff_unified(before, after, NULL, &added, &removed);
    g_autofree char *valid = g_utf8_make_valid(diff, -1);
    if (strlen(diff) > 120 * 260 + 200 * 40)
        g_error("a diff is too long");
}

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    static EbRedactSet *set;
    if (set == NULL) {
        char bytes[] = SECRET;
        g_autoptr(EbSecret) secret = eb_secret_new_take("fuzz", bytes, strlen(SECRET), NULL);
        set = eb_redact_set_new();
        eb_redact_set_add(set, secret);
    }
    if (size < 1 || size > 64 * 1024)
        return 0;
    g_autofree char *raw = g_strndup((const char *)data + 1, size - 1);
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    check_split(text, EB_TEXT_SPLIT_MIN + data[0]);
    check_redactor(set, text, 1 + data[0] % 7);
    gsize first = strlen(raw);
    g_autofree char *second = first + 1 < size - 1 ? g_strndup((const char *)data + 2 + first, size - 2 - first) : NULL;
    check_diff(second, raw);
    return 0;
}
