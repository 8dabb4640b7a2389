/* SPDX-License-Identifier: MIT */
#pragma once

#include "incus-server.h"

G_BEGIN_DECLS

/** IncusHostFacts: what this host's files tell about guests of a local incusd. */
typedef struct {
    gboolean known;         /* FALSE: incusd is on another host */
    gboolean lxcfs_mounted; /* a fuse.lxcfs mount where incusd looks for it */
    gboolean lxcfs_answers; /* and it is alive */
    gboolean apparmor;
    gboolean unified; /* cgroup2 alone */
    gboolean memory;  /* controllers */
    gboolean pids;
    gboolean cpu;
    guint64 subuid_count; /* ids of root's largest range in /etc/subuid, the smaller of uid and gid */
    guint kernel_major;
    guint kernel_minor;
} IncusHostFacts;

/** incus_host_facts_read: blocks; run it in a thread. */
void incus_host_facts_read(EbHost *host, IncusHostFacts *facts);

/** incus_probe_report: (transfer full): pure. @access: how incusd is reached */
EbProbeReport *incus_probe_report(const IncusServer *server, const char *access, const IncusHostFacts *facts);

/** incus_probe_async: reads the host in a thread and reports. */
void incus_probe_async(IncusClient *client, IncusServer *server, IncusDeadline *deadline, GAsyncReadyCallback callback,
                       gpointer user_data);
/** incus_probe_finish: (transfer full) (nullable) */
EbProbeReport *incus_probe_finish(GAsyncResult *result, GError **error);

G_END_DECLS
