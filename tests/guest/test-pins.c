/* SPDX-License-Identifier: MIT */
#include "core/config/eb-pins.h"
#include "eb-test.h"

#include <string.h>

#define SHA512_ABC "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw=="
#define SHA256_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static const char LOCK[] =
    "{\"lockfileVersion\":3,\"packages\":{\"\":{\"dependencies\":{\"a\":\"1.0.0\"}},"
    "\"node_modules/a\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\"},"
    "\"node_modules/a/node_modules/@s/b\":{\"version\":\"2.0.0-rc.1\",\"integrity\":\"" SHA512_ABC
    "\",\"os\":[\"linux\"],"
    "\"cpu\":[\"x64\"],\"libc\":[\"glibc\"]},"
    "\"node_modules/musl\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\",\"libc\":[\"musl\"]},"
    "\"node_modules/mac\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\",\"os\":[\"darwin\"]},"
    "\"node_modules/notwin\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\",\"os\":[\"!win32\"]},"
    "\"node_modules/fast\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\"},"
    "\"node_modules/slow\":{\"version\":\"1.0.0\",\"integrity\":\"" SHA512_ABC "\"},"
    "\"node_modules/a/node_modules/in\":{\"version\":\"1.0.0\",\"inBundle\":true}}}";

static GPtrArray *
list(const char *lock, const char *cpu, gboolean avx2, GError **error)
{
    char *fast[] = {(char *)"fast", NULL};
    char *slow[] = {(char *)"slow", NULL};
    EbPin pin = {.name = (char *)"a", .lock = (char *)"lock.json", .avx2 = fast, .baseline = slow};
    g_autoptr(GBytes) bytes = g_bytes_new_static(lock, strlen(lock));
    return eb_pins_list_packages(&pin, bytes, cpu, avx2, error);
}

static gboolean
has(GPtrArray *packages, const char *name)
{
    for (guint i = 0; i < packages->len; i++) {
        if (strcmp(((EbPinPackage *)g_ptr_array_index(packages, i))->name, name) == 0)
            return TRUE;
    }
    return FALSE;
}

static void
test_lock(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) x64 = list(LOCK, "x64", TRUE, &error);
    g_autoptr(GPtrArray) arm64 = list(LOCK, "arm64", FALSE, &error);

    g_assert_no_error(error);
    g_assert_cmpuint(x64->len, ==, 4);
    g_assert_true(has(x64, "a") && has(x64, "@s/b") && has(x64, "notwin") && has(x64, "fast"));
    g_assert_cmpuint(arm64->len, ==, 3);
    g_assert_true(has(arm64, "slow") && !has(arm64, "@s/b") && !has(arm64, "fast"));
}

static void
test_lock_refused(void)
{
    static const char *const bad[] = {
        "{",
        "[]",
        "{\"lockfileVersion\":1,\"packages\":{}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.0.0\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"1.0.0\",\"integrity\":\"sha1-x\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/../"
        "a\":{\"version\":\"1.0.0\",\"integrity\":\"sha512-x\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"/etc\":{\"version\":\"1.0.0\",\"integrity\":\"sha512-x\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/-a\":{\"version\":\"1.0.0\",\"integrity\":\"sha512-x\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":{\"version\":\"file:x\",\"integrity\":\"sha512-x\"}}}",
        "{\"lockfileVersion\":3,\"packages\":{\"node_modules/a\":7}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) packages = list(bad[i], "x64", TRUE, &error);
        g_assert_null(packages);
        g_assert_nonnull(error);
    }
}

static void
test_digests(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) abc = g_bytes_new_static("abc", 3);
    g_autoptr(GBytes) other = g_bytes_new_static("abd", 3);

    g_assert_true(eb_pins_check_bytes("x", abc, SHA512_ABC, &error));
    g_assert_true(eb_pins_check_bytes("x", abc, SHA256_ABC, &error));
    g_assert_no_error(error);
    g_assert_false(eb_pins_check_bytes("archive", other, SHA256_ABC, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "pins.digest", SHA256_ABC);
    g_assert_nonnull(strstr(error->message, "a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9"));
    g_clear_error(&error);
    g_assert_false(eb_pins_check_bytes("x", abc, "sha512-AAAA", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "pins.digest", NULL);
}

/* The file that is shipped. */
static void
test_shipped(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPins) pins = eb_pins_load(EB_TEST_SOURCE "/pins.toml", &error);

    g_assert_no_error(error);
    g_assert_true(eb_pins_verify(pins, EB_TEST_SOURCE "/guest", &error));
    g_assert_no_error(error);
    g_assert_nonnull(eb_pins_get(pins, "opencode-ai", &error));
    g_assert_null(eb_pins_get(pins, "nothing", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "pins.unknown", "opencode-ai");
}

static void
test_refused(void)
{
    static const char *const bad[] = {
        "[npm.a]\npackage=\"a\"\n",
        "[npm.a]\npackage=\"a\"\nversion=\"1\"\nlock=\"../l\"\nintegrity=\"" SHA512_ABC "\"\nlock_sha256=\"" SHA256_ABC
        "\"\n",
        "[npm.a]\npackage=\"a\"\nversion=\"1\"\nlock=\"l\"\nintegrity=\"sha1-x\"\nlock_sha256=\"" SHA256_ABC "\"\n",
        "[npm.a]\npackage=\"a\"\nversion=\"1\"\nlock=\"l\"\nintegrity=\"" SHA512_ABC "\"\nlock_sha256=\"" SHA256_ABC
        "\"\ncommands=[\"a\"]\n",
        "[npm.a]\npackage=\"a\"\nversion=\"1\"\nlock=\"l\"\nintegrity=\"" SHA512_ABC "\"\nlock_sha256=\"" SHA256_ABC
        "\"\nsurprise=1\n",
    };
    g_autofree char *dir = eb_test_temp_dir("pins");
    g_autofree char *path = g_build_filename(dir, "pins.toml", NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        eb_test_write_file(path, bad[i]);
        g_autoptr(EbPins) pins = eb_pins_load(path, &error);
        g_assert_null(pins);
        eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, "pins.toml");
    }
}

#define ARCHIVE                                                                                                        \
    "[archive.a]\nversion=\"1.0\"\nurls=[\"https://a.invalid/v{version}/a.tgz\"]\nsha256=\"" SHA256_ABC                \
    "\"\nmax_size=\"1MiB\"\n"
#define KEY "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
#define NPM                                                                                                            \
    "[npm.a]\npackage=\"a\"\nversion=\"1\"\nlock=\"l\"\nintegrity=\"" SHA512_ABC "\"\nlock_sha256=\"" SHA256_ABC "\""  \
    "\n"

static void
test_kinds(void)
{
    static const char text[] =
        NPM ARCHIVE "minisign=\"" KEY "\"\nseries=\"1\"\nlatest=\"https://a.invalid/\"\n"
                    "latest_pattern=\"a-([0-9.]+)[.]tgz\"\n[deb.c]\npackage=\"cc\"\nat_least=\"6.0~rc1-1\"\n"
                    "[file.d]\npath=\"/srv/d\"\nsha512=\"ddaf35a193617abacc417349ae20413112e6fa4e8"
                    "9a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac9"
                    "4fa54ca49f\"\nmax_size=3\n";
    g_autoptr(GError) error = NULL;
    g_autofree char *unique = g_strdup(text);

    memcpy(strstr(unique, "[archive.a]"), "[archive.b]", strlen("[archive.b]"));
    g_autoptr(EbPins) pins = eb_pins_parse(unique, strlen(unique), "pins.toml", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_pins_get_all(pins)->len, ==, 4);
    const EbPin *archive = eb_pins_find(pins, "archive.b", &error);
    g_assert_no_error(error);
    g_assert_true(archive == eb_pins_find(pins, "b", NULL));
    g_assert_cmpint(archive->kind, ==, EB_PIN_ARCHIVE);
    g_assert_cmpuint(archive->max_size, ==, 1024 * 1024);
    g_autofree char *url = eb_pin_expand_url(archive->urls[0], archive->version);
    g_assert_cmpstr(url, ==, "https://a.invalid/v1.0/a.tgz");
    const EbPin *deb = eb_pins_find(pins, "c", &error);
    g_assert_cmpstr(deb->package, ==, "cc");
    g_assert_null(eb_pins_find(pins, "npm.b", &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "pins.unknown", "a, b, c, d");
    g_clear_error(&error);
    g_assert_null(eb_pins_get(pins, "b", &error)); /* no program of the image */
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "pins.unknown", NULL);
}

static void
test_kinds_refused(void)
{
    static const struct {
        const char *text;
        const char *says;
    } bad[] = {
        {"[npn.a]\nx=1\n", "did you mean npm"},
        {"[archive.a]\nverison=\"1\"\n", "pins.toml:2: unknown key archive.a.verison (did you mean version?)"},
        {ARCHIVE "sha512=\"00\"\n", "one of sha256 and sha512"},
        {NPM ARCHIVE, "there is a [npm.a] already"},
        {"[archive.a]\nversion=\"1\"\nurls=[]\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n", "1 to 8 places"},
        {"[archive.a]\nversion=\"1\"\nurls=[\"https://a.invalid/1\",\"https://a.invalid/2\",\"https://a.invalid/3\","
         "\"https://a.invalid/4\",\"https://a.invalid/5\",\"https://a.invalid/6\",\"https://a.invalid/7\","
         "\"https://a.invalid/8\",\"https://a.invalid/9\"]\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n",
         "1 to 8 places"},
        {"[archive.a]\nversion=\"1\"\nurls=[\"http://a.invalid/\"]\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n",
         "https:// is needed"},
        {"[archive.a]\nversion=\"1\"\nurls=[\"https://u:p@a.invalid/\"]\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n",
         "user or password"},
        {"[archive.a]\nversion=\"1\"\nurls=[\"https://a.invalid/\"]\nsha256=\"" SHA256_ABC "\"\n",
         "max_size is needed"},
        {"[archive.a]\nversion=\"../1\"\nurls=[\"https://a.invalid/\"]\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n",
         "no version"},
        {"[archive.a]\nversion=\"1\"\nurls=[\"https://a.invalid/\"]\nsha256=\"ABC\"\nmax_size=1\n",
         "64 lower-case hex"},
        {ARCHIVE "minisign=\"RWabc\"\n", "no public key of minisign"},
        {ARCHIVE "signature=\"https://a.invalid/s\"\n", "with minisign"},
        {ARCHIVE "latest=\"https://a.invalid/\"\n", "belong together"},
        {ARCHIVE "latest=\"https://a.invalid/\"\nlatest_pattern=\"(\"\n", "one group"},
        {ARCHIVE "latest=\"https://a.invalid/\"\nlatest_pattern=\"(a)(b)\"\n", "one group"},
        {"[deb.a]\n", "at_least is needed"},
        {"[deb.ab]\npackage=\"-o\"\nat_least=\"1\"\n", "no name of a Debian package"},
        {"[deb.ab]\nat_least=\"1\"\ntrack=\"yes\"\n", "track"},
        {"[file.a]\npath=\"../a\"\nsha256=\"" SHA256_ABC "\"\nmax_size=1\n", "without"},
        {"[file.a]\npath=\"a\"\nsha256=\"" SHA256_ABC "\"\nmax_size=\"5GiB\"\n", "max_size"},
        {"[file.\"a b\"]\npath=\"a\"\n", "no name of an entry"},
        {NPM "package2=1\n", "did you mean package"},
        {"[npm.a]\npackage=\"--registry\"\nversion=\"1\"\nlock=\"l\"\nintegrity=\"" SHA512_ABC
         "\"\nlock_sha256=\"" SHA256_ABC "\"\n",
         "no name of an npm package"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbPins) pins = eb_pins_parse(bad[i].text, strlen(bad[i].text), "pins.toml", &error);
        g_assert_null(pins);
        eb_test_assert_error(error, EB_ERROR_CONFIG, NULL, bad[i].says);
    }
}

/* The bound of the table. */
static void
test_too_many(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i <= EB_PINS_MAX; i++)
        g_string_append_printf(text, "[deb.a%u]\nat_least=\"1\"\n", i);
    g_assert_null(eb_pins_parse(text->str, text->len, "pins.toml", &error));
    eb_test_assert_error(error, EB_ERROR_CONFIG, "pins.entry", "more than 256");
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/pins/lock", test_lock);
    g_test_add_func("/pins/lock-refused", test_lock_refused);
    g_test_add_func("/pins/digests", test_digests);
    g_test_add_func("/pins/shipped", test_shipped);
    g_test_add_func("/pins/refused", test_refused);
    g_test_add_func("/pins/kinds", test_kinds);
    g_test_add_func("/pins/kinds-refused", test_kinds_refused);
    g_test_add_func("/pins/too-many", test_too_many);
    return g_test_run();
}
