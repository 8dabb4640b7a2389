/* SPDX-License-Identifier: MIT */
/* Signatures that the real program makes, and what may be wrong with one. */
#include "core/config/eb-minisign.h"
#include "eb-test.h"

#include <string.h>

static char *dir;
static char *key_text;   /* the second line of the public key file */
static char *other_text; /* of another key */
static char *signature;  /* of "hello\n" */

static gboolean
run(const char *const *argv)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *out = NULL;
    int status = 0;

    g_spawn_sync(dir, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL,
                 &status, &error);
    g_assert_no_error(error);
    return g_spawn_check_wait_status(status, NULL);
}

static char *
read_text(const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = NULL;

    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

static char *
second_line(const char *name)
{
    g_autofree char *text = read_text(name);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    return g_strdup(lines[1]);
}

static void
make_keys(void)
{
    static const char *const one[] = {"minisign", "-G", "-W", "-p", "a.pub", "-s", "a.key", NULL};
    static const char *const two[] = {"minisign", "-G", "-W", "-p", "b.pub", "-s", "b.key", NULL};
    static const char *const sign[] = {"minisign", "-S", "-s", "a.key", "-m", "file", "-t", "made for a test", NULL};
    g_autofree char *file = g_build_filename(dir, "file", NULL);

    eb_test_write_file(file, "hello\n");
    g_assert_true(run(one) && run(two) && run(sign));
    key_text = second_line("a.pub");
    other_text = second_line("b.pub");
    signature = read_text("file.minisig");
}

static gboolean
verify(const char *key_line, const char *text, gsize length, const char *content, GError **error)
{
    g_autoptr(EbMinisignSignature) parsed = eb_minisign_signature_parse(text, length, error);
    g_autoptr(EbMinisignHash) hash = eb_minisign_hash_new();
    guint8 digest[EB_MINISIGN_HASH_BYTES];
    EbMinisignKey key;

    if (parsed == NULL || !eb_minisign_key_parse(key_line, &key, error))
        return FALSE;
    for (const char *c = content; *c != '\0'; c++) /* in pieces, as it comes from a network */
        eb_minisign_hash_update(hash, c, 1);
    eb_minisign_hash_end(hash, digest);
    return eb_minisign_verify("file", parsed, &key, digest, error);
}

static void
test_real(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *crlf = NULL;
    g_auto(GStrv) lines = g_strsplit(signature, "\n", -1);
    g_autoptr(EbMinisignSignature) parsed = eb_minisign_signature_parse(signature, strlen(signature), &error);

    g_assert_no_error(error);
    g_assert_cmpstr(parsed->trusted_comment, ==, "made for a test");
    g_assert_true(verify(key_text, signature, strlen(signature), "hello\n", &error));
    g_assert_no_error(error);
    crlf = g_strjoinv("\r\n", lines);
    g_assert_true(verify(key_text, crlf, strlen(crlf), "hello\n", &error));
    g_assert_true(verify(key_text, signature, strlen(signature) - 1, "hello\n", &error)); /* no end of the last line */
    g_assert_no_error(error);
}

static void
test_key_id(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *file = read_text("a.pub");
    EbMinisignKey key;

    g_assert_true(eb_minisign_key_parse(key_text, &key, &error));
    g_autofree char *id = eb_minisign_key_id(key.id);
    /* minisign puts it into the comment, without zeros in front. */
    g_assert_nonnull(strstr(file, id + strspn(id, "0")));
}

static void
test_wrong_content(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(verify(key_text, signature, strlen(signature), "hello", &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", "does not fit");
}

static void
test_wrong_key(void)
{
    g_autoptr(GError) error = NULL;
    EbMinisignKey ours;
    EbMinisignKey theirs;

    g_assert_false(verify(other_text, signature, strlen(signature), "hello\n", &error));
    g_assert_true(eb_minisign_key_parse(other_text, &ours, NULL) && eb_minisign_key_parse(key_text, &theirs, NULL));
    g_autofree char *our_id = eb_minisign_key_id(ours.id);
    g_autofree char *their_id = eb_minisign_key_id(theirs.id);
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", our_id);
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", their_id);
}

/* The id of a key is not signed: a forger may write the pinned one. */
static void
test_forged_id(void)
{
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    gsize key_length = 0;
    g_auto(GStrv) lines = g_strsplit(signature, "\n", -1);
    g_autofree guchar *bytes = g_base64_decode(lines[1], &length);
    g_autofree guchar *key = g_base64_decode(other_text, &key_length);

    memcpy(bytes + 2, key + 2, EB_MINISIGN_KEY_ID_BYTES);
    g_free(lines[1]);
    lines[1] = g_base64_encode(bytes, length);
    g_autofree char *forged = g_strjoinv("\n", lines);
    g_assert_false(verify(other_text, forged, strlen(forged), "hello\n", &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", "does not fit");
}

static void
test_forged_comment(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) forged = g_string_new(signature);

    g_string_replace(forged, "made for a test", "made for a tesT", 1);
    g_assert_false(verify(key_text, forged->str, forged->len, "hello\n", &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", "trusted comment");
}

static void
test_older_kind(void)
{
    static const char *const sign[] = {"minisign", "-S", "-l", "-s", "a.key", "-m", "old", NULL};
    g_autofree char *file = g_build_filename(dir, "old", NULL);
    g_autoptr(GError) error = NULL;

    eb_test_write_file(file, "hello\n");
    g_assert_true(run(sign));
    g_autofree char *text = read_text("old.minisig");
    g_assert_false(verify(key_text, text, strlen(text), "hello\n", &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", "older kind");
}

static void
test_malformed(void)
{
    g_auto(GStrv) lines = g_strsplit(signature, "\n", -1);
    g_autofree char *swapped = g_strjoin("\n", lines[2], lines[1], lines[0], lines[3], "", NULL);
    g_autofree char *three = g_strjoin("\n", lines[0], lines[1], lines[2], "", NULL);
    g_autofree char *five = g_strconcat(signature, "more\n", NULL);
    g_autofree char *short_line = g_strndup(lines[1], strlen(lines[1]) - 4);
    g_autofree char *shorter = g_strjoin("\n", lines[0], short_line, lines[2], lines[3], "", NULL);
    g_autofree char *garbled = g_strjoin("\n", lines[0], "RU*=", lines[2], lines[3], "", NULL);
    g_autofree char *longer = g_strnfill(EB_MINISIGN_MAX_BYTES + 1, 'a');
    const char *const bad[] = {"", "\n\n\n\n", swapped, three, five, shorter, garbled, longer, key_text};

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(verify(key_text, bad[i], strlen(bad[i]), "hello\n", &error));
        eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", NULL);
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(verify(key_text, signature, strlen(signature) + 1, "hello\n", &error)); /* a NUL byte */
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", NULL);
}

static void
test_malformed_key(void)
{
    g_autofree char *cut = g_strndup(key_text, strlen(key_text) - 4);
    g_autofree char *longer = g_strconcat(key_text, "AAAA", NULL);
    g_autofree char *spaced = g_strconcat(key_text, " ", NULL);
    const char *const bad[] = {"", "RW", cut, longer, spaced, "untrusted comment: x"};

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        EbMinisignKey key;
        g_assert_false(eb_minisign_key_parse(bad[i], &key, &error));
        eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.signature", "no public key");
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_autofree char *program = g_find_program_in_path("minisign");
    if (program == NULL) {
        g_test_message("minisign is not installed");
        return 77;
    }
    dir = eb_test_temp_dir("minisign");
    make_keys();
    g_test_add_func("/minisign/real", test_real);
    g_test_add_func("/minisign/key-id", test_key_id);
    g_test_add_func("/minisign/wrong-content", test_wrong_content);
    g_test_add_func("/minisign/wrong-key", test_wrong_key);
    g_test_add_func("/minisign/forged-id", test_forged_id);
    g_test_add_func("/minisign/forged-comment", test_forged_comment);
    g_test_add_func("/minisign/older-kind", test_older_kind);
    g_test_add_func("/minisign/malformed", test_malformed);
    g_test_add_func("/minisign/malformed-key", test_malformed_key);
    int code = g_test_run();
    g_free(key_text);
    g_free(other_text);
    g_free(signature);
    g_free(dir);
    return code;
}
