/* SPDX-License-Identifier: MIT */
#include "tests/component/broker/eb-test-cases.h"

#include <stdlib.h>
#include <string.h>

/* Refuses a corpus that would grow past any memory by nested repeats. */
#define MAX_TEXT (4u << 20)

typedef struct {
    const char *nonce;
    guint16 port;
} Values;

static void expand(const Values *values, const char *text, gsize length, GString *out);

static void
case_free(gpointer data)
{
    EbTestCase *self = data;

    g_free(self->name);
    g_string_free(self->text, TRUE);
    g_string_free(self->send, TRUE);
    g_free(self);
}

/* Length of a "{...}" with the braces inside it counted. */
static gsize
braced(const char *text, gsize length)
{
    guint depth = 0;

    for (gsize i = 0; i < length; i++) {
        depth += text[i] == '{';
        depth -= text[i] == '}';
        if (depth == 0)
            return i + 1;
    }
    g_error("a brace stays open in \"%.*s\"", (int)length, text);
}

static void
expand_named(const Values *values, const char *name, gsize length, GString *out)
{
    static const struct {
        const char *name;
        const char *text;
    } NAMED[] = {
        {"POST", "POST /provider/anthropic/count HTTP/1.1\\r\\nHost: x\\r\\nx-api-key: {NONCE}\\r\\n"},
        {"SECOND", "POST /provider/anthropic/smuggled HTTP/1.1\\r\\nHost: x\\r\\nx-api-key: {NONCE}\\r\\n"
                   "Content-Length: 0\\r\\n\\r\\n"},
    };

    if (length > 7 && strncmp(name, "repeat ", 7) == 0) {
        char *text;
        guint64 n = g_ascii_strtoull(name + 7, &text, 10);

        g_assert_cmpint(*text, ==, ' ');
        text++;
        for (; n > 0 && out->len < MAX_TEXT; n--)
            expand(values, text, length - (gsize)(text - name), out);
        return;
    }
    if (length == 5 && strncmp(name, "NONCE", 5) == 0) {
        g_string_append(out, values->nonce);
        return;
    }
    if (length == 4 && strncmp(name, "PORT", 4) == 0) {
        g_string_append_printf(out, "%u", values->port);
        return;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(NAMED); i++) {
        if (strlen(NAMED[i].name) == length && strncmp(name, NAMED[i].name, length) == 0) {
            expand(values, NAMED[i].text, strlen(NAMED[i].text), out);
            return;
        }
    }
    g_error("no such name: {%.*s}", (int)length, name);
}

static gsize
expand_escape(const char *text, gsize length, GString *out)
{
    static const char FROM[] = "rnt0\\", TO[] = "\r\n\t\0\\";
    const char *known = length > 1 ? strchr(FROM, text[1]) : NULL;

    if (known != NULL && *known != '\0') {
        g_string_append_c(out, TO[known - FROM]);
        return 2;
    }
    g_assert_true(length >= 4 && text[1] == 'x' && g_ascii_isxdigit(text[2]) && g_ascii_isxdigit(text[3]));
    g_string_append_c(out, (char)(g_ascii_xdigit_value(text[2]) * 16 + g_ascii_xdigit_value(text[3])));
    return 4;
}

static void
expand(const Values *values, const char *text, gsize length, GString *out)
{
    for (gsize at = 0; at < length && out->len < MAX_TEXT;) {
        if (text[at] == '\\') {
            at += expand_escape(text + at, length - at, out);
        } else if (text[at] == '{') {
            gsize used = braced(text + at, length - at);

            expand_named(values, text + at + 1, used - 2, out);
            at += used;
        } else {
            g_string_append_c(out, text[at++]);
        }
    }
}

static void
read_expectation(EbTestCase *self, const Values *values, const char *line)
{
    static const struct {
        const char *word;
        EbTestExpectation expectation;
        gboolean number;
    } WORDS[] = {
        {"refuse", EB_TEST_EXPECT_REFUSE, TRUE},     {"one", EB_TEST_EXPECT_ONE, FALSE},
        {"one-then", EB_TEST_EXPECT_ONE_THEN, TRUE}, {"each", EB_TEST_EXPECT_EACH, TRUE},
        {"none", EB_TEST_EXPECT_NONE, FALSE},        {"raw", EB_TEST_EXPECT_RAW, FALSE},
    };
    gsize word = strcspn(line, " ");
    const char *rest = line[word] == ' ' ? line + word + 1 : "";

    for (gsize i = 0; i < G_N_ELEMENTS(WORDS); i++) {
        if (strlen(WORDS[i].word) != word || strncmp(line, WORDS[i].word, word) != 0)
            continue;
        self->expectation = WORDS[i].expectation;
        if (WORDS[i].number) {
            self->number = (guint)g_ascii_strtoull(rest, NULL, 10);
            g_assert_cmpuint(self->number, >, 0);
        } else {
            expand(values, rest, strlen(rest), self->text);
        }
        return;
    }
    g_error("case %s expects what nobody knows: %s", self->name, line);
}

static void
read_file(GPtrArray *cases, const Values *values, const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    EbTestCase *self = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    lines = g_strsplit(text, "\n", -1);
    for (gsize i = 0; lines[i] != NULL; i++) {
        const char *line = lines[i];

        if (line[0] == '\0' || line[0] == '#')
            continue;
        if (g_str_has_prefix(line, "case ")) {
            self = g_new0(EbTestCase, 1);
            self->name = g_strdup(line + 5);
            self->text = g_string_new(NULL);
            self->send = g_string_new(NULL);
            g_ptr_array_add(cases, self);
        } else if (self != NULL && g_str_has_prefix(line, "expect ")) {
            read_expectation(self, values, line + 7);
        } else if (self != NULL && g_str_has_prefix(line, "send ")) {
            expand(values, line + 5, strlen(line + 5), self->send);
        } else {
            g_error("%s:%" G_GSIZE_FORMAT ": not a line of a case: %s", path, i + 1, line);
        }
    }
}

GPtrArray *
eb_test_cases_read(const char *directory, const char *nonce, guint16 port)
{
    const Values values = {nonce, port};
    GPtrArray *cases = g_ptr_array_new_with_free_func(case_free);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name;

    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(directory, name, NULL);

        if (g_str_has_suffix(name, ".cases"))
            read_file(cases, &values, path);
    }
    for (guint i = 0; i < cases->len; i++) {
        EbTestCase *self = cases->pdata[i];

        g_assert_true(g_hash_table_add(names, self->name));
        g_assert_cmpuint(self->send->len, >, 0);
    }
    return cases;
}
