/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/provision/eb-pool-plan.h"
#include "core/provision/eb-pool-quota.h"
#include "core/provision/eb-run.h"
#include "core/provision/eb-setup-private.h"

/* What setup makes inside the container daemon: pool, project, its default profile, and the network entry that
 * incus-user asks for. */

#define CALL_MS 30000
/* Formatting a loop file takes a second; a driver that cannot work was seen to take 32 s to say so. */
#define POOL_MS 120000

/* Looks an object up: TRUE with *@found NULL when it does not exist, or when a plan cannot look. */
static gboolean
look_up(EbSetup *self, const char *path, JsonNode **found, GError **error)
{
    g_autoptr(GError) failure = NULL;

    *found = eb_provision_client_call(self->client, "GET", path, NULL, CALL_MS, &failure);
    if (*found != NULL || g_error_matches(failure, EB_ERROR, EB_ERROR_NOT_FOUND) ||
        (self->options.plan && (g_error_matches(failure, EB_ERROR, EB_ERROR_UNAVAILABLE) ||
                                g_error_matches(failure, EB_ERROR, EB_ERROR_DENIED))))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

static gboolean
call(EbSetup *self, const char *method, const char *path, JsonBuilder *body, guint deadline_ms, GError **error)
{
    g_autoptr(JsonNode) answer =
        eb_provision_client_call(self->client, method, path, json_builder_get_root(body), deadline_ms, error);

    return answer != NULL;
}

static void
add(JsonBuilder *body, const char *name, const char *value)
{
    json_builder_set_member_name(body, name);
    json_builder_add_string_value(body, value);
}

/* --- pool --- */

/* (transfer full) (nullable): why no pool that copies on write can be made here; NULL: one can */
static char *
find_obstacle(EbSetup *self)
{
    g_autoptr(JsonNode) server = eb_provision_client_call(self->client, "GET", "/1.0", NULL, CALL_MS, NULL);
    JsonArray *drivers =
        eb_json_get_array(eb_json_get_object(eb_json_node_object(server), "environment"), "storage_supported_drivers");
    g_autofree char *program = eb_run_find("mkfs.btrfs");
    g_autofree char *systems = NULL;
    g_autoptr(GError) failure = NULL;

    if (program == NULL && !self->options.plan)
        return g_strdup("mkfs.btrfs is not installed");
    if (access("/dev/loop-control", R_OK | W_OK) < 0)
        return g_strdup_printf("no loop devices: /dev/loop-control: %s", g_strerror(errno));
    if (g_file_get_contents("/proc/filesystems", &systems, NULL, NULL) && strstr(systems, "\tbtrfs\n") == NULL) {
        const char *modprobe[] = {"modprobe", self->options.plan ? "--dry-run" : "--", "btrfs", NULL};
        if (!eb_run(modprobe, 15000, NULL, &failure))
            return g_strdup_printf("the kernel has no btrfs: %s", failure->message);
    }
    for (guint i = 0; drivers != NULL && i < json_array_get_length(drivers); i++)
        if (g_strcmp0(eb_json_get_string(eb_json_array_object(drivers, i), "Name"), "btrfs") == 0)
            return NULL;
    /* A plan before the daemon runs goes by the host alone. */
    return server == NULL ? NULL : g_strdup("incusd says that it cannot use btrfs here");
}

static guint64
free_space(const char *path)
{
    g_autofree char *place = g_strdup(path);
    struct statvfs info;

    while (statvfs(place, &info) < 0 && strcmp(place, "/") != 0) {
        char *parent = g_path_get_dirname(place);
        g_free(place);
        place = parent;
    }
    return (guint64)info.f_bavail * info.f_frsize;
}

/* Size the operator asks for, 0 when not. */
static gboolean
asked_size(EbSetup *self, guint64 *size, GError **error)
{
    const char *text = g_getenv("ERRAND_BOX_POOL_SIZE");
    EbConfigSection *section = eb_config_section_get_child(eb_config_get_root(self->options.config), "provision");

    *size = 0;
    if (text != NULL && *text != '\0')
        return eb_config_parse_size(text, size, error);
    if (section == NULL)
        return TRUE;
    return eb_config_section_get_size(section, "pool_size", 0, 0, G_MAXUINT64, size, error);
}

/* The daemon keeps the record of a pool that it could not finish, or whose making was cut off. */
static gboolean
is_half(JsonNode *pool)
{
    const char *status = eb_json_get_string(eb_json_node_object(pool), "status");

    return pool != NULL && status != NULL && strcmp(status, "Created") != 0;
}

static char *
pool_mount(EbSetup *self)
{
    return g_build_filename(self->daemon_dir, "storage-pools", self->pool, NULL);
}

/* Made by a setup that was cut off right after, and nothing is on it. */
static gboolean
must_count_by_owner(EbSetup *self, JsonNode *pool)
{
    g_autofree char *mount = pool_mount(self);
    JsonArray *users = eb_json_get_array(eb_json_node_object(pool), "used_by");

    return users != NULL && json_array_get_length(users) == 0 &&
           eb_setup_ledger_find(self->ledger, "pool", self->pool) != NULL && eb_pool_quota_is_due(mount);
}

/* Size of the pool's file, 0 with *@obstacle when there is to be none. */
static guint64
choose_size(EbSetup *self, guint64 asked, char **obstacle)
{
    guint64 available = free_space(self->daemon_dir);
    guint64 size;

    *obstacle = find_obstacle(self);
    if (*obstacle != NULL)
        return 0;
    size = eb_pool_plan_size(available, asked);
    if (size == 0) {
        g_autofree char *text = g_format_size_full(available, G_FORMAT_SIZE_IEC_UNITS);
        *obstacle = g_strdup_printf("%s has %s free, a pool takes %d GiB", self->daemon_dir, text,
                                    (int)(EB_POOL_PLAN_MIN >> 30));
    }
    return size;
}

static gboolean
check_pool(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *path = eb_provision_path("/1.0/storage-pools/%s", self->pool);
    g_autoptr(JsonNode) pool = NULL;
    g_autofree char *obstacle = NULL;
    guint64 asked, size;

    if (!look_up(self, path, &pool, error) || !asked_size(self, &asked, error))
        return FALSE;
    if (is_half(pool)) {
        if (eb_setup_ledger_find(self->ledger, "pool", self->pool) != NULL) {
            eb_findings_change(findings, "make the storage pool %s anew: an interrupted setup left half of it",
                               self->pool);
            return TRUE;
        }
        eb_set_error(error, EB_ERROR_CONFIG, "provision.pool",
                     "the storage pool %s is not whole (%s), and setup did not make it: remove it or name another",
                     self->pool, eb_json_get_string(eb_json_node_object(pool), "status"));
        return FALSE;
    }
    if (pool != NULL) {
        const char *driver = eb_json_get_string(eb_json_node_object(pool), "driver");
        if (g_strcmp0(driver, "dir") == 0)
            eb_findings_degraded(findings,
                                 "E-05: pool %s is a plain directory: disk limits of guests are not enforced "
                                 "and a start copies the whole image",
                                 self->pool);
        else if (must_count_by_owner(self, pool))
            eb_findings_change(findings, "let the storage pool %s count by owner: cheaper for the kernel", self->pool);
        else
            eb_findings_note(findings, "pool %s, %s", self->pool, driver != NULL ? driver : "unknown driver");
        return TRUE;
    }
    size = choose_size(self, asked, &obstacle);
    if (size > 0) {
        g_autofree char *text = g_format_size_full(size, G_FORMAT_SIZE_IEC_UNITS);
        eb_findings_change(findings, "make the storage pool %s: btrfs in a sparse file of %s in %s/disks", self->pool,
                           text, self->daemon_dir);
    } else {
        eb_findings_change(findings, "make the storage pool %s as a plain directory (E-05: %s)", self->pool, obstacle);
    }
    return TRUE;
}

static gboolean
make_pool(EbSetup *self, const char *driver, guint64 size, GError **error)
{
    g_autoptr(JsonBuilder) body = json_builder_new();
    g_autofree char *bytes = g_strdup_printf("%" G_GUINT64_FORMAT, size);

    json_builder_begin_object(body);
    add(body, "name", self->pool);
    add(body, "driver", driver);
    add(body, "description", "guests of errand-box");
    json_builder_set_member_name(body, "config");
    json_builder_begin_object(body);
    if (size > 0)
        add(body, "size", bytes);
    json_builder_end_object(body);
    json_builder_end_object(body);
    return call(self, "POST", "/1.0/storage-pools", body, POOL_MS, error);
}

/* Only what setup itself began. */
static gboolean
drop_half_pool(EbSetup *self, const char *path, GError **error)
{
    g_autoptr(JsonNode) pool = NULL;
    g_autoptr(JsonNode) answer = NULL;

    if (!look_up(self, path, &pool, error))
        return FALSE;
    if (!is_half(pool) || eb_setup_ledger_find(self->ledger, "pool", self->pool) == NULL)
        return TRUE;
    answer = eb_provision_client_call(self->client, "DELETE", path, NULL, POOL_MS, error);
    return answer != NULL;
}

/* Before a guest is there: the daemon enables quotas of its own kind when it finds none. */
static void
count_by_owner(EbSetup *self, EbFindings *findings)
{
    g_autofree char *mount = pool_mount(self);
    g_autoptr(GError) failure = NULL;

    if (eb_pool_quota_is_due(mount) && !eb_pool_quota_enable_simple(mount, &failure))
        eb_findings_note(findings, "pool %s: the end of a guest takes the kernel longer than it could (%s)", self->pool,
                         failure->message);
}

static gboolean
apply_pool(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *path = eb_provision_path("/1.0/storage-pools/%s", self->pool);
    g_autoptr(JsonNode) leftover = NULL;
    g_autoptr(JsonNode) made = NULL;
    g_autofree char *obstacle = NULL;
    guint64 asked, size;

    if (!asked_size(self, &asked, error) || !drop_half_pool(self, path, error))
        return FALSE;
    if (!look_up(self, path, &made, error))
        return FALSE;
    if (made != NULL) {
        count_by_owner(self, findings);
        return TRUE;
    }
    if (!eb_setup_record(self, &eb_setup_step_pool, "pool", self->pool, NULL, NULL, error))
        return FALSE;
    size = choose_size(self, asked, &obstacle);
    if (size > 0) {
        if (make_pool(self, "btrfs", size, &failure)) {
            count_by_owner(self, findings);
            return TRUE;
        }
        /* The daemon keeps no half of a pool it could not make, but a record may stay behind. */
        leftover = eb_provision_client_call(self->client, "DELETE", path, NULL, CALL_MS, NULL);
        eb_findings_degraded(findings, "btrfs does not work here (%s), so the pool is a plain directory",
                             failure->message);
    }
    return make_pool(self, "dir", 0, error);
}

const EbSetupStep eb_setup_step_pool = {
    .id = "pool",
    .title = "storage pool",
    .undo_hint = "it goes, when nothing of others is on it",
    .check = check_pool,
    .apply = apply_pool,
    .undo = eb_setup_undo_pool,
};

/* --- project --- */

/* What every project of ours has, whatever the account and its directories are. */
static const struct {
    const char *key;
    const char *value;
} PROJECT_KEYS[] = {
    {"features.images", "true"},
    {"features.profiles", "true"},
    {"features.storage.volumes", "true"},
    {"limits.virtual-machines", "0"},
    {"restricted", "true"},
    {"restricted.backups", "block"},
    {"restricted.snapshots", "block"},
    {"restricted.containers.lowlevel", "block"},
    {"restricted.containers.interception", "block"},
    {"restricted.containers.nesting", "allow"},
    {"restricted.containers.privilege", "isolated"},
    {"restricted.devices.disk", "allow"},
    {"restricted.devices.gpu", "block"},
    {"restricted.devices.infiniband", "block"},
    {"restricted.devices.nic", "block"},
    {"restricted.devices.pci", "block"},
    {"restricted.devices.proxy", "block"},
    {"restricted.devices.unix-block", "block"},
    {"restricted.devices.unix-char", "block"},
    {"restricted.devices.unix-hotplug", "block"},
    {"restricted.devices.usb", "block"},
};

/* (transfer full) (element-type utf8 utf8): NULL as long as the account does not exist. */
static GHashTable *
wanted_project(EbSetup *self)
{
    GHashTable *keys;
    uid_t uid;
    gid_t gid;

    if (!eb_setup_account_ids(self, &uid, &gid))
        return NULL;
    keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (guint i = 0; i < G_N_ELEMENTS(PROJECT_KEYS); i++)
        g_hash_table_insert(keys, g_strdup(PROJECT_KEYS[i].key), g_strdup(PROJECT_KEYS[i].value));
    /* Not the account's home: its credentials and records are there. */
    g_hash_table_insert(keys, g_strdup("restricted.devices.disk.paths"),
                        g_strdup_printf("%s/sessions,%s/try,%s", self->state_dir, self->state_dir, self->project_root));
    g_hash_table_insert(keys, g_strdup("restricted.idmap.uid"), g_strdup_printf("%u", (guint)uid));
    g_hash_table_insert(keys, g_strdup("restricted.idmap.gid"), g_strdup_printf("%u", (guint)gid));
    return keys;
}

static gboolean
check_project(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GHashTable) keys = wanted_project(self);
    const char *name = eb_setup_get_project(self);
    g_autoptr(JsonNode) project = NULL;
    g_autofree char *path = NULL;
    JsonObject *config;
    GHashTableIter iter;
    gpointer key, value;

    if (keys == NULL || name == NULL) {
        eb_findings_change(findings, "make the restricted project user-<uid of %s>", self->account);
        return TRUE;
    }
    path = eb_provision_path("/1.0/projects/%s", name);
    if (!look_up(self, path, &project, error))
        return FALSE;
    if (project == NULL) {
        eb_findings_change(findings,
                           "make the project %s, restricted: no network device, no proxy, no privileged guest, disks "
                           "below %s/sessions, %s/try and %s alone",
                           name, self->state_dir, self->state_dir, self->project_root);
        return TRUE;
    }
    config = eb_json_get_object(eb_json_node_object(project), "config");
    g_hash_table_iter_init(&iter, keys);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const char *is = eb_json_get_string(config, key);
        if (g_strcmp0(is, value) != 0)
            eb_findings_change(findings, "set %s of project %s to \"%s\" (is %s)", (const char *)key, name,
                               (const char *)value, is != NULL ? is : "unset");
    }
    if (findings->changes->len == 0)
        eb_findings_note(findings, "project %s", name);
    return TRUE;
}

/* A project that was there keeps its name and gets its own values back. */
static gboolean
record_project(EbSetup *self, const char *name, JsonNode *project, GHashTable *keys, GError **error)
{
    JsonObject *config = eb_json_get_object(eb_json_node_object(project), "config");
    JsonObject *before;
    g_autoptr(JsonNode) node = NULL;
    g_autofree char *text = NULL;
    GHashTableIter iter;
    gpointer key, value;

    if (project == NULL)
        return eb_setup_record(self, &eb_setup_step_project, "project", name, NULL, NULL, error);
    if (eb_setup_ledger_find(self->ledger, "project", name) != NULL)
        return TRUE;
    node = json_node_new(JSON_NODE_OBJECT);
    before = json_object_new();
    json_node_take_object(node, before);
    g_hash_table_iter_init(&iter, keys);
    while (g_hash_table_iter_next(&iter, &key, &value)) {
        const char *is = eb_json_get_string(config, key);
        json_object_set_string_member(before, key, is != NULL ? is : "");
    }
    text = eb_json_write(node, NULL);
    return eb_setup_record(self, &eb_setup_step_project, "project-keys", name, text, NULL, error);
}

static gboolean
apply_project(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GHashTable) keys = wanted_project(self);
    const char *name = eb_setup_get_project(self);
    g_autofree char *path = eb_provision_path("/1.0/projects/%s", name);
    g_autoptr(JsonNode) project = NULL;
    g_autoptr(JsonBuilder) body = json_builder_new();
    GHashTableIter iter;
    gpointer key, value;

    if (!look_up(self, path, &project, error) || !record_project(self, name, project, keys, error))
        return FALSE;
    json_builder_begin_object(body);
    if (project == NULL) {
        add(body, "name", name);
        add(body, "description", "guests of errand-box");
    }
    json_builder_set_member_name(body, "config");
    json_builder_begin_object(body);
    g_hash_table_iter_init(&iter, keys);
    while (g_hash_table_iter_next(&iter, &key, &value))
        add(body, key, value);
    json_builder_end_object(body);
    json_builder_end_object(body);
    return project == NULL ? call(self, "POST", "/1.0/projects", body, CALL_MS, error)
                           : call(self, "PATCH", path, body, CALL_MS, error);
}

const EbSetupStep eb_setup_step_project = {
    .id = "project",
    .title = "restricted project",
    .undo_hint = "it goes with our guests and images, when nothing of others is in it",
    .check = check_project,
    .apply = apply_project,
    .undo = eb_setup_undo_project,
};

/* --- profile --- */

static gboolean
check_profile(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *name = eb_setup_get_project(self);
    g_autofree char *path = eb_provision_path("/1.0/profiles/default?project=%s", name != NULL ? name : "-");
    g_autoptr(JsonNode) profile = NULL;
    JsonObject *devices, *root;

    if (name != NULL && !look_up(self, path, &profile, error))
        return FALSE;
    devices = eb_json_get_object(eb_json_node_object(profile), "devices");
    root = eb_json_get_object(devices, "root");
    if (root == NULL || g_strcmp0(eb_json_get_string(root, "pool"), self->pool) != 0 ||
        g_strcmp0(eb_json_get_string(root, "path"), "/") != 0 || json_object_get_size(devices) != 1)
        eb_findings_change(findings, "give the project's default profile a root disk on pool %s and nothing else",
                           self->pool);
    return TRUE;
}

static gboolean
apply_profile(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *name = eb_setup_get_project(self);
    g_autofree char *path = eb_provision_path("/1.0/profiles/default?project=%s", name);
    g_autoptr(JsonBuilder) body = json_builder_new();
    g_autoptr(JsonNode) profile = NULL;

    if (!look_up(self, path, &profile, error))
        return FALSE;
    if (profile != NULL && eb_setup_ledger_find(self->ledger, "project", name) == NULL) {
        g_autofree char *before = eb_json_write(profile, NULL);
        if (!eb_setup_record(self, &eb_setup_step_profile, "profile", name, before, NULL, error))
            return FALSE;
    }
    json_builder_begin_object(body);
    add(body, "description", "a root disk, and no network device");
    json_builder_set_member_name(body, "config");
    json_builder_begin_object(body);
    json_builder_end_object(body);
    json_builder_set_member_name(body, "devices");
    json_builder_begin_object(body);
    json_builder_set_member_name(body, "root");
    json_builder_begin_object(body);
    add(body, "type", "disk");
    add(body, "path", "/");
    add(body, "pool", self->pool);
    json_builder_end_object(body);
    json_builder_end_object(body);
    json_builder_end_object(body);
    return call(self, "PUT", path, body, CALL_MS, error);
}

const EbSetupStep eb_setup_step_profile = {
    .id = "profile",
    .title = "default profile of the project",
    .undo_hint = "gone with the project",
    .check = check_profile,
    .apply = apply_profile,
    .undo = eb_setup_undo_profile,
};

/* --- network --- */

/*
 * incus-user makes a NAT bridge for all users unless a network of this name is there. An entry of type macvlan makes
 * nothing on the host, needs no dnsmasq, and on lo leads nowhere; the project blocks network devices anyway.
 */
#define NETWORK "incusbr0"

static gboolean
check_network(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(JsonNode) network = NULL;

    if (!look_up(self, "/1.0/networks/" NETWORK, &network, error))
        return FALSE;
    if (network == NULL || !eb_json_get_bool(eb_json_node_object(network), "managed", FALSE))
        eb_findings_change(findings, "make the network entry " NETWORK
                                     " that leads nowhere (without one incus-user would make a NAT bridge)");
    return TRUE;
}

static gboolean
apply_network(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(JsonBuilder) body = json_builder_new();

    if (!eb_setup_record(self, &eb_setup_step_network, "network", NETWORK, NULL, NULL, error))
        return FALSE;
    json_builder_begin_object(body);
    add(body, "name", NETWORK);
    add(body, "type", "macvlan");
    add(body, "description", "leads nowhere: keeps incus-user from making a bridge");
    json_builder_set_member_name(body, "config");
    json_builder_begin_object(body);
    add(body, "parent", "lo");
    json_builder_end_object(body);
    json_builder_end_object(body);
    return call(self, "POST", "/1.0/networks", body, CALL_MS, error);
}

const EbSetupStep eb_setup_step_network = {
    .id = "network",
    .title = "no network for guests",
    .undo_hint = "the entry goes, when no other project uses it",
    .check = check_network,
    .apply = apply_network,
    .undo = eb_setup_undo_network,
};
