/* SPDX-License-Identifier: MIT */
/* A coalescer and the chat it speaks to; for the tests of it. */
#pragma once

#include "core/render/eb-coalescer.h"
#include "core/render/eb-live.h"
#include "eb-test.h"
#include "render-chat.h"

#include <string.h>

#define CHAT (EB_CHAT_CAP_EDIT | EB_CHAT_CAP_FILES)

typedef struct {
    RenderChat *chat;
    EbCoalescer *coalescer;
} Fixture;

static inline void
begin(Fixture *f, EbChatCaps caps, guint max_units, guint interval_ms)
{
    f->chat = render_chat_new(caps, max_units, interval_ms);
    f->coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(f->chat));
}

static inline void
end(Fixture *f)
{
    g_clear_object(&f->coalescer);
    eb_test_drain();
    g_clear_object(&f->chat);
}

static inline void
flush(Fixture *f)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;
    eb_coalescer_flush_async(f->coalescer, EB_TEST_DEADLINE_MS, eb_test_result_ready, &done);
    g_assert_true(eb_coalescer_flush_finish(f->coalescer, eb_test_result_wait(&done), &error));
    g_assert_no_error(error);
    g_assert_cmpuint(eb_coalescer_get_queued(f->coalescer), ==, 0);
}

static inline void
assert_screen(Fixture *f, const char *expected)
{
    flush(f);
    g_autofree char *screen = render_chat_screen(f->chat);
    g_assert_cmpstr(screen, ==, expected);
}

static inline EbChatPost *
make(EbChatPostKind kind, const char *key, const char *text, const char *json)
{
    EbChatPost *post = eb_chat_post_new("t", kind, text);
    post->key = g_strdup(key);
    if (json != NULL) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = eb_json_parse(json, strlen(json), NULL, &error);
        g_assert_no_error(error);
        post->data = json_object_ref(eb_json_node_object(node));
    }
    return post;
}

static inline void
push(Fixture *f, EbChatPostKind kind, const char *key, const char *text, const char *json)
{
    eb_coalescer_push(f->coalescer, make(kind, key, text, json));
}

static inline void
say(Fixture *f, const char *key, const char *text, gboolean final)
{
    EbChatPost *post = make(EB_CHAT_POST_TEXT, key, text, NULL);
    post->append = TRUE;
    post->final = final;
    eb_coalescer_push(f->coalescer, post);
}

static inline void
tool(Fixture *f, const char *key, const char *text, const char *status, const char *output)
{
    EbChatPost *post = make(EB_CHAT_POST_TOOL, key, text, NULL);
    post->data = json_object_new();
    json_object_set_string_member(post->data, "status", status);
    if (output != NULL)
        json_object_set_string_member(post->data, "output", output);
    eb_coalescer_push(f->coalescer, post);
}

static inline gboolean
is_quiet(gpointer data)
{
    Fixture *f = data;
    return eb_coalescer_get_queued(f->coalescer) == 0 && f->chat->in_flight == 0;
}

/* As assert_screen(), in the middle of a turn. */
static inline void
assert_shown(Fixture *f, const char *expected)
{
    eb_test_run_until(is_quiet, f);
    g_autofree char *screen = render_chat_screen(f->chat);
    g_assert_cmpstr(screen, ==, expected);
}

static inline RenderMessage *
message(Fixture *f, guint i)
{
    g_assert_cmpuint(i, <, f->chat->messages->len);
    return f->chat->messages->pdata[i];
}
