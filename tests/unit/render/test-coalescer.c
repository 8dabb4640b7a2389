/* SPDX-License-Identifier: MIT */
/* What people see of an agent at work in a chat that can change messages, and in one that cannot. */
#include "coalescer-fixture.h"

static gboolean
has_messages(gpointer data)
{
    return ((Fixture *)data)->chat->messages->len > 0;
}

static void
test_text_grows(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 20);
    say(&f, "text-1", "\n\n  Let me", FALSE);
    say(&f, "text-1", " look", FALSE);
    eb_test_run_until(has_messages, &f);
    g_assert_cmpstr(message(&f, 0)->text, ==, "\xe2\x80\x8b  Let me look");
    eb_test_run_until(is_quiet, &f);
    for (guint i = 0; i < 1000; i++)
        say(&f, "text-1", "!", FALSE);
    say(&f, "text-1", ".", TRUE);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 1);
    g_assert_cmpuint(message(&f, 0)->edits, ==, 1);
    g_assert_true(g_str_has_suffix(message(&f, 0)->text, "!!."));
    /* A short text is one message, never changed. */
    say(&f, "text-2", "Do", FALSE);
    say(&f, "text-2", "ne.", TRUE);
    flush(&f);
    g_assert_cmpstr(message(&f, 1)->text, ==, "Done.");
    g_assert_cmpuint(message(&f, 1)->edits, ==, 0);
    end(&f);
}

static void
test_text_grows_over_messages(void)
{
    Fixture f;
    begin(&f, EB_CHAT_CAP_EDIT, 100, 1);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < 150; i++) {
        g_autofree char *line = g_strdup_printf("line %u of it\n", i);
        g_string_append(all, line);
        say(&f, "text-1", line, FALSE);
        if (i % 15 == 14)
            eb_test_run_until(is_quiet, &f);
    }
    say(&f, "text-1", "", TRUE);
    flush(&f);
    g_autoptr(GString) shown = g_string_new(NULL);
    for (guint i = 0; i < f.chat->messages->len; i++)
        g_string_append_printf(shown, "%s\n", message(&f, i)->text);
    g_assert_cmpstr(shown->str, ==, all->str);
    end(&f);
}

static void
test_long_text_is_a_file(void)
{
    Fixture f;
    begin(&f, CHAT, 100, 1);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < 200; i++)
        g_string_append_printf(all, "line %u\n", i);
    for (const char *at = all->str; *at != '\0'; at += MIN(strlen(at), 7)) {
        g_autofree char *piece = g_strndup(at, 7);
        say(&f, "text-1", piece, FALSE);
    }
    eb_test_run_until(has_messages, &f);
    say(&f, "text-1", "", TRUE);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, EB_LIVE_MAX_PARTS);
    RenderMessage *last = message(&f, EB_LIVE_MAX_PARTS - 1);
    g_assert_cmpstr(last->file, ==, all->str);
    g_assert_cmpstr(last->text, ==, "this answer is long (1.7k characters): all of it is in reply.md");
    /* Six messages are six messages. */
    g_autofree char *six = g_strnfill(590, 'x');
    say(&f, "text-2", six, TRUE);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 2 * EB_LIVE_MAX_PARTS);
    g_assert_null(message(&f, 2 * EB_LIVE_MAX_PARTS - 1)->file);
    end(&f);
}

/* More than one file's worth goes on in another, with the fence open at the border. */
static void
test_endless_text(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    say(&f, "text-1", "```c\n", FALSE);
    g_autofree char *piece = g_strnfill(8191, 'y');
    guint pieces = 3 * EB_LIVE_MAX_FILE_BYTES / 8192;
    for (guint i = 0; i < pieces; i++) {
        say(&f, "text-1", piece, FALSE);
        say(&f, "text-1", "\n", FALSE);
    }
    say(&f, "text-1", "```", TRUE);
    flush(&f);
    guint ys = 0;
    guint files = 0;
    for (guint i = 0; i < f.chat->messages->len; i++) {
        const char *file = message(&f, i)->file;
        if (file == NULL)
            continue;
        files++;
        g_assert_true(g_str_has_prefix(file, "```c\n"));
        g_assert_true(g_str_has_suffix(file, "```"));
        for (const char *at = file; *at != '\0'; at++)
            ys += *at == 'y';
    }
    g_assert_cmpuint(files, >=, 3);
    g_assert_cmpuint(ys, ==, pieces * 8191);
    end(&f);
    /* Where there are no files every message is shown. */
    begin(&f, EB_CHAT_CAP_EDIT, 2000, 1);
    for (guint i = 0; i < 20; i++)
        say(&f, "text-1", piece, i == 19);
    flush(&f);
    ys = 0;
    for (guint i = 0; i < f.chat->messages->len; i++)
        ys += (guint)strlen(message(&f, i)->text);
    g_assert_cmpuint(ys, ==, 20 * 8191);
    end(&f);
}

static void
test_tools_are_one_message(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 20);
    tool(&f, "tool-1", "🔧 `read` `a.c`", "pending", NULL);
    tool(&f, "tool-2", "🔧 `read` `b.c`", "in_progress", NULL);
    tool(&f, "tool-1", "🔧 `read` `a.c`", "completed", NULL);
    assert_screen(&f, "🔧 `read` `a.c`\n🔧 `read` `b.c` …");
    say(&f, "text-1", "Now b.", TRUE);
    tool(&f, "tool-3", "🔧 `execute` `make`", "pending", NULL);
    /* The line of a call that still ran is changed where it is. */
    tool(&f, "tool-2", "🔧 `read` `b.c` (failed)", "failed", "no such file\n");
    tool(&f, "tool-3", "🔧 `execute` `make`", "completed", NULL);
    assert_screen(&f, "🔧 `read` `a.c`\n🔧 `read` `b.c` (failed)\n```\nno such file\n```|Now b.|🔧 `execute` `make`");
    /* A call that was completed is heard of again only when it failed after all. */
    say(&f, "text-2", "Well.", TRUE);
    tool(&f, "tool-1", "🔧 `read` `a.c`", "completed", NULL);
    tool(&f, "tool-3", "🔧 `execute` `make` (failed)", "failed", NULL);
    tool(&f, "tool-3", "🔧 `execute` `make` (failed)", "failed", NULL);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 5);
    g_assert_cmpstr(message(&f, 4)->text, ==, "🔧 `execute` `make` (failed)");
    /* The end of the turn ends what runs. */
    tool(&f, "tool-9", "🔧 `fetch`", "in_progress", NULL);
    flush(&f);
    push(&f, EB_CHAT_POST_END, NULL, "done", "{}");
    flush(&f);
    g_assert_cmpstr(message(&f, 5)->text, ==, "🔧 `fetch`");
    end(&f);
}

static void
test_tools_fill_messages(void)
{
    Fixture f;
    begin(&f, CHAT, 300, 1);
    for (guint i = 0; i < 60; i++) {
        g_autofree char *key = g_strdup_printf("tool-%u", i);
        g_autofree char *line = g_strdup_printf("🔧 `read` `file-%u.c`", i);
        tool(&f, key, line, "in_progress", NULL);
        tool(&f, key, line, i % 3 == 0 ? "failed" : "completed", "some output that is long enough to be cut\nx\ny\nz");
    }
    flush(&f);
    guint lines = 0;
    for (guint i = 0; i < f.chat->messages->len; i++)
        for (const char *at = message(&f, i)->text; (at = strstr(at, "🔧")) != NULL; at += 4)
            lines++;
    g_assert_cmpuint(lines, ==, 60);
    g_assert_cmpuint(f.chat->messages->len, <, 30);
    g_autofree char *long_line = g_strnfill(900, 'l');
    tool(&f, "long", long_line, "pending", NULL);
    flush(&f);
    end(&f);
}

static void
test_output_of_failure_is_cut(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    g_autoptr(GString) output = g_string_new(NULL);
    for (guint i = 0; i < 300; i++)
        g_string_append_printf(output, "line %u ```\n", i);
    tool(&f, "tool-1", "🔧 `execute` `make` (failed)", "failed", output->str);
    flush(&f);
    const char *text = message(&f, 0)->text;
    g_assert_nonnull(strstr(text, "lines are left out)\n````\n"));
    g_assert_true(g_str_has_suffix(text, "line 299 ```\n````"));
    g_assert_cmpuint(strlen(text), <, 600);
    end(&f);
}

static void
test_diff_is_one_message(void)
{
    Fixture f;
    begin(&f, CHAT, 500, 1);
    tool(&f, "tool-1", "🔧 `edit` `a.c`", "completed", NULL);
    g_autoptr(GString) diff = g_string_new("@@ -1,100 +1,100 @@\n");
    for (guint i = 0; i < 100; i++)
        g_string_append_printf(diff, "+line %u\n", i);
    EbChatPost *post = make(EB_CHAT_POST_DIFF, NULL, "", NULL);
    post->data = json_object_new();
    json_object_set_string_member(post->data, "path", "a.c");
    json_object_set_string_member(post->data, "diff", diff->str);
    json_object_set_int_member(post->data, "added", 100);
    json_object_set_int_member(post->data, "removed", 3);
    eb_coalescer_push(f.coalescer, post);
    tool(&f, "tool-2", "🔧 `read` `a.c`", "completed", NULL);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 3);
    const char *text = message(&f, 1)->text;
    g_assert_true(g_str_has_prefix(text, "`a.c` +100 −3\n```diff\n@@ -1,100 +1,100 @@\n+line 0\n"));
    const char *rest = strstr(text, "\n```\n");
    g_assert_nonnull(rest);
    g_assert_true(g_str_has_suffix(rest, " more lines are not shown"));
    guint shown = 0;
    for (const char *at = text; (at = strstr(at, "+line")) != NULL; at++)
        shown++;
    g_autofree char *note = g_strdup_printf("%u more lines are not shown", 100 - shown);
    g_assert_true(g_str_has_suffix(text, note));
    g_assert_cmpuint(shown, >, 20);
    end(&f);
}

static void
test_stages(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    push(&f, EB_CHAT_POST_NOTICE, "waiting-session", "waiting for a free session, position 2", "{\"position\":2}");
    eb_test_run_until(is_quiet, &f);
    push(&f, EB_CHAT_POST_NOTICE, "waiting-session", "waiting for a free session, position 1", "{\"position\":1}");
    assert_shown(&f, "waiting for a free session, position 1");
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"starting\",\"instance\":\"eb-1\",\"origin\":\"cold\"}");
    assert_shown(&f, "starting a guest …");
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"started\",\"ms\":3210}");
    assert_shown(&f, "guest started in 3.2 s, starting the agent …");
    push(&f, EB_CHAT_POST_READY, NULL, "",
         "{\"agent\":\"kage\",\"version\":\"1.2\",\"project\":\"demo\",\"model\":\"big-1\",\"ms\":5}");
    assert_screen(&f, "project `demo` | agent `kage 1.2` | model `big-1`");
    g_assert_cmpuint(f.chat->messages->len, ==, 2);
    /* A second guest in this thread has a message of its own; it is taken away when the start fails. */
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"starting\"}");
    eb_test_run_until(is_quiet, &f);
    push(&f, EB_CHAT_POST_ERROR, NULL, "no memory is left", NULL);
    push(&f, EB_CHAT_POST_END, NULL, "failed: no memory is left",
         "{\"error\":\"no memory is left\",\"model\":\"big-1\"}");
    assert_screen(&f, "project `demo` | agent `kage 1.2` | model `big-1`|⚠️ no memory is left|failed | big-1");
    end(&f);
}

static gboolean
has_two_messages(gpointer data)
{
    return ((Fixture *)data)->chat->messages->len >= 2;
}

/* A session that ends while it waits, or starts, leaves nothing behind that says so. */
static void
test_end_while_waiting(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    push(&f, EB_CHAT_POST_NOTICE, "waiting-turn", "waiting for a free turn, position 1", "{\"position\":1}");
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"starting\"}");
    push(&f, EB_CHAT_POST_NOTICE, "waiting-session", "waiting for a free session, position 1", "{\"position\":1}");
    eb_test_run_until(has_two_messages, &f);
    push(&f, EB_CHAT_POST_NOTICE, NULL, "the session was stopped", NULL);
    assert_screen(&f, "the session was stopped");
    end(&f);
}

/* What was not sent yet and is over is never seen. */
static void
test_over_before_it_is_shown(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    f.chat->hold = TRUE;
    push(&f, EB_CHAT_POST_NOTICE, NULL, "first", NULL);
    push(&f, EB_CHAT_POST_NOTICE, "waiting-turn", "waiting for a free turn, position 1", "{\"position\":1}");
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"starting\"}");
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"started\",\"ms\":1}");
    push(&f, EB_CHAT_POST_READY, NULL, "", "{\"agent\":\"a\"}");
    tool(&f, "tool-1", "🔧 `read`", "pending", NULL);
    tool(&f, "tool-1", "🔧 `read`", "completed", NULL);
    render_chat_release(f.chat);
    assert_screen(&f, "first|agent `a`|🔧 `read`");
    g_assert_cmpuint(f.chat->calls, ==, 3);
    end(&f);
}

static void
test_plan(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    const char *open = "{\"entries\":[{\"content\":\"look\",\"status\":\"in_progress\"},{\"content\":\"do\"}]}";
    const char *done = "{\"entries\":[{\"content\":\"look\",\"status\":\"completed\"},{\"content\":\"do\"}]}";
    push(&f, EB_CHAT_POST_PLAN, "plan", "x", open);
    assert_screen(&f, "Plan:\n`[>]` look\n`[ ]` do");
    tool(&f, "tool-1", "🔧 `read`", "completed", NULL);
    push(&f, EB_CHAT_POST_PLAN, "plan", "x", done);
    push(&f, EB_CHAT_POST_PLAN, "plan", "x", done);
    tool(&f, "tool-2", "🔧 `edit`", "completed", NULL);
    assert_screen(&f, "Plan:\n`[x]` look\n`[ ]` do|🔧 `read`\n🔧 `edit`");
    push(&f, EB_CHAT_POST_END, NULL, "done", "{}");
    push(&f, EB_CHAT_POST_PLAN, "plan", "x", open);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 4);
    end(&f);
}

static void
test_hidden(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 1);
    say(&f, "text-1", "a", TRUE);
    push(&f, EB_CHAT_POST_THOUGHT, "thought-1", "hm", NULL);
    push(&f, EB_CHAT_POST_USAGE, "usage", "", "{\"used\":1}");
    push(&f, EB_CHAT_POST_BUSY, NULL, "", "{\"busy\":true}");
    push(&f, EB_CHAT_POST_PERMISSION, NULL, "", "{\"title\":\"make `x`\",\"outcome\":\"allowed\"}");
    push(&f, EB_CHAT_POST_PERMISSION, NULL, "", "{\"title\":\"make `x`\",\"outcome\":\"timeout\"}");
    assert_screen(&f, "a|`make 'x'`: refused, as nobody answered in time");
    end(&f);
    begin(&f, CHAT | EB_CHAT_CAP_BUSY, 2000, 1);
    push(&f, EB_CHAT_POST_BUSY, NULL, "", "{\"busy\":true}");
    flush(&f);
    g_assert_cmpuint(f.chat->busy, ==, 1);
    end(&f);
}

static char *
shout(const char *text)
{
    g_auto(GStrv) pieces = g_strsplit(text, "@", -1);
    return g_strjoinv("@(not a mention)", pieces);
}

/* The text is measured as it is sent. */
static void
test_prepared_before_it_is_measured(void)
{
    Fixture f;
    begin(&f, CHAT, 200, 1);
    f.chat->limits.prepare = shout;
    g_clear_object(&f.coalescer);
    f.coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(f.chat));
    g_autofree char *many = g_strnfill(40, '@');
    say(&f, "text-1", many, TRUE);
    push(&f, EB_CHAT_POST_NOTICE, NULL, many, NULL);
    tool(&f, "tool-1", many, "failed", many);
    EbChatPost *diff =
        make(EB_CHAT_POST_DIFF, NULL, "", "{\"path\":\"@\",\"diff\":\"@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\"}");
    eb_coalescer_push(f.coalescer, diff);
    flush(&f);
    for (guint i = 0; i < f.chat->messages->len; i++)
        for (const char *at = message(&f, i)->text; (at = strchr(at, '@')) != NULL; at++)
            g_assert_true(g_str_has_prefix(at, "@(n") || strlen(at) < 4);
    g_assert_cmpuint(f.chat->messages->len, >, 8);
    end(&f);
}

static void
test_answers_and_files(void)
{
    Fixture f;
    begin(&f, CHAT, 100, 1);
    f.chat->limits.max_files = 2;
    f.chat->limits.max_file_bytes = 2000;
    g_clear_object(&f.coalescer);
    f.coalescer = eb_coalescer_new(EB_CHAT_TRANSPORT(f.chat));
    g_autofree char *text = g_strnfill(150, 'a');
    EbChatPost *answer = make(EB_CHAT_POST_ANSWER, NULL, text, NULL);
    answer->reply_to = g_strdup("7");
    answer->notify = g_strdup("8");
    eb_coalescer_push(f.coalescer, answer);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 3);
    for (guint i = 0; i < 3; i++)
        g_assert_cmpstr(message(&f, i)->reply_to, ==, "7");
    g_assert_cmpstr(message(&f, 0)->notify, ==, "8");
    g_assert_null(message(&f, 1)->notify);

    EbChatPost *files = make(EB_CHAT_POST_FILE, NULL, "here", NULL);
    files->files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    for (guint i = 0; i < 4; i++) {
        g_autofree char *name = g_strdup_printf("f%u", i);
        g_autofree char *content = g_strnfill(i == 1 ? 3000 : 10, 'f');
        g_autoptr(GBytes) bytes = g_bytes_new(content, strlen(content));
        g_ptr_array_add(files->files, eb_chat_file_new(name, NULL, bytes));
    }
    eb_chat_post_ref(files);
    eb_coalescer_push(f.coalescer, files);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 6);
    g_assert_cmpstr(message(&f, 3)->text, ==, "`f1` (3k bytes) is too large for this chat");
    g_assert_cmpstr(message(&f, 4)->text, ==, "here");
    g_assert_cmpuint(message(&f, 4)->files->len, ==, 2);
    g_assert_cmpuint(message(&f, 5)->files->len, ==, 1);
    end(&f);
    begin(&f, EB_CHAT_CAP_EDIT, 100, 1);
    eb_coalescer_push(f.coalescer, files);
    flush(&f);
    g_assert_cmpuint(f.chat->messages->len, ==, 5);
    g_assert_cmpstr(message(&f, 4)->text, ==, "`f3` (10 bytes) cannot be shown in this chat");
    end(&f);
}

/* Changes of a message wait for the pace; new messages pass them. */
static void
test_new_messages_pass_changes(void)
{
    Fixture f;
    begin(&f, CHAT, 2000, 300);
    tool(&f, "tool-1", "🔧 `read`", "pending", NULL);
    eb_test_run_until(has_messages, &f);
    tool(&f, "tool-1", "🔧 `read`", "completed", NULL);
    say(&f, "text-1", "prose", TRUE);
    push(&f, EB_CHAT_POST_NOTICE, NULL, "notice", NULL);
    flush(&f);
    g_assert_cmpuint(f.chat->calls, ==, 4);
    g_assert_cmpuint(message(&f, 0)->edits, ==, 1);
    g_autofree char *screen = render_chat_screen(f.chat);
    g_assert_cmpstr(screen, ==, "🔧 `read`|prose|notice");
    end(&f);
}

static void
test_plain_chat(void)
{
    Fixture f;
    begin(&f, EB_CHAT_CAP_NONE, 0, 0);
    push(&f, EB_CHAT_POST_GUEST, "guest", "", "{\"state\":\"starting\"}");
    push(&f, EB_CHAT_POST_READY, NULL, "", "{\"agent\":\"a\",\"version\":\"1\"}");
    push(&f, EB_CHAT_POST_PLAN, "plan", "", "{\"entries\":[{\"content\":\"one\"}]}");
    push(&f, EB_CHAT_POST_PLAN, "plan", "", "{\"entries\":[{\"content\":\"two\"}]}");
    say(&f, "text-1", "one ", FALSE);
    say(&f, "text-1", "piece", FALSE);
    tool(&f, "tool-1", "🔧 `read`", "pending", NULL);
    tool(&f, "tool-1", "🔧 `read`", "completed", NULL);
    tool(&f, "tool-1", "🔧 `read` (failed)", "failed", NULL);
    push(&f, EB_CHAT_POST_PERMISSION, NULL, "", "{\"title\":\"x\",\"outcome\":\"rejected\"}");
    assert_screen(&f, "agent `a 1`|Plan:\n`[ ]` one|one piece|🔧 `read`|🔧 `read` (failed)|`x`: refused");
    end(&f);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/coalescer/text-grows", test_text_grows);
    g_test_add_func("/coalescer/text-grows-over-messages", test_text_grows_over_messages);
    g_test_add_func("/coalescer/long-text-is-a-file", test_long_text_is_a_file);
    g_test_add_func("/coalescer/endless-text", test_endless_text);
    g_test_add_func("/coalescer/tools-are-one-message", test_tools_are_one_message);
    g_test_add_func("/coalescer/tools-fill-messages", test_tools_fill_messages);
    g_test_add_func("/coalescer/output-of-failure-is-cut", test_output_of_failure_is_cut);
    g_test_add_func("/coalescer/diff-is-one-message", test_diff_is_one_message);
    g_test_add_func("/coalescer/stages", test_stages);
    g_test_add_func("/coalescer/end-while-waiting", test_end_while_waiting);
    g_test_add_func("/coalescer/over-before-it-is-shown", test_over_before_it_is_shown);
    g_test_add_func("/coalescer/plan", test_plan);
    g_test_add_func("/coalescer/hidden", test_hidden);
    g_test_add_func("/coalescer/prepared-before-it-is-measured", test_prepared_before_it_is_measured);
    g_test_add_func("/coalescer/answers-and-files", test_answers_and_files);
    g_test_add_func("/coalescer/new-messages-pass-changes", test_new_messages_pass_changes);
    g_test_add_func("/coalescer/plain-chat", test_plain_chat);
    return g_test_run();
}
