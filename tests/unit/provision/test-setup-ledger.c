/* SPDX-License-Identifier: MIT */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-setup-ledger.h"
#include "tests/lib/eb-test.h"

static void
add(EbSetupLedger *ledger, const char *step, const char *kind, const char *name, const char *before, const char *made)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_setup_ledger_add(ledger, step, kind, name, before, made, NULL, &error));
    g_assert_no_error(error);
}

static EbSetupLedger *
make(void)
{
    EbSetupLedger *ledger = eb_setup_ledger_new();

    add(ledger, "account", "user", "errand", NULL, "999");
    add(ledger, "settings", "file", "/etc/a \"b\"\n\\", "old\ntext\t\xc3\xa4", "sha256:12");
    add(ledger, "account", "group", "errand", NULL, NULL);
    return ledger;
}

/* What is written is what is read. */
static void
test_text(void)
{
    g_autoptr(EbSetupLedger) ledger = make();
    g_autofree char *text = eb_setup_ledger_to_text(ledger);
    g_autoptr(GError) error = NULL;
    g_autoptr(EbSetupLedger) again = eb_setup_ledger_parse(text, strlen(text), &error);
    g_autofree char *text_again = NULL;
    const EbLedgerEntry *entry;

    g_assert_no_error(error);
    text_again = eb_setup_ledger_to_text(again);
    g_assert_cmpstr(text, ==, text_again);
    entry = eb_setup_ledger_find(again, "file", "/etc/a \"b\"\n\\");
    g_assert_nonnull(entry);
    g_assert_cmpstr(entry->before, ==, "old\ntext\t\xc3\xa4");
    g_assert_cmpstr(entry->step, ==, "settings");
    entry = eb_setup_ledger_find(again, "group", "errand");
    g_assert_null(entry->before);
    g_assert_null(entry->made);
}

/* The oldest "before" is the host as it was; the newest "made" is what setup put there. */
static void
test_add_again(void)
{
    g_autoptr(EbSetupLedger) ledger = make();
    gboolean changed = FALSE;
    const EbLedgerEntry *entry;

    g_assert_true(
        eb_setup_ledger_add(ledger, "settings", "file", "/etc/a \"b\"\n\\", "newer", "sha256:13", &changed, NULL));
    g_assert_true(changed);
    g_assert_true(
        eb_setup_ledger_add(ledger, "settings", "file", "/etc/a \"b\"\n\\", "newest", "sha256:13", &changed, NULL));
    g_assert_false(changed);
    entry = eb_setup_ledger_find(ledger, "file", "/etc/a \"b\"\n\\");
    g_assert_cmpstr(entry->before, ==, "old\ntext\t\xc3\xa4");
    g_assert_cmpstr(entry->made, ==, "sha256:13");
    g_assert_cmpuint(eb_setup_ledger_get_length(ledger), ==, 3);
}

static void
test_list(void)
{
    g_autoptr(EbSetupLedger) ledger = make();
    g_autoptr(GPtrArray) all = eb_setup_ledger_list(ledger, NULL);
    g_autoptr(GPtrArray) account = eb_setup_ledger_list(ledger, "account");

    g_assert_cmpuint(all->len, ==, 3);
    g_assert_cmpuint(account->len, ==, 2);
    g_assert_cmpstr(((EbLedgerEntry *)account->pdata[0])->kind, ==, "group");
    g_assert_cmpstr(((EbLedgerEntry *)account->pdata[1])->kind, ==, "user");
    g_assert_true(eb_setup_ledger_remove(ledger, "group", "errand"));
    g_assert_false(eb_setup_ledger_remove(ledger, "group", "errand"));
    g_assert_null(eb_setup_ledger_find(ledger, "group", "errand"));
    g_assert_nonnull(eb_setup_ledger_find(ledger, "user", "errand"));
}

static void
test_refused_text(void)
{
    static const char *const CASES[] = {
        "",
        "nonsense",
        "[]",
        "{}",
        "{\"schema\":1}",
        "{\"schema\":2,\"entries\":[]}",
        "{\"schema\":1,\"entries\":[7]}",
        "{\"schema\":1,\"entries\":[{\"step\":\"a\",\"kind\":\"b\"}]}",
        "{\"schema\":1,\"entries\":[{\"step\":\"a\",\"kind\":\"b\",\"name\":\"c\"},"
        "{\"step\":\"d\",\"kind\":\"b\",\"name\":\"c\"}]}",
        "{\"schema\":1,\"entries\":[{\"step\":\"a\",\"kind\":\"b\",\"name\":\"c\"}",
    };

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_setup_ledger_parse(CASES[i], strlen(CASES[i]), &error));
        g_assert_nonnull(error);
    }
}

static void
test_bounds(void)
{
    g_autoptr(EbSetupLedger) ledger = eb_setup_ledger_new();
    g_autofree char *longest = g_strnfill(EB_SETUP_LEDGER_MAX_STRING, 'x');
    g_autofree char *longer = g_strnfill(EB_SETUP_LEDGER_MAX_STRING + 1, 'x');
    g_autoptr(GError) error = NULL;

    add(ledger, "s", "k", "longest", longest, NULL);
    g_assert_false(eb_setup_ledger_add(ledger, "s", "k", "longer", longer, NULL, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "ledger.full", NULL);
    g_clear_error(&error);
    for (guint i = 1; i < EB_SETUP_LEDGER_MAX_ENTRIES; i++) {
        g_autofree char *name = g_strdup_printf("%u", i);
        add(ledger, "s", "k", name, NULL, NULL);
    }
    g_assert_false(eb_setup_ledger_add(ledger, "s", "k", "one more", NULL, NULL, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "ledger.full", NULL);
}

static void
test_file(void)
{
    g_autofree char *top = eb_test_temp_dir("eb-ledger");
    g_autofree char *dir = g_build_filename(top, "l", NULL);
    g_autofree char *path = g_build_filename(dir, "ledger.json", NULL);
    g_autoptr(EbSetupLedger) ledger = make();
    g_autoptr(EbSetupLedger) empty = NULL;
    g_autoptr(EbSetupLedger) again = NULL;
    g_autoptr(GError) error = NULL;
    struct stat info;

    empty = eb_setup_ledger_load(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_setup_ledger_get_length(empty), ==, 0);
    /* Nothing to keep: nothing is made. */
    g_assert_true(eb_setup_ledger_save(empty, dir, &error));
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));

    g_assert_true(eb_setup_ledger_save(ledger, dir, &error));
    g_assert_no_error(error);
    g_assert_cmpint(g_stat(path, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0600);
    g_assert_cmpint(g_stat(dir, &info), ==, 0);
    g_assert_cmpuint(info.st_mode & 07777, ==, 0700);
    again = eb_setup_ledger_load(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_setup_ledger_get_length(again), ==, 3);

    /* The last entry gone, so is the file. */
    g_assert_true(eb_setup_ledger_save(empty, dir, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
}

/* An interrupted save leaves a half-written file beside the ledger, which is whole. */
static void
test_interrupted(void)
{
    g_autofree char *top = eb_test_temp_dir("eb-ledger");
    g_autofree char *dir = g_build_filename(top, "l", NULL);
    g_autofree char *half = g_build_filename(dir, ".ledger.json.new", NULL);
    g_autoptr(EbSetupLedger) ledger = make();
    g_autoptr(EbSetupLedger) again = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_setup_ledger_save(ledger, dir, &error));
    eb_test_write_file(half, "{\"schema\":1,\"ent");
    again = eb_setup_ledger_load(dir, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(eb_setup_ledger_get_length(again), ==, 3);
    g_assert_true(eb_setup_ledger_save(again, dir, &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(half, G_FILE_TEST_EXISTS));
}

/* What others could have written is not acted on. */
static void
test_trust(void)
{
    g_autofree char *top = eb_test_temp_dir("eb-ledger");
    g_autofree char *dir = g_build_filename(top, "l", NULL);
    g_autofree char *path = g_build_filename(dir, "ledger.json", NULL);
    g_autofree char *elsewhere = g_build_filename(top, "other.json", NULL);
    g_autoptr(EbSetupLedger) ledger = make();
    g_autoptr(GError) error = NULL;

    g_assert_true(eb_setup_ledger_save(ledger, dir, &error));
    g_assert_cmpint(g_chmod(path, 0666), ==, 0);
    g_assert_null(eb_setup_ledger_load(dir, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "ledger.owner", "mode 0666");
    g_clear_error(&error);
    g_assert_cmpint(g_chmod(path, 0600), ==, 0);
    g_assert_cmpint(g_chmod(dir, 0777), ==, 0);
    g_assert_null(eb_setup_ledger_load(dir, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "ledger.owner", "mode 0777");
    g_clear_error(&error);
    g_assert_false(eb_setup_ledger_save(ledger, dir, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "ledger.owner", NULL);
    g_clear_error(&error);
    g_assert_cmpint(g_chmod(dir, 0700), ==, 0);
    if (geteuid() == 0) {
        g_assert_cmpint(chown(path, 65534, 65534), ==, 0);
        g_assert_null(eb_setup_ledger_load(dir, &error));
        eb_test_assert_error(error, EB_ERROR_INTEGRITY, "ledger.owner", "uid 65534");
        g_clear_error(&error);
    }
    g_assert_cmpint(g_rename(path, elsewhere), ==, 0);
    g_assert_cmpint(symlink(elsewhere, path), ==, 0);
    g_assert_null(eb_setup_ledger_load(dir, &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "ledger.file", NULL);
    g_clear_error(&error);
    g_assert_cmpint(g_unlink(path), ==, 0);
    g_assert_cmpint(mkdir(path, 0700), ==, 0);
    g_assert_null(eb_setup_ledger_load(dir, &error));
    eb_test_assert_error(error, EB_ERROR_FAILED, "ledger.file", NULL);
}

static void
test_too_long(void)
{
    g_autofree char *dir = eb_test_temp_dir("eb-ledger");
    g_autofree char *path = g_build_filename(dir, "ledger.json", NULL);
    g_autofree char *text = g_strnfill(EB_SETUP_LEDGER_MAX_BYTES + 10, ' ');
    g_autoptr(GError) error = NULL;

    eb_test_write_file(path, text);
    g_chmod(path, 0600);
    g_assert_null(eb_setup_ledger_load(dir, &error));
    g_assert_nonnull(error);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/setup-ledger/text", test_text);
    g_test_add_func("/setup-ledger/add-again", test_add_again);
    g_test_add_func("/setup-ledger/list", test_list);
    g_test_add_func("/setup-ledger/refused-text", test_refused_text);
    g_test_add_func("/setup-ledger/bounds", test_bounds);
    g_test_add_func("/setup-ledger/file", test_file);
    g_test_add_func("/setup-ledger/interrupted", test_interrupted);
    g_test_add_func("/setup-ledger/trust", test_trust);
    g_test_add_func("/setup-ledger/too-long", test_too_long);
    return g_test_run();
}
