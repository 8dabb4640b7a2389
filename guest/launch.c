/* SPDX-License-Identifier: MIT */
/*
 * Makes a guest ready and becomes the agent; guest/PROTOCOL.md. Runs as guest root and trusts nothing under
 * /workspace and /state: what touches those happens after root has been given up (guest/agent.c).
 */
#include "guest/diag.h"
#include "guest/lease.h"
#include "guest/loopback.h"
#include "guest/options.h"
#include "guest/relay-keeper.h"
#include "guest/supervise.h"
#include "guest/tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_PATH "/opt/errand/run/model.sock"

/* Another launcher's preparation takes a few milliseconds. */
#define LOCK_RETRY_MS 5
#define LOCK_PATIENCE_MS 10000

/* One launcher prepares at a time: mounting twice would hide what the first agent has in /tmp. */
static int
lock_preparation(void)
{
    struct stat info;

    if (mkdir(LEASE_DIR, 0700) < 0 && errno != EEXIST)
        diag_die("cannot make %s: %s", LEASE_DIR, strerror(errno));
    if (lstat(LEASE_DIR, &info) < 0 || !S_ISDIR(info.st_mode) || info.st_uid != 0)
        diag_die("%s is not root's directory", LEASE_DIR);
    int fd = open(LEASE_DIR "/setup.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        diag_die("cannot open the preparation's lock: %s", strerror(errno));
    for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; waited_ms += LOCK_RETRY_MS) {
        const struct timespec pause = {.tv_nsec = LOCK_RETRY_MS * 1000000L};
        if (errno != EWOULDBLOCK || waited_ms >= LOCK_PATIENCE_MS)
            diag_die("cannot lock the guest's preparation: %s", strerror(errno));
        nanosleep(&pause, NULL);
    }
    return fd;
}

static void
ensure_tmpfs(const char *path, uint64_t size)
{
    int result = size > 0 ? tmpfs_ensure(path, size, 01777) : 0;

    if (result < 0)
        diag_die("cannot mount a tmpfs on %s: %s", path, strerror(-result));
}

static void
check_network(void)
{
    char name[IF_NAMESIZE];
    int result = loopback_up();

    if (result < 0)
        diag_die("cannot bring lo up: %s", strerror(-result));
    result = loopback_find_other(name);
    if (result < 0)
        diag_die("cannot list network devices: %s", strerror(-result));
    if (result > 0)
        diag_die("this guest has a network device, %s: a session must have none", name);
}

static void
start_relay(unsigned port)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - sizeof "relay");
    char *slash;

    if (length < 0)
        diag_die("cannot find this program: %s", strerror(errno));
    program[length] = '\0';
    slash = strrchr(program, '/');
    if (slash == NULL)
        diag_die("cannot find the relay beside %s", program);
    memcpy(slash + 1, "relay", sizeof "relay");
    const char *wrong = relay_keep(port, program, SOCKET_PATH);
    if (wrong != NULL)
        diag_die("%s: %s", wrong, strerror(errno));
}

static void
prepare(const struct options *options)
{
    int lock = lock_preparation();

    check_network();
    ensure_tmpfs("/tmp", options->tmp_bytes);
    ensure_tmpfs("/dev/shm", options->shm_bytes);
    if (options->relay_port != 0)
        start_relay(options->relay_port);
    close(lock);
}

int
main(int argc, char **argv)
{
    struct options options;

    diag_set_program("launch");
    const char *wrong = options_parse(argc, argv, &options);
    if (wrong != NULL)
        diag_die("%s", wrong);
    if (getuid() != 0)
        diag_die("must be started as uid 0");
    close_range(STDERR_FILENO + 1, ~0u, 0);
    umask(022);
    prepare(&options);
    if (options.lease) {
        int lease = lease_take(); /* held open until this process ends */
        if (lease == -ENOENT)
            diag_die("this guest's init gives no lease");
        if (lease < 0)
            diag_die("the guest's lease cannot be taken: %s", strerror(-lease));
    }
    return supervise(&options);
}
