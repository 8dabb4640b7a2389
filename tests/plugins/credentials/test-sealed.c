/* SPDX-License-Identifier: MIT */
/* The sealed file: what it keeps, what it refuses, and that each refusal says which it is. */
#include "tests/lib/eb-test.h"

#include "creds-watch.h"
#include "sealed-box.h"
#include "sealed-store.h"

#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE "correct-horse-battery-staple-1"

typedef struct {
    char *dir;
    char *path;
    SealedSources sources;
    EbCredentialStore *store;
} Fixture;

static EbCredentialStore *
new_store(const Fixture *f)
{
    return EB_CREDENTIAL_STORE(eb_credentials_sealed_store_new(f->path, &f->sources));
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = eb_test_temp_dir("sealed");
    f->path = g_build_filename(f->dir, "creds.sealed", NULL);
    f->sources.own_key_file = g_build_filename(f->dir, "seal.key", NULL);
    f->sources.account = g_strdup("nobody-of-that-name");
    f->store = new_store(f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_object_unref(f->store);
    sealed_sources_clear(&f->sources);
    g_free(f->path);
    g_free(f->dir);
}

static void
renew(Fixture *f)
{
    g_object_unref(f->store);
    f->store = new_store(f);
}

static EbSecret *
secret_of(const char *text)
{
    g_autofree char *copy = g_strdup(text);
    return eb_secret_new_take("test", copy, strlen(copy), NULL);
}

static EbCredential *
look_up(Fixture *f, const char *name, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credential_store_lookup_async(f->store, name, NULL, eb_test_result_ready, &done);
    return eb_credential_store_lookup_finish(f->store, eb_test_result_wait(&done), error);
}

static gboolean
put(EbCredentialStore *store, const char *name, const char *value, gint64 expires, GError **error)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(EbSecret) secret = secret_of(value);
    g_autoptr(EbCredential) credential = eb_credential_new(secret, expires, NULL);

    eb_credential_store_put_credential_async(store, name, credential, NULL, eb_test_result_ready, &done);
    return eb_credential_store_put_credential_finish(store, eb_test_result_wait(&done), error);
}

static gboolean
drop(Fixture *f, const char *name, GError **error)
{
    g_auto(EbTestResult) done = {0};

    eb_credential_store_remove_async(f->store, name, NULL, eb_test_result_ready, &done);
    return eb_credential_store_remove_finish(f->store, eb_test_result_wait(&done), error);
}

static gboolean
rekey(Fixture *f, const char *previous, GError **error)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(EbSecret) secret = previous != NULL ? secret_of(previous) : NULL;

    eb_credential_store_rekey_async(f->store, secret, NULL, eb_test_result_ready, &done);
    return eb_credential_store_rekey_finish(f->store, eb_test_result_wait(&done), error);
}

static char *
list(Fixture *f)
{
    g_auto(EbTestResult) done = {0};
    g_autoptr(GError) error = NULL;

    eb_credential_store_list_async(f->store, NULL, eb_test_result_ready, &done);
    g_auto(GStrv) names = eb_credential_store_list_finish(f->store, eb_test_result_wait(&done), &error);
    g_assert_no_error(error);
    return g_strjoinv(" ", names);
}

static void
assert_value(Fixture *f, const char *name, const char *value)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) found = look_up(f, name, &error);

    g_assert_no_error(error);
    g_assert_true(eb_secret_equal_bytes(found->secret, value, strlen(value)));
}

static void
assert_refused(Fixture *f, EbErrorCode code, const char *reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbCredential) found = look_up(f, "model-key", &error);

    g_assert_null(found);
    eb_test_assert_error(error, code, reason, f->path);
    g_assert_null(strstr(error->message, VALUE));
}

static void
seal_one(Fixture *f)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(rekey(f, NULL, &error));
    g_assert_no_error(error);
    g_assert_true(put(f->store, "model-key", VALUE, 0, &error));
    g_assert_no_error(error);
}

static GBytes *
read_bytes(const char *path)
{
    char *bytes = NULL;
    gsize length;

    g_assert_true(g_file_get_contents(path, &bytes, &length, NULL));
    return g_bytes_new_take(bytes, length);
}

static void
write_bytes(const char *path, const void *bytes, gsize length)
{
    g_assert_true(g_file_set_contents_full(path, bytes, (gssize)length, G_FILE_SET_CONTENTS_CONSISTENT, 0600, NULL));
}

/* Until somebody asks for sealing, the store is not there: a lookup goes on to the next, and so does a put. */
static void
test_absent(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *none = list(f);

    g_assert_cmpstr(none, ==, "");
    g_assert_null(look_up(f, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "credentials.absent", f->path);
    g_clear_error(&error);
    g_assert_false(put(f->store, "model-key", VALUE, 0, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_SUPPORTED, "sealed.no-key", "errand-box creds seal");
    g_clear_error(&error);
    g_assert_false(drop(f, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, NULL, NULL);
    g_assert_false(g_file_test(f->path, G_FILE_TEST_EXISTS));
    g_assert_false(g_file_test(f->sources.own_key_file, G_FILE_TEST_EXISTS));
}

static void
test_keeps(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    struct stat info;

    seal_one(f);
    g_assert_true(put(f->store, "github-token", "line one\nline two\n\"quoted\" \xc3\xa9", 1900000000, &error));
    g_assert_no_error(error);
    g_autofree char *names = list(f);
    g_assert_cmpstr(names, ==, "github-token model-key");
    renew(f);
    assert_value(f, "model-key", VALUE);
    assert_value(f, "github-token", "line one\nline two\n\"quoted\" \xc3\xa9");
    g_autoptr(EbCredential) found = look_up(f, "github-token", &error);
    g_assert_cmpint(found->expires_unix, ==, 1900000000);
    g_assert_cmpint(found->changed_unix, >, 1700000000);
    g_assert_cmpint(stat(f->path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0600);
    g_assert_cmpint(stat(f->sources.own_key_file, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0600);
    /* Neither values nor names are in it. */
    g_autoptr(GBytes) bytes = read_bytes(f->path);
    gsize length;
    const char *raw = g_bytes_get_data(bytes, &length);
    g_assert_null(memmem(raw, length, "correct", 7));
    g_assert_null(memmem(raw, length, "model-key", 9));
    g_assert_true(put(f->store, "model-key", "another", 0, &error));
    assert_value(f, "model-key", "another");
    g_assert_true(drop(f, "model-key", &error));
    g_assert_false(drop(f, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "credentials.missing", NULL);
}

/* Cut off anywhere it is truncated, not absent, and not another key's. */
static void
test_truncated(Fixture *f, gconstpointer data)
{
    gsize length;

    seal_one(f);
    g_autoptr(GBytes) bytes = read_bytes(f->path);
    const char *raw = g_bytes_get_data(bytes, &length);
    for (gsize size = 0; size < length; size += size < SEALED_HEADER_BYTES ? 7 : 3) {
        write_bytes(f->path, raw, size);
        assert_refused(f, EB_ERROR_INTEGRITY, size > 0 && size < 8 ? "sealed.not-sealed" : "sealed.truncated");
    }
    g_autofree char *longer = g_malloc0(length + 1);
    memcpy(longer, raw, length);
    write_bytes(f->path, longer, length + 1);
    assert_refused(f, EB_ERROR_INTEGRITY, "sealed.damaged");
    write_bytes(f->path, raw, length);
    assert_value(f, "model-key", VALUE);
}

/* One bit anywhere: never a value, and never "another key" where the file is what is wrong. */
static void
test_damaged(Fixture *f, gconstpointer data)
{
    gsize length;

    seal_one(f);
    g_autoptr(GBytes) bytes = read_bytes(f->path);
    const guint8 *raw = g_bytes_get_data(bytes, &length);
    g_autofree guint8 *copy = g_malloc(length);
    g_autoptr(EbSecret) material = NULL;
    g_autofree char *text = NULL;
    SealedHeader header;

    g_assert_true(g_file_get_contents(f->sources.own_key_file, &text, NULL, NULL));
    material = secret_of(g_strchomp(text));
    g_assert_true(sealed_header_decode(raw, length, &header, NULL));
    g_autoptr(EbSecret) key = sealed_key_derive(&header, material, NULL);
    for (gsize bit = 0; bit < length * 8; bit++) {
        g_autoptr(GError) error = NULL;
        memcpy(copy, raw, length);
        copy[bit / 8] ^= (guint8)(1u << bit % 8);
        g_assert_null(sealed_open(copy, length, key, &error));
        g_assert_true(error->code == EB_ERROR_INTEGRITY || (bit / 8 < 10 && error->code == EB_ERROR_NOT_SUPPORTED));
    }
}

/* A header that somebody made on purpose: its own digest fits. No memory is taken before its numbers are judged. */
static void
test_forged_header(Fixture *f, gconstpointer data)
{
    const struct {
        SealedKdf kdf;
        guint32 passes, memory_kib, payload;
    } forged[] = {
        {SEALED_KDF_PASSPHRASE, 1, G_MAXUINT32, 100},
        {SEALED_KDF_PASSPHRASE, G_MAXUINT32, SEALED_MIN_MEMORY_KIB, 100},
        {SEALED_KDF_PASSPHRASE, 0, SEALED_MIN_MEMORY_KIB, 100},
        {SEALED_KDF_PASSPHRASE, 1, 1, 100},
        {SEALED_KDF_KEY_FILE, 1, 0, 100},
        {SEALED_KDF_KEY_FILE, 0, 0, 3},
        {SEALED_KDF_KEY_FILE, 0, 0, G_MAXUINT32},
        {3, 0, 0, 100},
    };

    for (guint i = 0; i < G_N_ELEMENTS(forged); i++) {
        g_autoptr(GError) error = NULL;
        guint8 bytes[SEALED_HEADER_BYTES];
        SealedHeader header = {.kdf = forged[i].kdf,
                               .passes = forged[i].passes,
                               .memory_kib = forged[i].memory_kib,
                               .payload = forged[i].payload};
        sealed_header_encode(&header, bytes);
        g_assert_false(sealed_header_decode(bytes, sizeof bytes, &header, &error));
        eb_test_assert_error(error, EB_ERROR_INTEGRITY, "sealed.damaged", NULL);
    }
}

static void
test_wrong_passphrase(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->sources.passphrase_file = g_build_filename(f->dir, "passphrase", NULL);
    write_bytes(f->sources.passphrase_file, "short\n", 6);
    renew(f);
    g_assert_false(put(f->store, "model-key", VALUE, 0, &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "sealed.short-passphrase", "at least 8");
    g_clear_error(&error);
    write_bytes(f->sources.passphrase_file, "first words\n", 12);
    g_assert_true(put(f->store, "model-key", VALUE, 0, &error));
    g_assert_no_error(error);
    assert_value(f, "model-key", VALUE); /* with the key kept from before */
    write_bytes(f->sources.passphrase_file, "other words\n", 12);
    assert_refused(f, EB_ERROR_DENIED, "sealed.wrong-key");
    /* To seal more begins with opening what is there. */
    g_assert_false(rekey(f, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "sealed.wrong-key", "--old-key FILE");
    g_clear_error(&error);
    g_assert_false(put(f->store, "model-key", "x", 0, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "sealed.wrong-key", NULL);
    g_clear_error(&error);

    /* Rotation: what opened it until now, and what is in the file now. Once more is nothing. */
    g_assert_false(rekey(f, "third words", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "sealed.wrong-key", "previous");
    g_clear_error(&error);
    g_assert_true(rekey(f, "first words", &error));
    g_assert_no_error(error);
    assert_value(f, "model-key", VALUE);
    g_assert_true(rekey(f, "first words", &error));
    g_assert_no_error(error);
    g_assert_cmpint(unlink(f->sources.passphrase_file), ==, 0);
    assert_refused(f, EB_ERROR_DENIED, "sealed.no-key");
}

/* The directory of the key is made with it, and what cannot be made is said. */
static void
test_key_directory(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    struct stat info;

    g_free(f->sources.own_key_file);
    f->sources.own_key_file = g_build_filename(f->dir, "etc", "seal.key", NULL);
    g_autofree char *dir = g_path_get_dirname(f->sources.own_key_file);
    renew(f);
    mode_t old = umask(077);
    g_assert_true(rekey(f, NULL, &error));
    umask(old);
    g_assert_no_error(error);
    g_assert_cmpint(stat(dir, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0755);
    g_free(f->sources.own_key_file);
    f->sources.own_key_file = g_build_filename(f->dir, "not", "there", "seal.key", NULL);
    renew(f);
    g_assert_false(rekey(f, NULL, &error));
    g_assert_nonnull(strstr(error->message, f->sources.own_key_file));
    g_assert_nonnull(strstr(error->message, "No such file"));
}

static void
test_key_files(Fixture *f, gconstpointer data)
{
    g_autofree char *old = NULL;
    g_autoptr(GError) error = NULL;

    seal_one(f);
    g_assert_true(g_file_get_contents(f->sources.own_key_file, &old, NULL, NULL));
    g_assert_cmpint(strlen(old), ==, 65);
    /* A key that others can read is none. */
    g_assert_cmpint(chmod(f->sources.own_key_file, 0640), ==, 0);
    assert_refused(f, EB_ERROR_DENIED, "sealed.no-key");
    /* A passphrase does not open what a key file closed, and the message says which is which. */
    f->sources.passphrase_file = g_build_filename(f->dir, "passphrase", NULL);
    write_bytes(f->sources.passphrase_file, "words\n", 6);
    renew(f);
    g_assert_null(look_up(f, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "sealed.wrong-key", "sealed with a key file");
    g_clear_error(&error);
    g_clear_pointer(&f->sources.passphrase_file, g_free);
    /* A short key file is a passphrase that nobody stretches. */
    f->sources.key_file = g_build_filename(f->dir, "short.key", NULL);
    write_bytes(f->sources.key_file, "short", 5);
    renew(f);
    g_assert_null(look_up(f, "model-key", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "sealed.short-key", "32 random bytes");
    g_clear_error(&error);
    g_clear_pointer(&f->sources.key_file, g_free);
    /* A lost key: a new one is made, and the old one given by hand. */
    g_assert_cmpint(unlink(f->sources.own_key_file), ==, 0);
    renew(f);
    g_assert_true(rekey(f, g_strchomp(old), &error));
    g_assert_no_error(error);
    assert_value(f, "model-key", VALUE);
}

static void
test_handed_key(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    f->sources.handed_dir = g_strdup(f->dir);
    g_autofree char *handed = g_build_filename(f->dir, SEALED_HANDED_KEY, NULL);

    write_bytes(handed, "0123456789abcdef0123456789abcdef", 32);
    g_assert_cmpint(chmod(handed, 0440), ==, 0);
    renew(f);
    g_assert_true(put(f->store, "model-key", VALUE, 0, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(f->sources.own_key_file, G_FILE_TEST_EXISTS));
    assert_value(f, "model-key", VALUE);
}

static void
test_exposed(Fixture *f, gconstpointer data)
{
    g_autofree char *other = g_build_filename(f->dir, "elsewhere", NULL);

    seal_one(f);
    g_assert_cmpint(chmod(f->path, 0644), ==, 0);
    assert_refused(f, EB_ERROR_DENIED, "credentials.exposed");
    g_assert_cmpint(chmod(f->path, 0600), ==, 0);
    g_assert_cmpint(rename(f->path, other), ==, 0);
    g_assert_cmpint(symlink(other, f->path), ==, 0);
    assert_refused(f, EB_ERROR_DENIED, "credentials.exposed");
    g_assert_cmpint(unlink(f->path), ==, 0);
    g_autofree char *large = g_malloc0(SEALED_MAX_BYTES + 1);
    write_bytes(f->path, large, SEALED_MAX_BYTES + 1);
    assert_refused(f, EB_ERROR_CONFIG, "credentials.long");
}

static void
test_full(Fixture *f, gconstpointer data)
{
    g_autoptr(GPtrArray) entries = g_ptr_array_new_with_free_func(sealed_entry_free);
    g_autoptr(EbSecret) value = secret_of("v");
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < SEALED_MAX_ENTRIES; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        g_ptr_array_add(entries, sealed_entry_new(name, value, 0, 0));
    }
    g_assert_cmpuint(sealed_entries_size(entries, &error), >, 0);
    g_ptr_array_add(entries, sealed_entry_new("one-more", value, 0, 0));
    g_assert_cmpuint(sealed_entries_size(entries, &error), ==, 0);
    eb_test_assert_error(error, EB_ERROR_QUOTA, "sealed.full", NULL);
}

/* Two programs that change it at the same time lose nothing. */
static void
test_two_writers(Fixture *f, gconstpointer data)
{
    g_autoptr(EbSecret) value = secret_of(VALUE);

    seal_one(f);
    g_autoptr(EbCredentialStore) other = new_store(f);
    EbTestResult done[16] = {0};
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autofree char *name = g_strdup_printf("name-%u", i);
        eb_credential_store_put_async(i % 2 == 0 ? f->store : other, name, value, NULL, eb_test_result_ready, &done[i]);
    }
    for (guint i = 0; i < G_N_ELEMENTS(done); i++) {
        g_autoptr(GError) error = NULL;
        eb_credential_store_put_finish(i % 2 == 0 ? f->store : other, eb_test_result_wait(&done[i]), &error);
        g_assert_no_error(error);
        eb_test_result_clear(&done[i]);
    }
    g_autofree char *names = list(f);
    g_auto(GStrv) all = g_strsplit(names, " ", -1);
    g_assert_cmpuint(g_strv_length(all), ==, G_N_ELEMENTS(done) + 1);
}

static void
on_changed(EbCredentialStore *store, const char *name, gpointer user_data)
{
    guint *count = user_data;
    (*count)++;
}

static gboolean
told(gpointer user_data)
{
    return *(guint *)user_data > 0;
}

static void
test_watched(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    guint count = 0;

    seal_one(f);
    g_signal_connect(f->store, "changed", G_CALLBACK(on_changed), &count);
    CredsWatch *watch = creds_watch_new(f->store);
    for (guint i = 0; i < CREDS_WATCH_MAX + 2; i++) /* what is beyond the bound is left out */
        creds_watch_add(watch, f->path);
    g_autoptr(EbCredentialStore) other = new_store(f);
    g_assert_true(put(other, "model-key", "replaced by another program", 0, &error));
    eb_test_run_until(told, &count);
    assert_value(f, "model-key", "replaced by another program");
    creds_watch_free(watch);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name, func) g_test_add("/sealed/" name, Fixture, NULL, set_up, func, tear_down)
    ADD("absent", test_absent);
    ADD("keeps", test_keeps);
    ADD("truncated", test_truncated);
    ADD("damaged", test_damaged);
    ADD("forged-header", test_forged_header);
    ADD("wrong-passphrase", test_wrong_passphrase);
    ADD("key-files", test_key_files);
    ADD("handed-key", test_handed_key);
    ADD("exposed", test_exposed);
    ADD("key-directory", test_key_directory);
    ADD("full", test_full);
    ADD("two-writers", test_two_writers);
    ADD("watched", test_watched);
    return g_test_run();
}
