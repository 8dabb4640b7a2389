/* SPDX-License-Identifier: MIT */
/*
 * attack WHAT [ARG]: runs inside a guest, tries one thing a hostile guest would, prints "ok" or the name of the errno.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/keyctl.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int
report(long result)
{
    puts(result >= 0 ? "ok" : strerrorname_np(errno));
    return result >= 0 ? 0 : 1;
}

static int
subvolume(const char *directory, int version)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return report(-1);
    if (version == 1) {
        struct btrfs_ioctl_vol_args args = {.name = "planted"};
        return report(ioctl(fd, BTRFS_IOC_SUBVOL_CREATE, &args));
    }
    struct btrfs_ioctl_vol_args_v2 args = {.name = "planted2"};
    return report(ioctl(fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args));
}

static int
snapshot(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct btrfs_ioctl_vol_args_v2 args = {.fd = root, .name = "copy"};
    return report(ioctl(fd, BTRFS_IOC_SNAP_CREATE_V2, &args));
}

static int
inotify_instances(const char *count)
{
    int got = 0;
    for (int i = 0; i < atoi(count); i++)
        if (inotify_init1(IN_CLOEXEC) >= 0)
            got++;
    printf("%d\n", got);
    return 0;
}

/* Touches every page, so that the limit and not the address space decides. */
static int
memory(const char *mib)
{
    size_t size = (size_t)atoi(mib) << 20;
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return report(-1);
    for (size_t i = 0; i < size; i += 4096)
        block[i] = 1;
    return report(0);
}

static int
forks(const char *count)
{
    int got = 0;
    for (int i = 0; i < atoi(count); i++) {
        pid_t pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        if (pid < 0)
            break;
        got++;
    }
    printf("%d\n", got);
    fflush(stdout);
    pause();
    return 0;
}

/* Writes MiB files until it fails; says how many fitted. */
static int
fill(const char *directory, const char *mib)
{
    static char block[1 << 20];
    int got = 0;
    memset(block, 'x', sizeof block);
    for (; got < atoi(mib); got++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/f%d", directory, got);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, block, sizeof block) != (ssize_t)sizeof block || fsync(fd) < 0)
            break;
        close(fd);
    }
    printf("%d\n", got);
    return 0;
}

/* COUNT MiB of one byte to stdout. */
static int
flood(const char *mib)
{
    static char block[1 << 20];
    memset(block, 'y', sizeof block);
    for (int i = 0; i < atoi(mib); i++)
        for (size_t done = 0; done < sizeof block;) {
            ssize_t put = write(1, block + done, sizeof block - done);
            if (put < 0)
                return 1;
            done += (size_t)put;
        }
    return 0;
}

int
main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const char *arg = argc > 2 ? argv[2] : "";
    if (strcmp(what, "subvolume") == 0)
        return subvolume(arg, 1);
    if (strcmp(what, "subvolume2") == 0)
        return subvolume(arg, 2);
    if (strcmp(what, "snapshot") == 0)
        return snapshot(arg);
    if (strcmp(what, "vsock") == 0)
        return report(socket(AF_VSOCK, SOCK_STREAM, 0));
    if (strcmp(what, "inet") == 0)
        return report(socket(AF_INET, SOCK_STREAM, 0));
    if (strcmp(what, "io_uring") == 0)
        return report(syscall(SYS_io_uring_setup, 1, NULL));
    if (strcmp(what, "keyctl") == 0)
        return report(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
    if (strcmp(what, "add_key") == 0)
        return report(syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING));
    if (strcmp(what, "mknod") == 0)
        return report(mknod("/tmp/kmsg", S_IFCHR | 0600, makedev(1, 11)));
    if (strcmp(what, "remount") == 0)
        return report(mount(NULL, arg, NULL, MS_REMOUNT | MS_BIND, NULL));
    if (strcmp(what, "inotify") == 0)
        return inotify_instances(arg);
    if (strcmp(what, "memory") == 0)
        return memory(arg);
    if (strcmp(what, "forks") == 0)
        return forks(arg);
    if (strcmp(what, "fill") == 0 && argc > 3)
        return fill(arg, argv[3]);
    if (strcmp(what, "flood") == 0)
        return flood(arg);
    fprintf(stderr, "attack: unknown: %s\n", what);
    return 2;
}
