/* SPDX-License-Identifier: MIT */
#include "incus-probe.h"

#include <stdio.h>

/* Ids a guest of its own range takes, and how many guests the range should carry. */
#define IDS_PER_GUEST 65536
#define WANTED_GUESTS 64

static void
report(EbProbeReport *self, const char *guarantee, gboolean enforced, const char *id, const char *detail)
{
    eb_probe_report_add(self, guarantee, enforced, enforced ? NULL : id, detail);
}

static void
report_disk(EbProbeReport *self, const IncusServer *server)
{
    const char *driver = server->pool_driver;
    g_autofree char *detail = g_strdup_printf(
        "pool %s, driver %s%s", server->pool, driver != NULL ? driver : "unknown",
        g_strcmp0(driver, "dir") == 0 ? ": size limits are ignored, and every start copies the image" : "");
    report(self, "disk-quota", driver != NULL && !g_str_equal(driver, "dir"), "E-05", detail);
}

static void
report_rootfs(EbProbeReport *self, const IncusServer *server, const IncusHostFacts *facts)
{
    guint major = 0, minor = 0, patch = 0;
    gboolean read = sscanf(server->version, "%u.%u.%u", &major, &minor, &patch) >= 2;
    gboolean old = read && (major < 6 || (major == 6 && ((minor == 0 && patch == 0) || minor == 1)));
    gboolean kernel = facts->kernel_major > 6 || (facts->kernel_major == 6 && facts->kernel_minor >= 9);
    gboolean bad = old && (kernel || !facts->known);
    g_autofree char *detail = g_strdup_printf(
        "Incus %s, kernel %u.%u%s", server->version, facts->kernel_major, facts->kernel_minor,
        bad ? ": root file systems are rewritten at the first start instead of mapped (Incus >= 6.0.1)" : "");
    report(self, "rootfs-mapped", !bad, "E-20", detail);
}

static gboolean
config_is(JsonObject *config, const char *key, const char *value)
{
    return g_strcmp0(eb_json_get_string(config, key), value) == 0;
}

static gboolean
names_root(const char *paths)
{
    g_auto(GStrv) list = g_strsplit(paths, ",", 0);
    for (char **path = list; *path != NULL; path++)
        if (g_str_equal(g_strstrip(*path), "/"))
            return TRUE;
    return FALSE;
}

/* What a restricted project blocks by default and none of ours needs. */
static const struct {
    const char *key;
    const char *gap;
} blocked[] = {
    {"restricted.devices.proxy", "proxy devices are allowed"},
    {"restricted.devices.unix-char", "character devices are allowed"},
    {"restricted.devices.unix-block", "block devices are allowed"},
    {"restricted.devices.unix-hotplug", "hotplug devices are allowed"},
    {"restricted.devices.pci", "PCI devices are allowed"},
    {"restricted.devices.usb", "USB devices are allowed"},
    {"restricted.devices.gpu", "GPU devices are allowed"},
    {"restricted.containers.lowlevel", "raw container settings are allowed"},
    {"restricted.containers.interception", "system call interception is allowed"},
    {"restricted.snapshots", "snapshots are allowed"},
    {"restricted.backups", "backups are allowed"},
};

/* What the project itself refuses, whatever this plugin or a thief of its access asks for. */
static void
report_project(EbProbeReport *self, const IncusServer *server)
{
    JsonObject *config = eb_json_node_object(server->project_config);
    g_autoptr(GPtrArray) gaps = g_ptr_array_new();
    const char *paths = eb_json_get_string(config, "restricted.devices.disk.paths");
    gboolean disks = config_is(config, "restricted.devices.disk", "allow");
    if (!config_is(config, "restricted", "true"))
        g_ptr_array_add(gaps, (gpointer) "not restricted");
    if (!config_is(config, "restricted.devices.nic", "block"))
        g_ptr_array_add(gaps, (gpointer) "network devices are not blocked");
    if (disks && (paths == NULL || *paths == '\0' || names_root(paths)))
        g_ptr_array_add(gaps, (gpointer) "every host path may be mounted");
    for (gsize i = 0; i < G_N_ELEMENTS(blocked); i++)
        if (config_is(config, blocked[i].key, "allow"))
            g_ptr_array_add(gaps, (gpointer)blocked[i].gap);
    if (!config_is(config, "restricted.containers.privilege", "isolated"))
        g_ptr_array_add(gaps, (gpointer) "id ranges of their own are not demanded");
    if (!config_is(config, "features.images", "true"))
        g_ptr_array_add(gaps, (gpointer) "images are shared with the default project");
    g_ptr_array_add(gaps, NULL);
    g_autofree char *list = g_strjoinv("; ", (char **)gaps->pdata);
    g_autofree char *detail = g_strdup_printf("project %s%s%s", server->project, gaps->len > 1 ? ": " : "", list);
    report(self, "project-restricted", gaps->len == 1, "E-61", detail);
    gboolean nic = config_is(config, "restricted", "true") && config_is(config, "restricted.devices.nic", "block");
    report(self, "no-network", TRUE, NULL,
           nic ? "no device but disks is sent or started, and the project refuses network devices"
               : "no device but disks is sent or started; the project itself would allow one");
}

static void
report_limits(EbProbeReport *self, const IncusServer *server, const IncusHostFacts *facts)
{
    guint major = 0;
    gboolean seven = sscanf(server->version, "%u", &major) == 1 && major >= 7;
    gboolean ignored = seven && !facts->unified;
    const char *detail = ignored          ? "Incus 7 ignores limits on a host that has cgroup v1"
                         : facts->unified ? "cgroup2"
                                          : "cgroup v1 or hybrid";
    report(self, "memory-limit", facts->memory && !ignored, NULL, detail);
    report(self, "pids-limit", facts->pids && !ignored, NULL, detail);
    report(self, "cpu-limit", facts->cpu && !ignored, NULL, detail);
}

static void
report_host(EbProbeReport *self, const IncusServer *server, const IncusHostFacts *facts)
{
    report(self, "lxcfs", facts->lxcfs_answers, "E-08",
           facts->lxcfs_answers   ? "mounted and answering"
           : facts->lxcfs_mounted ? "mounted but dead: guests started before cannot read /proc/meminfo"
                                  : "not mounted: guests see the host's memory and processors");
    report(self, "apparmor", facts->apparmor, "E-17",
           facts->apparmor ? "enabled" : "not enabled: seccomp and the user namespace are what confines a guest");
    report_limits(self, server, facts);
    g_autofree char *detail =
        g_strdup_printf("root has %" G_GUINT64_FORMAT " ids, room for %" G_GUINT64_FORMAT " guests",
                        facts->subuid_count, facts->subuid_count / IDS_PER_GUEST);
    report(self, "id-range", facts->subuid_count >= (guint64)IDS_PER_GUEST * WANTED_GUESTS, NULL, detail);
}

EbProbeReport *
incus_probe_report(const IncusServer *server, const char *access, const IncusHostFacts *facts)
{
    g_autofree char *name = g_strdup_printf("%s %s", server->name, server->version);
    EbProbeReport *self = eb_probe_report_new(name, access);
    report_disk(self, server);
    report_rootfs(self, server, facts);
    report_project(self, server);
    if (facts->known)
        report_host(self, server, facts);
    else
        report(self, "host", FALSE, NULL, "incusd runs on another host, whose limits cannot be seen from here");
    return self;
}

/* --- asynchronous --- */

typedef struct {
    IncusServer *server; /* (owned) */
    IncusDeadline *deadline;
    char *access;
} Probe;

static void
probe_free(gpointer data)
{
    Probe *probe = data;
    incus_server_unref(probe->server);
    incus_deadline_unref(probe->deadline);
    g_free(probe->access);
    g_free(probe);
}

/* A dead FUSE mount can hold a read for ever: the thread is left behind then, not waited for. */
static void
facts_thread(GTask *task, gpointer source, gpointer task_data, GCancellable *cancellable)
{
    IncusHostFacts *facts = g_new0(IncusHostFacts, 1);
    g_autoptr(EbHost) host = eb_host_new_real();
    incus_host_facts_read(host, facts);
    g_task_return_pointer(task, facts, g_free);
}

static void
on_facts(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = user_data;
    Probe *probe = g_task_get_task_data(task);
    GError *error = NULL;
    g_autofree IncusHostFacts *facts = g_task_propagate_pointer(G_TASK(result), &error);
    if (facts == NULL) {
        incus_deadline_convert(probe->deadline, "probe", &error);
        g_task_return_error(task, error);
        return;
    }
    g_task_return_pointer(task, incus_probe_report(probe->server, probe->access, facts),
                          (GDestroyNotify)eb_probe_report_free);
}

static gboolean
is_local(const IncusEndpoint *endpoint)
{
    if (endpoint->socket_path != NULL)
        return TRUE;
    g_autoptr(GInetAddress) address = g_inet_address_new_from_string(endpoint->host);
    return g_str_equal(endpoint->host, "localhost") || (address != NULL && g_inet_address_get_is_loopback(address));
}

void
incus_probe_async(IncusClient *client, IncusServer *server, IncusDeadline *deadline, GAsyncReadyCallback callback,
                  gpointer user_data)
{
    const IncusEndpoint *endpoint = incus_client_get_endpoint(client);
    g_autoptr(GTask) task = g_task_new(client, NULL, callback, user_data);
    Probe *probe = g_new0(Probe, 1);
    g_task_set_source_tag(task, incus_probe_async);
    g_task_set_task_data(task, probe, probe_free);
    probe->server = incus_server_ref(server);
    probe->deadline = incus_deadline_ref(deadline);
    probe->access = g_strdup(endpoint->access);
    if (!is_local(endpoint)) {
        IncusHostFacts nothing = {.known = FALSE};
        g_task_return_pointer(task, incus_probe_report(server, probe->access, &nothing),
                              (GDestroyNotify)eb_probe_report_free);
        return;
    }
    g_autoptr(GTask) facts =
        g_task_new(NULL, incus_deadline_get_cancellable(deadline), on_facts, g_steal_pointer(&task));
    g_task_set_return_on_cancel(facts, TRUE);
    g_task_run_in_thread(facts, facts_thread);
}

EbProbeReport *
incus_probe_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, incus_probe_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
