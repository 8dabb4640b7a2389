/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-container-spec.h"
#include "eb-types.h"

G_BEGIN_DECLS

/**
 * EbExec: a running process of an instance.
 *
 * The streams are plain GIO streams with back-pressure through the kernel's socket buffers. Dropping the last
 * reference ends the process. Closing stdin gives the process end of file.
 */
#define EB_TYPE_EXEC (eb_exec_get_type())
EB_API
G_DECLARE_INTERFACE(EbExec, eb_exec, EB, EXEC, GObject)

struct _EbExecInterface {
    GTypeInterface parent_iface;
    /** get_stdin, get_stdout, get_stderr: (transfer none); stderr is NULL for a tty. */
    GOutputStream *(*get_stdin)(EbExec *self);
    GInputStream *(*get_stdout)(EbExec *self);
    GInputStream *(*get_stderr)(EbExec *self);
    /** send_signal: to the one process (the launcher passes it on to the tree). */
    gboolean (*send_signal)(EbExec *self, int signum, GError **error);
    /** resize: tty only. */
    gboolean (*resize)(EbExec *self, guint rows, guint columns, GError **error);
    /** wait_async: any number of waiters; finish returns the exit code, 128+N for signal N, -1 with an error. */
    void (*wait_async)(EbExec *self, GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    int (*wait_finish)(EbExec *self, GAsyncResult *result, GError **error);
};
EB_API GOutputStream *eb_exec_get_stdin(EbExec *self);
EB_API GInputStream *eb_exec_get_stdout(EbExec *self);
EB_API GInputStream *eb_exec_get_stderr(EbExec *self);
EB_API gboolean eb_exec_send_signal(EbExec *self, int signum, GError **error);
EB_API gboolean eb_exec_resize(EbExec *self, guint rows, guint columns, GError **error);
EB_API void eb_exec_wait_async(EbExec *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data);
EB_API int eb_exec_wait_finish(EbExec *self, GAsyncResult *result, GError **error);

/** EbStopFlags: how eb_container_backend_stop_async() ends an instance. */
typedef enum {
    EB_STOP_GRACEFUL = 0,
    EB_STOP_FORCE = 1 << 0,   /* kill at once instead of asking first */
    EB_STOP_DESTROY = 1 << 1, /* and delete it with its root file system and per-session volumes marked so */
} EbStopFlags;

/** EbInstanceEvent: what the "instance-event" signal reports. */
typedef enum {
    EB_INSTANCE_EVENT_STARTED = 0,
    EB_INSTANCE_EVENT_STOPPED = 1,
    EB_INSTANCE_EVENT_DELETED = 2,
    EB_INSTANCE_EVENT_BACKEND_LOST = 3, /* name NULL: the backend's service went away */
    EB_INSTANCE_EVENT_BACKEND_BACK = 4, /* name NULL: it answers again */
} EbInstanceEvent;

/**
 * EbContainerBackend: runs guests. Every operation is asynchronous, takes a cancellable, keeps deadline_ms, and is
 * idempotent where that makes sense: stopping what is stopped and deleting what is gone succeed.
 *
 * Signals: "instance-event" (EbInstanceEvent event, const char *name (nullable)).
 *
 * All vfuncs have defaults that return EB_ERROR_NOT_SUPPORTED.
 */
#define EB_TYPE_CONTAINER_BACKEND (eb_container_backend_get_type())
EB_API
G_DECLARE_INTERFACE(EbContainerBackend, eb_container_backend, EB, CONTAINER_BACKEND, GObject)

struct _EbContainerBackendInterface {
    GTypeInterface parent_iface;

    void (*probe_async)(EbContainerBackend *self, guint deadline_ms, GCancellable *cancellable,
                        GAsyncReadyCallback callback, gpointer user_data);
    EbProbeReport *(*probe_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*launch_async)(EbContainerBackend *self, const EbContainerSpec *spec, guint deadline_ms,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*launch_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*update_async)(EbContainerBackend *self, const char *name, const EbContainerSpec *spec, guint deadline_ms,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*update_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*exec_async)(EbContainerBackend *self, const char *name, const EbExecSpec *spec, guint deadline_ms,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    EbExec *(*exec_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*stop_async)(EbContainerBackend *self, const char *name, EbStopFlags flags, guint grace_ms, guint deadline_ms,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*stop_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*list_async)(EbContainerBackend *self, const char *name, guint deadline_ms, GCancellable *cancellable,
                       GAsyncReadyCallback callback, gpointer user_data);
    GPtrArray *(*list_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*image_info_async)(EbContainerBackend *self, const char *alias, guint deadline_ms, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data);
    GPtrArray *(*image_info_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    void (*image_import_async)(EbContainerBackend *self, const char *alias, const char *metadata_path,
                               const char *rootfs_path, guint deadline_ms, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
    EbImageInfo *(*image_import_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);

    /* since 1.2 */
    void (*image_remove_async)(EbContainerBackend *self, const char *fingerprint, guint deadline_ms,
                               GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*image_remove_finish)(EbContainerBackend *self, GAsyncResult *result, GError **error);
};

/** eb_container_backend_probe_async: what this backend can and cannot enforce here; changes nothing. */
EB_API void eb_container_backend_probe_async(EbContainerBackend *self, guint deadline_ms, GCancellable *cancellable,
                                             GAsyncReadyCallback callback, gpointer user_data);
/** eb_container_backend_probe_finish: (transfer full) (nullable) */
EB_API EbProbeReport *eb_container_backend_probe_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/**
 * eb_container_backend_launch_async: creates and starts an instance. On failure and on cancellation nothing is
 * left of it. A name in use is EB_ERROR_EXISTS.
 */
EB_API void eb_container_backend_launch_async(EbContainerBackend *self, const EbContainerSpec *spec, guint deadline_ms,
                                              GCancellable *cancellable, GAsyncReadyCallback callback,
                                              gpointer user_data);
EB_API gboolean eb_container_backend_launch_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/**
 * eb_container_backend_update_async: brings a running instance to @spec: mounts that are new are plugged in (a
 * pool member gets its workspace so), limits are changed; the rest of the spec is ignored.
 */
EB_API void eb_container_backend_update_async(EbContainerBackend *self, const char *name, const EbContainerSpec *spec,
                                              guint deadline_ms, GCancellable *cancellable,
                                              GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_container_backend_update_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/** eb_container_backend_exec_async: starts a process; @deadline_ms is for the start, not for the run. */
EB_API void eb_container_backend_exec_async(EbContainerBackend *self, const char *name, const EbExecSpec *spec,
                                            guint deadline_ms, GCancellable *cancellable, GAsyncReadyCallback callback,
                                            gpointer user_data);
/** eb_container_backend_exec_finish: (transfer full) (nullable) */
EB_API EbExec *eb_container_backend_exec_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/** eb_container_backend_stop_async: @grace_ms: before force; total time at most @deadline_ms. */
EB_API void eb_container_backend_stop_async(EbContainerBackend *self, const char *name, EbStopFlags flags,
                                            guint grace_ms, guint deadline_ms, GCancellable *cancellable,
                                            GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_container_backend_stop_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/** eb_container_backend_list_async: @name: (nullable): one instance with its usage, NULL = all, without usage. */
EB_API void eb_container_backend_list_async(EbContainerBackend *self, const char *name, guint deadline_ms,
                                            GCancellable *cancellable, GAsyncReadyCallback callback,
                                            gpointer user_data);
/** eb_container_backend_list_finish: (transfer full) (nullable) (element-type EbInstanceInfo) */
EB_API GPtrArray *eb_container_backend_list_finish(EbContainerBackend *self, GAsyncResult *result, GError **error);

/** eb_container_backend_image_info_async: @alias: (nullable): NULL = all images. */
EB_API void eb_container_backend_image_info_async(EbContainerBackend *self, const char *alias, guint deadline_ms,
                                                  GCancellable *cancellable, GAsyncReadyCallback callback,
                                                  gpointer user_data);
/** eb_container_backend_image_info_finish: (transfer full) (nullable) (element-type EbImageInfo): empty = none. */
EB_API GPtrArray *eb_container_backend_image_info_finish(EbContainerBackend *self, GAsyncResult *result,
                                                         GError **error);

/**
 * eb_container_backend_image_import_async:
 * @metadata_path: tar with metadata.yaml
 * @rootfs_path: tar of the root file system
 *
 * Streams both to the backend and points @alias at the result. An image of the same content is not sent twice.
 */
EB_API void eb_container_backend_image_import_async(EbContainerBackend *self, const char *alias,
                                                    const char *metadata_path, const char *rootfs_path,
                                                    guint deadline_ms, GCancellable *cancellable,
                                                    GAsyncReadyCallback callback, gpointer user_data);
/** eb_container_backend_image_import_finish: (transfer full) (nullable) */
EB_API EbImageInfo *eb_container_backend_image_import_finish(EbContainerBackend *self, GAsyncResult *result,
                                                             GError **error);

/** eb_container_backend_image_remove_async: the image with its aliases; one that is gone already is no failure. */
EB_API void eb_container_backend_image_remove_async(EbContainerBackend *self, const char *fingerprint,
                                                    guint deadline_ms, GCancellable *cancellable,
                                                    GAsyncReadyCallback callback, gpointer user_data);
EB_API gboolean eb_container_backend_image_remove_finish(EbContainerBackend *self, GAsyncResult *result,
                                                         GError **error);

G_END_DECLS
