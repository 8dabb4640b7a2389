/* SPDX-License-Identifier: MIT */
#pragma once

#include <glib.h>
#include <sys/types.h>

G_BEGIN_DECLS

/**
 * EbTestIncusd: a private incusd for tests, with a pool, a restricted project of an unprivileged account reached
 * through incus-user, and a tiny image "test/guest" in the default and in that project.
 *
 * All test programs of one build directory share it: the first starts a keeper process, which starts the daemon; each
 * holds a connection to the keeper; some seconds after the last is gone, however it ended, the keeper stops everything
 * by pid.
 */
typedef struct {
    char *dir;
    char *socket;      /* incusd's own: root */
    char *user_socket; /* of incus-user (nullable): not installed */
    char *project;     /* restricted, of @uid: "user-UID" */
    char *pool;
    char *driver;   /* of the pool: "btrfs" or "dir" */
    char *image;    /* alias */
    char *sessions; /* directory of @uid whose subdirectories may be mounted */
    uid_t uid;
    int keeper; /* connection */
} EbTestIncusd;

/**
 * eb_test_incusd_acquire: (transfer full) (nullable)
 * @name: "shared", or a name of its own for a test that kills the daemon
 * @reason: (out) (transfer full): why the test must be skipped, when NULL is returned
 */
EbTestIncusd *eb_test_incusd_acquire(const char *name, char **reason);
void eb_test_incusd_release(EbTestIncusd *self);

/** eb_test_incusd_kill: SIGKILL to the daemon itself, waits until it is gone. */
void eb_test_incusd_kill(EbTestIncusd *self);
/** eb_test_incusd_restart: starts the daemon again, waits until it is ready. */
void eb_test_incusd_restart(EbTestIncusd *self);
/** eb_test_incusd_cli: runs `incus ARGS...` against it for what a test prepares; (transfer full) stdout. */
char *eb_test_incusd_cli(EbTestIncusd *self, const char *first, ...) G_GNUC_NULL_TERMINATED;
/** eb_test_incusd_become_account: drops this process to @uid with the group "incus", for good. */
void eb_test_incusd_become_account(EbTestIncusd *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbTestIncusd, eb_test_incusd_release)

G_END_DECLS
