/* SPDX-License-Identifier: MIT */
/* A text of an agent in parts: each within the limit, with fences closed, and together all of it. */
#include "tests/unit/render/split-oracle.h"

int LLVMFuzzerTestOneInput(const guint8 *data, gsize size);

int
LLVMFuzzerTestOneInput(const guint8 *data, gsize size)
{
    if (size < 2 || size > 64 * 1024)
        return 0;
    guint max = EB_TEXT_SPLIT_MIN + (guint)data[0] * 8 % 2000;
    g_autofree char *raw = g_strndup((const char *)data + 1, size - 1);
    g_autofree char *text = g_utf8_make_valid(raw, -1);
    g_autoptr(GPtrArray) parts = eb_text_split_parts(text, max);
    const char *wrong = split_oracle_check(text, max, parts);
    if (wrong != NULL)
        g_error("%s", wrong);
    g_autofree char *cut = eb_text_cut_all(text, max);
    if (!g_utf8_validate(cut, -1, NULL) || eb_text_units(cut, -1) > max)
        g_error("a cut text is too long");
    return 0;
}
