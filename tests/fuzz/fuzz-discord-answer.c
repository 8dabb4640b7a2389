/* SPDX-License-Identifier: MIT */
/* What the REST API answers: "STATUS\nName: value\n...\n\nBODY". Whatever it says, waits stay bounded and nothing stops. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "discord-buckets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NOW (1000 * (gint64)G_USEC_PER_SEC)

static void
check_limits(const DiscordAnswer *answer)
{
    g_autoptr(DiscordBuckets) buckets = discord_buckets_new();
    gint64 until = 0;
    DiscordLane *lane = discord_buckets_enter(buckets, "POST", "/channels/{c}/messages", "1", FALSE, NOW);
    g_assert_cmpint(discord_buckets_admit(buckets, lane, NOW, &until), ==, DISCORD_VERDICT_SEND);
    discord_buckets_answer(buckets, lane, answer, 0, NOW);
    DiscordVerdict verdict = discord_buckets_admit(buckets, lane, NOW, &until);
    g_assert_true(verdict == DISCORD_VERDICT_SEND || verdict == DISCORD_VERDICT_WAIT ||
                  (verdict == DISCORD_VERDICT_STOPPED && answer->status == 401));
    g_assert_cmpint(until, <=, NOW + DISCORD_ANSWER_MAX_WAIT_US + DISCORD_RESET_MARGIN_US);
    if (verdict == DISCORD_VERDICT_WAIT)
        g_assert_cmpint(discord_buckets_admit(buckets, lane, until, &until), ==, DISCORD_VERDICT_SEND);
    if (answer->status == 429 && answer->retry_after_us > 0)
        g_assert_cmpint(verdict, ==, DISCORD_VERDICT_WAIT);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    char *blank = strstr(text, "\n\n");
    const char *body = blank != NULL ? (const char *)data + (blank + 2 - text) : "";
    gsize body_length = blank != NULL ? size - (gsize)(blank + 2 - text) : 0;
    if (blank != NULL)
        *blank = '\0';
    g_auto(GStrv) lines = g_strsplit(text, "\n", 20);
    guint64 status = 0;
    SoupMessageHeaders *headers = soup_message_headers_new(SOUP_MESSAGE_HEADERS_RESPONSE);
    if (lines[0] != NULL)
        g_ascii_string_to_unsigned(lines[0], 10, 100, 599, &status, NULL);
    for (guint i = 1; lines[0] != NULL && lines[i] != NULL; i++) {
        char *colon = strstr(lines[i], ": ");
        if (colon == NULL)
            continue;
        *colon = '\0';
        if (*lines[i] == '\0' || strpbrk(lines[i], " \t\r\n:") != NULL || strpbrk(colon + 1, "\r\n") != NULL)
            continue; /* no HTTP parser hands these out */
        soup_message_headers_append(headers, lines[i], colon + 2);
    }
    g_autoptr(DiscordAnswer) answer = discord_answer_parse((guint)status, headers, body, body_length);
    g_assert_cmpint(answer->retry_after_us, >=, -1);
    g_assert_cmpint(answer->retry_after_us, <=, DISCORD_ANSWER_MAX_WAIT_US);
    g_assert_cmpint(answer->reset_after_us, <=, DISCORD_ANSWER_MAX_WAIT_US);
    if (answer->text != NULL) {
        g_assert_cmpuint(strlen(answer->text), <=, 310);
        g_assert_true(g_utf8_validate(answer->text, -1, NULL));
        g_assert_null(strpbrk(answer->text, "\n\r\x1b"));
    }
    if (status >= 300) {
        g_autoptr(GError) error = discord_answer_error(answer, "GET /x");
        g_assert_nonnull(eb_error_get_reason(error));
    }
    if (status > 0)
        check_limits(answer);
    soup_message_headers_unref(headers);
    return 0;
}
