/* SPDX-License-Identifier: MIT */
/* Agents that print what they should not, too much of it, or nothing at the end. */
#include "eb-session-fixture.h"

#include <stdio.h>
#include <string.h>

#define PLAIN (EB_CHAT_CAP_THREADS | EB_CHAT_CAP_HISTORY | EB_CHAT_CAP_EDIT)
#define STRUCTURED (EB_CHAT_CAP_STREAM | EB_CHAT_CAP_EDIT | EB_CHAT_CAP_STRUCTURED)

/* What agents that misbehave may cost the service. */
#define MAX_GROWTH_KIB (64 * 1024)

/* KiB of a line of /proc/self/status. */
static guint64
memory_of(const char *member)
{
    g_autofree char *status = NULL;
    g_assert_true(g_file_get_contents("/proc/self/status", &status, NULL, NULL));
    const char *line = strstr(status, member);
    g_assert_nonnull(line);
    return g_ascii_strtoull(line + strlen(member), NULL, 10);
}

static guint64
begin_peak(void)
{
    FILE *clear = fopen("/proc/self/clear_refs", "w");
    g_assert_nonnull(clear);
    fputs("5", clear);
    fclose(clear);
    return memory_of("VmRSS:\t");
}

static void
assert_peak(guint64 before)
{
    guint64 peak = memory_of("VmHWM:\t");
    g_test_message("peak %" G_GUINT64_FORMAT " KiB over %" G_GUINT64_FORMAT " KiB", peak - MIN(before, peak), before);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    g_assert_cmpuint(peak, <, before + MAX_GROWTH_KIB);
#endif
}

static void
assert_valid(EbSessionFixture *f)
{
    for (guint i = 0; i < f->chat->posts->len; i++) {
        EbChatPost *post = f->chat->posts->pdata[i];
        g_assert_true(post->text == NULL || g_utf8_validate(post->text, -1, NULL));
    }
}

/* Banners, blank lines, arrays, half an object before the first frame: all skipped. */
static void
test_banner_at_start(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "say hello", "{\"agent\":\"banner\"}");
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "hello ");
}

/* The same in the middle of a turn, with a line of 8 MiB. */
static void
test_noise_in_a_turn(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, NULL, "noise", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "before after");
}

/* One line of 200 MB instead of an answer: that start fails and says which step, within the memory that was given. */
static void
test_endless_line(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    guint64 before = begin_peak();
    eb_session_fixture_turn(f, NULL, "say hello", "{\"agent\":\"endless\"}");
    eb_session_fixture_wait_ended(f, 1);
    g_assert_nonnull(f->end_error);
    g_test_message("%s", f->end_error->message);
    g_assert_nonnull(strstr(f->end_error->message, "initialize"));
    assert_peak(before);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    /* Nobody else is worse off. */
    eb_session_fixture_turn(f, "other", "say fine", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
}

static void
test_flood(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, PLAIN);
    f->chat->limits.max_text_units = 2000;
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "t", "say warm", NULL);
    guint64 before = begin_peak();
    eb_session_fixture_turn(f, "t", "flood", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
    assert_peak(before);
    assert_valid(f);
    gsize bytes = 0;
    for (guint i = 0; i < f->chat->posts->len; i++) {
        EbChatPost *post = f->chat->posts->pdata[i];
        bytes += post->text != NULL ? strlen(post->text) : 0;
        g_assert_cmpuint(g_utf8_strlen(post->text != NULL ? post->text : "", -1), <=, 2000);
    }
    g_test_message("%u posts, %" G_GSIZE_FORMAT " bytes", f->chat->posts->len, bytes);
    g_assert_cmpuint(bytes, <, 8 * 1024 * 1024);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(said, "cp949"));
    g_assert_nonnull(strstr(said, "34999"));
    /* The next turn works as if nothing had been. */
    eb_session_fixture_turn(f, "t", "say still here", NULL);
    g_assert_cmpstr(f->stop_reason, ==, "end_turn");
}

/* The stream ends without a stop reason: what was said arrives, the turn fails, nothing of it is left. */
static void
test_end_without_answer(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, PLAIN);
    eb_session_fixture_open(f);
    eb_session_fixture_turn(f, "t", "eof", NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_autofree char *said = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_cmpstr(said, ==, "the last words");
    g_assert_cmpstr(f->stop_reason, ==, "error");
    g_assert_cmpstr(f->end_reason, ==, "crashed");
    g_autofree char *outcomes = eb_session_fixture_outcomes(f, "message-1");
    g_assert_cmpstr(outcomes, ==, "waiting working failed");
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    eb_session_fixture_turn(f, "t", "history", NULL);
    g_autofree char *again = eb_fake_chat_said(f->chat, EB_CHAT_POST_TEXT);
    g_assert_nonnull(strstr(again, "before: 1"));
}

static gboolean
has_text(gpointer user_data)
{
    return eb_fake_chat_count(((EbSessionFixture *)user_data)->chat, EB_CHAT_POST_TEXT) > 0;
}

/* Ending a session in a turn ends the work: the process is gone when "ended" comes. */
static void
test_close_ends_the_work(void)
{
    g_autoptr(EbSessionFixture) f = eb_session_fixture_new(NULL, NULL, STRUCTURED);
    eb_session_fixture_open(f);
    eb_fake_chat_say(f->chat, NULL, "deaf", NULL);
    eb_test_run_until(has_text, f);
    eb_session_end(eb_session_fixture_live(f, NULL), EB_SESSION_END_STOPPED, NULL);
    eb_session_fixture_wait_ended(f, 1);
    g_assert_cmpuint(eb_fake_backend_count(f->backend), ==, 0);
    g_autofree char *outcomes = eb_session_fixture_outcomes(f, "message-1");
    g_assert_cmpstr(outcomes, ==, "waiting working interrupted");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/output/banner-at-start", test_banner_at_start);
    g_test_add_func("/output/noise-in-a-turn", test_noise_in_a_turn);
    g_test_add_func("/output/endless-line", test_endless_line);
    g_test_add_func("/output/flood", test_flood);
    g_test_add_func("/output/end-without-answer", test_end_without_answer);
    g_test_add_func("/output/close-ends-the-work", test_close_ends_the_work);
    return g_test_run();
}
