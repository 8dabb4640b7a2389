/* SPDX-License-Identifier: MIT */
/* The cache of built images: old builds and what killed ones left go, what is young, locked or not ours stays. */
#include "core/provision/eb-image-build.h"
#include "core/provision/eb-image-cache.h"
#include "eb-test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD "00000000000000000000000000000000000000000000000000000000000000ff"
#define YOUNG "11111111111111111111111111111111111111111111111111111111111111ff"
#define DAY 86400

static char *
make(const char *dir, const char *name, gboolean old)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    char *path = g_build_filename(dir, name, NULL);
    g_autofree char *file = g_build_filename(path, "rootfs.tar", NULL);
    eb_test_write_file(file, "some bytes");
    if (old)
        g_assert_cmpint(utimensat(AT_FDCWD, path, times, 0), ==, 0);
    return path;
}

static gboolean
is_there(const char *path)
{
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void
test_sweep(void)
{
    g_autofree char *dir = eb_test_temp_dir("cache");
    g_autofree char *old = make(dir, OLD, TRUE);
    g_autofree char *young = make(dir, YOUNG, FALSE);
    g_autofree char *dead = make(dir, EB_IMAGE_PARTIAL "dead", FALSE);
    g_autofree char *busy = make(dir, EB_IMAGE_PARTIAL "busy", TRUE);
    g_autofree char *foreign = make(dir, "somebody-else", TRUE);
    g_autoptr(GError) error = NULL;
    EbImageCacheCount count;
    int lock = open(busy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(flock(lock, LOCK_EX | LOCK_NB), ==, 0);
    g_assert_true(eb_image_cache_sweep(dir, DAY, TRUE, &count, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(count.found, ==, 2);
    g_assert_cmpuint(count.removed, ==, 0);
    g_assert_cmpuint(count.bytes, >, 0);
    g_assert_true(is_there(old) && is_there(dead));
    g_assert_true(eb_image_cache_sweep(dir, DAY, FALSE, &count, &error));
    g_assert_cmpuint(count.removed, ==, 2);
    g_assert_false(is_there(old) || is_there(dead));
    g_assert_true(is_there(young) && is_there(busy) && is_there(foreign));
    close(lock);
}

static void
test_left_alone(void)
{
    g_autofree char *dir = eb_test_temp_dir("cache");
    g_autofree char *old = make(dir, OLD, TRUE);
    g_autofree char *none = g_build_filename(dir, "none", NULL);
    g_autofree char *lock = g_build_filename(dir, "lock", NULL);
    g_autoptr(GError) error = NULL;
    EbImageCacheCount count;
    g_assert_true(eb_image_cache_sweep(none, DAY, FALSE, &count, &error));
    g_assert_cmpuint(count.found, ==, 0);
    /* a build is under way */
    eb_test_write_file(lock, "");
    int held = open(lock, O_RDWR | O_CLOEXEC);
    g_assert_cmpint(flock(held, LOCK_EX | LOCK_NB), ==, 0);
    g_assert_false(eb_image_cache_sweep(dir, DAY, FALSE, &count, &error));
    eb_test_assert_error(error, EB_ERROR_BUSY, "image.lock", dir);
    close(held);
    /* others may write there */
    g_clear_error(&error);
    g_assert_cmpint(chmod(dir, 0777), ==, 0);
    g_assert_false(eb_image_cache_sweep(dir, DAY, FALSE, &count, &error));
    eb_test_assert_error(error, EB_ERROR_DENIED, "image.cache", dir);
    g_assert_true(is_there(old));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/image-cache/sweep", test_sweep);
    g_test_add_func("/image-cache/left-alone", test_left_alone);
    return g_test_run();
}
