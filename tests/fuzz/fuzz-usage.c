/* SPDX-License-Identifier: MIT */
/* Answers of providers: first byte E for a stream of events. However they are cut into pieces, they cost the same, and what
 * they cost is bounded by what they say. */
#include <string.h>

#include "core/broker/eb-usage-scan.h"

int LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length);

int
LLVMFuzzerTestOneInput(const guint8 *bytes, gsize length)
{
    const char *text = (const char *)bytes + 1;
    EbUsage whole, pieces;
    EbUsageScan one, many;
    gsize step = 1;

    if (length == 0)
        return 0;
    length--;
    eb_usage_scan_init(&one, bytes[0] == 'E');
    eb_usage_scan_init(&many, bytes[0] == 'E');
    eb_usage_scan_run(&one, text, length);
    for (gsize at = 0; at < length; at += step, step = step % 7 + 1)
        eb_usage_scan_run(&many, text + at, MIN(step, length - at));
    eb_usage_scan_get(&one, 17, &whole);
    eb_usage_scan_get(&many, 17, &pieces);
    g_assert(whole.tokens_in == pieces.tokens_in && whole.tokens_out == pieces.tokens_out);
    g_assert(whole.tokens_cached == pieces.tokens_cached && whole.tokens_written == pieces.tokens_written);
    g_assert(whole.estimated == pieces.estimated && strcmp(whole.model, pieces.model) == 0);
    g_assert(one.max_tokens == many.max_tokens && one.background == many.background);
    g_assert(one.stream == many.stream && one.mixed == many.mixed && one.choices == many.choices);
    g_assert(whole.tokens_cached + whole.tokens_written <= whole.tokens_in);
    g_assert(strlen(whole.model) < sizeof whole.model);
    /* A count has at most thirteen digits, and there are few of them. */
    g_assert(whole.tokens_in < G_GUINT64_CONSTANT(10000000000000) &&
             whole.tokens_out < G_GUINT64_CONSTANT(10000000000000));
    return 0;
}
