/* SPDX-License-Identifier: MIT */
#pragma once

#include <sys/types.h>

#include "errand-box-plugin.h"

G_BEGIN_DECLS

/**
 * EbChild: a process this program started, known by its pidfd: a signal can never reach another process that got
 * the same number. Dropping the last reference of a running child kills it; a pending wait holds one.
 */
#define EB_TYPE_CHILD (eb_child_get_type())
G_DECLARE_FINAL_TYPE(EbChild, eb_child, EB, CHILD, GObject)

/** eb_child_get_pid: for display alone. */
pid_t eb_child_get_pid(EbChild *self);
gboolean eb_child_is_running(EbChild *self);
/** eb_child_kill: sends @signal_number through the pidfd; TRUE also when the child has ended already. */
gboolean eb_child_kill(EbChild *self, int signal_number);
/** eb_child_wait_async: any number of waiters; cancelling ends the wait, not the child. */
void eb_child_wait_async(EbChild *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
/** eb_child_wait_finish: @status: (out) (optional): as waitpid(2) gives it. */
gboolean eb_child_wait_finish(EbChild *self, GAsyncResult *result, int *status, GError **error);
/** eb_child_describe_status: (transfer full): "exited with code 3", "killed by SIGSEGV". */
char *eb_child_describe_status(int status);

/**
 * EbSpawn: builds one process: arguments, environment and descriptors all named, nothing inherited by accident.
 * The environment starts empty; stdin, stdout and stderr are /dev/null until given. The child leads a session of its
 * own.
 */
typedef struct _EbSpawn EbSpawn;

/** EB_SPAWN_MAX_FDS: most descriptors one child is given. */
#define EB_SPAWN_MAX_FDS 16

/** eb_spawn_new: (transfer full): @program: absolute path, also the first argument. */
EbSpawn *eb_spawn_new(const char *program);
/** eb_spawn_new_fd: (transfer full): @program_fd: an open program, stays the caller's; @name: the first argument. */
EbSpawn *eb_spawn_new_fd(int program_fd, const char *name);
void eb_spawn_free(EbSpawn *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbSpawn, eb_spawn_free)

void eb_spawn_add_arg(EbSpawn *self, const char *argument);
void eb_spawn_add_env(EbSpawn *self, const char *name, const char *value);
/** eb_spawn_pass_env: hands on our own variable @name when it is set. */
void eb_spawn_pass_env(EbSpawn *self, const char *name);
/** eb_spawn_take_fd: @fd: (transfer full): becomes @target (0 to 63) in the child, closed here. */
void eb_spawn_take_fd(EbSpawn *self, int fd, int target);
void eb_spawn_set_cwd(EbSpawn *self, const char *directory);
/** eb_spawn_set_keep_on_parent_death: by default the kernel kills the child when this process ends. */
void eb_spawn_set_keep_on_parent_death(EbSpawn *self);

/** eb_spawn_start: (transfer full) (nullable): an @error also when the program could not be executed. */
EbChild *eb_spawn_start(EbSpawn *self, GError **error);

G_END_DECLS
