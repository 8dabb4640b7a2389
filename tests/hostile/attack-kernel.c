/* SPDX-License-Identifier: MIT */
/* System calls, devices, namespaces, other processes, and what one kernel shares between guests. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void
attack_keys(void)
{
    attack_row("add_key", syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_USER_KEYRING), "ENOSYS");
    attack_row("keyctl-session", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1), "ENOSYS");
    attack_row("keyctl-user", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1), "ENOSYS");
    attack_row("request_key", syscall(SYS_request_key, "user", "x", NULL, KEY_SPEC_PROCESS_KEYRING), "ENOSYS");
    attack_row("proc-keys", open("/proc/keys", O_RDWR | O_CLOEXEC), "EACCES ENOENT EPERM");
}

static void
attack_calls(void)
{
    union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf, .config = PERF_COUNT_SW_CPU_CLOCK};
    char ring[256] = {0};
    struct timex clock = {.modes = ADJ_FREQUENCY};
    const struct timeval now = {1, 0};

    attack_row("bpf-map", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map), "EPERM ENOSYS");
    attack_row("io_uring", syscall(SYS_io_uring_setup, 4, ring), "ENOSYS");
    attack_row("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC), "EPERM ENOSYS");
    attack_row("perf-whole-cpu", syscall(SYS_perf_event_open, &perf, -1, 0, -1, 0), "EACCES EPERM ENOSYS ENOENT");
    attack_row("init_module", syscall(SYS_init_module, ring, sizeof ring, ""), "EPERM ENOSYS");
    attack_row("finit_module", syscall(SYS_finit_module, 0, "", 0), "EPERM ENOSYS");
    attack_row("delete_module", syscall(SYS_delete_module, "x", O_NONBLOCK), "EPERM ENOSYS");
    attack_row("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0), "EPERM ENOSYS");
    attack_row("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, ring, O_RDONLY), "EPERM ENOSYS");
    attack_row("swapon", swapon("/dev/null", 0), "EPERM ENOSYS");
    attack_row("acct", acct("/dev/null"), "EPERM ENOSYS");
    attack_row("iopl", iopl(3), "EPERM ENOSYS");
    attack_row("ioperm", ioperm(0x80, 1, 1), "EPERM ENOSYS");
    attack_row("settimeofday", settimeofday(&now, NULL), "EPERM");
    attack_row("adjtimex", adjtimex(&clock), "EPERM");
    attack_row("syslog-read", klogctl(3, ring, sizeof ring), "EPERM");
    attack_row("syslog-level", klogctl(8, NULL, 1), "EPERM");
    attack_row("vsock-stream", socket(AF_VSOCK, SOCK_STREAM, 0), "EAFNOSUPPORT");
    attack_row("vsock-datagram", socket(AF_VSOCK, SOCK_DGRAM, 0), "EAFNOSUPPORT");
}

static void
attack_devices(void)
{
    static const char *const DEVICES[] = {
        "/dev/kmsg",   "/dev/mem",          "/dev/port",           "/dev/kvm",
        "/dev/vda",    "/dev/sda",          "/dev/vhost-vsock",    "/dev/vsock",
        "/dev/uinput", "/dev/loop-control", "/dev/mapper/control", "/dev/btrfs-control"};
    static const struct {
        const char *name;
        mode_t type;
        unsigned major, minor;
    } NODES[] = {{"mknod-mem", S_IFCHR, 1, 1},
                 {"mknod-kmsg", S_IFCHR, 1, 11},
                 {"mknod-disk", S_IFBLK, 254, 0},
                 {"mknod-sda", S_IFBLK, 8, 0},
                 {"mknod-kvm", S_IFCHR, 10, 232}};
    char name[128];

    for (size_t i = 0; i < sizeof DEVICES / sizeof DEVICES[0]; i++) {
        snprintf(name, sizeof name, "device%s", DEVICES[i]);
        attack_row(name, open(DEVICES[i], O_RDWR | O_CLOEXEC), "ENOENT EPERM EACCES ENODEV ENXIO");
    }
    for (size_t i = 0; i < sizeof NODES / sizeof NODES[0]; i++) {
        snprintf(name, sizeof name, "/tmp/%s-%d", NODES[i].name, getpid());
        attack_row(NODES[i].name, mknod(name, NODES[i].type | 0600, makedev(NODES[i].major, NODES[i].minor)), "EPERM");
    }
}

/* A write that is refused at the open, or at the write itself. */
static long
write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    long result = fd < 0 ? -1 : write(fd, text, strlen(text));
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
    return result;
}

static void
attack_settings(void)
{
    static const char *const FILES[] = {
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/panic",
        "/proc/sys/kernel/randomize_va_space",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/fs/binfmt_misc/register",
        "/proc/sys/fs/suid_dumpable",
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/unprivileged_bpf_disabled",
        "/proc/1/oom_score_adj",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/module/kernel/parameters/panic",
        "/sys/kernel/debug/tracing/trace",
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/pids.max",
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/fs/cgroup/release_agent",
        "/sys/fs/cgroup/cgroup.subtree_control",
    };
    char name[128];

    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        /* Its own init's score is the guest root's business. */
        if (attack_is_root() && strncmp(FILES[i], "/proc/1/", 8) == 0)
            continue;
        snprintf(name, sizeof name, "write%s", FILES[i]);
        attack_row(name, write_to(FILES[i], "1"), "EROFS EACCES EPERM ENOENT EINVAL EIO");
    }
}

/* A hierarchy mounted by the guest's root: its own limits must stay out of its reach there, too. */
static void
attack_cgroup_mount(void)
{
    static const char *const LIMITS[] = {"memory.max", "memory.swap.max", "pids.max", "cpu.max"};
    char path[128], name[128];

    mkdir("/run/hostile-cgroup", 0700);
    if (mount("none", "/run/hostile-cgroup", "cgroup2", 0, NULL) != 0) {
        attack_row("cgroup-mount", -1, "EPERM EBUSY EACCES");
        return;
    }
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        snprintf(path, sizeof path, "/run/hostile-cgroup/%s", LIMITS[i]);
        snprintf(name, sizeof name, "cgroup-mount-%s", LIMITS[i]);
        attack_row(name, write_to(path, "max"), "EACCES EPERM ENOENT EROFS");
    }
    attack_row("cgroup-mount-above", access("/run/hostile-cgroup/../cgroup.controllers", F_OK), "ENOENT");
    umount("/run/hostile-cgroup");
}

/* The new way to mount: a context may be had by many, what it makes may not. */
static long
new_mount(const char *system)
{
    int context = (int)syscall(SYS_fsopen, system, 1), saved;
    long result = context;

    if (context < 0)
        return -1;
    syscall(SYS_fsconfig, context, 1 /* a string */, "source", "/dev/vda", 0);
    result = syscall(SYS_fsconfig, context, 6 /* create */, NULL, NULL, 0);
    saved = errno;
    close(context);
    errno = saved;
    return result;
}

static void
attack_mounts(void)
{
    static const char *const SYSTEMS[] = {"ext4",       "btrfs",    "xfs",    "debugfs",  "tracefs",
                                          "securityfs", "configfs", "pstore", "efivarfs", "nfs"};
    char name[64];

    mkdir("/tmp/hostile-mount", 0700);
    for (size_t i = 0; i < sizeof SYSTEMS / sizeof SYSTEMS[0]; i++) {
        snprintf(name, sizeof name, "mount-%s", SYSTEMS[i]);
        attack_row(name, mount("/dev/vda", "/tmp/hostile-mount", SYSTEMS[i], 0, NULL),
                   "EPERM EACCES ENODEV ENOENT ENOTBLK");
        snprintf(name, sizeof name, "new-mount-%s", SYSTEMS[i]);
        attack_row(name, new_mount(SYSTEMS[i]), "EPERM EACCES ENODEV ENOSYS ENOENT ENOTBLK");
    }
    if (attack_is_root()) {
        attack_cgroup_mount();
        return;
    }
    attack_row("mount-tmpfs", mount("none", "/tmp/hostile-mount", "tmpfs", 0, NULL), "EPERM");
    attack_row("mount-proc", mount("none", "/tmp/hostile-mount", "proc", 0, NULL), "EPERM");
    attack_row("unshare-net", unshare(CLONE_NEWNET), "EPERM");
    attack_row("unshare-mount", unshare(CLONE_NEWNS), "EPERM");
    attack_row("chroot", chroot("/tmp"), "EPERM");
    attack_row("setuid-root", setuid(0), "EPERM");
    attack_row("setgid-root", setgid(0), "EPERM");
}

static void
attack_processes(void)
{
    char path[64], text[4096] = "";
    struct iovec ours = {text, 16}, theirs = {(void *)0x400000, 16};
    int broker = atoi(attack_value("broker")), fd;
    struct sockaddr_un socket_name = {.sun_family = AF_UNIX, .sun_path = "/opt/errand/run/model.sock"};

    /* The broker by its number on the host. A number of this guest may be the same, but is then not it. */
    snprintf(path, sizeof path, "/proc/%d/cmdline", broker);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        (void)!read(fd, text, sizeof text - 1);
    attack_said("host-process-by-number", strstr(text, "errand-box-broker") == NULL,
                text[0] != '\0' ? "other" : "none");
    if (fd < 0)
        attack_row("host-process-kill", kill(broker, 0), "ESRCH EPERM");
    /* The broker by the socket it listens at. */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&socket_name, sizeof socket_name) == 0) {
        int pidfd = -1;
        socklen_t length = sizeof pidfd;
        long got = getsockopt(fd, SOL_SOCKET, 77 /* SO_PEERPIDFD */, &pidfd, &length);

        attack_row("peer-descriptor-steal", got < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 4, 0),
                   "EPERM ESRCH EINVAL ENODATA ENOPROTOOPT EBADF ENOSYS");
        attack_row("peer-signal", got < 0 ? -1 : syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0),
                   "EPERM ESRCH EINVAL ENODATA ENOPROTOOPT EBADF ENOSYS");
        attack_row("peer-namespaces", got < 0 ? -1 : setns(pidfd, CLONE_NEWNET | CLONE_NEWNS),
                   "EPERM ESRCH EINVAL ENODATA ENOPROTOOPT EBADF");
    } else {
        attack_row("peer-connect", 0, "");
    }
    close(fd);
    if (attack_is_root())
        return;
    attack_row("init-ptrace", ptrace(PTRACE_SEIZE, 1, 0, 0), "EPERM");
    attack_row("init-memory", process_vm_readv(1, &ours, 1, &theirs, 1, 0), "EPERM");
    attack_row("init-kill", kill(1, SIGKILL), "EPERM");
    attack_row("init-root", open("/proc/1/root/etc", O_RDONLY | O_CLOEXEC), "EACCES");
    attack_row("init-environment", open("/proc/1/environ", O_RDONLY | O_CLOEXEC), "EACCES");
    attack_row("init-namespaces", open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC), "EACCES");
    attack_row("everybody-kill", kill(-1, 0) == 0 && kill(1, 0) == 0 ? 0 : (errno = EPERM, -1), "EPERM");
    attack_row("lease-connect",
               connect(socket(AF_UNIX, SOCK_STREAM, 0),
                       (struct sockaddr *)&(struct sockaddr_un){AF_UNIX, "/run/errand/lease.sock"},
                       sizeof(struct sockaddr_un)),
               "EACCES");
}

static void
attack_ipc(void)
{
    int key = atoi(attack_value("ipc"));
    char name[64];

    attack_row("sysv-shared-memory", shmget(key, 0, 0), "ENOENT");
    attack_row("sysv-semaphores", semget(key, 0, 0), "ENOENT");
    attack_row("sysv-messages", msgget(key, 0), "ENOENT");
    snprintf(name, sizeof name, "/dev/shm/%s", attack_value("abstract"));
    attack_row("posix-shared-memory", open(name, O_RDWR | O_CLOEXEC), "ENOENT");
    attack_row("posix-messages", syscall(SYS_mq_open, attack_value("abstract"), O_RDWR, 0, NULL),
               "ENOENT EACCES ENOSYS");
}

void
attack_kernel(void)
{
    attack_keys();
    attack_calls();
    attack_devices();
    attack_settings();
    attack_mounts();
    attack_processes();
    attack_ipc();
}
