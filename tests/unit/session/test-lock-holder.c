/* SPDX-License-Identifier: MIT */
/* Who holds a lock file: the file's word and the kernel's have to agree. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/session/eb-dir-lock.h"
#include "core/session/eb-lock-holder.h"
#include "tests/lib/eb-test.h"

static void
test_text(void)
{
    static const struct {
        const char *text;
        pid_t pid; /* 0: no */
        const char *id;
    } CASES[] = {{"12\n", 12, NULL},
                 {"12 a-b9\n", 12, "a-b9"},
                 {"12 a/b\n", 12, NULL},
                 {"12 \n", 12, NULL},
                 {"", 0, NULL},
                 {"x\n", 0, NULL},
                 {"-1\n", 0, NULL},
                 {"0\n", 0, NULL},
                 {"99999999999\n", 0, NULL},
                 {"12 \x1b[31m\n", 12, NULL},
                 {"1 a b\n", 1, "a"}};

    for (guint i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autofree char *id = NULL;
        pid_t pid = 0;
        g_assert_cmpint(eb_lock_text_parse(CASES[i].text, &pid, &id), ==, CASES[i].pid != 0);
        g_assert_cmpint(pid, ==, CASES[i].pid);
        g_assert_cmpstr(id, ==, CASES[i].id);
    }
}

static void
test_table(void)
{
    const char *table = "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF\n"
                        "1: -> FLOCK  ADVISORY  WRITE 77 08:01:5678 0 EOF\n"
                        "2: POSIX  ADVISORY  WRITE 88 08:01:5678 0 EOF\n"
                        "3: FLOCK  ADVISORY  READ 99 08:01:5678 0 EOF\nnonsense\n";
    dev_t device = makedev(8, 1);

    g_assert_true(eb_lock_table_has(table, 1234, device, 5678));
    g_assert_true(eb_lock_table_has(table, 1234, makedev(0, 40), 5678));
    g_assert_false(eb_lock_table_has(table, 1234, makedev(8, 2), 5678));
    g_assert_false(eb_lock_table_has(table, 1234, device, 5679));
    g_assert_false(eb_lock_table_has(table, 77, device, 5678));
    g_assert_false(eb_lock_table_has(table, 88, device, 5678));
    g_assert_false(eb_lock_table_has(table, 99, device, 5678));
    g_assert_false(eb_lock_table_has("", 99, device, 5678));
}

static void
test_holder(void)
{
    g_autofree char *dir = eb_test_temp_dir("lock");
    g_autofree char *file = g_build_filename(dir, "lock", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) held_error = NULL;
    g_auto(EbLockHolder) holder = {0};

    g_assert_false(eb_lock_holder_find(dir, "lock", &holder, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "lock.free", NULL);
    EbDirLock *lock = eb_dir_lock_take(dir, "lock", NULL);
    eb_dir_lock_set_id(lock, "run-7");
    g_assert_true(eb_lock_holder_find(dir, "lock", &holder, NULL));
    g_assert_cmpint(holder.pid, ==, getpid());
    g_assert_cmpstr(holder.id, ==, "run-7");
    g_assert_null(eb_dir_lock_take(dir, "lock", &held_error));
    eb_test_assert_error(held_error, EB_ERROR_LOCKED, "lock.held", "(instance run-7)");
    /* Another number in the file is believed by nobody. */
    g_autofree char *lie = g_strdup_printf("%d\n", (int)getppid());
    int fd = open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    g_assert_cmpint(write(fd, lie, strlen(lie)), ==, strlen(lie));
    close(fd);
    g_auto(EbLockHolder) liar = {0};
    g_clear_error(&error);
    g_assert_false(eb_lock_holder_find(dir, "lock", &liar, &error));
    eb_test_assert_error(error, EB_ERROR_UNAVAILABLE, "lock.holder", NULL);
    eb_dir_lock_release(lock);
    /* What a dead holder left says nothing. */
    eb_test_write_file(file, "1\n");
    g_clear_error(&error);
    g_assert_false(eb_lock_holder_find(dir, "lock", &liar, &error));
    eb_test_assert_error(error, EB_ERROR_NOT_FOUND, "lock.free", NULL);
}

/* Root looks into directories of the account: what waits there for ever must not be waited for. */
static void
test_pipe(void)
{
    g_autofree char *dir = eb_test_temp_dir("lock");
    g_autofree char *file = g_build_filename(dir, "lock", NULL);
    g_auto(EbLockHolder) holder = {0};

    g_assert_cmpint(mkfifo(file, 0600), ==, 0);
    g_assert_cmpint(eb_dir_lock_look(dir, "lock"), ==, EB_DIR_LOCK_FREE);
    g_assert_false(eb_lock_holder_find(dir, "lock", &holder, NULL));
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
    g_test_add_func("/lock-holder/text", test_text);
    g_test_add_func("/lock-holder/table", test_table);
    g_test_add_func("/lock-holder/holder", test_holder);
    g_test_add_func("/lock-holder/pipe", test_pipe);
    return g_test_run();
}
