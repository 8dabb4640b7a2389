/* SPDX-License-Identifier: MIT */
#include "core/config/eb-toml.h"
#include "tests/lib/eb-test.h"

#include <string.h>

static EbConfigSection *
read_text(const char *text, gsize length)
{
    g_autoptr(GError) error = NULL;
    EbConfigSection *root = eb_toml_parse(text, length, "a.toml", &error);
    g_assert_no_error(error);
    return root;
}

static void
test_values(void)
{
    const char *text = "top = 'x'\n"
                       "\n"
                       "[session] # a comment with [brackets].a.b.c\n"
                       "memory = \"4GiB\"\r\n"
                       "cpus = 2\n"
                       "on = true\n"
                       "list = [\n  'a',\n  \"b\",\n]\n"
                       "ports = [443, 8443]\n"
                       "ratio = 0.5\n"
                       "long = \"\"\"\na\"\"b\n\"\"\"\n"
                       "[provider.anthropic]\nkind = \"anthropic\"\n"
                       "[[agent.x.files]]\npath = 'p'\n[[agent.x.files]]\npath = 'q'\n";
    g_autoptr(EbConfigSection) root = read_text(text, strlen(text));
    EbConfigSection *session = eb_config_section_get_child(root, "session");
    g_autofree char *memory = eb_config_section_get_string(session, "memory", NULL, NULL);
    g_autofree char *where = eb_config_section_where(session, "cpus");
    g_autofree char *multi = eb_config_section_get_string(session, "long", NULL, NULL);
    g_auto(GStrv) list = eb_config_section_get_strings(session, "list", NULL);

    g_assert_cmpstr(memory, ==, "4GiB");
    g_assert_cmpstr(where, ==, "a.toml:5");
    g_assert_cmpstr(multi, ==, "a\"\"b\n");
    g_assert_cmpuint(g_strv_length(list), ==, 2);
    EbConfigSection *agent = eb_config_section_get_child(root, "agent");
    EbConfigSection *files = eb_config_section_get_child(eb_config_section_get_child(agent, "x"), "files");
    g_assert_nonnull(files);
    g_autofree char *second = eb_config_section_get_string(eb_config_section_get_child(files, "1"), "path", NULL, NULL);
    g_assert_cmpstr(second, ==, "q");
    g_assert_cmpstr(eb_config_section_get_path(eb_config_section_get_child(files, "1")), ==, "agent.x.files.1");
}

static void
test_bom_and_crlf(void)
{
    const char *text = "\xef\xbb\xbf[service]\r\naccount = \"errand\"\r\n";
    g_autoptr(EbConfigSection) root = read_text(text, strlen(text));
    EbConfigSection *service = eb_config_section_get_child(root, "service");
    g_autofree char *account = eb_config_section_get_string(service, "account", NULL, NULL);
    g_autofree char *where = eb_config_section_where(service, "account");

    g_assert_cmpstr(account, ==, "errand");
    g_assert_cmpstr(where, ==, "a.toml:2");
}

typedef struct {
    const char *name;
    const char *text;
    gssize length; /* -1: NUL-terminated */
    const char *says;
} Bad;

static const Bad bad[] = {
    {"nul", "a = 1\nb = \"x\0y\"\n", 16, "a.toml:2:7: a NUL byte"},
    {"utf16-le",
     "\xff\xfe"
     "a\0",
     4, "UTF-16"},
    {"utf16-be", "\xfe\xff\0a", 4, "UTF-16"},
    {"latin1", "a = 1\nb = \"\xe9\"\n", -1, "a.toml:2:6: not UTF-8"},
    {"no-value", "a =\n", -1, "a.toml:1:"},
    {"open-string", "a = \"x\nb = 1\n", -1, "a.toml:1:"},
    {"open-multi", "a = \"\"\"x\nb = 1\n", -1, "a.toml:"},
    {"twice", "a = 1\na = 2\n", -1, "a.toml:2:"},
    {"table-twice", "[a]\n[b]\n[a]\n", -1, "a.toml:3:"},
    {"bare-cr", "a = 1\rb = 2\r", -1, "a.toml:1:"},
    {"control", "a = \"\x01\"\n", -1, "a.toml:1:"},
    {"date", "x = 1\nd = 2024-01-01\n", -1, "a.toml:2:5: d: dates"},
    {"mixed", "l = [1, 'a']\n", -1, "a.toml:1:9: l: a list"},
    {"floats", "l = [0.5]\n", -1, "a list holds"},
    {"nested-list", "l = [['a']]\n", -1, "a list holds"},
    {"escaped-nul", "k = \"a\\u0000b\"\n", -1, "NUL character"},
    {"huge-int", "k = 99999999999999999999\n", -1, "a.toml:1:"},
    {"octal", "k = 010\n", -1, "a.toml:1:"},
};

static void
test_bad(gconstpointer data)
{
    const Bad *row = data;
    gsize length = row->length < 0 ? strlen(row->text) : (gsize)row->length;
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) root = eb_toml_parse(row->text, length, "a.toml", &error);

    g_assert_null(root);
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, row->says);
}

static void
expect_refused(const GString *text, const char *says)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbConfigSection) root = eb_toml_parse(text->str, text->len, "a.toml", &error);

    g_assert_null(root);
    eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, says);
}

static void
repeat(GString *text, const char *what, guint times)
{
    for (guint i = 0; i < times; i++)
        g_string_append(text, what);
}

static void
test_depth(void)
{
    g_autoptr(GString) lists = g_string_new("a = ");
    g_autoptr(GString) keys = g_string_new("a");
    g_autoptr(GString) quoted = g_string_new("[\"a\"");
    g_autoptr(GString) tables = g_string_new("a = ");

    repeat(lists, "[", 100000);
    expect_refused(lists, "nested too deeply");
    repeat(keys, ".a", 200000);
    g_string_append(keys, " = 1\n");
    expect_refused(keys, "too many parts");
    repeat(quoted, " . 'a'", 50000);
    g_string_append(quoted, "]\n");
    expect_refused(quoted, "too many parts");
    repeat(tables, "{a = ", 50000);
    expect_refused(tables, "nested too deeply");
}

static void
test_long(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    repeat(text, "# ten million bytes of nothing much\n", 10 * 1024 * 1024 / 36);
    expect_refused(text, "longer than 1024 KiB");
}

/* Dots and brackets in texts and comments are no depth. */
static void
test_texts_are_no_depth(void)
{
    g_autoptr(GString) text = g_string_new("a = \"");

    repeat(text, "[.", 5000);
    g_string_append(text, "\"\nb = '''");
    repeat(text, "{.\n", 5000);
    g_string_append(text, "''' # ");
    repeat(text, "[.", 5000);
    g_string_append(text, "\nc = \"\\\\\"\nd = \"\"\"x\\\"\"\"\"\n");
    g_autoptr(EbConfigSection) root = read_text(text->str, text->len);
    g_assert_true(eb_config_section_has(root, "d"));
    g_autofree char *where = eb_config_section_where(root, "c");
    g_assert_cmpstr(where, ==, "a.toml:5003");
}

static void
test_many_problems(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < 500; i++)
        g_string_append_printf(text, "k%u = 2024-01-01\n", i);
    g_assert_null(eb_toml_parse(text->str, text->len, "a.toml", &error));
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, EB_TOML_MAX_PROBLEMS + 1);
    g_assert_nonnull(strstr(lines[EB_TOML_MAX_PROBLEMS], "450 more problems"));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/toml/values", test_values);
    g_test_add_func("/toml/bom-and-crlf", test_bom_and_crlf);
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *path = g_strconcat("/toml/bad/", bad[i].name, NULL);
        g_test_add_data_func(path, &bad[i], test_bad);
    }
    g_test_add_func("/toml/depth", test_depth);
    g_test_add_func("/toml/long", test_long);
    g_test_add_func("/toml/texts-are-no-depth", test_texts_are_no_depth);
    g_test_add_func("/toml/many-problems", test_many_problems);
    return g_test_run();
}
