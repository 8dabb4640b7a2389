/* SPDX-License-Identifier: MIT */
#include "core/broker/eb-broker-spawn.h"

#include <fcntl.h>
#include <unistd.h>

EbSpawn *
eb_broker_spawn_new(EbPaths *paths, GError **error)
{
    static const char *const PASSED[] = {"ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "G_SLICE"};
    int program = eb_paths_get_broker_fd(paths, error);
    EbSpawn *spawn;
    int err;

    if (program < 0)
        return NULL;
    spawn = eb_spawn_new_fd(program, "errand-box-broker");
    /* Nothing of the desktop: no settings, no proxies of the host's, no remote files. */
    eb_spawn_add_env(spawn, "GIO_USE_VFS", "local");
    eb_spawn_add_env(spawn, "GSETTINGS_BACKEND", "memory");
    eb_spawn_add_env(spawn, "GIO_USE_PROXY_RESOLVER", "dummy");
    eb_spawn_add_env(spawn, "GIO_USE_NETWORK_MONITOR", "base");
    eb_spawn_add_env(spawn, "MALLOC_ARENA_MAX", "1");
    eb_spawn_add_env(spawn, "LANG", "C.UTF-8");
    /* Set by the tests' builds alone. */
    for (gsize i = 0; i < G_N_ELEMENTS(PASSED); i++)
        eb_spawn_pass_env(spawn, PASSED[i]);
    err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (err >= 0)
        eb_spawn_take_fd(spawn, err, STDERR_FILENO);
    return spawn;
}
