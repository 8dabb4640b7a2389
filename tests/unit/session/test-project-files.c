/* SPDX-License-Identifier: MIT */
#include "core/session/eb-project-files.h"
#include "tests/lib/eb-test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    char *root;
    EbWorker *disk;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->root = eb_test_temp_dir("files");
    fixture->disk = eb_worker_new("files", 0);
    g_autofree char *project = g_build_filename(fixture->root, "p", NULL);
    g_assert_cmpint(g_mkdir(project, 0755), ==, 0);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    eb_worker_close(fixture->disk);
    g_object_unref(fixture->disk);
    g_free(fixture->root);
}

static char *
at(Fixture *fixture, const char *path)
{
    return g_build_filename(fixture->root, path, NULL);
}

static void
put(Fixture *fixture, const char *path, const char *content)
{
    g_autofree char *full = at(fixture, path);
    eb_test_write_file(full, content);
}

static EbProjectListing *
list(Fixture *fixture, const char *path, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_project_list_async(fixture->disk, fixture->root, "p", path, NULL, eb_test_result_ready, &done);
    return eb_project_list_finish(eb_test_result_wait(&done), error);
}

static EbProjectFile *
get(Fixture *fixture, const char *path, gsize max, GError **error)
{
    g_auto(EbTestResult) done = {0};
    eb_project_read_async(fixture->disk, fixture->root, "p", path, max, NULL, eb_test_result_ready, &done);
    return eb_project_read_finish(eb_test_result_wait(&done), error);
}

static char *
save(Fixture *fixture, const char *folder, const char *name, const char *content, GError **error)
{
    g_autoptr(GBytes) bytes = g_bytes_new(content, strlen(content));
    g_auto(EbTestResult) done = {0};
    eb_project_save_async(fixture->disk, fixture->root, "p", folder, name, bytes, getuid(), getgid(), NULL,
                          eb_test_result_ready, &done);
    return eb_project_save_finish(eb_test_result_wait(&done), error);
}

static void
test_list(Fixture *fixture, gconstpointer data)
{
    put(fixture, "p/b.txt", "12345");
    put(fixture, "p/a/inner", "x");
    g_autofree char *link = at(fixture, "p/link");
    g_assert_cmpint(symlink("/etc/passwd", link), ==, 0);
    static const char *const same[] = {NULL, "", "/", "/workspace", "/workspace/", "."};
    for (gsize i = 0; i < G_N_ELEMENTS(same); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(EbProjectListing) listing = list(fixture, same[i], &error);
        g_assert_no_error(error);
        g_assert_cmpuint(listing->entries->len, ==, 3);
        const EbProjectEntry *first = listing->entries->pdata[0];
        const EbProjectEntry *second = listing->entries->pdata[1];
        const EbProjectEntry *third = listing->entries->pdata[2];
        g_assert_cmpstr(first->name, ==, "a");
        g_assert_true(first->directory);
        g_assert_cmpstr(second->name, ==, "b.txt");
        g_assert_cmpuint(second->size, ==, 5);
        g_assert_true(third->link);
    }
    g_autoptr(GError) error = NULL;
    g_assert_null(list(fixture, "b.txt", &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "file.not-directory", "b.txt");
}

static void
test_list_bounds(Fixture *fixture, gconstpointer data)
{
    for (guint i = 0; i < EB_PROJECT_MAX_ENTRIES + 7; i++) {
        g_autofree char *name = g_strdup_printf("p/f%04u", i);
        put(fixture, name, "");
    }
    put(fixture, "p/zz/inner", "");
    g_autoptr(EbProjectListing) listing = list(fixture, NULL, NULL);
    g_assert_cmpuint(listing->entries->len, ==, EB_PROJECT_MAX_ENTRIES);
    g_assert_cmpuint(listing->left_out, ==, 8);
    g_assert_false(listing->more);
    const EbProjectEntry *first = listing->entries->pdata[0];
    g_assert_cmpstr(first->name, ==, "zz");
}

static void
test_read(Fixture *fixture, gconstpointer data)
{
    put(fixture, "p/src/main.c", "int main;");
    g_autoptr(EbProjectFile) whole = get(fixture, "/workspace/src/main.c", 100, NULL);
    g_assert_cmpstr(whole->name, ==, "main.c");
    g_assert_cmpuint(whole->size, ==, 9);
    g_assert_cmpuint(g_bytes_get_size(whole->bytes), ==, 9);
    g_assert_false(whole->binary);
    g_autoptr(EbProjectFile) part = get(fixture, "src/main.c", 3, NULL);
    g_assert_cmpuint(part->size, ==, 9);
    g_assert_cmpuint(g_bytes_get_size(part->bytes), ==, 3);
    g_autofree char *path = at(fixture, "p/bin");
    g_assert_true(g_file_set_contents(path, "a\0b", 3, NULL));
    g_autoptr(EbProjectFile) binary = get(fixture, "bin", 100, NULL);
    g_assert_true(binary->binary);
    g_autoptr(GError) error = NULL;
    g_assert_null(get(fixture, "src", 100, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "file.is-directory", "src");
}

/* Everything a guest can put in the way of somebody who looks at its files. */
static void
test_nothing_leads_out(Fixture *fixture, gconstpointer data)
{
    put(fixture, "secret", "top");
    put(fixture, "p/real/file", "x");
    g_autofree char *to_file = at(fixture, "p/to-file");
    g_autofree char *to_dir = at(fixture, "p/to-dir");
    g_autofree char *inside = at(fixture, "p/inside");
    g_autofree char *proc = at(fixture, "p/proc");
    g_autofree char *fifo = at(fixture, "p/fifo");
    g_autofree char *outside = at(fixture, "secret");
    g_assert_cmpint(symlink(outside, to_file), ==, 0);
    g_assert_cmpint(symlink(fixture->root, to_dir), ==, 0);
    g_assert_cmpint(symlink("real", inside), ==, 0);
    g_assert_cmpint(symlink("/proc/self/root", proc), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    const struct {
        const char *path, *reason;
    } cases[] = {
        {"../secret", "file.outside"},
        {"real/../../secret", "file.outside"},
        {"to-file", "file.link"},
        {"to-dir/secret", "file.link"},
        {"inside/file", "file.link"},
        {"proc/etc/passwd", "file.link"},
        {"fifo", "file.kind"},
        {"missing", "file.missing"},
        {"real/file/x", "file.missing"},
        {"/../secret", "file.outside"},
        {"/workspace/../secret", "file.outside"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_test_message("%s", cases[i].path);
        g_assert_null(get(fixture, cases[i].path, 100, &error));
        g_assert_cmpstr(eb_error_get_reason(error), ==, cases[i].reason);
        g_assert_null(strstr(error->message, fixture->root));
    }
    g_autofree char *long_path = g_strnfill(EB_PROJECT_MAX_PATH + 1, 'x');
    g_autoptr(GError) error = NULL;
    g_assert_null(get(fixture, long_path, 100, &error));
    eb_test_assert_error(error, EB_ERROR_INVALID, "file.path", NULL);
}

static void
test_save(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *first = save(fixture, "attachments", "photo.png", "1", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(first, ==, "attachments/photo.png");
    g_autofree char *second = save(fixture, "attachments", "photo.png", "2", &error);
    g_assert_cmpstr(second, ==, "attachments/photo-2.png");
    g_autofree char *hidden = save(fixture, "attachments", "../../.ssh/authorized_keys", "3", &error);
    g_assert_cmpstr(hidden, ==, "attachments/_.._.ssh_authorized_keys");
    struct stat about;
    g_autofree char *path = at(fixture, "p/attachments/photo.png");
    g_assert_cmpint(stat(path, &about), ==, 0);
    g_assert_cmpuint(about.st_mode & 07777, ==, 0600);
    g_autofree char *content = NULL;
    g_assert_true(g_file_get_contents(path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "1");
}

/* An agent that put a link, or a file, where attachments go gets none of them anywhere else. */
static void
test_save_meets_a_link(Fixture *fixture, gconstpointer data)
{
    g_autofree char *elsewhere = at(fixture, "elsewhere");
    g_assert_cmpint(g_mkdir(elsewhere, 0755), ==, 0);
    g_autofree char *folder = at(fixture, "p/attachments");
    g_assert_cmpint(symlink(elsewhere, folder), ==, 0);
    g_autoptr(GError) error = NULL;
    g_assert_null(save(fixture, "attachments", "x", "1", &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "file.link", "attachments");
    g_autoptr(GDir) dir = g_dir_open(elsewhere, 0, NULL);
    g_assert_null(g_dir_read_name(dir));
    g_assert_cmpint(unlink(folder), ==, 0);
    /* The name itself: O_EXCL meets the link and takes the next name. */
    g_assert_cmpint(g_mkdir(folder, 0755), ==, 0);
    g_autofree char *planted = at(fixture, "p/attachments/x");
    g_autofree char *target = at(fixture, "elsewhere/target");
    g_assert_cmpint(symlink(target, planted), ==, 0);
    g_autoptr(GError) other = NULL;
    g_autofree char *saved = save(fixture, "attachments", "x", "1", &other);
    g_assert_no_error(other);
    g_assert_cmpstr(saved, ==, "attachments/x-2");
    g_assert_false(g_file_test(target, G_FILE_TEST_EXISTS));
}

static void
test_no_project(Fixture *fixture, gconstpointer data)
{
    g_autofree char *project = at(fixture, "p");
    g_assert_cmpint(rmdir(project), ==, 0);
    g_autoptr(GError) error = NULL;
    g_assert_null(list(fixture, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "file.no-project", "no files yet");
    g_clear_error(&error);
    g_assert_cmpint(symlink("/etc", project), ==, 0);
    g_assert_null(list(fixture, NULL, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "file.no-project", NULL);
}

static void
test_safe_name(void)
{
    const struct {
        const char *given, *safe;
    } cases[] = {
        {"report.pdf", "report.pdf"},
        {"", "attachment"},
        {NULL, "attachment"},
        {"...", "attachment"},
        {".bashrc", "bashrc"},
        {"../../etc/passwd", "_.._etc_passwd"},
        {"a b\nc\t.txt", "a_b_c_.txt"},
        {"-rf", "-rf"},
        {"한글 파일.txt", "한글_파일.txt"},
        {"\xe2\x80\xaegnp.exe", "_gnp.exe"},
        {"smile\xf0\x9f\x98\x80.png", "smile_.png"},
        {"bad\xff.txt", "bad_.txt"},
        {"nul\\con:", "nul_con_"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *safe = eb_project_safe_name(cases[i].given);
        g_assert_cmpstr(safe, ==, cases[i].safe);
    }
    g_autofree char *letters = g_strnfill(300, 'x');
    g_autofree char *name = g_strconcat(letters, ".jpeg", NULL);
    g_autofree char *safe = eb_project_safe_name(name);
    g_assert_cmpuint(strlen(safe), ==, EB_PROJECT_MAX_NAME);
    g_assert_true(g_str_has_suffix(safe, ".jpeg"));
    GString *wide = g_string_new(NULL);
    for (guint i = 0; i < 60; i++)
        g_string_append(wide, "한");
    g_autofree char *wide_name = g_string_free(wide, FALSE);
    g_autofree char *wide_safe = eb_project_safe_name(wide_name);
    g_assert_true(g_utf8_validate(wide_safe, -1, NULL));
    g_assert_cmpuint(strlen(wide_safe), <=, EB_PROJECT_MAX_NAME);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/project-files/list", test_list);
    ADD("/project-files/list-bounds", test_list_bounds);
    ADD("/project-files/read", test_read);
    ADD("/project-files/nothing-leads-out", test_nothing_leads_out);
    ADD("/project-files/save", test_save);
    ADD("/project-files/save-meets-a-link", test_save_meets_a_link);
    ADD("/project-files/no-project", test_no_project);
    g_test_add_func("/project-files/safe-name", test_safe_name);
    return g_test_run();
}
