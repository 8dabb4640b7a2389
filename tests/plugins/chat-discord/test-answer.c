/* SPDX-License-Identifier: MIT */
/* What answers say about limits and errors, and what uploads look like. */
#include <string.h>

#include "discord-answer.h"
#include "discord-multipart.h"
#include "eb-test.h"

/* @headers: "Name: value\n..." */
static DiscordAnswer *
parse(guint status, const char *headers, const char *body)
{
    SoupMessageHeaders *list = soup_message_headers_new(SOUP_MESSAGE_HEADERS_RESPONSE);
    g_auto(GStrv) lines = g_strsplit(headers, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(lines[i], ": ", 2);
        if (parts[0] != NULL && parts[1] != NULL)
            soup_message_headers_append(list, parts[0], parts[1]);
    }
    DiscordAnswer *answer = discord_answer_parse(status, list, body, strlen(body));
    soup_message_headers_unref(list);
    return answer;
}

static void
test_headers(void)
{
    g_autoptr(DiscordAnswer) answer = parse(200,
                                            "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 3\n"
                                            "X-RateLimit-Reset: 1470173023.123\nX-RateLimit-Reset-After: 4.998\n"
                                            "X-RateLimit-Bucket: abcd1234",
                                            "{\"id\":\"1\"}");
    g_assert_cmpstr(answer->bucket, ==, "abcd1234");
    g_assert_cmpint(answer->remaining, ==, 3);
    g_assert_cmpint(answer->reset_after_us, ==, 4998000);
    g_assert_cmpint(answer->retry_after_us, ==, -1);
    g_assert_cmpint(answer->scope, ==, DISCORD_SCOPE_NONE);
    g_assert_false(answer->edge);
    g_assert_false(answer->empty);
    g_assert_nonnull(answer->node);
}

static void
test_waits(void)
{
    static const struct {
        const char *headers;
        const char *body;
        gint64 retry_us;
        DiscordScope scope;
        gboolean edge;
    } cases[] = {
        {"Retry-After: 65", "{\"retry_after\":64.57}", 65000000, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: 64", "{\"retry_after\":64.57}", 64570000, DISCORD_SCOPE_USER, FALSE},
        {"", "{\"retry_after\":0.0001}", 100, DISCORD_SCOPE_USER, FALSE},
        {"", "{\"retry_after\":7}", 7000000, DISCORD_SCOPE_USER, FALSE},
        {"X-RateLimit-Scope: global", "{}", -1, DISCORD_SCOPE_GLOBAL, FALSE},
        {"X-RateLimit-Global: true", "{}", -1, DISCORD_SCOPE_GLOBAL, FALSE},
        {"", "{\"global\":true}", -1, DISCORD_SCOPE_GLOBAL, FALSE},
        {"X-RateLimit-Scope: shared", "{\"global\":false}", -1, DISCORD_SCOPE_SHARED, FALSE},
        {"Retry-After: 30", "<html>", 30000000, DISCORD_SCOPE_USER, TRUE},
        {"", "", -1, DISCORD_SCOPE_USER, TRUE},
        {"", "[]", -1, DISCORD_SCOPE_USER, TRUE},
        {"", "\"slow down\"", -1, DISCORD_SCOPE_USER, TRUE},
        /* what is no number, or none to believe */
        {"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT", "{}", -1, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: -5", "{\"retry_after\":-5}", -1, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: nan", "{\"retry_after\":\"5\"}", -1, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: inf", "{\"retry_after\":null}", -1, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: 5s", "{\"retry_after\":[1]}", -1, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: 1e300", "{}", DISCORD_ANSWER_MAX_WAIT_US, DISCORD_SCOPE_USER, FALSE},
        {"", "{\"retry_after\":1e300}", DISCORD_ANSWER_MAX_WAIT_US, DISCORD_SCOPE_USER, FALSE},
        {"Retry-After: 999999", "{}", DISCORD_ANSWER_MAX_WAIT_US, DISCORD_SCOPE_USER, FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%u: %s | %s", i, cases[i].headers, cases[i].body);
        g_autoptr(DiscordAnswer) answer = parse(429, cases[i].headers, cases[i].body);
        g_assert_cmpint(answer->retry_after_us, ==, cases[i].retry_us);
        g_assert_cmpint(answer->scope, ==, cases[i].scope);
        g_assert_cmpint(answer->edge, ==, cases[i].edge);
    }
}

/* Only a refusal that is not the API's own is one of what stands before it. */
static void
test_edge(void)
{
    static const struct {
        guint status;
        const char *body;
        gboolean edge;
    } cases[] = {
        {403, "<html>Access denied | Cloudflare</html>", TRUE},
        {403, "{\"code\":50001,\"message\":\"Missing Access\"}", FALSE},
        {403, "{\"code\":40333,\"message\":\"internal network error\"}", FALSE},
        {404, "<html>", FALSE},
        {502, "<html>", FALSE},
        {200, "<html>", FALSE},
        {401, "", FALSE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DiscordAnswer) answer = parse(cases[i].status, "", cases[i].body);
        g_assert_cmpint(answer->edge, ==, cases[i].edge);
        g_assert_cmpint(answer->scope, ==, DISCORD_SCOPE_NONE);
    }
}

static void
test_counts(void)
{
    static const char *const odd[] = {"-1", "+1", "1.0", "", " 1", "x", "99999999999999999999"};
    for (guint i = 0; i < G_N_ELEMENTS(odd); i++) {
        g_autofree char *headers = g_strdup_printf("X-RateLimit-Remaining: %s", odd[i]);
        g_autoptr(DiscordAnswer) answer = parse(200, headers, "{}");
        g_assert_cmpint(answer->remaining, ==, -1);
    }
    g_autofree char *long_bucket = g_strnfill(200, 'a');
    g_autofree char *headers = g_strdup_printf("X-RateLimit-Bucket: %s", long_bucket);
    g_autoptr(DiscordAnswer) answer = parse(200, headers, "{}");
    g_assert_null(answer->bucket);
}

static void
test_texts(void)
{
    static const struct {
        const char *body;
        guint code;
        const char *text;
    } cases[] = {
        {"{\"code\":50035,\"message\":\"Invalid Form Body\",\"errors\":{\"content\":{\"_errors\":[{\"code\":"
         "\"BASE_TYPE_MAX_LENGTH\",\"message\":\"Must be 2000 or fewer in length.\"}]}}}",
         50035, "Invalid Form Body (content: Must be 2000 or fewer in length.)"},
        {"{\"code\":1,\"message\":\"x\",\"errors\":{\"a\":{\"0\":{\"b\":{\"_errors\":[{\"message\":\"y\"}]}}}}}", 1,
         "x (a.0.b: y)"},
        {"{\"code\":0,\"message\":\"401: Unauthorized\"}", 0, "401: Unauthorized"},
        {"{\"code\":-7,\"message\":7}", 0, NULL},
        {"{\"code\":99999999999,\"message\":\"x\",\"errors\":[]}", 0, "x"},
        {"{\"code\":\"7\",\"message\":\"x\",\"errors\":{\"_errors\":7}}", 0, "x"},
        {"{\"message\":\"a\\u202eb\\nc\\u0007\",\"errors\":{}}", 0, NULL},
        {"<html>", 0, NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DiscordAnswer) answer = parse(400, "", cases[i].body);
        g_assert_cmpuint(answer->code, ==, cases[i].code);
        if (cases[i].text != NULL)
            g_assert_cmpstr(answer->text, ==, cases[i].text);
        if (answer->text != NULL)
            g_assert_null(strpbrk(answer->text, "\n\a"));
    }
    g_autoptr(GString) deep = g_string_new("{\"message\":\"x\",\"errors\":");
    for (guint i = 0; i < 40; i++)
        g_string_append(deep, "{\"a\":");
    g_string_append(deep, "1");
    for (guint i = 0; i < 41; i++)
        g_string_append_c(deep, '}');
    g_autoptr(DiscordAnswer) answer = parse(400, "", deep->str);
    g_assert_cmpstr(answer->text, ==, "x");
    g_autofree char *filler = g_strnfill(5000, 'y');
    g_autofree char *body = g_strdup_printf("{\"message\":\"%s\"}", filler);
    g_autoptr(DiscordAnswer) wordy = parse(400, "", body);
    g_assert_cmpuint(strlen(wordy->text), <=, 310);
}

/* --- uploads --- */

static void
test_names(void)
{
    static const struct {
        const char *name;
        const char *expected;
    } cases[] = {
        {"a b.txt", "a b.txt"},
        {"../../etc/passwd", ".._.._etc_passwd"},
        {"a\"b\\c/d", "a_b_c_d"},
        {"x\r\nX-Evil: 1", "x__X-Evil: 1"},
        {"", "file"},
        {".", "file"},
        {"..", "file"},
        {"n\xc3\xa4h.md", "n\xc3\xa4h.md"},
        {"\xe2\x80\xaetxt.exe", "_txt.exe"},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = discord_multipart_name(cases[i].name);
        g_assert_cmpstr(name, ==, cases[i].expected);
    }
    g_autofree char *umlauts = g_strnfill(1, 'x');
    for (guint i = 0; i < 150; i++) {
        char *more = g_strconcat(umlauts, "\xc3\xa4", NULL);
        g_free(umlauts);
        umlauts = more;
    }
    g_autofree char *cut = discord_multipart_name(umlauts);
    g_assert_cmpuint(strlen(cut), <=, 200);
    g_assert_true(g_utf8_validate(cut, -1, NULL));
}

static GPtrArray *
make_files(guint n, const char *name, const char *type, gsize size)
{
    GPtrArray *files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_autoptr(GBytes) bytes = g_bytes_new_take(g_malloc0(size), size);
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(files, eb_chat_file_new(name, type, bytes));
    return files;
}

static void
test_multipart(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func((GDestroyNotify)eb_chat_file_free);
    g_autoptr(GBytes) one = g_bytes_new_static("1\0\r\n2", 5);
    g_autoptr(GBytes) two = g_bytes_new_static("", 0);
    g_ptr_array_add(files, eb_chat_file_new("a\".txt", "text/plain; charset=utf-8", one));
    g_ptr_array_add(files, eb_chat_file_new("b", "x\r\nEvil: 1", two));
    g_autoptr(JsonNode) payload = eb_json_parse("{\"content\":\"x\"}", 15, NULL, NULL);
    g_autoptr(GBytes) body = discord_multipart_build(payload, files, "BB", &error);
    g_assert_no_error(error);
    static const char expected[] =
        "--BB\r\nContent-Disposition: form-data; name=\"payload_json\"\r\nContent-Type: application/json\r\n\r\n"
        "{\"content\":\"x\",\"attachments\":[{\"id\":0,\"filename\":\"a_.txt\"},{\"id\":1,\"filename\":\"b\"}]}"
        "\r\n--BB\r\nContent-Disposition: form-data; name=\"files[0]\"; filename=\"a_.txt\"\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n1\0\r\n2"
        "\r\n--BB\r\nContent-Disposition: form-data; name=\"files[1]\"; filename=\"b\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n"
        "\r\n--BB--\r\n";
    g_assert_cmpmem(g_bytes_get_data(body, NULL), g_bytes_get_size(body), expected, sizeof expected - 1);
    g_assert_false(json_object_has_member(json_node_get_object(payload), "attachments"));
}

static void
test_multipart_bounds(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) many = make_files(DISCORD_MULTIPART_MAX_FILES + 1, "a", NULL, 1);
    g_assert_null(discord_multipart_build(NULL, many, "BB", &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.upload-size", "11 files");
    g_clear_error(&error);
    g_autoptr(GPtrArray) large = make_files(2, "a", NULL, DISCORD_MULTIPART_MAX_BYTES / 2 + 1);
    g_assert_null(discord_multipart_build(NULL, large, "BB", &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "discord.upload-size", "2 files");
    g_clear_error(&error);
    g_autoptr(GPtrArray) most = make_files(DISCORD_MULTIPART_MAX_FILES, "a", NULL, 1);
    g_autoptr(GBytes) body = discord_multipart_build(NULL, most, "BB", &error);
    g_assert_no_error(error);
    g_assert_nonnull(body);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/discord/answer/headers", test_headers);
    g_test_add_func("/discord/answer/waits", test_waits);
    g_test_add_func("/discord/answer/edge", test_edge);
    g_test_add_func("/discord/answer/counts", test_counts);
    g_test_add_func("/discord/answer/texts", test_texts);
    g_test_add_func("/discord/multipart/names", test_names);
    g_test_add_func("/discord/multipart/body", test_multipart);
    g_test_add_func("/discord/multipart/bounds", test_multipart_bounds);
    return g_test_run();
}
