/* SPDX-License-Identifier: MIT */
#include "eb-test.h"

#include <string.h>

static JsonNode *
parse(const char *text, GError **error)
{
    return eb_json_parse(text, strlen(text), NULL, error);
}

static void
assert_refused(const char *text, gsize length, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = eb_json_parse(text, length, NULL, &error);

    if (node != NULL)
        g_error("accepted: %s", text);
    eb_test_assert_error(error, EB_ERROR_INVALID, reason, NULL);
    g_assert_false(eb_json_scan(text, length, NULL, NULL));
}

static void
test_accepts(void)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "-12.5e+3",
        "1E9",
        "\"\"",
        " [ ] ",
        "\t{\"a\":1}\r\n",
        "[1,2,[3,{\"a\":{}}]]",
        "{\"a\":{\"b\":[null,true]},\"c\":\"\"}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "[\"\xe2\x80\xa8\xe2\x80\xa9\"]",
        "{\"a\":1,\"a\":2}",
        "[0.0,10]",
        "123456789012345678901234567890",
        "1e300",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(JsonNode) node = parse(texts[i], &error);

        g_assert_no_error(error);
        g_assert_nonnull(node);
    }
}

static void
test_refuses_syntax(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[",
        "}",
        "]",
        "[}",
        "{]",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:2}",
        "[1 2]",
        "1 2",
        "nul",
        "nulll",
        "True",
        "NaN",
        "Infinity",
        "-",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "0x10",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\",
        "\"\\u",
        "// c\n1",
        "/* c */ 1",
        "var a = 1;",
        "[1]x",
        "\"tab\tin\"",
        "\"line\nin\"",
        "\xef\xbb\xbf{}",
        "{\"a\":1}{\"b\":2}",
        "[\"a\" \"b\"]",
        "{\"a\" 1}",
        "[1:2]",
        "\"\x7f\x01\"",
        "\f1",
        "\v1",
        ",",
        ":",
        "\\u0031",
        "1e400",
        "[-1E999]",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "json.syntax");
}

static void
test_refuses_bytes(void)
{
    static const char *const texts[] = {
        "\"\xff\"", "\"\xc3\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "{\"\x80\":1}", "\xff\xfe",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        assert_refused(texts[i], strlen(texts[i]), "json.utf8");
    assert_refused("\"a\0b\"", 5, "json.utf8");
    assert_refused("{}\0", 3, "json.utf8");
    assert_refused("\0", 1, "json.utf8");
}

static void
test_offset_is_told(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(parse("{\"a\": nope}", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "json.syntax", "byte 6");
}

/* Nesting kills json-glib 1.6 by its recursion; here it is an error. */
static void
test_depth(void)
{
    const EbJsonLimits limits = {.max_bytes = 1024 * 1024, .max_depth = 3};
    const EbJsonLimits beyond = {.max_bytes = 1024 * 1024, .max_depth = G_MAXUINT};
    const gsize deep = 100000;
    g_autoptr(GString) open = g_string_new(NULL);
    g_autoptr(GString) objects = g_string_new(NULL);

    for (gsize i = 0; i < deep; i++) {
        g_string_append_c(open, '[');
        g_string_append(objects, "{\"a\":");
    }
    assert_refused(open->str, open->len, "json.depth");
    assert_refused(objects->str, objects->len, "json.depth");
    for (gsize i = 0; i < deep; i++)
        g_string_append_c(open, ']');
    assert_refused(open->str, open->len, "json.depth");
    g_assert_true(eb_json_scan("[[[]]]", 6, &limits, NULL));
    g_assert_false(eb_json_scan("[[[[]]]]", 8, &limits, NULL));
    g_assert_true(eb_json_scan("[[[]],[[]],{\"a\":{}}]", 20, &limits, NULL));
    /* A caller cannot ask for more than the scanner can hold. */
    g_assert_false(eb_json_scan(open->str, open->len, &beyond, NULL));
}

static void
test_depth_at_hard_limit(void)
{
    const EbJsonLimits limits = {.max_bytes = 1024 * 1024, .max_depth = EB_JSON_MAX_DEPTH};
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) node = NULL;

    for (int i = 0; i < EB_JSON_MAX_DEPTH; i++)
        g_string_append(text, i % 2 == 0 ? "[" : "{\"k\":");
    g_string_append(text, "1");
    for (int i = EB_JSON_MAX_DEPTH - 1; i >= 0; i--)
        g_string_append_c(text, i % 2 == 0 ? ']' : '}');
    node = eb_json_parse(text->str, text->len, &limits, &error);
    /* One level more was opened than allowed by neither loop: it fits exactly. */
    g_assert_no_error(error);
    g_assert_nonnull(node);
}

static void
test_size(void)
{
    const EbJsonLimits limits = {.max_bytes = 6, .max_depth = 3};
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_json_scan("\"1234\"", 6, &limits, NULL));
    g_assert_false(eb_json_scan("\"12345\"", 7, &limits, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "json.size", "7 bytes");
}

static void
test_separators_stay(void)
{
    g_autoptr(JsonNode) node = parse("{\"a\":\"x\xe2\x80\xa8y\xe2\x80\xa9z\\u2028\"}", NULL);

    g_assert_cmpstr(eb_json_get_string(eb_json_node_object(node), "a"), ==, "x\xe2\x80\xa8y\xe2\x80\xa9z\xe2\x80\xa8");
}

/* What JavaScript sends when it cuts a string in the middle of a character. */
static void
test_half_pairs(void)
{
    static const struct {
        const char *text;
        const char *expected;
    } table[] = {
        {"[\"a\\ud83d\"]", "a\xef\xbf\xbd"},
        {"[\"\\ude00b\"]", "\xef\xbf\xbd"
                           "b"},
        {"[\"\\ud83dx\\ude00\"]", "\xef\xbf\xbdx\xef\xbf\xbd"},
        {"[\"\\ud83d\\ud83d\\ude00\"]", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"[\"\\ud83d\\u0041\"]", "\xef\xbf\xbd"
                                 "A"},
        {"[\"\\ud83d\\n\"]", "\xef\xbf\xbd\n"},
        {"[\"a\\u0000b\"]", "a\xef\xbf\xbd"
                            "b"},
        {"[\"\\uD83D\\uDE00\"]", "\xf0\x9f\x98\x80"},
        {"[\"\\\\ud83d\"]", "\\ud83d"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *before = g_strdup(table[i].text);
        g_autoptr(JsonNode) node = parse(table[i].text, &error);

        g_assert_no_error(error);
        g_assert_cmpstr(eb_json_array_string(json_node_get_array(node), 0), ==, table[i].expected);
        g_assert_cmpstr(before, ==, table[i].text);
    }
}

static void
test_unterminated_input(void)
{
    char *exact = g_memdup2("{\"a\":[1,2]}", 11); /* a byte read behind it is a sanitizer's find */
    g_autoptr(JsonNode) node = eb_json_parse(exact, 11, NULL, NULL);

    g_assert_nonnull(node);
    for (gsize cut = 0; cut < 11; cut++) {
        g_autofree char *part = g_memdup2(exact, cut);

        g_assert_false(eb_json_scan(part, cut, NULL, NULL));
    }
    g_free(exact);
}

static void
test_readers(void)
{
    g_autoptr(JsonNode) node = parse("{\"s\":\"t\",\"i\":7,\"d\":2.5,\"b\":true,\"n\":null,\"o\":{\"x\":1},"
                                     "\"a\":[\"e\",{\"y\":2},3]}",
                                     NULL);
    JsonObject *object = eb_json_node_object(node);
    JsonArray *array = eb_json_get_array(object, "a");

    g_assert_cmpstr(eb_json_get_string(object, "s"), ==, "t");
    g_assert_cmpint(eb_json_get_int(object, "i", -1), ==, 7);
    g_assert_cmpfloat(eb_json_get_double(object, "d", 0), ==, 2.5);
    g_assert_cmpfloat(eb_json_get_double(object, "i", 0), ==, 7.0);
    g_assert_true(eb_json_get_bool(object, "b", FALSE));
    g_assert_cmpint(eb_json_get_int(eb_json_get_object(object, "o"), "x", -1), ==, 1);
    g_assert_cmpstr(eb_json_array_string(array, 0), ==, "e");
    g_assert_cmpint(eb_json_get_int(eb_json_array_object(array, 1), "y", -1), ==, 2);
    g_assert_nonnull(eb_json_get_node(object, "n"));
    /* A wrong type, an absent member and no object at all: the fallback, never a critical. */
    g_assert_null(eb_json_get_string(object, "i"));
    g_assert_null(eb_json_get_string(object, "n"));
    g_assert_null(eb_json_get_string(object, "gone"));
    g_assert_null(eb_json_get_string(NULL, "s"));
    g_assert_cmpint(eb_json_get_int(object, "s", -1), ==, -1);
    g_assert_cmpint(eb_json_get_int(object, "o", -1), ==, -1);
    g_assert_cmpfloat(eb_json_get_double(object, "a", 0.5), ==, 0.5);
    g_assert_true(eb_json_get_bool(object, "i", TRUE));
    g_assert_null(eb_json_get_object(object, "a"));
    g_assert_null(eb_json_get_array(object, "o"));
    g_assert_null(eb_json_get_node(NULL, "x"));
    g_assert_null(eb_json_node_object(NULL));
    g_assert_null(eb_json_array_object(array, 0));
    g_assert_null(eb_json_array_object(array, 99));
    g_assert_null(eb_json_array_object(NULL, 0));
    g_assert_null(eb_json_array_string(array, 2));
    g_assert_null(eb_json_array_string(NULL, 0));
}

static void
test_write(void)
{
    g_autoptr(JsonNode) node = parse(" { \"a\" : [ 1 , \"\\u00e9\\n\" ] } ", NULL);
    gsize length = 0;
    g_autofree char *text = eb_json_write(node, &length);

    g_assert_cmpstr(text, ==, "{\"a\":[1,\"\xc3\xa9\\n\"]}");
    g_assert_cmpuint(length, ==, strlen(text));
}

/* json-glib alone writes 1e40 as 1e+40.0. */
static void
test_write_exponents(void)
{
    g_autoptr(JsonNode) node = parse("[1e40,-2E-30,2.0,\"1e+40.0 \\\"e5.0\",true,1e300]", NULL);
    gsize length = 0;
    g_autofree char *text = eb_json_write(node, &length);
    g_autoptr(JsonNode) again = parse(text, NULL);

    g_assert_nonnull(again);
    g_assert_cmpuint(length, ==, strlen(text));
    g_assert_cmpfloat(json_array_get_double_element(json_node_get_array(again), 0), ==, 1e40);
    g_assert_cmpfloat(json_array_get_double_element(json_node_get_array(again), 1), ==, -2e-30);
    g_assert_cmpstr(eb_json_array_string(json_node_get_array(again), 3), ==, "1e+40.0 \"e5.0");
}

/* Whatever bytes come: an answer, and what is accepted survives a round trip. */
static void
test_random_bytes(void)
{
    static const char alphabet[] = "{}[]\",:\\u0019adef.-+Ee tnrl\n\xc3\xa9\xff";

    for (int round = 0; round < 20000; round++) {
        gsize length = (gsize)g_test_rand_int_range(0, 24);
        g_autofree char *text = g_malloc(length + 1);
        g_autoptr(JsonNode) node = NULL;

        for (gsize i = 0; i < length; i++)
            text[i] = alphabet[g_test_rand_int_range(0, sizeof(alphabet) - 1)];
        node = eb_json_parse(text, length, NULL, NULL);
        g_assert_cmpint(node != NULL, ==, eb_json_scan(text, length, NULL, NULL));
        if (node != NULL) {
            g_autofree char *again = eb_json_write(node, NULL);

            g_assert_true(eb_json_scan(again, strlen(again), NULL, NULL));
        }
    }
}

/* What is short as text and huge when it is read. */
static void
test_values(void)
{
    g_autoptr(GString) text = g_string_new("[");

    for (guint i = 0; i < EB_JSON_MAX_VALUES - 2; i++)
        g_string_append(text, "{},");
    g_string_append(text, "{}]");
    g_assert_true(eb_json_scan(text->str, text->len, NULL, NULL));
    g_string_truncate(text, text->len - 1);
    g_string_append(text, ",1]");
    assert_refused(text->str, text->len, "json.values");
    g_string_assign(text, "{\"a\":[");
    for (guint i = 0; i < EB_JSON_MAX_VALUES; i++)
        g_string_append(text, "0,");
    g_string_append(text, "0]}");
    assert_refused(text->str, text->len, "json.values");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/sdk/json/values", test_values);
    g_test_add_func("/sdk/json/accepts", test_accepts);
    g_test_add_func("/sdk/json/refuses-syntax", test_refuses_syntax);
    g_test_add_func("/sdk/json/refuses-bytes", test_refuses_bytes);
    g_test_add_func("/sdk/json/offset-is-told", test_offset_is_told);
    g_test_add_func("/sdk/json/depth", test_depth);
    g_test_add_func("/sdk/json/depth-at-hard-limit", test_depth_at_hard_limit);
    g_test_add_func("/sdk/json/size", test_size);
    g_test_add_func("/sdk/json/separators-stay", test_separators_stay);
    g_test_add_func("/sdk/json/half-pairs", test_half_pairs);
    g_test_add_func("/sdk/json/unterminated-input", test_unterminated_input);
    g_test_add_func("/sdk/json/readers", test_readers);
    g_test_add_func("/sdk/json/write", test_write);
    g_test_add_func("/sdk/json/write-exponents", test_write_exponents);
    g_test_add_func("/sdk/json/random-bytes", test_random_bytes);
    return g_test_run();
}
