/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-types.h"

G_BEGIN_DECLS

/** EbContainerMount: one directory or volume given to an instance. */
typedef struct {
    const char *name;   /* device name, [a-z][a-z0-9-]*, unique in the spec */
    const char *source; /* absolute host directory, or NULL when @volume is set */
    const char *volume; /* name of a custom volume of the backend, made on demand, or NULL */
    guint64 size_bytes; /* quota of a volume, 0 = none */
    const char *target; /* absolute path in the guest; never below /run, /tmp, /dev */
    gboolean readonly;
} EbContainerMount;

/**
 * EbContainerSpec: what an instance shall be. A plain builder, owned by one caller, copied by backends that keep
 * it. No field ever holds a secret: a backend may show all of it to other local users.
 *
 * Every instance made from it has no network device, no guest API, an id range of its own, and dies as a whole
 * process tree; these are not options.
 */
#define EB_TYPE_CONTAINER_SPEC (eb_container_spec_get_type())
EB_API GType eb_container_spec_get_type(void);

struct _EbContainerSpec {
    char *name;           /* [a-z][a-z0-9-]{0,62} */
    char *image;          /* alias or fingerprint known to the backend */
    gboolean ephemeral;   /* TRUE: the backend deletes it when it stops */
    gboolean nesting;     /* containers inside the guest (podman) */
    guint64 memory_bytes; /* hard limit, 0 = refuse: every instance has one */
    guint cpus;           /* count */
    guint pids;           /* tasks */
    guint64 disk_bytes;   /* root file system quota, 0 = none */
    guint inotify;        /* user.max_inotify_instances in the guest, 0 = the backend's default (64) */
    guint32 agent_uid;    /* host uid that guest uid 1000 is mapped to; 0 = not mapped (volumes) */
    guint32 agent_gid;    /* likewise */
    GPtrArray *mounts;    /* (element-type EbContainerMount) (owned) */
    GHashTable *labels;   /* (element-type utf8 utf8) (owned): found again by list(): "session", "run" */
};

EB_API EbContainerSpec *eb_container_spec_new(const char *name, const char *image);
EB_API EbContainerSpec *eb_container_spec_copy(const EbContainerSpec *self);
EB_API void eb_container_spec_free(EbContainerSpec *self);
EB_API void eb_container_spec_add_directory(EbContainerSpec *self, const char *name, const char *source,
                                            const char *target, gboolean readonly);
EB_API void eb_container_spec_add_volume(EbContainerSpec *self, const char *name, const char *volume,
                                         guint64 size_bytes, const char *target);
EB_API void eb_container_spec_set_label(EbContainerSpec *self, const char *key, const char *value);
/** eb_container_spec_validate: names, paths, ranges, as documented above. */
EB_API gboolean eb_container_spec_validate(const EbContainerSpec *self, GError **error);

/** EbExecSpec: one process in an instance. There is no environment on purpose: see the launcher (guest/PROTOCOL.md). */
struct _EbExecSpec {
    char **argv; /* (array zero-terminated=1) (owned) */
    char *cwd;   /* (nullable) (owned): must exist in the guest */
    guint32 uid; /* in the guest; 0 for the launcher, which drops to 1000 itself */
    guint32 gid;
    gboolean tty; /* interactive: one stream, window size below */
    guint rows;
    guint columns;
};
EB_API EbExecSpec *eb_exec_spec_new(const char *const *argv);
EB_API EbExecSpec *eb_exec_spec_copy(const EbExecSpec *self);
EB_API void eb_exec_spec_free(EbExecSpec *self);

/** EbInstanceState: what list() and inspection tell. */
typedef enum {
    EB_INSTANCE_STOPPED = 0,
    EB_INSTANCE_RUNNING = 1,
    EB_INSTANCE_FROZEN = 2,
    EB_INSTANCE_ERROR = 3,
    EB_INSTANCE_UNKNOWN = 4,
} EbInstanceState;

/** EbInstanceInfo: one instance as the backend sees it now. */
struct _EbInstanceInfo {
    char *name;
    EbInstanceState state;
    GHashTable *labels;   /* (element-type utf8 utf8) */
    guint64 memory_usage; /* bytes, page cache included; 0 = unknown */
    guint64 memory_limit; /* bytes */
    guint64 disk_usage;   /* bytes of the root, 0 = unknown */
    guint tasks;          /* threads */
    guint64 cpu_ns;
    gint64 created_unix; /* seconds */
    char *location;      /* (nullable): cluster member */
    char *image;         /* (nullable): fingerprint of the image it was made from, where the backend tells; since 1.2 */
};
EB_API EbInstanceInfo *eb_instance_info_new(const char *name);
EB_API void eb_instance_info_free(EbInstanceInfo *self);

/** EbImageInfo: one image. */
struct _EbImageInfo {
    char *alias;
    char *fingerprint;
    guint64 size_bytes;
    gint64 created_unix;    /* seconds */
    GHashTable *properties; /* (element-type utf8 utf8): "errand.recipe", "errand.agents", ... */
};
EB_API EbImageInfo *eb_image_info_new(const char *alias);
EB_API void eb_image_info_free(EbImageInfo *self);

/** EbProbeItem: one thing a backend can or cannot enforce here. */
typedef struct {
    char *guarantee; /* "memory-limit", "disk-quota", "id-range", "apparmor", "lxcfs", "no-network", ... */
    gboolean enforced;
    char *degraded_id; /* (nullable): "E-05" when not enforced and known by an id */
    char *detail;      /* what was seen */
} EbProbeItem;

/** EbProbeReport: what eb_container_backend_probe_async() finds. */
struct _EbProbeReport {
    char *server;     /* "incus 6.0.4" */
    char *access;     /* how it is reached: "incus-user socket", "socket", "https" */
    GPtrArray *items; /* (element-type EbProbeItem) (owned) */
};
EB_API EbProbeReport *eb_probe_report_new(const char *server, const char *access);
EB_API void eb_probe_report_add(EbProbeReport *self, const char *guarantee, gboolean enforced, const char *degraded_id,
                                const char *detail);
EB_API void eb_probe_report_free(EbProbeReport *self);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbContainerSpec, eb_container_spec_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbExecSpec, eb_exec_spec_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbInstanceInfo, eb_instance_info_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbImageInfo, eb_image_info_free)
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbProbeReport, eb_probe_report_free)

G_END_DECLS
