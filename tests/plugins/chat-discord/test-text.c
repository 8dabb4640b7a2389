/* SPDX-License-Identifier: MIT */
#include "discord-clean.h"
#include "discord-text.h"
#include "eb-test.h"

#include <string.h>

#define Z DISCORD_ZWSP

typedef struct {
    const char *text, *wanted;
} Case;

static void
check(const Case *cases, gsize n, char *(*function)(const char *))
{
    for (gsize i = 0; i < n; i++) {
        g_autofree char *got = function(cases[i].text);
        g_autofree char *again = function == discord_text_escape ? NULL : function(got);
        g_assert_cmpstr(got, ==, cases[i].wanted);
        if (again != NULL)
            g_assert_cmpstr(again, ==, got);
    }
}

static void
test_characters(void)
{
    static const Case cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a\tb\nc", "a\tb\nc"},
        {"a\x01\x02\x7f"
         "b",
         "ab"},
        {"10%\r20%\r\ndone\r", "10%\n20%\ndone\n"},
        {"bad \xff\xfe bytes", "bad \xef\xbf\xbd\xef\xbf\xbd bytes"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\x1b[1;31mred\x1b[0m", "red"},
        {"\x1b[?25l\x1b[2Jx", "x"},
        {"\x1b]0;title\x07"
         "x",
         "x"},
        {"\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"},
        {"\x1b]never ends, so nothing of it is lost", "never ends, so nothing of it is lost"},
        {"\x1bPq\x1b\\x\x1b(Bz\x1b"
         "cy",
         "xzy"},
        {"\xc2\x9b"
         "31mred",
         "red"},
        {"\x1b", ""},
        {"\x1b\x1b[[31m", "31m"},
        {"a\xe2\x80\xa8"
         "b\xe2\x80\xa9"
         "c\xc2\x85"
         "d\v"
         "e",
         "a\nb\nc\nd\ne"},
        /* bidi */
        {"abc\xe2\x80\xae"
         "fed\xe2\x80\xac",
         "abc{U+202E}fed"},
        {"\xe2\x81\xa7x\xe2\x81\xa9 \xe2\x81\xa8y\xe2\x81\xa9", "{U+2067}x y"},
        {"a\xe2\x80\x8f"
         "b",
         "ab"},
        {"\xd7\xa9\xe2\x80\x8f!", "\xd7\xa9\xe2\x80\x8f!"},
        /* invisible */
        {"a\xe2\x80\x8b\xef\xbb\xbf\xc2\xad\xe2\x81\xa0\xe3\x85\xa4"
         "b",
         "ab"},
        {"x\xf3\xa0\x81\x81\xf3\xa0\x81\x82y", "xy"},
        {"a\xef\xb8\x8f", "a"},
        {"a\xe2\x80\x8d"
         "b",
         "ab"},
        /* of use */
        {"\xe2\x9d\xa4\xef\xb8\x8f", "\xe2\x9d\xa4\xef\xb8\x8f"},
        {"1\xef\xb8\x8f\xe2\x83\xa3", "1\xef\xb8\x8f\xe2\x83\xa3"},
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
         "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"},
        {"\xf0\x9f\x8f\xb3\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x8c\x88",
         "\xf0\x9f\x8f\xb3\xef\xb8\x8f\xe2\x80\x8d\xf0\x9f\x8c\x88"},
        {"\xd9\x86\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "\xd9\x86\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae"},
        {"\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7", "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe0\xa4\xb7"},
        /* the flag of Scotland, and letters smuggled behind a flag */
        {"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2\xf3\xa0\x81\xb3\xf3\xa0\x81\xa3\xf3\xa0\x81\xb4\xf3\xa0\x81"
         "\xbf",
         "\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xa2\xf3\xa0\x81\xb3\xf3\xa0\x81\xa3\xf3\xa0\x81\xb4\xf3\xa0\x81"
         "\xbf"},
        {"\xf0\x9f\x8f\xb4\xf3\xa0\x81\xa7\xf3\xa0\x81\xbf", "\xf0\x9f\x8f\xb4"},
    };
    g_autoptr(GString) marks = g_string_new("a");
    g_autofree char *capped = NULL;

    check(cases, G_N_ELEMENTS(cases), discord_clean);
    check(cases, G_N_ELEMENTS(cases), discord_text_prepare);
    for (guint i = 0; i < 1000; i++)
        g_string_append(marks, "\xcc\x81");
    capped = discord_clean(marks->str);
    g_assert_cmpint(g_utf8_strlen(capped, -1), ==, 31);
}

static void
test_mentions(void)
{
    static const Case cases[] = {
        {"@everyone", "@" Z "everyone"},
        {"hi @here!", "hi @" Z "here!"},
        {"@Everyone @HERE", "@" Z "Everyone @" Z "HERE"},
        {"@" Z "everyone", "@" Z "everyone"},
        {"@\xe2\x81\xa0"
         "everyone",
         "@" Z "everyone"},
        {"@\xef\xbd\x85veryone", "@" Z "\xef\xbd\x85veryone"},
        {"\xef\xbc\xa0"
         "everyone \xef\xb9\xab"
         "here",
         "\xef\xbc\xa0" Z "everyone \xef\xb9\xab" Z "here"},
        {"<@123> <@!123> <@&123>", "<@" Z "123> <@" Z "!123> <@" Z "&123>"},
        {"`@everyone <@1>`", "`@" Z "everyone <@" Z "1>`"},
        {"```\n@everyone\n<@&1>\n```", "```\n@" Z "everyone\n<@" Z "&1>\n```"},
        {"</stop:123> </a b c:1>", "</" Z "stop:123>"},
        {"a@b.org @ann <@x> <#123> <t:1:R> <:x:1> </div> </x:y>", NULL},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *got = discord_text_prepare(cases[i].text);
        g_autofree char *again = discord_text_prepare(got);
        if (strstr(cases[i].text, "</stop") != NULL)
            g_assert_cmpstr(got, ==, "<" Z "/stop:123> <" Z "/a b c:1>");
        else
            g_assert_cmpstr(got, ==, cases[i].wanted != NULL ? cases[i].wanted : cases[i].text);
        g_assert_cmpstr(again, ==, got);
    }
}

static void
test_links(void)
{
    static const Case cases[] = {
        {"[bank](https://evil.example)", "bank (<https://evil.example>)"},
        {"see [a](http://x) and [b](http://y).", "see a (<http://x>) and b (<http://y>)."},
        {"[https://x](https://x)", "<https://x>"},
        {"[](https://x)", "<https://x>"},
        {"[<u://q> f](https://x)", "<u://q> f (<https://x>)"},
        {"[x]: [](https://x)", "[x]: (<https://x>)"},
        {"``[` \\` [x](http://y)", "\\`\\`[` \\` x (<http://y>)"},
        {"![pic](https://x/p.png)", "pic (<https://x/p.png>)"},
        {"[![i](https://i)](https://t)", "i (<https://i>) (<https://t>)"},
        {"[a [b] c](https://x)", "a [b] c (<https://x>)"},
        {"[a ] b](https://x)", "[a ] b]\\(https://x)"},
        {"[a](<https://x/a b>)", "a (<https://x/a%20b>)"},
        {"[a](https://x/(b)c)", "a (<https://x/(b)c>)"},
        {"[a](https://x \"the [title](http://z)\")", "a (<https://x> \"the (title)(http://z)\")"},
        {"[a]( https://x 'one\ntwo' )", "a (<https://x> \"one two\")"},
        {"[two\nlines](https://x)", "two lines (<https://x>)"},
        {"[a](HTTPS\\://x)", "a (<HTTPS://x>)"},
        {"[a](mailto:x@y)", "a (<mailto:x@y>)"},
        {"[a](https://x/@everyone)", "a (<https://x/%40everyone>)"},
        {"[`code`](https://x)", "`code` (<https://x>)"},
        {"[**b**](https://x)", "**b** (<https://x>)"},
        {"[a](https://x", "[a]\\(https://x"},
        {"[a][r] [r][] [r]\n\n[r]: https://x \"t\"", "a (<https://x>) r (<https://x>) [r]\n\n[r]: https://x \"t\""},
        {"[a][ R  r ]\n\n[r r]: <https://x>", "a (<https://x>)\n\n[r r]: <https://x>"},
        {"[[[[[[x](u://1)](u://2)](u://3)](u://4)](u://5)](u://6)",
         "x (<u://1>) (<u://2>) (<u://3>) (<u://4>) (<u://5>) (<u://6>)"},
        /* what is no link, or shows where it leads */
        {"[a](b) f[i](x) [a](./b.md) [a] (https://x)", "[a](b) f[i](x) [a](./b.md) [a] (https://x)"},
        {"[src/main.c](src/main.c:12)", "[src/main.c]\\(src/main.c:12)"},
        {"[ ] todo [x] done", "[ ] todo [x] done"},
        {"\\[a](https://x)", "\\[a]\\(https://x)"},
        {"<https://x> https://y", "<https://x> https://y"},
        {"[a][nowhere]", "[a][nowhere]"},
        /* code */
        {"`[a](https://x)`", "`[a]" Z "(https://x)`"},
        {"``[a](https://x) ` b``", "``[a]" Z "(https://x) ` b``"},
        {"```md\n[a](https://x)\n```\n[b](https://y)", "```md\n[a](https://x)\n```\nb (<https://y>)"},
        {"~~~\n[a](https://x)\n~~~\n", "```\n[a](https://x)\n```\n"},
        {"~~~ [a](https://x)\nx\n~~~\n", "``` [a]" Z "(https://x)\nx\n```\n"},
        {"> ```\n> [a](https://x)\n> ```\n", "> ```\n> [a]" Z "(https://x)\n> ```\n"},
        {"> ```\n> x\n[a](https://x)", "> ```\n> x\n> ```\na (<https://x>)"},
        {"```\nnot [closed](https://x)", "```\nnot [closed](https://x)"},
    };

    check(cases, G_N_ELEMENTS(cases), discord_text_prepare);
}

/* Where Discord and Markdown would not agree on what is code. */
static void
test_backticks(void)
{
    static const Case cases[] = {
        {"a ` b [x](https://y)", "a \\` b x (<https://y>)"},
        {"`` a ` b", "\\`\\` a \\` b"},
        {"`one\ntwo`", "`one\ntwo`"},
        {"`one\n\ntwo`", "\\`one\n\ntwo\\`"},
        {"use ```ls``` here", "use `ls` here"},
        {"open ``` here\n```\ncode\n```\n", "open \\`\\`\\` here\n```\ncode\n```\n"},
        {"```\necho \"```\"\n```\n", "```\necho \"`" Z "`" Z "`\"\n```\n"},
        {"````\n```\nx\n```\n````\n", "```\n`" Z "`" Z "`\nx\n`" Z "`" Z "`\n```\n"},
        {"```\n```\nafter", "```\n" Z "\n```\nafter"},
        {"```sh\n\n```\nafter", "```sh\n" Z "\n```\nafter"},
        {"~~~~\n~~~\n~~~~\n", "```\n~~~\n```\n"},
        {"~~~`js\n```\n~~~\n", "```js\n`" Z "`" Z "`\n```\n"},
        {"- ```sh\n  ls\n  ```\n", "- ```sh\n  ls\n  ```\n"},
        {"12. ~~~\n    ls\n    ~~~\n", "12. ```\n    ls\n    ```\n"},
        {"> ~~~~\n> ```\n> ~~~~\n", "> ```\n> `" Z "`" Z "`\n> ```\n"},
        {"-```x\n", "-\\`\\`\\`x\n"},
        {"a ~~~ b", "a \\~\\~\\~ b"},
        {"~~struck~~", "~~struck~~"},
        {"[~~~](https://x)", "\\~\\~\\~ (<https://x>)"},
        {"- item\n  ```js\n  x[0](\"y:z\")\n  ```\n", "- item\n  ```js\n  x[0](\"y:z\")\n  ```\n"},
    };

    check(cases, G_N_ELEMENTS(cases), discord_text_prepare);
}

static void
test_escape(void)
{
    static const Case cases[] = {
        {"plain text", "plain text"},
        {"*b* _i_ ~s~ `c` ||x||", "\\*b\\* \\_i\\_ \\~s\\~ \\`c\\` \\|\\|x\\|\\|"},
        {"# h\n- l\n+ l\n1. n 2.5", "\\# h\n\\- l\n\\+ l\n1\\. n 2.5"},
        {"a-b #c", "a-b #c"},
        {"[a](https://x)", "\\[a\\]\\(https\\://x\\)"},
        {"<@1> @everyone </a:1>", "\\<@" Z "1\\> @" Z "everyone \\</a\\:1\\>"},
        {"\x1b[1mx\x1b[0m", "x"},
    };

    check(cases, G_N_ELEMENTS(cases), discord_text_escape);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *prepared = discord_text_prepare(cases[i].wanted);
        g_assert_cmpstr(prepared, ==, cases[i].wanted);
    }
}

static void
test_title(void)
{
    static const Case cases[] = {
        {"fix the parser", "fix the parser"},
        {"  two\n\n lines\t", "two lines"},
        {"", "untitled"},
        {" \n\xe2\x80\x8b", "untitled"},
    };
    g_autofree char *many = g_strnfill(300, 'x');
    g_autofree char *cut = discord_text_title(many);
    g_autoptr(GString) faces = g_string_new(NULL);
    g_autofree char *cut_faces = NULL;

    check(cases, G_N_ELEMENTS(cases), discord_text_title);
    g_assert_cmpint(g_utf8_strlen(cut, -1), ==, 100);
    g_assert_true(g_str_has_suffix(cut, "x…"));
    for (guint i = 0; i < 90; i++)
        g_string_append(faces, "\xf0\x9f\x91\xa9\xf0\x9f\x8f\xbd\xe2\x80\x8d\xf0\x9f\x94\xac");
    cut_faces = discord_text_title(faces->str);
    g_assert_cmpint(g_utf8_strlen(cut_faces, -1), ==, 14 * 4 + 1);
}

static void
test_cut(void)
{
    static const struct {
        const char *text;
        guint units;
        const char *wanted;
    } cases[] = {
        {"abc", 3, "abc"},
        {"abcd", 3, "ab…"},
        {"ab cd", 4, "ab…"},
        {"", 1, ""},
        {"ab", 1, "…"},
        {"e\xcc\x81"
         "e\xcc\x81",
         3, "e\xcc\x81…"},
        {"e\xcc\x81"
         "e\xcc\x81",
         2, "…"},
        {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7", 7, "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa…"},
        {"\xf0\x9f\x98\x80\xf0\x9f\x98\x80", 3, "\xf0\x9f\x98\x80…"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *cut = discord_clean_cut(cases[i].text, cases[i].units);
        g_assert_cmpstr(cut, ==, cases[i].wanted);
    }
}

/* Random texts of what matters: a second look changes nothing, and nothing is left that could ping. */
static void
test_random(void)
{
    static const char *const parts[] = {"[",
                                        "]",
                                        "(",
                                        ")",
                                        "<",
                                        ">",
                                        "`",
                                        "``",
                                        "```",
                                        "~~~",
                                        "\n",
                                        "\n\n",
                                        " ",
                                        "http://x",
                                        "a",
                                        "@everyone",
                                        "<@1>",
                                        "\\",
                                        "!",
                                        "[r]: u://v",
                                        "[r]",
                                        "\"",
                                        "> ",
                                        "]( ",
                                        "](http://y)",
                                        ":",
                                        "\t",
                                        Z,
                                        "\xe2\x80\x8d",
                                        "\xf0\x9f\x91\xa9",
                                        "\xef\xb8\x8f",
                                        "\x1b[",
                                        "\xef\xbc\xa0",
                                        "</a:1>",
                                        "'",
                                        "\r",
                                        "#",
                                        "\xcc\x81"};

    /* Found by what follows: the title of a definition ends on its line only once a link in it is written out. */
    static const char *const found[] = {
        "[r]: u://v#~~~ \"[r][r]```[r][r]: u://vhttp://y[r](http://y~~~\n\n\n\n)#\"\314\201#!`",
        "[r]: u://v#~~~ \"[r](http://y<@1>\342\200\215```(\\\n)\"#[r][r]\342\200\215!]\342\200\215\314\201\\"};

    for (gsize i = 0; i < G_N_ELEMENTS(found); i++) {
        g_autofree char *first = discord_text_prepare(found[i]);
        g_autofree char *again = discord_text_prepare(first);
        g_assert_cmpstr(again, ==, first);
    }
    for (guint round = 0; round < 200000; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *once = NULL;
        g_autofree char *twice = NULL;
        const gint n = g_test_rand_int_range(1, 24);
        for (gint i = 0; i < n; i++)
            g_string_append(text, parts[g_test_rand_int_range(0, G_N_ELEMENTS(parts))]);
        once = discord_text_prepare(text->str);
        twice = discord_text_prepare(once);
        if (strcmp(once, twice) != 0)
            g_test_message("of \"%s\"", text->str);
        g_assert_cmpstr(twice, ==, once);
        g_assert_null(strstr(once, "@everyone"));
        g_assert_null(strstr(once, "<@1"));
        g_assert_null(strstr(once, "</a:1"));
        g_assert_true(g_utf8_validate(once, -1, NULL));
    }
}

/* The worst texts there are take no longer than others of their length: the test's time limit is the bound. */
static void
test_hostile_sizes(void)
{
    static const char *const units[] = {"[",        "[](", "](",    "`a``b", "[a](http://x", "<a:", "> ",
                                        "[[a]][r]", "\\",  "~~~\n", "```\n", "[a\n",         "<@",  "[x](u://y)"};

    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *got = NULL;
        while (text->len < 256 * 1024)
            g_string_append(text, units[i]);
        got = discord_text_prepare(text->str);
        g_assert_cmpuint(strlen(got), <=, 4 * text->len + 64);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/text/characters", test_characters);
    g_test_add_func("/discord/text/mentions", test_mentions);
    g_test_add_func("/discord/text/links", test_links);
    g_test_add_func("/discord/text/backticks", test_backticks);
    g_test_add_func("/discord/text/escape", test_escape);
    g_test_add_func("/discord/text/title", test_title);
    g_test_add_func("/discord/text/cut", test_cut);
    g_test_add_func("/discord/text/random", test_random);
    g_test_add_func("/discord/text/hostile-sizes", test_hostile_sizes);
    return g_test_run();
}
