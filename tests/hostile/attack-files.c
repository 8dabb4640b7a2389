/* SPDX-License-Identifier: MIT */
/* The broker's read-only mount, the socket and the relay in it, the host's paths, other sessions' state. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define RUN "/opt/errand/run"
#define SOCKET RUN "/model.sock"

/* mount_setattr(2), which older headers do not have. */
struct attributes {
    unsigned long long set, clear, propagation, userns_fd;
};

static long
bind_at(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long result;

    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    result = bind(fd, (struct sockaddr *)&name, sizeof name);
    int saved = errno;
    close(fd);
    errno = saved;
    return result;
}

static void
attack_run_directory(void)
{
    static const char *const PROGRAMS[] = {RUN "/relay", RUN "/launch"};
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    char name[128];

    attack_row("socket-unlink", unlink(SOCKET), "EROFS");
    attack_row("socket-rename", rename(SOCKET, RUN "/other.sock"), "EROFS");
    attack_row("socket-rename-out", rename(SOCKET, "/tmp/model.sock"), "EROFS EXDEV");
    attack_row("socket-link", link(SOCKET, RUN "/other.sock"), "EROFS");
    attack_row("socket-chmod", chmod(SOCKET, 0777), "EROFS");
    attack_row("socket-chown", chown(SOCKET, 1000, 1000), "EROFS");
    attack_row("socket-times", utimensat(AT_FDCWD, SOCKET, times, 0), "EROFS");
    attack_row("socket-xattr", setxattr(SOCKET, "user.x", "y", 1, 0), "EROFS EPERM EOPNOTSUPP");
    attack_row("socket-bind-over", bind_at(SOCKET), "EADDRINUSE EROFS");
    attack_row("socket-bind-beside", bind_at(RUN "/other.sock"), "EROFS");
    attack_row("run-create", open(RUN "/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600), "EROFS");
    attack_row("run-mkdir", mkdir(RUN "/new", 0700), "EROFS");
    attack_row("run-symlink", symlink("/etc/shadow", RUN "/new"), "EROFS");
    attack_row("run-chmod", chmod(RUN, 0777), "EROFS");
    attack_row("run-tmpfile", open(RUN, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), "EROFS EOPNOTSUPP");
    attack_row("run-rename-over", rename("/tmp", RUN), "EROFS EXDEV EBUSY EACCES EPERM");
    attack_row("run-rmdir", rmdir(RUN), "EBUSY EACCES EPERM EROFS");
    for (size_t i = 0; i < sizeof PROGRAMS / sizeof PROGRAMS[0]; i++) {
        snprintf(name, sizeof name, "write%s", PROGRAMS[i]);
        attack_row(name, open(PROGRAMS[i], O_WRONLY | O_CLOEXEC), "EROFS ETXTBSY");
        snprintf(name, sizeof name, "truncate%s", PROGRAMS[i]);
        attack_row(name, truncate(PROGRAMS[i], 0), "EROFS ETXTBSY");
        snprintf(name, sizeof name, "unlink%s", PROGRAMS[i]);
        attack_row(name, unlink(PROGRAMS[i]), "EROFS");
    }
}

/* Every way to a writable view of the read-only mount. */
static void
attack_remount(void)
{
    struct attributes writable = {.clear = 1 /* MOUNT_ATTR_RDONLY */};
    char path[64];
    int tree, fd;

    attack_row("remount-bind", mount(NULL, RUN, NULL, MS_REMOUNT | MS_BIND, NULL), "EPERM");
    attack_row("remount-whole", mount(NULL, RUN, NULL, MS_REMOUNT, NULL), "EPERM");
    attack_row("remount-setattr", syscall(442 /* mount_setattr */, AT_FDCWD, RUN, 0, &writable, sizeof writable),
               "EPERM ENOSYS");
    fd = (int)syscall(SYS_fspick, AT_FDCWD, RUN, 1 /* close on exec */);
    if (fd >= 0)
        syscall(SYS_fsconfig, fd, 0 /* a flag */, "rw", NULL, 0);
    attack_row("reconfigure-superblock", fd < 0 ? -1 : syscall(SYS_fsconfig, fd, 7 /* reconfigure */, NULL, NULL, 0),
               "EPERM ENOSYS");
    /* A copy of the mount elsewhere stays read-only. */
    mkdir("/tmp/hostile-copy", 0700);
    if (mount(RUN, "/tmp/hostile-copy", NULL, MS_BIND, NULL) == 0) {
        attack_row("copy-remount", mount(NULL, "/tmp/hostile-copy", NULL, MS_REMOUNT | MS_BIND, NULL), "EPERM");
        attack_row("copy-unlink", unlink("/tmp/hostile-copy/model.sock"), "EROFS");
        umount("/tmp/hostile-copy");
    } else {
        attack_row("copy-mount", -1, "EPERM EACCES");
    }
    tree = (int)syscall(SYS_open_tree, AT_FDCWD, RUN, 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);
    if (tree >= 0) {
        attack_row("tree-setattr", syscall(442, tree, "", AT_EMPTY_PATH, &writable, sizeof writable), "EPERM ENOSYS");
        attack_row("tree-unlink", unlinkat(tree, "model.sock", 0), "EROFS");
        close(tree);
    } else {
        attack_row("tree-open", -1, "EPERM EACCES ENOSYS");
    }
    fd = open(RUN, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d/model.sock", fd);
    attack_row("descriptor-unlink", unlink(path), "EROFS");
    close(fd);
}

static void
attack_host_paths(void)
{
    static const char *const PATHS[] = {
        "/dev/incus/sock",
        "/dev/lxd/sock",
        "/var/lib/incus/unix.socket",
        "/var/lib/incus/unix.socket.user",
        "/run/incus/unix.socket",
        "/var/lib/lxd/unix.socket",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/errand-box/control.sock",
    };
    static const char *const GIVEN[] = {"state", "creds", "neighbour-run", "neighbour-state", "neighbour-socket",
                                        "incus"};
    char name[512];

    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        snprintf(name, sizeof name, "reach%s", PATHS[i]);
        attack_row(name, access(PATHS[i], F_OK), "ENOENT EACCES ENOTDIR");
    }
    /* The host's own names of what is in reach here: none of them may mean anything. */
    for (size_t i = 0; i < sizeof GIVEN / sizeof GIVEN[0]; i++) {
        snprintf(name, sizeof name, "host-path-%s", GIVEN[i]);
        if (*attack_value(GIVEN[i]) == '\0')
            attack_said(name, 0, "the driver named no path");
        else
            attack_row(name, access(attack_value(GIVEN[i]), F_OK), "ENOENT EACCES");
    }
}

/* Upwards out of each mount, and sideways into another session's. */
static void
attack_climb(void)
{
    static const char *const MOUNTS[] = {"/workspace", "/state", RUN};
    char name[128], path[256];

    for (size_t i = 0; i < sizeof MOUNTS / sizeof MOUNTS[0]; i++) {
        struct stat above, root, inside;
        int fd = open(MOUNTS[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

        snprintf(path, sizeof path, "%s/..", MOUNTS[i]);
        snprintf(name, sizeof name, "climb%s", MOUNTS[i]);
        if (fd < 0 || fstat(fd, &inside) != 0 || stat(path, &above) != 0 || stat("/", &root) != 0) {
            attack_said(name, 0, "cannot look");
            continue;
        }
        /* The directory above a mount is the guest's own. */
        attack_said(name, above.st_dev == root.st_dev, "guest's root");
        snprintf(name, sizeof name, "sideways%s", MOUNTS[i]);
        attack_row(name, openat(fd, attack_value("neighbour"), O_RDONLY | O_CLOEXEC), "ENOENT");
        snprintf(name, sizeof name, "handle%s", MOUNTS[i]);
        attack_row(name,
                   syscall(SYS_open_by_handle_at, fd, &(struct {
                               unsigned n;
                               int type;
                               char b[16];
                           }){16, 1, ""},
                           O_RDONLY),
                   "EPERM ENOSYS");
        close(fd);
    }
}

/* What the host meets later when it lists, measures and deletes; the driver looks whether it followed any. */
static void
plant(const char *directory)
{
    const char *canary = attack_value("canary");
    char path[512];

    snprintf(path, sizeof path, "%s/link-to-canary", directory);
    (void)!symlink(canary, path);
    snprintf(path, sizeof path, "%s/link-to-etc", directory);
    (void)!symlink("/etc", path);
    snprintf(path, sizeof path, "%s/link-to-proc", directory);
    (void)!symlink("/proc/self/root", path);
    snprintf(path, sizeof path, "%s/.git", directory);
    (void)!symlink("/", path);
    snprintf(path, sizeof path, "%s/pipe", directory);
    (void)!mkfifo(path, 0666);
    snprintf(path, sizeof path, "%s/planted.sock", directory);
    bind_at(path);
    snprintf(path, sizeof path, "%s/\n\x1b[2J\xff", directory);
    (void)!mkdir(path, 0);
}

void
attack_files(void)
{
    attack_run_directory();
    attack_remount();
    attack_host_paths();
    attack_climb();
    plant("/workspace");
    plant("/state");
}
