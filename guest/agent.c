/* SPDX-License-Identifier: MIT */
#include "guest/agent.h"
#include "guest/beneath.h"
#include "guest/block.h"
#include "guest/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Too big for a stack with a guard of unknown size; one process, one block. */
static struct block block;

static void
reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
drop_privileges(const struct options *options)
{
    const struct rlimit no_core = {0};

    if (setrlimit(RLIMIT_CORE, &no_core) < 0)
        diag_die("cannot switch core files off: %s", strerror(errno));
    /* Rootless containers need newuidmap, which is privileged; everything else lives without. */
    if (!options->containers && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        diag_die("cannot forbid new privileges: %s", strerror(errno));
    if (setgroups(0, NULL) < 0 || setresgid(AGENT_GID, AGENT_GID, AGENT_GID) < 0 ||
        setresuid(AGENT_UID, AGENT_UID, AGENT_UID) < 0)
        diag_die("cannot become uid %d: %s", AGENT_UID, strerror(errno));
    if (setresuid(0, 0, 0) == 0)
        diag_die("still able to become uid 0");
}

static void
read_exactly(uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = read(STDIN_FILENO, bytes, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            diag_die("cannot read the session's block: %s", strerror(errno));
        if (got == 0)
            diag_die("input ended inside the session's block");
        bytes += got;
        size -= (size_t)got;
    }
}

/* Byte by byte up to the newline: not one byte of the agent's own input may be taken. */
static void
read_block(void)
{
    char line[BLOCK_MAX_HEADER];
    size_t length = 0;
    size_t size = 0;

    do {
        read_exactly((uint8_t *)line + length, 1);
        length++;
    } while (line[length - 1] != '\n' && length < sizeof line);
    const char *wrong = block_parse_header(line, length, &size);
    if (wrong != NULL)
        diag_die("%s", wrong);
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL)
        diag_die("no memory for the session's block");
    read_exactly(bytes, size);
    wrong = block_parse(bytes, size, &block);
    if (wrong != NULL)
        diag_die("the session's block is malformed: %s", wrong);
}

/* A terminal in line mode would eat and echo the block. */
static void
read_block_from_tty(void)
{
    struct termios before;
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        diag_die("cannot read the terminal's mode: %s", strerror(errno));
    raw = before;
    cfmakeraw(&raw);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
        diag_die("cannot set the terminal's mode: %s", strerror(errno));
    read_block();
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void
place_files(const struct options *options)
{
    const char *home = options->home != NULL ? options->home : block_find_env(&block, "HOME");
    int dir = -1;

    if (home == NULL || home[0] != '/') {
        if (block.n_files > 0)
            diag_die("files but no HOME to place them in");
        return;
    }
    if (options->home != NULL || block.n_files > 0) {
        int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        dir = root < 0 ? -errno : beneath_open_dir(root, home + 1, 0700);
        if (dir < 0)
            diag_die("HOME %s cannot be made or opened: %s", home, strerror(-dir));
        close(root);
    }
    for (size_t i = 0; i < block.n_files; i++) {
        const struct block_file *file = &block.files[i];
        int result = beneath_write_file(dir, file->path, file->mode, file->data, file->size);
        if (result < 0)
            diag_die("cannot place %s/%s: %s", home, file->path, strerror(-result));
    }
    if (dir >= 0)
        close(dir);
}

/* A directory that the agent owns or can write may hold a program that an earlier run of it has planted. */
static bool
dir_is_trusted(const char *dir)
{
    struct stat info;

    return dir[0] == '/' && stat(dir, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid != AGENT_UID &&
           faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) < 0;
}

static bool
find_program(const char *command, char *path, size_t size)
{
    const char *dirs = block_find_env(&block, "PATH");
    struct stat info;

    if (strchr(command, '/') != NULL)
        return command[0] == '/' && (size_t)snprintf(path, size, "%s", command) < size;
    for (const char *at = dirs != NULL ? dirs : DEFAULT_PATH; *at != '\0';) {
        size_t length = strcspn(at, ":");
        if (length < size && (size_t)snprintf(path, size, "%.*s", (int)length, at) < size && dir_is_trusted(path) &&
            (size_t)snprintf(path, size, "%.*s/%s", (int)length, at, command) < size && stat(path, &info) == 0 &&
            S_ISREG(info.st_mode) && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

void
agent_become(const struct options *options, bool tty)
{
    char path[PATH_MAX];

    reset_signals();
    if (setsid() < 0)
        diag_die("cannot begin a session: %s", strerror(errno));
    if (tty) {
        if (ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
            diag_die("cannot take the terminal: %s", strerror(errno));
        /* Programs that reopen their terminal by name; best effort, /dev/tty works in any case. */
        int owned = fchown(STDIN_FILENO, AGENT_UID, AGENT_GID);
        (void)owned;
    }
    if (close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
        diag_die("cannot close descriptors: %s", strerror(errno));
    drop_privileges(options);
    umask(022);
    if (tty)
        read_block_from_tty();
    else
        read_block();
    place_files(options);
    if (options->cwd != NULL && chdir(options->cwd) < 0)
        diag_die("cannot enter %s: %s", options->cwd, strerror(errno));
    if (!find_program(options->command[0], path, sizeof path))
        diag_die("%s is in no directory of PATH that only the image can write", options->command[0]);
    execve(path, options->command, block.env);
    diag_die("cannot run %s: %s", path, strerror(errno));
}
