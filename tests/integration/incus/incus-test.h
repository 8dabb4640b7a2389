/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-test-incusd.h"
#include "eb-test.h"
#include "incus-backend.h"

G_BEGIN_DECLS

/** incus_test_main: acquires the daemon, or ends the program as skipped; then g_test_run(). */
typedef struct {
    EbTestIncusd *incusd;
    EbContainerBackend *backend; /* of root, in the restricted project */
} IncusTest;
extern IncusTest incus_test;

/** incus_test_init: FALSE: the caller returns 77 (the reason was printed as TAP). */
gboolean incus_test_init(int *argc, char ***argv, const char *name);
/** incus_test_run: g_test_run(), then lets go of the daemon. */
int incus_test_run(void);

/** incus_test_backend: (transfer full): a further backend on @socket with @project. */
EbContainerBackend *incus_test_backend(const char *socket, const char *project);

/** incus_test_spec: (transfer full): a small ephemeral guest with a fresh name. */
EbContainerSpec *incus_test_spec(const char *prefix);
/** incus_test_launch: launches and asserts that it worked. */
void incus_test_launch(EbContainerBackend *backend, const EbContainerSpec *spec);
/** incus_test_destroy: ends and removes, asserts that it worked. */
void incus_test_destroy(EbContainerBackend *backend, const char *name);
/** incus_test_names: (transfer full): names of all instances of the backend's project, joined by commas. */
char *incus_test_names(EbContainerBackend *backend);
gboolean incus_test_exists(EbContainerBackend *backend, const char *name);

/** IncusRun: a process that was run to its end. */
typedef struct {
    int code; /* -1: error is set */
    GString *out;
    GString *err;
    GError *error;
} IncusRun;
void incus_run_clear(IncusRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(IncusRun, incus_run_clear)

/** incus_test_exec: (transfer full): starts @argv as @uid; asserts that it worked. */
EbExec *incus_test_exec(EbContainerBackend *backend, const char *name, guint32 uid, const char *const *argv);
/** incus_test_shell: runs `sh -c COMMAND` as @uid with @input (nullable) as its standard input. */
IncusRun incus_test_shell(EbContainerBackend *backend, const char *name, guint32 uid, const char *input,
                          const char *command);
/** incus_test_read_all: (transfer full): everything until the end of file. */
GString *incus_test_read_all(GInputStream *stream);
/** incus_test_wait: the exit code of @exec, -1 with @error. */
int incus_test_wait(EbExec *exec, GError **error);

G_END_DECLS
