/* SPDX-License-Identifier: MIT */
#include "core/base/eb-redactor.h"
#include "eb-test.h"

#include <string.h>

static const char *const secrets[] = {
    "sk-ant-api03-Zm9vYmFyYmF6cXV4-1234567890abcdef",
    "3f2b8c1e-9d47-4a6b-8e21-7c0f5d9a1b34",
    "https://hooks.example.test/services/T000/B000?token=aB3/dE+f&x=1",
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END KEY-----",
    "päßwörd-ключ-秘密鍵",
};

static EbRedactSet *
make_set(void)
{
    EbRedactSet *set = eb_redact_set_new();
    for (guint i = 0; i < G_N_ELEMENTS(secrets); i++) {
        g_autofree char *label = g_strdup_printf("secret-%u", i);
        g_autofree char *copy = g_strdup(secrets[i]);
        g_autoptr(EbSecret) secret = eb_secret_new_take(label, copy, strlen(copy), NULL);
        g_assert_true(eb_redact_set_add(set, secret));
    }
    return set;
}

static char *
stream(EbRedactSet *set, const char *text, gsize cut)
{
    g_autoptr(EbRedactor) redactor = eb_redactor_new(set);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *head = g_strndup(text, cut);
    const char *pieces[] = {head, text + cut};
    for (guint i = 0; i < 2; i++) {
        g_autofree char *shown = eb_redactor_feed(redactor, pieces[i]);
        g_assert_true(g_utf8_validate(shown, -1, NULL));
        g_string_append(out, shown);
    }
    g_autofree char *rest = eb_redactor_flush(redactor);
    g_string_append(out, rest);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void
test_every_cut(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    for (guint i = 0; i < G_N_ELEMENTS(secrets); i++) {
        g_autofree char *text = g_strdup_printf("before %s after ✓", secrets[i]);
        g_autofree char *expected = g_strdup_printf("before [secret-%u] after ✓", i);
        for (const char *at = text; *at != '\0'; at = g_utf8_next_char(at)) {
            g_autofree char *shown = stream(set, text, (gsize)(at - text));
            g_assert_cmpstr(shown, ==, expected);
        }
    }
}

static void
test_one_byte_pieces(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    g_autoptr(EbRedactor) redactor = eb_redactor_new(set);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *text = g_strdup_printf("%s%s and %s.", secrets[0], secrets[1], secrets[0]);
    for (const char *at = text; *at != '\0'; at++) {
        const char piece[2] = {*at, '\0'};
        g_autofree char *shown = eb_redactor_feed(redactor, piece);
        g_string_append(out, shown);
    }
    g_autofree char *rest = eb_redactor_flush(redactor);
    g_string_append(out, rest);
    g_assert_cmpstr(out->str, ==, "[secret-0][secret-1] and [secret-0].");
}

static void
test_encodings(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    const char *secret = secrets[2];
    for (guint shift = 0; shift < 3; shift++) {
        g_autofree char *framed = g_strdup_printf("%.*s%s!tail", (int)shift, "xyz", secret);
        g_autofree char *base64 = g_base64_encode((const guchar *)framed, strlen(framed));
        g_autofree char *shown = eb_redact_set_mask(set, base64, -1);
        g_assert_nonnull(strstr(shown, "[secret-2]"));
        g_assert_cmpuint(strlen(shown), <, 40);
    }
    g_autofree char *percent = g_uri_escape_string(secret, NULL, FALSE);
    g_autofree char *masked_percent = eb_redact_set_mask(set, percent, -1);
    g_assert_cmpstr(masked_percent, ==, "[secret-2]");
    g_autoptr(GString) hex = g_string_new(NULL);
    for (const char *at = secret; *at != '\0'; at++)
        g_string_append_printf(hex, "%02X", (guchar)*at);
    g_autofree char *masked_hex = eb_redact_set_mask(set, hex->str, -1);
    g_assert_cmpstr(masked_hex, ==, "[secret-2]");
    g_autofree char *json = eb_redact_set_mask(
        set,
        "{\"k\":\"-----BEGIN KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEF\\nAASCBKcwggSjAgEAAoIBAQC7VJTU\\n-----END "
        "KEY-----\"}",
        -1);
    g_assert_cmpstr(json, ==, "{\"k\":\"[secret-3]\"}");
    g_autofree char *line = eb_redact_set_mask(set, "line 2: AASCBKcwggSjAgEAAoIBAQC7VJTU", -1);
    g_assert_cmpstr(line, ==, "line 2: [secret-3]");
}

/* Every byte escaped, as \\u0041, \\x41 and %41, and as UTF-16 of either order: masked, and found where it is only looked for. */
static void
test_escaped(void)
{
    static const char *const prefixes[] = {"\\u00", "\\x", "%"};
    g_autoptr(EbRedactSet) set = make_set();
    const char *secret = secrets[1];
    for (guint i = 0; i < G_N_ELEMENTS(prefixes) * 2; i++) {
        g_autoptr(GString) text = g_string_new(NULL);
        for (const char *at = secret; *at != '\0'; at++)
            g_string_append_printf(text, i % 2 == 0 ? "%s%02x" : "%s%02X", prefixes[i / 2], (guchar)*at);
        g_autofree char *shown = eb_redact_set_mask(set, text->str, -1);
        g_assert_cmpstr(shown, ==, "[secret-1]");
        g_assert_true(eb_redact_set_find(set, text->str, text->len));
        g_assert_false(eb_redact_set_find(set, text->str, text->len / 2));
    }
    for (guint order = 0; order < 2; order++) {
        g_autoptr(GByteArray) wide = g_byte_array_new();
        for (const char *at = secret; *at != '\0'; at++) {
            const guint8 pair[2] = {order == 0 ? (guint8)*at : 0, order == 0 ? 0 : (guint8)*at};
            g_byte_array_append(wide, pair, 2);
        }
        g_assert_true(eb_redact_set_find(set, (const char *)wide->data, wide->len));
    }
    g_assert_false(eb_redact_set_find(set, "an innocent text", 16));
}

static void
on_seen(gpointer user_data)
{
    (*(guint *)user_data)++;
}

static void
test_watched(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    char bytes[] = "sk-proj-planted-0123456789";
    g_autoptr(EbSecret) planted = eb_secret_new_take("canary", bytes, strlen(bytes), NULL);
    guint seen = 0;
    g_assert_true(eb_redact_set_watch(set, planted, on_seen, &seen));
    g_autofree char *other = eb_redact_set_mask(set, secrets[1], -1);
    g_assert_cmpuint(seen, ==, 0);
    g_autofree char *hit = stream(set, "it is sk-proj-planted-0123456789 there", 14);
    g_assert_cmpstr(hit, ==, "it is [canary] there");
    g_assert_cmpuint(seen, ==, 1);
    g_assert_true(eb_redact_set_watch(set, planted, NULL, NULL));
    g_autofree char *again = eb_redact_set_mask(set, "sk-proj-planted-0123456789", -1);
    g_assert_cmpstr(again, ==, "[canary]");
    g_assert_cmpuint(seen, ==, 1);
}

static void
test_half_at_the_end(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    g_autofree char *most = g_strdup_printf("key: %.30s", secrets[1]);
    g_autofree char *masked = stream(set, most, strlen(most));
    g_assert_cmpstr(masked, ==, "key: [secret-1]");
    g_autofree char *few = stream(set, "key: sk-ant", 11);
    g_assert_cmpstr(few, ==, "key: sk-ant");
}

static void
test_short_and_twice(void)
{
    g_autoptr(EbRedactSet) set = eb_redact_set_new();
    char tiny[] = "abc";
    g_autoptr(EbSecret) small = eb_secret_new_take("tiny", tiny, 3, NULL);
    g_assert_false(eb_redact_set_add(set, small));
    char text[] = "abcdefghij";
    g_autoptr(EbSecret) secret = eb_secret_new_take("one", text, 10, NULL);
    g_assert_true(eb_redact_set_add(set, secret));
    g_assert_true(eb_redact_set_add(set, secret));
    g_autoptr(EbRedactSet) copy = eb_redact_set_copy(set);
    g_autofree char *masked = eb_redact_set_mask(copy, "abc abcdefghij abcdefghi", -1);
    g_assert_cmpstr(masked, ==, "abc [one] [one]");
}

static void
assert_masked(EbRedactSet *set, const char *text, const char *expected)
{
    g_autofree char *masked = eb_redact_set_mask(set, text, -1);
    g_assert_cmpstr(masked, ==, expected);
}

static void
test_more_shapes(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    for (guint i = 0; i < G_N_ELEMENTS(secrets); i++) {
        g_autofree char *backwards = g_utf8_strreverse(secrets[i], -1);
        g_autofree char *text = g_strdup_printf("before %s after ✓", backwards);
        g_autofree char *expected = g_strdup_printf("before [secret-%u] after ✓", i);
        for (const char *at = text; *at != '\0'; at = g_utf8_next_char(at)) {
            g_autofree char *shown = stream(set, text, (gsize)(at - text));
            g_assert_cmpstr(shown, ==, expected);
        }
    }
    /* PHP, python -c 'quote(...)', and a program that keeps JSON to ASCII. */
    assert_masked(set, "https:\\/\\/hooks.example.test\\/services\\/T000\\/B000?token=aB3\\/dE+f&x=1.", "[secret-2].");
    assert_masked(set, "https%3A//hooks.example.test/services/T000/B000%3Ftoken%3DaB3/dE%2Bf%26x%3D1.", "[secret-2].");
    assert_masked(set, "p\\u00e4\\u00dfw\\u00f6rd-\\u043a\\u043b\\u044e\\u0447-\\u79d8\\u5bc6\\u9375.", "[secret-4].");
}

/* base64 breaks its output, terminals and YAML break and indent what is long. */
static void
test_broken_lines(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    for (guint i = 0; i < G_N_ELEMENTS(secrets); i++) {
        for (guint width = 4; width < 78; width++) {
            const char *const shapes[] = {"", "base64"};
            for (guint shape = 0; shape < G_N_ELEMENTS(shapes); shape++) {
                g_autofree char *base64 = g_base64_encode((const guchar *)secrets[i], strlen(secrets[i]));
                const char *whole = shape == 0 ? secrets[i] : base64;
                g_autoptr(GString) broken = g_string_new("x ");
                guint column = 0;
                for (const char *at = whole; *at != '\0'; at = g_utf8_next_char(at)) {
                    if (column++ == width) {
                        g_string_append(broken, width % 2 ? "\n" : "\r\n    ");
                        column = 1;
                    }
                    g_string_append_len(broken, at, g_utf8_next_char(at) - at);
                }
                g_autofree char *shown = stream(set, broken->str, broken->len / 2 - (width % 2));
                g_autofree char *label = g_strdup_printf("x [secret-%u]", i);
                g_assert_true(g_str_has_prefix(shown, label));
                g_assert_cmpuint(strlen(shown), <, 28); /* what base64 mixes with its padding is left */
            }
        }
    }
    /* The same key with other line ends and an indent. */
    assert_masked(set,
                  "-----BEGIN KEY-----\r\n  MIIEvQIBADANBgkqhkiG9w0BAQEF\r\n  AASCBKcwggSjAgEAAoIBAQC7VJTU\r\n  "
                  "-----END KEY-----\r\n",
                  "[secret-3]\r\n");
    /* Line ends without end are not held back without end. */
    g_autoptr(EbRedactor) redactor = eb_redactor_new(set);
    g_autofree char *begin = eb_redactor_feed(redactor, "sk-ant");
    g_assert_cmpstr(begin, ==, "");
    g_autoptr(GString) out = g_string_new(NULL);
    for (guint i = 0; i < 100; i++) {
        g_autofree char *shown = eb_redactor_feed(redactor, "\n\n");
        g_string_append(out, shown);
    }
    g_assert_true(g_str_has_prefix(out->str, "sk-ant\n"));
}

/* What half-way through is cut off by somebody is masked as if it were whole. */
static void
test_cut_by_somebody(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    assert_masked(set, "the key is sk-ant-api03-Zm9vYmFyYmF6cXV4", "the key is [secret-0]");
    assert_masked(set, "the key is sk-ant-api03", "the key is sk-ant-api03");
}

static void
test_configured(void)
{
    g_autoptr(EbRedactSet) before = eb_redact_set_new();
    g_autoptr(EbRedactor) redactor = eb_redactor_new(before);
    char token[] = "configured.token.12345";
    g_autoptr(EbSecret) secret = eb_secret_new_take("chat-token", token, strlen(token), NULL);
    g_assert_true(eb_redact_add_configured(secret));
    g_assert_true(eb_redact_add_configured(secret));
    g_autoptr(EbRedactSet) after = eb_redact_set_new();
    assert_masked(before, "a configured.token.12345", "a [chat-token]");
    assert_masked(after, "a configured.token.12345", "a [chat-token]");
    g_autofree char *shown = eb_redactor_feed(redactor, "configured.token.12345 ");
    g_assert_cmpstr(shown, ==, "[chat-token] ");
    char tiny[] = "tiny";
    g_autoptr(EbSecret) small = eb_secret_new_take("tiny", tiny, 4, NULL);
    g_assert_false(eb_redact_add_configured(small));
}

/* As many secrets as there may be are all found. */
static void
test_many_secrets(void)
{
    g_autoptr(EbRedactSet) set = eb_redact_set_new();
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GString) expected = g_string_new(NULL);
    for (guint i = 0; i < EB_REDACT_MAX_SECRETS - EB_REDACT_MAX_CONFIGURED; i++) {
        g_autofree char *value = g_strdup_printf("secret-value-%08x-%u", g_test_rand_int(), i);
        g_autofree char *copy = g_strdup(value);
        g_autofree char *label = g_strdup_printf("s%u", i);
        g_autoptr(EbSecret) secret = eb_secret_new_take(label, copy, strlen(copy), NULL);
        g_assert_true(eb_redact_set_add(set, secret));
        g_string_append_printf(text, "secret-value %s ", value);
        g_string_append_printf(expected, "secret-value [s%u] ", i);
    }
    assert_masked(set, text->str, expected->str);
}

/* Nothing of a text without secrets is lost or changed, however it is cut. */
static void
test_random_text(void)
{
    g_autoptr(EbRedactSet) set = make_set();
    for (guint round = 0; round < 300; round++) {
        g_autoptr(GString) text = g_string_new(NULL);
        g_autoptr(GString) out = g_string_new(NULL);
        g_autoptr(EbRedactor) redactor = eb_redactor_new(set);
        for (guint piece = 0; piece < 20; piece++) {
            const char *const parts[] = {"sk-ant-", "3f2b8c1e-", "https://", "pä", "é", "\n", "-----BEGIN", "x"};
            const char *part = parts[g_test_rand_int_range(0, G_N_ELEMENTS(parts))];
            g_autofree char *shown = eb_redactor_feed(redactor, part);
            g_assert_true(g_utf8_validate(shown, -1, NULL));
            g_string_append(text, part);
            g_string_append(out, shown);
        }
        g_autofree char *rest = eb_redactor_flush(redactor);
        g_string_append(out, rest);
        g_assert_cmpstr(out->str, ==, text->str);
    }
}

/* Only what really begins a secret is kept back: what ends the agent's words for now is otherwise shown much later. */
static void
test_holds_nothing_for_nothing(void)
{
    for (guint i = 0; i < 500; i++) {
        g_autoptr(EbRedactSet) set = eb_redact_set_new();
        g_autofree char *key = g_strdup_printf("%08x%08x%08x%08x", g_test_rand_int(), g_test_rand_int(),
                                               g_test_rand_int(), g_test_rand_int());
        g_autoptr(EbSecret) secret = eb_secret_new_take("key", key, strlen(key), NULL);
        eb_redact_set_add(set, secret);
        EbRedactor *stream = eb_redactor_new(set);
        g_autofree char *said = eb_redactor_feed(stream, "waiting;");
        g_assert_cmpstr(said, ==, "waiting;");
        eb_redactor_free(stream);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/redactor/holds-nothing-for-nothing", test_holds_nothing_for_nothing);
    g_test_add_func("/redactor/every-cut", test_every_cut);
    g_test_add_func("/redactor/one-byte-pieces", test_one_byte_pieces);
    g_test_add_func("/redactor/encodings", test_encodings);
    g_test_add_func("/redactor/half-at-the-end", test_half_at_the_end);
    g_test_add_func("/redactor/short-and-twice", test_short_and_twice);
    g_test_add_func("/redactor/more-shapes", test_more_shapes);
    g_test_add_func("/redactor/broken-lines", test_broken_lines);
    g_test_add_func("/redactor/cut-by-somebody", test_cut_by_somebody);
    g_test_add_func("/redactor/many-secrets", test_many_secrets);
    g_test_add_func("/redactor/configured", test_configured);
    g_test_add_func("/redactor/random-text", test_random_text);
    g_test_add_func("/redactor/escaped", test_escaped);
    g_test_add_func("/redactor/watched", test_watched);
    return g_test_run();
}
