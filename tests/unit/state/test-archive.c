/* SPDX-License-Identifier: MIT */
/* The file of a backup: what we write is read back whole, and nothing else is. */
#include "core/state/eb-archive.h"
#include "eb-test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void
test_names(void)
{
    static const char *const good[] = {"state.db",
                                       "try/0123abcd0123abcd/state.db",
                                       "etc/errand-box.toml",
                                       "etc/conf.d/10-local.toml",
                                       "manifest.json",
                                       "manifest.sha256",
                                       "errand-box-backup"};
    static const char *const bad[] = {"",
                                      "/state.db",
                                      "../state.db",
                                      "./state.db",
                                      "try/../state.db",
                                      "try//state.db",
                                      "try/state.db",
                                      "try/a/b/state.db",
                                      "try/.x/state.db",
                                      "state.db-wal",
                                      "state.db/",
                                      "sessions/aaaaaaaaaaaa/run/launch",
                                      "etc/passwd",
                                      "etc/conf.d/../errand-box.toml",
                                      "etc/conf.d/.hidden.toml",
                                      "etc/conf.d/a/b.toml",
                                      "creds.env",
                                      "state.db\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(eb_archive_check_name(good[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(eb_archive_check_name(bad[i]));
    g_autofree char *longest = g_strnfill(120, 'a');
    g_autofree char *name = g_strdup_printf("try/%s/state.db", longest);
    g_assert_false(eb_archive_check_name(name));
}

static void
sign(guint8 *block)
{
    guint sum = 8 * ' ';
    for (guint i = 0; i < EB_ARCHIVE_BLOCK; i++)
        sum += i >= 148 && i < 156 ? 0 : block[i];
    g_snprintf((char *)block + 148, 8, "%06o", sum);
}

/* Each change makes a header that some tar would take, and that we must not. */
static void
test_headers(void)
{
    static const struct {
        guint at;
        const char *bytes;
        guint n;
    } changes[] = {
        {156, "2", 1},                         /* a symlink */
        {156, "1", 1},                         /* a hard link */
        {156, "3", 1},                         /* a device */
        {156, "5", 1},                         /* a directory */
        {156, "x", 1},                         /* an extension that renames what follows */
        {156, "L", 1},                         /* GNU's long name */
        {156, "\0", 1},                        /* what old tars write */
        {157, "/etc/passwd", 11},              /* a link's target */
        {345, "/etc", 4},                      /* a prefix before the name */
        {0, "/state.db", 9},                   /* an absolute name */
        {0, "../../up.db", 11},                /* a way up */
        {20, "x", 1},                          /* something behind the name */
        {124, "-0000000001", 11},              /* a negative size */
        {124, "\x80\0\0\0\0\0\0\0\0\0\1", 11}, /* a size in base 256 */
        {257, "ustar  ", 7},                   /* GNU's own format */
    };
    EbArchiveEntry entry = {.name = "state.db", .size = 4096}, read;
    guint8 block[EB_ARCHIVE_BLOCK];
    gboolean end = TRUE;
    g_autoptr(GError) error = NULL;
    eb_archive_format_header(block, &entry, 1700000000);
    g_assert_true(eb_archive_parse_header(block, &read, &end, &error));
    g_assert_no_error(error);
    g_assert_false(end);
    g_assert_cmpstr(read.name, ==, "state.db");
    g_assert_cmpuint(read.size, ==, 4096);
    for (gsize i = 0; i < G_N_ELEMENTS(changes); i++) {
        eb_archive_format_header(block, &entry, 1700000000);
        memcpy(block + changes[i].at, changes[i].bytes, changes[i].n);
        sign(block);
        g_clear_error(&error);
        g_assert_false(eb_archive_parse_header(block, &read, &end, &error));
        eb_test_assert_error(error, EB_ERROR_INVALID, "backup.foreign", NULL);
    }
    eb_archive_format_header(block, &entry, 1700000000);
    block[130] = '7';
    g_clear_error(&error);
    g_assert_false(eb_archive_parse_header(block, &read, &end, &error));
    memset(block, 0, sizeof block);
    g_clear_error(&error);
    g_assert_true(eb_archive_parse_header(block, &read, &end, &error));
    g_assert_true(end);
}

/* --- whole archives --- */

static int
take(const EbArchiveEntry *entry, gpointer user_data, GError **error)
{
    g_autofree char *flat = g_strdelimit(g_strdup(entry->name), "/", '_');
    g_autofree char *path = g_build_filename(user_data, flat, NULL);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static char *
make(const char *dir)
{
    char *path = g_build_filename(dir, "backup.tar", NULL);
    g_autofree char *content = g_strnfill(700000, 'x');
    g_autoptr(EbArchiveManifest) manifest = eb_archive_manifest_new();
    g_autoptr(GError) error = NULL;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    manifest->version = g_strdup("0.1");
    manifest->created = g_strdup("2026-01-01T00:00:00Z");
    manifest->sessions = 3;
    eb_archive_write_bytes(fd, EB_ARCHIVE_MARKER, "1\n", 2, manifest, &error);
    eb_archive_write_bytes(fd, "state.db", content, 700000, manifest, &error);
    eb_archive_write_bytes(fd, "etc/errand-box.toml", "", 0, manifest, &error);
    eb_archive_write_end(fd, manifest, &error);
    g_assert_no_error(error);
    close(fd);
    return path;
}

static EbArchiveManifest *
read_back(const char *dir, const char *path, guint64 room, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    EbArchiveManifest *manifest = eb_archive_read(fd, room, take, (gpointer)dir, error);
    close(fd);
    return manifest;
}

static void
test_whole(void)
{
    g_autofree char *dir = eb_test_temp_dir("archive");
    g_autofree char *path = make(dir);
    g_autofree char *copy = g_build_filename(dir, "state.db", NULL);
    g_autofree char *content = NULL;
    g_autoptr(GError) error = NULL;
    gsize length = 0;
    g_autoptr(EbArchiveManifest) manifest = read_back(dir, path, 1000000, &error);
    g_assert_no_error(error);
    g_assert_cmpint(manifest->sessions, ==, 3);
    g_assert_cmpuint(manifest->files->len, ==, 3);
    g_assert_true(g_file_get_contents(copy, &content, &length, NULL));
    g_assert_cmpuint(length, ==, 700000);
    /* any tar lists it */
    const char *argv[] = {"tar", "-tf", path, NULL};
    g_autofree char *listed = NULL;
    int status = -1;
    g_assert_true(
        g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &listed, NULL, &status, NULL));
    g_assert_cmpint(status, ==, 0);
    g_assert_cmpstr(listed, ==, "errand-box-backup\nstate.db\netc/errand-box.toml\nmanifest.json\nmanifest.sha256\n");
    g_assert_null(read_back(dir, path, 100000, &error));
    eb_test_assert_error(error, EB_ERROR_QUOTA, "backup.size", "state.db has 700000 bytes");
}

/* Cut off anywhere, or with any one byte changed: refused. */
static void
test_broken(void)
{
    g_autofree char *dir = eb_test_temp_dir("archive");
    g_autofree char *path = make(dir);
    g_autofree char *content = NULL;
    gsize length = 0;
    g_assert_true(g_file_get_contents(path, &content, &length, NULL));
    for (gsize at = 0; at < length; at += at < 4096 || at > length - 4096 ? 37 : 40009) {
        g_autoptr(GError) error = NULL;
        g_assert_true(g_file_set_contents(path, content, (gssize)at, NULL));
        g_autoptr(EbArchiveManifest) cut = read_back(dir, path, 1000000, &error);
        /* Only the second block of zeros behind the end may be missing. */
        if (at >= length - EB_ARCHIVE_BLOCK)
            continue;
        g_assert_null(cut);
        g_assert_nonnull(error);
        g_clear_error(&error);
        content[at] ^= 0x10;
        g_assert_true(g_file_set_contents(path, content, (gssize)length, NULL));
        g_autoptr(EbArchiveManifest) altered = read_back(dir, path, 1000000, &error);
        content[at] ^= 0x10;
        /* The modification time, owner and fill are checked by the header's sum, the padding behind a file by nothing. */
        if (altered == NULL)
            g_assert_nonnull(error);
        else
            g_assert_cmpint(content[at], ==, 0);
    }
    g_autofree char *more = g_malloc0(length + 20000);
    memcpy(more, content, length);
    g_autoptr(GError) error = NULL;
    g_assert_true(g_file_set_contents(path, more, (gssize)length + 4096, NULL));
    g_autoptr(EbArchiveManifest) padded = read_back(dir, path, 1000000, &error);
    g_assert_no_error(error);
    more[length + 100] = 1;
    g_assert_true(g_file_set_contents(path, more, (gssize)length + 4096, NULL));
    g_assert_null(read_back(dir, path, 1000000, &error));
    eb_test_assert_error(error, EB_ERROR_INTEGRITY, "backup.altered", "behind the end");
}

#define FILES                                                                                                          \
    "\"files\":[{\"name\":\"state.db\",\"size\":1,"                                                                    \
    "\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"}]"

static void
test_manifests(void)
{
    static const char good[] = "{\"format\":1,\"version\":\"0.1~rc1+3\",\"schema\":1,\"created\":\"2026-01-01T00:00:"
                               "00Z\",\"sessions\":0," FILES "}";
    static const struct {
        const char *text;
        EbErrorCode code;
    } bad[] = {
        {"", EB_ERROR_INVALID},
        {"[]", EB_ERROR_INVALID},
        {"{\"format\":2}", EB_ERROR_CONFIG},
        {"{\"format\":1,\"version\":\"x\",\"schema\":1,\"created\":\"y\",\"sessions\":0,\"files\":[]}",
         EB_ERROR_INVALID},
        /* what a terminal would act on */
        {"{\"format\":1,\"version\":\"\\u001b[2J\",\"schema\":1,\"created\":\"y\",\"sessions\":0," FILES "}",
         EB_ERROR_INVALID},
        {"{\"format\":1,\"version\":\"x\",\"schema\":1,\"created\":\"\\u009b2J\",\"sessions\":0," FILES "}",
         EB_ERROR_INVALID},
        {"{\"format\":1,\"version\":\"x\",\"schema\":1,\"created\":\"y\",\"sessions\":0,\"files\":[{\"name\":"
         "\"state.db\",\"size\":1,\"sha256\":\"\\u001b["
         "2J000000000000000000000000000000000000000000000000000000000000\"}]}",
         EB_ERROR_INVALID},
        {"{\"format\":1,\"version\":\"x\",\"schema\":1,\"created\":\"y\",\"sessions\":0,\"files\":[{\"name\":\"/x\","
         "\"size\":1,\"sha256\":\"0000000000000000000000000000000000000000000000000000000000000000\"}]}",
         EB_ERROR_INVALID},
    };
    g_autoptr(GError) none = NULL;
    g_autoptr(EbArchiveManifest) manifest = eb_archive_manifest_parse(good, strlen(good), &none);
    g_assert_no_error(none);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(eb_archive_manifest_parse(bad[i].text, strlen(bad[i].text), &error));
        eb_test_assert_error(error, bad[i].code, NULL, NULL);
    }
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/archive/names", test_names);
    g_test_add_func("/archive/headers", test_headers);
    g_test_add_func("/archive/whole", test_whole);
    g_test_add_func("/archive/broken", test_broken);
    g_test_add_func("/archive/manifests", test_manifests);
    return g_test_run();
}
