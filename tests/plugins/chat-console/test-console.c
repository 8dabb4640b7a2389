/* SPDX-License-Identifier: MIT */
#include "tests/lib/eb-test.h"

#include "console-show.h"
#include "console-text.h"
#include "console-transport.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *in;
    gssize length;
    const char *out;
} Text;

static const Text texts[] = {
    {"plain \xc3\xa4 text\n", -1, "plain \xc3\xa4 text\n"},
    {"a\x1b[31mred\x1b[0m", -1, "a\\x1b[31mred\\x1b[0m"},
    {"\x1b]0;title\x07", -1, "\\x1b]0;title\\x07"},
    {"\xc2\x9b"
     "31m",
     -1, "\\x9b31m"},
    {"a\rb", -1, "a\\x0db"},
    {"a\r\nb", -1, "a\nb"},
    {"\x7f\x08", -1, "\\x7f\\x08"},
    {"bad \xff\xfe", -1, "bad \xef\xbf\xbd\xef\xbf\xbd"},
    {"nul\0x", 5, "nul\xef\xbf\xbdx"},
    {"\xe2\x80\xae"
     "evil",
     -1, "\\u{202e}evil"},
    {"\xe2\x80\xa8", -1, "\\u{2028}"},
    {"\xf3\xa0\x81\x81", -1, "\\u{e0041}"},
    {"join \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", -1, "join \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"},
};

static void
test_clean(void)
{
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *out = console_text_clean(texts[i].in, texts[i].length);
        g_assert_cmpstr(out, ==, texts[i].out);
    }
    g_autofree char *line = console_text_clean_line("a\nb\tc", -1);
    g_assert_cmpstr(line, ==, "a b c");
}

/* Whatever bytes come: nothing but newline and tab is left below a blank, and the result is UTF-8. */
static void
test_clean_random(void)
{
    for (guint round = 0; round < 5000; round++) {
        char bytes[64];
        for (guint i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)g_test_rand_int_range(0, 256);
        g_autofree char *out = console_text_clean(bytes, sizeof bytes);
        g_assert_true(g_utf8_validate(out, -1, NULL));
        for (const char *c = out; *c != '\0'; c = g_utf8_next_char(c)) {
            gunichar u = g_utf8_get_char(c);
            g_assert_true(u == '\n' || u == '\t' || (u >= 0x20 && u != 0x7f && !(u >= 0x80 && u < 0xa0)));
        }
    }
}

static EbChatPost *
make_post(EbChatPostKind kind, const char *text, const char *data)
{
    EbChatPost *post = eb_chat_post_new("main", kind, text);

    if (data != NULL) {
        g_autoptr(JsonNode) node = eb_json_parse(data, strlen(data), NULL, NULL);
        post->data = json_object_ref(eb_json_node_object(node));
    }
    return post;
}

static char *
show(ConsoleShow *self, EbChatPostKind kind, const char *text_in, const char *data, gboolean append, int *fd)
{
    g_autoptr(EbChatPost) post = make_post(kind, text_in, data);
    g_autofree char *before = NULL;

    post->append = append;
    g_autofree char *text = console_show_post(self, post, fd, &before);
    return g_strconcat(before != NULL ? before : "", text, NULL);
}

static void
test_show(void)
{
    g_autoptr(ConsoleShow) self = console_show_new(FALSE);
    int fd = 0;
    g_autofree char *first = show(self, EB_CHAT_POST_TEXT, "Hel", NULL, TRUE, &fd);
    g_autofree char *second = show(self, EB_CHAT_POST_TEXT, "lo", NULL, TRUE, &fd);
    g_assert_cmpstr(first, ==, "Hel");
    g_assert_cmpstr(second, ==, "lo");
    g_assert_cmpint(fd, ==, 1);
    g_autofree char *thought = show(self, EB_CHAT_POST_THOUGHT, "hm", NULL, TRUE, &fd);
    g_assert_cmpstr(thought, ==, "\nhm");
    const char *pending = "{\"id\":\"t1\",\"title\":\"ls \\u001b[2J\",\"status\":\"pending\"}";
    g_autofree char *tool = show(self, EB_CHAT_POST_TOOL, "", pending, FALSE, &fd);
    g_assert_cmpstr(tool, ==, "\n* ls \\x1b[2J [pending]\n");
    g_autofree char *again = show(self, EB_CHAT_POST_TOOL, "", pending, FALSE, &fd);
    g_assert_cmpstr(again, ==, "");
    g_autofree char *done =
        show(self, EB_CHAT_POST_TOOL, "", "{\"id\":\"t1\",\"title\":\"ls\",\"status\":\"completed\"}", FALSE, &fd);
    g_assert_cmpstr(done, ==, "* ls [completed]\n");
    g_autofree char *diff =
        show(self, EB_CHAT_POST_DIFF, "",
             "{\"path\":\"a.c\",\"diff\":\"@@ -1 +1 @@\\n-x\\n+y\\n\",\"added\":1,\"removed\":1}", FALSE, &fd);
    g_assert_cmpstr(diff, ==, "a.c (+1 -1)\n@@ -1 +1 @@\n-x\n+y\n");
    g_autofree char *error = show(self, EB_CHAT_POST_ERROR, "no", NULL, FALSE, &fd);
    g_assert_cmpstr(error, ==, "errand-box: no\n");
    g_assert_cmpint(fd, ==, 2);
}

static void
test_show_color(void)
{
    g_autofree char *diff = console_text_diff("+a\n-b\n c\n", TRUE);
    g_autofree char *dim = console_text_style("a\n\nb", CONSOLE_DIM, TRUE);

    g_assert_cmpstr(diff, ==, "\033[32m+a\033[0m\n\033[31m-b\033[0m\n c\n");
    g_assert_cmpstr(dim, ==, "\033[2ma\033[0m\n\n\033[2mb\033[0m");
}

static void
test_json(void)
{
    g_autoptr(EbChatPost) post = make_post(EB_CHAT_POST_READY, "", "{\"session\":\"abc\",\"event\":\"forged\"}");
    g_autofree char *line = console_show_json(post, NULL);

    g_assert_true(g_str_has_suffix(line, "}\n"));
    g_assert_cmpint(strchr(line, '\n') - line, ==, strlen(line) - 1);
    g_autoptr(JsonNode) node = eb_json_parse(line, strlen(line), NULL, NULL);
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(node), "event"), ==, "ready");
    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(node), "session"), ==, "abc");
}

static EbChatQuestion *
make_question(void)
{
    EbChatQuestion *question = eb_chat_question_new("main", "Run rm?");

    eb_chat_question_add_choice(question, "always", "Always", "allow_always");
    eb_chat_question_add_choice(question, "once", "Allow", "allow_once");
    eb_chat_question_add_choice(question, "no", "Reject", "reject_once");
    return question;
}

static void
test_choose(void)
{
    g_autoptr(EbChatQuestion) question = make_question();

    g_assert_cmpstr(console_choose(question, "1")->id, ==, "always");
    g_assert_cmpstr(console_choose(question, " 3 ")->id, ==, "no");
    g_assert_cmpstr(console_choose(question, "once")->id, ==, "once");
    g_assert_cmpstr(console_choose(question, "REJECT")->id, ==, "no");
    g_assert_null(console_choose(question, ""));
    g_assert_null(console_choose(question, "0"));
    g_assert_null(console_choose(question, "4"));
    g_assert_null(console_choose(question, "99999999999999999999"));
    g_assert_cmpstr(console_choose_kind(question, "allow")->id, ==, "once");
    g_assert_cmpstr(console_choose_kind(question, "reject")->id, ==, "no");
}

/* What is not the agent's to ask has another name: a script that allows what its agent asks for is not asked for more. */
static void
test_json_question(void)
{
    g_autoptr(EbChatQuestion) question = make_question();
    g_autofree char *permission = console_show_json_question(question, "q1");
    question->standing = TRUE;
    g_autofree char *standing = console_show_json_question(question, "q2");

    g_assert_nonnull(strstr(permission, "\"event\":\"permission\",\"id\":\"q1\""));
    g_assert_nonnull(strstr(standing, "\"event\":\"question\",\"id\":\"q2\""));
}

/* --- questions: answers come through a pty or a pipe --- */

typedef struct {
    EbChatConsoleTransport *transport;
    int far; /* what a person or a program types into */
    int near;
} Terminal;

static void
open_terminal(Terminal *terminal, gboolean pty, gboolean json, ConsolePolicy policy)
{
    ConsoleSettings settings = {.json = json, .policy = policy, .interactive = pty};

    if (pty) {
        terminal->far = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        g_assert_cmpint(grantpt(terminal->far), ==, 0);
        g_assert_cmpint(unlockpt(terminal->far), ==, 0);
        terminal->near = open(ptsname(terminal->far), O_RDWR | O_NOCTTY | O_CLOEXEC);
        g_assert_cmpint(isatty(terminal->near), ==, 1);
    } else {
        int pipes[2];
        g_assert_cmpint(pipe2(pipes, O_CLOEXEC), ==, 0);
        terminal->near = pipes[0];
        terminal->far = pipes[1];
    }
    settings.input = terminal->near;
    terminal->transport = eb_chat_console_transport_new(&settings);
}

static void
close_terminal(Terminal *terminal)
{
    g_object_unref(terminal->transport);
    if (terminal->far >= 0)
        close(terminal->far);
    close(terminal->near);
}

static void
type(Terminal *terminal, const char *text)
{
    g_assert_cmpint(write(terminal->far, text, strlen(text)), ==, strlen(text));
}

static char *
ask_this(Terminal *terminal, EbChatQuestion *question, guint timeout_ms, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_chat_transport_ask_async(EB_CHAT_TRANSPORT(terminal->transport), question, timeout_ms, NULL,
                                eb_test_result_ready, &done);
    return eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(terminal->transport), eb_test_result_wait(&done), NULL,
                                        error);
}

static char *
ask(Terminal *terminal, guint timeout_ms, GError **error)
{
    g_autoptr(EbChatQuestion) question = make_question();

    return ask_this(terminal, question, timeout_ms, error);
}

static void
test_ask_pty(void)
{
    Terminal terminal;

    open_terminal(&terminal, TRUE, FALSE, CONSOLE_ASK);
    type(&terminal, "what?\n\n2\n3\n");
    g_autofree char *first = ask(&terminal, 0, NULL);
    g_autofree char *second = ask(&terminal, 0, NULL);
    g_assert_cmpstr(first, ==, "once");
    g_assert_cmpstr(second, ==, "no");
    type(&terminal, "\004");
    g_autofree char *ended = ask(&terminal, 0, NULL);
    g_assert_cmpstr(ended, ==, "no");
    close_terminal(&terminal);
}

static void
test_ask_no_terminal(void)
{
    Terminal terminal;

    open_terminal(&terminal, FALSE, FALSE, CONSOLE_ASK);
    type(&terminal, "1\n");
    g_autofree char *choice = ask(&terminal, 0, NULL);
    g_assert_cmpstr(choice, ==, "no");
    close_terminal(&terminal);
    open_terminal(&terminal, FALSE, FALSE, CONSOLE_ALLOW);
    g_autofree char *allowed = ask(&terminal, 0, NULL);
    g_assert_cmpstr(allowed, ==, "once");
    g_autoptr(EbChatQuestion) standing = make_question();
    standing->standing = TRUE;
    g_autofree char *refused = ask_this(&terminal, standing, 0, NULL);
    g_assert_cmpstr(refused, ==, "no");
    close_terminal(&terminal);
}

static void
test_ask_timeout_and_cancel(void)
{
    Terminal terminal;
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(EbChatQuestion) question = make_question();
    g_auto(EbTestResult) done = {0};

    open_terminal(&terminal, TRUE, FALSE, CONSOLE_ASK);
    g_assert_null(ask(&terminal, 20, &error));
    eb_test_assert_error(error, EB_ERROR_TIMEOUT, NULL, NULL);
    g_clear_error(&error);
    eb_chat_transport_ask_async(EB_CHAT_TRANSPORT(terminal.transport), question, 0, cancellable, eb_test_result_ready,
                                &done);
    g_cancellable_cancel(cancellable);
    g_assert_null(
        eb_chat_transport_ask_finish(EB_CHAT_TRANSPORT(terminal.transport), eb_test_result_wait(&done), NULL, &error));
    eb_test_assert_error(error, EB_ERROR_CANCELLED, NULL, NULL);
    close_terminal(&terminal);
}

static void
test_ask_json(void)
{
    Terminal terminal;

    open_terminal(&terminal, FALSE, TRUE, CONSOLE_ASK);
    type(&terminal,
         "nonsense\n{\"permission\":\"q9\",\"option\":\"no\"}\n{\"permission\":\"q1\",\"option\":\"maybe\"}\n"
         "[[[[\n{\"permission\":\"q1\",\"option\":\"always\"}\n");
    g_autofree char *choice = ask(&terminal, 0, NULL);
    g_assert_cmpstr(choice, ==, "always");
    close(terminal.far);
    terminal.far = -1;
    g_autofree char *ended = ask(&terminal, 0, NULL);
    g_assert_cmpstr(ended, ==, "no");
    close_terminal(&terminal);
}

/* A line far too long is thrown away; the next one counts. */
static void
test_ask_long_line(void)
{
    Terminal terminal;
    g_autoptr(GString) line = g_string_new(NULL);

    open_terminal(&terminal, FALSE, TRUE, CONSOLE_ASK);
    g_assert_cmpint(fcntl(terminal.far, F_SETPIPE_SZ, 1024 * 1024), >, 0);
    for (guint i = 0; i < 200000; i++)
        g_string_append_c(line, 'x');
    g_string_append(line, "\n{\"permission\":\"q1\",\"option\":\"once\"}\n");
    type(&terminal, line->str);
    g_autofree char *choice = ask(&terminal, 0, NULL);
    g_assert_cmpstr(choice, ==, "once");
    close_terminal(&terminal);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/console/json-question", test_json_question);
    g_test_add_func("/console/clean", test_clean);
    g_test_add_func("/console/clean-random", test_clean_random);
    g_test_add_func("/console/show", test_show);
    g_test_add_func("/console/show-color", test_show_color);
    g_test_add_func("/console/json", test_json);
    g_test_add_func("/console/choose", test_choose);
    g_test_add_func("/console/ask-pty", test_ask_pty);
    g_test_add_func("/console/ask-no-terminal", test_ask_no_terminal);
    g_test_add_func("/console/ask-timeout-and-cancel", test_ask_timeout_and_cancel);
    g_test_add_func("/console/ask-json", test_ask_json);
    g_test_add_func("/console/ask-long-line", test_ask_long_line);
    return g_test_run();
}
