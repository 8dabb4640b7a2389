/* SPDX-License-Identifier: MIT */
#define G_LOG_DOMAIN "eb-test"

#include "eb-test.h"

#include <string.h>
#include <unistd.h>

static EbSecret *
make(const char *label, const char *text)
{
    g_autofree char *copy = g_strdup(text);

    return eb_secret_new_take(label, copy, strlen(text), NULL);
}

static void
assert_escaped(const char *text, gssize length, gsize max, const char *expected)
{
    g_autofree char *result = eb_log_escape(text, length, max);

    g_assert_cmpstr(result, ==, expected);
    g_assert_true(g_utf8_validate(result, -1, NULL));
}

static void
test_escape(void)
{
    assert_escaped("plain é 한 😀", -1, 100, "plain é 한 😀");
    assert_escaped("a\nb\tc\x1b[31m", -1, 100, "a\\x0ab\\x09c\\x1b[31m");
    assert_escaped("a\0b", 3, 100, "a\\x00b");
    assert_escaped("\xff\xc3", 2, 100, "\\xff\\xc3");
    assert_escaped("\xe2\x80\xa8", -1, 100, "\\xe2\\x80\\xa8"); /* line separator */
    assert_escaped("\xe2\x80\xae", -1, 100, "\\xe2\\x80\\xae"); /* turns text around on a terminal */
    assert_escaped("\xc2\x9b"
                   "1m",
                   -1, 100,
                   "\\xc2\\x9b"
                   "1m"); /* the eight bit escape of terminals */
    assert_escaped("abcdef", -1, 4, "abcd…");
    assert_escaped("abcd", -1, 4, "abcd");
    assert_escaped("abcé", -1, 4, "abc…"); /* cut at a character */
    assert_escaped("abc\n", -1, 6, "abc…");
    assert_escaped("", -1, 4, "");
    assert_escaped(NULL, 0, 4, "");
    assert_escaped("x", -1, 0, "…");
}

static void
assert_masked(const char *text, const char *expected)
{
    g_autofree char *result = eb_log_mask_text(text, -1);

    g_assert_cmpstr(result, ==, expected);
}

static void
test_mask_forms(void)
{
    g_autoptr(EbSecret) secret = make("chat-token", "Kq7/p+Zw\"9=vB2m");

    eb_log_mask_add(secret);
    assert_masked("none here", "none here");
    assert_masked("Authorization: Kq7/p+Zw\"9=vB2m!", "Authorization: [chat-token]!");
    assert_masked("Kq7/p+Zw\"9=vB2mKq7/p+Zw\"9=vB2m", "[chat-token][chat-token]");
    assert_masked("?k=Kq7%2Fp%2BZw%229%3DvB2m&x=1", "?k=[chat-token]&x=1");
    assert_masked("{\"k\":\"Kq7/p+Zw\\\"9=vB2m\"}", "{\"k\":\"[chat-token]\"}");
    assert_masked("?k=Kq7%2fp%2bZw%229%3dvB2m&x=1", "?k=[chat-token]&x=1");
    assert_masked("id 4b71372f702b5a7722393d7642326d.", "id [chat-token].");
    assert_masked("id 4B71372F702B5A7722393D7642326D.", "id [chat-token].");
    assert_masked("backwards m2Bv=9\"wZ+p/7qK.", "backwards [chat-token].");
    /* In base64, alone and in the middle of a user:password pair of any length. */
    for (int before = 0; before < 4; before++) {
        g_autofree char *plain = g_strdup_printf("%.*s%s", before, "usr:", "Kq7/p+Zw\"9=vB2m");
        g_autofree char *encoded = g_base64_encode((const guchar *)plain, strlen(plain));
        g_autofree char *shown = eb_log_mask_text(encoded, -1);

        g_assert_nonnull(strstr(shown, "[chat-token]"));
        /* At most the characters shared with the neighbours are left. */
        g_assert_cmpuint(strlen(shown), <=, strlen("[chat-token]") + 8 + (gsize)before * 2);
    }
}

static void
test_mask_lines(void)
{
    g_autoptr(EbSecret) secret =
        make("pem", "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTU\n-----END "
                    "PRIVATE KEY-----");

    eb_log_mask_add(secret);
    assert_masked("got MIIEvQIBADANBgkqhkiG9w0BAQEFAASC, then", "got [pem], then");
    assert_masked("-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----");
}

static void
test_mask_short(void)
{
    g_autoptr(EbSecret) tiny = make("tiny", "abc");
    g_autoptr(EbSecret) small = make("small", "qx9z");

    eb_log_mask_add(tiny);
    eb_log_mask_add(small);
    eb_log_mask_add(small);
    assert_masked("abc alphabet qx9z", "abc alphabet [small]");
}

static void
test_mask_long(void)
{
    g_autofree char *text = g_strnfill(EB_SECRET_MAX_BYTES, 'j');
    g_autoptr(EbSecret) secret = make("long", text);
    g_autofree char *line = g_strdup_printf("<%s>", text);

    eb_log_mask_add(secret);
    assert_masked(line, "<[long]>");
}

/* More secrets than the mask holds: the eldest gives way, the rest stay hidden, memory stays bounded. */
static void
test_mask_many(void)
{
    g_autofree char *first = NULL;
    g_autofree char *last = NULL;

    for (int i = 0; i < 1100; i++) {
        g_autofree char *text = g_strdup_printf("nonce-%06d-value", i);
        g_autoptr(EbSecret) secret = make("nonce", text);

        eb_log_mask_add(secret);
    }
    first = eb_log_mask_text("nonce-000000-value", -1);
    last = eb_log_mask_text("nonce-001099-value nonce-000500-value", -1);
    g_assert_cmpstr(first, ==, "nonce-000000-value");
    g_assert_cmpstr(last, ==, "[nonce] [nonce]");
}

/* --- the writer, seen from outside: it owns the process, so it runs in a child --- */

static void
write_log_in_child(gboolean json, int verbosity)
{
    g_autoptr(EbSecret) secret = make("model-key", "sk-very-secret-0123456789");

    eb_log_mask_add(secret);
    eb_log_setup(verbosity, json);
    eb_log_event(G_LOG_LEVEL_INFO, "eb-session", "session ends", "EB_SESSION", "s-17", "EB_REASON", NULL, "EB_OP",
                 "launch", NULL);
    eb_warning("%s", "key sk-very-secret-0123456789\nsecond line");
    g_warning("plain %s", "sk-very-secret-0123456789");
    eb_debug("%s", "details");
    g_log_structured("Other", G_LOG_LEVEL_DEBUG, "MESSAGE", "%s", "foreign details");
}

static void
run_child(void)
{
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr_unmatched("*very-secret*");
}

static void
test_text(void)
{
    if (g_test_subprocess()) {
        write_log_in_child(FALSE, 1);
        return;
    }
    run_child();
    g_test_trap_assert_stderr("*info eb-session: session ends session=s-17 op=launch\n*"
                              "warning eb-test: key [model-key]?x0asecond line\n*"
                              "warning eb-test: plain [model-key]\n*");
    g_test_trap_assert_stderr_unmatched("*details*");
    g_test_trap_assert_stderr_unmatched("*reason*");
}

static void
test_json(void)
{
    if (g_test_subprocess()) {
        write_log_in_child(TRUE, 0);
        return;
    }
    run_child();
    g_test_trap_assert_stderr("{\"ts\":\"*\",\"level\":\"warning\",\"domain\":\"eb-test\",\"message\":\"key "
                              "[model-key]?u000asecond line\"}\n*");
    g_test_trap_assert_stderr_unmatched("*session*");
}

static void
test_debug(void)
{
    if (g_test_subprocess()) {
        write_log_in_child(FALSE, 2);
        return;
    }
    run_child();
    g_test_trap_assert_stderr("*debug eb-test: details\n*");
    g_test_trap_assert_stderr_unmatched("*foreign*");
}

static void
test_debug_all(void)
{
    if (g_test_subprocess()) {
        write_log_in_child(FALSE, 3);
        return;
    }
    run_child();
    g_test_trap_assert_stderr("*debug Other: foreign details\n*");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
    g_test_add_func("/sdk/log/escape", test_escape);
    g_test_add_func("/sdk/log/mask-forms", test_mask_forms);
    g_test_add_func("/sdk/log/mask-lines", test_mask_lines);
    g_test_add_func("/sdk/log/mask-short", test_mask_short);
    g_test_add_func("/sdk/log/mask-long", test_mask_long);
    g_test_add_func("/sdk/log/mask-many", test_mask_many);
    g_test_add_func("/sdk/log/text", test_text);
    g_test_add_func("/sdk/log/json", test_json);
    g_test_add_func("/sdk/log/debug", test_debug);
    g_test_add_func("/sdk/log/debug-all", test_debug_all);
    return g_test_run();
}
