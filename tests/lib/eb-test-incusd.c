/* SPDX-License-Identifier: MIT */
#include "eb-test-incusd.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* The first start unpacks, makes a pool and an account; slow machines and sanitizers take their time. */
#define START_LIMIT_S 180

static int
keeper_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpuint(strlen(path), <, sizeof address.sun_path);
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void
keeper_spawn(const char *base)
{
    const char *argv[] = {EB_TEST_INCUSD_KEEPER, EB_TEST_INCUSD_FIXTURE, base, NULL};
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "EB_TEST_GUEST_PROGRAMS", EB_TEST_INCUSD_ATTACK, TRUE);
    g_autoptr(GError) error = NULL;
    g_spawn_async(NULL, (char **)argv, env,
                  G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, NULL,
                  &error);
    g_assert_no_error(error);
}

/* One line: "ready" or "skip REASON" or "failed REASON". */
static char *
keeper_answer(int fd)
{
    g_autoptr(GString) line = g_string_new(NULL);
    char c;
    struct timeval limit = {.tv_sec = START_LIMIT_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    while (read(fd, &c, 1) == 1 && c != '\n')
        g_string_append_c(line, c);
    return g_string_free(g_steal_pointer(&line), FALSE);
}

static char *
base_directory(const char *name)
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, EB_TEST_INCUSD_KEEPER, -1);
    sum[8] = '\0';
    return g_strdup_printf("/tmp/ebi-%s-%s", sum, name);
}

/* A keeper that ends takes the file away: a lock on what has no name any more keeps nobody out. */
static int
lock_file(const char *path)
{
    for (;;) {
        struct stat held, named;
        int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        g_assert_cmpint(fd, >=, 0);
        g_assert_cmpint(flock(fd, LOCK_EX), ==, 0);
        g_assert_cmpint(fstat(fd, &held), ==, 0);
        if (stat(path, &named) == 0 && named.st_ino == held.st_ino)
            return fd;
        close(fd);
    }
}

static char *
read_word(const char *base, const char *name)
{
    g_autofree char *path = g_build_filename(base, name, NULL);
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return g_strstrip(text);
}

EbTestIncusd *
eb_test_incusd_acquire(const char *name, char **reason)
{
    if (geteuid() != 0) {
        *reason = g_strdup("needs root");
        return NULL;
    }
    g_autofree char *base = base_directory(name);
    g_autofree char *path = g_strconcat(base, ".keeper", NULL);
    g_autofree char *lock_path = g_strconcat(base, ".lock", NULL);
    /* Held by a keeper from before its socket exists until after it has cleaned up. */
    g_autofree char *life_path = g_strconcat(base, ".life", NULL);
    int lock = lock_file(lock_path);
    int fd = keeper_connect(path);
    if (fd < 0) {
        int life = open(life_path, O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
        g_assert_cmpint(life, >=, 0);
        g_assert_cmpint(flock(life, LOCK_EX), ==, 0);
        close(life);
        keeper_spawn(base);
        for (guint i = 0; fd < 0 && i < 500; i++) {
            g_usleep(20000);
            fd = keeper_connect(path);
        }
        g_assert_cmpint(fd, >=, 0);
    }
    close(lock);
    g_autofree char *answer = keeper_answer(fd);
    if (!g_str_equal(answer, "ready")) {
        close(fd);
        *reason = g_strdup(g_str_has_prefix(answer, "skip ") ? answer + 5 : answer);
        if (!g_str_has_prefix(answer, "skip "))
            g_error("the private incusd did not start: %s", answer);
        return NULL;
    }
    EbTestIncusd *self = g_new0(EbTestIncusd, 1);
    self->keeper = fd;
    self->dir = g_strdup(base);
    self->socket = g_strconcat(base, "/d/unix.socket", NULL);
    self->user_socket = g_strconcat(base, "/d/unix.socket.user", NULL);
    if (!g_file_test(self->user_socket, G_FILE_TEST_EXISTS))
        g_clear_pointer(&self->user_socket, g_free);
    self->pool = g_strdup("pool");
    self->image = g_strdup("test/guest");
    self->sessions = g_strconcat(base, "/sessions", NULL);
    self->driver = read_word(base, "driver");
    g_autofree char *uid = read_word(base, "uid");
    self->uid = (uid_t)g_ascii_strtoull(uid, NULL, 10);
    self->project = g_strdup_printf("user-%u", (guint)self->uid);
    return self;
}

void
eb_test_incusd_release(EbTestIncusd *self)
{
    if (self == NULL)
        return;
    close(self->keeper);
    g_free(self->dir);
    g_free(self->socket);
    g_free(self->user_socket);
    g_free(self->project);
    g_free(self->pool);
    g_free(self->driver);
    g_free(self->image);
    g_free(self->sessions);
    g_free(self);
}

static pid_t
daemon_pid(EbTestIncusd *self)
{
    g_autofree char *path = g_strconcat(self->dir, "/incusd.pid", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return (pid_t)g_ascii_strtoll(text, NULL, 10);
}

void
eb_test_incusd_kill(EbTestIncusd *self)
{
    pid_t pid = daemon_pid(self);
    g_autofree char *stat_path = g_strdup_printf("/proc/%d/stat", (int)pid);
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    for (guint i = 0; i < 500; i++) {
        g_autofree char *stat = NULL;
        if (!g_file_get_contents(stat_path, &stat, NULL, NULL) || strstr(stat, ") Z ") != NULL)
            return;
        g_usleep(20000);
    }
    g_error("incusd does not die");
}

static void
run_fixture(EbTestIncusd *self, const char *action)
{
    const char *argv[] = {EB_TEST_INCUSD_FIXTURE, action, self->dir, NULL};
    g_autoptr(GError) error = NULL;
    int status;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL, &status, &error);
    g_assert_no_error(error);
    g_assert_true(g_spawn_check_wait_status(status, &error));
}

void
eb_test_incusd_restart(EbTestIncusd *self)
{
    run_fixture(self, "restart");
}

char *
eb_test_incusd_cli(EbTestIncusd *self, const char *first, ...)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *dir = g_strconcat(self->dir, "/d", NULL);
    g_autofree char *conf = g_strconcat(self->dir, "/conf", NULL);
    g_auto(GStrv) env = g_environ_setenv(g_get_environ(), "INCUS_DIR", dir, TRUE);
    env = g_environ_setenv(env, "INCUS_CONF", conf, TRUE);
    g_ptr_array_add(argv, (gpointer) "incus");
    va_list args;
    va_start(args, first);
    for (const char *arg = first; arg != NULL; arg = va_arg(args, const char *))
        g_ptr_array_add(argv, (gpointer)arg);
    va_end(args);
    g_ptr_array_add(argv, NULL);
    g_autoptr(GError) error = NULL;
    char *out = NULL;
    g_autofree char *err = NULL;
    int status;
    g_spawn_sync(NULL, (char **)argv->pdata, env, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err, &status, &error);
    g_assert_no_error(error);
    if (!g_spawn_check_wait_status(status, NULL))
        g_test_message("incus %s: %s", first, err);
    return out;
}

void
eb_test_incusd_become_account(EbTestIncusd *self)
{
    const struct group *entry = getgrnam("incus");
    g_assert_nonnull(entry);
    gid_t groups[1] = {entry->gr_gid};
    g_assert_cmpint(setgroups(1, groups), ==, 0);
    g_assert_cmpint(setresgid(self->uid, self->uid, self->uid), ==, 0);
    g_assert_cmpint(setresuid(self->uid, self->uid, self->uid), ==, 0);
    /* The leak checker looks at its own process through ptrace. */
    prctl(PR_SET_DUMPABLE, 1);
}
