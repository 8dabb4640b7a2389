/* SPDX-License-Identifier: MIT */
/* Slow chats and silent agents. */
#include "core/render/eb-coalescer.h"
#include "core/session/eb-activity-watch.h"
#include "eb-fake-backend.h"
#include "eb-fake-chat.h"
#include "eb-test.h"

#include <gio/gunixinputstream.h>
#include <gio/gunixoutputstream.h>
#include <string.h>
#include <unistd.h>

static EbChatPost *
piece(const char *key, const char *text, gboolean final)
{
    EbChatPost *post = eb_chat_post_new("t", EB_CHAT_POST_TEXT, text);
    post->key = g_strdup(key);
    post->append = TRUE;
    post->final = final;
    return post;
}

static EbChatPost *
tool(const char *key, const char *status)
{
    EbChatPost *post = eb_chat_post_new("t", EB_CHAT_POST_TOOL, status);
    post->key = g_strdup(key);
    post->data = json_object_new();
    json_object_set_string_member(post->data, "status", status);
    return post;
}

static void
flush(EbCoalescer *coalescer)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_coalescer_flush_async(coalescer, 30000, eb_test_result_ready, &done);
    g_assert_true(eb_coalescer_flush_finish(coalescer, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
}

static void
test_pieces_are_joined(void)
{
    g_autoptr(EbFakeChat) chat = eb_fake_chat_new(EB_CHAT_CAP_STREAM | EB_CHAT_CAP_STRUCTURED);
    g_autoptr(EbCoalescer) coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(chat));
    chat->hold = TRUE;
    for (guint i = 0; i < 100; i++)
        eb_coalescer_push(coalescer, piece("text-1", "x", i == 99));
    g_assert_cmpuint(chat->posts->len, ==, 1);
    g_assert_cmpuint(eb_coalescer_get_queued(coalescer), ==, 1);
    eb_fake_chat_release(chat);
    flush(coalescer);
    g_assert_cmpuint(chat->posts->len, ==, 2);
    EbChatPost *rest = chat->posts->pdata[1];
    g_assert_cmpuint(strlen(rest->text), ==, 99);
    g_assert_true(rest->final);
}

static void
test_changes_replace_and_keep_pace(void)
{
    g_autoptr(EbFakeChat) chat = eb_fake_chat_new(EB_CHAT_CAP_EDIT);
    chat->limits.edit_interval_ms = 100;
    g_autoptr(EbCoalescer) coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(chat));
    gint64 begin_us = g_get_monotonic_time();
    eb_coalescer_push(coalescer, tool("tool-1", "pending"));
    for (guint i = 0; i < 50; i++)
        eb_coalescer_push(coalescer, tool("tool-1", "in_progress"));
    eb_coalescer_push(coalescer, tool("tool-1", "completed"));
    flush(coalescer);
    g_assert_cmpuint(chat->posts->len, ==, 2);
    g_assert_cmpstr(((EbChatPost *)chat->posts->pdata[1])->text, ==, "completed");
    g_assert_cmpint(g_get_monotonic_time() - begin_us, >=, 90000);
}

static void
test_plain_chat_hears_once(void)
{
    g_autoptr(EbFakeChat) chat = eb_fake_chat_new(EB_CHAT_CAP_NONE);
    g_autoptr(EbCoalescer) coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(chat));
    eb_coalescer_push(coalescer, piece("text-1", "I will ", FALSE));
    eb_coalescer_push(coalescer, piece("text-1", "look.", FALSE));
    eb_coalescer_push(coalescer, tool("tool-1", "pending"));
    flush(coalescer);
    eb_coalescer_push(coalescer, tool("tool-1", "in_progress"));
    eb_coalescer_push(coalescer, tool("tool-1", "failed"));
    eb_coalescer_push(coalescer, eb_chat_post_new("t", EB_CHAT_POST_THOUGHT, "hm"));
    flush(coalescer);
    g_assert_cmpuint(chat->posts->len, ==, 3);
    g_assert_cmpstr(((EbChatPost *)chat->posts->pdata[0])->text, ==, "I will look.");
}

static void
test_overflow_is_told(void)
{
    g_autoptr(EbFakeChat) chat = eb_fake_chat_new(EB_CHAT_CAP_STRUCTURED);
    g_autoptr(EbCoalescer) coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(chat));
    chat->hold = TRUE;
    for (guint i = 0; i < 2 * EB_COALESCER_MAX_POSTS; i++)
        eb_coalescer_push(coalescer, tool("tool", "pending"));
    eb_coalescer_push(coalescer, eb_chat_post_new("t", EB_CHAT_POST_END, "the end"));
    g_assert_cmpuint(eb_coalescer_get_queued(coalescer), <=, EB_COALESCER_MAX_POSTS);
    eb_fake_chat_release(chat);
    flush(coalescer);
    g_autofree char *notice = eb_fake_chat_said(chat, EB_CHAT_POST_NOTICE);
    g_assert_nonnull(strstr(notice, "500 messages were left out"));
    g_assert_cmpuint(eb_fake_chat_count(chat, EB_CHAT_POST_END), ==, 1);
}

static void
on_silent(EbActivityWatch *watch, guint seconds, gpointer data)
{
    (*(guint *)data)++;
}

static void
on_stalled(EbActivityWatch *watch, guint64 limit, gpointer data)
{
    *(guint64 *)data = limit;
}

static void
test_silence(void)
{
    g_autofree char *dir = eb_test_temp_dir("watch");
    g_autoptr(EbFakeBackend) backend = eb_fake_backend_new(dir, "none");
    g_autofree char *guest = g_build_filename(dir, "eb-x", NULL);
    eb_test_write_file(guest, "a\nb\nc");
    int in[2], out[2];
    g_assert_cmpint(pipe(in), ==, 0);
    g_assert_cmpint(pipe(out), ==, 0);
    g_autoptr(GInputStream) input = g_unix_input_stream_new(in[0], TRUE);
    g_autoptr(GOutputStream) output = g_unix_output_stream_new(out[1], TRUE);
    g_autoptr(EbAcpClient) client = eb_acp_client_new(output, input, NULL);
    g_autoptr(EbActivityWatch) watch = eb_activity_watch_new(client, EB_CONTAINER_BACKEND(backend), "eb-x", 60);
    guint silent = 0;
    guint64 limit = 0;
    g_signal_connect(watch, "silent", G_CALLBACK(on_silent), &silent);
    g_signal_connect(watch, "stalled", G_CALLBACK(on_stalled), &limit);
    eb_activity_watch_start(watch);
    eb_activity_watch_pause(watch, TRUE);
    eb_test_run_for(150);
    g_assert_cmpuint(silent, ==, 0);
    eb_activity_watch_pause(watch, FALSE);
    while (silent < 2)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(limit, ==, 0);
    backend->full = TRUE;
    while (limit == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(limit, ==, (guint64)1 << 30);
    eb_activity_watch_stop(watch);
    silent = 0;
    eb_test_run_for(150);
    g_assert_cmpuint(silent, ==, 0);
    close(in[1]);
    close(out[0]);
    eb_acp_client_agent_ended(client, "the test is over");
    eb_test_run_for(400);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/coalescer/pieces-are-joined", test_pieces_are_joined);
    g_test_add_func("/coalescer/changes-replace-and-keep-pace", test_changes_replace_and_keep_pace);
    g_test_add_func("/coalescer/plain-chat-hears-once", test_plain_chat_hears_once);
    g_test_add_func("/coalescer/overflow-is-told", test_overflow_is_told);
    g_test_add_func("/watch/silence", test_silence);
    return g_test_run();
}
